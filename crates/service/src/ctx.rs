//! Who acts, when, and in which organization or project. The extractors of the server
//! and of the web app, background tasks and tests create contexts.

use weir_model::keys::PersonalKey;
use weir_model::organizations::Level;
use weir_model::scopes::Scope;
use weir_model::{OrganizationId, ProjectId, Timestamp, UserId};

use crate::error::Error;

/// The actor of an operation.
#[derive(Debug, Clone)]
pub enum Actor {
    /// A user in the web app.
    Session {
        /// The user who has the session.
        user: UserId,
        /// SHA-256 of the session token: the session's record id.
        session: String,
        /// When the user last proved their identity.
        signed_in_at: Timestamp,
    },
    /// A script with a personal API key.
    Key {
        /// The key's owner.
        user: UserId,
        /// The key, without its value.
        key: Box<PersonalKey>,
    },
}

/// The context of one operation.
#[derive(Debug, Clone)]
pub struct Ctx {
    /// The session or the key that the operation was requested with.
    pub actor: Actor,
    /// When the operation began.
    pub now: Timestamp,
    /// The request's id, for logs and audit entries.
    pub request_id: String,
}

impl Ctx {
    /// The user behind the actor.
    pub fn user(&self) -> UserId {
        match &self.actor {
            Actor::Session { user, .. } | Actor::Key { user, .. } => *user,
        }
    }

    /// Refuses a key that does not hold `scope`; a session holds every scope.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub fn require(&self, scope: Scope) -> Result<(), Error> {
        match &self.actor {
            Actor::Session { .. } => Ok(()),
            Actor::Key { key, .. } if key.scopes.iter().any(|held| held.covers(scope)) => Ok(()),
            Actor::Key { .. } => Err(Error::MissingScope(scope)),
        }
    }
}

/// The context of an operation in an organization that the actor belongs to.
#[derive(Debug, Clone)]
pub struct OrgCtx {
    /// The context.
    pub ctx: Ctx,
    /// The organization, of which the actor is a member.
    pub organization: OrganizationId,
    /// The actor's level in it.
    pub level: Level,
}

/// The context of an operation in a project that the actor may see.
#[derive(Debug, Clone)]
pub struct ProjectCtx {
    /// The organization's context.
    pub org: OrgCtx,
    /// The project, which belongs to that organization.
    pub project: ProjectId,
}

/// The project of a share link that works. With it the questions of the dashboard of the link
/// can be asked, and nothing else.
#[derive(Debug, Clone, Copy)]
pub struct SharedProject {
    pub(crate) organization: OrganizationId,
    pub(crate) project: ProjectId,
    /// The minute in which the link was opened.
    pub(crate) now: Timestamp,
}
