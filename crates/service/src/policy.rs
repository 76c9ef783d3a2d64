//! Permissions: the one table of scopes and levels, and the limits of keys.
//!
//! What belongs here: rules that need only the context. What does not: finding
//! memberships (`organizations`, `projects`), and checks of values.

use weir_model::organizations::Level;
use weir_model::scopes::{Scope, ScopeObject};
use weir_model::{OrganizationId, ProjectId};

use crate::ctx::{Actor, Ctx, OrgCtx};
use crate::error::{Error, LEVEL, NO_KEYS};

/// The message for a project-limited key on endpoints of organizations.
pub const PROJECT_KEYS_ONLY: &str =
    "API keys with scoped projects are only supported on project-based endpoints.";
/// The message for an organization-limited key that wants to create an organization.
pub const ORGANIZATION_KEYS_ONLY: &str =
    "API keys with scoped organizations cannot create organizations.";

/// An action within an organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// See the organization.
    ReadOrganization,
    /// Change its settings.
    UpdateOrganization,
    /// Delete it with everything in it.
    DeleteOrganization,
    /// See its projects.
    ReadProject,
    /// Add a project.
    CreateProject,
    /// Change a project's settings.
    UpdateProject,
    /// Change how long a project keeps its events: old ones are removed.
    ChangeRetention,
    /// Erase a person, with or without its events.
    ErasePersons,
    /// Delete a project with everything in it.
    DeleteProject,
    /// Replace a project's keys, and see its secret keys.
    ResetProjectKeys,
    /// Move a project to another organization. A further rule requires the level in
    /// both.
    MoveProject,
    /// See its members, their keys and the invites.
    ReadMembers,
    /// Change levels of members, or remove them. Further rules say whose.
    ChangeMembers,
    /// Invite people, and delete invites.
    ManageInvites,
    /// Claim, prove, change and release domains.
    ManageDomains,
    /// Give an identity provider power over members: the token of a domain, and the levels
    /// of its groups.
    ManageProvisioning,
    /// See batch exports.
    ReadExports,
    /// Create, change and delete batch exports, pause them and start backfills.
    WriteExports,
    /// Ask questions about the events of its projects.
    AskQuestions,
    /// See plugins and their configs. The organization's access to plugins counts too.
    ReadPlugins,
    /// Change plugins and their configs. The organization's access to plugins counts
    /// too.
    WritePlugins,
    /// See saved insights.
    ReadInsights,
    /// Create, change and delete saved insights.
    WriteInsights,
    /// See dashboards, with their insights.
    ReadDashboards,
    /// Create, change and delete dashboards, and change which insights are on them.
    WriteDashboards,
    /// See annotations.
    ReadAnnotations,
    /// Create, change and delete annotations.
    WriteAnnotations,
    /// See alerts, and the numbers that they have checked.
    ReadAlerts,
    /// Create, change and delete alerts.
    WriteAlerts,
    /// See subscriptions.
    ReadSubscriptions,
    /// Create, change and delete subscriptions, and have mails sent.
    WriteSubscriptions,
}

impl Action {
    /// All actions, for tests of the whole table.
    pub const ALL: [Self; 31] = [
        Self::ReadOrganization,
        Self::UpdateOrganization,
        Self::DeleteOrganization,
        Self::ReadProject,
        Self::CreateProject,
        Self::UpdateProject,
        Self::ChangeRetention,
        Self::ErasePersons,
        Self::DeleteProject,
        Self::ResetProjectKeys,
        Self::MoveProject,
        Self::ReadMembers,
        Self::ChangeMembers,
        Self::ManageInvites,
        Self::ManageDomains,
        Self::ManageProvisioning,
        Self::ReadExports,
        Self::WriteExports,
        Self::AskQuestions,
        Self::ReadPlugins,
        Self::WritePlugins,
        Self::ReadInsights,
        Self::WriteInsights,
        Self::ReadDashboards,
        Self::WriteDashboards,
        Self::ReadAnnotations,
        Self::WriteAnnotations,
        Self::ReadAlerts,
        Self::WriteAlerts,
        Self::ReadSubscriptions,
        Self::WriteSubscriptions,
    ];

