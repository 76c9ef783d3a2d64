//! Private keys that members enter as text, and tokens signed with them (RFC 7519,
//! RS256).
//!
//! What belongs here: PEM and its encryption (PKCS#1, PKCS#8 with PBES2), the signature.
//! What does not: the claims of a token (`snowflake`, `bigquery`).

use aes::cipher::{Block, BlockDecryptMut, BlockSizeUser, KeyIvInit};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use der::asn1::{AnyRef, BitStringRef, OctetStringRef};
use der::oid::ObjectIdentifier;
use der::{Choice, Decode as _, DecodeValue, Encode as _, Sequence};
use ring::pbkdf2;
use ring::rand::SystemRandom;
use ring::signature::{self, KeyPair as _, RsaKeyPair};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use spki::{AlgorithmIdentifierRef, SubjectPublicKeyInfoRef};
use zeroize::Zeroizing;

/// Upper bound of key derivation rounds: the key of a member must not occupy the
/// processor for long.
const ROUNDS_MAX: u32 = 2_000_000;

/// An RSA key for signing.
pub(in crate::destinations) struct Key(RsaKeyPair);

/// Why a key cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(in crate::destinations) enum KeyFault {
    /// The text is not a valid key.
    #[error("The private key is not in PEM form.")]
    Form,
    /// It is encrypted, and there is no passphrase.
    #[error("The private key is encrypted: enter its passphrase too.")]
    Passphrase,
    #[error("The passphrase of the private key is wrong.")]
    WrongPassphrase,
    /// It is encrypted with an unsupported method.
    #[error("The encryption of the private key is not supported: use PKCS#8 with AES or 3DES.")]
    Encryption,
    /// It is not an RSA key of 2048 to 4096 bits.
    #[error("The private key is not an RSA key of 2048 to 4096 bits.")]
    Kind,
    /// Signing failed.
    #[error("The private key cannot sign.")]
    Signature,
}

impl Key {
    /// Reads the key in a PEM text. The text may also consist of only the lines between
    /// the PEM markers.
    pub(in crate::destinations) fn read(
        text: &str,
        passphrase: Option<&str>,
    ) -> Result<Self, KeyFault> {
        let (label, der) = unwrapped(text)?;
        let pair = match label {
            Label::Plain => RsaKeyPair::from_pkcs8(&der).map_err(|_| KeyFault::Kind),
            Label::Traditional => RsaKeyPair::from_der(&der).map_err(|_| KeyFault::Kind),
            Label::Encrypted => {
                let passphrase = passphrase.ok_or(KeyFault::Passphrase)?;
                let der = decrypted(&der, passphrase)?;
                // With a wrong passphrase, the decrypted bytes are random.
                RsaKeyPair::from_pkcs8(&der).map_err(|_| KeyFault::WrongPassphrase)
            }
        }?;
        Ok(Self(pair))
    }

    /// A signed token with these claims. `id` names the key.
    pub(in crate::destinations) fn token(
        &self,
        id: Option<&str>,
        claims: &Value,
    ) -> Result<String, KeyFault> {
        let mut header = json!({ "alg": "RS256", "typ": "JWT" });
        if let (Some(id), Some(header)) = (id, header.as_object_mut()) {
            header.insert("kid".to_owned(), Value::from(id));
        }
        let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(claims));
        let mut signature = vec![0; self.0.public().modulus_len()];
        self.0
            .sign(
                &signature::RSA_PKCS1_SHA256,
                &SystemRandom::new(),
                signed.as_bytes(),
                &mut signature,
            )
            .map_err(|_| KeyFault::Signature)?;
        Ok(format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
    }

    /// SHA-256 of the public key in Snowflake's form: `SHA256:…`.
    pub(in crate::destinations) fn fingerprint(&self) -> Result<String, KeyFault> {
        let bits = BitStringRef::from_bytes(self.0.public_key().as_ref());
        let info = bits.map(|subject_public_key| SubjectPublicKeyInfoRef {
            algorithm: AlgorithmIdentifierRef { oid: RSA, parameters: Some(AnyRef::NULL) },
            subject_public_key,
        });
        let der = info.and_then(|info| info.to_der()).map_err(|_| KeyFault::Kind)?;
        Ok(format!("SHA256:{}", BASE64_STANDARD.encode(Sha256::digest(der))))
    }
}

/// The type of the key in a PEM text.
enum Label {
    /// PKCS#8.
    Plain,
    /// PKCS#8, encrypted.
    Encrypted,
    /// PKCS#1.
    Traditional,
}

