//! Changing one record: read it, change it, compare, write it and its audit entries.
//!
//! What belongs here: the one way in which a row of a resource is changed by its fields,
//! with the records that belong to the change (an export with its backfill, a plugin with
//! its files). What does not: the statements for those records, which are in the module of
//! their resource; what a change means (`weir-service`).
//!
//! Two changes of one record run one after another (`keyed_lock`), so that each audit entry
//! names the value that the change before it left. Some writers do not take the lock, such
//! as the deletion of an organization, or a run that is added to its export. Their writes
//! are noticed: the transaction compares the fields that it is about to change with the
//! values that were read. If one differs, the change begins again with the row that is
//! stored then. A row with a revision gets a new revision with every change, so comparing
//! the revision compares all fields.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;

use surrealdb::types::{Object, SurrealValue, Value, Variables};
use uuid::Uuid;
use weir_model::Timestamp;
use weir_model::activity::Entry;

use crate::activity;
use crate::bind::bind;
use crate::db::Statement;
use crate::keyed_lock::KeyPermit;
use crate::plugin_runtime::PluginChange;
use crate::{Error, Result, Store};

/// How often a change begins again after a writer without the lock.
const TRIES: u32 = 8;

/// A record that [`update`] changes.
pub trait Row: SurrealValue + Clone + PartialEq + Send + Sync {
    /// The key of the record in its table.
    type Id: SurrealValue + Display + Clone + Send + Sync;
    /// The name of the table in the store.
    const TABLE: &'static str;
    /// The name of the transaction in errors and metrics.
    const UPDATE: &'static str;
    /// The transaction. If other records depend on the row (an entry in a list, a unique
    /// name), their statements are the argument of `update_text!`.
    const TEXT: &'static str = update_text!();
    /// Fields that every change compares, also a change that does not write them: the
    /// owner of a record that can move, a revision.
    const COMPARED: &'static [&'static str] = &[];
    /// What the statements of `TEXT` write in addition to the row; `()` if nothing.
    type With: Send;

    /// Marks a change: sets the time of the last change, or a new revision.
    fn touch(&mut self, now: Timestamp);

    /// The key of the lock that other writers take, if they write this record often. A
    /// change takes that lock too, so that they cannot starve it.
    fn frequent_writers(&self) -> Option<Uuid> {
        None
    }

    /// What running plugins are notified of when the transaction has ended.
    fn plugin_changes(&self) -> Vec<PluginChange> {
        Vec::new()
    }

    /// Binds the values that the statements of `TEXT` use.
    ///
    /// # Errors
    /// A value that cannot be stored.
    fn bind(&self, _with: Self::With, _vars: &mut Variables) -> Result<()> {
        Ok(())
    }
}

/// A change of a row. An unchanged row without audit entries writes nothing.
#[derive(Debug)]
pub struct Change<R: Row> {
    /// The row after the change.
    pub row: R,
    /// The audit entries of the change.
    pub entries: Vec<Entry>,
    /// What is written in addition to the row.
    pub with: R::With,
}

/// The result of [`update`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Updated<R> {
    /// The row as it is stored now.
    Stored(R),
    /// There is no such record.
    Gone,
    /// A statement of `TEXT` refused the change with this word. Nothing was written.
    Refused(String),
}

impl<R> Updated<R> {
    /// The stored row, if any: for a row whose `TEXT` refuses nothing, and for callers to
    /// whom the reason does not matter.
    pub fn stored(self) -> Option<R> {
        match self {
            Self::Stored(row) => Some(row),
            Self::Gone | Self::Refused(_) => None,
        }
    }
}

const GET: Statement =
    Statement::read("record to change", "SELECT * FROM type::record($table, $id);");

/// The transaction that changes a record. The statements of the argument run before the
/// record is written. They read `$present`, the stored record, and `$row`, the record after
/// the change. With `THROW` and a word they refuse the change. The transaction may run
/// twice, so running them again must change nothing.
// If the outcome of a transaction was unknown and it runs again, it finds the values that it
// has written: therefore the comparison with `$after`. `CONTENT` also replaces objects
// within a field; fields that only the stored record has stay.
macro_rules! update_text {
    ($($dependent:expr)?) => {
        concat!(
            "BEGIN;
             LET $record = type::record($table, $id);
             LET $present = (SELECT * FROM ONLY $record);
             IF $present = NONE { THROW 'gone' };
             FOR $field IN $fields {
                 IF $present[$field] != $before[$field] AND $present[$field] != $after[$field] {
                     THROW 'changed'
                 };
             };
             LET $row = object::extend($present, $after);",
            $($dependent,)?
            "UPDATE $record CONTENT $row RETURN NONE;",
            $crate::activity::write_activities!(),
            "COMMIT;"
        )
    };
}
pub(crate) use update_text;

/// The lock of a record. It is released when dropped.
#[derive(Debug)]
pub struct RowPermit {
    _permits: Vec<KeyPermit<String>>,
}

