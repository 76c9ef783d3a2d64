//! How keys are used, noted in memory and written every minute or so, so that no
//! call waits for it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use weir_model::keys::{KeyCall, KeyUse};
use weir_model::scopes::Scope;
use weir_model::{KeyId, Timestamp, UserId};
use weir_store::keys as rows;

use super::PersonalKeys;
use crate::Result;

/// Keys that are remembered between two writes; of further ones nothing is noted.
const KEYS: usize = 10_000;
/// Keys that are written with one transaction.
const TOGETHER: usize = 100;

type Owned = (UserId, KeyId);

/// What was noted and is not written yet.
#[derive(Debug, Default)]
pub(super) struct Uses {
    // Held for single map operations only.
    noted: Mutex<HashMap<Owned, KeyUse>>,
    /// One write at a time: each reads what is there first.
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

    /// Notes that a value that was replaced was used.
    pub(super) fn note_previous(&self, user: UserId, key: &KeyId, now: Timestamp) {
        self.note(user, key, |usage| usage.previous_at = Some(now));
    }

    fn take(&self) -> Vec<(Owned, KeyUse)> {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.drain().collect()
    }

    /// Puts back what could not be written; it is older than what is there.
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
    /// Notes a call that was made with a key; `lacked` is the scope for which it
    /// was refused.
    pub fn note_call(&self, user: UserId, key: &KeyId, call: KeyCall, lacked: Option<Scope>) {
        self.uses.note(user, key, |usage| usage.add(call, lacked));
    }

    /// Writes what was noted. To be called every minute or so, and at the end.
    ///
    /// # Errors
    /// Any failure of the store; what was noted is kept for the next time.
    pub async fn write_uses(&self) -> Result<()> {
        let _one_at_a_time = self.uses.writing.lock().await;
        let mut left = self.uses.take();
        while !left.is_empty() {
            let rest = left.split_off(left.len().min(TOGETHER));
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
