//! The key with which Weir signs its requests, and the certificate that an identity
//! provider reads it from.
//!
//! What belongs here: making and reading a key. What does not: where it is stored, sealed.
//!
//! `rsa` makes keys, because `ring` makes none. `ring` signs with them, in constant time.

use std::fmt;
use std::str::FromStr as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, TimeDelta, Utc};
use der::asn1::{Any, BitString, GeneralizedTime, ObjectIdentifier, UtcTime};
use der::{Decode as _, Encode as _};
use ring::rand::SystemRandom;
use ring::signature::{KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use rsa::RsaPrivateKey;
use rsa::pkcs8::{EncodePrivateKey as _, EncodePublicKey as _, LineEnding};
use rsa::rand_core::OsRng;
use x509_cert::TbsCertificate;
use x509_cert::certificate::Version;
use x509_cert::name::RdnSequence;
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};
use x509_cert::time::{Time, Validity};
use zeroize::Zeroizing;

use crate::certificate::Certificate;

/// Bits of a new key: all identity providers read it.
const BITS: usize = 2048;
/// For how long a new certificate is valid. An identity provider compares it with the one
/// that was entered there, so a change is work for its administrators.
const VALID: TimeDelta = TimeDelta::days(10 * 365);
/// The subject and the issuer of a new certificate.
const SUBJECT: &str = "CN=Weir";
const SHA256_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.11");

/// The key with which Weir signs its requests.
pub struct SigningKey(RsaKeyPair);

/// Why a signing key cannot be used or made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SigningKeyFault {
    /// The text is not a key.
    #[error("the signing key is not a private RSA key in PKCS #8")]
    NotAKey,
    /// The key and the certificate are not of each other.
    #[error("the certificate is of another key")]
    OtherCertificate,
    /// The system gave no random bytes, or the key has no encoding.
    #[error("no signing key could be made")]
    NotMade,
}

/// A new key, to be stored. It has no `Debug`.
pub struct NewSigningKey {
    /// The private key as PEM in PKCS #8.
    pub key: Zeroizing<String>,
    /// The certificate, signed with the key itself.
    pub certificate: Certificate,
}

impl SigningKey {
    /// A private RSA key as PEM in PKCS #8, which must be that of a certificate.
    ///
    /// # Errors
    /// [`SigningKeyFault`] when the key cannot be read, or has another certificate.
    pub fn read(pem: &str, certificate: &Certificate) -> Result<Self, SigningKeyFault> {
        let pair = read(pem)?;
        if pair.public_key().as_ref() != certificate.public() {
            return Err(SigningKeyFault::OtherCertificate);
        }
        Ok(Self(pair))
    }

    /// Makes a key, with a certificate that is valid from now. It takes a while.
    ///
    /// # Errors
    /// [`SigningKeyFault::NotMade`].
    pub fn generate(now: DateTime<Utc>) -> Result<NewSigningKey, SigningKeyFault> {
        let made = RsaPrivateKey::new(&mut OsRng, BITS).map_err(|_| SigningKeyFault::NotMade)?;
        let key = made.to_pkcs8_pem(LineEnding::LF).map_err(|_| SigningKeyFault::NotMade)?;
        let public = made.to_public_key().to_public_key_der();
        let public = public.map_err(|_| SigningKeyFault::NotMade)?;
        let encoded = certificate(&read(&key)?, public.as_bytes(), now);
        let encoded = encoded.ok_or(SigningKeyFault::NotMade)?;
        let certificate = Certificate::read(&STANDARD.encode(encoded));
        let certificate = certificate.map_err(|_| SigningKeyFault::NotMade)?;
        Ok(NewSigningKey { key, certificate })
    }

    /// RSA with SHA-256.
    pub(crate) fn sign(&self, text: &[u8]) -> Option<Vec<u8>> {
        sign(&self.0, text)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SigningKey").finish_non_exhaustive()
    }
}

fn read(pem: &str) -> Result<RsaKeyPair, SigningKeyFault> {
    let inner = pem.trim().strip_prefix("-----BEGIN PRIVATE KEY-----");
    let inner = inner.and_then(|rest| rest.strip_suffix("-----END PRIVATE KEY-----"));
    let inner = inner.ok_or(SigningKeyFault::NotAKey)?;
    let mut digits = Zeroizing::new(String::with_capacity(inner.len()));
    digits.extend(inner.split_ascii_whitespace());
    let decoded = STANDARD.decode(digits.as_bytes()).map(Zeroizing::new);
    let decoded = decoded.map_err(|_| SigningKeyFault::NotAKey)?;
    RsaKeyPair::from_pkcs8(&decoded).map_err(|_| SigningKeyFault::NotAKey)
}

fn sign(pair: &RsaKeyPair, text: &[u8]) -> Option<Vec<u8>> {
    let mut signature = vec![0; pair.public().modulus_len()];
    let random = SystemRandom::new();
    pair.sign(&RSA_PKCS1_SHA256, &random, text, &mut signature).ok()?;
    Some(signature)
}

/// The certificate of a key, signed with the key itself, in DER. `public` is the key as
/// certificates write it.
fn certificate(pair: &RsaKeyPair, public: &[u8], now: DateTime<Utc>) -> Option<Vec<u8>> {
    let mut serial = [0; 16];
    getrandom::fill(&mut serial).ok()?;
    // A positive number of exactly this length.
    serial[0] = (serial[0] & 0x7f) | 0x40;
    let algorithm =
        AlgorithmIdentifierOwned { oid: SHA256_WITH_RSA, parameters: Some(Any::null()) };
    let tbs_certificate = TbsCertificate {
        version: Version::V3,
        serial_number: SerialNumber::new(&serial).ok()?,
        signature: algorithm.clone(),
        issuer: RdnSequence::from_str(SUBJECT).ok()?,
        validity: Validity {
            not_before: time(now)?,
            not_after: time(now.checked_add_signed(VALID)?)?,
        },
        subject: RdnSequence::from_str(SUBJECT).ok()?,
        subject_public_key_info: SubjectPublicKeyInfoOwned::from_der(public).ok()?,
        issuer_unique_id: None,
        subject_unique_id: None,
        extensions: None,
    };
    let signature = sign(pair, &tbs_certificate.to_der().ok()?)?;
    let signature = BitString::from_bytes(&signature).ok()?;
    let whole =
        x509_cert::Certificate { tbs_certificate, signature_algorithm: algorithm, signature };
    whole.to_der().ok()
}

/// A time of a certificate. From 2050 on, it has another form.
fn time(at: DateTime<Utc>) -> Option<Time> {
    let since = Duration::from_secs(u64::try_from(at.timestamp()).ok()?);
    match UtcTime::from_unix_duration(since) {
        Ok(time) => Some(Time::UtcTime(time)),
        Err(_) => GeneralizedTime::from_unix_duration(since).ok().map(Time::GeneralTime),
    }
}
