//! Recently used persons as they are in the store: one cache for all consumers.
//!
//! A person can have distinct ids in several partitions, so the consumers must see each
//! other's changes. A consumer that has committed a change puts it here. The store
//! refuses a change of an older state; then the entries are removed and read again.
//!
//! What belongs here: which persons are in memory. What does not: changing them
//! (`people`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use quick_cache::Weighter;
use quick_cache::unsync::Cache;
use weir_model::{PersonId, ProjectId};
use weir_store::persons::{self, Stored};
use weir_store::{ByteBudget, Error, Store};

use super::planner::UncommittedWrites;

/// Number of persons to expect. The cache sizes its tables by it.
const PERSONS: usize = 50_000;
/// Upper bound of their bytes.
const BYTES: u64 = 32 << 20;

type Key = (ProjectId, PersonId);

#[derive(Debug, Clone)]
struct Weight;

impl Weighter<Key, Arc<Stored>> for Weight {
    fn weight(&self, _key: &Key, record: &Arc<Stored>) -> u64 {
        record.size() as u64
    }
}

/// Recently used persons as they are in the store.
pub(super) struct PersonCache {
    records: Mutex<Cache<Key, Arc<Stored>, Weight>>,
    /// How often an entry was removed. A person that was read before a removal may be
    /// outdated, and is not put here.
    forgotten: AtomicU64,
}

impl Default for PersonCache {
    fn default() -> Self {
        let records = Mutex::new(Cache::with_weighter(PERSONS, BYTES, Weight));
        Self { records, forgotten: AtomicU64::new(0) }
    }
}

impl PersonCache {
    /// The stored persons of these ids. Ids without a person are missing from the result.
    /// Of persons that do not fit into `budget`, some are missing. Persons that are being
    /// written take precedence.
    pub(super) async fn get(
        &self,
        store: &Store,
        project: ProjectId,
        ids: &[PersonId],
        uncommitted: Option<&UncommittedWrites>,
        budget: &mut ByteBudget,
    ) -> Result<Vec<Arc<Stored>>, Error> {
        let mut found = Vec::with_capacity(ids.len());
        let mut missing = Vec::new();
        {
            let records = self.records.lock();
            for id in ids {
                let written = uncommitted.and_then(|written| written.person(project, *id));
                match written.or_else(|| records.get(&(project, *id))) {
                    Some(record) => {
                        budget.take(record.size());
                        found.push(Arc::clone(record));
                    }
                    None => missing.push(*id),
                }
            }
        }
        let before = self.forgotten.load(Ordering::Acquire);
        let read = persons::by_ids(store, project, &missing, budget).await?;
        let read: Vec<_> = read.into_iter().map(Arc::new).collect();
        let mut records = self.records.lock();
        if self.forgotten.load(Ordering::Acquire) == before {
            keep(&mut records, project, &read);
        }
        drop(records);
        found.extend(read);
        Ok(found)
    }

    /// Puts committed persons here, unless a newer version is here already.
    pub(super) fn post(&self, project: ProjectId, committed: &[Arc<Stored>]) {
        keep(&mut self.records.lock(), project, committed);
    }

    /// Removes these persons, because the store has newer ones.
    pub(super) fn forget(&self, project: ProjectId, ids: impl IntoIterator<Item = PersonId>) {
        let mut records = self.records.lock();
        self.forgotten.fetch_add(1, Ordering::AcqRel);
        for id in ids {
            records.remove(&(project, id));
        }
    }
}

fn keep(records: &mut Cache<Key, Arc<Stored>, Weight>, project: ProjectId, newer: &[Arc<Stored>]) {
    for record in newer {
        let key = (project, record.id);
        if records.peek(&key).is_none_or(|present| present.version < record.version) {
            records.insert(key, Arc::clone(record));
        }
    }
}
