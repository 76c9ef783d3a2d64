//! Lists in two steps: first the ids of the whole list in order, which is a narrow range
//! of empty records; then the records of one page. So a page costs the same wherever it
//! begins. Both steps go past the query engine (`transaction`).
//!
//! What belongs here: both steps, and the bound in bytes of the second one. What does not:
//! the order and the owner of a list, which are in the module of its resource.

use std::sync::Arc;

use surrealdb::types::{RecordId, RecordIdKey, SurrealValue, Value, Variables};
use weir_model::json;

use crate::db::{Operation, Statement};
use crate::memory_budget::{ByteBudget, RECORDS_PER_STATEMENT, permit};
use crate::transaction::Transaction;
use crate::{Error, Result, Store};

/// Most memory that the records of one read may take, in bytes. The number of records and
/// their sizes are bounded too, so that usual pages stay far below it.
const PAGE: usize = 64 << 20;
/// Memory of one value beside its text, in bytes.
const VALUE: usize = 64;

const RECORDS: Operation = Operation::read("records of a page");

/// A table whose ids are a list of each owner, in order: `[owner, …]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order {
    /// The name in errors.
    pub(crate) name: &'static str,
    pub(crate) table: &'static str,
    /// The index of the listed id in the ids of the table.
    pub(crate) part: usize,
}

/// The ids of the list of `owner`, in order, converted with `of`.
pub(crate) async fn ordered<K: SurrealValue, T>(
    store: &Store,
    order: Order,
    owner: impl SurrealValue,
    of: fn(K) -> T,
) -> Result<Vec<T>> {
    let Order { name, table, part } = order;
    let owner = RecordIdKey::Array(vec![owner.into_value()].into());
    let range = store.db.keyspace().await?.beginning_with(RecordId::new(table, owner))?;
    let range = Arc::new(range);
    let work = move |tx: Transaction| {
        let range = Arc::clone(&range);
        async move { tx.ids(&range).await }
    };
    let ids = store.db.transact(Operation::read(name), (), work).await?;
    let listed = |id: RecordId| {
        let RecordIdKey::Array(parts) = id.key else { return Err(unexpected(name)) };
        let id = parts.into_iter().nth(part).ok_or_else(|| unexpected(name))?;
        K::from_value(id).map(of).map_err(|error| unusable(name, &error))
    };
    ids.into_iter().map(listed).collect()
}

/// The ids that a statement reads, in its order, converted with `of`: for lists that are
/// not those of one owner.
pub(crate) async fn ids<K: SurrealValue, T>(
    store: &Store,
    statement: Statement,
    vars: Variables,
    of: fn(K) -> T,
) -> Result<Vec<T>> {
    let ids = store.db.run(statement, vars).await?.rows::<K>(0)?;
    Ok(ids.into_iter().map(of).collect())
}

/// The records of a table with these ids, in the order of `ids`; `None` where a record is
/// missing. Several records that need too much memory together are [`Error::TooLarge`].
pub(crate) async fn records<T: SurrealValue + Send + 'static>(
    store: &Store,
    table: &'static str,
    ids: Vec<impl SurrealValue>,
) -> Result<Vec<Option<T>>> {
    within(store, RECORDS, table, ids, ByteBudget::of(PAGE), None).await
}

/// Like [`records`], for a `T` that has only some fields of a record. Only these count.
pub(crate) async fn parts<T: SurrealValue + Clone + Send + 'static>(
    store: &Store,
    operation: Operation,
    table: &'static str,
    ids: Vec<impl SurrealValue>,
) -> Result<Vec<Option<T>>> {
    let size = |part: &T| memory(&part.clone().into_value());
    within(store, operation, table, ids, ByteBudget::of(PAGE), Some(size)).await
}

/// `size` returns the memory of what is read. `None`: that of the record.
async fn within<T: SurrealValue + Send + 'static>(
    store: &Store,
    operation: Operation,
    table: &'static str,
    ids: Vec<impl SurrealValue>,
    budget: ByteBudget,
    size: Option<fn(&T) -> usize>,
) -> Result<Vec<Option<T>>> {
    let name = operation.name;
    let id = |key| RecordIdKey::from_value(key).map(|key| RecordId::new(table, key));
    let ids: Result<Vec<RecordId>, _> = ids.into_iter().map(|key| id(key.into_value())).collect();
    let ids = ids.map_err(|error| unusable(name, &error))?;
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    // One record does not wait for the reads of many, and can always be read.
    let is_alone = ids.len() == 1;
    let keys = Arc::new(store.db.keyspace().await?.keys(ids)?);
    let work = move |tx: Transaction| {
        let (keys, mut budget) = (Arc::clone(&keys), budget);
        async move {
            let mut records = Vec::with_capacity(keys.len());
            for some in keys.chunks(RECORDS_PER_STATEMENT) {
                for record in tx.get::<Value>(some).await? {
                    let Some(record) = record else {
                        records.push(None);
                        continue;
                    };
                    let whole = if size.is_none() { memory(&record) } else { 0 };
                    let row = T::from_value(record).map_err(|error| unusable(name, &error))?;
                    budget.take(size.map_or(whole, |size| size(&row)));
                    records.push(Some(row));
                }
                if budget.is_used_up() && !is_alone {
                    return Err(Error::TooLarge { statement: name }.into());
                }
            }
            Ok(records)
        }
    };
    match is_alone {
        true => store.db.transact(operation, (), work).await,
        false => store.db.transact(operation, permit(store).await?, work).await,
    }
}

