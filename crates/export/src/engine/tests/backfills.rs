//! Backfills, run by run.

use weir_model::exports::{Backfill, Run, Status};
use weir_model::{BackfillId, Timestamp};
use weir_store::exports::{BackfillRow, backfills};
use weir_store::ids;
use weir_testkit::until;

use super::support::{BEGIN, Fixture, PROJECT, replace};
use crate::destination::Failure;
use crate::engine::ExportServices as _;

const HOUR: i64 = 3_600;
/// Midnight before `BEGIN`.
const MIDNIGHT: i64 = BEGIN - 14 * HOUR - 20 * 60;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

/// A paused export with 240 events of the day, ten in every hour.
async fn paused() -> Fixture {
    let fixture = Fixture::new("hour").await;
    fixture.change(|row| row.paused = true).await;
    let hour = |n: u64| i64::try_from((n * 7) % 24).unwrap();
    fixture.arrive_at(240, |n| MIDNIGHT + hour(n) * HOUR + 5).await;
    fixture
}

pub(super) async fn start(fixture: &Fixture, backfill: BackfillRow) -> BackfillId {
    let row = fixture.row().await;
    replace(&fixture.store, &row, Some(&backfill)).await;
    backfill.id
}

pub(super) fn backfill(fixture: &Fixture, start: Option<i64>, end: i64) -> BackfillRow {
    let now = fixture.services.now();
    BackfillRow {
        id: BackfillId(ids::time_ordered(now)),
        export: fixture.export,
        project: PROJECT,
        start_at: start.map(at),
        end_at: at(end),
        total_runs: None,
        retry_of: None,
        created_at: now,
    }
}

