//! What lists of runs and of log lines are asked for (EXP-26).

use super::{Backfill, LogLevel, Run, Status};
use crate::ids::RunId;
use crate::time::Timestamp;

/// Runs on a page, unless another number is asked for.
pub const RUN_PAGE: usize = 100;
/// Backfills on a page, unless another number is asked for.
pub const BACKFILL_PAGE: usize = 50;
/// Days that a list of runs goes back when it is not said how far.
pub const RUN_DAYS: i64 = 7;

/// Which runs are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunQuery {
    /// Their order.
    pub order: RunOrder,
    /// In an order of creation: only runs that were created at this time or later.
    pub after: Option<Timestamp>,
    /// In an order of creation: only runs that were created at this time or before.
    pub before: Option<Timestamp>,
    /// In an order of intervals: only runs that begin at this time or later.
    pub start: Option<Timestamp>,
    /// In an order of intervals: only runs that end at this time or before.
    pub end: Option<Timestamp>,
    /// Only runs of one of these statuses; none: of all.
    pub statuses: Vec<Status>,
    /// The last run of the page before.
    pub cursor: Option<RunId>,
    /// How many to pass over.
    pub offset: usize,
    /// How many at most; none: [`RUN_PAGE`].
    pub limit: Option<usize>,
}

/// The order of a list of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunOrder {
    /// Newest first.
    #[default]
    NewestFirst,
    /// Oldest first.
    OldestFirst,
    /// By the begin of what they export, earliest first.
    EarliestInterval,
    /// By the begin of what they export, latest first.
    LatestInterval,
}

impl RunOrder {
    /// The words on the wire.
    pub const WORDS: [&'static str; 4] =
        ["-created_at", "created_at", "data_interval_start", "-data_interval_start"];

    /// The order of this word.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let orders =
            [Self::NewestFirst, Self::OldestFirst, Self::EarliestInterval, Self::LatestInterval];
        let at = Self::WORDS.iter().position(|word| *word == text)?;
        orders.get(at).copied()
    }

    /// Whether it is one of intervals, not of creation.
    #[must_use]
    pub const fn is_of_intervals(self) -> bool {
        matches!(self, Self::EarliestInterval | Self::LatestInterval)
    }
}

/// A page of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPage {
    /// The runs.
    pub runs: Vec<Run>,
    /// Whether there are more after the last of them.
    pub more: bool,
}

/// A page of backfills.
#[derive(Debug, Clone, PartialEq)]
pub struct BackfillPage {
    /// The backfills.
    pub backfills: Vec<Backfill>,
    /// Whether there are more after the last of them.
    pub more: bool,
}

/// Which log lines are wanted, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogQuery {
    /// Only lines after this time.
    pub after: Option<Timestamp>,
    /// Only lines before this time.
    pub before: Option<Timestamp>,
    /// Only lines of one of these levels; none: of all.
    pub levels: Vec<LogLevel>,
    /// Only lines that contain this text, whatever the case of its letters.
    pub search: Option<String>,
    /// How many to pass over.
    pub offset: usize,
    /// How many at most.
    pub limit: usize,
}

#[cfg(test)]
mod tests {
    use super::RunOrder;

    #[test]
    fn orders_have_words() {
        assert_eq!(RunOrder::of("-created_at"), Some(RunOrder::default()));
        assert_eq!(RunOrder::of("-data_interval_start"), Some(RunOrder::LatestInterval));
        assert_eq!(RunOrder::of("id"), None);
        for word in RunOrder::WORDS {
            let order = RunOrder::of(word).unwrap();
            assert_eq!(order.is_of_intervals(), word.contains("interval"));
        }
    }
}
