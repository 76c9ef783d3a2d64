//! Changing a key's label, scopes and limits.
//!
//! It needs a recent sign-in, like creating a key: it can give an existing key more
//! than it had.

use weir_model::activity::AuditAction;
use weir_model::keys::{PersonalKey, PersonalKeyPatch};
use weir_model::scopes::Scope;
use weir_model::{KeyId, OrganizationId, ProjectId};
use weir_store::keys::{self as rows, KeyRow};
use weir_store::update::Updated;

use super::{PersonalKeys, entry, no_scopes};
use crate::activity::Changes;
use crate::ctx::Ctx;
use crate::error::{Error, NOT_FOUND};
use crate::update::update;
use crate::{Result, policy};

/// How often a change begins again after the key got a new value.
const TRIES: usize = 5;

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
        let is_empty = patch.scopes.as_ref().is_some_and(Vec::is_empty);
        let projects = patch.scoped_teams.as_deref().unwrap_or_default();
        let organizations = patch.scoped_organizations.as_deref().unwrap_or_default();
        let change = |key: &mut PersonalKey| {
            if is_empty {
                return Err(no_scopes().into());
            }
            replace(&mut key.label, patch.label.clone());
            replace(&mut key.scopes, patch.scopes.clone());
            replace(&mut key.scoped_teams, patch.scoped_teams.clone());
            replace(&mut key.scoped_organizations, patch.scoped_organizations.clone());
            Ok(())
        };
        self.change(ctx, id, (projects, organizations), change).await
    }

    /// Adds one scope to a key of the caller, as a refused call names it.
    ///
    /// # Errors
    /// As [`PersonalKeys::update`].
    pub async fn add_scope(&self, ctx: &Ctx, id: &KeyId, scope: Scope) -> Result<PersonalKey> {
        let change = |key: &mut PersonalKey| {
            if !key.scopes.iter().any(|held| held.covers(scope)) {
                key.scopes.retain(|held| !scope.covers(*held));
                key.scopes.push(scope);
            }
            Ok(())
        };
        self.change(ctx, id, (&[], &[]), change).await
    }

    /// Changes a key of the caller. `limits` are projects and organizations that the change
    /// names.
    async fn change(
        &self,
        ctx: &Ctx,
        id: &KeyId,
        limits: (&[ProjectId], &[OrganizationId]),
        change: impl Fn(&mut PersonalKey) -> Result<()>,
    ) -> Result<PersonalKey> {
        policy::recent_person_only(ctx)?;
        let store = &self.core.store;
        let missing = || Error::NotFound(NOT_FOUND);
        let mut found = rows::get(store, ctx.user(), id).await?.ok_or_else(missing)?;
        change(&mut found.key.clone())?;
        self.refuse_foreign_limits(ctx, limits.0, limits.1).await?;
        let reach = self.reach(ctx.user()).await?;
        let entries = |before: &KeyRow, after: &KeyRow| {
            let (before, after) = (&before.key, &after.key);
            let changes = Changes::none().field("label", &before.label, &after.label).field(
                "scopes",
                &before.scopes,
                &after.scopes,
            );
            // An organization that the key reaches only from now on gets an entry too.
            let mut reached = reach.of(before);
            let more = reach.of(after).into_iter().filter(|id| !reached.contains(id));
            reached.extend(more.collect::<Vec<_>>());
            let of = |id| entry(ctx, id, before, AuditAction::Updated, &changes);
            reached.into_iter().map(of).collect()
        };
        for _ in 0..TRIES {
            let changed = |row: &mut KeyRow| change(&mut row.key);
            match update(&self.core, found.hash, ctx.now, (), changed, entries).await? {
                Updated::Stored(row) => return Ok(row.key),
                // It has a new value since, and so another record, or it is deleted.
                Updated::Gone | Updated::Refused(_) => {
                    found = rows::get(store, ctx.user(), id).await?.ok_or_else(missing)?;
                }
            }
        }
        Err(Error::Unavailable("others are changing the same key"))
    }
}

fn replace<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}