    /// The scope a key needs.
    pub const fn scope(self) -> Scope {
        match self {
            Self::ReadOrganization => Scope::read(ScopeObject::Organization),
            Self::UpdateOrganization | Self::DeleteOrganization | Self::ManageDomains => {
                Scope::write(ScopeObject::Organization)
            }
            Self::ReadProject => Scope::read(ScopeObject::Project),
            Self::ErasePersons => Scope::write(ScopeObject::Person),
            Self::ReadExports => Scope::read(ScopeObject::BatchExport),
            Self::WriteExports => Scope::write(ScopeObject::BatchExport),
            Self::AskQuestions => Scope::read(ScopeObject::Query),
            Self::ReadPlugins => Scope::read(ScopeObject::Plugin),
            Self::WritePlugins => Scope::write(ScopeObject::Plugin),
            Self::ReadInsights => Scope::read(ScopeObject::Insight),
            Self::WriteInsights => Scope::write(ScopeObject::Insight),
            Self::ReadDashboards => Scope::read(ScopeObject::Dashboard),
            Self::WriteDashboards => Scope::write(ScopeObject::Dashboard),
            Self::ReadAnnotations => Scope::read(ScopeObject::Annotation),
            Self::WriteAnnotations => Scope::write(ScopeObject::Annotation),
            Self::ReadAlerts => Scope::read(ScopeObject::Alert),
            Self::WriteAlerts => Scope::write(ScopeObject::Alert),
            Self::ReadSubscriptions => Scope::read(ScopeObject::Subscription),
            Self::WriteSubscriptions => Scope::write(ScopeObject::Subscription),
            Self::ReadMembers => Scope::read(ScopeObject::OrganizationMember),
            Self::ChangeMembers | Self::ManageInvites | Self::ManageProvisioning => {
                Scope::write(ScopeObject::OrganizationMember)
            }
            Self::CreateProject
            | Self::UpdateProject
            | Self::ChangeRetention
            | Self::DeleteProject
            | Self::ResetProjectKeys
            | Self::MoveProject => Scope::write(ScopeObject::Project),
        }
    }

    /// The level the actor needs.
    pub const fn level(self) -> Level {
        match self {
            Self::ReadOrganization
            | Self::ReadProject
            | Self::UpdateProject
            | Self::MoveProject
            | Self::ReadMembers
            | Self::ChangeMembers
            | Self::ManageInvites
            | Self::ReadExports
            | Self::WriteExports
            | Self::AskQuestions
            | Self::ReadPlugins
            | Self::WritePlugins
            | Self::ReadInsights
            | Self::WriteInsights
            | Self::ReadDashboards
            | Self::WriteDashboards
            | Self::ReadAnnotations
            | Self::WriteAnnotations
            | Self::ReadAlerts
            | Self::WriteAlerts
            | Self::ReadSubscriptions
            | Self::WriteSubscriptions => Level::Member,
            Self::ManageDomains
            | Self::UpdateOrganization
            | Self::CreateProject
            | Self::ChangeRetention
            | Self::ErasePersons
            | Self::DeleteProject
            | Self::ResetProjectKeys => Level::Administrator,
            Self::DeleteOrganization | Self::ManageProvisioning => Level::Owner,
        }
    }
}

/// Refuses an action that the actor's key or level does not allow. Both count: the
/// level of the owner does not extend a key, and a key does not raise the level.
///
/// # Errors
/// [`Error::MissingScope`] or [`Error::Forbidden`].
pub fn check(org: &OrgCtx, action: Action) -> Result<(), Error> {
    org.ctx.require(action.scope())?;
    if org.level < action.level() {
        return Err(Error::Forbidden(LEVEL.to_owned()));
    }
    Ok(())
}

/// Checks a caller who has numbers of insights sent by an alert or a subscription: without the
/// scopes to read them, a key could have them sent to it.
///
/// # Errors
/// [`Error::MissingScope`] or [`Error::Forbidden`].
pub fn check_sending(org: &OrgCtx, action: Action) -> Result<(), Error> {
    check(org, action)?;
    check(org, Action::ReadInsights)?;
    check(org, Action::AskQuestions)
}

