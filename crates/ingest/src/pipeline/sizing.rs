//! The size of batches, and what a failure does to it.
//!
//! What belongs here: kinds of failure, and what each says about the events of its batch.
//! What does not: retrying a batch (`consumer`).

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
pub(super) const EXCLUSIVE_MAX_BYTES: usize = 32 << 20;

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
        } else if took < FAST_BATCH && loaded < EXCLUSIVE_MAX_BYTES / 2 {
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
        match failure.cause() {
            // The batch fails without the event too, so the event is not the cause and is
            // tried again.
            _ if self.is_giving_up() => self.failures_of_event = 0,
            // The same batch is tried again.
            Cause::State => {}
            Cause::Size | Cause::Event if self.max_events > 1 => self.max_events /= 2,
            Cause::Size => {}
            Cause::Event => self.failures_of_event += 1,
        }
    }
}

/// What a failure says about the events of its batch. Only an event that may be the cause is
/// dropped in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// An event may be the cause.
    Event,
    /// A smaller batch may succeed.
    Size,
    /// None of the events is: the log or the store cannot apply any batch like it now. The
    /// batch waits, however long that takes.
    State,
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
    /// What it says about the events. The list of errors is complete, so that each new error
    /// of the store is considered here.
    fn cause(&self) -> Cause {
        let error = match self {
            Self::Panicked(_) => return Cause::Event,
            Self::Log(_) | Self::Overfull { .. } => return Cause::State,
            Self::Store(error) => error,
        };
        match error {
            Error::Shape { .. } | Error::Exists { .. } | Error::Refused { .. } => Cause::Event,
            Error::Timeout { .. } => Cause::Size,
            Error::Bucket { .. }
            | Error::ChangedMigration { .. }
            | Error::Conflict { .. }
            | Error::Damaged { .. }
            | Error::Directory { .. }
            | Error::DiskLow
            | Error::File { .. }
            | Error::InUse { .. }
            | Error::Making { .. }
            | Error::NewerSchema { .. }
            | Error::Open { .. }
            | Error::Stopped
            | Error::Storage { .. }
            | Error::TooLarge { .. }
            | Error::Unavailable { .. } => Cause::State,
        }
    }

    /// Whether files of stored events are damaged. Their repair is reported by the store.
    pub(super) fn is_damage(&self) -> bool {
        matches!(self, Self::Store(Error::Damaged { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::{BatchSizing, EVENTS, Error, Failure, MAX_FAILURES_OF_EVENT};

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

    /// Damaged files are a state of the store and no fault of an event.
    #[test]
    fn no_event_is_dropped_because_files_are_damaged() {
        let damage = || {
            let detail = "a run".to_owned();
            Failure::Store(Error::Damaged { file: "a.run".into(), detail })
        };
        let mut sizing = BatchSizing::default();
        for _ in 0..100 {
            sizing.failed(&damage());
        }
        assert_eq!(sizing.max_events(), EVENTS, "a smaller batch would not help");
        let mut sizing = BatchSizing { max_events: 1, failures_of_event: 0 };
        sizing.failed(&Failure::Panicked(String::new()));
        for _ in 0..100 {
            sizing.failed(&damage());
            assert!(!sizing.is_giving_up());
        }
        assert_eq!(sizing.failures_of_event, 1);
    }
}
