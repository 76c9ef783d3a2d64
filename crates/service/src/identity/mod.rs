//! Who is there: set-up of the instance, sign-in, the second factor, sessions, links
//! from mails.
//!
//! What belongs here: proving who a person is, and remembering it. What does
//! not: cookies and forms (the server), personal API keys (`keys`), what a
//! person may do (`policy`).

mod confirm;
pub(crate) mod emails;
mod flash;
pub(crate) mod links;
mod password_change;
mod passwords;
mod pending;
mod reset;
pub(crate) mod second_factor;
mod sessions;
mod setup;
mod sign_in;
mod sign_up;
mod sso;
mod throttle;

#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use weir_model::users::User;
use weir_model::{OrganizationId, ProjectId, Timestamp, UserId};

use crate::Core;

pub use flash::FLASH_MAX;
pub use links::WorkingLink;
pub use passwords::HashParameters;
pub use pending::{PendingSignIn, Waiting};
pub use reset::Reset;
pub use second_factor::{Confirmed, Enrolment, SecondFactor};
pub use sessions::OwnSession;
pub use sign_up::{InviteLink, Shown};

/// Set-up, sign-in, sessions.
#[derive(Clone)]
pub struct Identity {
    core: Arc<Core>,
    hasher: passwords::Hasher,
    /// When old counters were last forgotten, in microseconds.
    pruned_at: Arc<AtomicI64>,
}

impl Identity {
    pub(crate) fn new(core: Arc<Core>, parameters: HashParameters) -> Self {
        Self {
            core,
            hasher: passwords::Hasher::new(parameters),
            pruned_at: Arc::new(AtomicI64::new(0)),
        }
    }
}

/// Where a request comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Peer {
    /// The client's address.
    pub address: Option<IpAddr>,
    /// The client's name of itself.
    pub agent: Option<String>,
    /// The cookie that the browser got when a person signed in there.
    pub browser: Option<String>,
}

/// A session that was just opened.
#[derive(Clone, PartialEq, Eq)]
pub struct NewSession {
    /// The token, for the cookie. It is not stored.
    pub token: String,
    /// The cookie that tells this browser from those of strangers. It opens nothing, and
    /// is not stored.
    pub browser: String,
    /// Whose session it is.
    pub user: UserId,
    /// When it ends whatever happens.
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
    /// When it stops working.
    pub expires_at: Timestamp,
}

impl fmt::Debug for SetupToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetupToken").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// What a set-up token is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupTokenState {
    /// The set-up may go ahead.
    Valid,
    /// Used, replaced or never issued.
    Unknown,
    /// It was the last one issued, but its time is over.
    Expired,
}

/// What the first person enters.
#[derive(Clone, PartialEq, Eq)]
pub struct SetupInput {
    /// First name.
    pub first_name: String,
    /// E-mail address.
    pub email: String,
    /// Password.
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

/// What the set-up made.
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
    /// A session, unless the caller had the host.
    pub session: Option<NewSession>,
}
