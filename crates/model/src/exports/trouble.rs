//! Whether an export fails, since when, and why.
//!
//! What belongs here: what its newest runs say about that, for the API, pages and
//! counts alike. What does not: when a run is tried again (`weir-export`).

use serde::{Deserialize, Serialize};

use super::{Run, Status};
use crate::time::Timestamp;

/// What is wrong with an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    /// When the first of the tries failed after which nothing was completed.
    pub since: Timestamp,
    /// When a run is tried again; none: that goes on now, or no run is tried again.
    pub next_try: Option<Timestamp>,
    /// What went wrong last.
    pub error: Option<String>,
}

impl Trouble {
    /// What the newest runs of an export say, newest first; none: it does not fail.
    ///
    /// A run that is tried again counts, whatever became of those after it; so do runs
    /// that failed, unless one was completed since.
    #[must_use]
    pub fn of(runs: &[Run]) -> Option<Self> {
        let retried = runs.iter().filter(|run| run.is_retried());
        let ended = |run: &&Run| !run.status.is_active() && run.status != Status::Cancelled;
        let failed = runs.iter().filter(ended).take_while(|run| run.status.is_failure());
        let mut failing: Vec<&Run> = retried.chain(failed).collect();
        failing.sort_by_key(|run| std::cmp::Reverse(run.last_updated_at));
        let since = |run: &&Run| run.failing_since.or(run.finished_at).unwrap_or(run.created_at);
        Some(Self {
            since: failing.iter().map(since).min()?,
            next_try: failing.iter().filter_map(|run| run.next_try_at).min(),
            error: failing.iter().find_map(|run| run.latest_error.clone()),
        })
    }
}

impl Run {
    /// Whether a try of it failed, and it is tried again.
    #[must_use]
    pub const fn is_retried(&self) -> bool {
        self.status.is_active() && self.failing_since.is_some()
    }

    /// Whether it failed, or its last try did.
    #[must_use]
    pub const fn is_failing(&self) -> bool {
        self.status.is_failure() || self.is_retried()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::ids::{BatchExportId, RunId};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    /// A run that changed last at this time.
    fn run(status: Status, seconds: i64) -> Run {
        Run {
            id: RunId(Uuid::nil()),
            status,
            records_completed: None,
            latest_error: status.is_failure().then(|| format!("error of {seconds}")),
            data_interval_start: None,
            data_interval_end: at(0),
            cursor: None,
            created_at: at(seconds - 9),
            finished_at: (!status.is_active()).then(|| at(seconds)),
            last_updated_at: at(seconds),
            records_total_count: None,
            batch_export: BatchExportId(Uuid::nil()),
            failing_since: None,
            next_try_at: None,
        }
    }

    fn retried(since: i64, next_try: Option<i64>) -> Run {
        Run {
            failing_since: Some(at(since)),
            next_try_at: next_try.map(at),
            latest_error: Some("error of a try".to_owned()),
            ..run(Status::Running, since + 5)
        }
    }

    fn told(runs: &[Run]) -> Option<(Timestamp, Option<Timestamp>, String)> {
        Trouble::of(runs).map(|found| (found.since, found.next_try, found.error.unwrap()))
    }

    #[test]
    fn a_run_that_is_tried_again_is_trouble() {
        let tried = "error of a try".to_owned();
        let expected = Some((at(20), Some(at(50)), tried.clone()));
        assert_eq!(told(&[retried(20, Some(50))]), expected);
        // Others were completed before it, and even after it.
        let runs = [run(Status::Completed, 30), retried(20, Some(50)), run(Status::Completed, 10)];
        assert_eq!(told(&runs), expected);
        assert_eq!(told(&[retried(20, None)]), Some((at(20), None, tried)));
    }

    #[test]
    fn it_began_with_the_first_failure_since_a_completed_run() {
        let runs = [
            run(Status::Running, 70),
            run(Status::FailedRetryable, 60),
            run(Status::Cancelled, 50),
            Run { failing_since: Some(at(35)), ..run(Status::TimedOut, 40) },
            run(Status::Completed, 30),
            run(Status::Failed, 20),
        ];
        assert_eq!(told(&runs), Some((at(35), None, "error of 60".to_owned())));
        assert_eq!(told(&runs[4..]), None);
        assert_eq!(told(&[run(Status::Cancelled, 1), run(Status::Starting, 2)]), None);
        assert_eq!(told(&[]), None);
    }
}
