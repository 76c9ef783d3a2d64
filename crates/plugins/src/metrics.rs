//! Counts of what plugins did, for the operator. They have no project label, because a
//! label per customer would be too many.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::report::Tally;

/// The kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// An event reached a transformation on its way to the store.
    Transformed,
    /// A stored event was passed to a plugin.
    Delivered,
    /// A task or a job ran.
    Ran,
}

impl Effect {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Transformed, Self::Delivered, Self::Ran];

    /// The value of the metric label.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Transformed => "transformed",
            Self::Delivered => "delivered",
            Self::Ran => "ran",
        }
    }
}

/// The outcome of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// It succeeded.
    Succeeded,
    /// It failed with an error.
    Failed,
    /// The event was dropped on purpose.
    Dropped,
}

impl Ending {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Succeeded, Self::Failed, Self::Dropped];

    /// The value of the metric label.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
        }
    }
}

/// The processes that run scripts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Children {
    /// The number of running processes.
    pub alive: usize,
    /// The number of processes that replaced an ended one since the last call.
    pub replaced: u64,
}

/// Counts since the last call.
#[derive(Debug, Default)]
pub struct Metrics {
    counts: Mutex<HashMap<(Effect, Ending), u64>>,
}

impl Metrics {
    /// Returns the counts and resets them.
    pub fn take(&self) -> HashMap<(Effect, Ending), u64> {
        std::mem::take(&mut *self.counts.lock())
    }

    pub(crate) fn count(&self, effect: Effect, tally: Tally) {
        let Tally { succeeded, failed, dropped } = tally;
        let mut counts = self.counts.lock();
        for (ending, count) in
            [(Ending::Succeeded, succeeded), (Ending::Failed, failed), (Ending::Dropped, dropped)]
        {
            if count > 0 {
                *counts.entry((effect, ending)).or_default() += count;
            }
        }
    }
}
