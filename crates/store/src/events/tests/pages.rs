//! Pages by event time and by arrival.

use std::time::{Duration, Instant};

use uuid::Uuid;
use weir_model::events::EventQuery;
use weir_model::{ProjectId, Timestamp};

use super::support::{PROJECT, batch, event, events, query, store};
use crate::bind::bind;
use crate::db::Statement;
use crate::engine::KEPT_BLOCKS;
use crate::events::{
    Begin, Cursor, Head, LIVE_PARTITIONS, StoredEvent, apply, arrivals, head, live_partition, page,
    page_until, skip,
};

/// Longer than any of these tests takes.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn pages_come_newest_first_across_blocks_and_partitions() {
    let store = store().await;
    apply(&store, batch(0, 0, 1, &events(1, 40, "a"))).await.unwrap();
    apply(&store, batch(1, 0, 1, &events(41, 90, "b"))).await.unwrap();
    apply(&store, batch(0, 1, 2, &events(91, 100, "a"))).await.unwrap();

    let mut seen = Vec::new();
    let mut next = query(7);
    loop {
        let (part, more) = page(&store, PROJECT, &next).await.unwrap();
        seen.extend(part.iter().map(|e| e.arrival));
        let Some(last) = part.last().filter(|_| more) else { break };
        next.before = Some(Timestamp::from_micros(last.timestamp));
        next.before_uuid = Some(last.uuid);
    }
    assert_eq!(seen, (1..=100).rev().collect::<Vec<_>>());

    let arrivals = arrivals(&store, PROJECT, None, 30).await.unwrap();
    let numbers: Vec<u64> = arrivals.events.iter().map(|e| e.arrival).collect();
    assert_eq!(numbers, (71..=100).rev().collect::<Vec<_>>());
    assert!(arrivals.more);
}

#[tokio::test]
async fn arrivals_of_a_partition_that_is_silent_are_found_too() {
    let store = store().await;
    // One old event in a partition, then many in another one, in several blocks.
    apply(&store, batch(1, 0, 1, &events(1, 1, "b"))).await.unwrap();
    for block in 0..5_u64 {
        let first = 10_000 * (block + 1);
        let block = batch(0, block, block + 1, &events(first, first + 9, "a"));
        apply(&store, block).await.unwrap();
    }
    // A head without events: only skipped events were counted there.
    let mut nothing = batch(2, 0, 1, &events(1, 1, "c"));
    nothing.projects[0].blocks.clear();
    nothing.projects[0].uuids.clear();
    nothing.projects[0].head = Head::empty();
    apply(&store, nothing).await.unwrap();

    let of = async |before, limit| {
        let page = arrivals(&store, PROJECT, before, limit).await.unwrap();
        let numbers: Vec<u64> = page.events.iter().map(|event| event.arrival).collect();
        (numbers, page.more)
    };
    assert_eq!(of(None, 3).await, (vec![50_009, 50_008, 50_007], true));
    assert_eq!(of(Some(50_001), 2).await, (vec![50_000, 40_009], true));
    assert_eq!(of(Some(10_001), 5).await, (vec![10_000, 1], false));
    assert_eq!(of(Some(1), 5).await, (vec![], false));
    let (everything, more) = of(None, 100).await;
    assert_eq!((everything.len(), more), (51, false));
}

