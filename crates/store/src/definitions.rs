//! Definitions: event names, and the properties of events, persons and groups with the
//! kind of their first value.
//!
//! | table | id | holds |
//! |---|---|---|
//! | `event_definition` | `[project, name]` | when it was first and last seen |
//! | `property_definition` | `[project, owner, name]` | kind of value, when it was first seen |
//!
//! The writer bounds their number (`weir-ingest`), because senders choose the names.

use surrealdb::types::{Object, RecordId, RecordIdKey, SurrealValue, Value};
use weir_model::definitions::{EventDefinition, PropertyDefinition, PropertyKind, PropertyOwner};
use weir_model::{ProjectId, Timestamp};

use crate::bind::bind;
use crate::db::Statement;
use crate::warnings::of_project;
use crate::{Error, Result, Store};

const EVENT: Statement = Statement::read("event definition", "SELECT * FROM $ids;");
const EVENTS: Statement = Statement::read("event definitions", "SELECT * FROM $range;");
const PROPERTIES: Statement = Statement::read("property definitions", "SELECT * FROM $range;");
const IDS: Statement = Statement::read("ids of definitions", "SELECT VALUE id FROM $range;");
const DELETE: Statement = Statement::delete("purge definitions", "DELETE $ids RETURN NONE;");
/// Records that a removal deletes at a time.
const REMOVED: usize = 1_000;

#[derive(SurrealValue)]
struct EventRow {
    id: RecordId,
    first_at: i64,
    last_at: i64,
}

#[derive(SurrealValue)]
struct PropertyRow {
    id: RecordId,
    kind: String,
    first_at: i64,
}

/// The event names of a project, in order.
///
/// # Errors
/// When the store cannot be read.
pub async fn events(store: &Store, project: ProjectId) -> Result<Vec<EventDefinition>> {
    let vars = bind! { range: of_project("event_definition", project) };
    let rows: Vec<EventRow> = store.db.run(EVENTS, vars).await?.rows(0)?;
    rows.into_iter().map(|row| event_of(row, EVENTS.name)).collect()
}

/// One event name of a project. `None`: it is not in use, or it is not stored because the
/// project has too many names.
///
/// # Errors
/// When the store cannot be read.
pub async fn event(
    store: &Store,
    project: ProjectId,
    event: &str,
) -> Result<Option<EventDefinition>> {
    let ids = vec![event_id(project, event)];
    let row: Option<EventRow> = store.db.run(EVENT, bind! { ids: ids }).await?.row(0)?;
    row.map(|row| event_of(row, EVENT.name)).transpose()
}

fn event_of(row: EventRow, statement: &'static str) -> Result<EventDefinition> {
    Ok(EventDefinition {
        name: text(&row.id, 1, statement)?,
        first_at: Timestamp::from_micros(row.first_at),
        last_at: Timestamp::from_micros(row.last_at),
    })
}

/// The property names of a project, in order of owner and name.
///
/// # Errors
/// When the store cannot be read.
pub async fn properties(store: &Store, project: ProjectId) -> Result<Vec<PropertyDefinition>> {
    let vars = bind! { range: of_project("property_definition", project) };
    let rows: Vec<PropertyRow> = store.db.run(PROPERTIES, vars).await?.rows(0)?;
    rows.into_iter()
        .map(|row| {
            let owner = text(&row.id, 1, PROPERTIES.name)?;
            let unknown = |detail| Error::Shape { statement: PROPERTIES.name, detail };
            Ok(PropertyDefinition {
                owner: owner.parse::<PropertyOwner>().map_err(unknown)?,
                name: text(&row.id, 2, PROPERTIES.name)?,
                kind: row.kind.parse::<PropertyKind>().map_err(unknown)?,
                first_at: Timestamp::from_micros(row.first_at),
            })
        })
        .collect()
}

/// Removes all definitions of a project, in small transactions.
///
/// # Errors
/// When the store cannot be written; a further call continues.
pub(crate) async fn purge(store: &Store, project: ProjectId) -> Result<()> {
    for table in ["event_definition", "property_definition"] {
        let vars = bind! { range: of_project(table, project) };
        let ids: Vec<RecordId> = store.db.run(IDS, vars).await?.rows(0)?;
        for piece in ids.chunks(REMOVED) {
            store.db.run(DELETE, bind! { ids: piece.to_vec() }).await?;
        }
    }
    Ok(())
}

/// The record of an event name that was seen.
pub(crate) fn event_record(project: ProjectId, seen: &EventDefinition) -> (RecordId, Object) {
    let mut object = Object::new();
    object.insert("first_at", seen.first_at.micros());
    object.insert("last_at", seen.last_at.micros());
    (event_id(project, &seen.name), object)
}

/// The record of a property name.
pub(crate) fn property_record(project: ProjectId, seen: &PropertyDefinition) -> (RecordId, Object) {
    let parts = vec![Value::Number(project.0.into()), name(seen.owner.text()), name(&seen.name)];
    let mut object = Object::new();
    object.insert("kind", seen.kind.text().to_owned());
    object.insert("first_at", seen.first_at.micros());
    (id("property_definition", parts), object)
}

fn event_id(project: ProjectId, event: &str) -> RecordId {
    id("event_definition", vec![Value::Number(project.0.into()), name(event)])
}

fn id(table: &'static str, parts: Vec<Value>) -> RecordId {
    RecordId::new(table, RecordIdKey::Array(parts.into()))
}

fn name(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn text(id: &RecordId, index: usize, statement: &'static str) -> Result<String> {
    let wrong = || Error::Shape { statement, detail: "unexpected id".to_owned() };
    let RecordIdKey::Array(parts) = &id.key else { return Err(wrong()) };
    match parts.get(index) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) | None => Err(wrong()),
    }
}
