//! Pauses with a backfill: missed events come, and no event comes twice.

use weir_model::exports::{Run, Status};
use weir_model::{BackfillId, Timestamp};
use weir_store::exports::{self, BackfillRow, Backfilled, BackfilledPause, ExportRow};
use weir_store::ids;

use super::backfills::{backfill, ended};
use super::schedule::passed;
use super::support::{BEGIN, Fixture, replace};
use crate::engine::ExportServices as _;

const MINUTE: i64 = 60;
/// From 14:20 to 15:00.
const FIRST: i64 = 40 * MINUTE;
const HOUR: i64 = 60 * MINUTE;

/// An hourly export whose first run, at 15:00, has exported events 1 to 5.
async fn begun() -> Fixture {
    let mut fixture = Fixture::new("hour").await;
    fixture.start();
    fixture.arrive(5).await;
    fixture.services.advance(FIRST);
    until_done(&fixture, 1).await;
    fixture
}

fn is_done(run: &Run) -> bool {
    run.status == Status::Completed
}

async fn until_done(fixture: &Fixture, count: usize) {
    fixture.until_runs(|runs| runs.len() == count && runs.iter().all(is_done)).await;
}

async fn all_done(fixture: &Fixture) {
    fixture.until_runs(|runs| runs.iter().all(is_done)).await;
}

async fn pause(fixture: &Fixture) -> Timestamp {
    let since = fixture.services.now();
    fixture.change(|row| (row.paused, row.last_paused_at) = (true, Some(since))).await;
    since
}

/// Unpauses with a backfill that starts at a time in seconds after `BEGIN`, as the
/// service does.
async fn unpause(fixture: &Fixture, since: Timestamp, from: i64) -> BackfillId {
    let (until, from) =
        (fixture.services.now(), Timestamp::from_micros((BEGIN + from) * 1_000_000));
    let row = BackfillRow { start_at: Some(from), end_at: until, ..backfill(fixture, None, 0) };
    let before = fixture.row().await;
    let earlier = before.backfilled.0.and_then(|pause| pause.backfill);
    let pause = BackfilledPause { backfill: Some(row.id), earlier, since, until };
    let after = ExportRow {
        paused: false,
        backfilled: Backfilled(Some(pause)),
        revision: ids::time_ordered(until),
        ..before.clone()
    };
    replace(&fixture.store, &after, Some(&row)).await;
    row.id
}

/// All events at the destination, as often as they are there.
fn everything(fixture: &Fixture) -> Vec<u64> {
    let mut all: Vec<u64> =
        fixture.world(|world| world.there.values().flatten().copied().collect());
    all.sort_unstable();
    all
}

/// Seconds since 1970.
fn now(fixture: &Fixture) -> i64 {
    fixture.services.now().micros() / 1_000_000
}

