//! The certificates of an identity provider, which an administrator enters.
//!
//! What belongs here: reading them with errors for the form, and the key in them. What
//! does not: trust in an issuer. Entering a certificate pins it (SAML-6).

use std::fmt::{self, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use der::asn1::{ObjectIdentifier, UintRef};
use der::{Decode as _, Sequence};
use ring::digest;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, UnparsedPublicKey,
    VerificationAlgorithm,
};
use x509_cert::Certificate as X509;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";
/// Bytes of the text of a certificate.
const LENGTH: usize = 32 * 1024;
/// The smallest and the largest RSA key.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const ELLIPTIC_CURVE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");

/// Why a text is not a certificate that Weir accepts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateFault {
    /// There is no text.
    #[error("Enter the certificate of the identity provider.")]
    Empty,
    /// The text is longer than a certificate.
    #[error("This text is too long for a certificate.")]
    TooLong,
    /// A private key was entered.
    #[error("This is a private key. Enter the certificate, and replace the key: it was sent.")]
    PrivateKey,
    /// There is something before or after the certificate, or a second one.
    #[error("Enter exactly one certificate, from {BEGIN} to {END}.")]
    NotOne,
    /// The text between the lines is not base64.
    #[error("The text of the certificate is not base64. Copy the whole file.")]
    NotBase64,
    /// The bytes are not a certificate.
    #[error("This is not an X.509 certificate: {0}.")]
    NotX509(String),
    /// The key is of another kind.
    #[error("The key of the certificate must be RSA, or elliptic on the curve P-256 or P-384.")]
    Key,
    /// The RSA key has another size.
    #[error("The RSA key has {0} bits. It must have 2048 to 8192.")]
    KeySize(usize),
}

/// A way of signing that is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    RsaSha256,
    RsaSha384,
    RsaSha512,
    EcdsaSha256,
    EcdsaSha384,
}

/// A pinned certificate of an identity provider.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    encoded: Vec<u8>,
    subject: String,
    begins: DateTime<Utc>,
    expires: DateTime<Utc>,
    key: Key,
    /// The key without its envelope, as the algorithms read it.
    public: Vec<u8>,
}

/// The kind and the size of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// RSA, with the bits of the modulus.
    Rsa(usize),
    /// The curve P-256.
    P256,
    /// The curve P-384.
    P384,
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rsa(bits) => write!(out, "RSA, {bits} bits"),
            Self::P256 => out.write_str("ECDSA, P-256"),
            Self::P384 => out.write_str("ECDSA, P-384"),
        }
    }
}

#[derive(Sequence)]
struct RsaPublicKey<'a> {
    modulus: UintRef<'a>,
    exponent: UintRef<'a>,
}

impl Certificate {
    /// Reads a certificate: PEM, or only the base64 text in it, as metadata has it.
    ///
    /// # Errors
    /// Why the text is refused, as a sentence for the field of the form.
    pub fn read(text: &str) -> Result<Self, CertificateFault> {
        if text.len() > LENGTH {
            return Err(CertificateFault::TooLong);
        }
        let text = text.trim();
        if text.is_empty() {
            return Err(CertificateFault::Empty);
        }
        if text.contains("PRIVATE KEY-----") {
            return Err(CertificateFault::PrivateKey);
        }
        let inner = match text.strip_prefix(BEGIN) {
            Some(rest) => rest.strip_suffix(END).ok_or(CertificateFault::NotOne)?,
            None => text,
        };
        if inner.contains("-----") {
            return Err(CertificateFault::NotOne);
        }
        let digits: String = inner.split_ascii_whitespace().collect();
        let encoded = STANDARD.decode(digits).map_err(|_| CertificateFault::NotBase64)?;
        Self::from_der(encoded)
    }

