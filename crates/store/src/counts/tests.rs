//! Keys and values of counts, and bounds.

use uuid::Uuid;
use weir_model::persons::PersonOrder;
use weir_model::{PersonId, ProjectId, Timestamp};

use super::entries::{CountKeys, Merges, PERSONS};
use super::read::members_within;
use super::*;
use crate::bind::bind;
use crate::db::{Operation, Statement};
use crate::tests::store;
use crate::transaction::{Entry, Transaction};
use crate::{Error, Store};

const PROJECT: ProjectId = ProjectId(7);

fn first_id(number: u128) -> PersonId {
    PersonId(Uuid::from_u128(number))
}

async fn write(store: &Store, counts: &EventCounts, merges: &[(PersonId, PersonId)]) {
    let mut writes = CountWrites::default();
    let keyspace = store.db.keyspace().await.unwrap();
    writes.add(keyspace, PROJECT, Slot::Partition(0), counts, merges).unwrap();
    let work = move |tx: Transaction| {
        let writes = writes.clone();
        async move { writes.write(&tx).await }
    };
    store.db.transact(Operation::write("test"), (), work).await.unwrap();
}

/// One event of each of these ids, in the group `acme`.
fn one_each(ids: impl IntoIterator<Item = u128>) -> EventCounts {
    let mut counts = EventCounts::default();
    for id in ids {
        counts.add(&CountedEvent {
            first_id: first_id(id),
            time: 5,
            has_person: true,
            groups: [Some("\"acme\""), None, None, None, None],
        });
    }
    counts
}

#[tokio::test]
async fn keys_have_one_length_and_the_order_of_ids_and_slots() {
    let keys = CountKeys::of(store().await.db.keyspace().await.unwrap(), PROJECT).unwrap();
    let mut last = Vec::new();
    for id in [0, 1, 255, 256, 1 << 64, u128::MAX].map(Uuid::from_u128) {
        for slot in [Slot::Partition(0), Slot::Partition(5), Slot::Earlier, Slot::Removed] {
            let key = keys.key(PERSONS, id, slot.byte());
            assert!(last.len() == key.len() && last < key || last.is_empty());
            assert_eq!(keys.read(&key).unwrap(), (id, slot.byte()));
            last = key;
        }
    }
}

#[tokio::test]
async fn what_is_no_count_is_an_error() {
    let counts = Counts { events: 3, first: -1, last: i64::MAX, has_person: true };
    let store = store().await;
    write(&store, &one_each([1]), &[]).await;
    let stored = crate::transaction::tests::stored_of(&store, "event_count").await;
    let value = &stored[0].1;
    assert_eq!(Counts::of_value(value).unwrap().events, 1);
    assert_ne!(Counts::of_value(value).unwrap(), counts);
    let other_mark = [&[9], &value[1..]].concat();
    for damaged in [&[] as &[u8], &value[1..], &value[..24], &other_mark] {
        let error = Counts::of_value(damaged).unwrap_err();
        assert!(matches!(error, Error::Shape { .. }), "{error}");
        assert!(entries::merged_into(damaged).is_err());
    }
}

#[test]
fn a_long_chain_of_merges_is_followed_once() {
    let mut merges = Merges::default();
    for number in 0..200_000 {
        merges.insert(Uuid::from_u128(number), Uuid::from_u128(number + 1));
    }
    // Each of these would take as many steps as the first one.
    for number in 0..200_000 {
        assert_eq!(merges.follow(Uuid::from_u128(number)).as_u128(), 200_000);
    }
    // Damaged data: a ring has no end.
    merges.insert(Uuid::from_u128(200_000), Uuid::from_u128(0));
    merges.follow(Uuid::from_u128(0));
}

