//! The protocol of passkeys (WebAuthn): challenges, and the checks of their answers
//! (SSO-60, SSO-63).
//!
//! What belongs here: what `webauthn-rs` is asked, and the JSON texts for and from the
//! browser. What does not: which user may do what (`passkeys`), and where a challenge waits.
//!
//! The relying party is the host name of the site, and the only origin is the site itself.
//! Every challenge asks the authenticator to verify the user. An attestation is not asked
//! for, because any authenticator is welcome.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;
use weir_model::Timestamp;
use weir_store::passkeys::{PasskeyRow, PasskeyUse};
use webauthn_rs::prelude::{
    DiscoverableAuthentication, Passkey, PasskeyRegistration, PublicKeyCredential,
    RegisterPublicKeyCredential, Url, Webauthn, WebauthnBuilder, WebauthnError,
};

use crate::error::Error;
use crate::{Result, secrets};

/// Seconds in which a challenge must be answered.
pub(super) const SECONDS: i64 = 5 * 60;
/// The same for the browser.
const TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// Longest answer of a browser, in bytes.
const ANSWER_MAX: usize = 16 << 10;
/// The name of the product in dialogs of authenticators.
const NAME: &str = "Weir";

/// The instance as authenticators know it.
pub(super) struct RelyingParty {
    webauthn: Webauthn,
    id: String,
}

/// A challenge: the options for the browser, and what its answer is checked against.
pub(super) struct Begun {
    pub(super) options: String,
    pub(super) state: String,
}

/// A passkey that an authenticator has made.
pub(super) struct Made {
    pub(super) hash: String,
    pub(super) credential: String,
}

/// Why an answer was refused, for the log.
#[derive(Debug)]
pub(super) enum Fault {
    /// A check failed.
    Refused(String),
    /// The counter of the passkey went back: there may be a copy.
    CounterWentBack,
}

impl From<WebauthnError> for Fault {
    fn from(error: WebauthnError) -> Self {
        match error {
            WebauthnError::CredentialPossibleCompromise => Self::CounterWentBack,
            other => Self::Refused(other.to_string()),
        }
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        // Without the position, which tells nothing.
        Self::Refused(format!("not readable: {:?}", error.classify()))
    }
}

/// An answer with a passkey, before it is checked.
pub(super) struct Answer {
    credential: PublicKeyCredential,
    /// The hash of the passkey that it names.
    pub(super) hash: String,
    /// What the authenticator keeps for the user, if it says so.
    pub(super) handle: Option<Uuid>,
}

impl Answer {
    /// Reads an answer of the browser.
    pub(super) fn read(text: &str) -> Result<Self, Fault> {
        let credential: PublicKeyCredential = read(text)?;
        let handle = match credential.get_user_unique_id() {
            None => None,
            Some(bytes) => {
                let unknown = |_| Fault::Refused("the handle is not one of ours".to_owned());
                Some(Uuid::from_slice(bytes).map_err(unknown)?)
            }
        };
        Ok(Self { hash: hash(credential.get_credential_id()), handle, credential })
    }
}

impl RelyingParty {
    /// The relying party of a site, which is scheme and host. `None`: browsers use no
    /// passkeys there, because it has no host name.
    pub(super) fn at(site: &str) -> Option<Self> {
        let origin = Url::parse(site).ok()?;
        let id = origin.domain()?.to_owned();
        let webauthn = WebauthnBuilder::new(&id, &origin).ok()?;
        let webauthn = webauthn.rp_name(NAME).timeout(TIMEOUT).build().ok()?;
        Some(Self { webauthn, id })
    }

    /// Its id: the host name.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// A challenge for a new passkey of a user who has these already.
    pub(super) fn begin_adding(
        &self,
        handle: Uuid,
        account: &str,
        name: &str,
        present: &[PasskeyRow],
    ) -> Result<Begun> {
        let present = self.own(present)?.iter().map(|passkey| passkey.cred_id().clone()).collect();
        let begun =
            self.webauthn.start_passkey_registration(handle, account, name, Some(present));
        let (asked, state) = begun.map_err(internal)?;
        let mut options = value(&asked.public_key)?;
        // The passkey must be found without the name of the user.
        if let Some(selection) =
            options.get_mut("authenticatorSelection").and_then(Value::as_object_mut)
        {
            selection.insert("residentKey".to_owned(), json!("required"));
            selection.insert("requireResidentKey".to_owned(), json!(true));
        }
        Ok(Begun { options: options.to_string(), state: text(&state)? })
    }

