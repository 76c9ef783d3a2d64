//! Bounds of the engine.

use std::time::Duration;

/// Bounds of the engine.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Runs that read and send at the same time.
    pub parallel: usize,
    /// Runs of one export that have begun and not ended.
    pub of_an_export: usize,
    /// Runs of one export that may wait. Further intervals wait for their run.
    pub waiting: usize,
    /// Seconds after a boundary at which its run begins, at most: which of them is
    /// an export's own, so that not all begin at once. It never changes what a run
    /// exports.
    pub jitter: i64,
    /// Time between two looks at the clock.
    pub tick: Duration,
    /// Persons of a run whose ids are in memory at a time. With more of them its
    /// events are read more than once.
    pub persons: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            parallel: 3,
            of_an_export: 3,
            waiting: 12,
            jitter: 5,
            tick: Duration::from_secs(1),
            // A table of ids that is nearly full: 13 MB.
            persons: 450_000,
        }
    }
}

const MINUTE: i64 = 60;
const QUARTER: i64 = 15 * MINUTE;
const HOUR: i64 = 60 * MINUTE;

/// Seconds for which a run is tried again while its destination has a passing
/// fault.
pub(super) const PATIENCE: i64 = 6 * HOUR;
/// Tries that a run has at most, however fast they fail.
pub(super) const ATTEMPTS: u32 = 250;
/// Seconds before the second try; they double,
const FIRST_WAIT: i64 = 30;
/// up to so many.
const LONGEST_WAIT: i64 = 120;
/// Seconds that a destination may ask us to wait.
const LONGEST_ASKED: i64 = 15 * MINUTE;

/// Seconds before the try after this one.
pub(super) fn wait(attempt: u32, asked: Option<Duration>) -> i64 {
    let doubled = FIRST_WAIT.saturating_mul(1 << attempt.saturating_sub(1).min(8));
    let asked = asked.map_or(0, |asked| i64::try_from(asked.as_secs()).unwrap_or(i64::MAX));
    doubled.min(LONGEST_WAIT).max(asked.min(LONGEST_ASKED))
}

/// Seconds that one try of a run may take that covers so many seconds.
pub(super) const fn time_limit(length: i64) -> i64 {
    match length {
        ..=QUARTER => 20 * MINUTE,
        ..=HOUR => 2 * HOUR,
        _ => 24 * HOUR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_try_over_more_time_has_more_time() {
        let minutes: Vec<i64> =
            [5, 15, 20, 60, 65, 1_440].map(|length| time_limit(length * MINUTE) / MINUTE).into();
        assert_eq!(minutes, [20, 20, 120, 120, 1_440, 1_440]);
    }

    #[test]
    fn waits_double_and_are_bounded() {
        let waits: Vec<i64> = (1..=5).map(|attempt| wait(attempt, None)).collect();
        assert_eq!(waits, [30, 60, 120, 120, 120]);
        assert_eq!(wait(u32::MAX, None), 120);
        assert_eq!(wait(1, Some(Duration::from_secs(200))), 200);
        assert_eq!(wait(1, Some(Duration::MAX)), 900);
    }
}