#[tokio::test]
async fn pages_of_large_events_are_shorter() {
    let store = store().await;
    let mut large = events(1, 40, "a");
    for event in &mut large {
        event.properties = format!(r#"{{"x":"{}"}}"#, "x".repeat(1_000_000));
    }
    apply(&store, batch(0, 0, 1, &large)).await.unwrap();
    let (first, more) = page(&store, PROJECT, &query(100)).await.unwrap();
    // Many requests read pages concurrently, and each keeps its own in memory.
    assert_eq!((first.len(), more), (2, true));
    assert_eq!(store.kept_blocks.available_permits(), KEPT_BLOCKS);
    let last = first.last().unwrap();
    let next = EventQuery {
        before: Some(Timestamp::from_micros(last.timestamp)),
        before_uuid: Some(last.uuid),
        ..query(100)
    };
    let (second, _) = page(&store, PROJECT, &next).await.unwrap();
    assert_eq!(second[0].arrival + 1, last.arrival);
    // Without a budget to keep blocks they are decoded again.
    let all = KEPT_BLOCKS.try_into().unwrap();
    let _taken = store.kept_blocks.try_acquire_many(all).unwrap();
    assert_eq!(page(&store, PROJECT, &next).await.unwrap().0, second);
}

#[tokio::test]
async fn filters() {
    let store = store().await;
    let partition = live_partition(PROJECT, "a");
    apply(&store, batch(partition, 0, 1, &events(1, 30, "a"))).await.unwrap();
    let others = live_partition(PROJECT, "b");
    let from = if others == partition { 1 } else { 0 };
    apply(&store, batch(others, from, 2, &events(31, 60, "b"))).await.unwrap();

    let of = |query: EventQuery| {
        let store = store.clone();
        async move {
            let (found, _) = page(&store, PROJECT, &query).await.unwrap();
            found.iter().map(|e| e.arrival).collect::<Vec<_>>()
        }
    };
    let by_id = EventQuery { distinct_id: Some("a".to_owned()), ..query(3) };
    assert_eq!(of(by_id).await, [30, 29, 28]);
    let by_ids = EventQuery { any_of: vec!["a".to_owned(), "nobody".to_owned()], ..query(3) };
    assert_eq!(of(by_ids).await, [30, 29, 28]);
    let by_name = EventQuery { event: Some("event 1".to_owned()), ..query(2) };
    assert_eq!(of(by_name).await, [58, 55]);
    let by_uuid = EventQuery { uuid: Some(Uuid::from_u128(17)), ..query(2) };
    assert_eq!(of(by_uuid).await, [17]);
    let between = EventQuery {
        after: Some(Timestamp::from_micros(10_000_000)),
        before: Some(Timestamp::from_micros(13_000_000)),
        ..query(10)
    };
    assert_eq!(of(between).await, [12, 11]);
    let nobody = EventQuery { distinct_id: Some("nobody".to_owned()), ..query(3) };
    assert_eq!(of(nobody).await, Vec::<u64>::new());
    let (elsewhere, _) = page(&store, ProjectId(8), &query(5)).await.unwrap();
    assert!(elsewhere.is_empty());
}

#[tokio::test]
async fn events_that_were_given_another_distinct_id_are_found_by_it() {
    let store = store().await;
    let own = live_partition(PROJECT, "a");
    let other = (own + 1) % LIVE_PARTITIONS;
    apply(&store, batch(own, 0, 1, &events(1, 3, "a"))).await.unwrap();
    let astray = batch(other, 0, 1, &events(4, 6, "a"));
    assert!(astray.projects[0].head.strays);
    apply(&store, astray).await.unwrap();
    let by_id = EventQuery { distinct_id: Some("a".to_owned()), ..query(9) };
    let (found, _) = page(&store, PROJECT, &by_id).await.unwrap();
    assert_eq!(found.iter().map(|e| e.arrival).collect::<Vec<_>>(), [6, 5, 4, 3, 2, 1]);
}

#[tokio::test]
async fn events_are_passed_over_by_the_counts_of_their_blocks() {
    let store = store().await;
    for block in 0..20_u64 {
        let part = events(block * 100 + 1, block * 100 + 100, "a");
        apply(&store, batch(0, block, block + 1, &part)).await.unwrap();
    }
    let to = |number: u64| Begin::Behind {
        time: i64::try_from(number).unwrap() * 1_000_000,
        uuid: Uuid::from_u128(number.into()),
    };
    for offset in [1, 7, 100, 101, 1_234, 1_999, 2_000] {
        let found = skip(&store, PROJECT, &query(1), offset, PATIENCE).await.unwrap();
        assert_eq!(found, to(2_001 - offset), "{offset}");
    }
    let beyond = skip(&store, PROJECT, &query(1), 2_001, PATIENCE).await.unwrap();
    assert_eq!(beyond, Begin::Beyond);
    // After the cursor of a page, also among events of one time.
    let behind = EventQuery {
        before: Some(Timestamp::from_micros(1_000_000_000)),
        before_uuid: Some(Uuid::from_u128(1_000)),
        ..query(1)
    };
    assert_eq!(skip(&store, PROJECT, &behind, 1, PATIENCE).await.unwrap(), to(999));
    let late = skip(&store, PROJECT, &query(1), 1_000, Duration::ZERO).await.unwrap();
    assert_eq!(late, Begin::TooLong);
}

/// An event may have a time in any year, and any client with the project key may send
/// one.
#[tokio::test]
async fn centuries_without_events_are_passed_over() {
    const DAY: i64 = 86_400_000_000;
    // In the years 99, 1512, and some days of 2026.
    const TIMES: [i64; 5] = [
        -59_040_000_000_000_000,
        -14_450_000_000_000_000,
        1_787_000_000_000_000,
        1_787_000_000_000_000 + 70 * DAY,
        1_787_000_000_000_000 + 71 * DAY,
    ];
    let store = store().await;
    for (at, (time, arrival)) in TIMES.into_iter().zip(1..).enumerate() {
        let event = StoredEvent { timestamp: time, ..event(arrival, "a") };
        let at = at as u64;
        let mut write = batch(0, at, at + 1, &[event]);
        (write.projects[0].head.from_time, write.projects[0].head.to_time) = (TIMES[0], TIMES[4]);
        apply(&store, write).await.unwrap();
    }
    let began = Instant::now();
    let (found, more) = page(&store, PROJECT, &query(9)).await.unwrap();
    assert_eq!(found.iter().map(|e| e.arrival).collect::<Vec<_>>(), [5, 4, 3, 2, 1]);
    assert!(!more);
    let before = |before: i64, limit| EventQuery {
        before: Some(Timestamp::from_micros(before)),
        ..query(limit)
    };
    let (found, more) = page(&store, PROJECT, &before(TIMES[2], 1)).await.unwrap();
    assert_eq!((found[0].arrival, more), (2, true));
    for offset in 1..=5_u64 {
        let found = skip(&store, PROJECT, &query(1), offset, PATIENCE).await.unwrap();
        let at = 5 - usize::try_from(offset).unwrap();
        let uuid = Uuid::from_u128(6 - u128::from(offset));
        assert_eq!(found, Begin::Behind { time: TIMES[at], uuid }, "{offset}");
    }
    assert_eq!(skip(&store, PROJECT, &query(1), 6, PATIENCE).await.unwrap(), Begin::Beyond);
    // Ranges of 64 days over both gaps would be 11,000 for every page.
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_head_that_says_nothing_of_strays_has_none() {
    let store = store().await;
    let own = live_partition(PROJECT, "a");
    apply(&store, batch(own, 0, 1, &events(1, 3, "a"))).await.unwrap();
    let before = Statement::write("an older head", "UPDATE event_head UNSET strays;");
    store.db.run(before, bind! {}).await.unwrap();
    let head = head(&store, PROJECT, own).await.unwrap().unwrap();
    assert!(!head.strays);
    let by_id = EventQuery { distinct_id: Some("a".to_owned()), ..query(9) };
    assert_eq!(page(&store, PROJECT, &by_id).await.unwrap().0.len(), 3);
}

#[tokio::test]
async fn pages_of_an_import_that_is_not_sorted_are_complete_and_in_order() {
    const DAY: u64 = 86_400;
    let store = store().await;
    let mut sent = Vec::new();
    for block in 0..40_u64 {
        let mut part = events(block * 50 + 1, block * 50 + 50, "a");
        for event in &mut part {
            // Anywhere within three years, several within a second.
            let second = event.arrival * 7_919 % 1_913 * DAY / 2 + event.arrival % 3;
            event.timestamp = i64::try_from(second * 1_000_000 + event.arrival % 7).unwrap();
            event.event = format!("event {}", event.arrival % 11);
        }
        sent.extend(part.iter().map(|event| (event.timestamp, event.uuid)));
        let mut write = batch(4, block, block + 1, &part);
        write.projects[0].head.to_time = sent.iter().map(|(at, _)| *at).max().unwrap();
        apply(&store, write).await.unwrap();
    }
    sent.sort_unstable_by(|left, right| right.cmp(left));
    let walk = async |first: EventQuery| {
        let (mut seen, mut next) = (Vec::new(), first);
        loop {
            let (part, more) = page(&store, PROJECT, &next).await.unwrap();
            seen.extend(part.iter().map(|event| (event.timestamp, event.uuid)));
            let Some(last) = part.last().filter(|_| more) else { return seen };
            next.before = Some(Timestamp::from_micros(last.timestamp));
            next.before_uuid = Some(last.uuid);
        }
    };
    assert_eq!(walk(query(173)).await, sent);
    let named = EventQuery { event: Some("event 4".to_owned()), ..query(31) };
    let of_name = |(_, uuid): &&(i64, Uuid)| uuid.as_u128() % 11 == 4;
    let all_of_name: Vec<_> = sent.iter().filter(of_name).copied().collect();
    assert_eq!(walk(named.clone()).await, all_of_name);
    // Pages whose time is up are short, and the next ones continue.
    let after = sent[300].0;
    for (first, expected) in [(query(31), &sent), (named, &all_of_name)] {
        let expected: Vec<_> = expected.iter().filter(|(at, _)| *at > after).copied().collect();
        let first = EventQuery { after: Some(Timestamp::from_micros(after)), ..first };
        let (mut seen, mut next, mut short) = (Vec::new(), first, 0);
        loop {
            let late = Some(Instant::now());
            let (part, rest) = page_until(&store, PROJECT, &next, late).await.unwrap();
            seen.extend(part.iter().map(|event| (event.timestamp, event.uuid)));
            let Some(Cursor { before, uuid }) = rest else { break };
            short += usize::from(part.len() < 31);
            (next.before, next.before_uuid) = (Some(Timestamp::from_micros(before)), uuid);
        }
        assert!(short > 10, "{short}");
        assert_eq!(seen, expected);
    }
    for (filter, all) in [
        (query(9), sent.clone()),
        (
            EventQuery { event: Some("event 4".to_owned()), ..query(9) },
            sent.iter().filter(of_name).copied().collect(),
        ),
    ] {
        for offset in [1, 2, 99, all.len() / 2, all.len() - 1, all.len(), all.len() + 1] {
            let skipped = skip(&store, PROJECT, &filter, offset as u64, PATIENCE).await.unwrap();
            let expected = all
                .get(offset - 1)
                .map_or(Begin::Beyond, |(time, uuid)| Begin::Behind { time: *time, uuid: *uuid });
            assert_eq!(skipped, expected, "{offset}");
        }
    }
    let (after, before) = (sent[900].0, sent[400].0);
    let between = EventQuery {
        after: Some(Timestamp::from_micros(after)),
        before: Some(Timestamp::from_micros(before)),
        ..query(5_000)
    };
    let expected: Vec<_> =
        sent.iter().filter(|(at, _)| *at > after && *at < before).copied().collect();
    assert_eq!(walk(between).await, expected);
}
