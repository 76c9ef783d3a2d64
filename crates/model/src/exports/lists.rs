//! Filters of lists of runs, backfills and log lines (EXP-26).

use super::{Backfill, LogLevel, Run, Status};
use crate::ids::RunId;
use crate::time::Timestamp;

/// Default number of runs on a page.
pub const RUN_PAGE: usize = 100;
/// Default number of backfills on a page.
pub const BACKFILL_PAGE: usize = 50;
/// Default number of days that a list of runs covers.
pub const RUN_DAYS: i64 = 7;

/// A filter for runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunQuery {
    /// Their order.
    pub order: RunOrder,
    /// In an order by creation: only runs created at or after this time.
    pub after: Option<Timestamp>,
    /// In an order by creation: only runs created at or before this time.
    pub before: Option<Timestamp>,
    /// In an order by interval: only runs that begin at or after this time.
    pub start: Option<Timestamp>,
    /// In an order by interval: only runs that end at or before this time.
    pub end: Option<Timestamp>,
    /// Only runs with one of these statuses. Empty: all.
    pub statuses: Vec<Status>,
    /// The last run of the previous page.
    pub cursor: Option<RunId>,
    /// Number of runs to skip.
    pub offset: usize,
    /// Maximum number of runs; `None`: [`RUN_PAGE`].
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
    /// By the start of the exported range, earliest first.
    EarliestInterval,
    /// By the start of the exported range, latest first.
    LatestInterval,
}

impl RunOrder {
    /// The words on the wire.
    pub const WORDS: [&'static str; 4] =
        ["-created_at", "created_at", "data_interval_start", "-data_interval_start"];

    /// The order of this word.
    pub fn of(text: &str) -> Option<Self> {
        let orders =
            [Self::NewestFirst, Self::OldestFirst, Self::EarliestInterval, Self::LatestInterval];
        let at = Self::WORDS.iter().position(|word| *word == text)?;
        orders.get(at).copied()
    }

    /// Whether it orders by interval, not by creation.
    pub const fn is_of_intervals(self) -> bool {
        matches!(self, Self::EarliestInterval | Self::LatestInterval)
    }
}

/// A page of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPage {
    /// The runs.
    pub runs: Vec<Run>,
    /// Whether there is a next page.
    pub more: bool,
}

/// A page of backfills.
#[derive(Debug, Clone, PartialEq)]
pub struct BackfillPage {
    /// The backfills.
    pub backfills: Vec<Backfill>,
    /// Whether there is a next page.
    pub more: bool,
}

/// A filter for log lines, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogQuery {
    /// Only lines after this time.
    pub after: Option<Timestamp>,
    /// Only lines before this time.
    pub before: Option<Timestamp>,
    /// Only lines with one of these levels. Empty: all.
    pub levels: Vec<LogLevel>,
    /// Only lines that contain this text, ignoring case.
    pub search: Option<String>,
    /// Number of lines to skip.
    pub offset: usize,
    /// Maximum number of lines.
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
