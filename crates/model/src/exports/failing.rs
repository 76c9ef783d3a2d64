//! Whether an export fails, since when, and why.
//!
//! What belongs here: deriving that from its newest runs, for the API, pages and counts.
//! What does not: when a run is retried (`weir-export`).

use serde::{Deserialize, Serialize};

use super::{Run, Status};
use crate::time::Timestamp;

/// The failure of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failing {
    /// Time of the first failed attempt after the last completed run.
    pub since: Timestamp,
    /// Time of the next retry; `None`: a retry is in progress, or no run is retried.
    pub next_try: Option<Timestamp>,
    /// The last error.
    pub error: Option<String>,
}

impl Failing {
    /// The failure according to the newest runs of an export, newest first; `None`: it
    /// does not fail.
    ///
    /// A run that is being retried counts, independent of later runs. Failed runs count
    /// unless a later one was completed.
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
    /// Whether an attempt failed and the run is retried.
    pub const fn is_retried(&self) -> bool {
        self.status.is_active() && self.failing_since.is_some()
    }

    /// Whether it failed, or its last attempt did.
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

    /// A run that was last changed at this time.
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

    fn trouble(runs: &[Run]) -> Option<(Timestamp, Option<Timestamp>, String)> {
        Failing::of(runs).map(|found| (found.since, found.next_try, found.error.unwrap()))
    }

    #[test]
    fn a_run_that_is_tried_again_is_trouble() {
        let tried = "error of a try".to_owned();
        let expected = Some((at(20), Some(at(50)), tried.clone()));
        assert_eq!(trouble(&[retried(20, Some(50))]), expected);
        // Other runs were completed before it, and even after it.
        let runs = [run(Status::Completed, 30), retried(20, Some(50)), run(Status::Completed, 10)];
        assert_eq!(trouble(&runs), expected);
        assert_eq!(trouble(&[retried(20, None)]), Some((at(20), None, tried)));
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
        assert_eq!(trouble(&runs), Some((at(35), None, "error of 60".to_owned())));
        assert_eq!(trouble(&runs[4..]), None);
        assert_eq!(trouble(&[run(Status::Cancelled, 1), run(Status::Starting, 2)]), None);
        assert_eq!(trouble(&[]), None);
    }
}
