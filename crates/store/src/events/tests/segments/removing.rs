//! Removing segments by age, and those of a deleted project.

use std::cell::Cell;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::task::Poll;

use uuid::Uuid;
use weir_model::events::EventQuery;
use weir_model::{ProjectId, Timestamp};

use super::super::support::{PROJECT, batch, events, query, records};
use super::reading::known;
use super::seen::Seen;
use super::support::{Opened, add_blocks, drop_old, merge_once, now, seal};
use crate::Error;
use crate::events::{
    EventBounds, StoredEvent, TimeRange, apply, drop_older, page, position, purge, removed,
    stored_uuids,
};
use crate::transaction::tests::stored_of;

/// A block with an event a second from a time on.
pub(super) async fn add_at(
    opened: &Opened,
    partition: u16,
    first: u64,
    from: i64,
) -> Vec<StoredEvent> {
    let store = &opened.store;
    let mut some = events(first, first + 9, "a");
    for (event, number) in some.iter_mut().zip(0..) {
        event.timestamp = from + number * 1_000_000;
        event.uuid = super::support::uuid(event.arrival);
    }
    let at = position(store, partition).await.unwrap().offset;
    apply(store, batch(partition, at, at + 1, &some)).await.unwrap();
    some
}

#[tokio::test]
async fn old_segments_are_removed_and_their_uuids_stay() {
    const DAY: i64 = 86_400_000_000;
    let mut opened = Opened::new().await;
    // Days 10, 1, 11, 2, 12 and an open block, each a segment.
    let mut blocks = Vec::new();
    for (number, day) in (0..).zip([10, 1, 11, 2, 12, 20]) {
        blocks.push(add_at(&opened, 0, number * 10 + 1, day * DAY).await);
    }
    seal(&opened.store, 10).await;
    assert_eq!(opened.segment_files().len(), 5);
    let before = Timestamp::from_micros(11 * DAY);
    let dropped = drop_old(&opened.store, PROJECT, before, &[]).await.unwrap();
    assert_eq!((dropped.segments, dropped.events), (3, 30));
    let again = drop_old(&opened.store, PROJECT, before, &[]).await.unwrap();
    assert_eq!((again.segments, again.events), (0, 0));
    assert_eq!(removed(&opened.store, PROJECT).await.unwrap(), 30);
    let other = drop_old(&opened.store, ProjectId(8), before, &[]).await.unwrap();
    assert_eq!(other.segments, 0);
    for _ in 0..2 {
        let store = &opened.store;
        assert_eq!(opened.segment_files().len(), 2);
        assert_eq!(records(store, "event_segment").await, 2);
        assert_eq!(records(store, "event_summary").await, 3);
        assert_eq!(records(store, "event_time").await, 3);
        let left: Vec<_> = [2, 4, 5].into_iter().flat_map(|at: usize| blocks[at].clone()).collect();
        let all: Vec<StoredEvent> = blocks.concat();
        let seen = Seen::of(store, &known(&all)).await;
        assert_eq!(seen.events(), left);
        // The uuids are known, and lead to nothing.
        assert_eq!(seen.stored().len(), 60);
        assert_eq!(seen.by_uuid().iter().flatten().count(), 5);
        let uuid = EventQuery { uuid: Some(blocks[1][3].uuid), ..query(3) };
        assert_eq!(page(store, PROJECT, &uuid).await.unwrap(), (Vec::new(), false));
        let mut second = events(1_000, 1_000, "a");
        second[0].uuid = blocks[1][3].uuid;
        let refused = apply(store, batch(1, 0, 1, &second)).await.unwrap_err();
        assert!(matches!(refused, Error::Exists { .. }), "{refused}");
        opened = opened.reopen().await;
    }
}

#[tokio::test]
async fn segments_with_unread_events_stay() {
    const DAY: i64 = 86_400_000_000;
    let opened = Opened::new().await;
    // Arrival numbers 1 to 10 of day 1, and so on. Each block is a segment, and 41 to 50 are
    // in the open block.
    for (number, day) in (0..).zip([1, 2, 3, 4, 20]) {
        add_at(&opened, 0, number * 10 + 1, day * DAY).await;
    }
    seal(&opened.store, 10).await;
    let before = Timestamp::from_micros(9 * DAY);
    let drop = async |unread: &[EventBounds]| {
        let dropped = drop_old(&opened.store, PROJECT, before, unread).await.unwrap();
        (dropped.segments, dropped.unread)
    };
    let day = |day: i64| TimeRange { start: day * DAY, end: (day + 1) * DAY };
    assert_eq!(drop(&[EventBounds::after(0)]).await, (0, 4));
    // A run of an export, and a backfill of the third day.
    let run = EventBounds { up_to: 11, ..EventBounds::after(10) };
    let backfill = EventBounds { time: day(3), ..EventBounds::after(0) };
    assert_eq!(drop(&[run, backfill]).await, (2, 2), "the first and the fourth are read");
    // The last event of the second segment is read, but none of the third segment.
    assert_eq!(drop(&[EventBounds::after(20)]).await, (1, 1));
    let elsewhere = EventBounds { time: day(2), ..EventBounds::after(0) };
    let earlier = EventBounds { up_to: 20, ..EventBounds::after(0) };
    assert_eq!(drop(&[EventBounds::after(29), elsewhere, earlier]).await, (0, 1));
    assert_eq!(drop(&[EventBounds::after(30), elsewhere, earlier]).await, (1, 0));
    assert_eq!(removed(&opened.store, PROJECT).await.unwrap(), 40);
}

