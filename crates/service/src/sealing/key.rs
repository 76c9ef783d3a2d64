//! The master key: 32 bytes, and the forms in which it is written.

use std::fmt;

use hkdf::Hkdf;
use sha2_0_11::Sha256;
use zeroize::{Zeroize as _, Zeroizing};

use crate::Result;
use crate::secrets;

/// Length of a key, in bytes.
const BYTES: usize = 32;
/// Length of a key's id, in bytes.
const ID_BYTES: usize = 8;
/// Separates these keys from those of other programs that use the same scheme.
const SALT: &[u8] = b"weir master key 1";

/// The key that all other keys are derived from. It is wiped when it is dropped. It has
/// no `Serialize`, and its `Debug` does not show it.
#[derive(Clone)]
pub struct MasterKey(Zeroizing<[u8; BYTES]>);

/// The error for a text that is not a key. It does not show the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a master key is 32 random bytes: as 64 hexadecimal digits, as base64, or as exactly 32 raw bytes"
)]
pub struct BadKey;

impl MasterKey {
    /// A key with these bytes.
    pub fn new(bytes: [u8; BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// A new key.
    ///
    /// # Errors
    /// [`Error::Internal`](crate::Error::Internal) when the system gives no random bytes.
    pub fn random() -> Result<Self> {
        secrets::random().map(Self::new)
    }

    /// Reads a key: 64 hexadecimal digits or base64, with surrounding blanks removed,
    /// or exactly 32 bytes.
    pub fn parse(written: &[u8]) -> Result<Self, BadKey> {
        let trimmed = written.trim_ascii();
        let text = std::str::from_utf8(trimmed).unwrap_or_default();
        if text.len() == 2 * BYTES
            && let Some(bytes) = secrets::unhex(text)
        {
            return Self::of(bytes);
        }
        if let Some(bytes) = from_base64(text) {
            return Self::of(bytes);
        }
        Self::of(written.to_vec())
    }

    fn of(mut bytes: Vec<u8>) -> Result<Self, BadKey> {
        let key = <[u8; BYTES]>::try_from(bytes.as_slice()).map(Self::new).map_err(|_| BadKey);
        bytes.zeroize();
        key
    }

    /// The key as 64 hexadecimal digits, for the file that stores it.
    pub fn written(&self) -> Zeroizing<String> {
        Zeroizing::new(secrets::hex(self.0.as_slice()))
    }

    /// The id of the key. It reveals nothing about the key, and two keys have different
    /// ids.
    pub fn id(&self) -> String {
        secrets::hex(&self.derive::<ID_BYTES>(&[b"id"]))
    }

    /// Derives bytes for one purpose. The parts of the purpose are separated, so that
    /// two purposes cannot have the same name.
    pub(super) fn derive<const N: usize>(&self, purpose: &[&[u8]]) -> [u8; N] {
        let mut bytes = [0; N];
        let info = joined(purpose);
        // Fails only for more bytes than 255 hashes have.
        let derived = Hkdf::<Sha256>::new(Some(SALT), self.0.as_slice()).expand(&info, &mut bytes);
        debug_assert!(derived.is_ok(), "a key of {N} bytes is short enough");
        bytes
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey(..)")
    }
}

/// Joins texts, with the length before each.
pub(super) fn joined(parts: &[&[u8]]) -> Vec<u8> {
    let mut joined = Vec::new();
    for part in parts {
        joined.extend((part.len() as u64).to_be_bytes());
        joined.extend(*part);
    }
    joined
}

/// The 32 bytes of 43 characters of base64, in either alphabet, with or without
/// padding.
fn from_base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_suffix('=').unwrap_or(text);
    if digits.len() != 43 {
        return None;
    }
    let mut bytes = Vec::with_capacity(BYTES);
    let (mut held, mut bits) = (0_u32, 0_u32);
    for digit in digits.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        held = held << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(held >> bits & 0xff).ok()?);
        }
    }
    Some(bytes)
}
