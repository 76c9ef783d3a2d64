//! Tests of the storage against a real server.

mod conflicts;
mod faults;
mod start;

use std::collections::BTreeMap;

use surrealdb_kvs::api::Transactable;
use surrealdb_kvs::{Direction, Error, Key, KeyRange, TransactionBuilder as _, TransactionType};
use uuid::Uuid;
use weir_testservers::Postgres as Server;

use crate::{Postgres, Settings};

/// The settings for the database of a test server.
fn settings(url: &str) -> Settings {
    let address = url.parse().unwrap();
    Settings { address, connections: 4, accepts_single_database: true }
}

/// The storage in the database of a test server.
async fn open(server: &Server) -> Postgres {
    Postgres::open(&settings(&server.url("postgres")), Uuid::nil()).await.unwrap()
}

async fn begin(storage: &Postgres, kind: TransactionType) -> Box<dyn Transactable> {
    storage.new_transaction(kind).await.unwrap().0
}

async fn writing(storage: &Postgres) -> Box<dyn Transactable> {
    begin(storage, TransactionType::Write).await
}

async fn reading(storage: &Postgres) -> Box<dyn Transactable> {
    begin(storage, TransactionType::Read).await
}

fn key(text: &str) -> Key<'static> {
    Key::from(text.as_bytes().to_vec())
}

fn range(start: &str, end: &str) -> KeyRange<'static> {
    KeyRange { start: key(start), end: key(end) }
}

