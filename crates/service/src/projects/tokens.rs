//! The keys of a project: the public key of its events, and the secret keys (API-15,
//! API-27).
//!
//! What belongs here: replacing keys, sealing the secret ones. What does not: who sees
//! them (`projects`), the cache that capture uses (the server).

use weir_model::activity::AuditAction;
use weir_model::keys::Overlap;
use weir_model::projects::{Project, ProjectSecrets};
use weir_model::{OrganizationId, ProjectId, Timestamp};
use weir_store::projects::{self as rows, NewToken, ProjectRow};
use weir_store::sealing::SealedField;

use super::{KeyTraffic, Projects, audit_entry};
use crate::activity::Changes;
use crate::ctx::ProjectCtx;
use crate::error::Error;
use crate::policy::{self, Action};
use crate::sealing::SealedLocation;
use crate::{Result, secrets};

/// The project API keys of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectKeys {
    /// The present key.
    pub token: String,
    /// The previous key, while it works.
    pub previous: Option<PreviousKey>,
    /// The traffic of these keys in the last seven days, in the same order.
    pub traffic: Vec<KeyTraffic>,
    /// When each step of the traffic begins.
    pub times: Vec<Timestamp>,
}

/// A project API key that was replaced and still works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousKey {
    /// The key.
    pub token: String,
    /// When it stops working.
    pub until: Timestamp,
}

/// How often a change is retried after a concurrent change.
pub(super) const TRIES: usize = 8;

impl Projects {
    /// Replaces the project API key. The old key stops working immediately.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::Forbidden`] below administrator.
    pub async fn reset_token(&self, project: &ProjectCtx) -> Result<Project> {
        self.rotate_token(project, Overlap::None).await
    }

    /// Replaces the project API key. The old key still works for the time of the
    /// overlap. A key before that ends now.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::Forbidden`] below administrator.
    pub async fn rotate_token(&self, project: &ProjectCtx, overlap: Overlap) -> Result<Project> {
        let org = &project.org;
        policy::check(org, Action::ResetProjectKeys)?;
        let after = secrets::project_key()?;
        let (store, now) = (&self.core.store, org.ctx.now);
        let new = NewToken { token: &after, until: overlap.until(now) };
        for _ in 0..TRIES {
            let row = self.row(project).await?;
            let rotated =
                audit_entry(org, &row, AuditAction::Rotated, Changes::none().secret("api_token"));
            if let Some(row) = rows::reset_token(store, &row, new, now, &[rotated]).await? {
                return self.show(org, row).await;
            }
        }
        Err(overtaken())
    }

    /// Ends the previous project API key: it stops working immediately. Without one
    /// nothing happens.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::Forbidden`] below administrator.
    pub async fn end_previous_token(&self, project: &ProjectCtx) -> Result<()> {
        let org = &project.org;
        policy::check(org, Action::ResetProjectKeys)?;
        let row = self.row(project).await?;
        let changes = Changes::none().secret("previous api_token");
        let ended = audit_entry(org, &row, AuditAction::Deleted, changes);
        rows::end_previous_token(&self.core.store, &row, org.ctx.now, &[ended]).await?;
        Ok(())
    }

    /// The project API keys that work, and their traffic in the last seven days.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn keys(&self, project: &ProjectCtx) -> Result<ProjectKeys> {
        policy::check(&project.org, Action::ReadProject)?;
        let row = self.row(project).await?;
        let previous = row.previous.filter(|previous| previous.until > project.org.ctx.now);
        let previous =
            previous.map(|previous| PreviousKey { token: previous.token, until: previous.until });
        let mut tokens = vec![row.brief.api_token.as_str()];
        tokens.extend(previous.as_ref().map(|previous| previous.token.as_str()));
        let (traffic, times) = self.traffic(project, &tokens).await?;
        Ok(ProjectKeys { token: row.brief.api_token, previous, traffic, times })
    }

    /// Creates a new secret key. The present one stays valid as the backup; the backup
    /// before that stops working. Creating a secret needs a recent sign-in.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::Forbidden`] below administrator;
    /// [`Error::SignInAgain`].
    pub async fn rotate_secret_token(&self, project: &ProjectCtx) -> Result<Project> {
        policy::check(&project.org, Action::ResetProjectKeys)?;
        policy::recent_if_person(&project.org.ctx)?;
        let primary = secrets::project_secret()?;
        for _ in 0..TRIES {
            let row = self.row(project).await?;
            let backup = self.secrets(&row)?.primary;
            let after = ProjectSecrets { primary: Some(primary.clone()), backup };
            let changes = Changes::none().secret("secret_api_token");
            let done =
                self.set_secrets(project, &row, &after, AuditAction::Rotated, changes).await?;
            if let Some(project) = done {
                return Ok(project);
            }
        }
        Err(overtaken())
    }

    /// Deletes the backup of the secret key: it stops working immediately. Without one
    /// nothing happens.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::Forbidden`] below administrator.
    pub async fn delete_secret_backup(&self, project: &ProjectCtx) -> Result<Project> {
        policy::check(&project.org, Action::ResetProjectKeys)?;
        for _ in 0..TRIES {
            let row = self.row(project).await?;
            let before = self.secrets(&row)?;
            if before.backup.is_none() {
                return self.show(&project.org, row).await;
            }
            let after = ProjectSecrets { backup: None, ..before };
            let changes = Changes::none().secret("secret_api_token_backup");
            let done =
                self.set_secrets(project, &row, &after, AuditAction::Deleted, changes).await?;
            if let Some(project) = done {
                return Ok(project);
            }
        }
        Err(overtaken())
    }

    async fn set_secrets(
        &self,
        project: &ProjectCtx,
        row: &ProjectRow,
        after: &ProjectSecrets,
        action: AuditAction,
        changes: Changes,
    ) -> Result<Option<Project>> {
        let org = &project.org;
        let sealed = self.sealed(after, org.organization, project.project).await?;
        let audit_entry = audit_entry(org, row, action, changes);
        let store = &self.core.store;
        match rows::set_secrets(store, row, &sealed, org.ctx.now, &[audit_entry]).await? {
            Some(row) => self.show(org, row).await.map(Some),
            None => Ok(None),
        }
    }

    /// The secret keys, opened.
    pub(super) fn secrets(&self, row: &ProjectRow) -> Result<ProjectSecrets> {
        let Some(sealed) = &row.secrets else { return Ok(ProjectSecrets::default()) };
        let plain =
            self.core.sealer.open(&location(row.brief.organization, row.brief.id), sealed)?;
        // The cause could quote the text.
        serde_json::from_slice(plain.bytes())
            .map_err(|_| Error::Internal("the secret keys of a project are damaged".to_owned()))
    }

    /// The secret keys, sealed for a project of an organization.
    pub(super) async fn sealed(
        &self,
        secrets: &ProjectSecrets,
        organization: OrganizationId,
        project: ProjectId,
    ) -> Result<String> {
        let plain = serde_json::to_vec(secrets)
            .map_err(|_| Error::Internal("secret keys have no JSON form".to_owned()))?;
        self.core.sealer.seal(&location(organization, project), &plain).await
    }
}

fn location(organization: OrganizationId, project: ProjectId) -> SealedLocation {
    SealedLocation::new(SealedField::ProjectSecrets, project, organization)
}

/// The error after too many concurrent changes of the project.
pub(super) fn overtaken() -> Error {
    Error::Conflict {
        code: "conflict",
        detail: "The project was changed at the same time. Try again.".to_owned(),
    }
}
