//! Counts of dropped and altered events, for the metrics.
//!
//! What belongs here: which codes count as which outcome. What does not: deciding what
//! happens to an event (`planner`), and the counts in the store (`tally`).

use std::collections::HashMap;

use parking_lot::Mutex;
use weir_model::outcomes::{DropReason, Warning};
use weir_store::events::WarningCount;

/// Counts of dropped and altered events since the last call of `take`.
#[derive(Debug, Default)]
pub(crate) struct Outcomes(Mutex<HashMap<Outcome, u64>>);

impl Outcomes {
    /// The counts since the last call.
    pub(crate) fn take(&self) -> HashMap<Outcome, u64> {
        std::mem::take(&mut *self.0.lock())
    }

    pub(super) fn count(&self, warnings: &[WarningCount]) {
        let mut outcomes = self.0.lock();
        for warning in warnings {
            if let Some(outcome) = Outcome::of(&warning.code) {
                let count = u64::try_from(warning.count).unwrap_or(0);
                *outcomes.entry(outcome).or_default() += count;
            }
        }
    }
}

/// What processing did with an event, other than storing it as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The event was dropped.
    Dropped(DropReason),
    /// The event was stored altered, or not all of its changes were made.
    Altered(Warning),
}

impl Outcome {
    /// The outcome for a code. `None` for codes that are counted where the decision is
    /// made.
    fn of(code: &str) -> Option<Self> {
        match DropReason::from_code(code) {
            Some(
                reason @ (DropReason::DuplicateUuid
                | DropReason::DroppedByTransformation
                | DropReason::TransformationUnavailable
                | DropReason::NotProcessed
                | DropReason::UnreadableRecord),
            ) => Some(Self::Dropped(reason)),
            Some(_) => None,
            None => Warning::from_code(code).map(Self::Altered),
        }
    }
}
