//! The records of erasures.

use std::sync::Arc;
use std::time::Duration;

use surrealdb::types::{Array, Bytes, Object, RecordId, RecordIdKey, SurrealValue, Value};
use uuid::Uuid;
use weir_model::erasures::Erasure;
use weir_model::{PersonId, ProjectId, Timestamp, UserId};

use super::active::{Pending, quoted};
use super::listed::Listed;
use super::{ErasedId, NewErasure, prints};
use crate::db::{Failure, Operation};
use crate::events::{PARTITIONS, part};
use crate::transaction::{IdRange, Keyspace, Row, RowKey, Transaction};
use crate::{Error, Result, Store, counts};

/// Distinct ids of a record.
const IDS: usize = 4_096;
/// Records that one transaction reads.
const READ: u32 = 256;
/// Records of distinct ids that one transaction reads. They may be large.
const READ_IDS: u32 = 4;
/// Records that one transaction removes.
const REMOVED: u32 = 1_000;

/// Why an erasure of the list fails.
const TOO_MANY_IDS: &str = "The person has too many distinct ids. The next start tries it again.";

const PENDING: Operation = Operation::read("pending erasures");
const REPORT: Operation = Operation::read("an erasure");
const LIST: Operation = Operation::read("distinct ids of an erasure");
const UPDATE: Operation = Operation::delete("note an erasure");
const END: Operation = Operation::delete("end an erasure").within(Duration::from_secs(60));
const PURGE: Operation = Operation::delete("purge erasures");
const SWEEPS: Operation = Operation::read("files to write again");

/// `erasure:[project, uuid]`. Times in microseconds.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub(super) struct Report {
    person: Uuid,
    pub(super) deletes_events: bool,
    pub(super) requested_at: i64,
    requested_by: Uuid,
    distinct_ids: i64,
    /// By partition, the arrival number of the last event that is erased.
    pub(super) bounds: Vec<i64>,
    pub(super) segments_left: i64,
    events: i64,
    samples: i64,
    pub(super) stored_at: Option<i64>,
    /// The offset of the log before which the events are.
    pub(super) log_end: Option<i64>,
    /// When the files of the database were written again.
    pub(super) compacted_at: Option<i64>,
    pub(super) done_at: Option<i64>,
    pub(super) failure: Option<String>,
}

#[derive(SurrealValue)]
struct IdRow {
    id: RecordId,
}

/// `erasure_ids:[project, uuid, number]`
#[derive(SurrealValue)]
struct IdsRow {
    /// First ids, 16 bytes each: those of `texts` first.
    ids: Bytes,
    /// Fingerprints of the distinct ids that are known, four bytes each.
    prints: Bytes,
    /// Missing once nothing is stored any more.
    texts: Option<Vec<String>>,
}

/// `erasure_of:[project, person]`
#[derive(SurrealValue)]
struct OfRow {
    erasure: Uuid,
}

/// `erasure_sweep:[uuid]`
#[derive(Debug, Clone, SurrealValue)]
pub(super) struct Sweep {
    pub(super) id: RecordId,
    /// The offset of the log before which the data is.
    pub(super) log_end: Option<i64>,
    /// Whether the files of the database were written again since.
    pub(super) compacted: Option<bool>,
    /// The numbers of the deleted projects.
    pub(super) projects: Vec<i64>,
}

fn id(table: &'static str, parts: Vec<Value>) -> RecordId {
    RecordId::new(table, RecordIdKey::Array(Array::from(parts)))
}

fn number(value: i64) -> Value {
    Value::Number(value.into())
}

fn uuid(value: Uuid) -> Value {
    Value::Uuid(value.into())
}

fn of_two(table: &'static str, project: ProjectId, of: Uuid) -> RecordId {
    id(table, vec![number(project.0), uuid(of)])
}

/// `erasure:[project, uuid]`
fn report_key(project: ProjectId, of: Uuid) -> RecordId {
    of_two("erasure", project, of)
}

