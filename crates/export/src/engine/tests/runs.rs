//! Attempts, faults, cancelling, resuming after a stop.

use std::time::Duration;

use weir_model::exports::{LogLevel, Run, Status};
use weir_store::exports::runs::{self, Progress};
use weir_testkit::until;

use super::support::Fixture;
use crate::destination::Failure;
use crate::engine::ExportServices as _;
use crate::engine::settings::ATTEMPTS;

const MINUTE: i64 = 60;
const FIRST: i64 = 5 * MINUTE;

fn status(of: Status) -> impl Fn(&[Run]) -> bool {
    move |runs| runs.first().is_some_and(|run| run.status == of)
}

fn refused() -> Failure {
    Failure::retryable("ConnectionRefused", "The destination takes no connections.")
}

/// An engine, events, and the time at which their interval ends.
async fn begun(events: u64) -> Fixture {
    let mut fixture = Fixture::new("every 5 minutes").await;
    fixture.start();
    fixture.arrive(events).await;
    // The export ends with its first run, because these tests check one run.
    fixture.change(|row| row.end_at = Some(row.created_at.plus_seconds(FIRST))).await;
    fixture
}

/// The interval has ended, and the destination has failed with this fault. Returns the
/// run.
async fn failing(events: u64, fault: Failure) -> (Fixture, Run) {
    let fixture = begun(events).await;
    fixture.world(|world| world.fault = Some(fault));
    fixture.services.advance(FIRST);
    let has_failed = |runs: &[Run]| runs.first().is_some_and(|run| run.latest_error.is_some());
    let mut runs = fixture.until_runs(has_failed).await;
    let run = runs.remove(0);
    (fixture, run)
}

/// The interval has ended, and the destination does not answer.
async fn hanging(events: u64) -> Fixture {
    let fixture = begun(events).await;
    fixture.world(|world| world.hangs = true);
    fixture.services.advance(FIRST);
    fixture.until_world(|world| world.begun == 1).await;
    fixture
}

/// The interval has ended, and the engine was stopped when a destination that remembers
/// its rows had 2,000 of 6,000 events.
async fn stopped_in_between() -> Fixture {
    let mut fixture = begun(6_000).await;
    fixture.world(|world| {
        world.goes_on = true;
        world.hangs_after = Some(2_000);
    });
    fixture.services.advance(FIRST);
    fixture.until_world(|world| world.there.values().any(|rows| rows.len() >= 2_000)).await;
    fixture.stop().await;
    fixture
}

