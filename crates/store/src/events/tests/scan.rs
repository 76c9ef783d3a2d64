//! Scans in order of arrival, and the counts of the same selections.

use std::collections::HashSet;

use super::support::{PROJECT, batch, events, store};
use crate::Store;
use crate::events::{
    Except, Scan, Selection, StoredEvent, TimeRange, apply, count, estimate, size,
};

/// All events of a selection, by a scan.
async fn scanned(store: &Store, selection: Selection) -> Vec<u64> {
    let counted = count(store, PROJECT, selection.clone()).await.unwrap();
    let mut scan = Scan::begin(store, PROJECT, selection).await.unwrap();
    let mut numbers = Vec::new();
    while let Some(events) = scan.next().await.unwrap() {
        assert!(!events.is_empty());
        numbers.extend(events.iter().map(|event| event.arrival));
    }
    assert_eq!(counted, numbers.len() as u64, "{numbers:?}");
    numbers
}

fn arrived(after: u64, up_to: u64) -> Selection {
    Selection { after, up_to, ..Selection::default() }
}

fn names(names: &[&str]) -> HashSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn a_scan_merges_partitions_in_order_of_arrival() {
    let store = store().await;
    // Blocks of four partitions, which alternate after 1, 2, 3 ... events.
    let (mut next, mut position) = (1, [0; 4]);
    let mut round = 0;
    while next <= 3_000 {
        let partition = round % 4;
        let to = next + (round as u64 * 7) % 90;
        let at = position[partition];
        let batch = batch(u16::try_from(partition).unwrap(), at, at + 1, &events(next, to, "a"));
        apply(&store, batch).await.unwrap();
        position[partition] += 1;
        (next, round) = (to + 1, round + 1);
    }
    let last = next - 1;
    assert_eq!(scanned(&store, arrived(0, last)).await, (1..=last).collect::<Vec<_>>());
    for (after, up_to) in [(0, 1), (17, 18), (500, 1_777), (2_990, last), (5, 5), (last, last)] {
        let expected: Vec<u64> = (after + 1..=up_to).collect();
        assert_eq!(scanned(&store, arrived(after, up_to)).await, expected, "{after} {up_to}");
    }
    // Names alternate between `event 0`, `event 1` and `event 2`.
    let some = Selection { include: names(&["event 1", "x"]), ..arrived(10, 2_000) };
    let expected: Vec<u64> = (11..=2_000).filter(|n| n % 3 == 1).collect();
    assert_eq!(scanned(&store, some).await, expected);
    let others = Selection { exclude: names(&["event 1"]), ..arrived(10, 2_000) };
    let expected: Vec<u64> = (11..=2_000).filter(|n| n % 3 != 1).collect();
    assert_eq!(scanned(&store, others).await, expected);
    let none = Selection { include: names(&["x"]), ..arrived(0, last) };
    assert_eq!(scanned(&store, none).await, Vec::<u64>::new());
    // Event number n happened in second n.
    let time = Some(TimeRange { start: 100_000_000, end: 1_700_000_000 });
    let some = Selection { time, ..arrived(150, 1_500) };
    assert_eq!(scanned(&store, some).await, (151..=1_500).collect::<Vec<_>>());
    let some = Selection { time, ..arrived(0, last) };
    assert_eq!(scanned(&store, some).await, (100..=1_699).collect::<Vec<_>>());
    for (up_to, start, end) in [(1_500, 100, 700), (last, 0, 1_000), (1_000, 900, 2_000), (9, 0, 9)]
    {
        let time = TimeRange { start: start * 1_000_000, end: end * 1_000_000 };
        let some = Selection { except: vec![Except { up_to, time }], ..arrived(0, last) };
        let happened = |n: u64| i64::try_from(n).unwrap();
        let expected: Vec<u64> =
            (1..=last).filter(|n| *n > up_to || !(start..end).contains(&happened(*n))).collect();
        assert_eq!(scanned(&store, some).await, expected, "{up_to} {start} {end}");
    }
}

#[tokio::test]
async fn an_estimate_is_near_what_a_count_finds() {
    let store = store().await;
    let all = events(1, 3_000, "a");
    for (block, some) in (0..).zip(all.chunks(500)) {
        apply(&store, batch(0, block, block + 1, some)).await.unwrap();
    }
    let about = async |selection| estimate(&store, PROJECT, selection).await.unwrap();
    // When summaries decide, the estimate is exact.
    assert_eq!(about(arrived(0, 3_000)).await, 3_000);
    // Event number n happened in second n.
    let in_time = |start: i64, end: i64| Selection {
        time: Some(TimeRange { start: start * 1_000_000, end: end * 1_000_000 }),
        ..arrived(0, u64::MAX)
    };
    assert_eq!(about(in_time(4_000, 9_000)).await, 0);
    let found = about(in_time(250, 1_750)).await;
    assert!((1_490..=1_510).contains(&found), "{found}");
    let some = Selection { include: names(&["event 1"]), ..arrived(0, 3_000) };
    let found = about(some).await;
    assert!((1_000..=1_010).contains(&found), "{found}");
}

#[tokio::test]
async fn a_scan_of_event_time_finds_what_is_not_sorted() {
    let store = store().await;
    let mut all = events(1, 2_000, "a");
    // Spread over a year, unsorted.
    for event in &mut all {
        event.timestamp = (i64::try_from(event.arrival).unwrap() * 7_919 % 365) * 86_400_000_000;
    }
    for (block, some) in (0..).zip(all.chunks(500)) {
        apply(&store, batch(0, block, block + 1, some)).await.unwrap();
    }
    let day = 86_400_000_000;
    let time = TimeRange { start: 100 * day, end: 107 * day };
    let within = |event: &&StoredEvent| event.timestamp >= time.start && event.timestamp < time.end;
    let expected: Vec<u64> = all.iter().filter(within).map(|event| event.arrival).collect();
    assert!(expected.len() > 20);
    let selection = Selection { time: Some(time), ..arrived(0, 2_000) };
    assert_eq!(scanned(&store, selection).await, expected);
}

#[test]
fn the_size_of_an_event_counts_more_than_its_texts() {
    let event = &events(1, 1, "a")[0];
    let texts = [&event.event, &event.distinct_id, &event.properties, &event.elements_chain];
    let texts: usize = texts.into_iter().map(String::len).sum();
    assert!(size(event) >= size_of::<StoredEvent>() + texts, "{}", size(event));
}
