//! Stores and batches for the tests.

use weir_model::ProjectId;
use weir_model::events::EventQuery;

use crate::counts::EventCounts;
pub(super) use crate::events::block::tests::event;
use crate::events::{
    Apply, BlockBuilder, Head, NewBlock, Position, ProjectWrite, StoredEvent, is_stray,
};
use crate::persons::{Facts, PersonState};
use crate::transaction::tests::stored_of;
use crate::{Location, Settings, Store};

pub(super) const PROJECT: ProjectId = ProjectId(7);

pub(super) async fn store() -> Store {
    Store::open(&Location::Memory, Settings::default()).await.unwrap()
}

/// A batch with `events` as one block.
pub(super) fn batch(partition: u16, from: u64, to: u64, events: &[StoredEvent]) -> Apply {
    let (from, to) = (Position::at(from), Position::at(to));
    let mut block = BlockBuilder::begin(PROJECT, &events[0]).unwrap();
    let mut uuids = vec![(events[0].uuid, events[0].arrival, 0)];
    for event in &events[1..] {
        let index = block.push(event).unwrap();
        uuids.push((event.uuid, events[0].arrival, index));
    }
    let (data, summary) = block.finish().unwrap();
    let added_times = events.iter().map(|e| e.timestamp).collect();
    let head = Head {
        newest: i64::try_from(events[0].arrival).unwrap(),
        last: summary.last,
        count: summary.count,
        // Spans earlier batches of the same partition too.
        from_time: summary.from_time.min(0),
        to_time: summary.to_time,
        samples: 0,
        affected: 0,
        strays: events.iter().any(|e| is_stray(PROJECT, partition, &e.distinct_id)),
        erased: None,
    };
    let block = NewBlock { first: events[0].arrival, data, summary, added_times };
    let mut counts = EventCounts::default();
    events.iter().for_each(|event| counts.add_stored(PROJECT, event));
    let write = ProjectWrite {
        blocks: vec![block],
        uuids,
        counts,
        head,
        is_first: true,
        ..ProjectWrite::new(PROJECT)
    };
    Apply { partition, from, to, projects: vec![write] }
}

pub(super) fn ada(properties: &str) -> PersonState {
    PersonState::Person(Facts {
        distinct_ids: vec!["a".to_owned()],
        properties: properties.to_owned(),
        created_at: 5,
        is_identified: false,
    })
}

/// The number of records or entries of a table.
pub(super) async fn records(store: &Store, table: &str) -> usize {
    stored_of(store, table).await.len()
}

pub(super) fn query(limit: usize) -> EventQuery {
    EventQuery { limit, ..EventQuery::default() }
}

/// Arrival numbers `from..=to`, all about `distinct_id`.
pub(super) fn events(from: u64, to: u64, distinct_id: &str) -> Vec<StoredEvent> {
    (from..=to).map(|n| event(n, distinct_id)).collect()
}
