//! Applying a batch of the log: events, persons, groups, definitions, warnings and the
//! new position in one transaction (DUR-10). Records that every event or batch writes are
//! written past the query engine (`transaction`).
//!
//! What belongs here: the transaction. What does not: computing the effects of a batch
//! (`weir-ingest`).

pub(super) mod updates;

use std::sync::Arc;

use surrealdb::types::{Bytes, Object, RecordId, RecordIdKey, SurrealValue, Value, Variables};
use uuid::Uuid;
use weir_model::definitions::{EventDefinition, PropertyDefinition};
use weir_model::{PersonId, ProjectId};
use weir_segments::run::Key;

use self::updates::{Rule, Updates};
use super::block::{Span, Summary};
use super::uuids::{self, Place, Placed};
use super::{PARTITIONS, Segments, keys, segments};
use crate::bind::bind;
use crate::counts::{CountWrites, EventCounts, Slot};
use crate::db::{Failure, Operation, Statement};
use crate::groups::{self, GroupWrite, TypesWrite};
use crate::persons::{self, Merged, PersonState, PersonWrite};
use crate::transaction::{Entry, Keyspace, Row, RowKey, Transaction, decode_record};
use crate::warnings::{self, AffectedBlock};
use crate::{Error, Result, Store, definitions};

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
    pub uuids: Vec<(Uuid, u64, u32)>,
    /// The counts of the new events.
    pub counts: EventCounts,
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
            counts: EventCounts::default(),
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

    /// Which ids it merges into which persons.
    fn merges(&self) -> Vec<(PersonId, PersonId)> {
        let merges = self.persons.iter().filter_map(|person| match &person.state {
            PersonState::Merged(Merged { into, .. }) => Some((person.id, *into)),
            PersonState::Person(_) | PersonState::Erased => None,
        });
        merges.collect()
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
    /// How often events were erased from an open block, which consumers have in memory.
    /// `None`: never.
    pub erased: Option<i64>,
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
            erased: None,
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

const APPLY: Operation =
    Operation::write("apply events").within(std::time::Duration::from_secs(60));
const POSITION: Operation = Operation::read("applied position");

// Few batches have such a record. A batch without one does not run the statement: the engine
// parses and plans it again.
const FIRST_EVENT: Statement = Statement::write(
    "first event of a project",
    "FOR $id IN $rows { UPDATE $id SET ingested_event = true RETURN NONE };",
);

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

impl From<Option<PositionRow>> for Position {
    fn from(row: Option<PositionRow>) -> Self {
        row.map_or_else(Self::default, |row| Self {
            offset: u64::try_from(row.offset).unwrap_or(0),
            index: u32::try_from(row.index).unwrap_or(0),
        })
    }
}

#[derive(SurrealValue)]
struct BlockRow {
    data: Bytes,
}

#[derive(SurrealValue)]
struct VersionRow {
    version: i64,
}

#[derive(SurrealValue)]
struct ErasedRow {
    erased: Option<i64>,
}

/// The records that a batch writes. `T` is a record, `U` an entry of the index of uuids.
pub(super) struct Records<T, U> {
    from: Position,
    /// The heads that the batch replaces, and [`Head::erased`] of each when it was planned.
    heads: Vec<(RowKey, Option<i64>)>,
    /// The position after the batch.
    pub(super) position: T,
    /// Records that are replaced, or written for the first time.
    pub(super) replaced: Vec<T>,
    /// Records that must not exist.
    pub(super) new: Vec<T>,
    /// Entries that must not exist.
    pub(super) uuids: Vec<U>,
    /// The uuids of these entries, which no run may have either.
    sealed: Arc<[Key]>,
    pub(super) changed: Vec<Change<T>>,
    /// Records that are combined with the stored ones.
    pub(super) updates: Updates,
    /// Counts of events that are added to those of the store.
    pub(super) counts: CountWrites,
    /// Statements for other records.
    pub(super) statements: Vec<(Statement, Variables)>,
}

/// A change of a record that must have a certain version.
pub(super) struct Change<T> {
    pub(super) record: T,
    expected: i64,
    /// The reason to refuse the batch if the record has another version.
    stale: &'static str,
}

/// A record that is not encoded yet.
pub(super) type Content = (RecordId, Value);

impl Records<Content, Placed> {
    pub(super) fn of(apply: Apply, keyspace: Keyspace) -> Result<Self> {
        let partition = apply.partition;
        let mut records = Self {
            from: apply.from,
            heads: Vec::new(),
            position: (keys::position(partition), PositionRow::from(apply.to).into_value()),
            replaced: Vec::new(),
            new: Vec::new(),
            uuids: Vec::new(),
            sealed: Arc::default(),
            changed: Vec::new(),
            updates: Updates::of(keyspace),
            counts: CountWrites::default(),
            statements: Vec::new(),
        };
        let mut first: Vec<Value> = Vec::new();
        for write in apply.projects {
            let (project, merges) = (write.project, write.merges());
            records.uuids.extend(write.uuids.into_iter().map(|(uuid, first, index)| Placed {
                project,
                uuid,
                place: Place { partition, first, index },
            }));
            let (slot, mut counted) = (Slot::Partition(partition), write.counts);
            merges.iter().for_each(|(_, into)| counted.mark_person(*into));
            records.counts.add(keyspace, project, slot, &counted, &merges)?;
            for block in write.blocks {
                let (width, buckets) = keys::time_buckets(&block.added_times);
                records.replaced.extend(buckets.into_iter().map(|bucket| {
                    let id = keys::time(project, width, bucket, partition, block.first);
                    (id, Value::Object(Object::new()))
                }));
                let data = BlockRow { data: Bytes::from(block.data) };
                records.replaced.extend([
                    (keys::summary(project, partition, block.first), block.summary.into_value()),
                    (keys::block(project, partition, block.first), data.into_value()),
                ]);
            }
            for block in write.affected {
                records.replaced.extend(warnings::affected_rows(project, partition, block));
            }
            let head = keys::head(project, partition);
            records.heads.push((keyspace.key(head.clone())?, write.head.erased));
            records.replaced.push((head, write.head.into_value()));
            for person in write.persons {
                let (id, expected) = (persons::key(project, person.id), person.expected);
                records.push((id, persons::content(person)), expected, "stale person");
            }
            for group in write.groups {
                let id = groups::key(project, group.index, &group.key);
                let expected = group.expected;
                records.push((id, groups::content(group)), expected, "stale group");
            }
            if write.is_first {
                first.push(RecordId::new("project", RecordIdKey::Number(project.0)).into_value());
            }
            let updates = &mut records.updates;
            if let Some(types) = write.group_types {
                let rule = Rule::GroupTypes { expected: types.expected };
                updates.add(groups::types_record(project, types.names), rule)?;
            }
            for seen in &write.event_names {
                updates.add(definitions::event_record(project, seen), Rule::EventName)?;
            }
            for seen in &write.property_names {
                updates.add(definitions::property_record(project, seen), Rule::PropertyName)?;
            }
            for warning in write.warnings {
                let record = warnings::count_record(project, partition, warning);
                updates.add(record, Rule::Warning)?;
            }
        }
        if !first.is_empty() {
            records.statements.push((FIRST_EVENT, bind! { rows: first }));
        }
        Ok(records)
    }

    fn push(&mut self, record: Content, expected: Option<i64>, stale: &'static str) {
        match expected {
            None => self.new.push(record),
            Some(expected) => self.changed.push(Change { record, expected, stale }),
        }
    }

    fn encode(self, keyspace: Keyspace) -> Result<Records<Row, Entry>> {
        let row = |(id, content)| keyspace.row(id, content);
        let rows = |all: Vec<Content>| all.into_iter().map(row).collect::<Result<Vec<Row>>>();
        let mut new = rows(self.new)?;
        new.sort_unstable_by(Row::in_order);
        let changed = self.changed.into_iter().map(|Change { record, expected, stale }| {
            Ok(Change { record: row(record)?, expected, stale })
        });
        Ok(Records {
            from: self.from,
            heads: self.heads,
            position: row(self.position)?,
            replaced: rows(self.replaced)?,
            new,
            uuids: uuids::entries(keyspace, &self.uuids)?,
            sealed: self.uuids.iter().map(Placed::key).collect(),
            changed: changed.collect::<Result<_>>()?,
            updates: self.updates,
            counts: self.counts,
            statements: self.statements,
        })
    }
}

impl Records<Row, Entry> {
    async fn write(&self, tx: &Transaction, segments: &Arc<Segments>) -> Result<(), Failure> {
        let position: Option<PositionRow> = tx.get_for_update(self.position.key()).await?;
        if Position::from(position) != self.from {
            return Err(tx.refusal("position"));
        }
        // Statements come first: their save points cost more with every record that the
        // transaction has written.
        for (statement, vars) in &self.statements {
            tx.run(*statement, vars.clone()).await?;
        }
        let keys: Vec<_> = self.changed.iter().map(|change| change.record.key()).collect();
        let versions: Vec<Option<VersionRow>> = tx.get(&keys).await?;
        for (change, found) in self.changed.iter().zip(versions) {
            if found.is_none_or(|found| found.version != change.expected) {
                return Err(tx.refusal(change.stale));
            }
        }
        // Every read comes before the writes: a transaction looks for a key among its own
        // writes first. These values are small, so they are read together.
        let heads = self.heads.iter().map(|(key, _)| key.bytes());
        let uuids = self.uuids.iter().map(|entry| entry.key.as_slice());
        let keys: Vec<&[u8]> = heads.chain(uuids).chain(self.counts.keys()).collect();
        let mut heads = tx.small_values(&keys).await?;
        let mut uuids = heads.split_off(self.heads.len());
        let counts = uuids.split_off(self.uuids.len());
        // A consumer has the open blocks in memory, from before events were erased from them.
        for ((key, expected), value) in self.heads.iter().zip(heads) {
            let found = value.map(|value| decode_record::<ErasedRow>(APPLY.name, key, &value));
            if found.transpose()?.and_then(|found| found.erased) != *expected {
                return Err(tx.refusal("stale block"));
            }
        }
        tx.require_no_entries(&self.uuids, &uuids)?;
        // After the index was read: a seal adds its run before it removes entries.
        if segments::holds_any(segments, Arc::clone(&self.sealed)).await? {
            let detail = "an event in a run of uuids".to_owned();
            return Err(Error::Exists { statement: APPLY.name, detail }.into());
        }
        tx.require_no_rows(&self.new).await?;
        let counts = self.counts.sums(&counts)?;
        let updated = self.updates.rows(tx).await?;
        for entry in self.uuids.iter().chain(&counts).chain(self.counts.merges()) {
            tx.put(entry).await?;
        }
        let changed = self.changed.iter().map(|change| &change.record);
        for row in self.new.iter().chain(&self.replaced).chain(changed).chain(&updated) {
            tx.set(row).await?;
        }
        tx.set(&self.position).await
    }
}

/// Writes the effects of a batch of the log, all or nothing.
///
/// # Errors
/// [`Error::Exists`] when an event, a new person or a new group is already stored.
/// [`Error::Damaged`] immediately when a run is damaged where one of the events would be: the
/// batch can be applied after the repair ([`repair_runs`](super::repair_runs)).
/// [`Error::Refused`] with `position` when the store is not at `from` (the batch
/// may have been applied already), or with a word that begins with `stale` when a person,
/// a group, the group types or an open block were changed meanwhile. Nothing was written in
/// these cases.
pub async fn apply(store: &Store, apply: Apply) -> Result<()> {
    let keyspace = store.db.keyspace().await?;
    let merges = apply.projects.iter().map(|write| (write.project, write.merges()));
    let merges: Vec<_> = merges.filter(|(_, merges)| !merges.is_empty()).collect();
    let records = Arc::new(Records::of(apply, keyspace)?.encode(keyspace)?);
    let segments = Arc::clone(&store.segments);
    let write = move |tx| {
        let (records, segments) = (Arc::clone(&records), Arc::clone(&segments));
        async move { records.write(&tx, &segments).await }
    };
    let ticket = store.people.begin_merges(merges);
    let done = store.db.transact(APPLY, ticket.clone(), write).await;
    if let Some(ticket) = ticket {
        ticket.end(&done);
    }
    done
}

/// The position of a partition.
pub async fn position(store: &Store, partition: u16) -> Result<Position> {
    let found = store.db.get::<PositionRow>(POSITION, vec![keys::position(partition)]).await?;
    Ok(found.into_iter().flatten().next().into())
}

/// The positions of all partitions, in order.
pub async fn positions(store: &Store) -> Result<Vec<Position>> {
    let ids = (0..PARTITIONS).map(keys::position).collect();
    let found = store.db.get::<PositionRow>(POSITION, ids).await?;
    Ok(found.into_iter().map(Position::from).collect())
}

fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