/// `erasure_pending:[project, uuid]`
fn pending_key(project: ProjectId, of: Uuid) -> RecordId {
    of_two("erasure_pending", project, of)
}

/// `erasure_ids:[project, uuid, number]`
fn ids_key(project: ProjectId, of: Uuid, at: i64) -> RecordId {
    id("erasure_ids", vec![number(project.0), uuid(of), number(at)])
}

/// `erasure_of:[project, person]`
fn of_key(project: ProjectId, person: PersonId) -> RecordId {
    of_two("erasure_of", project, person.0)
}

fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

impl Report {
    pub(super) fn new(
        new: &NewErasure,
        person: PersonId,
        distinct_ids: usize,
        segments: u64,
    ) -> Self {
        Self {
            person: person.0,
            deletes_events: new.deletes_events,
            requested_at: new.requested_at.micros(),
            requested_by: new.requested_by.0,
            distinct_ids: int(distinct_ids as u64),
            bounds: Vec::new(),
            segments_left: int(segments),
            events: 0,
            samples: 0,
            stored_at: None,
            log_end: None,
            compacted_at: None,
            done_at: None,
            failure: None,
        }
    }

    /// The erasure as the service shows it.
    pub(super) fn erasure(&self, id: Uuid) -> Erasure {
        Erasure {
            id,
            person: PersonId(self.person),
            deletes_events: self.deletes_events,
            requested_at: Timestamp::from_micros(self.requested_at),
            requested_by: UserId(self.requested_by),
            distinct_ids: unsigned(self.distinct_ids),
            segments_left: unsigned(self.segments_left),
            events: unsigned(self.events),
            samples: unsigned(self.samples),
            stored_at: self.stored_at.map(Timestamp::from_micros),
            done_at: self.done_at.map(Timestamp::from_micros),
            failure: self.failure.clone(),
        }
    }

    /// What memory has of it.
    pub(super) fn pending(&self, id: Uuid, ids: &[ErasedId], project: ProjectId) -> Pending {
        Pending {
            id,
            requested_at: self.requested_at,
            deletes_events: self.deletes_events,
            bounds: self.bounds.iter().copied().map(unsigned).collect(),
            ids: ids.iter().map(|id| id.id).collect(),
            prints: prints(project, ids),
            texts: ids.iter().filter_map(|id| quoted(id.text.as_deref()?)).collect(),
            is_stored: self.stored_at.is_some(),
            is_compacted: self.compacted_at.is_some(),
            log_end: self.log_end.map(unsigned),
        }
    }

    /// The user who requested it, and the person.
    pub(super) fn facts(&self) -> (Uuid, Uuid) {
        (self.requested_by, self.person)
    }

    /// The records of a new erasure.
    pub(super) fn rows(
        &self,
        keyspace: Keyspace,
        project: ProjectId,
        id: Uuid,
        persons: &[PersonId],
        ids: &[ErasedId],
    ) -> Result<Vec<Row>> {
        let mut rows = vec![
            keyspace.row(report_key(project, id), self.clone().into_value())?,
            keyspace.row(pending_key(project, id), Value::Object(Object::new()))?,
        ];
        for person in persons {
            let of = OfRow { erasure: id }.into_value();
            rows.push(keyspace.row(of_key(project, *person), of)?);
        }
        for (at, some) in (0..).zip(ids.chunks(IDS)) {
            let texts = some.iter().filter_map(|id| id.text.clone()).collect();
            let row = ids_row(some.iter().map(|id| id.id), &prints(project, some), Some(texts));
            rows.push(keyspace.row(ids_key(project, id, at), row.into_value())?);
        }
        Ok(rows)
    }
}

fn ids_row(ids: impl Iterator<Item = Uuid>, prints: &[u32], texts: Option<Vec<String>>) -> IdsRow {
    let ids: Vec<u8> = ids.flat_map(|id| *id.as_bytes()).collect();
    let prints: Vec<u8> = prints.iter().flat_map(|print| print.to_be_bytes()).collect();
    IdsRow { ids: Bytes::from(ids), prints: Bytes::from(prints), texts }
}

