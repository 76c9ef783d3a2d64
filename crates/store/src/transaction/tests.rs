//! A transaction writes the bytes that a statement writes, keeps to what it has read, and
//! has the guards of every operation.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use surrealdb::types::{Bytes, Number, Object, RecordIdKey};
use surrealdb_datastore::key::schema::RecordPrefix;
use surrealdb_kvs::key::KVSubspace as _;
use uuid::Uuid;

use super::*;
use crate::Store;
use crate::bind::bind;
use crate::tests::{store, stores};

const WRITE: Operation = Operation::write("test");
const READ: Operation = Operation::read("test");

#[derive(Debug, PartialEq, SurrealValue)]
struct Count {
    count: i64,
}

fn id(number: i64) -> RecordId {
    RecordId::new("event_head", number)
}

async fn row(store: &Store, number: i64, count: i64) -> Row {
    store.db.keyspace().await.unwrap().row(id(number), Count { count }.into_value()).unwrap()
}

async fn count(store: &Store, number: i64) -> Option<i64> {
    let found: Vec<Option<Count>> = store.db.get(READ, vec![id(number)]).await.unwrap();
    found.into_iter().flatten().next().map(|found| found.count)
}

/// Writes a row with one transaction.
async fn set(store: &Store, number: i64, count: i64) -> Result<()> {
    let row = Arc::new(row(store, number, count).await);
    let work = move |tx: Transaction| {
        let row = Arc::clone(&row);
        async move { tx.set(&row).await }
    };
    store.db.transact(WRITE, (), work).await
}

/// All records or entries of a table, as keys and values of the storage.
pub(crate) async fn stored_of(store: &Store, table: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let Keyspace { ns, db } = store.db.keyspace().await.unwrap();
    let id = val::convert_public_value_to_internal(RecordId::new(table, 0_i64).into_value());
    let val::Value::RecordId(id) = id else { panic!("{table}") };
    let records = RecordPrefix { ns, db, tb: Cow::Owned(id.table) };
    let tx = store.db.datastore().transaction(TransactionType::Read).await.unwrap();
    let found = tx.getr_raw(records.raw_range().unwrap(), None).await.unwrap();
    tx.cancel().await.unwrap();
    found
}

/// All records of these tables, as keys and values of the storage.
pub(crate) async fn stored(store: &Store, tables: &[&'static str]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    for table in tables {
        let found = stored_of(store, table).await;
        assert!(!found.is_empty(), "{table}");
        all.extend(found);
    }
    all
}

