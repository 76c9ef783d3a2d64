//! Changing a key's label, scopes and limits.
//!
//! It needs a recent sign-in, like creating a key: it can give an existing key more
//! than it had.

use weir_model::KeyId;
use weir_model::activity::AuditAction;
use weir_model::keys::{PersonalKey, PersonalKeyPatch};
use weir_model::scopes::Scope;
use weir_store::keys as rows;

use super::{PersonalKeys, no_scopes};
use crate::activity::Changes;
use crate::ctx::Ctx;
use crate::error::{Error, NOT_FOUND};
use crate::{Result, policy};

impl PersonalKeys {
    /// Changes a key of the caller. Its value and its expiry stay.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys, [`Error::SignInAgain`], [`Error::NotFound`],
    /// [`Error::Invalid`].
    pub async fn update(
        &self,
        ctx: &Ctx,
        id: &KeyId,
        patch: PersonalKeyPatch,
    ) -> Result<PersonalKey> {
        policy::recent_person_only(ctx)?;
        let missing = || Error::NotFound(NOT_FOUND);
        let store = &self.core.store;
        let before = rows::get(store, ctx.user(), id).await?.ok_or_else(missing)?;
        if patch.scopes.as_ref().is_some_and(Vec::is_empty) {
            return Err(no_scopes().into());
        }
        let projects = patch.scoped_teams.as_deref().unwrap_or_default();
        let organizations = patch.scoped_organizations.as_deref().unwrap_or_default();
        self.refuse_foreign_limits(ctx, projects, organizations).await?;
        let mut row = before.clone();
        let key = &mut row.key;
        replace(&mut key.label, patch.label);
        replace(&mut key.scopes, patch.scopes);
        replace(&mut key.scoped_teams, patch.scoped_teams);
        replace(&mut key.scoped_organizations, patch.scoped_organizations);
        if row == before {
            return Ok(before.key);
        }
        let changes = Changes::none().field("label", &before.key.label, &row.key.label).field(
            "scopes",
            &before.key.scopes,
            &row.key.scopes,
        );
        let mut audit_entry =
            self.audit_entry(ctx, &before.key, AuditAction::Updated, changes.clone()).await?;
        // An organization that it reaches from now on gets an audit entry too.
        for entry in self.audit_entry(ctx, &row.key, AuditAction::Updated, changes).await? {
            if audit_entry.iter().all(|other| other.organization_id != entry.organization_id) {
                audit_entry.push(entry);
            }
        }
        if !rows::update(store, &row, &audit_entry).await? {
            return Err(missing());
        }
        Ok(row.key)
    }

    /// Adds one scope to a key of the caller, as a refused call names it.
    ///
    /// # Errors
    /// As [`PersonalKeys::update`].
    pub async fn add_scope(&self, ctx: &Ctx, id: &KeyId, scope: Scope) -> Result<PersonalKey> {
        policy::recent_person_only(ctx)?;
        let row = rows::get(&self.core.store, ctx.user(), id).await?;
        let mut scopes = row.ok_or(Error::NotFound(NOT_FOUND))?.key.scopes;
        if !scopes.iter().any(|held| held.covers(scope)) {
            scopes.retain(|held| !scope.covers(*held));
            scopes.push(scope);
        }
        let patch = PersonalKeyPatch { scopes: Some(scopes), ..PersonalKeyPatch::default() };
        self.update(ctx, id, patch).await
    }
}

fn replace<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}
