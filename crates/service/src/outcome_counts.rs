//! Counts of work of the instance by its outcome, for the operator. They have no project label,
//! because a label per customer would be too many.

use std::collections::HashMap;
use std::hash::Hash;

use parking_lot::Mutex;

/// Counts since the last call of [`take`](Self::take).
#[derive(Debug)]
pub(crate) struct OutcomeCounts<T> {
    counts: Mutex<HashMap<T, u64>>,
}

impl<T> Default for OutcomeCounts<T> {
    fn default() -> Self {
        Self { counts: Mutex::new(HashMap::new()) }
    }
}

impl<T: Eq + Hash> OutcomeCounts<T> {
    /// Returns the counts and resets them.
    pub(crate) fn take(&self) -> HashMap<T, u64> {
        std::mem::take(&mut *self.counts.lock())
    }

    pub(crate) fn count(&self, outcome: T) {
        *self.counts.lock().entry(outcome).or_default() += 1;
    }
}