/// Two minutes pass while no attempt is under way. Returns whether one has begun: it
/// begins if it is due.
async fn next_try(fixture: &Fixture) -> bool {
    let waits = async || {
        let run = fixture.runs().await.remove(0);
        !run.status.is_active() || run.next_try_at.is_some_and(|next| next > fixture.services.now())
    };
    until(&waits).await;
    let before = fixture.world(|world| world.begun);
    fixture.services.advance(2 * MINUTE);
    let has_begun = || fixture.world(|world| world.begun) > before;
    until(async || has_begun() || waits().await).await;
    has_begun()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destination_that_is_down_for_an_hour_gets_everything_once() {
    let (fixture, run) = failing(300, refused()).await;
    let text = "ConnectionRefused: The destination takes no connections.";
    assert_eq!((run.status, run.latest_error.as_deref()), (Status::Running, Some(text)));
    let mut seconds = 0;
    while seconds < 60 * MINUTE || fixture.world(|world| world.begun) < 10 {
        next_try(&fixture).await;
        seconds += 2 * MINUTE;
        assert!(seconds < 300 * MINUTE, "too few tries");
    }
    assert_eq!(fixture.there(FIRST), Vec::<u64>::new());
    fixture.world(|world| world.fault = None);
    while fixture.runs().await[0].status.is_active() {
        next_try(&fixture).await;
    }
    let runs = fixture.until_runs(status(Status::Completed)).await;
    assert_eq!(fixture.there(FIRST), (1..=300).collect::<Vec<_>>());
    assert_eq!((runs.len(), runs[0].records_completed), (1, Some(300)));
    assert_eq!(runs[0].latest_error, None);
    let lines = fixture.lines(runs[0].id).await;
    let failed = lines.iter().filter(|line| line.level == LogLevel::Warning).count();
    // Not every attempt has lines: the log keeps space for the end of a long run.
    let tries = fixture.world(|world| world.begun);
    assert!((9..=10 + tries / 10).contains(&failed), "{failed} of {tries}");
    assert!(lines[1].message.contains("the next is in 30 seconds"), "{}", lines[1].message);
    assert_eq!(lines.last().unwrap().message, "Completed: 300 events are delivered.");
    assert_eq!(fixture.world(|world| world.reported_failed.len()), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destination_that_stays_down_is_given_up() {
    let (fixture, _) = failing(3, refused()).await;
    fixture.services.advance(7 * 60 * MINUTE);
    let runs = fixture.until_runs(status(Status::FailedRetryable)).await;
    assert!(runs[0].finished_at.is_some());
    fixture.until_world(|world| world.reported_failed == [runs[0].id]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_answer_is_not_a_try_that_takes_too_long() {
    let late = Failure::retryable("TimedOut", "The destination did not answer in time.");
    let (fixture, _) = failing(3, late).await;
    fixture.services.advance(7 * 60 * MINUTE);
    fixture.until_runs(status(Status::FailedRetryable)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_ahead_ends_no_try() {
    let fixture = hanging(300).await;
    fixture.services.set_ahead(24 * 60 * MINUTE);
    fixture.services.until_limit_checked().await;
    fixture.until_checked().await;
    assert_eq!(fixture.runs().await[0].status, Status::Running);
    assert_eq!(fixture.world(|world| world.aborted), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_count_of_a_run_is_refreshed_when_its_selection_changes() {
    let (fixture, run) = failing(300, refused()).await;
    assert_eq!(run.records_total_count, Some(300));
    fixture.change(|row| row.config = r#"{"include_events":["event 1"]}"#.to_owned()).await;
    fixture.world(|world| world.fault = None);
    while fixture.runs().await[0].status.is_active() {
        next_try(&fixture).await;
    }
    let runs = fixture.until_runs(status(Status::Completed)).await;
    assert_eq!((runs[0].records_total_count, runs[0].records_completed), (Some(60), Some(60)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_ends_early_at_every_try_is_given_up() {
    let mut fixture = hanging(3).await;
    let found = fixture.until_runs(status(Status::Running)).await;
    fixture.kill();
    let often = Progress {
        status: Status::Running,
        completed: None,
        total: Some(3),
        latest_error: None,
        failing_since: None,
        next_try: None,
        cursor: None,
        delivered: None,
        attempt: ATTEMPTS,
        bytes: 0,
        target: None,
    };
    let now = fixture.services.now();
    let (store, export) = (fixture.store.clone(), fixture.export);
    assert!(runs::step(&store, export, found[0].id, &often, now).await.unwrap());
    fixture.start();
    let ended = fixture.until_runs(status(Status::Failed)).await;
    assert!(ended[0].latest_error.as_ref().unwrap().starts_with("EndedEarly"));
    fixture.until_world(|world| world.reported_failed == [ended[0].id]).await;
    assert_eq!(fixture.world(|world| world.begun), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_that_stays_ends_the_run_and_ten_of_them_pause_the_export() {
    let mut fixture = Fixture::new("every 5 minutes").await;
    let fault = Failure::permanent("AccessDenied", "The user may not write. Grant it INSERT.");
    fixture.world(|world| world.fault = Some(fault));
    fixture.start();
    for n in 1..=10 {
        fixture.arrive(1).await;
        fixture.services.advance(FIRST);
        fixture
            .until_runs(|runs| {
                runs.len() == n && runs.iter().all(|run| run.status == Status::Failed)
            })
            .await;
        fixture.until_world(|world| world.reported_failed.len() == n).await;
    }
    fixture.until_world(|world| world.paused == [(10, 10)]).await;
    let runs = fixture.runs().await;
    assert_eq!((runs[0].records_total_count, runs[0].records_completed), (Some(1), None));
    // The export begins no more runs.
    fixture.arrive(1).await;
    fixture.services.advance(FIRST);
    fixture.until_checked().await;
    assert_eq!(fixture.runs().await.len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_stops_within_a_second_and_stays_cancelled() {
    let fixture = hanging(300).await;
    let runs = fixture.until_runs(status(Status::Running)).await;
    let now = fixture.services.now();
    let (store, export) = (&fixture.store, fixture.export);
    assert!(runs::request_cancel(store, export, runs[0].id, now, &[]).await.unwrap());
    fixture.until_world(|world| world.aborted == 1).await;
    fixture.world(|world| world.hangs = false);
    fixture.until_checked().await;
    let runs = fixture.runs().await;
    assert_eq!((runs[0].status, runs.len()), (Status::Cancelled, 1));
    assert_eq!(fixture.there(FIRST), Vec::<u64>::new());
    let lines = fixture.lines(runs[0].id).await;
    assert_eq!(lines.last().unwrap().message, "The run was cancelled.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_try_that_takes_too_long_is_given_up() {
    let fixture = hanging(300).await;
    fixture.services.advance(21 * MINUTE);
    fixture.until_world(|world| world.aborted == 1).await;
    let runs = fixture.until_runs(|runs| runs[0].latest_error.is_some()).await;
    assert_eq!(runs[0].status, Status::Running);
    // The next run has its own time limit, and no six hours of retries after the first
    // one.
    while !next_try(&fixture).await {
        assert!(fixture.runs().await[0].status.is_active());
    }
    fixture.services.advance(7 * 60 * MINUTE);
    let runs = fixture.until_runs(status(Status::TimedOut)).await;
    assert!(runs[0].latest_error.as_ref().unwrap().starts_with("TimedOut"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_run_restarts_where_the_destination_stores_at_the_end() {
    let mut fixture = begun(6_000).await;
    fixture.world(|world| world.hangs_after = Some(2_000));
    fixture.services.advance(FIRST);
    let runs = fixture.until_runs(status(Status::Running)).await;
    fixture.until_world(|world| world.hung == 1).await;
    fixture.kill();
    // Events that arrived since belong to another interval.
    fixture.arrive(100).await;
    fixture.world(|world| world.hangs_after = None);
    fixture.start();
    let after = fixture.until_runs(status(Status::Completed)).await;
    assert_eq!((after.len(), after[0].id), (1, runs[0].id));
    assert_eq!(after[0].records_completed, Some(6_000));
    assert_eq!(fixture.there(FIRST), (1..=6_000).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_run_resumes_where_the_destination_remembers() {
    let mut fixture = stopped_in_between().await;
    let runs = fixture.runs().await;
    let delivered = usize::try_from(runs[0].records_completed.unwrap()).unwrap();
    assert_eq!((runs[0].status, delivered), (Status::Running, fixture.there(FIRST).len()));
    assert!(runs[0].cursor.is_some() && delivered < 6_000);
    // The same destination under another name.
    fixture.change(|row| row.name = "Copy".to_owned()).await;
    fixture.world(|world| world.hangs_after = None);
    fixture.start();
    let runs = fixture.until_runs(status(Status::Completed)).await;
    assert_eq!(fixture.there(FIRST), (1..=6_000).collect::<Vec<_>>());
    assert_eq!(
        (runs[0].records_total_count, runs[0].records_completed),
        (Some(6_000), Some(6_000))
    );
    let lines = fixture.lines(runs[0].id).await;
    let goes_on = format!("Try 2: continuing after {delivered} of 6000 events.");
    assert!(lines.iter().any(|line| line.message == goes_on), "{lines:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skipped_event_is_logged_and_not_counted() {
    let omitted =
        "Event 00000000-0000-0000-0000-000000000007, column `properties`: it was left out.";
    let fixture = begun(300).await;
    fixture.world(|world| {
        world.goes_on = true;
        world.leaves_out = Some(7);
    });
    fixture.services.advance(FIRST);
    let runs = fixture.until_runs(status(Status::Completed)).await;
    let counts = (runs[0].records_total_count, runs[0].records_completed);
    assert_eq!(counts, (Some(300), Some(299)));
    fixture.until_world(|world| world.there.values().any(|rows| rows.len() == 299)).await;
    let lines = fixture.lines(runs[0].id).await;
    assert!(lines.iter().any(|line| line.message == omitted), "{lines:#?}");

    // Also when the attempt fails.
    let fixture = begun(300).await;
    fixture.world(|world| {
        world.leaves_out = Some(7);
        world.fault = Some(Failure::permanent("AccessDenied", "No."));
    });
    fixture.services.advance(FIRST);
    let runs = fixture.until_runs(status(Status::Failed)).await;
    let lines = fixture.lines(runs[0].id).await;
    assert!(lines.iter().any(|line| line.message == omitted), "{lines:#?}");
}

/// A condition that includes everyone except `user 3`, for whom its evaluation takes too
/// long.
fn query_without_an_end() -> String {
    let (few, many) = ("a".repeat(1_000), "b".repeat(1_000));
    let among = vec!["'x'"; 100].join(", ");
    format!(
        "SELECT uuid FROM events WHERE distinct_id != 'user 3' \
         OR replaceAll('{few}', 'a', '{many}') IN ({among})"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn events_with_too_slow_conditions_are_logged() {
    let fixture = begun(100).await;
    fixture.change(|row| row.query = Some(query_without_an_end())).await;
    fixture.services.advance(FIRST);
    let runs = fixture.until_runs(status(Status::Completed)).await;
    let counts = (runs[0].records_total_count, runs[0].records_completed);
    assert_eq!((counts, &runs[0].latest_error), ((Some(86), Some(86)), &None));
    assert_eq!(fixture.there(FIRST), (1..=100).filter(|n| n % 7 != 3).collect::<Vec<u64>>());
    let logged = "14 events were skipped, because the condition of the query takes too long to be \
                computed for them. One of them is 00000000-0000-0000-0000-000000000003.";
    let lines = fixture.lines(runs[0].id).await;
    let warned: Vec<&str> = lines
        .iter()
        .filter(|line| line.level == LogLevel::Warning)
        .map(|line| line.message.as_str())
        .collect();
    assert_eq!(warned, [logged]);

    // Also where no events are left.
    let fixture = begun(100).await;
    let nobody = query_without_an_end().replace("distinct_id != 'user 3'", "team_id = 0");
    fixture.change(|row| row.query = Some(nobody)).await;
    fixture.services.advance(FIRST);
    let runs = fixture.until_runs(status(Status::Completed)).await;
    assert_eq!(runs[0].records_completed, Some(0));
    let lines = fixture.lines(runs[0].id).await;
    assert!(lines.iter().any(|line| line.message.starts_with("100 events were skipped,")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_run_restarts_when_the_destination_changes() {
    let mut fixture = stopped_in_between().await;
    let before = fixture.there(FIRST).len();
    fixture.change(|row| row.config = r#"{"url":"https://elsewhere.example"}"#.to_owned()).await;
    fixture.world(|world| world.hangs_after = None);
    fixture.start();
    let runs = fixture.until_runs(status(Status::Completed)).await;
    assert_eq!(runs[0].records_completed, Some(6_000));
    assert_eq!(fixture.there(FIRST)[before..], (1..=6_000).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_an_export_that_is_deleted_stops() {
    let fixture = hanging(300).await;
    let row = fixture.row().await;
    weir_store::exports::delete(&fixture.store, row.organization, row.id, &[]).await.unwrap();
    fixture.until_world(|world| world.aborted == 1).await;
    fixture.until_runs(<[Run]>::is_empty).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_tried_again_says_since_when_and_when() {
    let (fixture, run) = failing(10, refused()).await;
    let failed_at = run.failing_since.unwrap();
    assert!(run.is_retried() && failed_at <= fixture.services.now());
    assert_eq!(run.next_try_at, Some(failed_at.plus_seconds(30)));
    // The next attempt fails, too.
    fixture.services.advance(30);
    let again = |runs: &[Run]| {
        runs.first()
            .and_then(|run| run.next_try_at)
            .is_some_and(|next| Some(next) > run.next_try_at)
    };
    let runs = fixture.until_runs(again).await;
    assert_eq!(runs[0].failing_since, Some(failed_at));
    fixture.world(|world| world.fault = None);
    fixture.services.advance(60);
    let done = fixture.until_runs(status(Status::Completed)).await.remove(0);
    assert_eq!((done.failing_since, done.next_try_at, done.latest_error), (None, None, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_after_a_failed_one_fails_since_that_one_did() {
    let mut fixture = Fixture::new("every 5 minutes").await;
    fixture.start();
    fixture.arrive(10).await;
    fixture.world(|world| world.fault = Some(Failure::permanent("AccessDenied", "No.")));
    fixture.services.advance(FIRST);
    let failed = fixture.until_runs(status(Status::Failed)).await.remove(0);
    assert!(failed.failing_since.is_some() && failed.next_try_at.is_none());
    fixture.arrive(10).await;
    fixture.services.advance(FIRST);
    let has_failed = |runs: &[Run]| runs.get(1).is_some_and(|run| run.status == Status::Failed);
    let runs = fixture.until_runs(has_failed).await;
    assert_eq!(runs[1].failing_since, failed.failing_since);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_destination_does_not_keep_a_slot() {
    let mut fixture = Fixture::new("every 5 minutes").await;
    fixture.parallel = 1;
    fixture.silence = Duration::from_millis(50);
    fixture.start();
    fixture.arrive(10).await;
    fixture.world(|world| world.hangs = true);
    fixture.services.advance(FIRST);
    fixture.until_world(|world| world.begun == 1).await;
    // The first run hangs forever. The next one gets its slot.
    fixture.world(|world| world.hangs = false);
    fixture.arrive(10).await;
    fixture.services.advance(FIRST);
    let has_run = |runs: &[Run]| runs.get(1).is_some_and(|run| run.status == Status::Completed);
    let runs = fixture.until_runs(has_run).await;
    assert_eq!(runs[0].status, Status::Running);
}
