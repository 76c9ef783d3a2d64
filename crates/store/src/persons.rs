//! Persons: the users that events are about.
//!
//! | table | id | holds |
//! |---|---|---|
//! | `person` | `[project, uuid]` | a person, or a pointer to the person that it was merged into |
//!
//! Every distinct id has its own uuid ([`first_id`]), so the common look-up is one point
//! get. The record there is the person, or, after a merge, a pointer to the person that
//! the distinct id belongs to now. Pointers stay for ever: reads of events from before a
//! merge follow them. When a person is erased (`erasures`), its version stays, and so do
//! those of its pointers.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use surrealdb::types::{Object, RecordId, RecordIdKey, SurrealValue, Value};
use uuid::{Uuid, uuid};
use weir_model::persons::PersonRef;
use weir_model::{PersonId, ProjectId, Timestamp};

use crate::bind::bind;
use crate::db::{Operation, Statement};
use crate::hash_ranges::{ScanLimits, Spread};
use crate::memory_budget::{ByteBudget, RECORDS_PER_STATEMENT, get_large, read_large};
use crate::{Error, Result, Store};

/// Namespace of person ids (ING-43). It must never change, because stored ids depend on
/// it.
const NAMESPACE: Uuid = uuid!("932979b4-65c3-4424-8467-0b66ec27bc22");
/// Bytes of distinct ids and properties after which a page ends early.
const PAGE_BYTES: usize = 4 << 20;
/// The largest number of distinct ids that a person lists, and of their bytes. Further ids
/// lead to the person too, but are not listed.
pub const LISTED: usize = 10_000;
/// See [`LISTED`].
pub const LISTED_BYTES: usize = 512 << 10;
/// A distinct id has at most so many bytes.
const LONGEST_ID: usize = 1_024;
/// The largest number of pointers that are followed, as a guard against damaged data.
/// Every merge adds at most one.
pub(crate) const HOPS: usize = 10_000;

const BY_ID: Operation = Operation::read("persons by id");
const MERGED_INTO: Statement =
    Statement::read("persons after merges", "SELECT id, merged_into, erased FROM $ids;");
const PAGE: &str = "persons in order";
/// Bytes of a record in memory in addition to its texts.
const OVERHEAD: usize = 200;

/// The record at the id of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Id of the person or pointer.
    pub id: PersonId,
    /// Rises with every change.
    pub version: i64,
    /// The person, or a pointer to the person that it was merged into.
    pub state: PersonState,
}

/// A person, or a pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersonState {
    /// The data of a person.
    Person(Facts),
    /// Merged into another person.
    Merged(Merged),
    /// There is no person. One was erased, or a pointer to one; a person that comes later has
    /// a higher version, so that exports keep the later one.
    Erased,
}

/// The data of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Distinct ids of the person, the main one first.
    pub distinct_ids: Vec<String>,
    /// Properties as JSON object text.
    pub properties: String,
    /// When the person was first seen, microseconds.
    pub created_at: i64,
    /// Whether an identifying event named the person.
    pub is_identified: bool,
}

/// A pointer from a person, or from a distinct id that never had a person, to another
/// person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merged {
    /// The person that it was merged into.
    pub into: PersonId,
    /// Time of the event that merged them, microseconds.
    pub at: i64,
    /// Uuid of the event that merged them.
    pub by: Uuid,
}

/// A person with the version of its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned {
    /// The person as the API shows it.
    pub person: PersonRef,
    /// Rises with every change, also across a merge: of two records that a distinct id
    /// leads to over time, the later one has the higher version.
    pub version: i64,
}

/// A record to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonWrite {
    /// Id of the record.
    pub id: PersonId,
    /// The new content of the record.
    pub state: PersonState,
    /// Version that the change was computed from; `None`: no record existed.
    pub expected: Option<i64>,
    /// Version after the change.
    pub version: i64,
}

/// A page of persons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonPage {
    /// The persons, in order of their ids.
    pub persons: Vec<PersonRef>,
    /// The cursor of the next page; `None` on the last page.
    pub next: Option<PersonId>,
}

