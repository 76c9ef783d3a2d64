//! The index of uuids, with entries that older programs have written as records.

use surrealdb::types::{Object, Value};
use uuid::Uuid;
use weir_model::events::EventQuery;

use super::support::{PROJECT, batch, events, query, records};
use crate::bind::bind;
use crate::db::Statement;
use crate::events::uuids::{Place, Placed, UuidKeys, entries};
use crate::events::{StoredEvent, apply, keys, page, purge, see_each, stored_uuids};
use crate::tests::stores;
use crate::transaction::tests::{overwrite, stored_of};
use crate::{Error, Result, Store};

/// Writes entries as older programs did.
pub(super) async fn write_older_uuids(store: &Store, placed: &[Placed]) {
    const WRITE: Statement = Statement::write("test", "INSERT INTO event_uuid $rows RETURN NONE;");
    let row = |Placed { project, uuid, place }: &Placed| {
        let at = [i64::from(place.partition), i64::try_from(place.first).unwrap()];
        let at = at.into_iter().chain([i64::from(place.index)]);
        let mut row = Object::new();
        row.insert("id", keys::uuid(*project, *uuid));
        row.insert("at", at.map(|number| Value::Number(number.into())).collect::<Vec<Value>>());
        Value::Object(row)
    };
    let rows: Vec<Value> = placed.iter().map(row).collect();
    store.db.run(WRITE, bind! { rows: rows }).await.unwrap();
}

/// Replaces the entries of these events of a block by older ones.
async fn make_older(store: &Store, partition: u16, first: u64, of: &[(u32, &StoredEvent)]) {
    let keyspace = store.db.keyspace().await.unwrap();
    let keys = UuidKeys::of(keyspace, PROJECT).unwrap();
    let placed: Vec<Placed> = of
        .iter()
        .map(|(index, event)| Placed {
            project: PROJECT,
            uuid: event.uuid,
            place: Place { partition, first, index: *index },
        })
        .collect();
    for Placed { uuid, .. } in &placed {
        let tx = store.db.datastore();
        let tx = tx.transaction(surrealdb_kvs::TransactionType::Write).await.unwrap();
        tx.del(surrealdb_kvs::Key::from(keys.key(*uuid))).await.unwrap();
        tx.commit().await.unwrap();
    }
    write_older_uuids(store, &placed).await;
}

async fn by_uuid(store: &Store, uuid: Uuid) -> Result<Option<StoredEvent>> {
    let query = EventQuery { uuid: Some(uuid), ..query(10) };
    Ok(page(store, PROJECT, &query).await?.0.pop())
}

async fn key_of(store: &Store, uuid: Uuid) -> Vec<u8> {
    UuidKeys::of(store.db.keyspace().await.unwrap(), PROJECT).unwrap().key(uuid)
}

#[tokio::test]
async fn older_and_newer_entries_lead_to_events_and_prevent_second_ones() {
    let (stores, _directory) = stores().await;
    for store in stores {
        let stored = events(1, 40, "a");
        apply(&store, batch(0, 0, 10, &stored)).await.unwrap();
        make_older(&store, 0, 1, &[(0, &stored[0]), (7, &stored[7]), (39, &stored[39])]).await;
        assert_eq!(records(&store, "event_uuid").await, 40);
        let lengths = stored_of(&store, "event_uuid").await.into_iter().map(|(_, v)| v.len());
        assert_eq!(lengths.filter(|length| *length == 15).count(), 37);
        for event in &stored {
            assert_eq!(by_uuid(&store, event.uuid).await.unwrap().as_ref(), Some(event));
        }
        let unknown = Uuid::from_u128(77);
        assert_eq!(by_uuid(&store, unknown).await.unwrap(), None);

        let uuids: Vec<Uuid> = stored.iter().map(|event| event.uuid).chain([unknown]).collect();
        let mut seen = Vec::new();
        see_each(&store, PROJECT, &uuids, |event| seen.push(event.clone())).await.unwrap();
        seen.sort_by_key(|event| event.arrival);
        assert_eq!(seen, stored);
        let mut found = stored_uuids(&store, PROJECT, &uuids).await.unwrap();
        found.sort_unstable();
        assert_eq!(found, uuids[..40]);

        // The uuid of an older entry, and of a newer one.
        for again in [7, 8] {
            let mut second = events(41, 43, "a");
            second[1].uuid = stored[again].uuid;
            let refused = apply(&store, batch(1, 0, 10, &second)).await.unwrap_err();
            assert!(matches!(refused, Error::Exists { .. }), "{refused}");
            assert_eq!(by_uuid(&store, second[0].uuid).await.unwrap(), None);
        }
        purge(&store, PROJECT).await.unwrap();
        assert_eq!(records(&store, "event_uuid").await, 0);
        assert_eq!(by_uuid(&store, stored[7].uuid).await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_damaged_entry_is_an_error_and_still_prevents_a_second_event() {
    let (stores, _directory) = stores().await;
    for store in stores {
        let stored = events(1, 5, "a");
        apply(&store, batch(0, 0, 10, &stored)).await.unwrap();
        let keyspace = store.db.keyspace().await.unwrap();
        let value = |place: Place| {
            let placed = Placed { project: PROJECT, uuid: stored[0].uuid, place };
            entries(keyspace, &[placed]).unwrap().remove(0).value
        };
        let right = Place { partition: 0, first: 1, index: 0 };
        for damaged in [
            Vec::new(),
            b"nonsense".to_vec(),
            value(right)[..14].to_vec(),
            // Places of another event, of none, and of no block.
            value(Place { index: 1, ..right }),
            value(Place { index: 5, ..right }),
            value(Place { first: 2, ..right }),
            value(Place { partition: 1, ..right }),
        ] {
            let uuid = stored[0].uuid;
            overwrite(&store, &key_of(&store, uuid).await, damaged.clone()).await;
            let error = by_uuid(&store, uuid).await.unwrap_err();
            assert!(matches!(error, Error::Shape { .. }), "{damaged:?}: {error}");
            let error = see_each(&store, PROJECT, &[uuid], |_| {}).await.unwrap_err();
            assert!(matches!(error, Error::Shape { .. }), "{damaged:?}: {error}");
            assert_eq!(stored_uuids(&store, PROJECT, &[uuid]).await.unwrap(), [uuid]);
            let mut second = events(6, 6, "a");
            second[0].uuid = uuid;
            let refused = apply(&store, batch(0, 10, 20, &second)).await.unwrap_err();
            assert!(matches!(refused, Error::Exists { .. }), "{refused}");
        }
        overwrite(&store, &key_of(&store, stored[0].uuid).await, value(right)).await;
        for event in &stored {
            assert_eq!(by_uuid(&store, event.uuid).await.unwrap().as_ref(), Some(event));
        }
        overwrite(&store, &key_of(&store, stored[0].uuid).await, b"nonsense".to_vec()).await;
        purge(&store, PROJECT).await.unwrap();
        assert_eq!(records(&store, "event_uuid").await, 0);
    }
}
