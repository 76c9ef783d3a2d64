//! Counts of checks, for the operator. They have no project label, because a label per customer
//! would be too many.

use std::collections::HashMap;

use parking_lot::Mutex;

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CheckOutcome {
    /// A number is beyond a bound.
    Firing,
    /// The numbers are within the bounds.
    NotFiring,
    /// There is no number.
    Failed,
}

impl CheckOutcome {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Firing, Self::NotFiring, Self::Failed];

    /// The value of the metric label.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Firing => "firing",
            Self::NotFiring => "not_firing",
            Self::Failed => "failed",
        }
    }
}

/// Counts since the last call.
#[derive(Debug, Default)]
pub(super) struct CheckCounts {
    counts: Mutex<HashMap<CheckOutcome, u64>>,
}

impl CheckCounts {
    /// Returns the counts and resets them.
    pub(super) fn take(&self) -> HashMap<CheckOutcome, u64> {
        std::mem::take(&mut *self.counts.lock())
    }

    pub(super) fn count(&self, outcome: CheckOutcome) {
        *self.counts.lock().entry(outcome).or_default() += 1;
    }
}
