//! Merged segments have the events of those that they replace.

use super::super::support::{PROJECT, records};
use super::reading::known;
use super::removing::add_at;
use super::seen::Seen;
use super::support::{Opened, add_blocks, merge_once, seal};
use crate::events::tests::support::query;
use crate::events::{arrivals, page};

#[tokio::test]
async fn readers_see_the_same_before_and_after_merging() {
    let mut opened = Opened::new().await;
    let sent = add_blocks(&opened.store, PROJECT, 44, 20).await;
    let known = known(&sent);
    // Ten segments in each of four partitions.
    assert_eq!(seal(&opened.store, 20).await.segments, 40);
    let before = Seen::of(&opened.store, &known).await;
    assert_eq!(before.events(), sent);
    assert_eq!(merge_once(&opened.store, 16, 1_000).await, None, "there are too few");
    let mut merged = 0;
    while let Some(done) = merge_once(&opened.store, 4, 1_000).await {
        assert_eq!((done.segments, done.events), (4, 80));
        merged += 1;
    }
    assert_eq!(merged, 8);
    // Two of four, and two that are left.
    assert_eq!(opened.segment_files().len(), 16);
    assert_eq!(records(&opened.store, "event_segment").await, 16);
    before.assert_same(&Seen::of(&opened.store, &known).await);
    // Two of one level whose sum is as large as a segment may be.
    let done = merge_once(&opened.store, 16, 199).await;
    assert_eq!(done, None);
    let done = merge_once(&opened.store, 2, 1_000).await.unwrap();
    assert_eq!((done.segments, done.events), (2, 160));
    opened = opened.reopen().await;
    before.assert_same(&Seen::of(&opened.store, &known).await);
    assert_eq!(opened.store.segment_damage(), 0);
}

#[tokio::test]
async fn a_group_that_would_become_too_large_is_merged_as_it_is() {
    let opened = Opened::new().await;
    add_blocks(&opened.store, PROJECT, 24, 20).await;
    // Five segments in each partition. Three have 60 events.
    seal(&opened.store, 20).await;
    let done = merge_once(&opened.store, 16, 60).await.unwrap();
    assert_eq!((done.segments, done.events), (3, 60));
    // Alone, or with its equals, a segment of that size is left as it is.
    let mut sizes = vec![done.segments];
    while let Some(done) = merge_once(&opened.store, 16, 60).await {
        sizes.push(done.segments);
    }
    assert_eq!(sizes, [3, 3, 3, 3], "the two that are left wait for a third");
}

/// Retention removes whole segments. So what becomes old in another month stays apart.
#[tokio::test]
async fn segments_are_merged_with_those_of_the_same_time() {
    const DAY: i64 = 86_400_000_000;
    let opened = Opened::new().await;
    for (number, day) in (0..).zip([1, 9, 20, 100, 101, 300, 400]) {
        add_at(&opened, 0, number * 10 + 1, day * DAY).await;
    }
    seal(&opened.store, 10).await;
    let mut merged = Vec::new();
    while let Some(done) = merge_once(&opened.store, 16, 1_000).await {
        merged.push(done.segments);
    }
    assert_eq!(merged, [3, 2]);
}

/// A reader has the row of a segment whose file is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_continue_while_segments_are_merged() {
    let opened = Opened::new().await;
    let sent = add_blocks(&opened.store, PROJECT, 84, 20).await;
    seal(&opened.store, 20).await;
    let opened = opened.reopen().await;
    let store = opened.store.clone();
    let merging = tokio::spawn({
        let store = store.clone();
        async move {
            let mut merged = 0;
            while merge_once(&store, 2, 10_000).await.is_some() {
                merged += 1;
            }
            merged
        }
    });
    let mut rounds = 0;
    while !merging.is_finished() {
        store.blocks.forget(PROJECT);
        let (by_time, _) = page(&store, PROJECT, &query(700)).await.unwrap();
        assert_eq!(by_time.len(), 700, "round {rounds}");
        let by_arrival = arrivals(&store, PROJECT, Some(900), 500).await.unwrap();
        let expected = sent[399..899].iter().rev();
        assert!(by_arrival.events.iter().eq(expected), "round {rounds}");
        rounds += 1;
    }
    // Twenty segments of each partition become 16 and 4.
    assert_eq!(merging.await.unwrap(), 4 * 18);
    assert!(rounds > 1, "{rounds}");
    assert_eq!(store.segment_damage(), 0);
}