#[derive(SurrealValue)]
struct Row {
    id: RecordId,
    version: i64,
    distinct_ids: Option<Vec<String>>,
    properties: Option<String>,
    created_at: Option<i64>,
    is_identified: Option<bool>,
    merged_into: Option<Uuid>,
    merged_at: Option<i64>,
    merged_by: Option<Uuid>,
    erased: Option<bool>,
}

/// The part of a record that is needed to follow it.
#[derive(SurrealValue)]
struct Step {
    id: RecordId,
    merged_into: Option<Uuid>,
    erased: Option<bool>,
}

/// The part of a record that an erasure needs.
#[derive(SurrealValue)]
pub(crate) struct LeadsTo {
    pub(crate) version: i64,
    pub(crate) merged_into: Option<Uuid>,
    pub(crate) erased: Option<bool>,
}

/// The id of the person that a distinct id creates.
pub fn first_id(project: ProjectId, distinct_id: &str) -> PersonId {
    PersonId(Uuid::new_v5(&NAMESPACE, format!("{project}:{distinct_id}").as_bytes()))
}

impl Stored {
    /// The approximate size in memory, bytes.
    pub fn size(&self) -> usize {
        let texts = match &self.state {
            PersonState::Person(facts) => {
                let ids = facts.distinct_ids.iter().map(|id| id.len() + size_of::<String>() * 2);
                facts.properties.len() + ids.sum::<usize>()
            }
            PersonState::Merged(_) | PersonState::Erased => 0,
        };
        texts + OVERHEAD
    }
}

/// The records at these ids, in no particular order. Incomplete when the budget is used
/// up.
pub async fn by_ids(
    store: &Store,
    project: ProjectId,
    ids: &[PersonId],
    budget: &mut ByteBudget,
) -> Result<Vec<Stored>> {
    let ids = ids.iter().map(|id| key(project, *id));
    get_large(store, BY_ID, ids, budget, |row| {
        let record = stored(row, BY_ID.name)?;
        let size = record.size();
        Ok((record, size))
    })
    .await
}

/// The persons that these ids lead to, by the requested id. Ids without a person are
/// skipped. A person that several ids lead to is stored once. All persons are in memory
/// at the same time: for a few ids only, otherwise see [`resolve_as`].
pub async fn resolve(
    store: &Store,
    project: ProjectId,
    ids: impl IntoIterator<Item = PersonId>,
) -> Result<HashMap<PersonId, Arc<PersonRef>>> {
    resolve_as(store, project, ids, Some).await
}

/// Resolves ids like [`resolve`] and keeps only the result of `needed` for each person,
/// so that less memory is needed for many persons. Persons for which it returns `None`
/// are skipped.
pub async fn resolve_as<T>(
    store: &Store,
    project: ProjectId,
    ids: impl IntoIterator<Item = PersonId>,
    needed: impl Fn(PersonRef) -> Option<T>,
) -> Result<HashMap<PersonId, Arc<T>>> {
    follow(store, project, requesters(ids), |id, _, facts| needed(shown(id, facts))).await
}

/// Resolves ids like [`resolve`], with the version of each person.
pub async fn resolve_versioned(
    store: &Store,
    project: ProjectId,
    ids: impl IntoIterator<Item = PersonId>,
) -> Result<HashMap<PersonId, Arc<Versioned>>> {
    let made = |id, version, facts| Some(Versioned { person: shown(id, facts), version });
    follow(store, project, requesters(ids), made).await
}

/// The ids of the persons that these ids lead to, by the requested id, without reading
/// their data. Ids without a person are skipped.
pub async fn resolve_merged(
    store: &Store,
    project: ProjectId,
    ids: impl IntoIterator<Item = PersonId>,
) -> Result<HashMap<PersonId, PersonId>> {
    let mut open = requesters(ids);
    let mut people = HashMap::new();
    for _ in 0..HOPS {
        if open.is_empty() {
            break;
        }
        let wanted: Vec<PersonId> = open.keys().copied().collect();
        let mut further: HashMap<PersonId, Vec<PersonId>> = HashMap::new();
        for chunk in wanted.chunks(RECORDS_PER_STATEMENT) {
            let ids: Vec<_> = chunk.iter().map(|id| key(project, *id)).collect();
            // The engine reads whole records for this.
            let steps: Vec<Step> = read_large(store, MERGED_INTO, bind! { ids: ids }).await?;
            for step in steps {
                let id = id_of(&step.id, MERGED_INTO.name)?;
                let requested = open.remove(&id).unwrap_or_default();
                match step.merged_into {
                    Some(into) => further.entry(PersonId(into)).or_default().extend(requested),
                    None if step.erased == Some(true) => {}
                    None => people.extend(requested.into_iter().map(|requested| (requested, id))),
                }
            }
        }
        open = further;
    }
    Ok(people)
}

