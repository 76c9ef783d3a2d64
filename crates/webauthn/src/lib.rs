//! Passkeys (WebAuthn): the options that a browser gets, and the checks of its answers
//! (ADR 22).
//!
//! ```text
//! RelyingParty::creation_options -> browser -> authenticator -> browser -> register
//! RelyingParty::request_options  -> browser -> authenticator -> browser -> verify
//!      |                                                                    |
//!      Challenge, stored by the caller --------------------------------------
//! ```
//!
//! What belongs here: the texts for and from browsers, and every check of an answer. What
//! does not: storage, cookies, users, and whose passkey is accepted where.
//!
//! Invariants:
//! - The only origin is the site itself, and the relying party is its host name (SSO-60).
//! - Every answer needs a user whom the authenticator has verified (SSO-63).
//! - An attestation is not requested, so its statement is not read. Any authenticator is
//!   welcome.

mod answer;
mod authenticator_data;
mod bytes;
mod cbor;
#[cfg(test)]
mod corpus;
mod key;
mod options;
mod refusal;
#[cfg(test)]
mod tests;

use std::net::Ipv4Addr;

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

pub use answer::Assertion;
pub use options::NewPasskey;
pub use refusal::Refusal;

use answer::Creation;
use authenticator_data::AuthenticatorData;
use bytes::Bytes;
use key::PublicKey;

/// Seconds in which a challenge must be answered.
pub const SECONDS: i64 = 5 * 60;
/// Longest id of a credential, in bytes (WebAuthn, 4).
const ID_MAX: usize = 1023;

/// What an authenticator signs once: 256 random bits, in base64url.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Challenge(String);

impl Challenge {
    /// A challenge of these random bytes.
    pub fn new(random: &[u8; 32]) -> Self {
        Self(bytes::encoded(random))
    }
}

/// A passkey as the instance knows it. It holds no secret: the private key stays in the
/// authenticator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credential {
    id: Bytes,
    key: PublicKey,
    counter: u32,
    /// Whether the authenticator may copy it to other devices of the user. That never
    /// changes.
    backup_eligible: bool,
}

impl Credential {
    /// The id that the authenticator gave it.
    pub fn id(&self) -> &[u8] {
        &self.id.0
    }
}

/// The instance as authenticators know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelyingParty {
    id: String,
    origin: String,
}

impl RelyingParty {
    /// The relying party of a site, which is scheme and host with port. `None`: browsers use
    /// no passkeys there. They want a host name, and TLS except on the machine itself.
    pub fn at(site: &str) -> Option<Self> {
        let (scheme, authority) = site.split_once("://")?;
        let host = authority.split_once(':').map_or(authority, |(host, _)| host);
        let is_name = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        if !host.split('.').all(is_name) || host.parse::<Ipv4Addr>().is_ok() {
            return None;
        }
        match scheme {
            "https" => {}
            "http" if host == "localhost" || host.ends_with(".localhost") => {}
            _ => return None,
        }
        Some(Self { id: host.to_owned(), origin: site.to_owned() })
    }

    /// Its id: the host name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Checks the answer of a browser that made a passkey.
    ///
    /// # Errors
    /// The check that failed.
    pub fn register(&self, answer: &str, challenge: &Challenge) -> Result<Credential, Refusal> {
        let answer = Creation::read(answer)?;
        answer.client_data()?.check("webauthn.create", challenge, &self.origin)?;
        let data = answer.authenticator_data()?;
        let data = AuthenticatorData::read(data)?;
        self.check(&data)?;
        let Some(attested) = data.attested else { return Err(Refusal::NoKey) };
        if attested.id != answer.id() || attested.id.is_empty() || attested.id.len() > ID_MAX {
            return Err(Refusal::OtherCredential);
        }
        Ok(Credential {
            id: Bytes(attested.id.to_vec()),
            key: attested.key,
            counter: data.counter,
            backup_eligible: data.flags.backup_eligible(),
        })
    }

    /// Checks the answer of a browser with a passkey, and returns the passkey with its new
    /// counter.
    ///
    /// # Errors
    /// The check that failed.
    pub fn verify(
        &self,
        answer: &Assertion,
        challenge: &Challenge,
        credential: &Credential,
    ) -> Result<Credential, Refusal> {
        if answer.credential_id() != credential.id() {
            return Err(Refusal::OtherCredential);
        }
        answer.client_data()?.check("webauthn.get", challenge, &self.origin)?;
        let data = AuthenticatorData::read(answer.authenticator_data())?;
        self.check(&data)?;
        let hash = digest(&SHA256, answer.client_data_bytes());
        let signed = [answer.authenticator_data(), hash.as_ref()].concat();
        credential.key.verify(&signed, answer.signature())?;
        if data.flags.backup_eligible() != credential.backup_eligible {
            return Err(Refusal::BackupChanged);
        }
        // Authenticators that do not count send 0 each time.
        let counts = data.counter > 0 || credential.counter > 0;
        if counts && data.counter <= credential.counter {
            return Err(Refusal::CounterWentBack);
        }
        Ok(Credential { counter: data.counter, ..credential.clone() })
    }

    /// The checks that creating and using a passkey have in common.
    fn check(&self, data: &AuthenticatorData<'_>) -> Result<(), Refusal> {
        if data.relying_party != digest(&SHA256, self.id.as_bytes()).as_ref() {
            return Err(Refusal::OtherRelyingParty);
        }
        if !data.flags.user_present() {
            return Err(Refusal::NotPresent);
        }
        if !data.flags.user_verified() {
            return Err(Refusal::NotVerified);
        }
        if data.flags.backed_up() && !data.flags.backup_eligible() {
            return Err(Refusal::BackupChanged);
        }
        Ok(())
    }
}