    fn from_der(encoded: Vec<u8>) -> Result<Self, CertificateFault> {
        let not_x509 = |error: der::Error| CertificateFault::NotX509(error.to_string());
        let certificate = X509::from_der(&encoded).map_err(not_x509)?.tbs_certificate;
        let info = &certificate.subject_public_key_info;
        let public = info.subject_public_key.as_bytes().ok_or(CertificateFault::Key)?.to_vec();
        let algorithm = &info.algorithm;
        let key = if algorithm.oid == RSA {
            let read = RsaPublicKey::from_der(&public).map_err(|_| CertificateFault::Key)?;
            let bits = bits(read.modulus.as_bytes());
            if !RSA_BITS.contains(&bits) {
                return Err(CertificateFault::KeySize(bits));
            }
            Key::Rsa(bits)
        } else if algorithm.oid == ELLIPTIC_CURVE {
            let curve = algorithm.parameters.as_ref();
            let curve = curve.and_then(|any| any.decode_as::<ObjectIdentifier>().ok());
            match curve {
                Some(P256) => Key::P256,
                Some(P384) => Key::P384,
                _ => return Err(CertificateFault::Key),
            }
        } else {
            return Err(CertificateFault::Key);
        };
        let validity = certificate.validity;
        let subject = certificate.subject.to_string();
        let begins = time(validity.not_before);
        let expires = time(validity.not_after);
        Ok(Self { encoded, subject, begins, expires, key, public })
    }

    /// The name in the certificate, such as `CN=idp.example.com`.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// When the certificate begins to be valid.
    pub fn begins(&self) -> DateTime<Utc> {
        self.begins
    }

    /// Until when the certificate is valid. Its signatures are refused afterwards.
    pub fn expires(&self) -> DateTime<Utc> {
        self.expires
    }

    /// The kind and the size of its key.
    pub fn key(&self) -> Key {
        self.key
    }

    /// The SHA-256 fingerprint, as identity providers show it: `AB:CD:…`.
    pub fn fingerprint(&self) -> String {
        let hash = digest::digest(&digest::SHA256, &self.encoded);
        let mut text = String::new();
        for byte in hash.as_ref() {
            // Writing to a text cannot fail.
            let _ = write!(text, "{}{byte:02X}", if text.is_empty() { "" } else { ":" });
        }
        text
    }

    /// The base64 text that metadata has.
    pub fn base64(&self) -> String {
        STANDARD.encode(&self.encoded)
    }

    pub(crate) fn is_valid(&self, now: DateTime<Utc>) -> bool {
        self.begins <= now && now <= self.expires
    }

    /// Whether the key is of the kind that an algorithm needs.
    pub(crate) fn fits(&self, algorithm: Algorithm) -> bool {
        self.verifier(algorithm).is_some()
    }

    /// Whether this certificate's key made the signature.
    pub(crate) fn verifies(&self, algorithm: Algorithm, text: &[u8], signature: &[u8]) -> bool {
        let Some(verifier) = self.verifier(algorithm) else { return false };
        UnparsedPublicKey::new(verifier, &self.public).verify(text, signature).is_ok()
    }

    /// The kind of the key decides, never the document alone: a public key is no secret
    /// of an HMAC.
    fn verifier(&self, algorithm: Algorithm) -> Option<&'static dyn VerificationAlgorithm> {
        match (self.key, algorithm) {
            (Key::Rsa(_), Algorithm::RsaSha256) => Some(&RSA_PKCS1_2048_8192_SHA256),
            (Key::Rsa(_), Algorithm::RsaSha384) => Some(&RSA_PKCS1_2048_8192_SHA384),
            (Key::Rsa(_), Algorithm::RsaSha512) => Some(&RSA_PKCS1_2048_8192_SHA512),
            (Key::P256, Algorithm::EcdsaSha256) => Some(&ECDSA_P256_SHA256_FIXED),
            (Key::P384, Algorithm::EcdsaSha384) => Some(&ECDSA_P384_SHA384_FIXED),
            _ => None,
        }
    }

    /// The public key, to compare it with that of a private key.
    pub(crate) fn public(&self) -> &[u8] {
        &self.public
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Certificate")
            .field("subject", &self.subject)
            .field("expires", &self.expires)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

fn bits(modulus: &[u8]) -> usize {
    let first = modulus.first().map_or(0, |byte| byte.leading_zeros() as usize);
    modulus.len() * 8 - first
}

fn time(time: x509_cert::time::Time) -> DateTime<Utc> {
    let seconds = i64::try_from(time.to_unix_duration().as_secs()).unwrap_or(i64::MAX);
    DateTime::from_timestamp(seconds, 0).unwrap_or(DateTime::<Utc>::MAX_UTC)
}
