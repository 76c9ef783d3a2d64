//! A small secret that one page leaves for the next, which shows it exactly once: a new
//! key on its way to the page that reveals it, without scripts.
//!
//! The text is sealed with a key derived from the session token. The token is not
//! stored, so a reader of the store cannot read the text.

use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use sha2::{Digest as _, Sha256};
use weir_store::sessions;

use super::Identity;
use crate::ctx::{Actor, Ctx};
use crate::error::Error;
use crate::{Result, secrets};

/// Length of a nonce, in bytes.
const NONCE: usize = 24;
/// Maximum length of a text, in bytes: a key, or an event for a trial.
pub const FLASH_MAX: usize = 16 << 10;

impl Identity {
    /// Stores a text under a name in the session that `token` opens. It replaces an
    /// earlier text under that name.
    ///
    /// # Errors
    /// [`Error::NotAuthenticated`] when the token is not the token of the context.
    pub async fn put_flash(&self, ctx: &Ctx, token: &str, name: &str, text: &str) -> Result<()> {
        let session = session_of(ctx, token)?;
        if text.len() > FLASH_MAX {
            return Err(Error::Internal("a flash is too long".to_owned()));
        }
        let sealed = seal(token, name, text)?;
        Ok(sessions::put_flash(&self.core.store, session, name, &sealed).await?)
    }

    /// Reads and removes the text of that name; a second call finds nothing.
    ///
    /// # Errors
    /// [`Error::NotAuthenticated`] when the token is not the token of the context.
    pub async fn take_flash(&self, ctx: &Ctx, token: &str, name: &str) -> Result<Option<String>> {
        let session = session_of(ctx, token)?;
        let sealed = sessions::take_flash(&self.core.store, session, name).await?;
        Ok(sealed.and_then(|sealed| open(token, name, &sealed)))
    }
}

fn session_of<'a>(ctx: &'a Ctx, token: &str) -> Result<&'a str> {
    match &ctx.actor {
        Actor::Session { session, .. } if *session == secrets::sha256_hex(token) => Ok(session),
        Actor::Session { .. } | Actor::Key { .. } => Err(Error::NotAuthenticated),
    }
}

fn cipher(token: &str) -> XChaCha20Poly1305 {
    let key = Sha256::new().chain_update("weir flash").chain_update(token).finalize();
    XChaCha20Poly1305::new(&Key::from(<[u8; 32]>::from(key)))
}

/// The name is sealed too, so that a text cannot be moved to another name.
pub(super) fn seal(token: &str, name: &str, text: &str) -> Result<String> {
    let nonce = secrets::random::<NONCE>()?;
    let payload = Payload { msg: text.as_bytes(), aad: name.as_bytes() };
    let sealed = cipher(token)
        .encrypt(&XNonce::from(nonce), payload)
        .map_err(|_| Error::Internal("sealing failed".to_owned()))?;
    Ok(format!("{}{}", secrets::hex(&nonce), secrets::hex(&sealed)))
}

pub(super) fn open(token: &str, name: &str, sealed: &str) -> Option<String> {
    let bytes = secrets::unhex(sealed)?;
    let (nonce, sealed) = bytes.split_first_chunk::<NONCE>()?;
    let payload = Payload { msg: sealed, aad: name.as_bytes() };
    let text = cipher(token).decrypt(&XNonce::from(*nonce), payload).ok()?;
    String::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {

    use super::{open, seal};

    #[test]
    fn only_the_same_token_and_name_open_it() {
        let sealed = seal("token", "new key", "phx_secret").unwrap();
        assert!(!sealed.contains("secret"));
        assert_eq!(open("token", "new key", &sealed).as_deref(), Some("phx_secret"));
        assert_ne!(sealed, seal("token", "new key", "phx_secret").unwrap());
        let mut damaged = sealed.clone();
        damaged.replace_range(60..61, if &sealed[60..61] == "0" { "1" } else { "0" });
        for (token, name, sealed) in [
            ("other", "new key", sealed.as_str()),
            ("token", "other", sealed.as_str()),
            ("token", "new key", damaged.as_str()),
            ("token", "new key", "00"),
            ("token", "new key", ""),
        ] {
            assert_eq!(open(token, name, sealed), None);
        }
    }
}
