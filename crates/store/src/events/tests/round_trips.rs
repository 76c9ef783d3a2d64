//! How often a batch asks the storage, which matters if a network is between. The figures of
//! real batches are in `docs/adr/0032-several-nodes.md`.

use std::collections::BTreeSet;

use weir_model::definitions::EventDefinition;
use weir_model::{PersonId, Timestamp};

use super::support::{PROJECT, ada, batch, event};
use crate::events::{Apply, Span, StoredEvent, WarningCount, apply};
use crate::persons::PersonWrite;
use crate::{ByteBudget, Calls, Location, Settings, Store, TransactionCalls, persons};

/// A store whose calls are counted.
async fn counted() -> (Store, Calls) {
    let calls = Calls::default();
    let settings = Settings { calls: Some(calls.clone()), ..Settings::default() };
    (Store::open(&Location::Memory, settings).await.unwrap(), calls)
}

/// Events with these arrival numbers, each of another person.
fn events_of_many(from: u64, to: u64) -> Vec<StoredEvent> {
    (from..=to).map(|arrival| event(arrival, &format!("user {arrival}"))).collect()
}

/// A batch that is not the first one of its project.
fn later_batch(from: u64, to: u64, events: &[StoredEvent]) -> Apply {
    let mut batch = batch(0, from, to, events);
    batch.projects[0].is_first = false;
    batch
}

/// What the transaction of a batch asked of the storage.
async fn applied(store: &Store, calls: &Calls, batch: Apply) -> TransactionCalls {
    calls.take();
    apply(store, batch).await.unwrap();
    // The engine has transactions of its own.
    let ended = calls.take().into_iter().filter(|one| one.is_committed);
    ended.max_by_key(|one| one.rows_written).unwrap()
}

fn new_person(id: PersonId) -> PersonWrite {
    PersonWrite { id, state: ada("{}"), expected: None, version: 0 }
}

fn first_ids(events: &[StoredEvent]) -> Vec<PersonId> {
    events.iter().map(|event| persons::first_id(PROJECT, &event.distinct_id)).collect()
}

#[tokio::test]
async fn the_entries_of_a_batch_are_read_together() {
    let (store, calls) = counted().await;
    let found = applied(&store, &calls, later_batch(0, 10, &events_of_many(1, 1_000))).await;
    // The head, uuids and counts together.
    assert_eq!(found.methods.get("getm"), Some(&1), "{found:?}");
    // The position and the commit.
    assert_eq!(found.round_trips.remembering, 3, "{found:?}");
}

#[tokio::test]
async fn new_persons_are_looked_for_in_few_reads() {
    let (store, calls) = counted().await;
    let events = events_of_many(1, 1_000);
    let mut batch = later_batch(0, 10, &events);
    batch.projects[0].persons = first_ids(&events).into_iter().map(new_person).collect();
    let found = applied(&store, &calls, batch).await;
    // 32, 32, 64, 128, 256 and 488 persons.
    assert_eq!(found.methods.get("getm"), Some(&7), "{found:?}");
}

#[tokio::test]
async fn names_are_read_together_and_no_statement_writes_them() {
    let (store, calls) = counted().await;
    let mut batch = later_batch(0, 10, &events_of_many(1, 10));
    let at = Timestamp::from_micros(5);
    let seen = |name: i32| EventDefinition { name: name.to_string(), first_at: at, last_at: at };
    batch.projects[0].event_names = (0..700).map(seen).collect();
    let seen = Span { from: 3, to: 4 };
    let code = "too_deep".to_owned();
    batch.projects[0].warnings = vec![WarningCount { code, count: 1, seen, sample: None }];
    let found = applied(&store, &calls, batch).await;
    // Names, counts of warnings, and what each batch reads.
    assert_eq!(found.methods.get("getm"), Some(&3), "{found:?}");
    assert_eq!(found.round_trips.remembering, 5, "{found:?}");
}

#[tokio::test]
async fn a_few_persons_among_many_new_ones_are_found() {
    let (store, calls) = counted().await;
    let events = events_of_many(1, 40);
    let ids = first_ids(&events);
    let mut batch = later_batch(0, 10, &events);
    batch.projects[0].persons = ids.iter().copied().map(new_person).collect();
    apply(&store, batch).await.unwrap();

    let others = first_ids(&events_of_many(41, 4_000));
    let read = async |ids: Vec<PersonId>| {
        calls.take();
        let mut budget = ByteBudget::ALL;
        let found = persons::by_ids(&store, PROJECT, &ids, &mut budget).await.unwrap();
        // The engine has transactions of its own.
        let is_read = |one: &TransactionCalls| {
            one.methods.keys().all(|name| ["getm", "cancel"].contains(name))
        };
        let ended = calls.take().into_iter().filter(is_read);
        let reads: u64 = ended.filter_map(|one| one.methods.get("getm").copied()).sum();
        (found.iter().map(|found| found.id).collect::<Vec<_>>(), reads)
    };
    let (found, reads) = read(others.clone()).await;
    assert!(found.is_empty());
    assert!(reads <= 9, "{reads} reads of 3,960 persons");
    let (found, reads) = read([ids.as_slice(), others.as_slice()].concat()).await;
    assert_eq!(found.len(), ids.len());
    assert_eq!(BTreeSet::from_iter(found), BTreeSet::from_iter(ids));
    // One of a hundred is there, in any order.
    assert!(reads < 40, "{reads} reads of 4,000 persons");
}
