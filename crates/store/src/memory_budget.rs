//! Memory for reads: a budget in bytes, and a semaphore for reads of large records.
//!
//! A person or a group may have a megabyte, and a client with the public key of a project
//! chooses how many of that size there are. A member does the same with exports and
//! plugins. So such records are read in small pieces, by
//! a few statements at a time, and callers say how much they can hold.

use std::sync::Arc;

use surrealdb::types::{SurrealValue, Variables};

use crate::db::Statement;
use crate::{Error, Result, Store};

/// Records of persons, groups and pages of lists that one statement reads.
pub(crate) const RECORDS_PER_STATEMENT: usize = 32;

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
    let permit =
        Arc::clone(&store.large_reads).acquire_owned().await.map_err(|_| Error::Stopped)?;
    // The permit is released when the statement ends, even if the caller was dropped.
    store.db.run_holding(statement, vars, permit).await?.rows(0)
}
