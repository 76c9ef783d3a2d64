//! The first event of a range of event time.

use super::support::{PROJECT, batch, event, store};
use crate::Store;
use crate::events::{EventBounds, StoredEvent, TimeRange, apply, first_times, next_time};

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;
const DAY: i64 = 24 * HOUR;
/// In the year 99.
const FAR: i64 = -59_040_000_000 * SECOND;
/// In the year 2026.
const NEAR: i64 = 1_787_322_000 * SECOND;

fn wanted(start: i64, end: i64) -> EventBounds {
    EventBounds { after: 0, up_to: u64::MAX, time: TimeRange { start, end } }
}

async fn next(store: &Store, wanted: EventBounds) -> Option<i64> {
    next_time(store, PROJECT, wanted, i64::MIN).await.unwrap()
}

/// Blocks of one partition, with events at these times.
async fn fill(store: &Store, blocks: &[Vec<i64>]) {
    let mut arrival = 1;
    for (position, times) in (0..).zip(blocks) {
        let events: Vec<StoredEvent> = times
            .iter()
            .zip(arrival..)
            .map(|(time, arrival)| StoredEvent { timestamp: *time, ..event(arrival, "a") })
            .collect();
        arrival += times.len() as u64;
        apply(store, batch(0, position, position + 1, &events)).await.unwrap();
    }
}

#[tokio::test]
async fn the_first_event_is_found_over_centuries_without_any() {
    let store = store().await;
    // The block of the first event spans all of them.
    let dense: Vec<i64> = (0..500).map(|n| NEAR + 30 * DAY + n * 7 * SECOND).collect();
    let blocks = [vec![FAR, NEAR, NEAR + 5 * SECOND], vec![NEAR + DAY], dense];
    fill(&store, &blocks).await;
    for (start, expected) in [
        (i64::MIN, Some(FAR)),
        (FAR, Some(FAR)),
        (FAR + 1, Some(NEAR)),
        (NEAR - HOUR, Some(NEAR)),
        (NEAR + 1, Some(NEAR + 5 * SECOND)),
        (NEAR + 6 * SECOND, Some(NEAR + DAY)),
        (NEAR + DAY + 1, Some(NEAR + 30 * DAY)),
        (NEAR + 30 * DAY + 8 * SECOND, Some(NEAR + 30 * DAY + 14 * SECOND)),
        (NEAR + 31 * DAY, None),
    ] {
        assert_eq!(next(&store, wanted(start, i64::MAX)).await, expected, "{start}");
    }
    assert_eq!(next(&store, wanted(FAR + 1, NEAR)).await, None, "the end does not belong to it");
    // The first three events have the arrival numbers 1 to 3.
    let some = |after, up_to| EventBounds { after, up_to, ..wanted(i64::MIN, i64::MAX) };
    assert_eq!(next(&store, some(1, 9)).await, Some(NEAR));
    assert_eq!(next(&store, some(3, 9)).await, Some(NEAR + DAY));
    assert_eq!(next(&store, some(0, 1)).await, Some(FAR));
    assert_eq!(next(&store, some(504, 600)).await, None);
}

#[tokio::test]
async fn only_intervals_with_events_are_found() {
    let store = store().await;
    let blocks =
        [vec![NEAR + 3 * HOUR, FAR], vec![NEAR, NEAR + 1, NEAR + HOUR - 1], vec![NEAR + 900 * DAY]];
    fill(&store, &blocks).await;
    let hour = |time: i64| (time.div_euclid(HOUR) + 1) * HOUR;
    let all = wanted(i64::MIN, i64::MAX);
    let found = |most| first_times(&store, PROJECT, all, most, hour);
    // From 2026-08-21T14:20 on: the last event of the hour is in the next interval.
    let expected = [FAR, NEAR, NEAR + HOUR - 1, NEAR + 3 * HOUR, NEAR + 900 * DAY];
    assert_eq!(found(100).await.unwrap(), expected);
    assert_eq!(found(2).await.unwrap(), expected[..2]);
}

#[tokio::test]
async fn an_import_without_order_is_searched_too() {
    let store = store().await;
    // Each block spans years, and has many pointers.
    let at = |n: i64| NEAR - ((2_999 - n) * 7_919 % 3_000) * DAY;
    let times: Vec<i64> = (0..3_000).map(at).collect();
    let blocks: Vec<Vec<i64>> = times.chunks(500).map(<[i64]>::to_vec).collect();
    fill(&store, &blocks).await;
    let first = *times.iter().min().unwrap();
    assert_eq!(next(&store, wanted(i64::MIN, i64::MAX)).await, Some(first));
    for start in [first + 1, first + 40 * DAY + 1, NEAR - DAY + 1] {
        let expected = times.iter().copied().filter(|time| *time >= start).min();
        assert_eq!(next(&store, wanted(start, i64::MAX)).await, expected, "{start}");
    }
}
