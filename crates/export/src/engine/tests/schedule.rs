//! Which events belong to which interval.

use weir_model::exports::{Run, Status};
use weir_store::exports::{Backfilled, BackfilledPause};
use weir_testkit::until;

use super::support::{BEGIN, Fixture};
use crate::destination::Failure;
use crate::engine::ExportServices as _;

const MINUTE: i64 = 60;
/// From 14:20 to 15:00.
const FIRST: i64 = 40 * MINUTE;
const HOUR: i64 = 60 * MINUTE;

fn ended(count: usize) -> impl Fn(&[weir_model::exports::Run]) -> bool {
    move |runs| runs.len() == count && runs.iter().all(|run| run.status == Status::Completed)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interval_is_exported_when_it_ends() {
    let mut fixture = Fixture::new("hour").await;
    // These events are older than the export, in the same interval.
    fixture.arrive(10).await;
    fixture.start();
    fixture.arrive(2_500).await;
    fixture.until_checked().await;
    assert_eq!(fixture.runs().await, []);
    fixture.services.advance(FIRST);
    let runs = fixture.until_runs(ended(1)).await;
    assert_eq!(runs[0].data_interval_start.unwrap().to_string(), "2026-08-21T14:00:00Z");
    assert_eq!(runs[0].data_interval_end.to_string(), "2026-08-21T15:00:00Z");
    assert_eq!(
        (runs[0].records_total_count, runs[0].records_completed),
        (Some(2_510), Some(2_510))
    );
    assert_eq!(fixture.there(FIRST), (1..=2_510).collect::<Vec<_>>());

    fixture.arrive(7).await;
    fixture.services.advance(HOUR);
    fixture.until_runs(ended(2)).await;
    assert_eq!(fixture.there(FIRST + HOUR), (2_511..=2_517).collect::<Vec<_>>());
    // Nothing arrives, so the destination is not called.
    fixture.services.advance(HOUR);
    let runs = fixture.until_runs(ended(3)).await;
    assert_eq!((runs[2].records_total_count, runs[2].records_completed), (Some(0), Some(0)));
    assert_eq!(fixture.world(|world| world.begun), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lagging_log_delays_only_the_runs_that_need_it() {
    let mut fixture = Fixture::new("hour").await;
    fixture.start();
    fixture.arrive(5).await;
    let cadence = async |name: &str| {
        until(async || {
            let all = weir_store::exports::schedule::all(&fixture.store).await.unwrap();
            all.get(&fixture.export).is_some_and(|schedule| schedule.cadence == name)
        })
        .await;
    };
    cadence("hour").await;
    fixture.world(|world| world.lags.send_replace(true));
    fixture.services.advance(FIRST);
    fixture.until_checked().await;
    assert_eq!(fixture.runs().await, []);
    fixture.change(|row| row.interval = "day".to_owned()).await;
    cadence("day").await;
    fixture.world(|world| world.lags.send_replace(false));
    // Midnight.
    fixture.services.advance(9 * HOUR);
    fixture.until_runs(ended(1)).await;
    assert_eq!(fixture.there(FIRST + 9 * HOUR), (1..=5).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn missed_intervals_have_what_came_in_them() {
    let mut fixture = Fixture::new("hour").await;
    fixture.start();
    fixture.arrive(5).await;
    fixture.services.advance(FIRST);
    fixture.until_runs(ended(1)).await;
    fixture.stop().await;
    // Events came in before the stop, and are applied at the next start.
    for _ in 0..3 {
        fixture.arrive(10).await;
        fixture.services.advance(HOUR);
    }
    fixture.services.advance(10 * MINUTE);
    fixture.arrive(100).await;
    fixture.start();
    let runs = fixture.until_runs(ended(4)).await;
    let totals: Vec<_> = runs.iter().map(|run| run.records_completed).collect();
    assert_eq!(totals, [Some(5), Some(10), Some(10), Some(10)]);
    assert_eq!(fixture.there(FIRST + 2 * HOUR), (16..=25).collect::<Vec<_>>());
    fixture.services.advance(HOUR);
    fixture.until_runs(ended(5)).await;
    assert_eq!(fixture.there(FIRST + 4 * HOUR), (36..=135).collect::<Vec<_>>());
}

/// Waits until the schedule has passed the boundary this many seconds after `BEGIN`.
pub(super) async fn passed(fixture: &Fixture, end: i64) {
    until(async || {
        let all = weir_store::exports::schedule::all(&fixture.store).await.unwrap();
        let last = all.get(&fixture.export).map(|schedule| schedule.last_end);
        last.is_some_and(|last| last.micros() / 1_000_000 == BEGIN + end)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_over_boundaries_leaves_out_what_came_in_it() {
    let mut fixture = Fixture::new("hour").await;
    fixture.start();
    fixture.arrive(5).await;
    fixture.change(|row| row.paused = true).await;
    fixture.services.advance(FIRST);
    passed(&fixture, FIRST).await;
    fixture.arrive(3).await;
    fixture.services.advance(HOUR);
    passed(&fixture, FIRST + HOUR).await;
    fixture.arrive(4).await;
    fixture.change(|row| row.paused = false).await;
    fixture.arrive(2).await;
    fixture.services.advance(HOUR);
    let runs = fixture.until_runs(ended(1)).await;
    assert_eq!(runs[0].data_interval_end.to_string(), "2026-08-21T17:00:00Z");
    assert_eq!(fixture.there(FIRST + 2 * HOUR), (9..=14).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interval_that_a_backfill_makes_up_for_has_no_run() {
    let mut fixture = Fixture::new("hour").await;
    fixture.start();
    fixture.arrive(5).await;
    fixture.services.advance(FIRST);
    fixture.until_runs(ended(1)).await;
    fixture.services.advance(10 * MINUTE);
    let since = fixture.services.now();
    fixture.change(|row| (row.paused, row.last_paused_at) = (true, Some(since))).await;
    fixture.arrive(3).await;
    // Two seconds after the boundary, and the schedule has not reached it.
    fixture.world(|world| world.lags.send_replace(true));
    fixture.services.advance(50 * MINUTE + 2);
    let pause =
        BackfilledPause { backfill: None, earlier: None, since, until: fixture.services.now() };
    fixture.change(|row| (row.paused, row.backfilled) = (false, Backfilled(Some(pause)))).await;
    fixture.arrive(2).await;
    fixture.world(|world| world.lags.send_replace(false));
    passed(&fixture, FIRST + HOUR).await;
    assert_eq!(fixture.runs().await.len(), 1);
    fixture.services.advance(HOUR);
    let runs = fixture.until_runs(ended(2)).await;
    assert_eq!(runs[1].data_interval_end.to_string(), "2026-08-21T17:00:00Z");
    assert_eq!(fixture.there(FIRST + 2 * HOUR), [9, 10]);
}

#[tokio::test(flavor = "multi_thread")]
async fn intervals_that_wait_for_room_when_a_pause_begins_are_made_up_for() {
    const STEP: i64 = 5 * MINUTE;
    let mut fixture = Fixture::new("every 5 minutes").await;
    let fault = Failure::retryable("ConnectionRefused", "No.");
    fixture.world(|world| world.fault = Some(fault));
    fixture.start();
    // Twelve intervals have their run, and two wait.
    for n in 1..=14 {
        fixture.arrive(1).await;
        fixture.services.advance(STEP);
        fixture.until_runs(|runs| runs.len() == n.min(12)).await;
    }
    let now = fixture.services.now();
    fixture.change(|row| (row.paused, row.last_paused_at) = (true, Some(now))).await;
    fixture.services.advance(MINUTE);
    fixture.arrive(1).await;
    fixture.world(|world| world.fault = None);
    // Attempts that have met the fault end.
    let now = fixture.services.now();
    let is_tried = |run: &Run| run.status == Status::Running && run.next_try_at <= Some(now);
    fixture.until_runs(|runs| !runs.iter().any(is_tried)).await;
    fixture.services.advance(STEP + MINUTE);
    fixture.until_runs(ended(14)).await;
    for n in 1..=14_u64 {
        assert_eq!(fixture.there(STEP * i64::try_from(n).unwrap()), [n]);
    }
    // Events that arrived in the pause are skipped.
    passed(&fixture, 15 * STEP).await;
    fixture.change(|row| row.paused = false).await;
    fixture.arrive(1).await;
    fixture.services.advance(STEP);
    let runs = fixture.until_runs(ended(15)).await;
    assert_eq!(runs[14].data_interval_end.micros() / 1_000_000, BEGIN + 16 * STEP);
    assert_eq!(fixture.there(16 * STEP), [16]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_back_doubles_nothing() {
    let mut fixture = Fixture::new("every 5 minutes").await;
    fixture.start();
    fixture.arrive(5).await;
    fixture.services.advance(5 * MINUTE);
    fixture.until_runs(ended(1)).await;
    fixture.services.advance(-12 * MINUTE);
    fixture.arrive(5).await;
    fixture.until_checked().await;
    assert_eq!(fixture.runs().await.len(), 1);
    fixture.services.advance(17 * MINUTE);
    fixture.until_runs(ended(2)).await;
    assert_eq!(fixture.there(10 * MINUTE), (6..=10).collect::<Vec<_>>());
    assert_eq!(fixture.services.now().micros() / 1_000_000, BEGIN + 10 * MINUTE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_ahead_has_each_interval_once() {
    let mut fixture = Fixture::new("hour").await;
    fixture.start();
    fixture.arrive(5).await;
    passed(&fixture, FIRST - HOUR).await;
    // 20:20
    fixture.services.set_ahead(6 * HOUR);
    fixture.arrive(3).await;
    let runs = fixture.until_runs(ended(6)).await;
    let ends: Vec<i64> = runs.iter().map(|run| run.data_interval_end.micros()).collect();
    let expected = (0..6).map(|n| (BEGIN + FIRST + n * HOUR) * 1_000_000);
    assert_eq!(ends, expected.collect::<Vec<_>>());
    assert_eq!(fixture.there(FIRST), (1..=5).collect::<Vec<_>>());
    fixture.services.advance(FIRST);
    fixture.until_runs(ended(7)).await;
    assert_eq!(fixture.there(FIRST + 6 * HOUR), [6, 7, 8]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_ahead_and_back_leaves_nothing_out() {
    let mut fixture = Fixture::new("hour").await;
    fixture.start();
    fixture.arrive(5).await;
    passed(&fixture, FIRST - HOUR).await;
    // 20:20: six intervals end early.
    fixture.services.set_ahead(6 * HOUR);
    fixture.arrive(3).await;
    fixture.until_runs(ended(6)).await;
    // It is 14:20 again. New events belong to the next interval, which ends at 21:00.
    fixture.services.set_ahead(-6 * HOUR);
    fixture.arrive(4).await;
    fixture.services.advance(FIRST);
    fixture.arrive(2).await;
    fixture.until_checked().await;
    assert_eq!(fixture.runs().await.len(), 6);
    fixture.services.advance(6 * HOUR);
    fixture.until_runs(ended(7)).await;
    assert_eq!(fixture.there(FIRST), (1..=5).collect::<Vec<_>>());
    assert_eq!(fixture.there(FIRST + 6 * HOUR), (6..=14).collect::<Vec<_>>());

    // The same if the engine misses the boundary, and the times of receipt decide.
    let ahead = 2 * HOUR + 10 * MINUTE;
    fixture.services.set_ahead(ahead);
    fixture.arrive(1).await;
    fixture.until_runs(ended(9)).await;
    fixture.services.set_ahead(-ahead);
    fixture.arrive(2).await;
    fixture.stop().await;
    fixture.services.advance(3 * HOUR + 10 * MINUTE);
    fixture.arrive(1).await;
    fixture.start();
    fixture.until_runs(ended(10)).await;
    assert_eq!(fixture.there(FIRST + 9 * HOUR), [15, 16, 17]);
    fixture.services.advance(HOUR);
    fixture.until_runs(ended(11)).await;
    assert_eq!(fixture.there(FIRST + 10 * HOUR), [18]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unnoticed_clock_jump_skips_nothing() {
    let mut fixture = Fixture::new("hour").await;
    fixture.start();
    fixture.arrive(5).await;
    passed(&fixture, FIRST - HOUR).await;
    fixture.stop().await;
    fixture.services.set_ahead(6 * HOUR);
    fixture.arrive(3).await;
    fixture.services.set_ahead(-6 * HOUR);
    fixture.arrive(2).await;
    fixture.services.advance(FIRST + 10 * MINUTE);
    fixture.start();
    fixture.until_runs(ended(1)).await;
    // The clock says that they were received at 20:20, so the interval ends before them.
    assert_eq!(fixture.there(FIRST), (1..=5).collect::<Vec<_>>());
    fixture.services.advance(50 * MINUTE);
    fixture.until_runs(ended(2)).await;
    assert_eq!(fixture.there(FIRST + HOUR), (6..=10).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_queries_choose_events() {
    let mut fixture = Fixture::new("hour").await;
    fixture.start();
    let config = r#"{"include_events":["event 1","event 2"],"exclude_events":["event 2"]}"#;
    fixture.change(|row| row.config = config.to_owned()).await;
    fixture.arrive(100).await;
    fixture.services.advance(FIRST);
    let runs = fixture.until_runs(ended(1)).await;
    assert_eq!((runs[0].records_total_count, runs[0].records_completed), (Some(20), Some(20)));
    let expected: Vec<u64> = (1..=100).filter(|n| n % 5 == 1).collect();
    assert_eq!(fixture.there(FIRST), expected);

    let query = "SELECT uuid, distinct_id FROM events WHERE distinct_id = 'user 3'";
    fixture.change(|row| (row.config, row.query) = ("{}".to_owned(), Some(query.to_owned()))).await;
    fixture.arrive(100).await;
    fixture.services.advance(HOUR);
    let runs = fixture.until_runs(ended(2)).await;
    let expected: Vec<u64> = (101..=200).filter(|n| n % 7 == 3).collect();
    assert_eq!(fixture.there(FIRST + HOUR), expected);
    let count = i32::try_from(expected.len()).ok();
    assert_eq!((runs[1].records_total_count, runs[1].records_completed), (count, count));
}
