//! Random values and their text forms: tokens, keys, hashes.
//!
//! What belongs here: the source of randomness, and how a secret is written. What does
//! not: what a secret opens (each resource).

use std::fmt;

use sha2::{Digest, Sha256};
use weir_model::{keys, scim};

use crate::error::Error;

/// Digits of base62, in the order that the API uses (API-15).
const DIGITS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// A secret text. Its `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text, for the one caller that returns it.
    pub fn reveal(self) -> String {
        self.0
    }

    /// The stored form: the SHA-256 of the text.
    pub fn hash(&self) -> String {
        sha256_hex(&self.0)
    }

    /// First four and last four characters.
    pub fn mask(&self) -> String {
        keys::mask(&self.0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Random bytes from the operating system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::Internal(format!("no random bytes: {error}")))?;
    Ok(bytes)
}

/// A token of 256 bits, for sessions and links.
pub(crate) fn token() -> Result<Secret, Error> {
    Ok(Secret(base62(&random::<32>()?)))
}

/// Whether a text from outside can be a [`token`].
pub(crate) fn is_token(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The random part of a site app's URL. It cannot be guessed, and every visitor gets
/// it.
pub(crate) fn web_token() -> Result<String, Error> {
    Ok(base62(&random::<16>()?))
}

/// The value of a new personal API key.
pub(crate) fn personal_key() -> Result<Secret, Error> {
    Ok(Secret(format!("{}{}", keys::PREFIX, base62(&random::<35>()?))))
}

/// The value of a new SCIM token.
pub(crate) fn scim_token() -> Result<Secret, Error> {
    Ok(Secret(format!("{}{}", scim::PREFIX, base62(&random::<35>()?))))
}

/// The value of a new project API key. It is public.
pub(crate) fn project_key() -> Result<String, Error> {
    Ok(format!("{}{}", keys::PROJECT_PREFIX, base62(&random::<32>()?)))
}

/// The value of a new secret project key.
pub(crate) fn project_secret() -> Result<String, Error> {
    Ok(format!("{}{}", keys::PROJECT_SECRET_PREFIX, base62(&random::<35>()?)))
}

/// A random name without a meaning. It opens nothing.
pub(crate) fn name() -> Result<String, Error> {
    Ok(base62(&random::<32>()?))
}

/// Random lower-case letters, not for secrets: the first letters of the alphabet are a
/// little more likely.
pub(crate) fn letters<const N: usize>() -> Result<String, Error> {
    Ok(random::<N>()?.iter().map(|byte| char::from(b'a' + byte % 26)).collect())
}

/// SHA-256 of a text, as 64 hexadecimal digits.
pub(crate) fn sha256_hex(text: &str) -> String {
    hex(&Sha256::digest(text))
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(HEX[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The bytes of hexadecimal digits.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let nibble = |c: u8| char::from(c).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(nibble(*pair.first()?)? << 4 | nibble(*pair.get(1)?)?)).collect()
}

/// A big-endian number in base62; leading zero digits are dropped.
pub(crate) fn base62(bytes: &[u8]) -> String {
    let mut number = bytes.to_vec();
    let mut digits = Vec::new();
    while number.iter().any(|byte| *byte != 0) {
        let mut remainder = 0_u32;
        for byte in &mut number {
            let value = remainder << 8 | u32::from(*byte);
            // The quotient fits: the remainder is below 62.
            *byte = u8::try_from(value / 62).unwrap_or(u8::MAX);
            remainder = value % 62;
        }
        digits.push(DIGITS.get(remainder as usize).copied().unwrap_or(b'0'));
    }
    digits.iter().rev().map(|digit| char::from(*digit)).collect()
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn base62_counts() {
        let cases: [(&[u8], &str); 6] = [
            (&[], ""),
            (&[0, 0], ""),
            (&[61], "Z"),
            (&[62], "10"),
            (&[0, 255], "47"),
            (&[1, 0, 0], "h32"),
        ];
        for (bytes, text) in cases {
            assert_eq!(base62(bytes), text, "{bytes:?}");
        }
        assert_eq!(base62(&[255; 32]).len(), 43);
        assert_eq!(base62(&[255; 35]).len(), 48);
    }

    #[test]
    fn keys_have_the_form_of_the_wire() {
        let secret = personal_key().unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        let hash = secret.hash();
        let value = secret.reveal();
        assert!(value.starts_with("phx_") && (49..=52).contains(&value.len()), "{value}");
        assert_eq!(hash, sha256_hex(&value));
        let project = project_key().unwrap();
        assert!(project.starts_with("phc_") && project.len() > 40, "{project}");
        assert_ne!(project, project_key().unwrap());
        assert!(letters::<4>().unwrap().bytes().all(|b| b.is_ascii_lowercase()));
    }

    #[test]
    fn hexadecimal_reads_back() {
        assert_eq!(hex(&[0, 171, 255]), "00abff");
        assert_eq!(unhex("00abff"), Some(vec![0, 171, 255]));
        assert_eq!((unhex("0"), unhex("zz")), (None, None));
        assert_eq!(
            sha256_hex("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
