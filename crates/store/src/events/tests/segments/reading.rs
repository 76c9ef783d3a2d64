//! Every reader returns the same from all layers.

use uuid::Uuid;
use weir_model::Timestamp;

use super::super::support::{PROJECT, records, store};
use super::seen::Seen;
use super::support::{NOW, Opened, add_blocks, now, seal};
use crate::events::{LIVE_PARTITIONS, SealBounds, head, open_block, seal_all};

const DAY: i64 = 86_400_000_000;

/// The uuids of these events, and one that is not stored.
pub(super) fn known(events: &[crate::events::StoredEvent]) -> Vec<Uuid> {
    events.iter().map(|event| event.uuid).chain([Uuid::from_u128(3)]).collect()
}

#[tokio::test]
async fn readers_see_the_same_before_and_after_sealing() {
    let mut opened = Opened::new().await;
    let sent = add_blocks(&opened.store, PROJECT, 24, 37).await;
    let known = known(&sent);
    let before = Seen::of(&opened.store, &known).await;
    assert_eq!(before.events(), sent);
    assert!(before.by_uuid().iter().flatten().eq(sent.iter().step_by(7)));
    assert_eq!(before.stored().len(), sent.len());

    // Each of the four partitions has six blocks: one is open, two segments of two.
    let report = seal(&opened.store, 74).await;
    assert_eq!((report.segments, report.events), (8, 8 * 74));
    assert!(!report.is_limited && report.bytes > 0);
    assert_eq!(opened.segment_files().len(), 8);
    assert_eq!(records(&opened.store, "event_block").await, 8);
    assert_eq!(records(&opened.store, "event_uuid").await, 8 * 37);
    assert_eq!(records(&opened.store, "event_summary").await, 24);
    before.assert_same(&Seen::of(&opened.store, &known).await);
    opened = opened.reopen().await;
    before.assert_same(&Seen::of(&opened.store, &known).await);
    // From memory, too.
    before.assert_same(&Seen::of(&opened.store, &known).await);
    assert_eq!(opened.store.segment_damage(), 0);

    // The rest, apart from the open blocks.
    let report = seal(&opened.store, 1).await;
    assert_eq!((report.segments, report.events), (4, 4 * 37));
    assert_eq!(records(&opened.store, "event_block").await, 4);
    opened = opened.reopen().await;
    before.assert_same(&Seen::of(&opened.store, &known).await);
    assert_eq!(seal(&opened.store, 1).await.segments, 0, "an open block is never sealed");
    for partition in [0, 1, 3, LIVE_PARTITIONS, LIVE_PARTITIONS + 1] {
        let Some(head) = head(&opened.store, PROJECT, partition).await.unwrap() else { continue };
        let open = open_block(&opened.store, PROJECT, partition, &head).await.unwrap();
        assert_eq!(open.unwrap().count(), 37);
    }

    // Events that come afterwards.
    let more = add_blocks(&opened.store, PROJECT, 4, 37).await;
    let sent = [sent, more].concat();
    let after = Seen::of(&opened.store, &known).await;
    assert_eq!(after.events(), sent);
    assert_eq!(seal(&opened.store, 1).await.segments, 4);
    after.assert_same(&Seen::of(&opened.store, &known).await);
}

#[tokio::test]
async fn few_events_are_sealed_when_they_are_a_day_old() {
    let opened = Opened::new().await;
    add_blocks(&opened.store, PROJECT, 8, 20).await;
    // The first event of the second block was received at the second 21.
    let at = |seconds: i64| Timestamp::from_micros(NOW + DAY + seconds * 1_000_000);
    let sealed = async |now| {
        seal_all(&opened.store, now, 100, SealBounds::default()).await.unwrap().segments
    };
    assert_eq!(sealed(at(0)).await, 0);
    assert_eq!(sealed(at(21)).await, 2);
    assert_eq!(sealed(at(21)).await, 0);
    assert_eq!(sealed(at(2_000)).await, 2);
    assert_eq!(sealed(at(2_000)).await, 0);
}

#[tokio::test]
async fn a_call_seals_no_more_segments_than_it_may() {
    let opened = Opened::new().await;
    add_blocks(&opened.store, PROJECT, 24, 20).await;
    let late = Timestamp::from_micros(NOW + 9 * DAY);
    let report = seal_all(&opened.store, late, 3, SealBounds::default()).await.unwrap();
    assert_eq!((report.segments, report.is_limited), (3, true));
    let report = seal_all(&opened.store, late, 3, SealBounds::default()).await.unwrap();
    assert_eq!((report.segments, report.is_limited), (1, false));
}

/// As `weir seal` does, while no task applies events.
#[tokio::test]
async fn the_newest_blocks_are_sealed_on_request_and_new_ones_begin_after_them() {
    let mut opened = Opened::new().await;
    let mut sent = add_blocks(&opened.store, PROJECT, 8, 20).await;
    let known = known(&sent);
    let before = Seen::of(&opened.store, &known).await;
    for round in 0..2 {
        let seal = async |store| seal_all(store, now(), 100, SealBounds::ALL).await.unwrap();
        assert_eq!(seal(&opened.store).await.events, [160, 80][round]);
        assert_eq!(seal(&opened.store).await.segments, 0);
        for table in ["event_block", "event_uuid"] {
            assert_eq!(records(&opened.store, table).await, 0, "{table}");
        }
        if round == 0 {
            before.assert_same(&Seen::of(&opened.store, &known).await);
        }
        opened = opened.reopen().await;
        for partition in [0, 1, 3] {
            let head = head(&opened.store, PROJECT, partition).await.unwrap().unwrap();
            let open = open_block(&opened.store, PROJECT, partition, &head).await.unwrap();
            assert!(open.is_none(), "the next event begins a block");
        }
        sent.extend(add_blocks(&opened.store, PROJECT, 4, 20).await);
        assert_eq!(Seen::of(&opened.store, &known).await.events(), sent);
    }
}

#[tokio::test]
async fn a_store_in_memory_seals_nothing() {
    let store = store().await;
    add_blocks(&store, PROJECT, 8, 20).await;
    assert_eq!(seal(&store, 1).await.segments, 0);
    assert_eq!(records(&store, "event_block").await, 8);
}
