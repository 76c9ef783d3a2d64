//! The current organization and project of a caller, behind `@current` (API-22).
//!
//! What belongs here: finding them, and choosing again when none is chosen or the
//! chosen one is gone. What does not: whether a key may see them.
//!
//! The user has a choice, which keys read and change. A session has its own choice,
//! which begins as the user's: a script that chooses or creates a project does not move
//! a browser to it.

use weir_model::{OrganizationId, ProjectId};
use weir_store::projects::ProjectRow;
use weir_store::sessions::{self, Current};
use weir_store::users::UserRow;
use weir_store::{organizations, projects, users};

use crate::ctx::{Actor, Ctx};
use crate::{Core, Result};

/// The current organization: the chosen one while the caller belongs to it, else the
/// first one, which is then stored as the choice.
pub(crate) async fn organization(core: &Core, ctx: &Ctx) -> Result<Option<OrganizationId>> {
    match users::get(&core.store, ctx.user()).await? {
        Some(user) => organization_of(core, ctx, &user).await,
        None => Ok(None),
    }
}

pub(crate) async fn organization_of(
    core: &Core,
    ctx: &Ctx,
    user: &UserRow,
) -> Result<Option<OrganizationId>> {
    let (current, _) = chosen(core, ctx, user).await?;
    if let Some(organization) = current.organization
        && organizations::level(&core.store, organization, user.id).await?.is_some()
    {
        return Ok(Some(organization));
    }
    let first = organizations::of_user(&core.store, user.id).await?.into_iter().next();
    let organization = first.map(|belonging| belonging.row.id);
    if organization != current.organization {
        let project = match organization {
            Some(organization) => first_project(core, organization).await?,
            None => None,
        };
        keep(core, ctx, organization, project.map(|row| row.brief.id)).await;
    }
    Ok(organization)
}

/// The current project: the chosen one while the caller may see it, else the first one
/// of the current organization, which is then stored as the choice.
pub(crate) async fn project(core: &Core, ctx: &Ctx) -> Result<Option<ProjectRow>> {
    match users::get(&core.store, ctx.user()).await? {
        Some(user) => project_of(core, ctx, &user).await,
        None => Ok(None),
    }
}

pub(crate) async fn project_of(
    core: &Core,
    ctx: &Ctx,
    user: &UserRow,
) -> Result<Option<ProjectRow>> {
    let (current, is_of_session) = chosen(core, ctx, user).await?;
    if let Some(project) = current.project
        && let Some(row) = projects::find(&core.store, project).await?
        && organizations::level(&core.store, row.brief.organization, user.id).await?.is_some()
    {
        // A project can move to another organization.
        if !is_of_session || current.organization != Some(row.brief.organization) {
            follow(core, ctx, row.brief.organization, Some(project)).await;
        }
        return Ok(Some(row));
    }
    let Some(organization) = organization_of(core, ctx, user).await? else { return Ok(None) };
    let project = first_project(core, organization).await?;
    if let Some(row) = &project {
        keep(core, ctx, Some(organization), Some(row.brief.id)).await;
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

/// Makes this the current organization and project of the caller's session. A key has
/// no session, and neither has a user who followed a link of a mail.
pub(crate) async fn follow(
    core: &Core,
    ctx: &Ctx,
    organization: OrganizationId,
    project: Option<ProjectId>,
) {
    let current = Current { organization: Some(organization), project };
    if let Actor::Session { session, .. } = &ctx.actor
        && !session.is_empty()
        && let Err(error) = sessions::set_current(&core.store, session, current).await
    {
        tracing::warn!(%error, "the current project of a session was not stored");
    }
}

/// The choice, and whether this session made it.
async fn chosen(core: &Core, ctx: &Ctx, user: &UserRow) -> Result<(Current, bool)> {
    let of_account =
        Current { organization: user.current_organization, project: user.current_project };
    let of_session = match &ctx.actor {
        Actor::Session { session, .. } => sessions::current(&core.store, session).await?,
        Actor::Key { .. } => None,
    };
    Ok((of_session.unwrap_or(of_account), of_session.is_some()))
}

/// Storing the choice saves work next time, so a failure is only logged.
async fn keep(
    core: &Core,
    ctx: &Ctx,
    organization: Option<OrganizationId>,
    project: Option<ProjectId>,
) {
    if let Err(error) = users::set_current(&core.store, ctx.user(), organization, project).await {
        tracing::warn!(%error, "the current organization was not stored");
    }
    if let Some(organization) = organization {
        follow(core, ctx, organization, project).await;
    }
}
