//! Private keys that members enter as text, and tokens signed with them (RFC 7519,
//! RS256).
//!
//! What belongs here: PEM and its encryption (PKCS#1, PKCS#8 with PBES2), the signature.
//! What does not: the claims of a token (`snowflake`, `bigquery`).

use aes::cipher::{Block, BlockDecryptMut, BlockSizeUser, KeyIvInit};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use ring::pbkdf2;
use ring::rand::SystemRandom;
use ring::signature::{self, KeyPair as _, RsaKeyPair};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
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
    /// The passphrase is wrong.
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
    pub(in crate::destinations) fn fingerprint(&self) -> String {
        // The prefix of a SubjectPublicKeyInfo around ring's public key, with the
        // algorithm rsaEncryption.
        const ALGORITHM: &[u8] = &[
            0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05,
            0x00,
        ];
        let mut bits = vec![0];
        bits.extend_from_slice(self.0.public_key().as_ref());
        let mut inner = ALGORITHM.to_vec();
        inner.extend(wrapped(0x03, &bits));
        let hash = Sha256::digest(wrapped(0x30, &inner));
        format!("SHA256:{}", BASE64_STANDARD.encode(hash))
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

const PBES2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0d];
const PBKDF2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0c];
const HMAC_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x09];
const HMAC_SHA384: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x0a];
const HMAC_SHA512: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x0b];
const AES_128: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x02];
const AES_256: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x2a];
const DES_3: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x03, 0x07];

/// Decrypts an `EncryptedPrivateKeyInfo` (RFC 8018, PBES2).
fn decrypted(der: &[u8], passphrase: &str) -> Result<Zeroizing<Vec<u8>>, KeyFault> {
    let plan = Plan::read(der).ok_or(KeyFault::Encryption)?;
    let rounds = plan
        .rounds
        .iter()
        .try_fold(0_u32, |sum, byte| sum.checked_mul(256)?.checked_add(u32::from(*byte)))
        .filter(|rounds| *rounds <= ROUNDS_MAX)
        .and_then(std::num::NonZeroU32::new)
        .ok_or(KeyFault::Encryption)?;
    let hash = match plan.hash {
        // The default is omitted in the encoding.
        None => pbkdf2::PBKDF2_HMAC_SHA1,
        Some(HMAC_SHA256) => pbkdf2::PBKDF2_HMAC_SHA256,
        Some(HMAC_SHA384) => pbkdf2::PBKDF2_HMAC_SHA384,
        Some(HMAC_SHA512) => pbkdf2::PBKDF2_HMAC_SHA512,
        Some(_) => return Err(KeyFault::Encryption),
    };
    let length = match plan.cipher {
        AES_128 => 16,
        DES_3 => 24,
        AES_256 => 32,
        _ => return Err(KeyFault::Encryption),
    };
    let mut key = Zeroizing::new(vec![0; length]);
    pbkdf2::derive(hash, rounds, plan.salt, passphrase.as_bytes(), &mut key);
    let mut data = Zeroizing::new(plan.data.to_vec());
    match plan.cipher {
        AES_128 => unlock::<cbc::Decryptor<aes::Aes128>>(&key, plan.start, &mut data),
        DES_3 => unlock::<cbc::Decryptor<des::TdesEde3>>(&key, plan.start, &mut data),
        _ => unlock::<cbc::Decryptor<aes::Aes256>>(&key, plan.start, &mut data),
    }
    .ok_or(KeyFault::Encryption)?;
    // Padding: each added byte has the number of added bytes as its value.
    let padding = usize::from(data.last().copied().unwrap_or_default());
    let length = data.len().checked_sub(padding).filter(|_| padding != 0);
    data.truncate(length.ok_or(KeyFault::WrongPassphrase)?);
    Ok(data)
}

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

/// How a key is encrypted.
struct Plan<'a> {
    salt: &'a [u8],
    rounds: &'a [u8],
    hash: Option<&'a [u8]>,
    cipher: &'a [u8],
    start: &'a [u8],
    data: &'a [u8],
}

impl<'a> Plan<'a> {
    fn read(der: &'a [u8]) -> Option<Self> {
        let mut info = Der(Der(der).expect(0x30)?);
        let mut scheme = Der(info.expect(0x30)?);
        let data = info.expect(0x04)?;
        if scheme.expect(0x06)? != PBES2 {
            return None;
        }
        let mut parts = Der(scheme.expect(0x30)?);
        let mut derivation = Der(parts.expect(0x30)?);
        let mut encryption = Der(parts.expect(0x30)?);
        if derivation.expect(0x06)? != PBKDF2 {
            return None;
        }
        let mut numbers = Der(derivation.expect(0x30)?);
        let (salt, rounds) = (numbers.expect(0x04)?, numbers.expect(0x02)?);
        let mut hash = None;
        while let Some((tag, content)) = numbers.next() {
            // An integer here is the length of the key, which the cipher determines.
            if tag == 0x30 {
                hash = Some(Der(content).expect(0x06)?);
            }
        }
        let (cipher, start) = (encryption.expect(0x06)?, encryption.expect(0x04)?);
        Some(Self { salt, rounds, hash, cipher, start, data })
    }
}

/// The unread rest of a sequence of DER values.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The next value: its tag and its content.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (tag, rest) = self.0.split_first()?;
        let (first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(*first), rest),
            0x81..=0x83 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (digits.iter().fold(0, |sum, digit| (sum << 8) | usize::from(*digit)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, content))
    }

    /// The content of the next value, which must have this tag.
    fn expect(&mut self, wanted: u8) -> Option<&'a [u8]> {
        self.next().and_then(|(tag, content)| (tag == wanted).then_some(content))
    }
}

/// Encodes a DER value.
fn wrapped(tag: u8, content: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> =
        content.len().to_be_bytes().into_iter().skip_while(|digit| *digit == 0).collect();
    let mut value = vec![tag];
    match content.len() {
        length @ 0..=0x7f => value.extend(u8::try_from(length)),
        _ => {
            value.extend(u8::try_from(digits.len()).map(|count| 0x80 | count));
            value.extend(digits);
        }
    }
    value.extend_from_slice(content);
    value
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
            assert_eq!(Key::read(text, passphrase).unwrap().fingerprint(), FINGERPRINT);
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
