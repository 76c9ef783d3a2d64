//! Applying a batch of the log: events, persons, groups, definitions, warnings and the
//! new position in one transaction (DUR-10).
//!
//! What belongs here: the transaction. What does not: computing the effects of a batch
//! (`weir-ingest`).

use surrealdb::types::{Bytes, RecordId, RecordIdKey, SurrealValue, Value};
use uuid::Uuid;
use weir_model::ProjectId;
use weir_model::definitions::{EventDefinition, PropertyDefinition};

use super::block::{Span, Summary};
use super::{PARTITIONS, keys};
use crate::bind::bind;
use crate::db::Statement;
use crate::groups::{self, GroupWrite, TypesWrite};
use crate::persons::{self, PersonWrite};
use crate::warnings::{self, AffectedBlock};
use crate::{Result, Store, definitions};

/// The position of a partition: everything before the record at `offset` is applied, and
/// of that record the first `index` events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position {
    /// Offset of a record of the log.
    pub offset: u64,
    /// The number of accepted events of that record that are applied.
    pub index: u32,
}

impl Position {
    /// The beginning of the record at `offset`.
    pub fn at(offset: u64) -> Self {
        Self { offset, index: 0 }
    }
}

/// The effects of a batch of the log on one partition.
#[derive(Debug, Clone, Default)]
pub struct Apply {
    /// The partition that the batch belongs to.
    pub partition: u16,
    /// The position before the batch. The store must be at it.
    pub from: Position,
    /// The position after the batch.
    pub to: Position,
    /// The effects, one entry per project.
    pub projects: Vec<ProjectWrite>,
}

/// Effects on one project.
#[derive(Debug, Clone)]
pub struct ProjectWrite {
    /// The project whose data is written.
    pub project: ProjectId,
    /// New blocks, and blocks that events were added to.
    pub blocks: Vec<NewBlock>,
    /// For each new event: uuid, first arrival number of its block, index in the block.
    pub uuids: Vec<(Uuid, u64, u64)>,
    /// The newest block and the totals after the batch.
    pub head: Head,
    /// Whether these are the first events of the project in this partition.
    pub is_first: bool,
    /// New and changed persons.
    pub persons: Vec<PersonWrite>,
    /// New and changed groups.
    pub groups: Vec<GroupWrite>,
    /// The group types, if the batch adds some.
    pub group_types: Option<TypesWrite>,
    /// Event names that are new or were not seen for some time.
    pub event_names: Vec<EventDefinition>,
    /// New property names.
    pub property_names: Vec<PropertyDefinition>,
    /// Counts of skipped and altered events.
    pub warnings: Vec<WarningCount>,
    /// New blocks of dropped and altered events, and those that events were added to.
    pub affected: Vec<AffectedBlock>,
}

impl ProjectWrite {
    /// A write without effects, to be filled.
    pub fn new(project: ProjectId) -> Self {
        Self {
            project,
            blocks: Vec::new(),
            uuids: Vec::new(),
            head: Head::empty(),
            is_first: false,
            persons: Vec::new(),
            groups: Vec::new(),
            group_types: None,
            event_names: Vec::new(),
            property_names: Vec::new(),
            warnings: Vec::new(),
            affected: Vec::new(),
        }
    }
}

/// A block to be written.
#[derive(Debug, Clone)]
pub struct NewBlock {
    /// Arrival number of its first event.
    pub first: u64,
    /// The compressed events.
    pub data: Vec<u8>,
    /// The summary with which readers can skip the block.
    pub summary: Summary,
    /// Times of the events that this write adds, microseconds.
    pub added_times: Vec<i64>,
}

/// The newest block of a project in a partition, and its totals.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct Head {
    /// First arrival number of the newest block.
    pub newest: i64,
    /// The highest arrival number.
    pub last: i64,
    /// Number of events in the partition.
    pub count: i64,
    /// Earliest event time, microseconds.
    pub from_time: i64,
    /// Latest event time, microseconds.
    pub to_time: i64,
    /// Number of dropped and altered events so far, which is the number of the next one.
    pub samples: i64,
    /// Number of the first event in the newest block of dropped and altered events.
    #[surreal(default)]
    pub affected: i64,
    /// Whether there are events whose distinct id belongs to another partition, because a
    /// transformation changed it. Missing (`false`) in heads from before there were
    /// transformations.
    #[surreal(default)]
    pub strays: bool,
}

impl Head {
    /// The head of a partition without events.
    pub fn empty() -> Self {
        Self {
            newest: 0,
            last: 0,
            count: 0,
            from_time: i64::MAX,
            to_time: i64::MIN,
            samples: 0,
            affected: 0,
            strays: false,
        }
    }

    /// The earliest and latest event time, if there are events.
    pub fn span(&self) -> Option<Span> {
        (self.count > 0).then_some(Span { from: self.from_time, to: self.to_time })
    }
}

