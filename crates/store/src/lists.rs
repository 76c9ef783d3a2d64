//! Lists in two steps: first the ids of the whole list in order, which is a narrow range
//! of empty records; then the records of one page. So a page costs the same wherever it
//! begins.
//!
//! What belongs here: both steps, and the bound in bytes of the second one. What does not:
//! the order and the owner of a list, which are in the module of its resource.

use std::collections::VecDeque;

use surrealdb::types::{RecordId, RecordIdKey, SurrealValue, Value, Variables};
use weir_model::json;

use crate::bind::bind;
use crate::db::Statement;
use crate::memory_budget::{ByteBudget, RECORDS_PER_STATEMENT, read_large};
use crate::{Error, Result, Store};

/// Most memory that the records of one read may take, in bytes. The number of records and
/// their sizes are bounded too, so that usual pages stay far below it.
const PAGE: usize = 64 << 20;
/// Memory of one value beside its text, in bytes.
const VALUE: usize = 64;

/// The ids that a statement reads, in its order, converted with `of`.
pub(crate) async fn ids<K: SurrealValue, T>(
    store: &Store,
    statement: Statement,
    vars: Variables,
    of: fn(K) -> T,
) -> Result<Vec<T>> {
    let ids = store.db.run(statement, vars).await?.rows::<K>(0)?;
    Ok(ids.into_iter().map(of).collect())
}

// The ids are made here and one statement reads all records: a closure that fetches each
// of them takes four times as long.
const RECORDS: Statement = Statement::read("records of a page", "SELECT * FROM $ids;");

/// The records of a table with these ids, in the order of `ids`; `None` where a record is
/// missing. Every id may occur once. Several records that need too much memory together
/// are [`Error::TooLarge`].
pub(crate) async fn records<T: SurrealValue>(
    store: &Store,
    table: &'static str,
    ids: Vec<impl SurrealValue>,
) -> Result<Vec<Option<T>>> {
    parts(store, RECORDS, table, ids).await
}

/// Like [`records`], with another statement: one that selects `id` and only those fields
/// that `T` has, from `$ids`.
pub(crate) async fn parts<T: SurrealValue>(
    store: &Store,
    statement: Statement,
    table: &'static str,
    ids: Vec<impl SurrealValue>,
) -> Result<Vec<Option<T>>> {
    within(store, statement, table, ids, ByteBudget::of(PAGE)).await
}

async fn within<T: SurrealValue>(
    store: &Store,
    statement: Statement,
    table: &'static str,
    ids: Vec<impl SurrealValue>,
    mut budget: ByteBudget,
) -> Result<Vec<Option<T>>> {
    let unusable = |error| unusable(statement, &error);
    let id = |key| RecordIdKey::from_value(key).map(|key| RecordId::new(table, key));
    let ids: Result<Vec<RecordId>, _> = ids.into_iter().map(|key| id(key.into_value())).collect();
    let ids = ids.map_err(unusable)?;
    let mut records = Vec::with_capacity(ids.len());
    for some in ids.chunks(RECORDS_PER_STATEMENT) {
        let vars = bind! { ids: some.to_vec() };
        // One record does not wait for the reads of many.
        let rows: Vec<Value> = match some {
            [_] => store.db.run(statement, vars).await?.rows(0)?,
            _ => read_large(store, statement, vars).await?,
        };
        let mut found = VecDeque::with_capacity(rows.len());
        for row in rows {
            budget.take(memory(&row));
            let id = match &row {
                Value::Object(row) => row.get("id").cloned().unwrap_or_default(),
                _ => Value::None,
            };
            let id = RecordId::from_value(id).map_err(unusable)?;
            found.push_back((id, T::from_value(row).map_err(unusable)?));
        }
        // One record alone can always be read.
        if budget.is_used_up() && ids.len() > 1 {
            return Err(Error::TooLarge { statement: statement.name });
        }
        records.extend(some.iter().map(|id| {
            // Records come in the order of the ids, so this is the first one, or missing.
            let at = found.iter().position(|(other, _)| other == id)?;
            found.remove(at).map(|(_, row)| row)
        }));
    }
    Ok(records)
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

fn unusable(statement: Statement, error: &surrealdb::types::Error) -> Error {
    Error::Shape { statement: statement.name, detail: error.message().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        within(store, RECORDS, "test", ids, ByteBudget::of(budget)).await
    }

    #[tokio::test]
    async fn records_come_in_the_order_of_their_ids_over_several_statements() {
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

    #[test]
    fn values_of_json_texts_count_beside_their_bytes() {
        let memory = |text: &str| memory(&Value::String(text.to_owned()));
        let dense = "0,".repeat(1_000);
        assert!(memory(&dense) < 2_000 + 2 * VALUE);
        assert!(memory(&format!("[{dense}0]")) > 64_000);
        assert!(memory(&"[".repeat(1_000)) > 64_000);
    }
}