/// Refuses all callers except users in the web app.
///
/// # Errors
/// [`Error::Forbidden`].
pub fn person_only(ctx: &Ctx) -> Result<(), Error> {
    match &ctx.actor {
        Actor::Session { .. } => Ok(()),
        Actor::Key { .. } => Err(Error::Forbidden(NO_KEYS.to_owned())),
    }
}

/// Seconds for which a sign-in counts as recent.
pub const RECENT_SECONDS: i64 = 15 * 60;

/// Refuses all callers except users who have recently proved their identity.
///
/// # Errors
/// [`Error::Forbidden`] or [`Error::SignInAgain`].
pub fn recent_person_only(ctx: &Ctx) -> Result<(), Error> {
    match &ctx.actor {
        Actor::Session { signed_in_at, .. } => {
            if signed_in_at.plus_seconds(RECENT_SECONDS) < ctx.now {
                return Err(Error::SignInAgain);
            }
            Ok(())
        }
        Actor::Key { .. } => Err(Error::Forbidden(NO_KEYS.to_owned())),
    }
}

/// Refuses a user who has not recently proved their identity. A key is not refused,
/// because its scope was given for this.
///
/// # Errors
/// [`Error::SignInAgain`].
pub fn recent_if_person(ctx: &Ctx) -> Result<(), Error> {
    match &ctx.actor {
        Actor::Session { .. } => recent_person_only(ctx),
        Actor::Key { .. } => Ok(()),
    }
}

/// Refuses keys that are limited to projects.
///
/// # Errors
/// [`Error::Forbidden`].
pub fn refuse_project_keys(ctx: &Ctx) -> Result<(), Error> {
    match &ctx.actor {
        Actor::Key { key, .. } if !key.scoped_teams.is_empty() => {
            Err(Error::Forbidden(PROJECT_KEYS_ONLY.to_owned()))
        }
        Actor::Key { .. } | Actor::Session { .. } => Ok(()),
    }
}

/// Refuses keys that are limited to organizations: a new organization would be outside
/// their limits.
///
/// # Errors
/// [`Error::Forbidden`].
pub fn refuse_organization_keys(ctx: &Ctx) -> Result<(), Error> {
    match &ctx.actor {
        Actor::Key { key, .. } if !key.scoped_organizations.is_empty() => {
            Err(Error::Forbidden(ORGANIZATION_KEYS_ONLY.to_owned()))
        }
        Actor::Key { .. } | Actor::Session { .. } => Ok(()),
    }
}

/// Whether the limits of the actor's key include this organization.
pub fn organization_in_limits(ctx: &Ctx, organization: OrganizationId) -> bool {
    match &ctx.actor {
        Actor::Session { .. } => true,
        Actor::Key { key, .. } => {
            key.scoped_organizations.is_empty() || key.scoped_organizations.contains(&organization)
        }
    }
}

/// Whether the limits of the actor's key include this project.
pub fn project_in_limits(ctx: &Ctx, organization: OrganizationId, project: ProjectId) -> bool {
    let project_fits = match &ctx.actor {
        Actor::Session { .. } => true,
        Actor::Key { key, .. } => {
            key.scoped_teams.is_empty() || key.scoped_teams.contains(&project)
        }
    };
    project_fits && organization_in_limits(ctx, organization)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_more_than_a_member() {
        let of = |level| {
            let found = Action::ALL.into_iter().filter(move |action| action.level() == level);
            found.collect::<Vec<_>>()
        };
        let administrators = [
            Action::UpdateOrganization,
            Action::CreateProject,
            Action::ChangeRetention,
            Action::ErasePersons,
            Action::DeleteProject,
            Action::ResetProjectKeys,
            Action::ManageDomains,
        ];
        assert_eq!(of(Level::Administrator), administrators);
        assert_eq!(of(Level::Owner), [Action::DeleteOrganization, Action::ManageProvisioning]);
        assert_eq!(of(Level::Member).len(), Action::ALL.len() - administrators.len() - 2);
        assert_eq!(Action::ChangeRetention.scope(), Scope::write(ScopeObject::Project));
    }
}