/// A count of skipped or altered events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarningCount {
    /// Code of the reason or warning.
    pub code: String,
    /// Number of events in this batch.
    pub count: i64,
    /// When the first and the last of them happened, microseconds.
    pub seen: Span,
    /// One of the events, as an example.
    pub sample: Option<Sample>,
}

/// A skipped or altered event that is kept as an example.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Code of the reason.
    pub code: String,
    /// When it was received, microseconds.
    pub received_at: i64,
    /// Details of the reason: for example which transformation dropped the event.
    pub detail: Option<String>,
    /// Name of the event, if it had one.
    pub event: Option<String>,
    /// Distinct id of the event, if it had one.
    pub distinct_id: Option<String>,
    /// The payload as received, cut when it is long.
    pub payload: String,
}

/// Statements that replace records come first, statements that only add records last. The
/// engine tries to create a record before it replaces it. Rolling that attempt back takes
/// time for every record that the transaction has written so far.
const APPLY: Statement = Statement::write(
    "apply events",
    "BEGIN;
    LET $found = (SELECT * FROM ONLY $position);
    IF ($found.offset ?? 0) != $from.offset OR ($found.index ?? 0) != $from.index {
        THROW 'position'
    };
    UPSERT $position SET offset = $to.offset, index = $to.index RETURN NONE;
    FOR $id IN $first { UPDATE $id SET ingested_event = true RETURN NONE };
    FOR $row IN $heads { UPSERT $row.id CONTENT $row RETURN NONE };
    FOR $row IN $blocks { UPSERT $row.id CONTENT $row RETURN NONE };
    FOR $row IN $summaries { UPSERT $row.id CONTENT $row RETURN NONE };
    INSERT IGNORE INTO event_time $times RETURN NONE;
    FOR $row IN $warnings {
        UPSERT $row.id SET count = (count ?? 0) + $row.count,
            first_at = first_at ?? $row.first_at, last_at = $row.last_at,
            samples = array::slice(array::concat($row.samples, samples ?? []), 0, 5) RETURN NONE;
    };
    FOR $row IN $affected { UPSERT $row.id CONTENT $row RETURN NONE };
    FOR $row IN $event_names {
        UPSERT $row.id SET first_at = first_at ?? $row.first_at, last_at = $row.last_at
            RETURN NONE;
    };
    INSERT IGNORE INTO property_definition $property_names RETURN NONE;
    FOR $row IN $group_types {
        LET $present = (SELECT VALUE names FROM ONLY $row.id) ?? [];
        IF array::len($present) != $row.expected { THROW 'stale group types' };
        UPSERT $row.id SET names = $row.names RETURN NONE;
    };
    IF (SELECT VALUE version FROM $group_ids) != $group_versions { THROW 'stale group' };
    IF (SELECT VALUE version FROM $person_ids) != $person_versions { THROW 'stale person' };
    FOR $row IN $changed_groups { UPDATE $row.id CONTENT $row.content RETURN NONE };
    FOR $row IN $changed_persons { UPDATE $row.id CONTENT $row.content RETURN NONE };
    INSERT INTO event_group $new_groups RETURN NONE;
    INSERT INTO person $new_persons RETURN NONE;
    INSERT INTO event_uuid $uuids RETURN NONE;
    COMMIT;",
)
.within(std::time::Duration::from_secs(60));

const POSITION: Statement =
    Statement::read("applied position", "SELECT offset, index FROM $position;");

#[derive(SurrealValue)]
struct PositionRow {
    offset: i64,
    index: i64,
}

impl From<Position> for PositionRow {
    fn from(position: Position) -> Self {
        Self { offset: int(position.offset), index: position.index.into() }
    }
}

#[derive(SurrealValue)]
struct UuidRow {
    id: RecordId,
    at: Vec<i64>,
}

#[derive(SurrealValue)]
struct BlockRow {
    id: RecordId,
    data: Bytes,
}

#[derive(SurrealValue)]
struct IdRow {
    id: RecordId,
}

/// A record that is replaced.
#[derive(SurrealValue)]
struct Change {
    id: RecordId,
    content: Value,
}

#[derive(SurrealValue)]
struct TypesRow {
    id: RecordId,
    names: Vec<String>,
    expected: i64,
}

/// Versioned records: new ones, and changes of stored ones. One statement compares all
/// versions, because one statement each would be half of the cost of a change.
#[derive(Default)]
struct Versioned {
    new: Vec<Value>,
    changed: Vec<Change>,
    /// Ids of the changed records.
    ids: Vec<RecordId>,
    /// The versions that they must have, in the same order.
    versions: Vec<i64>,
}

impl Versioned {
    fn push(&mut self, id: RecordId, expected: Option<i64>, content: Value) {
        match expected {
            None => self.new.push(with_id(id, content)),
            Some(expected) => {
                self.ids.push(id.clone());
                self.versions.push(expected);
                self.changed.push(Change { id, content });
            }
        }
    }
}