fn unwrapped(text: &str) -> Result<(Label, Zeroizing<Vec<u8>>), KeyFault> {
    // A key copied from a JSON file often has escaped line breaks.
    let text = Zeroizing::new(text.replace("\\n", "\n"));
    let (label, body) = match text.split_once("-----BEGIN ") {
        None => (Label::Plain, text.as_str()),
        Some((_, rest)) => {
            let (label, rest) = rest.split_once("-----").ok_or(KeyFault::Form)?;
            let (body, _) = rest.split_once("-----END ").ok_or(KeyFault::Form)?;
            let label = match label {
                "PRIVATE KEY" => Label::Plain,
                "ENCRYPTED PRIVATE KEY" => Label::Encrypted,
                // This type has its own encryption, which is older than PKCS#8.
                "RSA PRIVATE KEY" if body.contains("ENCRYPTED") => {
                    return Err(KeyFault::Encryption);
                }
                "RSA PRIVATE KEY" => Label::Traditional,
                _ => return Err(KeyFault::Kind),
            };
            (label, body)
        }
    };
    let packed: Zeroizing<String> =
        Zeroizing::new(body.chars().filter(|c| !c.is_whitespace()).collect());
    let der = BASE64_STANDARD.decode(packed.as_bytes()).map_err(|_| KeyFault::Form)?;
    Ok((label, Zeroizing::new(der)))
}

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const PBES2: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.5.13");
const PBKDF2: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.5.12");
const HMAC_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.2.9");
const HMAC_SHA384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.2.10");
const HMAC_SHA512: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.2.11");
const AES_128: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.1.2");
const AES_256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.1.42");
const DES_3: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.3.7");

/// `EncryptedPrivateKeyInfo` of RFC 5208.
#[derive(Sequence)]
struct Encrypted<'a> {
    scheme: AlgorithmIdentifierRef<'a>,
    data: OctetStringRef<'a>,
}

/// `PBES2-params` of RFC 8018.
#[derive(Sequence)]
struct Scheme<'a> {
    derivation: AlgorithmIdentifierRef<'a>,
    cipher: AlgorithmIdentifierRef<'a>,
}

/// `PBKDF2-params` of RFC 8018.
#[derive(Sequence)]
struct Derivation<'a> {
    salt: OctetStringRef<'a>,
    rounds: u32,
    /// Ignored: the cipher determines it.
    length: Option<u16>,
    hash: Option<AlgorithmIdentifierRef<'a>>,
}

/// The parameters of an algorithm that must be `expected`.
fn parameters<'a, T: Choice<'a> + DecodeValue<'a>>(
    algorithm: &AlgorithmIdentifierRef<'a>,
    expected: ObjectIdentifier,
) -> Result<T, KeyFault> {
    let found = algorithm.parameters.filter(|_| algorithm.oid == expected);
    found.and_then(|any| any.decode_as().ok()).ok_or(KeyFault::Encryption)
}

/// Decrypts an `EncryptedPrivateKeyInfo` (RFC 8018, PBES2).
fn decrypted(der: &[u8], passphrase: &str) -> Result<Zeroizing<Vec<u8>>, KeyFault> {
    let info = Encrypted::from_der(der).map_err(|_| KeyFault::Encryption)?;
    let scheme: Scheme<'_> = parameters(&info.scheme, PBES2)?;
    let derivation: Derivation<'_> = parameters(&scheme.derivation, PBKDF2)?;
    let rounds = Some(derivation.rounds)
        .filter(|rounds| *rounds <= ROUNDS_MAX)
        .and_then(std::num::NonZeroU32::new)
        .ok_or(KeyFault::Encryption)?;
    let hash = match derivation.hash.map(|hash| hash.oid) {
        // The default is omitted in the encoding.
        None => pbkdf2::PBKDF2_HMAC_SHA1,
        Some(HMAC_SHA256) => pbkdf2::PBKDF2_HMAC_SHA256,
        Some(HMAC_SHA384) => pbkdf2::PBKDF2_HMAC_SHA384,
        Some(HMAC_SHA512) => pbkdf2::PBKDF2_HMAC_SHA512,
        Some(_) => return Err(KeyFault::Encryption),
    };
    let cipher = scheme.cipher.oid;
    let start: OctetStringRef<'_> = parameters(&scheme.cipher, cipher)?;
    let (length, unlock): (usize, Unlock) = match cipher {
        AES_128 => (16, unlock::<cbc::Decryptor<aes::Aes128>>),
        DES_3 => (24, unlock::<cbc::Decryptor<des::TdesEde3>>),
        AES_256 => (32, unlock::<cbc::Decryptor<aes::Aes256>>),
        _ => return Err(KeyFault::Encryption),
    };
    let mut key = Zeroizing::new(vec![0; length]);
    let salt = derivation.salt.as_bytes();
    pbkdf2::derive(hash, rounds, salt, passphrase.as_bytes(), &mut key);
    let mut data = Zeroizing::new(info.data.as_bytes().to_vec());
    unlock(&key, start.as_bytes(), &mut data).ok_or(KeyFault::Encryption)?;
    // Padding: each added byte has the number of added bytes as its value.
    let padding = usize::from(data.last().copied().unwrap_or_default());
    let length = data.len().checked_sub(padding).filter(|_| padding != 0);
    data.truncate(length.ok_or(KeyFault::WrongPassphrase)?);
    Ok(data)
}