/// The result of `made` for each person that the ids lead to, by the requested id.
async fn follow<T>(
    store: &Store,
    project: ProjectId,
    mut open: HashMap<PersonId, Vec<PersonId>>,
    made: impl Fn(PersonId, i64, Facts) -> Option<T>,
) -> Result<HashMap<PersonId, Arc<T>>> {
    let mut people = HashMap::new();
    let mut budget = ByteBudget::ALL;
    for _ in 0..HOPS {
        if open.is_empty() {
            break;
        }
        let wanted: Vec<PersonId> = open.keys().copied().collect();
        let mut further: HashMap<PersonId, Vec<PersonId>> = HashMap::new();
        for some in wanted.chunks(RECORDS_PER_STATEMENT) {
            for record in by_ids(store, project, some, &mut budget).await? {
                let requested = open.remove(&record.id).unwrap_or_default();
                match record.state {
                    PersonState::Person(facts) => {
                        let person = made(record.id, record.version, facts).map(Arc::new);
                        let with = |id| Some((id, Arc::clone(person.as_ref()?)));
                        people.extend(requested.into_iter().filter_map(with));
                    }
                    PersonState::Merged(merged) => {
                        further.entry(merged.into).or_default().extend(requested);
                    }
                    PersonState::Erased => {}
                }
            }
        }
        open = further;
    }
    Ok(people)
}

/// The requested ids, by the id that is read next. At first each id leads to itself.
fn requesters(ids: impl IntoIterator<Item = PersonId>) -> HashMap<PersonId, Vec<PersonId>> {
    ids.into_iter().map(|id| (id, vec![id])).collect()
}

/// Persons in order of their ids from `from` on: at most `limit` of those that `wanted`
/// accepts. The page is shorter when the limit of `limits` is reached or when it has about
/// 4 MiB. The next page then continues after it.
pub async fn page(
    store: &Store,
    project: ProjectId,
    from: Option<PersonId>,
    limit: usize,
    limits: ScanLimits,
    mut wanted: impl FnMut(&PersonRef) -> bool,
) -> Result<PersonPage> {
    let (mut persons, mut bytes) = (Vec::new(), 0);
    let next = spread(project)
        .walk(store, from.map(|id| id.0), limits, size, |row| {
            let row = Row::from_value(row).map_err(|e| wrong(PAGE, e.message()))?;
            let record = stored(row, PAGE)?;
            let PersonState::Person(facts) = record.state else {
                return Ok(ControlFlow::Continue(()));
            };
            let person = shown(record.id, facts);
            if wanted(&person) {
                if persons.len() == limit || bytes > PAGE_BYTES {
                    return Ok(ControlFlow::Break(person.id.0));
                }
                bytes += person.size();
                persons.push(person);
            }
            Ok(ControlFlow::Continue(()))
        })
        .await?;
    Ok(PersonPage { persons, next: next.map(PersonId) })
}

/// Whether further distinct ids may lead to a person that lists these.
pub(crate) fn may_list_less(distinct_ids: &[String]) -> bool {
    let bytes: usize = distinct_ids.iter().map(String::len).sum();
    distinct_ids.len() >= LISTED || bytes + LONGEST_ID > LISTED_BYTES
}

