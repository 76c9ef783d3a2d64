//! The steps after the first event. Stored facts say which ones are done.

use weir_model::scopes::{Scope, ScopeAction};
use weir_store::exports::Of;
use weir_store::projects as rows;
use weir_store::{exports, invites, keys, members};

use super::Projects;
use crate::Result;
use crate::ctx::ProjectCtx;
use crate::policy;

/// The steps after the first event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checklist {
    /// Whether the organization has another member, or an invite.
    pub teammate: bool,
    /// Whether the user has a key that only reads.
    pub read_only_key: bool,
    /// Whether the project has a batch export.
    pub export: bool,
    /// Whether the user has hidden the list.
    pub hidden: bool,
}

impl Projects {
    /// The checklist of the project for the caller.
    ///
    /// # Errors
    /// [`Error::Forbidden`](crate::Error::Forbidden) for keys.
    pub async fn checklist(&self, project: &ProjectCtx) -> Result<Checklist> {
        let org = &project.org;
        policy::person_only(&org.ctx)?;
        let (store, user) = (&self.core.store, org.ctx.user());
        let teammate = members::ordered(store, org.organization).await?.len() > 1
            || !invites::ordered(store, org.organization).await?.is_empty();
        let own = keys::of_user(store, user).await?;
        let only_reads = |scope: &Scope| matches!(scope, Scope::On(_, ScopeAction::Read));
        Ok(Checklist {
            teammate,
            read_only_key: own.iter().any(|row| row.key.scopes.iter().all(only_reads)),
            export: !exports::ordered(store, Of::Project(project.project)).await?.is_empty(),
            hidden: rows::is_checklist_hidden(store, user, project.project).await?,
        })
    }

    /// Hides the checklist of the project for this user, or shows it again.
    ///
    /// # Errors
    /// [`Error::Forbidden`](crate::Error::Forbidden) for keys.
    pub async fn set_checklist_hidden(&self, project: &ProjectCtx, hidden: bool) -> Result<()> {
        let ctx = &project.org.ctx;
        policy::person_only(ctx)?;
        rows::set_checklist_hidden(&self.core.store, ctx.user(), project.project, hidden).await?;
        Ok(())
    }
}
