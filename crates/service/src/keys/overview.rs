//! Keys as their owner sees them, with their use.

use weir_model::keys::{KeyUse, PersonalKey};
use weir_model::{KeyId, Timestamp};
use weir_store::keys::{self as rows, KeyRow};

use super::PersonalKeys;
use crate::ctx::Ctx;
use crate::error::{Error, NOT_FOUND};
use crate::{Result, policy};

/// A key and its use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyOverview {
    /// The key, without its value.
    pub key: PersonalKey,
    /// The previous value, while it works.
    pub previous: Option<PreviousValue>,
    /// Its use.
    pub usage: KeyUse,
}

/// A value that was replaced and still works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousValue {
    /// First and last characters of the value.
    pub mask: String,
    /// When it stops working.
    pub until: Timestamp,
    /// When it was last used since it was replaced.
    pub used_at: Option<Timestamp>,
}

impl PersonalKeys {
    /// The caller's keys with their use, newest first.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys.
    pub async fn overview(&self, ctx: &Ctx) -> Result<Vec<KeyOverview>> {
        policy::person_only(ctx)?;
        let found = rows::of_user(&self.core.store, ctx.user()).await?;
        self.with_uses(ctx, found).await
    }

    /// One key of the caller with its use.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys, [`Error::NotFound`].
    pub async fn overview_of(&self, ctx: &Ctx, id: &KeyId) -> Result<KeyOverview> {
        policy::person_only(ctx)?;
        let found = rows::get(&self.core.store, ctx.user(), id).await?;
        let shown = self.with_uses(ctx, found.into_iter().collect()).await?;
        shown.into_iter().next().ok_or(Error::NotFound(NOT_FOUND))
    }

    async fn with_uses(&self, ctx: &Ctx, keys: Vec<KeyRow>) -> Result<Vec<KeyOverview>> {
        if let Err(error) = self.write_uses().await {
            // The list is shown even if the counts of the last minute are missing.
            tracing::warn!(%error, "the use of keys was not written");
        }
        let ids: Vec<_> = keys.iter().map(|row| (row.user, row.key.id.clone())).collect();
        let uses = rows::uses(&self.core.store, &ids).await?;
        Ok(keys.into_iter().zip(uses).map(|(row, usage)| shown(row, usage, ctx.now)).collect())
    }
}

fn shown(row: KeyRow, usage: KeyUse, now: Timestamp) -> KeyOverview {
    let rolled_at = row.key.last_rolled_at;
    let previous = row.previous.filter(|previous| previous.until > now);
    let previous = previous.map(|previous| PreviousValue {
        mask: previous.mask,
        until: previous.until,
        used_at: usage.previous_at.filter(|used| Some(*used) >= rolled_at),
    });
    KeyOverview { key: row.key, previous, usage }
}
