//! A login between its begin and its callback (SSO-1).
//!
//! What belongs here: what is kept of it, and whether a callback belongs to it. What does
//! not: where it is kept, and how it is bound to a browser (the caller).

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::callback::Callback;
use crate::provider::{Kind, Provider};
use crate::refusal::Refusal;
use crate::secret::Secret;

/// How long a user may take to sign in at the provider.
pub(crate) const LIFETIME: TimeDelta = TimeDelta::minutes(10);
/// How far the clock may have been set back since the login was begun.
const LEEWAY: TimeDelta = TimeDelta::seconds(60);

/// A login that was begun. The caller stores it, binds it to the browser that began it,
/// and removes it before it calls `finish`, so that it is used once.
pub struct PendingLogin {
    pub(crate) provider: String,
    pub(crate) issuer: String,
    pub(crate) client_id: String,
    pub(crate) redirect_uri: String,
    pub(crate) state: Secret,
    pub(crate) nonce: Secret,
    pub(crate) verifier: Secret,
    pub(crate) begun: DateTime<Utc>,
}

/// The stored form.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored<'a> {
    provider: &'a str,
    issuer: &'a str,
    client_id: &'a str,
    redirect_uri: &'a str,
    state: &'a str,
    nonce: &'a str,
    verifier: &'a str,
    begun: i64,
}

impl PendingLogin {
    pub(crate) fn new(
        provider: &Provider,
        redirect_uri: &str,
        now: DateTime<Utc>,
    ) -> Result<Self, Refusal> {
        Ok(Self {
            provider: provider.id.clone(),
            issuer: provider.issuer.clone(),
            client_id: provider.client_id.clone(),
            redirect_uri: redirect_uri.to_owned(),
            state: Secret::random()?,
            nonce: Secret::random()?,
            verifier: Secret::random()?,
            begun: now,
        })
    }

    /// The id of the provider. The caller takes the settings of this one, whatever the
    /// callback says.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// Whether it is a login at GitHub.
    pub(crate) fn is_github(&self) -> bool {
        Kind::GitHub.id() == Some(self.provider.as_str())
    }

    /// When the login expires.
    pub fn expires_at(&self) -> DateTime<Utc> {
        self.begun + LIFETIME
    }

    /// The form to store. It has secrets: the caller seals it.
    pub fn to_stored(&self) -> Secret {
        let stored = Stored {
            provider: &self.provider,
            issuer: &self.issuer,
            client_id: &self.client_id,
            redirect_uri: &self.redirect_uri,
            state: self.state.expose(),
            nonce: self.nonce.expose(),
            verifier: self.verifier.expose(),
            begun: self.begun.timestamp_micros(),
        };
        // Texts and a number always have a JSON form.
        Secret::new(serde_json::to_string(&stored).unwrap_or_default())
    }

    /// Reads the stored form. `None` if it is none.
    pub fn from_stored(text: &str) -> Option<Self> {
        let stored: Stored<'_> = serde_json::from_str(text).ok()?;
        Some(Self {
            provider: stored.provider.to_owned(),
            issuer: stored.issuer.to_owned(),
            client_id: stored.client_id.to_owned(),
            redirect_uri: stored.redirect_uri.to_owned(),
            state: Secret::new(stored.state.to_owned()),
            nonce: Secret::new(stored.nonce.to_owned()),
            verifier: Secret::new(stored.verifier.to_owned()),
            begun: DateTime::from_timestamp_micros(stored.begun)?,
        })
    }

    /// Whether a callback belongs to this login, and the login to this provider.
    pub(crate) fn check(
        &self,
        provider: &Provider,
        callback: &Callback,
        now: DateTime<Utc>,
    ) -> Result<(), Refusal> {
        let state = callback.state().ok_or(Refusal::StateMissing)?;
        if !self.state.is(state) {
            return Err(Refusal::State);
        }
        if now >= self.expires_at() || now < self.begun - LEEWAY {
            return Err(Refusal::LoginExpired);
        }
        let is_same = self.provider == provider.id
            && self.issuer == provider.issuer
            && self.client_id == provider.client_id;
        if is_same { Ok(()) } else { Err(Refusal::OtherProvider) }
    }
}

impl fmt::Debug for PendingLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingLogin")
            .field("provider", &self.provider)
            .field("begun", &self.begun)
            .finish_non_exhaustive()
    }
}