/// Writes a value of the storage, whatever is there.
pub(crate) async fn overwrite(store: &Store, key: &[u8], value: Vec<u8>) {
    let tx = store.db.datastore().transaction(TransactionType::Write).await.unwrap();
    tx.set(Key::from(key.to_vec()), value).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn a_record_has_the_bytes_that_a_statement_writes() {
    const CREATE: Statement = Statement::write("test", "CREATE $id CONTENT $content RETURN NONE;");
    let uuid = || Value::Uuid(Uuid::from_u128(7).into());
    let mut inner = Object::new();
    inner.insert("absent", Value::None);
    inner.insert("null", Value::Null);
    let mut content = Object::new();
    content.insert("absent", Value::None);
    content.insert("array", vec![Value::None, Value::Object(inner.clone()), uuid()]);
    content.insert("bool", true);
    content.insert("bytes", Bytes::from(vec![0, 1, 255]));
    content.insert("empty", "");
    content.insert("float", Value::Number(Number::Float(-0.5)));
    content.insert("highest", i64::MAX);
    content.insert("lowest", i64::MIN);
    content.insert("object", Value::Object(inner));
    content.insert("text", "é\u{0}".repeat(9_000));
    content.insert("z", Vec::<i64>::new());
    let content = Value::Object(content);
    let (stores, _directory) = stores().await;
    let [one, other, ..] = stores.as_slice() else { panic!("several storages") };
    for key in [
        RecordIdKey::Number(-3),
        RecordIdKey::String("a\u{0}b".to_owned()),
        RecordIdKey::Array(vec![Value::Number(i64::MIN.into()), uuid()].into()),
        RecordIdKey::Array(vec![Value::Number(1.into()), Value::String("é".to_owned())].into()),
    ] {
        let id = RecordId::new("person", key);
        let vars = bind! { id: id.clone(), content: content.clone() };
        one.db.run(CREATE, vars).await.unwrap();
        let row = other.db.keyspace().await.unwrap().row(id, content.clone()).unwrap();
        let row = Arc::new(row);
        let insert = move |tx: Transaction| {
            let row = Arc::clone(&row);
            async move { tx.insert(std::slice::from_ref(&row)).await }
        };
        other.db.transact(WRITE, (), insert).await.unwrap();
    }
    assert_eq!(stored(one, &["person"]).await, stored(other, &["person"]).await);
}

#[tokio::test]
async fn a_transaction_is_repeated_when_a_record_that_it_read_for_update_changes() {
    let (stores, _directory) = stores().await;
    for store in stores {
        set(&store, 1, 0).await.unwrap();
        let (keyspace, attempts) =
            (store.db.keyspace().await.unwrap(), Arc::new(AtomicU32::new(0)));
        let (other, made) = (store.clone(), Arc::clone(&attempts));
        let work = move |tx: Transaction| {
            let (other, made) = (other.clone(), Arc::clone(&made));
            async move {
                let found: Option<Count> = tx.get_for_update(&keyspace.key(id(1))?).await?;
                let found = found.unwrap().count;
                if made.fetch_add(1, Ordering::Relaxed) == 0 {
                    set(&other, 1, 5).await?;
                }
                // It writes another record than the one that it read.
                tx.set(&row(&other, 2, found).await).await
            }
        };
        store.db.transact(WRITE, (), work).await.unwrap();
        assert_eq!(attempts.load(Ordering::Relaxed), 2);
        assert_eq!(count(&store, 2).await, Some(5), "the second attempt has read the change");
    }
}

#[tokio::test]
async fn of_two_inserts_of_a_record_one_fails() {
    let (stores, _directory) = stores().await;
    for store in stores {
        let other = store.clone();
        let work = move |tx: Transaction| {
            let other = other.clone();
            async move {
                tx.insert(&[row(&other, 1, 1).await]).await?;
                if count(&other, 1).await.is_none() {
                    set(&other, 1, 2).await?;
                }
                Ok(())
            }
        };
        let failed = store.db.transact(WRITE, (), work).await.unwrap_err();
        assert!(matches!(failed, Error::Exists { .. }), "{failed}");
        assert_eq!(count(&store, 1).await, Some(2));
        let twice = Arc::new([row(&store, 3, 1).await, row(&store, 3, 2).await]);
        let work = move |tx: Transaction| {
            let twice = Arc::clone(&twice);
            async move { tx.insert(&*twice).await }
        };
        let failed = store.db.transact(WRITE, (), work).await.unwrap_err();
        assert!(matches!(failed, Error::Exists { .. }), "{failed}");
        assert_eq!(count(&store, 3).await, None);
    }
}

#[tokio::test]
async fn entries_of_an_index_are_written_once() {
    let (stores, _directory) = stores().await;
    for store in stores {
        let keyspace = store.db.keyspace().await.unwrap();
        let entry = |number: i64, value: &[u8]| Entry {
            key: keyspace.key(id(number)).unwrap().into_bytes(),
            value: value.to_vec(),
        };
        let insert = async |entries: Vec<Entry>| {
            let entries = Arc::new(entries);
            let work = move |tx: Transaction| {
                let entries = Arc::clone(&entries);
                async move {
                    let keys: Vec<&[u8]> = entries.iter().map(|one| one.key.as_slice()).collect();
                    tx.require_no_entries(&entries, &tx.small_values(&keys).await?)?;
                    for entry in entries.iter() {
                        tx.put(entry).await?;
                    }
                    Ok(())
                }
            };
            store.db.transact(WRITE, (), work).await
        };
        insert(vec![entry(1, b"a"), entry(2, b"")]).await.unwrap();
        for refused in [
            vec![entry(0, b"x"), entry(2, b"x")],
            vec![entry(3, b"x"), entry(3, b"x")],
            vec![entry(4, b"x"), entry(3, b"x")],
        ] {
            let error = insert(refused).await.unwrap_err();
            assert!(matches!(error, Error::Exists { .. }), "{error}");
        }
        let of = |entry: Entry| (entry.key, entry.value);
        let expected = vec![of(entry(1, b"a")), of(entry(2, b""))];
        assert_eq!(stored_of(&store, "event_head").await, expected);
        let work = move |tx: Transaction| async move {
            let keys = keyspace.keys([id(0), id(1)])?;
            let keys: Vec<_> = keys.into_iter().map(RowKey::into_bytes).collect();
            tx.delete(&keys).await?;
            let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            tx.entries(&keys).await
        };
        assert_eq!(store.db.transact(WRITE, (), work).await.unwrap(), [None, None]);
        assert_eq!(stored_of(&store, "event_head").await, expected[1..]);
    }
}

#[tokio::test]
async fn ranges_have_the_ids_that_statements_find() {
    const CREATE: Statement = Statement::write("test", "INSERT INTO event_time $rows RETURN NONE;");
    const FIND: Statement = Statement::read(
        "test",
        "SELECT VALUE id FROM event_time:[5]..=[5, ..];
         SELECT VALUE id FROM event_time:[5, 1]..[5, 3];",
    );
    let (stores, _directory) = stores().await;
    for store in stores {
        let id = |numbers: &[i64]| {
            let parts = numbers.iter().map(|number| Value::Number((*number).into()));
            RecordId::new("event_time", RecordIdKey::Array(parts.collect::<Vec<_>>().into()))
        };
        let ids = [
            &[4_i64, 9] as &[i64],
            &[5],
            &[5, i64::MIN],
            &[5, 0, 1],
            &[5, 1],
            &[5, 1, 0],
            &[5, 2, 7],
            &[5, 3],
            &[5, i64::MAX, 1],
            &[6, 0],
            &[256, 1],
            &[-5, 1],
        ]
        .map(id);
        let row = |id: RecordId| {
            let mut row = Object::new();
            row.insert("id", id);
            Value::Object(row)
        };
        let rows: Vec<Value> = ids.into_iter().map(row).collect();
        store.db.run(CREATE, bind! { rows: rows }).await.unwrap();
        let mut answer = store.db.run(FIND, bind! {}).await.unwrap();
        let expected: [Vec<RecordId>; 2] = [answer.rows(0).unwrap(), answer.rows(1).unwrap()];
        assert_eq!(expected.each_ref().map(Vec::len), [8, 3]);
        let keyspace = store.db.keyspace().await.unwrap();
        let ranges = Arc::new([
            keyspace.beginning_with(id(&[5])).unwrap(),
            keyspace.range(id(&[5, 1]), id(&[5, 3])).unwrap(),
            keyspace.range(id(&[5, 2]), id(&[5, 3])).unwrap(),
        ]);
        let work = move |tx: Transaction| {
            let ranges = Arc::clone(&ranges);
            async move {
                let [all, some, whole] = &*ranges;
                assert!(tx.numbers::<3>(some).await.is_err(), "an id of two numbers");
                Ok((
                    [tx.ids(all).await?, tx.ids(some).await?],
                    tx.count(all, u32::MAX).await?,
                    tx.count(all, 3).await?,
                    tx.numbers::<3>(whole).await?,
                ))
            }
        };
        let (found, all, some, numbers) = store.db.transact(READ, (), work).await.unwrap();
        assert_eq!(found, expected);
        assert_eq!((all, some, numbers), (8, 3, vec![[5, 2, 7]]));
    }
}

#[tokio::test]
async fn records_and_statements_are_written_together_or_not_at_all() {
    const CREATE: Statement = Statement::write("create", "CREATE $id SET count = 1 RETURN NONE;");
    const REFUSE: Statement = Statement::write("refuse", "THROW 'stale test';");
    #[derive(Clone, Copy)]
    enum End {
        Thrown,
        Refused,
        Committed,
    }
    let (stores, _directory) = stores().await;
    for store in stores {
        let run = async |end: End| {
            let row = Arc::new(row(&store, 1, 1).await);
            let work = move |tx: Transaction| {
                let row = Arc::clone(&row);
                async move {
                    tx.set(&row).await?;
                    tx.run(CREATE, bind! { id: id(2) }).await?;
                    match end {
                        End::Thrown => tx.run(REFUSE, bind! {}).await,
                        End::Refused => Err(tx.refusal("stale test")),
                        End::Committed => Ok(()),
                    }
                }
            };
            store.db.transact(WRITE, (), work).await
        };
        for end in [End::Thrown, End::Refused] {
            let refused = run(end).await.unwrap_err();
            assert!(
                matches!(&refused, Error::Refused { reason, .. } if reason == "stale test"),
                "{refused}"
            );
            assert_eq!((count(&store, 1).await, count(&store, 2).await), (None, None));
        }
        run(End::Committed).await.unwrap();
        assert_eq!((count(&store, 1).await, count(&store, 2).await), (Some(1), Some(1)));
        let again = run(End::Committed).await.unwrap_err();
        assert!(matches!(again, Error::Exists { statement: "create", .. }), "{again}");
    }
}

#[tokio::test]
async fn a_transaction_ends_without_its_caller() {
    let store = store().await;
    let row = Arc::new(row(&store, 1, 1).await);
    let (begin, begun) = tokio::sync::watch::channel(false);
    let work = move |tx: Transaction| {
        let (row, mut begun) = (Arc::clone(&row), begun.clone());
        async move {
            begun.wait_for(|begun| *begun).await.unwrap();
            tx.set(&row).await
        }
    };
    let (held, mut ended) = tokio::sync::oneshot::channel::<()>();
    {
        let mut call = std::pin::pin!(store.db.transact(WRITE, held, work));
        assert!(poll_once(call.as_mut()).await.is_none());
    }
    assert_eq!(ended.try_recv(), Err(tokio::sync::oneshot::error::TryRecvError::Empty));
    begin.send(true).unwrap();
    // Its sender was held until the transaction ended.
    assert!(ended.await.is_err());
    assert_eq!(count(&store, 1).await, Some(1));
}

/// Polls a call once.
async fn poll_once<T>(mut call: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(match call.as_mut().poll(context) {
            std::task::Poll::Ready(done) => Some(done),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

#[tokio::test]
async fn a_transaction_has_a_time_limit() {
    let (stores, _directory) = stores().await;
    for store in stores {
        let slow = Arc::new(row(&store, 1, 1).await);
        let work = move |tx: Transaction| {
            let slow = Arc::clone(&slow);
            async move {
                tx.set(&slow).await?;
                std::future::pending::<Result<(), Failure>>().await
            }
        };
        let limited = WRITE.within(Duration::from_millis(20));
        let late = store.db.transact(limited, (), work).await.unwrap_err();
        assert!(matches!(late, Error::Timeout { .. }), "{late}");
        assert_eq!(count(&store, 1).await, None);
        set(&store, 1, 2).await.unwrap();
    }
}

#[tokio::test]
async fn a_storage_failure_or_a_panic_stops_the_store() {
    for is_panic in [false, true] {
        let store = store().await;
        let work = move |_tx: Transaction| async move {
            assert!(!is_panic, "a panic below an operation");
            Err::<(), _>(Error::Storage { statement: "test", detail: String::new() }.into())
        };
        let failed = store.db.transact(WRITE, (), work).await.unwrap_err();
        assert!(matches!(failed, Error::Storage { .. }), "{failed}");
        store.failed().await;
        let stopped = store.db.get::<Count>(READ, vec![id(1)]).await.unwrap_err();
        assert!(matches!(stopped, Error::Stopped), "{stopped}");
    }
}
