//! Limits of the engine.
//!
//! What belongs here: limits, waits and time limits. What does not: assigning slots
//! (`slots`).

use std::time::Duration;

use super::slots::Limits;

/// Limits of the engine.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Runs that read and send concurrently.
    pub parallel: usize,
    /// The same for one organization. An organization with many exports leaves slots for
    /// others.
    pub of_an_organization: usize,
    /// Runs that wait for a silent destination. They do not count as `parallel`.
    pub parked: usize,
    /// Time without an answer after which a destination counts as silent.
    pub silence: Duration,
    /// Active runs of one export. The bound is low, so that a slow or silent destination
    /// leaves slots for others.
    pub of_an_export: usize,
    /// Runs of one export that may wait. Further intervals get their run later.
    pub waiting: usize,
    /// Longest delay in seconds between a boundary and its run. Each export has its own
    /// delay, so that not all runs begin at the same time. The delay never changes the
    /// selection of a run.
    pub jitter: i64,
    /// Time between two polls.
    pub tick: Duration,
    /// Persons of a run whose ids are in memory at a time. A run with more persons reads
    /// its events more than once.
    pub persons: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            parallel: 8,
            of_an_organization: 4,
            parked: 4,
            silence: Duration::from_secs(30),
            of_an_export: 2,
            waiting: 12,
            jitter: 5,
            tick: Duration::from_secs(1),
            // A hash table with this many ids is nearly full: 13 MB.
            persons: 450_000,
        }
    }
}

impl Settings {
    /// The division of slots.
    pub(super) fn slots(&self) -> Limits {
        Limits {
            all: self.parallel,
            of_one: self.of_an_organization,
            parked: self.parked,
            parked_of_one: self.parked.div_ceil(2),
            silence: self.silence,
        }
    }
}

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// How long a run is retried after its first failed attempt, while its destination has a
/// passing fault and nothing is delivered.
pub(super) const PATIENCE: Duration = HOUR.saturating_mul(6);
/// Upper bound of attempts in a run, however fast they fail.
pub(super) const ATTEMPTS: u32 = 250;
/// Number of first attempts that always have log lines.
const LOGGED_ATTEMPTS: u32 = 10;
/// Of later attempts, one in this many has log lines. A run has a bounded number of
/// lines, and its end needs some of them.
const LOGGED_EVERY: u32 = 10;
/// The wait before the second attempt. It doubles with every attempt.
const FIRST_WAIT: Duration = Duration::from_secs(30);
const LONGEST_WAIT: Duration = Duration::from_secs(120);
/// The longest wait that a destination can ask for.
const LONGEST_REQUESTED: Duration = MINUTE.saturating_mul(15);

/// The wait before the attempt after this one.
pub(super) fn wait(attempt: u32, requested: Option<Duration>) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1 << attempt.saturating_sub(1).min(8));
    doubled.min(LONGEST_WAIT).max(requested.unwrap_or_default().min(LONGEST_REQUESTED))
}

/// Whether an attempt always has log lines.
pub(super) const fn is_logged(attempt: u32) -> bool {
    attempt <= LOGGED_ATTEMPTS || attempt.is_multiple_of(LOGGED_EVERY)
}

/// The time limit for one attempt of a run that covers this many seconds.
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
        let wait = |attempt, requested| super::wait(attempt, requested).as_secs();
        let waits: Vec<u64> = (1..=5).map(|attempt| wait(attempt, None)).collect();
        assert_eq!(waits, [30, 60, 120, 120, 120]);
        assert_eq!(wait(u32::MAX, None), 120);
        assert_eq!(wait(1, Some(Duration::from_secs(200))), 200);
        assert_eq!(wait(1, Some(Duration::MAX)), 900);
    }

    #[test]
    fn tries_leave_room_for_the_other_lines_of_a_run() {
        let logged = (1..=ATTEMPTS).filter(|attempt| is_logged(*attempt)).count();
        assert!(4 * logged < usize::try_from(LINES).unwrap(), "{logged}");
    }

    #[test]
    fn one_export_leaves_slots_for_others() {
        let settings = Settings::default();
        assert!(settings.parallel >= 4 * settings.of_an_export);
        assert!(settings.parallel >= 2 * settings.of_an_organization);
    }
}
