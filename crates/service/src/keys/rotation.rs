//! Replacing the value of a key, with or without a time in which the previous value
//! still works.

use weir_model::KeyId;
use weir_model::activity::AuditAction;
use weir_model::keys::{Overlap, PersonalKey};
use weir_store::keys::{self as rows, NewValue};

use super::PersonalKeys;
use crate::activity::Changes;
use crate::ctx::Ctx;
use crate::error::{Error, NOT_FOUND};
use crate::{Result, policy, secrets};

impl PersonalKeys {
    /// Replaces the value of a key of the caller. The old value stops working
    /// immediately.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys, [`Error::SignInAgain`],
    /// [`Error::NotFound`].
    pub async fn roll(&self, ctx: &Ctx, id: &KeyId) -> Result<PersonalKey> {
        self.rotate(ctx, id, Overlap::None).await
    }

    /// Replaces the value of a key of the caller. The old value still works for the
    /// time of the overlap. A value before that ends now.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys, [`Error::SignInAgain`],
    /// [`Error::NotFound`].
    pub async fn rotate(&self, ctx: &Ctx, id: &KeyId, overlap: Overlap) -> Result<PersonalKey> {
        policy::recent_person_only(ctx)?;
        let store = &self.core.store;
        let secret = secrets::personal_key()?;
        let (user, hash, mask) = (ctx.user(), secret.hash(), secret.mask());
        let missing = || Error::NotFound(NOT_FOUND);
        let before = rows::get(store, user, id).await?.ok_or_else(missing)?;
        let changes = Changes::none().secret("value");
        let audit_entry = self.audit_entry(ctx, &before.key, AuditAction::Rotated, changes).await?;
        let value = NewValue { hash: &hash, mask: &mask, until: overlap.until(ctx.now) };
        if !rows::roll(store, user, id, value, ctx.now, &audit_entry).await? {
            return Err(missing());
        }
        let row = rows::get(store, user, id).await?.ok_or_else(missing)?;
        Ok(PersonalKey { value: Some(secret.reveal()), ..row.key })
    }

    /// Ends the previous value of a caller's key. Any session is enough, as for
    /// deleting a key.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys, [`Error::NotFound`].
    pub async fn end_previous(&self, ctx: &Ctx, id: &KeyId) -> Result<()> {
        policy::person_only(ctx)?;
        let store = &self.core.store;
        let missing = || Error::NotFound(NOT_FOUND);
        let row = rows::get(store, ctx.user(), id).await?.ok_or_else(missing)?;
        let changes = Changes::none().secret("previous value");
        let audit_entry = self.audit_entry(ctx, &row.key, AuditAction::Deleted, changes).await?;
        if !rows::end_previous(store, ctx.user(), id, &audit_entry).await? {
            return Err(missing());
        }
        Ok(())
    }
}
