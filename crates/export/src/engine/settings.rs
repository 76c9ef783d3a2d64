//! Bounds of the engine.

use std::time::Duration;

use super::places::Limits;

/// Bounds of the engine.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Runs that read and send at the same time.
    pub parallel: usize,
    /// Those of one organization: however many exports it has, others have places.
    pub of_an_organization: usize,
    /// Runs that wait for a silent destination and do not count among those.
    pub aside: usize,
    /// Time without an answer after which a destination counts as silent.
    pub silence: Duration,
    /// Runs of one export that have begun and not ended: few enough that a
    /// destination that is slow or silent leaves places for the others.
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
            parallel: 8,
            of_an_organization: 4,
            aside: 4,
            silence: Duration::from_secs(30),
            of_an_export: 2,
            waiting: 12,
            jitter: 5,
            tick: Duration::from_secs(1),
            // A table of ids that is nearly full: 13 MB.
            persons: 450_000,
        }
    }
}

impl Settings {
    /// How places are shared out.
    pub(super) fn places(&self) -> Limits {
        Limits {
            all: self.parallel,
            of_one: self.of_an_organization,
            aside: self.aside,
            aside_of_one: self.aside.div_ceil(2),
            silence: self.silence,
        }
    }
}

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// For how long after its first failed try a run is tried again while its destination
/// has a passing fault, and nothing is delivered.
pub(super) const PATIENCE: Duration = HOUR.saturating_mul(6);
/// Tries that a run has at most, however fast they fail.
pub(super) const ATTEMPTS: u32 = 250;
/// The first tries whose lines are kept one by one;
const TOLD: u32 = 10;
/// later, those of one among so many: a run has a bounded number of lines, and its
/// end belongs to them.
const TOLD_OF: u32 = 10;
/// The wait before the second try; it doubles,
const FIRST_WAIT: Duration = Duration::from_secs(30);
/// up to this.
const LONGEST_WAIT: Duration = Duration::from_secs(120);
/// How long a destination may ask us to wait.
const LONGEST_ASKED: Duration = MINUTE.saturating_mul(15);

/// The wait before the try after this one.
pub(super) fn wait(attempt: u32, asked: Option<Duration>) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1 << attempt.saturating_sub(1).min(8));
    doubled.min(LONGEST_WAIT).max(asked.unwrap_or_default().min(LONGEST_ASKED))
}

/// Whether a try has lines in any case.
pub(super) const fn is_told(attempt: u32) -> bool {
    attempt <= TOLD || attempt.is_multiple_of(TOLD_OF)
}

/// How long one try of a run may take that covers so many seconds.
pub(super) const fn time_limit(length: i64) -> Duration {
    match length {
        ..=900 => MINUTE.saturating_mul(20),
        901..=3_600 => HOUR.saturating_mul(2),
        _ => HOUR.saturating_mul(24),
    }
}

#[cfg(test)]
mod tests {
    use weir_store::exports::logs::LINES;

    use super::*;

    #[test]
    fn a_try_over_more_time_has_more_time() {
        let minutes =
            [5, 15, 20, 60, 65, 1_440].map(|length| time_limit(length * 60).as_secs() / 60);
        assert_eq!(minutes, [20, 20, 120, 120, 1_440, 1_440]);
    }

    #[test]
    fn waits_double_and_are_bounded() {
        let wait = |attempt, asked| super::wait(attempt, asked).as_secs();
        let waits: Vec<u64> = (1..=5).map(|attempt| wait(attempt, None)).collect();
        assert_eq!(waits, [30, 60, 120, 120, 120]);
        assert_eq!(wait(u32::MAX, None), 120);
        assert_eq!(wait(1, Some(Duration::from_secs(200))), 200);
        assert_eq!(wait(1, Some(Duration::MAX)), 900);
    }

    #[test]
    fn tries_leave_room_for_the_other_lines_of_a_run() {
        let told = (1..=ATTEMPTS).filter(|attempt| is_told(*attempt)).count();
        assert!(4 * told < usize::try_from(LINES).unwrap(), "{told}");
    }

    #[test]
    fn one_export_leaves_places_for_others() {
        let settings = Settings::default();
        assert!(settings.parallel >= 4 * settings.of_an_export);
        assert!(settings.parallel >= 2 * settings.of_an_organization);
    }
}
