//! Records that belong to a project and have a number: insights, dashboards,
//! annotations, alerts, subscriptions.
//!
//! What belongs here: their keys, the order of their lists, new numbers, their creation and
//! deletion, and their removal with the project. What does not: their fields, which are in the
//! module of each.

use std::fmt;

use surrealdb::types::{
    Error as ValueError, Kind, RecordId, RecordIdKey, SurrealValue, Value, Variables,
};
use weir_model::activity::Entry;
use weir_model::{OrganizationId, ProjectId};

use crate::activity;
use crate::bind::bind;
use crate::db::{Operation, Statement};
use crate::lists::{self, Order};
use crate::{Error, Result, Store};

/// Fields of records that are read at a time.
const BRIEFS: usize = 500;
/// Records that one transaction of a purge removes.
const REMOVED: u32 = 1_000;

const PURGE: Operation = Operation::delete("purge numbered records");

/// The key of a record: the project and a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberedKey {
    /// The project that the record belongs to.
    pub project: ProjectId,
    /// The number, which no other record of the table has.
    pub number: i64,
}

impl NumberedKey {
    fn parts(self) -> Vec<i64> {
        vec![self.project.0, self.number]
    }
}

impl fmt::Display for NumberedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.project, self.number)
    }
}

impl SurrealValue for NumberedKey {
    fn kind_of() -> Kind {
        <Vec<i64>>::kind_of()
    }

    fn into_value(self) -> Value {
        self.parts().into_value()
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        let parts = <Vec<i64>>::from_value(value)?;
        let &[project, number] = parts.as_slice() else {
            return Err(ValueError::internal("not a project and a number".to_owned()));
        };
        Ok(Self { project: ProjectId(project), number })
    }
}

/// A number of a sequence, which `statement` returns.
pub(crate) async fn next(store: &Store, statement: Statement) -> Result<i64> {
    let number = store.db.run(statement, bind! {}).await?.row(0)?;
    number.ok_or_else(|| Error::Shape { statement: statement.name, detail: "no number".to_owned() })
}

/// The transaction that creates `$row` in a table. The record of the project counts its records
/// in the field `$count`. The statements of further arguments write the records that depend on
/// the row; with `THROW` and a word they refuse the creation.
// Writing the record of the project makes this conflict with its deletion, and counts
// concurrent creations. A retry after a lost answer finds its record.
macro_rules! create_text {
    ($table:literal, $count:literal $(, $dependent:expr)*) => {
        concat!(
            "BEGIN;
             LET $record = type::record('", $table, "', [$row.project, $row.number]);
             LET $present = (SELECT VALUE number FROM ONLY $record);
             IF $present = NONE {
                 LET $of = (UPDATE type::record('project', $row.project)
                            SET ", $count, " = (", $count, " ?? 0) + 1 RETURN AFTER);
                 IF $of = [] OR $of[0].organization != $organization { THROW 'gone' };
                 IF $of[0].", $count, " > $most { THROW 'full' };
                 UPSERT $record CONTENT $row RETURN NONE;",
            $($dependent,)*
            $crate::activity::write_activities!(),
            "};
             COMMIT;"
        )
    };
}
pub(crate) use create_text;

/// The result of creating a record. Nothing was written except with `Yes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// The record is stored.
    Yes,
    /// The project is deleted, or belongs to another organization now.
    Gone,
    /// The project has as many of these records as allowed.
    TooMany,
    /// A statement for dependent records refused the creation with this word.
    Refused(String),
}

/// Adds a record of this organization's project, with a statement of [`create_text`].
/// `dependent` are the values that only the statements for dependent records use.
pub(crate) async fn create<R: SurrealValue + Clone>(
    store: &Store,
    statement: Statement,
    organization: OrganizationId,
    row: &R,
    most: usize,
    dependent: Variables,
    activities: &[Entry],
) -> Result<Created> {
    let mut vars = dependent;
    vars.insert("row", row.clone());
    vars.insert("organization", organization.0);
    vars.insert("most", i64::try_from(most).unwrap_or(i64::MAX));
    match activity::change(store, statement, vars, activities).await {
        Ok(_) => Ok(Created::Yes),
        Err(Error::Refused { reason, .. }) => Ok(match reason.as_str() {
            "gone" => Created::Gone,
            "full" => Created::TooMany,
            _ => Created::Refused(reason),
        }),
        Err(error) => Err(error),
    }
}

/// The transaction that deletes the record `$record_number` of `$project` from a table, if it is
/// there. The record of the project counts its records in the field `$count`. The statements of
/// further arguments remove what depends on the record, which is `$row`.
macro_rules! delete_text {
    ($table:literal, $count:literal $(, $dependent:expr)*) => {
        concat!(
            "BEGIN;
             LET $record = type::record('", $table, "', [$project, $record_number]);
             LET $row = (SELECT * FROM ONLY $record);
             IF $row != NONE {
                 DELETE $record RETURN NONE;
                 UPDATE type::record('project', $project)
                     SET ", $count, " = (", $count, " ?? 1) - 1 RETURN NONE;",
            $($dependent,)*
            $crate::activity::write_activities!(),
            "};
             COMMIT;"
        )
    };
}
pub(crate) use delete_text;

/// Deletes a record, with a statement of [`delete_text`]. Does nothing when it is already
/// deleted. `dependent` are the values that only the statements for dependent records use.
pub(crate) async fn delete(
    store: &Store,
    statement: Statement,
    key: NumberedKey,
    dependent: Variables,
    activities: &[Entry],
) -> Result<()> {
    let mut vars = dependent;
    vars.insert("project", key.project.0);
    vars.insert("record_number", key.number);
    activity::change(store, statement, vars, activities).await.map(drop)
}

/// The fields of all records of a list table of a project, in the order of their numbers.
pub(crate) async fn briefs<T: SurrealValue + Clone + Send + 'static>(
    store: &Store,
    project: ProjectId,
    name: &'static str,
    table: &'static str,
) -> Result<Vec<T>> {
    let order = Order { name, table, part: 1 };
    let numbers = lists::ordered(store, order, project.0, |number: i64| number).await?;
    let mut briefs = Vec::with_capacity(numbers.len());
    // The fields are small, so that the number of records is the only bound of this list.
    for some in numbers.chunks(BRIEFS) {
        let found = lists::parts(store, Operation::read(name), table, keys(project, some)).await?;
        briefs.extend(found.into_iter().flatten());
    }
    Ok(briefs)
}

/// The records with these numbers, in their order; missing ones are skipped.
pub(crate) async fn rows<T: SurrealValue + Send + 'static>(
    store: &Store,
    project: ProjectId,
    table: &'static str,
    numbers: &[i64],
) -> Result<Vec<T>> {
    let found = lists::records(store, table, keys(project, numbers)).await?;
    Ok(found.into_iter().flatten().collect())
}

fn keys(project: ProjectId, numbers: &[i64]) -> Vec<Vec<i64>> {
    let key = |number: &i64| NumberedKey { project, number: *number }.parts();
    numbers.iter().map(key).collect()
}

/// Removes all records of a project whose ids begin with it.
///
/// # Errors
/// When the store cannot be written; a further call continues.
pub(crate) async fn purge(
    store: &Store,
    project: ProjectId,
    tables: &[&'static str],
) -> Result<()> {
    for table in tables {
        let key = RecordIdKey::Array(vec![project.0.into_value()].into());
        let range = store.db.keyspace().await?.beginning_with(RecordId::new(*table, key))?;
        store.db.delete_range(PURGE, range, REMOVED).await?;
    }
    Ok(())
}
