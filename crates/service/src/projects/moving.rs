//! Moving a project to another organization (API-28).
//!
//! The project's audit entries stay in the organization in which they were made,
//! because they name its users.

use weir_model::OrganizationId;
use weir_model::activity::AuditAction;
use weir_model::errors::FieldError;
use weir_model::organizations::Level;
use weir_model::projects::Project;
use weir_store::projects::{self as rows, Moved};

use super::tokens::{TRIES, overtaken};
use super::{Projects, audit_entry};
use crate::activity::Changes;
use crate::ctx::{OrgCtx, ProjectCtx};
use crate::error::Error;
use crate::policy::{self, Action};
use crate::{Result, organizations};

/// The field at which a fault of the other organization is reported.
const ATTR: &str = "organization_id";
/// The message for a caller who is not an administrator of both organizations.
const BOTH: &str = "You must be an administrator of both organizations.";

impl Projects {
    /// Moves the project to another organization. Events and keys stay as they are.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::Forbidden`] for keys that are limited
    /// to projects; [`Error::Invalid`] at `organization_id` when the caller does
    /// not see the other organization, or is no administrator of both;
    /// [`Error::Conflict`] while the project has batch exports or
    /// transformation configs.
    pub async fn change_organization(
        &self,
        project: &ProjectCtx,
        to: OrganizationId,
    ) -> Result<Project> {
        let from = &project.org;
        policy::check(from, Action::MoveProject)?;
        policy::refuse_project_keys(&from.ctx)?;
        let target = self.target(from, to).await?;
        if from.level < Level::Administrator || target.level < Level::Administrator {
            return Err(FieldError::new(ATTR, "invalid_input", BOTH).into());
        }
        for _ in 0..TRIES {
            let row = self.row(project).await?;
            if to == from.organization {
                return self.show(from, row).await;
            }
            let secrets = match &row.secrets {
                Some(_) => Some(self.sealed(&self.secrets(&row)?, to, row.brief.id).await?),
                None => None,
            };
            let changes =
                || Changes::none().field("organization", &from.organization, &target.organization);
            // The change is recorded in both organizations.
            let audit_entry = [
                audit_entry(from, &row, AuditAction::Updated, changes()),
                audit_entry(&target, &row, AuditAction::Updated, changes()),
            ];
            let (store, user, now) = (&self.core.store, from.ctx.user(), from.ctx.now);
            let moved =
                rows::change_organization(store, &row, to, secrets, user, now, &audit_entry);
            match moved.await? {
                Moved::Yes(row) => return self.show(&target, *row).await,
                Moved::HasExports => return Err(has_exports()),
                Moved::HasConfigs => return Err(has_configs()),
                Moved::Stale => {}
            }
        }
        Err(overtaken())
    }

    /// The other organization. One that the caller cannot see is answered like one that
    /// does not exist.
    async fn target(&self, from: &OrgCtx, to: OrganizationId) -> Result<OrgCtx> {
        match organizations::enter(&self.core, &from.ctx, to).await {
            Err(Error::NotFound(_)) => {
                let detail = format!("Object with id={to} does not exist.");
                Err(FieldError::new(ATTR, "does_not_exist", detail).into())
            }
            entered => entered,
        }
    }
}

/// Exports hold credentials of the organization, and would continue with events of
/// another one.
fn has_exports() -> Error {
    Error::Conflict {
        code: "conflict",
        detail: "The project has exports, which belong to its organization. Delete them \
                 first."
            .to_owned(),
    }
}

/// An organization sees its own plugins and those that are offered to all. A config
/// that moved with the project could show a plugin of another organization, with its
/// secrets.
fn has_configs() -> Error {
    Error::Conflict {
        code: "conflict",
        detail: "The project has transformation configs, whose plugins and secrets belong to its \
                 organization. Delete them first."
            .to_owned(),
    }
}
