//! Memory for reads: a budget in bytes, and a semaphore for reads of large records.
//!
//! A person or a group may have a megabyte, and a client with the public key of a project
//! chooses how many of that size there are. A member does the same with exports and
//! plugins. So such records are read in small pieces, by
//! a few statements at a time, and callers say how much they can hold.

use std::sync::Arc;

use surrealdb::types::{RecordId, SurrealValue, Variables};
use tokio::sync::OwnedSemaphorePermit;

use crate::db::{Operation, Statement};
use crate::transaction::Transaction;
use crate::{Error, Result, Store};

/// Records of persons, groups and pages of lists that are read at a time.
pub(crate) const RECORDS_PER_STATEMENT: usize = 32;
/// Records that one transaction reads by their ids, some at a time. Others wait for it.
const RECORDS_PER_TRANSACTION: usize = 512;

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

/// Reads records by their ids, which may be large, in the order of the ids. Ids without a
/// record are skipped. Incomplete when the budget is used up. `read` returns a record and
/// its bytes in memory. The same semaphore bounds these reads.
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
    let keys = store.db.keyspace().await?.keys(ids)?;
    let mut all = Vec::new();
    for keys in keys.chunks(RECORDS_PER_TRANSACTION) {
        if budget.is_used_up() {
            break;
        }
        let (keys, before) = (Arc::new(keys.to_vec()), *budget);
        let work = move |tx: Transaction| {
            let keys = Arc::clone(&keys);
            async move {
                let (mut found, mut budget) = (Vec::new(), before);
                for some in keys.chunks(RECORDS_PER_STATEMENT) {
                    if budget.is_used_up() {
                        break;
                    }
                    for row in tx.get(some).await?.into_iter().flatten() {
                        let (record, bytes) = read(row)?;
                        budget.take(bytes);
                        found.push(record);
                    }
                }
                Ok((found, budget))
            }
        };
        let permit = permit(store).await?;
        let (found, left) = store.db.transact(operation, permit, work).await?;
        *budget = left;
        all.extend(found);
    }
    Ok(all)
}

pub(crate) async fn permit(store: &Store) -> Result<OwnedSemaphorePermit> {
    Arc::clone(&store.large_reads).acquire_owned().await.map_err(|_| Error::Stopped)
}
