//! Persons: whom events are about.
//!
//! | table | id | holds |
//! |---|---|---|
//! | `person` | `[project, uuid]` | distinct ids, properties as JSON text, version |
//!
//! A person's uuid follows from the distinct id it was first seen with
//! ([`first_id`]), so the common look-up is one point get. Ids that lead
//! elsewhere come with merges.

use surrealdb::types::{RecordId, RecordIdKey, SurrealValue, Value};
use uuid::{Uuid, uuid};
use weir_model::persons::PersonRef;
use weir_model::{PersonId, ProjectId, Timestamp};

use crate::bind::bind;
use crate::db::Statement;
use crate::events::PersonWrite;
use crate::{Result, Store};

/// Namespace of person ids (ingestion 4.2). Never changes: stored ids follow from it.
const NAMESPACE: Uuid = uuid!("932979b4-65c3-4424-8467-0b66ec27bc22");
/// How many records are fetched with one statement.
const FETCH: usize = 256;

const BY_ID: Statement = Statement::read("persons by id", "SELECT * FROM $ids;");

/// A person as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// What events show of it.
    pub person: PersonRef,
    /// Rises with every change.
    pub version: i64,
}

#[derive(SurrealValue)]
struct Row {
    id: RecordId,
    distinct_ids: Vec<String>,
    properties: String,
    created_at: i64,
    is_identified: bool,
    version: i64,
    expected: Option<i64>,
}

/// The id of the person that a distinct id creates.
#[must_use]
pub fn first_id(project: ProjectId, distinct_id: &str) -> PersonId {
    PersonId(Uuid::new_v5(&NAMESPACE, format!("{project}:{distinct_id}").as_bytes()))
}

/// The persons among these ids, in no particular order.
///
/// # Errors
/// When the store cannot be read.
pub async fn by_ids(store: &Store, project: ProjectId, ids: &[PersonId]) -> Result<Vec<Person>> {
    let mut persons = Vec::new();
    for chunk in ids.chunks(FETCH) {
        let ids: Vec<_> = chunk.iter().map(|id| key(project, *id)).collect();
        let rows: Vec<Row> = store.db.run(BY_ID, bind! { ids: ids }).await?.rows(0)?;
        persons.extend(rows.into_iter().filter_map(|row| {
            let RecordIdKey::Array(parts) = &row.id.key else { return None };
            let Some(Value::Uuid(uuid)) = parts.get(1) else { return None };
            Some(Person {
                person: PersonRef {
                    id: PersonId(Uuid::from_bytes(*uuid.as_bytes())),
                    distinct_ids: row.distinct_ids,
                    properties: row.properties,
                    created_at: Timestamp::from_micros(row.created_at),
                    is_identified: row.is_identified,
                },
                version: row.version,
            })
        }));
    }
    Ok(persons)
}

/// A person's row as a change writes it.
pub(crate) fn row(project: ProjectId, person: &PersonWrite) -> Value {
    Row {
        id: key(project, person.id),
        distinct_ids: person.distinct_ids.clone(),
        properties: person.properties.clone(),
        created_at: person.created_at,
        is_identified: person.is_identified,
        version: person.version,
        expected: person.expected,
    }
    .into_value()
}

/// `person:[project, uuid]`
pub(crate) fn key(project: ProjectId, id: PersonId) -> RecordId {
    let parts = vec![Value::Number(project.0.into()), Value::Uuid(id.0.into())];
    RecordId::new("person", RecordIdKey::Array(parts.into()))
}