pub(super) async fn ended(fixture: &Fixture, id: BackfillId) -> Backfill {
    until(async || {
        let found = backfills::find(&fixture.store, PROJECT, fixture.export, id).await.unwrap();
        let found = found.unwrap();
        if found.status.is_active() { Err(found) } else { Ok(found) }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backfill_is_exported_interval_by_interval() {
    let mut fixture = paused().await;
    fixture.start();
    // From 01:30 to 05:00: the last part is shorter.
    let (from, to) = (MIDNIGHT + 3 * HOUR / 2, MIDNIGHT + 5 * HOUR);
    let id = start(&fixture, backfill(&fixture, Some(from), to)).await;
    let done = ended(&fixture, id).await;
    assert_eq!((done.status, done.total_records_count), (Status::Completed, Some(30)));
    let progress = done.progress.unwrap();
    // There are no events in the last, shorter part.
    assert_eq!((progress.total_runs, progress.finished_runs, progress.progress), (3, 3, 1.0));
    assert_eq!(done.adjusted_start_at, None);
    let runs = fixture.runs().await;
    let bounds = |run: &Run| (run.data_interval_start.unwrap(), run.data_interval_end);
    let expected = [0, 1, 2].map(|n| (at(from + n * HOUR), at(from + (n + 1) * HOUR)));
    assert_eq!(runs.iter().map(bounds).collect::<Vec<_>>(), expected);
    let counts: Vec<_> = runs.iter().map(|run| run.records_completed).collect();
    assert_eq!(counts, [Some(10); 3]);
    // In order of arrival, from one hour.
    let second = fixture.world(|world| world.there[&at(from + 2 * HOUR)].clone());
    assert_eq!(fixture.world(|world| world.by_time.clone()), [true; 3]);
    assert!(second.is_sorted() && second.iter().all(|n| n * 7 % 24 == 3), "{second:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backfill_without_a_start_begins_with_the_first_event() {
    let mut fixture = paused().await;
    fixture.start();
    let id = start(&fixture, backfill(&fixture, None, MIDNIGHT + 2 * HOUR)).await;
    let done = ended(&fixture, id).await;
    assert_eq!((done.status, done.total_records_count), (Status::Completed, Some(20)));
    assert_eq!(done.adjusted_start_at, Some(at(MIDNIGHT)));
    // A backfill with a much earlier start has the same events.
    let id =
        start(&fixture, backfill(&fixture, Some(MIDNIGHT - 999 * HOUR), MIDNIGHT + HOUR)).await;
    let done = ended(&fixture, id).await;
    assert_eq!((done.total_records_count, done.progress.unwrap().total_runs), (Some(10), 1));
    assert_eq!(done.adjusted_start_at, Some(at(MIDNIGHT)));
    // There are no events before that.
    let id = start(&fixture, backfill(&fixture, None, MIDNIGHT - HOUR)).await;
    assert_eq!(ended(&fixture, id).await.status, Status::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backfill_does_not_wait_for_a_clock_that_was_set_back() {
    let mut fixture = paused().await;
    fixture.services.set_ahead(24 * HOUR);
    let id = start(&fixture, backfill(&fixture, Some(MIDNIGHT), MIDNIGHT + HOUR)).await;
    fixture.services.set_ahead(-24 * HOUR);
    fixture.start();
    let done = ended(&fixture, id).await;
    assert_eq!((done.status, done.total_records_count), (Status::Completed, Some(10)));
}

#[tokio::test(flavor = "multi_thread")]
async fn intervals_without_events_have_no_runs() {
    let mut fixture = paused().await;
    // The year 99, and a day of the year before.
    let far = -59_040_000_000;
    fixture.arrive_at(3, |n| if n % 3 == 1 { far } else { MIDNIGHT - 300 * 24 * HOUR }).await;
    fixture.start();
    let id = start(&fixture, backfill(&fixture, None, MIDNIGHT + 2 * HOUR)).await;
    let done = ended(&fixture, id).await;
    assert_eq!((done.status, done.total_records_count), (Status::Completed, Some(23)));
    assert_eq!(done.progress.unwrap().total_runs, 4);
    assert_eq!(done.adjusted_start_at, Some(at(far)));
    let begins: Vec<_> =
        fixture.runs().await.iter().filter_map(|run| run.data_interval_start).collect();
    let expected = [far, MIDNIGHT - 300 * 24 * HOUR, MIDNIGHT, MIDNIGHT + HOUR].map(at);
    assert_eq!(begins, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_a_backfill_follow_each_other_without_a_pause() {
    let mut fixture = paused().await;
    // Sixty ticks would take longer than a test waits.
    fixture.tick = std::time::Duration::from_secs(1);
    fixture.start();
    fixture.arrive_at(120, |n| MIDNIGHT + i64::try_from(n % 60).unwrap() * HOUR).await;
    let id = start(&fixture, backfill(&fixture, Some(MIDNIGHT), MIDNIGHT + 60 * HOUR)).await;
    let done = ended(&fixture, id).await;
    assert_eq!((done.status, done.progress.unwrap().finished_runs), (Status::Completed, 60));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_backfill_begins_no_further_run() {
    let mut fixture = paused().await;
    fixture.world(|world| world.hangs = true);
    fixture.start();
    let id = start(&fixture, backfill(&fixture, Some(MIDNIGHT), MIDNIGHT + 5 * HOUR)).await;
    fixture.until_world(|world| world.begun == 1).await;
    let now = fixture.services.now();
    let cancelled = backfills::cancel(&fixture.store, PROJECT, fixture.export, id, now, &[]).await;
    assert!(cancelled.unwrap());
    fixture.until_world(|world| world.aborted == 1).await;
    fixture.world(|world| world.hangs = false);
    fixture.until_checked().await;
    let runs = fixture.runs().await;
    assert_eq!((runs.len(), runs[0].status), (1, Status::Cancelled));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_ends_its_backfill() {
    let mut fixture = paused().await;
    let fault = Failure::permanent("AccessDenied", "No.");
    fixture.world(|world| world.fault = Some(fault));
    fixture.start();
    let id = start(&fixture, backfill(&fixture, Some(MIDNIGHT), MIDNIGHT + 5 * HOUR)).await;
    assert_eq!(ended(&fixture, id).await.status, Status::Failed);
    assert_eq!(fixture.runs().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backfill_ends_after_a_run_that_ended_early() {
    let mut fixture = paused().await;
    fixture.world(|world| world.panics = true);
    fixture.start();
    let id = start(&fixture, backfill(&fixture, Some(MIDNIGHT), MIDNIGHT + HOUR)).await;
    let done = ended(&fixture, id).await;
    assert_eq!((done.status, done.total_records_count), (Status::Completed, Some(10)));
    let runs = fixture.runs().await;
    assert_eq!((runs.len(), runs[0].status), (1, Status::Completed));
    assert_eq!(fixture.world(|world| world.begun), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_repeated_with_the_same_events() {
    let mut fixture = Fixture::new("hour").await;
    // These events are old. Only their arrival puts them into this run.
    fixture.arrive_at(9, |_| MIDNIGHT - 900 * HOUR).await;
    fixture.world(|world| world.fault = Some(Failure::permanent("AccessDenied", "No.")));
    fixture.start();
    fixture.services.advance(40 * 60);
    let failed = fixture.until_runs(|runs| runs.len() == 1 && !runs[0].status.is_active()).await;
    fixture.world(|world| world.fault = None);
    let run = &failed[0];
    let (from, to) = (BEGIN - 20 * 60, BEGIN + 40 * 60);
    let again = BackfillRow { retry_of: Some(run.id), ..backfill(&fixture, Some(from), to) };
    let id = start(&fixture, again).await;
    let done = ended(&fixture, id).await;
    assert_eq!((done.status, done.total_records_count), (Status::Completed, Some(9)));
    let runs = fixture.runs().await;
    assert_eq!(runs.len(), 2);
    assert_eq!(fixture.there(40 * 60), (1..=9).collect::<Vec<_>>());
    // The second run replaces the first one.
    assert_eq!(fixture.world(|world| world.by_time.clone()), [false; 2]);
}
