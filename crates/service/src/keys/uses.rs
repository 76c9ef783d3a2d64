//! The use of keys, counted in memory and written about every minute, so that no call
//! waits for it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use weir_model::keys::{KeyCall, KeyUse};
use weir_model::scopes::Scope;
use weir_model::{KeyId, Timestamp, UserId};
use weir_store::keys as rows;

use super::PersonalKeys;
use crate::Result;

/// The maximum number of keys that are counted between two writes. Further keys are not
/// counted.
const KEYS: usize = 10_000;
/// How many keys one transaction writes.
const KEYS_PER_WRITE: usize = 100;

type Owned = (UserId, KeyId);

/// Uses that are not written yet.
#[derive(Debug, Default)]
pub(super) struct Uses {
    // Locked for single map operations only.
    noted: Mutex<HashMap<Owned, KeyUse>>,
    /// One write at a time, because each write reads the stored use first.
    writing: tokio::sync::Mutex<()>,
}

impl Uses {
    fn note(&self, user: UserId, key: &KeyId, change: impl FnOnce(&mut KeyUse)) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let id = (user, key.clone());
        if noted.len() < KEYS || noted.contains_key(&id) {
            change(noted.entry(id).or_default());
        }
    }

    /// Records a use of a replaced value.
    pub(super) fn note_previous(&self, user: UserId, key: &KeyId, now: Timestamp) {
        self.note(user, key, |usage| usage.previous_at = Some(now));
    }

    fn take(&self) -> Vec<(Owned, KeyUse)> {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.drain().collect()
    }

    /// Puts back uses that could not be written. They are older than the present ones.
    fn put_back(&self, uses: Vec<(Owned, KeyUse)>) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, mut older) in uses {
            if let Some(newer) = noted.remove(&id) {
                older.extend(newer);
            }
            noted.insert(id, older);
        }
    }
}

impl PersonalKeys {
    /// Records a call with a key; `missing_scope` is set if it was refused because of its
    /// scopes.
    pub fn note_call(
        &self,
        user: UserId,
        key: &KeyId,
        call: KeyCall,
        missing_scope: Option<Scope>,
    ) {
        self.uses.note(user, key, |usage| usage.add(call, missing_scope));
    }

    /// Writes the recorded uses. Call it about every minute, and before the process
    /// ends.
    ///
    /// # Errors
    /// Any failure of the store; the uses are kept for the next call.
    pub async fn write_uses(&self) -> Result<()> {
        let _one_at_a_time = self.uses.writing.lock().await;
        let mut left = self.uses.take();
        while !left.is_empty() {
            let rest = left.split_off(left.len().min(KEYS_PER_WRITE));
            if let Err(error) = self.add_uses(&left).await {
                self.uses.put_back(left);
                self.uses.put_back(rest);
                return Err(error);
            }
            left = rest;
        }
        Ok(())
    }

    async fn add_uses(&self, noted: &[(Owned, KeyUse)]) -> Result<()> {
        let store = &self.core.store;
        let ids: Vec<Owned> = noted.iter().map(|(id, _)| id.clone()).collect();
        let before = rows::uses(store, &ids).await?;
        let after: Vec<(Owned, KeyUse)> = noted
            .iter()
            .zip(before)
            .map(|((id, newer), mut usage)| {
                usage.extend(newer.clone());
                (id.clone(), usage)
            })
            .collect();
        rows::write_uses(store, &after).await?;
        Ok(())
    }
}
