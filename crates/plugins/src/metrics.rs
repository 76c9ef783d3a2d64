//! What plugins have done, counted for the operator: without projects, which would
//! make a label of every customer.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::report::Tally;

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// An event came to a step on its way to the store.
    Transformed,
    /// A stored event was given to a plugin.
    Delivered,
    /// A task or a job was run.
    Ran,
}

impl Effect {
    /// Its label.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Transformed => "transformed",
            Self::Delivered => "delivered",
            Self::Ran => "ran",
        }
    }
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Well.
    Succeeded,
    /// With an error.
    Failed,
    /// The event was dropped on purpose.
    Dropped,
}

impl Ending {
    /// Its label.
    #[must_use]
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
    /// How many there are.
    pub alive: usize,
    /// How many took the place of one that had ended since this was asked last.
    pub replaced: u64,
}

/// What was done since it was asked last.
#[derive(Debug, Default)]
pub struct Metrics {
    counts: Mutex<HashMap<(Effect, Ending), u64>>,
}

impl Metrics {
    /// Gives the counts, and begins anew.
    #[must_use]
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