#[tokio::test(flavor = "multi_thread")]
async fn what_arrives_in_a_pause_comes_once_whenever_it_happened() {
    let fixture = begun().await;
    // Within the first seconds of the interval: the run may have exported the event
    // already.
    fixture.arrive(1).await;
    fixture.services.advance(10 * MINUTE);
    let since = pause(&fixture).await;
    let at = now(&fixture);
    // Events of now, of yesterday, of tomorrow, and of a moment before the pause.
    fixture.arrive(3).await;
    fixture.arrive_at(2, |_| at - 24 * HOUR).await;
    fixture.arrive_at(1, |_| at + 24 * HOUR).await;
    fixture.arrive_at(1, |_| at - 5 * MINUTE).await;
    fixture.services.advance(50 * MINUTE + HOUR + MINUTE);
    passed(&fixture, FIRST + 2 * HOUR).await;
    fixture.arrive(2).await;
    let id = unpause(&fixture, since, FIRST).await;
    // Events that were not yet applied when the pause ended.
    let at = now(&fixture);
    fixture.arrive_at(3, |_| at - MINUTE).await;
    assert_eq!(ended(&fixture, id).await.status, Status::Completed);
    fixture.arrive(2).await;
    fixture.services.advance(HOUR);
    // These events are in a run of the backfill or in the next run of the schedule.
    passed(&fixture, FIRST + 3 * HOUR).await;
    all_done(&fixture).await;
    assert_eq!(everything(&fixture), (1..=20).collect::<Vec<_>>());
    // The pause affects only one run.
    fixture.arrive(2).await;
    fixture.services.advance(HOUR);
    passed(&fixture, FIRST + 4 * HOUR).await;
    all_done(&fixture).await;
    assert_eq!(fixture.there(FIRST + 4 * HOUR), [21, 22]);
    assert_eq!(everything(&fixture), (1..=22).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_within_an_interval_doubles_nothing() {
    let fixture = begun().await;
    fixture.services.advance(10 * MINUTE);
    fixture.arrive(2).await;
    let since = pause(&fixture).await;
    fixture.services.advance(10 * MINUTE);
    fixture.arrive(3).await;
    let at = now(&fixture);
    fixture.arrive_at(1, |_| at - 24 * HOUR).await;
    let id = unpause(&fixture, since, FIRST).await;
    assert_eq!(ended(&fixture, id).await.status, Status::Completed);
    fixture.arrive(4).await;
    fixture.services.advance(40 * MINUTE);
    until_done(&fixture, 3).await;
    assert_eq!(everything(&fixture), (1..=15).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn pauses_one_after_another_double_nothing() {
    let fixture = begun().await;
    let since = pause(&fixture).await;
    fixture.arrive(3).await;
    fixture.services.advance(HOUR + 30 * MINUTE);
    passed(&fixture, FIRST + HOUR).await;
    fixture.arrive_at(1, |_| BEGIN - 24 * HOUR).await;
    let first = unpause(&fixture, since, FIRST).await;
    assert_eq!(ended(&fixture, first).await.status, Status::Completed);
    fixture.arrive(1).await;
    fixture.services.advance(10 * MINUTE);
    // The interval has no run yet.
    let since = pause(&fixture).await;
    fixture.arrive(2).await;
    fixture.services.advance(HOUR);
    passed(&fixture, FIRST + 2 * HOUR).await;
    fixture.arrive_at(1, |_| BEGIN - 48 * HOUR).await;
    let second = unpause(&fixture, since, FIRST + HOUR + 30 * MINUTE).await;
    assert_eq!(ended(&fixture, second).await.status, Status::Completed);
    fixture.arrive(1).await;
    fixture.services.advance(20 * MINUTE);
    passed(&fixture, FIRST + 3 * HOUR).await;
    all_done(&fixture).await;
    assert_eq!(everything(&fixture), (1..=14).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn pauses_before_the_first_is_noted_double_nothing() {
    let fixture = begun().await;
    let since = pause(&fixture).await;
    fixture.arrive(3).await;
    fixture.services.advance(HOUR + 10 * MINUTE);
    passed(&fixture, FIRST + HOUR).await;
    fixture.arrive_at(2, |_| BEGIN - 24 * HOUR).await;
    // The log is behind, so neither is planned.
    fixture.world(|world| world.lags.send_replace(true));
    let first = unpause(&fixture, since, FIRST).await;
    fixture.services.advance(MINUTE);
    let since = pause(&fixture).await;
    fixture.arrive(2).await;
    fixture.services.advance(MINUTE);
    let second = unpause(&fixture, since, FIRST + HOUR + 10 * MINUTE).await;
    fixture.world(|world| world.lags.send_replace(false));
    for id in [first, second] {
        assert_eq!(ended(&fixture, id).await.status, Status::Completed);
    }
    fixture.arrive(1).await;
    fixture.services.advance(48 * MINUTE);
    passed(&fixture, FIRST + 2 * HOUR).await;
    all_done(&fixture).await;
    assert_eq!(everything(&fixture), (1..=13).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backfill_that_is_planned_late_doubles_nothing() {
    let mut fixture = begun().await;
    let since = pause(&fixture).await;
    fixture.arrive(3).await;
    fixture.services.advance(HOUR + 10 * MINUTE);
    passed(&fixture, FIRST + HOUR).await;
    fixture.stop().await;
    let id = unpause(&fixture, since, FIRST).await;
    // The service was down at a boundary. Then clients send older events.
    fixture.services.advance(HOUR);
    fixture.arrive_at(4, |_| BEGIN + FIRST + 30 * MINUTE).await;
    fixture.arrive(1).await;
    fixture.start();
    assert_eq!(ended(&fixture, id).await.status, Status::Completed);
    passed(&fixture, FIRST + 2 * HOUR).await;
    fixture.services.advance(50 * MINUTE);
    passed(&fixture, FIRST + 3 * HOUR).await;
    all_done(&fixture).await;
    assert_eq!(everything(&fixture), (1..=13).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_that_nothing_makes_up_for_stays_skipped() {
    let fixture = begun().await;
    pause(&fixture).await;
    fixture.arrive(3).await;
    fixture.services.advance(2 * HOUR + 20 * MINUTE);
    passed(&fixture, FIRST + 2 * HOUR).await;
    fixture.change(|row| row.paused = false).await;
    // Another pause in the same interval, with a backfill: events 9 to 11.
    let since = pause(&fixture).await;
    fixture.arrive(3).await;
    fixture.services.advance(HOUR);
    passed(&fixture, FIRST + 3 * HOUR).await;
    let id = unpause(&fixture, since, FIRST + 2 * HOUR).await;
    assert_eq!(ended(&fixture, id).await.status, Status::Completed);
    fixture.arrive(2).await;
    fixture.services.advance(40 * MINUTE);
    passed(&fixture, FIRST + 4 * HOUR).await;
    all_done(&fixture).await;
    let expected: Vec<u64> = (1..=5).chain(9..=13).collect();
    assert_eq!(everything(&fixture), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backfill_that_is_cancelled_unplanned_leaves_a_plain_pause() {
    let fixture = begun().await;
    let since = pause(&fixture).await;
    fixture.arrive(3).await;
    fixture.services.advance(HOUR + 10 * MINUTE);
    passed(&fixture, FIRST + HOUR).await;
    fixture.world(|world| world.lags.send_replace(true));
    let id = unpause(&fixture, since, FIRST).await;
    let (store, export) = (&fixture.store, fixture.export);
    let now = fixture.services.now();
    let cancelled =
        exports::backfills::cancel(store, super::support::PROJECT, export, id, now, &[]);
    assert!(cancelled.await.unwrap());
    fixture.world(|world| world.lags.send_replace(false));
    fixture.arrive(2).await;
    fixture.services.advance(50 * MINUTE);
    until_done(&fixture, 2).await;
    assert_eq!(fixture.there(FIRST + 2 * HOUR), [9, 10]);
}
