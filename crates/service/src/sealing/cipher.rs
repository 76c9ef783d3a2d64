//! Sealing one text: XChaCha20-Poly1305 with a key for each field.
//!
//! A sealed text is `w1.<key id>.<nonce and ciphertext in hexadecimal digits>`.

use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use super::key::joined;
use super::{MasterKey, Plain, SealedLocation};
use crate::Result;
use crate::error::Error;
use crate::secrets;

/// Length of a nonce, in bytes: enough that random nonces do not collide.
const NONCE: usize = 24;
/// The version of the form of sealed texts.
const FORM: &str = "w1";

/// Encryption and decryption with one master key.
pub(super) struct Cipher {
    key: MasterKey,
    prefix: String,
}

impl Cipher {
    pub(super) fn new(key: MasterKey) -> Self {
        let prefix = format!("{FORM}.{}.", key.id());
        Self { key, prefix }
    }

    /// The beginning of all texts sealed with this key.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) fn seal(&self, location: &SealedLocation, plain: &[u8]) -> Result<String> {
        let nonce = secrets::random::<NONCE>()?;
        let bound = bound(location);
        let sealed = self
            .of(location)
            .encrypt(&XNonce::from(nonce), Payload { msg: plain, aad: &bound })
            .map_err(|_| Error::Internal("sealing failed".to_owned()))?;
        Ok(format!("{}{}{}", self.prefix, secrets::hex(&nonce), secrets::hex(&sealed)))
    }

    pub(super) fn open(&self, location: &SealedLocation, sealed: &str) -> Result<Plain> {
        let failed = || {
            let (table, field) = (location.field.table(), location.field.name());
            Error::Internal(format!(
                "the sealed `{field}` of `{table}` {} does not open",
                location.record
            ))
        };
        let bytes = sealed.strip_prefix(&self.prefix).and_then(secrets::unhex);
        let bytes = bytes.ok_or_else(failed)?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE>().ok_or_else(failed)?;
        let bound = bound(location);
        let plain = self
            .of(location)
            .decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: &bound })
            .map_err(|_| failed())?;
        Ok(Plain(Zeroizing::new(plain)))
    }

    fn of(&self, location: &SealedLocation) -> XChaCha20Poly1305 {
        let purpose: [&[u8]; 3] =
            [b"seal", location.field.table().as_bytes(), location.field.name().as_bytes()];
        let key = Zeroizing::new(self.key.derive::<32>(&purpose));
        XChaCha20Poly1305::new(&Key::from(*key))
    }
}

/// The associated data of a text, which binds it to its place.
fn bound(location: &SealedLocation) -> Vec<u8> {
    joined(&[
        FORM.as_bytes(),
        location.field.table().as_bytes(),
        location.record.as_bytes(),
        location.field.name().as_bytes(),
        location.organization.0.as_bytes(),
    ])
}