/// The merges among the records from `from` on: which id was merged into which person.
/// Returns the id to continue at; `None` at the end. A damaged record is passed over: it
/// must not keep the others from being counted.
pub(crate) async fn merges(
    store: &Store,
    project: ProjectId,
    from: Option<Uuid>,
    limits: ScanLimits,
) -> Result<(Vec<(PersonId, PersonId)>, Option<Uuid>)> {
    let mut merges = Vec::new();
    let next = spread(project)
        .walk(store, from, limits, size, |row| {
            let step = Step::from_value(row).map_err(|e| wrong(PAGE, e.message()));
            match step.and_then(|step| Ok((id_of(&step.id, PAGE)?, step.merged_into))) {
                Ok((id, into)) => merges.extend(into.map(|into| (id, PersonId(into)))),
                Err(error) => tracing::error!(%project, %error, "a merge is not counted"),
            }
            Ok(ControlFlow::Continue(()))
        })
        .await?;
    Ok((merges, next))
}

/// Removes all persons of a project, in small transactions.
///
/// # Errors
/// When the store cannot be written; a further call continues.
pub(crate) async fn purge(store: &Store, project: ProjectId) -> Result<()> {
    spread(project).purge(store).await
}

/// The content of a record as a change writes it, without its id.
pub(crate) fn content(write: PersonWrite) -> Value {
    let version = Value::Number(write.version.into());
    let mut object = Object::new();
    object.insert("version", version);
    match write.state {
        PersonState::Person(facts) => {
            object.insert("distinct_ids", facts.distinct_ids);
            object.insert("properties", facts.properties);
            object.insert("created_at", facts.created_at);
            object.insert("is_identified", facts.is_identified);
        }
        PersonState::Merged(merged) => {
            object.insert("merged_into", merged.into.0);
            object.insert("merged_at", merged.at);
            object.insert("merged_by", merged.by);
        }
        PersonState::Erased => {
            object.insert("erased", true);
        }
    }
    Value::Object(object)
}

fn spread(project: ProjectId) -> Spread {
    Spread { table: "person", prefix: vec![project.0] }
}

/// `person:[project, uuid]`
pub(crate) fn key(project: ProjectId, id: PersonId) -> RecordId {
    spread(project).key(id.0)
}

fn stored(row: Row, statement: &'static str) -> Result<Stored> {
    let id = id_of(&row.id, statement)?;
    let state = match row.merged_into {
        Some(into) => PersonState::Merged(Merged {
            into: PersonId(into),
            at: row.merged_at.unwrap_or_default(),
            by: row.merged_by.unwrap_or_default(),
        }),
        None if row.erased == Some(true) => PersonState::Erased,
        None => PersonState::Person(Facts {
            distinct_ids: row.distinct_ids.unwrap_or_default(),
            properties: row
                .properties
                .ok_or_else(|| wrong(statement, "a person without properties"))?,
            created_at: row.created_at.unwrap_or_default(),
            is_identified: row.is_identified.unwrap_or_default(),
        }),
    };
    Ok(Stored { id, version: row.version, state })
}

/// The id of the person in a record id.
fn id_of(id: &RecordId, statement: &'static str) -> Result<PersonId> {
    let RecordIdKey::Array(parts) = &id.key else {
        return Err(wrong(statement, "unexpected id"));
    };
    let Some(Value::Uuid(uuid)) = parts.get(1) else {
        return Err(wrong(statement, "unexpected id"));
    };
    Ok(PersonId(Uuid::from_bytes(*uuid.as_bytes())))
}

/// The approximate size of a row in bytes.
fn size(row: &Value) -> usize {
    let Value::Object(row) = row else { return 0 };
    let properties = match row.get("properties") {
        Some(Value::String(text)) => text.len(),
        Some(_) | None => 0,
    };
    let ids = match row.get("distinct_ids") {
        Some(Value::Array(ids)) => ids
            .iter()
            .map(|id| match id {
                Value::String(text) => text.len(),
                _ => 0,
            })
            .sum(),
        Some(_) | None => 0,
    };
    properties + ids
}

fn wrong(statement: &'static str, detail: &str) -> Error {
    Error::Shape { statement, detail: detail.to_owned() }
}

fn shown(id: PersonId, facts: Facts) -> PersonRef {
    PersonRef {
        id,
        distinct_ids: facts.distinct_ids,
        properties: facts.properties,
        created_at: Timestamp::from_micros(facts.created_at),
        is_identified: facts.is_identified,
    }
}
