//! The key with which requests to the SAML provider of a domain are signed (SSO-34).
//!
//! What belongs here: making the key when a domain begins to sign, keeping it sealed, and
//! opening it for a request. What does not: signing (`weir-saml`).
//!
//! Each domain has a key of its own. So its identity provider knows this domain alone, and
//! the key ends with the domain.

use std::sync::Arc;

use weir_store::domains::DomainRow;
use weir_store::sealing::SealedField;
use zeroize::Zeroizing;

use super::Domains;
use crate::error::Error;
use crate::sealing::SealedLocation;
use crate::sso::{Refusal, SamlKey};
use crate::{Core, Result};

/// Characters in a line of a file.
const LINE: usize = 64;

/// A new key as it is stored.
#[derive(Clone)]
pub(super) struct SealedKey {
    sealed: String,
    certificate: String,
}

impl SealedKey {
    /// Gives the key to a domain that signs its requests and has none.
    pub(super) fn fill_in(self, row: &mut DomainRow) {
        if needs_key(row) {
            row.saml_signing_key = Some(self.sealed);
            row.saml_signing_certificate = Some(self.certificate);
        }
    }
}

/// A certificate as a file, from its base64 text.
pub(super) fn file(base64: &str) -> String {
    let mut text = String::from("-----BEGIN CERTIFICATE-----\n");
    for (at, letter) in base64.chars().enumerate() {
        if at > 0 && at % LINE == 0 {
            text.push('\n');
        }
        text.push(letter);
    }
    text + "\n-----END CERTIFICATE-----\n"
}

fn needs_key(row: &DomainRow) -> bool {
    row.saml_sign_requests && row.saml_signing_key.is_none()
}

fn location(row: &DomainRow) -> SealedLocation {
    SealedLocation::new(SealedField::DomainSigningKey, row.id, row.organization)
}

impl Domains {
    /// A key for a domain that signs its requests and has none. A key stays when signing
    /// is turned off, because the identity provider may still have its certificate.
    pub(super) async fn new_key(&self, row: &DomainRow) -> Result<Option<SealedKey>> {
        if !needs_key(row) {
            return Ok(None);
        }
        let protocols = Arc::clone(&self.protocols);
        // It takes long enough to delay other requests.
        let made = tokio::task::spawn_blocking(move || protocols.new_saml_key()).await;
        let made = made.map_err(|error| Error::Internal(error.to_string()))?;
        let SamlKey { key, certificate } = made.map_err(|Refusal(why)| Error::Internal(why))?;
        let sealed = self.core.sealer.seal(&location(row), key.as_bytes()).await?;
        Ok(Some(SealedKey { sealed, certificate }))
    }
}

impl Core {
    /// The key that signs the requests of a domain; `None`: they are not signed.
    pub(crate) fn signing_key(&self, row: &DomainRow) -> Result<Option<SamlKey>> {
        if !row.saml_sign_requests {
            return Ok(None);
        }
        let (sealed, certificate) = row
            .saml_signing_key
            .as_ref()
            .zip(row.saml_signing_certificate.clone())
            .ok_or_else(|| Error::Internal("a domain has no key to sign with".to_owned()))?;
        let plain = self.sealer.open(&location(row), sealed)?;
        let key = String::from_utf8(plain.bytes().to_vec());
        let key = key.map_err(|_| Error::Internal("a signing key is not text".to_owned()))?;
        Ok(Some(SamlKey { key: Zeroizing::new(key), certificate }))
    }
}
