//! Putting a project into another organization (API-28).
//!
//! Its entries in the activity log stay where they were made: they tell of
//! people there.

use weir_model::OrganizationId;
use weir_model::activity::Deed;
use weir_model::errors::FieldError;
use weir_model::organizations::Level;
use weir_model::projects::Project;
use weir_store::projects::{self as rows, Moved};

use super::tokens::{TRIES, overtaken};
use super::{Projects, told};
use crate::activity::Changes;
use crate::ctx::{OrgCtx, ProjectCtx};
use crate::error::Error;
use crate::policy::{self, Action};
use crate::{Result, organizations};

/// Where the answer says what is wrong with the other organization.
const ATTR: &str = "organization_id";
/// What a caller hears who is no administrator of both.
const BOTH: &str = "You must be an administrator of both organizations.";

impl Projects {
    /// Puts the project into another organization. Events and keys stay as they
    /// are.
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
            // Both organizations are told.
            let told = [
                told(from, &row, Deed::Updated, changes()),
                told(&target, &row, Deed::Updated, changes()),
            ];
            let (store, user, now) = (&self.core.store, from.ctx.user(), from.ctx.now);
            let moved = rows::change_organization(store, &row, to, secrets, user, now, &told);
            match moved.await? {
                Moved::Yes(row) => return self.show(&target, *row).await,
                Moved::HasExports => return Err(has_exports()),
                Moved::HasConfigs => return Err(has_configs()),
                Moved::Stale => {}
            }
        }
        Err(overtaken())
    }

    /// The other organization. One that the caller does not see is one that is
    /// not there.
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

/// They hold credentials of the organization, and would go on with events of
/// another.
fn has_exports() -> Error {
    Error::Conflict {
        code: "conflict",
        detail: "The project has batch exports, which belong to its organization. Delete them \
                 first."
            .to_owned(),
    }
}

/// An organization sees its own plugins and those that are offered to all. A
/// config that went along would show one of another organization, with that
/// one's secrets.
fn has_configs() -> Error {
    Error::Conflict {
        code: "conflict",
        detail: "The project has transformation configs, whose plugins and secrets belong to its \
                 organization. Delete them first."
            .to_owned(),
    }
}