/// Loads the erasures that are not done.
///
/// # Errors
/// When the store cannot be read.
pub(crate) async fn start(store: &Store) -> Result<()> {
    let keyspace = store.db.keyspace().await?;
    let (from, to) = (number(0), number(i64::MAX));
    let (from, to) = (id("erasure_pending", vec![from]), id("erasure_pending", vec![to]));
    let unfinished = store.db.all_rows::<IdRow>(PENDING, keyspace.range(from, to)?, READ).await?;
    for row in unfinished {
        let project = ProjectId(part(&row.id, 0, PENDING.name)?);
        let id = uuid_of(&row.id, 1)?;
        let report = store.db.get_one::<Report>(REPORT, report_key(project, id)).await?;
        let report = report.ok_or_else(|| wrong("an erasure without its report"))?;
        let (mut ids, mut prints, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for row in list(store, project, id).await? {
            let (of_ids, _) = row.ids.as_chunks::<16>();
            ids.extend(of_ids.iter().map(|bytes| Uuid::from_bytes(*bytes)));
            let (of_prints, _) = row.prints.as_chunks::<4>();
            prints.extend(of_prints.iter().map(|bytes| u32::from_be_bytes(*bytes)));
            texts.extend(row.texts.unwrap_or_default().iter().filter_map(|text| quoted(text)));
        }
        let pending = Pending { ids, prints, texts, ..report.pending(id, &[], project) };
        store.erasures.add(project, pending);
    }
    Ok(())
}

async fn list(store: &Store, project: ProjectId, of: Uuid) -> Result<Vec<IdsRow>> {
    let keyspace = store.db.keyspace().await?;
    let range = keyspace.beginning_with(of_two("erasure_ids", project, of))?;
    store.db.all_rows(LIST, range, READ_IDS).await
}

fn uuid_of(record: &RecordId, index: usize) -> Result<Uuid> {
    let RecordIdKey::Array(parts) = &record.key else { return Err(wrong("unexpected id")) };
    match parts.get(index) {
        Some(Value::Uuid(uuid)) => Ok(Uuid::from_bytes(*uuid.as_bytes())),
        Some(_) | None => Err(wrong("unexpected id")),
    }
}

fn wrong(detail: &str) -> Error {
    Error::Shape { statement: REPORT.name, detail: detail.to_owned() }
}

/// The last erasure of a person.
pub(super) async fn of_person(
    store: &Store,
    project: ProjectId,
    person: PersonId,
) -> Result<Option<Erasure>> {
    let of = store.db.get_one::<OfRow>(REPORT, of_key(project, person)).await?;
    let Some(OfRow { erasure: id }) = of else { return Ok(None) };
    let report = store.db.get_one::<Report>(REPORT, report_key(project, id)).await?;
    Ok(report.map(|report| report.erasure(id)))
}

/// The report of an erasure.
pub(super) async fn report(store: &Store, project: ProjectId, id: Uuid) -> Result<Option<Report>> {
    store.db.get_one(REPORT, report_key(project, id)).await
}

/// Changes a report, if it exists. `change` may run twice.
pub(super) async fn update(
    store: &Store,
    project: ProjectId,
    id: Uuid,
    change: impl Fn(&mut Report) + Send + Sync + 'static,
) -> Result<()> {
    let keyspace = store.db.keyspace().await?;
    let (key, change) = (Arc::new(keyspace.key(report_key(project, id))?), Arc::new(change));
    let work = move |tx: Transaction| {
        let (key, change) = (Arc::clone(&key), Arc::clone(&change));
        async move {
            let found: Option<Report> = tx.get_for_update(&key).await?;
            let Some(mut report) = found else { return Ok(()) };
            change(&mut report);
            tx.set(&keyspace.row(report_key(project, id), report.into_value())?).await
        }
    };
    store.db.transact(UPDATE, (), work).await
}

/// Adds the report of an erasure that was applied again as others, so that this is done once.
/// With a person who could not be erased, it says so, and is not done.
pub(super) async fn add_applied(
    store: &Store,
    listed: &Listed,
    person: PersonId,
    is_done: bool,
    now: Timestamp,
) -> Result<()> {
    let keyspace = store.db.keyspace().await?;
    let new = NewErasure {
        person,
        deletes_events: listed.deletes_events,
        requested_at: listed.requested_at(),
        requested_by: listed.requested_by(),
    };
    let done_at = is_done.then_some(now.micros());
    let failure = (!is_done).then(|| TOO_MANY_IDS.to_owned());
    let report = Report { done_at, stored_at: done_at, failure, ..Report::new(&new, person, 0, 0) };
    let id = report_key(listed.project(), listed.id);
    store.db.set_row(UPDATE, keyspace.row(id, report.into_value())?).await?;
    if is_done {
        return Ok(());
    }
    let of = OfRow { erasure: listed.id }.into_value();
    store.db.set_row(UPDATE, keyspace.row(of_key(listed.project(), person), of)?).await
}

/// Counts events and samples that were removed in this transaction.
pub(crate) async fn note_removed(
    tx: &Transaction,
    keyspace: Keyspace,
    project: ProjectId,
    id: Uuid,
    (events, samples): (i64, i64),
) -> Result<(), Failure> {
    let key = keyspace.key(report_key(project, id))?;
    let found: Option<Report> = tx.get_for_update(&key).await?;
    let Some(mut report) = found else { return Ok(()) };
    report.events = report.events.saturating_add(events);
    report.samples = report.samples.saturating_add(samples);
    tx.set(&keyspace.row(report_key(project, id), report.into_value())?).await
}

/// Removes the texts of the distinct ids of an erasure. What decides about events stays.
pub(super) async fn forget_texts(store: &Store, project: ProjectId, id: Uuid) -> Result<()> {
    let keyspace = store.db.keyspace().await?;
    let mut rows = Vec::new();
    for (at, row) in (0..).zip(list(store, project, id).await?) {
        let row = IdsRow { texts: None, ..row };
        rows.push(keyspace.row(ids_key(project, id, at), row.into_value())?);
    }
    for row in rows {
        store.db.set_row(UPDATE, row).await?;
    }
    Ok(())
}

/// Ends an erasure: its report says when, and the other records go away.
pub(super) async fn end(store: &Store, project: ProjectId, id: Uuid, now: Timestamp) -> Result<()> {
    let keyspace = store.db.keyspace().await?;
    let rows = list(store, project, id).await?.len();
    let ids = (0..int(rows as u64)).map(|at| ids_key(project, id, at));
    let gone = keyspace.keys(ids.chain([pending_key(project, id)]))?;
    let gone: Vec<Vec<u8>> = gone.into_iter().map(RowKey::into_bytes).collect();
    let (key, gone) = (Arc::new(keyspace.key(report_key(project, id))?), Arc::new(gone));
    let work = move |tx: Transaction| {
        let (key, gone) = (Arc::clone(&key), Arc::clone(&gone));
        async move {
            let found: Option<Report> = tx.get_for_update(&key).await?;
            if let Some(mut report) = found {
                report.done_at = Some(now.micros());
                report.failure = None;
                tx.set(&keyspace.row(report_key(project, id), report.into_value())?).await?;
            }
            tx.delete(&gone).await
        }
    };
    store.db.transact(END, (), work).await
}

/// Removes all erasures of a deleted project.
///
/// # Errors
/// When the store cannot be written; a further call continues.
pub(crate) async fn purge(store: &Store, project: ProjectId) -> Result<()> {
    let keyspace = store.db.keyspace().await?;
    store.erasures.forget(project);
    for table in ["erasure_pending", "erasure_ids", "erasure_of", "erasure"] {
        let range = keyspace.beginning_with(id(table, vec![number(project.0)]))?;
        store.db.delete_range(PURGE, range, REMOVED).await?;
    }
    Ok(())
}

/// Notes that files must be written again.
pub(super) async fn add_sweep(store: &Store, projects: &[ProjectId], now: Timestamp) -> Result<()> {
    let id = id("erasure_sweep", vec![uuid(crate::ids::time_ordered(now))]);
    let projects = projects.iter().map(|project| project.0).collect();
    set_sweep(store, Sweep { id, log_end: None, compacted: None, projects }).await
}

/// Changes the record of a sweep.
pub(super) async fn set_sweep(store: &Store, sweep: Sweep) -> Result<()> {
    let keyspace = store.db.keyspace().await?;
    store.db.set_row(UPDATE, keyspace.row(sweep.id.clone(), sweep.into_value())?).await
}

/// Removes the record of a sweep.
pub(super) async fn end_sweep(store: &Store, sweep: Sweep) -> Result<()> {
    let key = store.db.keyspace().await?.key(sweep.id)?.into_bytes();
    store.db.delete_keys(END, vec![key]).await
}

/// The files that must be written again: one record for each deleted project or organization.
pub(super) async fn sweeps(store: &Store) -> Result<Vec<Sweep>> {
    let bound = |of| id("erasure_sweep", vec![uuid(of)]);
    let range = store.db.keyspace().await?.range(bound(Uuid::nil()), bound(Uuid::max()))?;
    store.db.all_rows(SWEEPS, range, READ).await
}

/// The records of a project that may have had data of erased persons, in small ranges.
pub(super) fn ranges_of_persons(keyspace: Keyspace, project: ProjectId) -> Result<Vec<IdRange>> {
    const RANGES: u128 = 16;
    const BY_PARTITION: [&str; 3] = ["event_block", "event_summary", "affected_block"];
    const FEW: [&str; 2] = ["ingestion_warning", "erasure_ids"];
    let of = |table, further: Option<Value>| {
        id(table, [number(project.0)].into_iter().chain(further).collect())
    };
    let person = |at: u128| of("person", Some(uuid(Uuid::from_u128(at << 124))));
    let last = keyspace.range(person(RANGES - 1), behind("person", project))?;
    let mut ranges = vec![last];
    for at in 1..RANGES {
        ranges.push(keyspace.range(person(at - 1), person(at))?);
    }
    for table in BY_PARTITION {
        for partition in 0..i64::from(PARTITIONS) {
            let bound = |partition| of(table, Some(number(partition)));
            ranges.push(keyspace.range(bound(partition), bound(partition + 1))?);
        }
    }
    for table in FEW {
        ranges.push(keyspace.range(of(table, None), behind(table, project))?);
    }
    ranges.extend(counts::ranges(keyspace, project)?);
    Ok(ranges)
}

/// What else a deleted project had in tables with records of each event.
pub(super) fn ranges_of_project(keyspace: Keyspace, project: ProjectId) -> Result<Vec<IdRange>> {
    const TABLES: [&str; 9] = [
        "event_columns",
        "event_count_cursor",
        "event_definition",
        "event_group",
        "event_head",
        "event_segment",
        "event_segment_sums",
        "event_time",
        "event_uuid",
    ];
    let mut ranges = ranges_of_persons(keyspace, project)?;
    for table in TABLES {
        let begin = id(table, vec![number(project.0)]);
        ranges.push(keyspace.range(begin, behind(table, project))?);
    }
    Ok(ranges)
}

/// All tables without records of events and persons, in the order of their names.
pub(super) fn other_ranges(keyspace: Keyspace) -> Result<Vec<IdRange>> {
    const BETWEEN: [(&str, &str); 3] =
        [("a", "event_block"), ("external_identity", "person"), ("plugin", "zz")];
    let bound = |table| id(table, Vec::new());
    let range = |(from, to)| keyspace.range(bound(from), bound(to));
    BETWEEN.into_iter().map(range).collect()
}

/// An id behind all of a project.
fn behind(table: &'static str, project: ProjectId) -> RecordId {
    id(table, vec![number(project.0.saturating_add(1))])
}
