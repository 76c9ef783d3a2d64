//! Lists in two steps: first the ids of the whole list in order, which is a narrow range
//! of empty records; then the records of one page. So a page costs the same wherever it
//! begins.
//!
//! What belongs here: both steps. What does not: the order and the owner of a list, which
//! are in the module of its resource.

use std::collections::VecDeque;

use surrealdb::types::{RecordId, RecordIdKey, SurrealValue, Value, Variables};

use crate::bind::bind;
use crate::db::Statement;
use crate::{Error, Result, Store};

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
/// missing. Every id may occur once.
pub(crate) async fn records<T: SurrealValue>(
    store: &Store,
    table: &'static str,
    ids: Vec<impl SurrealValue>,
) -> Result<Vec<Option<T>>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let id = |key| RecordIdKey::from_value(key).map(|key| RecordId::new(table, key));
    let ids: Result<Vec<RecordId>, _> = ids.into_iter().map(|key| id(key.into_value())).collect();
    let ids = ids.map_err(|error| unusable(&error))?;
    let rows = store.db.run(RECORDS, bind! { ids: ids.clone() }).await?.rows::<Value>(0)?;
    let mut found = VecDeque::with_capacity(rows.len());
    for row in rows {
        let id = match &row {
            Value::Object(row) => row.get("id").cloned().unwrap_or_default(),
            _ => Value::None,
        };
        let id = RecordId::from_value(id).map_err(|error| unusable(&error))?;
        found.push_back((id, T::from_value(row).map_err(|error| unusable(&error))?));
    }
    let take = |id| {
        // Records come in the order of the ids, so this is the first one, or missing.
        let at = found.iter().position(|(other, _)| other == id)?;
        found.remove(at).map(|(_, row)| row)
    };
    Ok(ids.iter().map(take).collect())
}

fn unusable(error: &surrealdb::types::Error) -> Error {
    Error::Shape { statement: RECORDS.name, detail: error.message().to_owned() }
}