/// The memory of a record, in bytes, also after its JSON texts are parsed.
fn memory(value: &Value) -> usize {
    VALUE
        + match value {
            Value::String(text) => text.len() + parsed(text),
            Value::Array(items) => items.iter().map(memory).sum(),
            Value::Object(members) => {
                members.iter().map(|(name, value)| name.len() + memory(value)).sum()
            }
            _ => 0,
        }
}

/// The memory of the values in a JSON text, in bytes. A small text may have many values:
/// `[0,0]` needs two bytes for each. Other texts are not parsed.
fn parsed(text: &str) -> usize {
    if !text.starts_with(['{', '[']) {
        return 0;
    }
    // Deeper texts than can be stored today: as if each byte were a value.
    json::measure(text.as_bytes(), usize::MAX).unwrap_or(json::size(0, text.len()))
}

fn unusable(statement: &'static str, error: &surrealdb::types::Error) -> Error {
    Error::Shape { statement, detail: error.message().to_owned() }
}

fn unexpected(statement: &'static str) -> Error {
    Error::Shape { statement, detail: "unexpected record id".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bind::bind;
    use crate::{Location, Settings};

    #[derive(Debug, PartialEq, SurrealValue)]
    struct Record {
        text: String,
    }

    const WRITE: Statement =
        Statement::write("test", "UPSERT type::record('test', $id) CONTENT { text: $text };");

    async fn of_size(count: i64, size: usize) -> Store {
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        for id in 0..count {
            store.db.run(WRITE, bind! { id: id, text: "x".repeat(size) }).await.unwrap();
        }
        store
    }

    async fn read(store: &Store, ids: Vec<i64>, budget: usize) -> Result<Vec<Option<Record>>> {
        within(store, RECORDS, "test", ids, ByteBudget::of(budget), None).await
    }

    #[tokio::test]
    async fn records_come_in_the_order_of_their_ids_however_many_there_are() {
        let store = of_size(70, 1).await;
        let ids: Vec<i64> = (0..80).rev().collect();
        let found = read(&store, ids, usize::MAX).await.unwrap();
        let present: Vec<bool> = found.iter().map(Option::is_some).collect();
        assert_eq!(present, [vec![false; 10], vec![true; 70]].concat());
        assert!(read(&store, Vec::new(), 1).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn records_that_need_too_much_memory_are_not_read_to_the_end() {
        let store = of_size(70, 10_000).await;
        let all = || (0..70).collect();
        let refused = read(&store, all(), 500_000).await;
        assert!(matches!(refused, Err(Error::TooLarge { .. })), "{refused:?}");
        assert_eq!(read(&store, all(), 1_000_000).await.unwrap().len(), 70);
        assert_eq!(read(&store, vec![1], 500_000).await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_list_has_the_ids_of_its_owner_in_order() {
        const LISTED: Statement = Statement::write(
            "test",
            "FOR $id IN $ids { UPSERT type::record('test', $id) CONTENT {} };",
        );
        const ORDER: Order = Order { name: "test", table: "test", part: 2 };
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        let ids = [[1, 9, 4], [2, 5, 6], [2, 3, 8], [2, 5, 2], [3, 0, 0]];
        let ids: Vec<Vec<i64>> = ids.into_iter().map(Vec::from).collect();
        store.db.run(LISTED, bind! { ids: ids }).await.unwrap();
        assert_eq!(ordered(&store, ORDER, 2_i64, |id: i64| id).await.unwrap(), [8, 2, 6]);
        assert!(ordered(&store, ORDER, 4_i64, |id: i64| id).await.unwrap().is_empty());
        let beyond = Order { part: 3, ..ORDER };
        assert!(ordered(&store, beyond, 2_i64, |id: i64| id).await.is_err());
    }

    #[test]
    fn values_of_json_texts_count_beside_their_bytes() {
        let memory = |text: &str| memory(&Value::String(text.to_owned()));
        let dense = "0,".repeat(1_000);
        assert!(memory(&dense) < 2_000 + 2 * VALUE);
        assert!(memory(&format!("[{dense}0]")) > 64_000);
        assert!(memory(&"[".repeat(1_000)) > 64_000);
    }
}
