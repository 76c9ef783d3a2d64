//! Memory for what is read: a budget of bytes, and reads that take turns.
//!
//! A person or a group may have a megabyte, and whoever has a project's public key
//! chooses how many of that size there are. So such records are read in small pieces,
//! a few statements at a time, and callers say how much they can hold.

use std::sync::Arc;

use surrealdb::types::{SurrealValue, Variables};

use crate::db::Statement;
use crate::{Error, Result, Store};

/// Records of persons and groups that one statement reads.
pub(crate) const TOGETHER: usize = 32;

/// Bytes that a reader may still take into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room(usize);

impl Room {
    /// Room for whatever is read: where that is few records.
    pub const ALL: Self = Self(usize::MAX);

    /// Room for so many bytes.
    #[must_use]
    pub const fn of(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Takes off what was read.
    pub fn take(&mut self, bytes: usize) {
        self.0 = self.0.saturating_sub(bytes);
    }

    /// Whether nothing is left: what was read is then only a part.
    #[must_use]
    pub const fn is_used_up(self) -> bool {
        self.0 == 0
    }

    /// What is left.
    #[must_use]
    pub const fn left(self) -> usize {
        self.0
    }
}

/// Runs a statement that reads records which may be large, a few at a time.
pub(crate) async fn read_large<T: SurrealValue>(
    store: &Store,
    statement: Statement,
    vars: Variables,
) -> Result<Vec<T>> {
    let turn = Arc::clone(&store.large_reads).acquire_owned().await.map_err(|_| Error::Stopped)?;
    // The turn ends with the statement, also when the caller has gone meanwhile.
    store.db.run_holding(statement, vars, turn).await?.rows(0)
}
