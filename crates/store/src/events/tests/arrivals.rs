//! Searches by arrival.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::support::{PROJECT, batch, events, store as empty_store};
use crate::Store;
use crate::events::{Search, StoredEvent, apply, live_partition, search};

/// The arrival numbers that a search finds, in all its pages, and the number of pages.
async fn found(store: &Store, asked: Search<'_>) -> (Vec<u64>, usize) {
    let (mut numbers, mut before, mut pages) = (Vec::new(), asked.before, 0);
    loop {
        let page = search(store, PROJECT, &Search { before, ..asked }).await.unwrap();
        numbers.extend(page.events.iter().map(|event| event.arrival));
        pages += 1;
        match page.next {
            Some(next) => before = Some(next),
            None => return (numbers, pages),
        }
    }
}

fn all() -> Search<'static> {
    Search {
        before: None,
        after: 0,
        since: None,
        limit: 7,
        within: None,
        distinct_id: None,
        takes_name: None,
        takes: &|_| true,
    }
}

/// A hundred events in three blocks of two partitions.
async fn hundred(change: impl Fn(&mut StoredEvent)) -> Store {
    let store = empty_store().await;
    for (partition, from, first, last, id) in
        [(0, 0, 1, 40, "a"), (1, 0, 41, 90, "b"), (0, 1, 91, 100, "a")]
    {
        let mut events = events(first, last, id);
        events.iter_mut().for_each(&change);
        apply(&store, batch(partition, from, from + 1, &events)).await.unwrap();
    }
    store
}

#[tokio::test]
async fn a_search_continues_behind_what_it_found() {
    let store = hundred(|_| {}).await;
    let takes_name = |name: &str| name == "event 0";
    let takes = |event: &StoredEvent| takes_name(&event.event);
    let named = || Search { takes_name: Some(&takes_name), takes: &takes, ..all() };
    let expected: Vec<u64> = (1..=100).rev().filter(|number| number % 3 == 0).collect();
    assert_eq!(found(&store, named()).await, (expected.clone(), 5));
    // Out of time, it ends after each block, and still misses nothing.
    let late = Search { within: Some(Duration::ZERO), ..named() };
    let (numbers, pages) = found(&store, late).await;
    assert_eq!(numbers, expected);
    assert!(pages > 5, "{pages}");
    let newer = Search { after: 90, ..named() };
    assert_eq!(found(&store, newer).await.0, [99, 96, 93]);
    let none = Search { takes_name: Some(&|_| false), ..all() };
    assert_eq!(found(&store, none).await, (Vec::new(), 1));
}

#[tokio::test]
async fn events_of_a_distinct_id_and_since_a_time() {
    let store = hundred(|event| event.received_at = event.arrival.try_into().unwrap()).await;
    let takes = |event: &StoredEvent| event.received_at >= 60;
    let since = Search { since: Some(60), takes: &takes, limit: 100, ..all() };
    assert_eq!(found(&store, since).await.0, (60..=100).rev().collect::<Vec<_>>());

    let store = empty_store().await;
    let partition = live_partition(PROJECT, "a");
    apply(&store, batch(partition, 0, 1, &events(1, 3, "a"))).await.unwrap();
    let takes = |event: &StoredEvent| event.distinct_id == "a";
    let about = Search { distinct_id: Some("a"), takes: &takes, ..all() };
    assert_eq!(found(&store, about).await.0, [3, 2, 1]);
}

#[tokio::test]
async fn events_before_a_replay_are_found_by_their_time() {
    // Two blocks of a replay follow a block of the range.
    let store = empty_store().await;
    for (at, first, received_at) in
        [(0, 1, 1), (1, 11, 1), (2, 21, 1), (3, 31, 1), (4, 41, 100), (5, 51, 2), (6, 61, 3)]
    {
        let mut events = events(first, first + 9, "a");
        events.iter_mut().for_each(|event| event.received_at = received_at);
        apply(&store, batch(0, at, at + 1, &events)).await.unwrap();
    }
    let read = AtomicUsize::new(0);
    let takes = |event: &StoredEvent| {
        read.fetch_add(1, Ordering::Relaxed);
        event.received_at >= 50
    };
    let since = Search { since: Some(50), takes: &takes, limit: 100, ..all() };
    assert_eq!(found(&store, since).await.0, (41..=50).rev().collect::<Vec<_>>());
    assert_eq!(read.into_inner(), 60, "the first block is not read");
}
