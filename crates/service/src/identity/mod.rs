//! Identity: set-up of the instance, sign-in, the second factor, passkeys, sessions, links
//! from mails.
//!
//! What belongs here: proving the identity of a user, and remembering it. What does
//! not: cookies and forms (the server), personal API keys (`keys`), what a user may do
//! (`policy`).

mod confirm;
pub(crate) mod emails;
mod flash;
pub(crate) mod links;
mod passkeys;
mod password_change;
mod passwords;
mod pending;
mod reset;
pub(crate) mod second_factor;
mod sessions;
mod setup;
mod sign_in;
mod sign_up;
pub(crate) mod sso;
mod throttle;

#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_model::users::User;
use weir_model::{OrganizationId, ProjectId, Timestamp, UserId};

use crate::Core;
use crate::sso::Protocols;

pub use flash::FLASH_MAX;
pub use links::WorkingLink;
pub use passkeys::{AddedPasskey, OwnPasskey, PasskeyChallenge, RemovedPasskey, takes_passkeys};
pub use passwords::HashParameters;
pub use pending::{PendingSignIn, Waiting};
pub use reset::Reset;
pub use second_factor::{Confirmed, Enrolment, SecondFactor};
pub use sessions::OwnSession;
pub use sign_up::{InviteLink, Shown};
pub use sso::{Confirming, LinkedAccount, LoginRequest, Origin, RefusedSignIns, SignedOn};

/// The service for set-up, sign-in and sessions.
#[derive(Clone)]
pub struct Identity {
    core: Arc<Core>,
    hasher: passwords::Hasher,
    protocols: Arc<dyn Protocols>,
    refusals: Arc<AtomicU64>,
    refusal_lists: Arc<sso::RefusalLists>,
}

impl Identity {
    pub(crate) fn new(
        core: Arc<Core>,
        parameters: HashParameters,
        protocols: Arc<dyn Protocols>,
    ) -> Self {
        Self {
            core,
            hasher: passwords::Hasher::new(parameters),
            protocols,
            refusals: Arc::default(),
            refusal_lists: Arc::default(),
        }
    }

    /// How many attempts to sign in were refused since the start: wrong passwords, codes
    /// and passkeys, answers of providers that open no session, and passwords that came too
    /// early.
    pub fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
    }

    fn count_refusal(&self) {
        self.refusals.fetch_add(1, Ordering::Relaxed);
    }
}

/// The origin of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Peer {
    /// The client's IP address.
    pub address: Option<IpAddr>,
    /// The client's user agent.
    pub agent: Option<String>,
    /// The cookie that the browser got when a user signed in there.
    pub browser: Option<String>,
}

/// A session that was just opened.
#[derive(Clone, PartialEq, Eq)]
pub struct NewSession {
    /// The token, for the cookie. It is not stored.
    pub token: String,
    /// The cookie that identifies this browser as known. It opens nothing, and is not
    /// stored.
    pub browser: String,
    /// The user of the session.
    pub user: UserId,
    /// When it ends in any case.
    pub expires_at: Timestamp,
}

impl fmt::Debug for NewSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewSession")
            .field("user", &self.user)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// A token that allows the set-up of the instance once.
#[derive(Clone, PartialEq, Eq)]
pub struct SetupToken {
    /// The token, for the link. It is not stored.
    pub token: String,
    /// When it expires.
    pub expires_at: Timestamp,
}

impl fmt::Debug for SetupToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetupToken").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// The state of a set-up token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupTokenState {
    /// It allows the set-up.
    Valid,
    /// Used, replaced or never issued.
    Unknown,
    /// It is the token that was issued last, but it has expired.
    Expired,
}

/// The input of the set-up.
#[derive(Clone, PartialEq, Eq)]
pub struct SetupInput {
    /// First name of the first user.
    pub first_name: String,
    /// E-mail address.
    pub email: String,
    /// The password of the first user, as entered.
    pub password: String,
    /// Name of the first organization.
    pub organization: String,
    /// Name of the first project.
    pub project: String,
}

impl fmt::Debug for SetupInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetupInput")
            .field("first_name", &self.first_name)
            .field("email", &self.email)
            .field("organization", &self.organization)
            .field("project", &self.project)
            .finish_non_exhaustive()
    }
}

/// The records that the set-up created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupOutcome {
    /// The first user.
    pub user: User,
    /// The first organization, owned by the user.
    pub organization: OrganizationId,
    /// Its first project.
    pub project: ProjectId,
    /// The project's key: public, write only.
    pub project_api_key: String,
    /// A session, unless the caller ran the set-up on the host.
    pub session: Option<NewSession>,
}