/// Decrypts data in place with a key and a start value.
type Unlock = fn(&[u8], &[u8], &mut [u8]) -> Option<()>;

fn unlock<C: BlockDecryptMut + BlockSizeUser + KeyIvInit>(
    key: &[u8],
    start: &[u8],
    data: &mut [u8],
) -> Option<()> {
    let mut cipher = C::new_from_slices(key, start).ok()?;
    if data.is_empty() || !data.len().is_multiple_of(C::block_size()) {
        return None;
    }
    for block in data.chunks_exact_mut(C::block_size()) {
        cipher.decrypt_block_mut(Block::<C>::from_mut_slice(block));
    }
    Some(())
}

#[cfg(test)]
mod tests {

    use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};

    use super::*;

    const PLAIN: &str = include_str!("../../../tests/keys/rsa.pem");
    const TRADITIONAL: &str = include_str!("../../../tests/keys/traditional.pem");
    const DES: &str = include_str!("../../../tests/keys/des3.pem");
    const AES: &str = include_str!("../../../tests/keys/aes256.pem");
    /// The fingerprint of the same key by `openssl`.
    const FINGERPRINT: &str = "SHA256:I8hqIjWoUFJbiifdc+EReD0PZJO8CjIw04SEj5nwhO0=";

    fn fault(text: &str, passphrase: Option<&str>) -> KeyFault {
        Key::read(text, passphrase).map(|_| ()).unwrap_err()
    }

    #[test]
    fn a_key_is_read_in_every_form() {
        let bare: String = PLAIN.lines().filter(|line| !line.starts_with('-')).collect();
        for (text, passphrase) in [
            (PLAIN, None),
            (TRADITIONAL, None),
            (DES, Some("correct")),
            (AES, Some("correct")),
            (PLAIN.replace('\n', "\\n").as_str(), None),
            (PLAIN.replace('\n', "\r\n").as_str(), Some("not needed")),
            (bare.as_str(), None),
        ] {
            assert_eq!(Key::read(text, passphrase).unwrap().fingerprint().unwrap(), FINGERPRINT);
        }
    }

    #[test]
    fn faults_say_what_is_wrong_with_the_key() {
        assert_eq!(fault("no key", None), KeyFault::Form);
        assert_eq!(fault("-----BEGIN PRIVATE KEY-----", None), KeyFault::Form);
        assert_eq!(fault("AAAA", None), KeyFault::Kind);
        assert_eq!(fault(&PLAIN.replace("PRIVATE", "PUBLIC"), None), KeyFault::Kind);
        assert_eq!(fault(DES, None), KeyFault::Passphrase);
        assert_eq!(fault(AES, Some("wrong")), KeyFault::WrongPassphrase);
        assert_eq!(fault(DES, Some("wrong")), KeyFault::WrongPassphrase);
        let encrypted = PLAIN.replace(" PRIVATE", " ENCRYPTED PRIVATE");
        assert_eq!(fault(&encrypted, Some("any")), KeyFault::Encryption);
    }

    #[test]
    fn every_cut_or_changed_encrypted_key_is_refused() {
        let body: String = DES.lines().filter(|line| !line.starts_with('-')).collect();
        let der = BASE64_STANDARD.decode(body).unwrap();
        // The parameters take the first 88 bytes; the null of the hash has no meaning.
        for at in (0..60).chain(62..88) {
            assert!(decrypted(&der[..at], "correct").is_err());
            for mask in [0x01, 0x80] {
                let mut changed = der.clone();
                changed[at] ^= mask;
                let read = decrypted(&changed, "correct")
                    .is_ok_and(|der| RsaKeyPair::from_pkcs8(&der).is_ok());
                assert!(!read, "byte {at}");
            }
        }
    }

    #[test]
    fn a_token_says_its_claims_and_is_signed() {
        let key = Key::read(PLAIN, None).unwrap();
        let token = key.token(Some("k1"), &json!({ "iss": "ada" })).unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let part = |text: &str| -> Value {
            serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
        };
        let (header, claims) = signed.split_once('.').unwrap();
        assert_eq!(part(header), json!({ "alg": "RS256", "typ": "JWT", "kid": "k1" }));
        assert_eq!(part(claims), json!({ "iss": "ada" }));
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.0.public_key());
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).unwrap();
        public.verify(signed.as_bytes(), &signature).unwrap();
    }
}
