//! Changing one record: read it, change it, compare, write it and its audit entries.
//!
//! What belongs here: the one way in which a row of a resource is changed by its fields.
//! What does not: changes that also write other records, which are transactions in the
//! module of their resource; what a change means (`weir-service`).
//!
//! Two changes of one record run one after another (`keyed_lock`), so that each audit entry
//! names the value that the change before it left. A writer without the lock (a deletion,
//! another field) is noticed: the transaction compares the fields that it is about to
//! change with the values that were read, and the change begins again with what is stored
//! then.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;

use surrealdb::types::{Object, SurrealValue, Value};
use weir_model::Timestamp;
use weir_model::activity::Entry;

use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::{Error, Result, Store};

/// How often a change begins again after a writer without the lock.
const TRIES: u32 = 8;

/// A record that [`update`] changes.
pub trait Row: SurrealValue + Clone + PartialEq + Send + Sync {
    /// The key of the record in its table.
    type Id: SurrealValue + Display + Copy + Send + Sync;
    /// The table.
    const TABLE: &'static str;
    /// The name of the transaction in errors and metrics.
    const UPDATE: &'static str;
    /// Fields that no change writes and that must be as they were read: the owner of a
    /// record that can move.
    const FIXED: &'static [&'static str] = &[];

    /// Sets the time of the last change.
    fn touch(&mut self, now: Timestamp);
}

const GET: Statement =
    Statement::read("record to change", "SELECT * FROM type::record($table, $id);");

// A repeated transaction whose outcome was unknown finds its own values. `CONTENT` also
// replaces objects within a field; fields that the row does not have are kept.
const UPDATE: &str = concat!(
    "BEGIN;
     LET $record = type::record($table, $id);
     LET $present = (SELECT * FROM ONLY $record);
     IF $present = NONE { THROW 'gone' };
     FOR $field IN $fields {
         IF $present[$field] != $before[$field] AND $present[$field] != $after[$field] {
             THROW 'changed'
         };
     };
     UPDATE $record CONTENT object::extend($present, $after) RETURN NONE;",
    write_activities!(),
    "COMMIT;"
);

/// Changes the record with this id. `change` gets the stored row and returns the changed
/// one with its audit entries, or `None` to keep it; it is called again when another
/// writer was faster. `held` is dropped when the transaction has ended. Returns the row as
/// it is stored afterwards; `None`: there is no such record.
///
/// # Errors
/// The error of `change`; any failure of the store.
pub async fn update<R: Row, E: From<Error>>(
    store: &Store,
    id: R::Id,
    held: impl Send + Sync + 'static,
    change: impl Fn(&R) -> Result<Option<(R, Vec<Entry>)>, E>,
) -> Result<Option<R>, E> {
    // Always before the locks of organizations, which `activity::change_holding` takes.
    let lock = store.row_locks.take([format!("{}:{id}", R::TABLE)]).await;
    let held = Arc::new((held, lock));
    for _ in 0..TRIES {
        let key = bind! { table: R::TABLE, id: id };
        let found = store.db.run(GET, key.clone()).await?.row::<R>(0)?;
        let Some(before) = found else { return Ok(None) };
        let Some((after, entries)) = change(&before)? else { return Ok(Some(before)) };
        let (fields, before, changed) = difference::<R>(before, after.clone());
        let mut vars = key;
        vars.insert("fields", fields);
        vars.insert("before", before);
        vars.insert("after", changed);
        let statement = Statement::write(R::UPDATE, UPDATE);
        match activity::change_holding(store, statement, vars, &entries, Arc::clone(&held)).await {
            Ok(_) => return Ok(Some(after)),
            Err(Error::Refused { reason, .. }) if reason == "gone" => return Ok(None),
            Err(Error::Refused { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::Conflict { statement: R::UPDATE, attempts: TRIES }.into())
}

/// The fields that differ, or must not, with their values before and after.
fn difference<R: Row>(before: R, after: R) -> (Vec<String>, Object, Object) {
    let members = |row: R| match row.into_value() {
        Value::Object(members) => members,
        _ => Object::default(),
    };
    let (mut before, mut after) = (members(before), members(after));
    let names: BTreeSet<String> = before.keys().chain(after.keys()).cloned().collect();
    let is_kept = |name: &String| {
        before.get(name).unwrap_or(&Value::None) == after.get(name).unwrap_or(&Value::None)
    };
    let fields: Vec<String> = names
        .into_iter()
        .filter(|name| R::FIXED.contains(&name.as_str()) || !is_kept(name))
        .collect();
    before.retain(|name, _| fields.contains(name));
    after.retain(|name, _| fields.contains(name));
    // An optional field that was cleared may be missing; it must replace the stored value.
    for name in &fields {
        if !after.contains_key(name) {
            after.insert(name.clone(), Value::None);
        }
    }
    (fields, before, after)
}