/// Waits for the lock of a record, for a change that [`update`] does not make: its audit
/// entry names the values that it replaces, or the record is deleted.
pub async fn lock<R: Row>(store: &Store, id: &R::Id) -> RowPermit {
    RowPermit { _permits: store.row_locks.take([format!("{}:{id}", R::TABLE)]).await }
}

/// Changes the record with this id, and nothing else. `change` gets the stored row and returns the changed
/// one with its audit entries, or `None` to keep it; it is called again when another
/// writer was faster. `held`, such as a lock of the caller, is dropped when the transaction
/// has ended, even if the caller is dropped before.
///
/// # Errors
/// The error of `change`; any failure of the store.
pub async fn update<R: Row, E: From<Error>>(
    store: &Store,
    id: R::Id,
    held: impl Send + Sync + 'static,
    change: impl Fn(&R) -> Result<Option<(R, Vec<Entry>)>, E>,
) -> Result<Updated<R>, E>
where
    R::With: Default,
{
    let change = |before: R| {
        let changed = change(&before).map(|changed| {
            let (row, entries) = changed.unwrap_or((before, Vec::new()));
            (Change { row, entries, with: R::With::default() }, ())
        });
        std::future::ready(changed)
    };
    Ok(match update_with(store, id, held, change).await? {
        Updated::Stored((row, ())) => Updated::Stored(row),
        Updated::Gone => Updated::Gone,
        Updated::Refused(reason) => Updated::Refused(reason),
    })
}

/// [`update`] for a change that waits for other work, writes other records with the row, or
/// has a result of its own.
///
/// # Errors
/// The error of `change`; any failure of the store.
pub async fn update_with<R: Row, T, E: From<Error>, F>(
    store: &Store,
    id: R::Id,
    held: impl Send + Sync + 'static,
    change: impl Fn(R) -> F,
) -> Result<Updated<(R, T)>, E>
where
    F: Future<Output = Result<(Change<R>, T), E>>,
{
    // Always before the locks of organizations, which `activity::change_holding` takes, so
    // that there is no deadlock.
    let permit = lock::<R>(store, &id).await;
    let held = Arc::new((held, permit));
    let statement = Statement::write(R::UPDATE, R::TEXT);
    for _ in 0..TRIES {
        let key = bind! { table: R::TABLE, id: id.clone() };
        let found = store.db.run(GET, key.clone()).await?.row::<Object>(0)?;
        let Some(stored) = found else { return Ok(Updated::Gone) };
        let before = R::from_value(Value::Object(stored.clone())).map_err(wrong_shape::<R>)?;
        let (Change { row, entries, with }, result) = change(before.clone()).await?;
        if row == before && entries.is_empty() {
            return Ok(Updated::Stored((row, result)));
        }
        let writers = row.frequent_writers();
        let (fields, changed) = difference::<R>(before, row.clone());
        let mut vars = key;
        // The stored values, not those of the row: a row has a default for a field that the
        // record does not have.
        vars.insert("before", only(stored, &fields));
        vars.insert("fields", fields);
        vars.insert("after", changed);
        row.bind(with, &mut vars)?;
        // Before the locks of organizations, as in `activity::change_exports`.
        let writers = store.locks.take(writers).await;
        let held = (Arc::clone(&held), writers, store.plugin_changes.pending(row.plugin_changes()));
        match activity::change_holding(store, statement, vars, &entries, held).await {
            Ok(_) => return Ok(Updated::Stored((row, result))),
            Err(Error::Refused { reason, .. }) => match reason.as_str() {
                "changed" => {}
                "gone" => return Ok(Updated::Gone),
                _ => return Ok(Updated::Refused(reason)),
            },
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::Conflict { statement: R::UPDATE, attempts: TRIES }.into())
}

fn wrong_shape<R: Row>(error: surrealdb::types::Error) -> Error {
    Error::Shape { statement: R::UPDATE, detail: error.message().to_owned() }
}

/// The fields that differ or that every change compares, with their values after the change.
fn difference<R: Row>(before: R, after: R) -> (Vec<String>, Object) {
    let members = |row: R| match row.into_value() {
        Value::Object(members) => members,
        _ => Object::default(),
    };
    let (before, after) = (members(before), members(after));
    let names: BTreeSet<String> = before.keys().chain(after.keys()).cloned().collect();
    let is_unchanged = |name: &String| {
        before.get(name).unwrap_or(&Value::None) == after.get(name).unwrap_or(&Value::None)
    };
    let fields: Vec<String> = names
        .into_iter()
        .filter(|name| R::COMPARED.contains(&name.as_str()) || !is_unchanged(name))
        .collect();
    let mut after = only(after, &fields);
    // An optional field that was cleared may be missing; it must replace the stored value.
    for name in &fields {
        if !after.contains_key(name) {
            after.insert(name.clone(), Value::None);
        }
    }
    (fields, after)
}

fn only(mut members: Object, fields: &[String]) -> Object {
    members.retain(|name, _| fields.contains(name));
    members
}

#[cfg(test)]
pub(crate) mod tests;
