//! What a user looks at: the current organization and project behind
//! `@current` (management-api 5.5).
//!
//! What belongs here: finding it, and choosing anew when it is unset or gone.
//! What does not: whether a key may see it.

use weir_model::{OrganizationId, UserId};
use weir_store::projects::ProjectRow;
use weir_store::users::UserRow;
use weir_store::{organizations, projects, users};

use crate::{Core, Result};

/// The current organization: the stored one while the user belongs to it, else
/// the first, which is stored then.
pub(crate) async fn organization(core: &Core, user: UserId) -> Result<Option<OrganizationId>> {
    match users::get(&core.store, user).await? {
        Some(user) => organization_of(core, &user).await,
        None => Ok(None),
    }
}

pub(crate) async fn organization_of(core: &Core, user: &UserRow) -> Result<Option<OrganizationId>> {
    if let Some(organization) = user.current_organization
        && organizations::level(&core.store, organization, user.id).await?.is_some()
    {
        return Ok(Some(organization));
    }
    let first = organizations::of_user(&core.store, user.id).await?.into_iter().next();
    let organization = first.map(|belonging| belonging.row.id);
    if organization != user.current_organization {
        let project = match organization {
            Some(organization) => first_project(core, organization).await?,
            None => None,
        };
        store(core, user, organization, project.as_ref()).await;
    }
    Ok(organization)
}

/// The current project: the stored one while the user may see it, else the
/// first of the current organization, which is stored then.
pub(crate) async fn project(core: &Core, user: UserId) -> Result<Option<ProjectRow>> {
    match users::get(&core.store, user).await? {
        Some(user) => project_of(core, &user).await,
        None => Ok(None),
    }
}

pub(crate) async fn project_of(core: &Core, user: &UserRow) -> Result<Option<ProjectRow>> {
    if let Some(project) = user.current_project
        && let Some(row) = projects::find(&core.store, project).await?
        && organizations::level(&core.store, row.brief.organization, user.id).await?.is_some()
    {
        return Ok(Some(row));
    }
    let Some(organization) = organization_of(core, user).await? else { return Ok(None) };
    let project = first_project(core, organization).await?;
    if project.is_some() {
        store(core, user, Some(organization), project.as_ref()).await;
    }
    Ok(project)
}

/// The project with the lowest number.
pub(crate) async fn first_project(
    core: &Core,
    organization: OrganizationId,
) -> Result<Option<ProjectRow>> {
    let first: Vec<_> =
        projects::ordered(&core.store, organization).await?.into_iter().take(1).collect();
    Ok(projects::rows(&core.store, organization, &first).await?.into_iter().next())
}

/// Storing the choice saves work next time; failing to is no failure.
async fn store(
    core: &Core,
    user: &UserRow,
    organization: Option<OrganizationId>,
    project: Option<&ProjectRow>,
) {
    let project = project.map(|row| row.brief.id);
    if let Err(error) = users::set_current(&core.store, user.id, organization, project).await {
        tracing::warn!(%error, "the current organization was not stored");
    }
}
