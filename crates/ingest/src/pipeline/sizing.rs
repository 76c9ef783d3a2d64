//! The size of batches, and what a failure does to it.
//!
//! What belongs here: kinds of failure, and which of them may pass with fewer events. What
//! does not: retrying a batch (`consumer`).

use std::time::Duration;

use weir_store::Error;

use super::apply_batch::EVENTS;
use crate::log::LogError;

/// After a batch that takes longer, batches become smaller.
const SLOW_BATCH: Duration = Duration::from_secs(5);
/// After a batch that takes less, batches become larger again.
const FAST_BATCH: Duration = Duration::from_secs(1);
/// After this many failures of a single event, the event is dropped.
const MAX_FAILURES_OF_EVENT: u32 = 3;
/// Bytes of persons and groups that a batch may change when it is applied alone. A batch
/// with more is made smaller.
pub(super) const ALONE_MAX_BYTES: usize = 32 << 20;

/// The size of the next batches. After a failure that an event may cause, batches become
/// smaller until the event is found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchSizing {
    /// Upper bound of events in the next batch.
    max_events: usize,
    /// How often the only event of a batch has failed.
    failures_of_event: u32,
}

impl Default for BatchSizing {
    fn default() -> Self {
        Self { max_events: EVENTS, failures_of_event: 0 }
    }
}

impl BatchSizing {
    /// Adapts the size of batches to the speed of this machine. A long batch delays the
    /// other consumers, and a very long one reaches the time limit of the engine.
    pub(super) fn succeeded(&mut self, took: Duration, loaded: usize) {
        self.failures_of_event = 0;
        if took > SLOW_BATCH {
            self.max_events = (self.max_events / 2).max(1);
        } else if took < FAST_BATCH && loaded < ALONE_MAX_BYTES / 2 {
            self.max_events = (self.max_events * 2).min(EVENTS);
        }
    }

    /// Upper bound of events in the next batch.
    pub(super) fn max_events(self) -> usize {
        self.max_events
    }

    /// Whether batches are small because of a failure or a slow batch.
    pub(super) fn is_reduced(self) -> bool {
        self.max_events < EVENTS
    }

    /// Whether the only event of the next batch is dropped.
    pub(super) fn is_giving_up(self) -> bool {
        self.failures_of_event >= MAX_FAILURES_OF_EVENT
    }

    /// Halves the batch: its persons and groups were too large.
    pub(super) fn overfull(&mut self, events: usize) {
        self.max_events = (events / 2).max(1);
    }

    pub(super) fn failed(&mut self, failure: &Failure) {
        if self.is_giving_up() {
            // The batch fails without the event too, so the event is not the cause and is
            // tried again.
            self.failures_of_event = 0;
        } else if !failure.may_pass_with_fewer() {
            // The disk or a passing fault: retry the same batch.
        } else if self.max_events > 1 {
            self.max_events /= 2;
        } else if failure.may_be_an_event() {
            self.failures_of_event += 1;
        }
    }
}

/// Why a batch was not applied.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Store(#[from] Error),
    #[error("processing panicked: {0}")]
    Panicked(String),
    #[error("{events} events change too many large persons and groups at a time")]
    Overfull { events: usize },
}

impl Failure {
    /// Whether an event may be the cause, rather than the disk or a passing fault.
    fn may_be_an_event(&self) -> bool {
        match self {
            Self::Panicked(_) => true,
            Self::Store(error) => {
                matches!(error, Error::Shape { .. } | Error::Exists { .. } | Error::Refused { .. })
            }
            Self::Log(_) | Self::Overfull { .. } => false,
        }
    }

    /// Whether a smaller batch may succeed.
    fn may_pass_with_fewer(&self) -> bool {
        self.may_be_an_event() || matches!(self, Self::Store(Error::Timeout { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::{BatchSizing, Failure, MAX_FAILURES_OF_EVENT};

    /// An acknowledged event is not dropped because the store failed for a while.
    #[test]
    fn an_event_is_kept_when_dropping_it_fails_too() {
        let failure = || Failure::Panicked(String::new());
        let mut sizing = BatchSizing { max_events: 1, failures_of_event: 0 };
        for _ in 0..MAX_FAILURES_OF_EVENT {
            assert!(!sizing.is_giving_up());
            sizing.failed(&failure());
        }
        assert!(sizing.is_giving_up());
        sizing.failed(&failure());
        assert!(!sizing.is_giving_up(), "the event is tried again");
    }
}