/// Writes the effects of a batch of the log, all or nothing.
///
/// # Errors
/// [`crate::Error::Exists`] when an event, a new person or a new group is already stored.
/// [`crate::Error::Refused`] with `position` when the store is not at `from` (the batch
/// may have been applied already), or with a word that begins with `stale` when a person,
/// a group or the group types were changed meanwhile. Nothing was written in these cases.
pub async fn apply(store: &Store, apply: Apply) -> Result<()> {
    let partition = apply.partition;
    let mut uuids = Vec::new();
    let mut blocks = Vec::new();
    let mut summaries: Vec<Value> = Vec::new();
    let mut heads: Vec<Value> = Vec::new();
    let mut times = Vec::new();
    let mut people = Versioned::default();
    let mut grouped = Versioned::default();
    let mut group_types: Vec<TypesRow> = Vec::new();
    let mut event_names: Vec<Value> = Vec::new();
    let mut property_names: Vec<Value> = Vec::new();
    let mut warning_rows: Vec<Value> = Vec::new();
    let mut affected: Vec<Value> = Vec::new();
    let mut first: Vec<RecordId> = Vec::new();
    for mut write in apply.projects {
        let project = write.project;
        // In the order of their ids: the engine searches each of them among all records
        // that it holds in memory, and neighbours are found faster.
        write.uuids.sort_unstable_by_key(|(uuid, ..)| *uuid);
        uuids.extend(write.uuids.into_iter().map(|(uuid, block, index)| UuidRow {
            id: keys::uuid(project, uuid),
            at: vec![partition.into(), int(block), int(index)],
        }));
        for block in write.blocks {
            let (width, buckets) = keys::time_buckets(&block.added_times);
            times.extend(buckets.into_iter().map(|bucket| IdRow {
                id: keys::time(project, width, bucket, partition, block.first),
            }));
            let id = keys::summary(project, partition, block.first);
            summaries.push(with_id(id, block.summary.into_value()));
            blocks.push(BlockRow {
                id: keys::block(project, partition, block.first),
                data: Bytes::from(block.data),
            });
        }
        if write.is_first {
            first.push(RecordId::new("project", RecordIdKey::Number(project.0)));
        }
        for block in write.affected {
            affected.extend(warnings::affected_rows(project, partition, block));
        }
        heads.push(with_id(keys::head(project, partition), write.head.into_value()));
        for person in &write.persons {
            let id = persons::key(project, person.id);
            people.push(id, person.expected, persons::content(person));
        }
        for group in &write.groups {
            let id = groups::key(project, group.index, &group.key);
            grouped.push(id, group.expected, groups::content(group));
        }
        group_types.extend(write.group_types.map(|types| TypesRow {
            id: groups::types_key(project),
            names: types.names,
            expected: int(types.expected as u64),
        }));
        event_names.extend(write.event_names.iter().map(|d| definitions::event_row(project, d)));
        property_names
            .extend(write.property_names.iter().map(|d| definitions::property_row(project, d)));
        warning_rows
            .extend(write.warnings.into_iter().map(|w| warnings::count_row(project, partition, w)));
    }
    let vars = bind! {
        position: keys::position(partition),
        from: PositionRow::from(apply.from),
        to: PositionRow::from(apply.to),
        uuids: uuids,
        blocks: blocks,
        summaries: summaries,
        heads: heads,
        times: times,
        new_persons: people.new,
        changed_persons: people.changed,
        person_ids: people.ids,
        person_versions: people.versions,
        new_groups: grouped.new,
        changed_groups: grouped.changed,
        group_ids: grouped.ids,
        group_versions: grouped.versions,
        group_types: group_types,
        event_names: event_names,
        property_names: property_names,
        warnings: warning_rows,
        affected: affected,
        first: first,
    };
    store.db.run(APPLY, vars).await?;
    Ok(())
}

/// The position of a partition.
pub async fn position(store: &Store, partition: u16) -> Result<Position> {
    let vars = bind! { position: keys::position(partition) };
    let row: Option<PositionRow> = store.db.run(POSITION, vars).await?.row(0)?;
    Ok(row.map_or_else(Position::default, |row| Position {
        offset: u64::try_from(row.offset).unwrap_or(0),
        index: u32::try_from(row.index).unwrap_or(0),
    }))
}

/// The positions of all partitions, in order.
pub async fn positions(store: &Store) -> Result<Vec<Position>> {
    let mut positions = Vec::new();
    for partition in 0..PARTITIONS {
        positions.push(position(store, partition).await?);
    }
    Ok(positions)
}

fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The row with its record id added.
pub(crate) fn with_id(id: RecordId, row: Value) -> Value {
    match row {
        Value::Object(mut object) => {
            object.insert("id", id);
            Value::Object(object)
        }
        other => other,
    }
}
