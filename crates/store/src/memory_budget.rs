//! Memory for reads: a budget in bytes, and a semaphore for reads of large records.
//!
//! A person or a group may have a megabyte, and a client with the public key of a project
//! chooses how many of that size there are. A member does the same with exports and
//! plugins. So such records are read in small pieces, by
//! a few statements at a time, and callers say how much they can hold.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use surrealdb::types::{RecordId, SurrealValue, Variables};
use tokio::sync::OwnedSemaphorePermit;

use crate::db::{Operation, Statement};
use crate::transaction::{RowKey, Transaction};
use crate::{Error, Result, Store};

/// Records of persons, groups and pages of lists that are read at a time.
pub(crate) const RECORDS_PER_STATEMENT: usize = 32;
/// Records that one transaction reads by their ids, some at a time. Others wait for it.
const RECORDS_PER_TRANSACTION: usize = 512;

/// The most keys of a read of which few have records.
const KEYS_PER_READ: usize = 1_024;

/// How many keys a read has, if most of them may have no records. A key without a record
/// brings no bytes, and through a network each read costs more than its keys.
///
/// A read has as many keys as were read before it, or fewer if those had more than some
/// records, and at least [`RECORDS_PER_STATEMENT`]. The keys must come in random order, or
/// be known to have no records. Then more than [`RECORDS_PER_STATEMENT`] records come back
/// once in ten thousand times at most, and more than twice as many practically never,
/// whichever keys a sender chooses.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReadSize {
    /// The keys that were read, and how many of them had records.
    keys: usize,
    records: usize,
}

impl ReadSize {
    /// Records that the next read returns on average. It must be far below
    /// [`RECORDS_PER_STATEMENT`].
    const EXPECTED: usize = 8;

    fn keys(self) -> usize {
        let keys = self.keys.saturating_mul(Self::EXPECTED) / self.records.max(Self::EXPECTED);
        keys.clamp(RECORDS_PER_STATEMENT, KEYS_PER_READ)
    }

    /// The keys of the next read, and the rest.
    pub(crate) fn split<T>(self, keys: &[T]) -> (&[T], &[T]) {
        keys.split_at(self.keys().min(keys.len()))
    }

    /// Notes a read, and how many of its keys had records.
    pub(crate) fn note(&mut self, keys: usize, records: usize) {
        self.keys += keys;
        self.records += records;
    }
}

/// A budget: bytes that a reader may still take into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteBudget(usize);

impl ByteBudget {
    /// No bound: for reads of few records.
    pub const ALL: Self = Self(usize::MAX);

    /// A budget of so many bytes.
    pub const fn of(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Takes the bytes of a read from the budget.
    pub fn take(&mut self, bytes: usize) {
        self.0 = self.0.saturating_sub(bytes);
    }

    /// Whether the budget is used up. The read is then incomplete.
    pub const fn is_used_up(self) -> bool {
        self.0 == 0
    }

    /// The bytes that are left.
    pub const fn left(self) -> usize {
        self.0
    }
}

/// Runs a statement that reads records which may be large. A semaphore bounds how many
/// run at the same time.
pub(crate) async fn read_large<T: SurrealValue>(
    store: &Store,
    statement: Statement,
    vars: Variables,
) -> Result<Vec<T>> {
    let permit = permit(store).await?;
    // The permit is released when the statement ends, even if the caller was dropped.
    store.db.run_holding(statement, vars, permit).await?.rows(0)
}

/// Reads records by their ids, which may be large. They come in no particular order. Ids
/// without a record are skipped. Incomplete when the budget is used up. `read` returns a
/// record and its bytes in memory. The same semaphore bounds these reads.
pub(crate) async fn get_large<T, U>(
    store: &Store,
    operation: Operation,
    ids: impl IntoIterator<Item = RecordId>,
    budget: &mut ByteBudget,
    read: fn(T) -> Result<(U, usize)>,
) -> Result<Vec<U>>
where
    T: SurrealValue + Send + 'static,
    U: Send + 'static,
{
    let mut keys = store.db.keyspace().await?.keys(ids)?;
    if keys.len() > RECORDS_PER_STATEMENT {
        let order = RandomState::new();
        keys.sort_by_cached_key(|key| order.hash_one(key.bytes()));
    }
    let (mut all, mut size) = (Vec::new(), ReadSize::default());
    while !keys.is_empty() && !budget.is_used_up() {
        let most = RECORDS_PER_TRANSACTION.max(size.keys());
        let later = keys.split_off(most.min(keys.len()));
        let keys_now = Arc::new(std::mem::replace(&mut keys, later));
        let before = (*budget, size);
        let work = move |tx: Transaction| {
            let keys = Arc::clone(&keys_now);
            async move {
                let (mut budget, mut size) = before;
                let (mut found, mut rest) = (Vec::new(), keys.as_slice());
                while !rest.is_empty() && !budget.is_used_up() {
                    let (some, later) = size.split(rest);
                    let mut some: Vec<&RowKey> = some.iter().collect();
                    // Neighbours are found faster.
                    some.sort_unstable_by_key(|key| key.bytes());
                    let rows = tx.get_together(&some).await?.into_iter().flatten();
                    let present = found.len();
                    for row in rows {
                        let (record, bytes) = read(row)?;
                        budget.take(bytes);
                        found.push(record);
                    }
                    size.note(some.len(), found.len() - present);
                    rest = later;
                }
                Ok((found, budget, size))
            }
        };
        let permit = permit(store).await?;
        let (found, left, noted) = store.db.transact(operation, permit, work).await?;
        (*budget, size) = (left, noted);
        all.extend(found);
    }
    Ok(all)
}

pub(crate) async fn permit(store: &Store) -> Result<OwnedSemaphorePermit> {
    Arc::clone(&store.large_reads).acquire_owned().await.map_err(|_| Error::Stopped)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys of each read of `keys`, of which every `nth` has a record. 0: none has one.
    fn reads(keys: usize, nth: usize) -> Vec<usize> {
        let keys: Vec<usize> = (1..=keys).collect();
        let (mut rest, mut size, mut reads) = (keys.as_slice(), ReadSize::default(), Vec::new());
        while !rest.is_empty() {
            let (some, later) = size.split(rest);
            let records = some.iter().filter(|key| nth > 0 && **key % nth == 0).count();
            size.note(some.len(), records);
            reads.push(some.len());
            rest = later;
        }
        reads
    }

    #[test]
    fn reads_that_find_little_become_larger() {
        assert_eq!(reads(4_000, 0), [32, 32, 64, 128, 256, 512, 1_024, 1_024, 928]);
        // One of a hundred, as when most visitors are new.
        assert_eq!(reads(4_000, 100).len(), 10);
        assert!(reads(4_000, 10).iter().all(|keys| *keys <= 128));
        // All records may be large.
        assert!(reads(4_000, 1).iter().all(|keys| *keys <= RECORDS_PER_STATEMENT));
        assert_eq!(reads(20, 0), [20]);
    }

    #[test]
    fn a_read_grows_no_further_than_what_was_found_permits() {
        let mut size = ReadSize::default();
        size.note(1_000, 0);
        assert_eq!(size.keys(), 1_000);
        size.note(1_000, 80);
        assert_eq!(size.keys(), 200);
        size.note(1_000_000, 0);
        assert_eq!(size.keys(), KEYS_PER_READ);
    }
}
