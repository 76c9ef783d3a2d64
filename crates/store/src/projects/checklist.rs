//! Whether a user has hidden the checklist on the start page of a project:
//! `project_checklist`, by `[user, project]`. Deleted with the user.

use weir_model::{ProjectId, UserId};

use crate::bind::bind;
use crate::db::Statement;
use crate::{Result, Store};

const HIDDEN: Statement = Statement::read(
    "project checklist",
    "SELECT VALUE hidden FROM type::record('project_checklist', [$user, $project]);",
);

/// Whether this user has hidden the checklist of this project.
pub async fn is_checklist_hidden(store: &Store, user: UserId, project: ProjectId) -> Result<bool> {
    let vars = bind! { user: user.0, project: project.0 };
    let mut answer = store.db.run(HIDDEN, vars).await?;
    Ok(answer.row::<bool>(0)?.unwrap_or(false))
}

const HIDE: Statement = Statement::write(
    "project checklist hide",
    "UPSERT type::record('project_checklist', [$user, $project])
         CONTENT { hidden: $hidden } RETURN NONE;",
);

/// Hides the checklist of this project for this user, or shows it again.
pub async fn set_checklist_hidden(
    store: &Store,
    user: UserId,
    project: ProjectId,
    hidden: bool,
) -> Result<()> {
    let vars = bind! { user: user.0, project: project.0, hidden: hidden };
    store.db.run(HIDE, vars).await.map(drop)
}