#[test]
fn groups_are_named_by_texts_and_numbers() {
    assert_eq!(group_key(r#""ac\u006de""#).as_deref(), Some("acme"));
    assert_eq!(group_key("7.50").as_deref(), Some("7.50"));
    for other in ["\"\"", "null", "true", "[1]", "{}", ""] {
        assert_eq!(group_key(other), None, "{other}");
    }
    assert_eq!(group_index("$group_4"), Some(4));
    for other in ["$group_5", "$group_", "$group_+1", "$group_00", "group_0"] {
        assert_eq!(group_index(other), None, "{other}");
    }
}

#[tokio::test]
async fn bounds_are_said() {
    let store = store().await;
    let merges = [(first_id(1), first_id(2))];
    let mut counts = one_each(1..=9);
    counts.mark_person(first_id(2));
    write(&store, &counts, &merges).await;
    let read = async |most| {
        let found = members_within(&store, PROJECT, 0, "acme", most).await.unwrap();
        (found.members.len(), found.members[0].counts.events, found.is_complete)
    };
    assert_eq!(read(9).await, (8, 2, true));
    assert_eq!(read(8).await, (7, 2, false));
    let order = PersonOrder::named("-event_count").unwrap();
    let ranking = made(&store, PROJECT, order, Timestamp::EPOCH, 3).await.unwrap();
    assert_eq!((ranking.persons.len(), ranking.all), (3, 8));
    assert_eq!(ranking.persons[0], first_id(2));
}

#[tokio::test]
async fn members_of_a_large_group_are_kept_for_some_seconds() {
    let store = store().await;
    let read = async |key| {
        let found = members(&store, PROJECT, 0, key).await.unwrap().unwrap();
        (found.members.len(), found.members.iter().map(|one| one.counts.events).sum::<u64>())
    };
    for (ids, first, second) in
        [(1..=9, (9, 9), (9, 18)), (1..=1_200, (1_200, 1_218), (1_200, 1_218))]
    {
        write(&store, &one_each(ids.clone()), &[]).await;
        assert_eq!(read("acme").await, first);
        write(&store, &one_each(ids), &[]).await;
        assert_eq!(read("acme").await, second);
    }
}

#[tokio::test]
async fn damage_of_one_project_does_not_keep_others_from_being_counted() {
    const BEFORE: Statement = Statement::write(
        "test",
        "FOR $project IN [7, 8] {
            CREATE type::record('event_count_cursor', [$project, 6]) SET next = 0, last = 0;
            CREATE type::record('person', [$project, $from]) SET merged_into = $into;
            CREATE type::record('person', [$project, $into]) SET merged_into = 'damaged';
        };",
    );
    let store = store().await;
    let [from, into] = [first_id(1).0, first_id(2).0];
    store.db.run(BEFORE, bind! { from: from, into: into }).await.unwrap();
    let keys = CountKeys::of(store.db.keyspace().await.unwrap(), PROJECT).unwrap();
    let key = keys.key(PERSONS, into, Slot::Earlier.byte());
    let damaged = Entry { key: key.clone(), value: vec![9] };
    let work = move |tx: Transaction| {
        let damaged = damaged.clone();
        async move { tx.put(&damaged).await }
    };
    store.db.transact(Operation::write("test"), (), work).await.unwrap();
    let mut counting = Counting::default();
    for _ in 0..2 {
        let error = loop {
            match counting.step(&store).await {
                Ok(progress) => assert_ne!(progress, Progress::Done),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Shape { .. }), "{error}");
        assert!(!is_complete(&store, PROJECT).await.unwrap());
        assert!(is_complete(&store, ProjectId(8)).await.unwrap());
    }
    let work = move |tx: Transaction| {
        let key = key.clone();
        async move { tx.delete(&[key]).await }
    };
    store.db.transact(Operation::write("test"), (), work).await.unwrap();
    while counting.step(&store).await.unwrap() != Progress::Done {}
    assert!(is_complete(&store, PROJECT).await.unwrap());
}

#[tokio::test]
async fn a_ranking_is_kept_for_some_seconds() {
    let store = store().await;
    let order = PersonOrder::named("-event_count").unwrap();
    write(&store, &one_each(1..=2), &[]).await;
    let at = async |micros| {
        let at = Timestamp::from_micros(micros);
        ranking(&store, PROJECT, order, at).await.unwrap().unwrap()
    };
    let first = at(1).await;
    write(&store, &one_each(1..=3), &[]).await;
    let second = at(2).await;
    assert_eq!((first.all, &second), (2, &first), "made once, with the time of the first call");
    let other = PersonOrder::named("event_count").unwrap();
    let other = ranking(&store, PROJECT, other, Timestamp::EPOCH).await.unwrap().unwrap();
    assert_eq!(other.all, 3);
}

#[tokio::test]
async fn the_first_event_of_each_id_is_seen() {
    let store = store().await;
    write(&store, &one_each([1, 2]), &[(first_id(2), first_id(1))]).await;
    let mut seen = Vec::new();
    let note = |some: &[(PersonId, i64)]| {
        seen.extend_from_slice(some);
        Ok(())
    };
    first_seen(&store, PROJECT, note).await.unwrap();
    assert_eq!(seen, [(first_id(1), 5), (first_id(2), 5)]);
    let failed = first_seen(&store, PROJECT, |_| Err(Error::Stopped)).await;
    assert!(matches!(failed, Err(Error::Stopped)));
}
