//! A sealed event is never stored a second time.

use uuid::Uuid;

use super::super::support::{PROJECT, batch, events, records};
use super::reading::known;
use super::seen::Seen;
use super::support::{Opened, add_blocks, full_event, seal};
use crate::events::{StoredEvent, apply, position, stored_uuids};
use crate::{Error, Store};

/// Sends these events again, in a batch with a new one.
async fn send_again(store: &Store, partition: u16, again: &[StoredEvent]) -> Error {
    let from = position(store, partition).await.unwrap().offset;
    let mut batch_events = events(100_001, 100_000 + again.len() as u64 + 1, "a");
    for (event, again) in batch_events.iter_mut().skip(1).zip(again) {
        event.uuid = again.uuid;
    }
    let refused = apply(store, batch(partition, from, from + 1, &batch_events)).await.unwrap_err();
    let found = stored_uuids(store, PROJECT, &[batch_events[0].uuid]).await.unwrap();
    assert!(found.is_empty(), "nothing of a refused batch is stored");
    assert_eq!(position(store, partition).await.unwrap().offset, from);
    refused
}

async fn assert_refused(store: &Store, events: &[StoredEvent]) {
    for event in events {
        for partition in [0, 2] {
            let refused = send_again(store, partition, std::slice::from_ref(event)).await;
            assert!(matches!(refused, Error::Exists { .. }), "{}: {refused}", event.arrival);
        }
    }
    let refused = send_again(store, 1, events).await;
    assert!(matches!(refused, Error::Exists { .. }), "{refused}");
    let uuids: Vec<Uuid> = known(events);
    let mut found = stored_uuids(store, PROJECT, &uuids).await.unwrap();
    found.sort_unstable();
    let mut expected: Vec<Uuid> = events.iter().map(|event| event.uuid).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn events_of_every_layer_are_refused() {
    let mut opened = Opened::new().await;
    let sent = add_blocks(&opened.store, PROJECT, 12, 20).await;
    let some: Vec<_> = sent.iter().step_by(17).cloned().collect();
    assert_refused(&opened.store, &some).await;
    seal(&opened.store, 20).await;
    assert_eq!(records(&opened.store, "event_uuid").await, 4 * 20);
    assert_refused(&opened.store, &some).await;
    opened = opened.reopen().await;
    assert_refused(&opened.store, &some).await;
    // A new event is stored all the same.
    let from = position(&opened.store, 0).await.unwrap().offset;
    let new = full_event(1_000, 0);
    apply(&opened.store, batch(0, from, from + 1, std::slice::from_ref(&new))).await.unwrap();
    assert_refused(&opened.store, &[new]).await;
}

#[tokio::test]
async fn merged_runs_have_all_uuids() {
    let mut opened = Opened::new().await;
    // Each seal adds a run, and eight of a level become one.
    let sent = add_blocks(&opened.store, PROJECT, 84, 5).await;
    let sealed = seal(&opened.store, 5).await;
    assert_eq!(sealed.segments, 80);
    // 80 = 64 + 2 * 8
    assert_eq!(opened.run_files().len(), 3);
    assert_eq!(records(&opened.store, "event_uuid_run").await, 3);
    assert_eq!(records(&opened.store, "event_uuid").await, 4 * 5);
    let some: Vec<_> = sent.iter().step_by(7).cloned().collect();
    assert_refused(&opened.store, &some).await;
    opened = opened.reopen().await;
    assert_eq!(opened.run_files().len(), 3);
    assert_refused(&opened.store, &some).await;
    let seen = Seen::of(&opened.store, &known(&sent)).await;
    assert!(seen.by_uuid().iter().flatten().eq(sent.iter().step_by(7)));
}

/// A consumer plans a batch, then the events that it repeats move into a run.
#[tokio::test]
async fn a_batch_that_was_planned_before_a_seal_is_checked_after_it() {
    let opened = Opened::new().await;
    let store = &opened.store;
    let sent = add_blocks(store, PROJECT, 8, 20).await;
    let from = position(store, 0).await.unwrap().offset;
    let open = crate::events::head(store, PROJECT, 0).await.unwrap().unwrap();
    let mut block = crate::events::open_block(store, PROJECT, 0, &open).await.unwrap().unwrap();
    let new = full_event(1_000, 0);
    let index = block.push(&new).unwrap();
    let (data, summary) = block.finish().unwrap();
    let mut planned = batch(0, from, from + 1, std::slice::from_ref(&new));
    let write = &mut planned.projects[0];
    let first = block.first;
    write.head = crate::events::Head { last: 1_000, count: open.count + 1, ..open };
    write.uuids = vec![(new.uuid, first, index)];
    let added_times = vec![new.timestamp];
    write.blocks = vec![crate::events::NewBlock { first, data, summary, added_times }];
    let mut repeats = planned.clone();
    repeats.projects[0].uuids[0].0 = sent[0].uuid;

    assert_eq!(seal(store, 20).await.segments, 4);
    let refused = apply(store, repeats).await.unwrap_err();
    assert!(matches!(refused, Error::Exists { .. }), "{refused}");
    apply(store, planned).await.unwrap();
    let sent = [sent, vec![new]].concat();
    let seen = Seen::of(store, &known(&sent)).await;
    assert_eq!(seen.events(), sent);
}

/// Events are sent again, over and over, while they are sealed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_uuid_that_moves_is_found_at_every_moment() {
    let opened = Opened::new().await;
    let sent = add_blocks(&opened.store, PROJECT, 84, 20).await;
    // Not those of the open blocks.
    let sent = sent[..80 * 20].to_vec();
    let (store, done) =
        (opened.store.clone(), std::sync::Arc::<std::sync::atomic::AtomicBool>::default());
    let sealing = tokio::spawn({
        let (store, done) = (store.clone(), done.clone());
        async move {
            let report = seal(&store, 20).await;
            done.store(true, std::sync::atomic::Ordering::Release);
            report.segments
        }
    });
    let uuids: Vec<Uuid> = sent.iter().map(|event| event.uuid).collect();
    let mut rounds = 0;
    while !done.load(std::sync::atomic::Ordering::Acquire) {
        let found = stored_uuids(&store, PROJECT, &uuids).await.unwrap();
        assert_eq!(found.len(), uuids.len(), "round {rounds}");
        let again = &sent[rounds * 31 % 1_500..][..50];
        let refused = send_again(&store, 2, again).await;
        assert!(matches!(refused, Error::Exists { .. }), "{refused}");
        rounds += 1;
    }
    assert_eq!(sealing.await.unwrap(), 80);
    assert!(rounds > 1, "{rounds}");
}