/// Another task changes files while a removal begins. What is unread may change meanwhile.
#[tokio::test]
async fn what_is_old_is_asked_when_no_other_task_changes_files() {
    const DAY: i64 = 86_400_000_000;
    let opened = Opened::new().await;
    for (number, day) in (0..).zip([1, 2, 20]) {
        add_at(&opened, 0, number * 10 + 1, day * DAY).await;
    }
    seal(&opened.store, 10).await;
    let changing = opened.store.segments.changing().await.unwrap();
    let asked = Cell::new(false);
    let old = async {
        asked.set(true);
        Ok(None)
    };
    let mut removal = pin!(drop_older(&opened.store, PROJECT, now(), old));
    let first = poll_fn(|cx| Poll::Ready(removal.as_mut().poll(cx).is_pending()));
    assert!(first.await);
    assert!(!asked.get());
    drop(changing);
    assert_eq!(removal.await.unwrap().segments, 0, "all events are kept");
    assert!(asked.get());
    assert_eq!(opened.segment_files().len(), 2);
}

#[tokio::test]
async fn a_merged_segment_is_removed_when_all_of_it_is_old() {
    const DAY: i64 = 86_400_000_000;
    let opened = Opened::new().await;
    for (number, day) in (0..).zip([1, 2, 3, 4, 20]) {
        add_at(&opened, 0, number * 10 + 1, day * DAY).await;
    }
    seal(&opened.store, 10).await;
    merge_once(&opened.store, 2, 1_000).await.unwrap();
    let drop = async |day: i64| {
        let before = Timestamp::from_micros(day * DAY);
        drop_old(&opened.store, PROJECT, before, &[]).await.unwrap().events
    };
    assert_eq!(drop(2).await, 0, "half of it is younger");
    assert_eq!(drop(3).await, 20);
    assert_eq!(drop(9).await, 20);
    assert_eq!(records(&opened.store, "event_summary").await, 1);
    assert_eq!(records(&opened.store, "event_time").await, 1);
    assert!(opened.segment_files().is_empty());
}

#[tokio::test]
async fn a_purge_removes_segments_of_its_project_alone() {
    const TABLES: [&str; 7] = [
        "event_block",
        "event_summary",
        "event_time",
        "event_uuid",
        "event_head",
        "event_segment",
        "event_columns",
    ];
    const OTHER: ProjectId = ProjectId(8);
    let mut opened = Opened::new().await;
    let counted = async |opened: &Opened| {
        let mut counts = Vec::new();
        for table in TABLES {
            counts.push(stored_of(&opened.store, table).await.len());
        }
        counts
    };
    let sent = add_blocks(&opened.store, PROJECT, 12, 20).await;
    seal(&opened.store, 20).await;
    let of_one = counted(&opened).await;
    assert!(of_one.iter().all(|count| *count > 0), "{of_one:?}");
    let files = opened.segment_files();
    add_blocks(&opened.store, OTHER, 12, 20).await;
    seal(&opened.store, 20).await;
    let known = known(&sent);
    let before = Seen::of(&opened.store, &known).await;

    purge(&opened.store, OTHER).await.unwrap();
    assert_eq!(counted(&opened).await, of_one);
    assert_eq!(opened.segment_files(), files);
    assert!(!opened.directory.path().join("segments/8").exists());
    before.assert_same(&Seen::of(&opened.store, &known).await);
    purge(&opened.store, OTHER).await.unwrap();
    opened = opened.reopen().await;
    purge(&opened.store, PROJECT).await.unwrap();
    assert_eq!(counted(&opened).await, vec![0; TABLES.len()]);
    assert_eq!(removed(&opened.store, PROJECT).await.unwrap(), 0);
    assert!(opened.segment_files().is_empty());
    let uuids: Vec<Uuid> = sent.iter().map(|event| event.uuid).collect();
    let found = page(&opened.store, PROJECT, &query(9)).await.unwrap();
    assert_eq!(found, (Vec::new(), false));
    assert_eq!(stored_uuids(&opened.store, PROJECT, &uuids).await.unwrap(), Vec::<Uuid>::new());
    assert!(opened.run_files().is_empty());
}