fn value(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

/// Writes a key in a transaction of its own.
async fn set(storage: &Postgres, at: &str, to: &str) {
    let tx = writing(storage).await;
    tx.set(key(at), value(to)).await.unwrap();
    tx.commit().await.unwrap();
}

/// Removes a key in a transaction of its own.
async fn remove(storage: &Postgres, at: &str) {
    let tx = writing(storage).await;
    tx.del(key(at)).await.unwrap();
    tx.commit().await.unwrap();
}

/// The value of a key, read in a transaction of its own.
async fn stored(storage: &Postgres, at: &str) -> Option<String> {
    let tx = reading(storage).await;
    let found = tx.get(key(at), None).await.unwrap();
    tx.cancel().await.unwrap();
    found.map(|value| String::from_utf8(value).unwrap())
}

#[tokio::test]
async fn a_transaction_reads_its_snapshot_and_its_own_writes() {
    let server = Server::durable().await;
    let storage = open(&server).await;
    for at in ["a", "b", "c", "d", "e", "f", "g"] {
        set(&storage, at, "1").await;
    }
    let tx = writing(&storage).await;
    assert!(tx.exists(key("a"), None).await.unwrap());
    // After the snapshot.
    set(&storage, "aa", "later").await;
    remove(&storage, "g").await;
    let mut expected: BTreeMap<String, String> =
        ["a", "b", "c", "d", "e", "f", "g"].map(|at| (at.to_owned(), "1".to_owned())).into();
    for (at, to) in
        [("b", Some("2")), ("c", None), ("ca", Some("2")), ("z", Some("2")), ("y", None)]
    {
        match to {
            Some(to) => {
                tx.set(key(at), value(to)).await.unwrap();
                expected.insert(at.to_owned(), to.to_owned());
            }
            None => {
                tx.del(key(at)).await.unwrap();
                expected.remove(at);
            }
        }
    }
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    for (start, end) in [("", "~"), ("b", "d"), ("b", "b"), ("d", "b"), ("ca", "zz"), ("h", "i")] {
        let within: Vec<(&String, &String)> =
            expected.iter().filter(|(at, _)| at.as_str() >= start && at.as_str() < end).collect();
        assert_eq!(tx.count(range(start, end), None).await.unwrap(), within.len());
        for (limit, skip) in [(0, 0), (1, 0), (2, 1), (3, 3), (u32::MAX, 0), (u32::MAX, 2)] {
            for direction in [Direction::Forward, Direction::Backward] {
                let mut wanted = within.clone();
                let (found, keys) = match direction {
                    Direction::Forward => (
                        tx.scan(range(start, end), limit, skip, None).await.unwrap(),
                        tx.keys(range(start, end), limit, skip, None).await.unwrap(),
                    ),
                    Direction::Backward => {
                        wanted.reverse();
                        (
                            tx.scanr(range(start, end), limit, skip, None).await.unwrap(),
                            tx.keysr(range(start, end), limit, skip, None).await.unwrap(),
                        )
                    }
                };
                let (skip, limit) =
                    (usize::try_from(skip).unwrap(), usize::try_from(limit).unwrap());
                let wanted: Vec<(String, String)> = wanted
                    .into_iter()
                    .skip(skip)
                    .take(limit)
                    .map(|(at, to)| (at.clone(), to.clone()))
                    .collect();
                let found: Vec<_> =
                    found.values.iter().map(|(at, to)| (text(at), text(to))).collect();
                assert_eq!(found, wanted, "{start}..{end} {limit} {skip} {direction:?}");
                let keys: Vec<_> = keys.keys.iter().map(|at| text(at)).collect();
                let wanted: Vec<_> = wanted.into_iter().map(|(at, _)| at).collect();
                assert_eq!(keys, wanted, "{start}..{end} {limit} {skip} {direction:?}");
            }
        }
    }
    let keys = ["z", "c", "a", "aa", "a"].map(key);
    let found = tx.getm(&keys, None).await.unwrap();
    let two_and_one = [Some(value("2")), None, Some(value("1")), None, Some(value("1"))];
    assert_eq!(found.values, two_and_one);
    assert_eq!((found.records, found.value_bytes), (3, 3));
    tx.commit().await.unwrap();
    assert_eq!(stored(&storage, "z").await.as_deref(), Some("2"));
    assert_eq!(stored(&storage, "c").await, None);
    assert_eq!(stored(&storage, "aa").await.as_deref(), Some("later"));
}

#[tokio::test]
async fn scans_read_several_pages() {
    let server = Server::durable().await;
    let storage = open(&server).await;
    let tx = writing(&storage).await;
    for number in 0..2500 {
        tx.set(key(&format!("{number:05}")), value("1")).await.unwrap();
    }
    tx.commit().await.unwrap();
    let tx = writing(&storage).await;
    tx.set(key("00999x"), value("2")).await.unwrap();
    tx.del(key("02499")).await.unwrap();
    let forward = tx.scan(range("0", "1"), u32::MAX, 1, None).await.unwrap().values;
    assert_eq!(forward.len(), 2499);
    assert!(forward.is_sorted());
    let mut backward = tx.scanr(range("0", "1"), u32::MAX, 0, None).await.unwrap().values;
    backward.reverse();
    assert_eq!(backward[1..], forward);
    let mut cursor =
        tx.open_keys_cursor(range("0", "1"), Direction::Forward, 3, None).await.unwrap();
    let mut seen = 0;
    loop {
        let batch = cursor.next_batch(700).await.unwrap();
        if batch.is_empty() {
            break;
        }
        seen += batch.len();
    }
    assert_eq!(seen, 2497);
}

#[tokio::test]
async fn conditions_are_checked_against_the_own_writes() {
    let server = Server::durable().await;
    let storage = open(&server).await;
    set(&storage, "a", "1").await;
    let tx = writing(&storage).await;
    let exists = tx.put(key("a"), value("2")).await.unwrap_err();
    assert!(matches!(exists, Error::TransactionKeyAlreadyExists), "{exists}");
    tx.del(key("a")).await.unwrap();
    tx.put(key("a"), value("2")).await.unwrap();
    let unmet = tx.putc(key("a"), value("3"), Some(value("1"))).await.unwrap_err();
    assert!(matches!(unmet, Error::TransactionConditionNotMet), "{unmet}");
    tx.putc(key("a"), value("3"), Some(value("2"))).await.unwrap();
    tx.putc(key("b"), value("1"), None).await.unwrap();
    let unmet = tx.delc(key("b"), None).await.unwrap_err();
    assert!(matches!(unmet, Error::TransactionConditionNotMet), "{unmet}");
    tx.new_save_point().await.unwrap();
    tx.delc(key("b"), Some(b"1")).await.unwrap();
    assert!(!tx.exists(key("b"), None).await.unwrap());
    tx.rollback_to_save_point().await.unwrap();
    assert!(tx.exists(key("b"), None).await.unwrap());
    tx.commit().await.unwrap();
    assert_eq!(stored(&storage, "a").await.as_deref(), Some("3"));
    assert_eq!(stored(&storage, "b").await.as_deref(), Some("1"));
}

#[tokio::test]
async fn large_values_are_written_in_several_batches() {
    let server = Server::durable().await;
    let storage = open(&server).await;
    let large = |byte: u8| vec![byte; 3 << 20];
    let tx = writing(&storage).await;
    for byte in 1..=4_u8 {
        tx.set(Key::from(vec![byte]), large(byte)).await.unwrap();
    }
    tx.set(Key::from(vec![5_u8; 2600]), Vec::new()).await.unwrap();
    let refused = tx.set(Key::from(vec![5_u8; 2601]), Vec::new()).await.unwrap_err();
    assert!(matches!(refused, Error::TransactionKeyTooLarge), "{refused}");
    tx.commit().await.unwrap();
    let tx = reading(&storage).await;
    for byte in 1..=4_u8 {
        assert!(tx.get(Key::from(vec![byte]), None).await.unwrap() == Some(large(byte)));
    }
    assert_eq!(tx.get(Key::from(vec![5_u8; 2600]), None).await.unwrap(), Some(Vec::new()));
    let read_only = tx.set(key("a"), Vec::new()).await.unwrap_err();
    assert!(matches!(read_only, Error::TransactionReadonly), "{read_only}");
    tx.cancel().await.unwrap();
    let finished = tx.get(key("a"), None).await.unwrap_err();
    assert!(matches!(finished, Error::TransactionFinished), "{finished}");
    let versioned = reading(&storage).await.get(key("a"), Some(7)).await.unwrap_err();
    assert!(matches!(versioned, Error::UnsupportedVersionedQueries), "{versioned}");
}