    /// Checks the answer to [`RelyingParty::begin_adding`].
    pub(super) fn finish_adding(&self, answer: &str, state: &str) -> Result<Made, Fault> {
        let answer: RegisterPublicKeyCredential = read(answer)?;
        let state: PasskeyRegistration = serde_json::from_str(state)?;
        let passkey = self.webauthn.finish_passkey_registration(&answer, &state)?;
        Ok(Made { hash: hash(passkey.cred_id()), credential: serde_json::to_string(&passkey)? })
    }

    /// A challenge for any passkey, or for one of these.
    pub(super) fn begin(&self, of: &[PasskeyRow]) -> Result<Begun> {
        let (asked, state) =
            self.webauthn.start_discoverable_authentication().map_err(internal)?;
        let mut options = value(&asked.public_key)?;
        let allowed = self.own(of)?.iter().map(allowed).collect::<Vec<_>>();
        if let Some(options) = options.as_object_mut() {
            options.insert("allowCredentials".to_owned(), json!(allowed));
        }
        Ok(Begun { options: options.to_string(), state: text(&state)? })
    }

    /// Checks the answer to [`RelyingParty::begin`] with the passkey that it names. The
    /// caller has checked whose passkey that is.
    pub(super) fn finish(
        &self,
        answer: &Answer,
        state: &str,
        row: &PasskeyRow,
        now: Timestamp,
    ) -> Result<PasskeyUse, Fault> {
        if row.rp_id != self.id {
            return Err(Fault::Refused(format!("it was made for {}", row.rp_id)));
        }
        let state: DiscoverableAuthentication = serde_json::from_str(state)?;
        let mut passkey: Passkey = serde_json::from_str(&row.credential)?;
        let used = &answer.credential;
        let result =
            self.webauthn.finish_discoverable_authentication_v2(used, state, &passkey)?;
        passkey.update_credential(&result);
        let after = serde_json::to_string(&passkey)?;
        let before = row.credential.clone();
        Ok(PasskeyUse { hash: row.hash.clone(), before, after, at: now })
    }

    /// Those of these passkeys that were made for this relying party.
    fn own(&self, rows: &[PasskeyRow]) -> Result<Vec<Passkey>> {
        let own = rows.iter().filter(|row| row.rp_id == self.id);
        own.map(|row| serde_json::from_str(&row.credential).map_err(internal)).collect()
    }
}

fn allowed(passkey: &Passkey) -> Value {
    json!({"type": "public-key", "id": URL_SAFE_NO_PAD.encode(passkey.cred_id())})
}

/// The hash of the id of a credential.
fn hash(id: &[u8]) -> String {
    secrets::hex(&Sha256::digest(id))
}

fn read<T: DeserializeOwned>(answer: &str) -> Result<T, Fault> {
    if answer.len() > ANSWER_MAX {
        return Err(Fault::Refused("the answer is too long".to_owned()));
    }
    Ok(serde_json::from_str(answer)?)
}

fn value<T: Serialize>(options: &T) -> Result<Value> {
    serde_json::to_value(options).map_err(internal)
}

fn text<T: Serialize>(state: &T) -> Result<String> {
    serde_json::to_string(state).map_err(internal)
}

fn internal(error: impl std::fmt::Display) -> Error {
    Error::Internal(format!("passkeys: {error}"))
}

#[cfg(test)]
mod tests {
    use super::RelyingParty;

    #[test]
    fn the_relying_party_is_the_host_name_of_the_site() {
        for (site, expected) in [
            ("https://weir.example", Some("weir.example")),
            ("https://weir.example:8443", Some("weir.example")),
            ("http://localhost:8000", Some("localhost")),
            ("http://127.0.0.1:8000", None),
            ("http://[::1]:8000", None),
            ("weir.example", None),
            ("", None),
        ] {
            let party = RelyingParty::at(site);
            assert_eq!(party.as_ref().map(RelyingParty::id), expected, "{site}");
        }
    }
}
