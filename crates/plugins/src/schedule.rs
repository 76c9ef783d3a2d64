//! When scheduled tasks of a plugin are due (PLG-26).
//!
//! What belongs here: boundaries of minutes, hours and days (UTC). What does not: clocks
//! and running (`scheduler`).

use weir_model::Timestamp;
use weir_sandbox::Task;

const SECOND: i64 = 1_000_000;

/// All scheduled tasks.
pub(crate) const TASKS: [Task; 3] = [Task::EveryMinute, Task::EveryHour, Task::EveryDay];

/// The next action for a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing yet.
    Nothing,
    /// Schedules start at this boundary. The task does not run for it.
    Begin(Timestamp),
    /// The task runs for this boundary.
    Run(Timestamp),
}

/// The next action for a task that last ran for the boundary `last`.
///
/// Of several missed boundaries only the last one counts. If the clock is set back by
/// less than a period, the task waits until the clock has caught up, so that nothing runs
/// twice. If it is set back by more, the schedule starts again.
pub(crate) fn due(task: Task, last: Option<Timestamp>, now: Timestamp) -> Due {
    let period = period(task) * SECOND;
    let boundary = now.micros() - now.micros().rem_euclid(period);
    let at = Timestamp::from_micros(boundary);
    match last {
        None => Due::Begin(at),
        Some(last) if last.micros() > boundary.saturating_add(period) => Due::Begin(at),
        Some(last) if last >= at => Due::Nothing,
        Some(_) => Due::Run(at),
    }
}

/// The period in seconds.
const fn period(task: Task) -> i64 {
    match task {
        Task::EveryMinute => 60,
        Task::EveryHour => 3_600,
        Task::EveryDay => 86_400,
    }
}

#[cfg(test)]
mod tests {
    use weir_model::Timestamp;
    use weir_sandbox::Task;

    use super::{Due, due};

    fn time(text: &str) -> Timestamp {
        Timestamp::parse_lenient(&format!("2026-08-{text}")).unwrap()
    }

    #[test]
    fn each_boundary_comes_once() {
        let now = time("21T14:20:31");
        let minute = time("21T14:20:00");
        assert_eq!(due(Task::EveryMinute, None, now), Due::Begin(minute));
        assert_eq!(due(Task::EveryMinute, Some(minute), now), Due::Nothing);
        let next = time("21T14:21:00");
        assert_eq!(due(Task::EveryMinute, Some(minute), next), Due::Run(next));
        assert_eq!(due(Task::EveryHour, None, now), Due::Begin(time("21T14:00")));
        assert_eq!(due(Task::EveryDay, None, now), Due::Begin(time("21T00:00")));
    }

    #[test]
    fn of_those_that_were_missed_one_is_made_up_for() {
        let (last, now) = (time("20T03:00"), time("21T14:20"));
        assert_eq!(due(Task::EveryHour, Some(last), now), Due::Run(time("21T14:00")));
    }

    #[test]
    fn a_clock_that_is_set_back_runs_nothing_twice() {
        let last = time("21T14:00");
        assert_eq!(due(Task::EveryHour, Some(last), time("21T13:10")), Due::Nothing);
        let restarted = Due::Begin(time("20T13:00"));
        assert_eq!(due(Task::EveryHour, Some(last), time("20T13:10")), restarted);
    }
}
