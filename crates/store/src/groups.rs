//! Groups: companies, teams and other things that events are about in addition to persons
//! (ING-52).
//!
//! | table | id | holds |
//! |---|---|---|
//! | `group_types` | project | names of its group types, in order of their indexes |
//! | `event_group` | `[project, index, hash of the key]` | key, properties as JSON text, version |

use std::ops::ControlFlow;

use surrealdb::types::{Object, RecordId, RecordIdKey, SurrealValue, Value};
use uuid::{Uuid, uuid};
use weir_model::groups::Group;
use weir_model::{ProjectId, Timestamp};

use crate::bind::bind;
use crate::db::{Operation, Statement};
use crate::hash_ranges::{ScanLimits, Spread};
use crate::memory_budget::{ByteBudget, get_large};
use crate::{Error, Result, Store};

/// The largest number of group types of a project (ING-52).
pub const TYPES: usize = 5;

/// Namespace of the hashes of group keys. It must never change, because ids depend on it.
const NAMESPACE: Uuid = uuid!("b1f7a6c2-3d0e-4b7f-9a53-6f0c1f3f9f5d");
/// Bytes of properties after which a page ends early.
const PAGE_BYTES: usize = 4 << 20;
const PAGE: &str = "groups in order";

const TYPES_OF: Statement = Statement::read("group types", "SELECT VALUE names FROM $id;");
const BY_KEY: Operation = Operation::read("groups by key");
const FORGET_TYPES: Statement = Statement::delete("purge group types", "DELETE $id RETURN NONE;");

/// A group as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The group as the API shows it.
    pub group: Group,
    /// Rises with every change.
    pub version: i64,
}

/// A group to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupWrite {
    /// Index of the group type.
    pub index: u8,
    /// Key of the group within its type.
    pub key: String,
    /// Properties as JSON object text.
    pub properties: String,
    /// When it was first seen, microseconds.
    pub created_at: i64,
    /// Version that the change was computed from; `None` for a new group.
    pub expected: Option<i64>,
    /// Version after the change.
    pub version: i64,
}

/// The group types of a project after new ones were appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypesWrite {
    /// All names, in order of their indexes.
    pub names: Vec<String>,
    /// Number of types before.
    pub expected: usize,
}

/// A page of groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupPage {
    /// The groups, in a stable order.
    pub groups: Vec<Group>,
    /// The cursor of the next page; `None` on the last page.
    pub next: Option<Uuid>,
}

#[derive(SurrealValue)]
struct Row {
    id: RecordId,
    key: String,
    properties: String,
    created_at: i64,
    version: i64,
}

/// The names of a project's group types, in order of their indexes.
///
/// # Errors
/// When the store cannot be read.
pub async fn types(store: &Store, project: ProjectId) -> Result<Vec<String>> {
    let mut answer = store.db.run(TYPES_OF, bind! { id: types_key(project) }).await?;
    Ok(answer.row::<Vec<String>>(0)?.unwrap_or_default())
}

/// The groups with these indexes and keys, in no particular order. Incomplete when the
/// budget is used up.
///
/// # Errors
/// When the store cannot be read.
pub async fn by_keys(
    store: &Store,
    project: ProjectId,
    keys: &[(u8, &str)],
    budget: &mut ByteBudget,
) -> Result<Vec<Stored>> {
    let ids = keys.iter().map(|(index, name)| key(project, *index, name));
    get_large(store, BY_KEY, ids, budget, |row| {
        let found = stored(row, BY_KEY.name)?;
        let size = found.group.properties.len() + found.group.key.len();
        Ok((found, size))
    })
    .await
}

/// Groups of one type from the hash `from` on: at most `limit` of those that `wanted`
/// accepts. The page is shorter when the limit of `limits` is reached or when it has about
/// 4 MiB. The next page then continues after it.
///
/// # Errors
/// When the store cannot be read.
pub async fn page(
    store: &Store,
    project: ProjectId,
    index: u8,
    from: Option<Uuid>,
    limit: usize,
    limits: ScanLimits,
    mut wanted: impl FnMut(&Group) -> bool,
) -> Result<GroupPage> {
    let (mut groups, mut bytes) = (Vec::new(), 0);
    let next = spread(project, index)
        .walk(store, from, limits, size, |row| {
            let row = Row::from_value(row).map_err(|e| wrong(PAGE, e.message()))?;
            let group = stored(row, PAGE)?.group;
            if wanted(&group) {
                if groups.len() == limit || bytes > PAGE_BYTES {
                    return Ok(ControlFlow::Break(hash(&group.key)));
                }
                bytes += group.properties.len();
                groups.push(group);
            }
            Ok(ControlFlow::Continue(()))
        })
        .await?;
    Ok(GroupPage { groups, next })
}

/// Removes all groups and group types of a project.
///
/// # Errors
/// When the store cannot be written; a further call continues.
pub(crate) async fn purge(store: &Store, project: ProjectId) -> Result<()> {
    for (index, _) in (0_u8..).zip(types(store, project).await?) {
        spread(project, index).purge(store).await?;
    }
    store.db.run(FORGET_TYPES, bind! { id: types_key(project) }).await.map(drop)
}

/// The record of the group types of a project.
pub(crate) fn types_record(project: ProjectId, names: Vec<String>) -> (RecordId, Object) {
    let mut object = Object::new();
    object.insert("names", names);
    (types_key(project), object)
}

/// `group_types:<project>`
fn types_key(project: ProjectId) -> RecordId {
    RecordId::new("group_types", RecordIdKey::Number(project.0))
}

/// `event_group:[project, index, hash]`
pub(crate) fn key(project: ProjectId, index: u8, key: &str) -> RecordId {
    spread(project, index).key(hash(key))
}

/// The content of a record as a change writes it, without its id.
pub(crate) fn content(write: GroupWrite) -> Value {
    let mut object = Object::new();
    object.insert("key", write.key);
    object.insert("properties", write.properties);
    object.insert("created_at", write.created_at);
    object.insert("version", write.version);
    Value::Object(object)
}

fn spread(project: ProjectId, index: u8) -> Spread {
    Spread { table: "event_group", prefix: vec![project.0, index.into()] }
}

fn hash(key: &str) -> Uuid {
    Uuid::new_v5(&NAMESPACE, key.as_bytes())
}

fn stored(row: Row, statement: &'static str) -> Result<Stored> {
    let RecordIdKey::Array(parts) = &row.id.key else {
        return Err(wrong(statement, "unexpected id"));
    };
    let index = match parts.get(1) {
        Some(Value::Number(number)) => number.to_int().and_then(|index| u8::try_from(index).ok()),
        Some(_) | None => None,
    };
    let group = Group {
        index: index.ok_or_else(|| wrong(statement, "unexpected id"))?,
        key: row.key,
        properties: row.properties,
        created_at: Timestamp::from_micros(row.created_at),
    };
    Ok(Stored { group, version: row.version })
}

/// The approximate size of a row in bytes.
fn size(row: &Value) -> usize {
    match row {
        Value::Object(row) => match row.get("properties") {
            Some(Value::String(text)) => text.len(),
            Some(_) | None => 0,
        },
        _ => 0,
    }
}

fn wrong(statement: &'static str, detail: &str) -> Error {
    Error::Shape { statement, detail: detail.to_owned() }
}
