//! The catalog: which segments and runs there are, and the typed columns of a project.
//!
//! | table | id | holds |
//! |---|---|---|
//! | `event_segment` | `[project, partition, first arrival]` | the file of a segment |
//! | `event_segment_sums` | name of the file | its checksums, which are large, and read when it is opened |
//! | `event_uuid_run` | `[number]` | the file of a run, and its checksums |
//! | `event_columns` | project | the typed columns of its segments. Columns are added, and never change |
//!
//! A file belongs to the store as soon as a row names it, and no longer. So every change
//! of files is one transaction here.
//!
//! What belongs here: reading and encoding the rows. What does not: when they change
//! (`seal`, `merge`, `runs`, `retention`).

use std::sync::Arc;

use surrealdb::types::{Bytes, RecordId, SurrealValue};
use weir_model::ProjectId;
use weir_segments::{ColumnType, TypedColumn};

use crate::db::{Db, Failure, Operation};
use crate::events::block::Span;
use crate::events::keys;
use crate::transaction::{IdRange, Keyspace, Row, RowKey, Transaction};
use crate::{Error, Result, Store};

/// Rows of segments that one transaction reads.
pub(super) const ROWS: u32 = 1_000;

const HOLDING: Operation = Operation::read("event segment of a block");
const SEGMENTS: Operation = Operation::read("event segments");
const SUMS: Operation = Operation::read("checksums of an event segment");
const COLUMNS: Operation = Operation::read("typed columns of events");
const RUNS: Operation = Operation::read("runs of event uuids");

/// A segment, as the catalog has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SealedSegment {
    pub(super) project: ProjectId,
    pub(super) partition: u16,
    /// First arrival number of its first block.
    pub(super) first: u64,
    /// Arrival number of its last event.
    pub(super) last: u64,
    /// The number of its events.
    pub(super) rows: u64,
    /// Bytes of the file.
    pub(super) bytes: u64,
    /// Name of the file (`files`).
    pub(crate) file: String,
    /// Earliest and latest event time, microseconds.
    pub(super) times: Span,
    /// When its file was written, microseconds.
    pub(super) sealed_at: i64,
    /// How often its events were merged with others.
    pub(super) level: u8,
}

/// A run, as the catalog has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SealedRun {
    /// Later runs have higher numbers.
    pub(super) number: u64,
    /// Name of the file (`files`).
    pub(super) file: String,
    /// The number of its uuids.
    pub(super) entries: u64,
    /// Bytes of the file.
    pub(super) bytes: u64,
    /// Checksums of the file, as it was written.
    pub(super) sums: Vec<u8>,
    /// How often its uuids were merged with others.
    pub(super) level: u8,
    /// Whether the index of uuids may still have some of them.
    pub(super) is_pending: bool,
}

#[derive(SurrealValue)]
struct SegmentRow {
    id: RecordId,
    last: i64,
    rows: i64,
    bytes: i64,
    file: String,
    from_time: i64,
    to_time: i64,
    sealed_at: i64,
    level: i64,
}

#[derive(SurrealValue)]
struct SumsRow {
    sums: Bytes,
}

#[derive(SurrealValue)]
struct ColumnsRow {
    columns: Vec<ColumnRow>,
}

#[derive(SurrealValue)]
struct ColumnRow {
    property: String,
    kind: String,
}

#[derive(SurrealValue)]
struct RunRow {
    id: RecordId,
    file: String,
    entries: i64,
    bytes: i64,
    sums: Bytes,
    level: i64,
    pending: bool,
}

impl SealedSegment {
    pub(super) fn key(&self, keyspace: Keyspace) -> Result<RowKey> {
        keyspace.key(keys::segment(self.project, self.partition, self.first))
    }

    pub(super) fn row(&self, keyspace: Keyspace) -> Result<Row> {
        let id = keys::segment(self.project, self.partition, self.first);
        let row = SegmentRow {
            id: id.clone(),
            last: int(self.last),
            rows: int(self.rows),
            bytes: int(self.bytes),
            file: self.file.clone(),
            from_time: self.times.from,
            to_time: self.times.to,
            sealed_at: self.sealed_at,
            level: self.level.into(),
        };
        keyspace.row(id, row.into_value())
    }

    /// The key of the checksums of its file.
    pub(super) fn sums_key(&self, keyspace: Keyspace) -> Result<RowKey> {
        keyspace.key(keys::segment_sums(&self.file))
    }

    /// The row with the checksums of its file, as the file was written.
    pub(super) fn sums_row(&self, keyspace: Keyspace, sums: Vec<u8>) -> Result<Row> {
        let row = SumsRow { sums: Bytes::from(sums) };
        keyspace.row(keys::segment_sums(&self.file), row.into_value())
    }

    fn of(row: SegmentRow) -> Option<Self> {
        let part = |index| keys::part(&row.id, index, SEGMENTS.name).ok();
        let number = |value: i64| u64::try_from(value).ok();
        Some(Self {
            project: ProjectId(part(0)?),
            partition: u16::try_from(part(1)?).ok()?,
            first: number(part(2)?)?,
            last: number(row.last)?,
            rows: number(row.rows)?,
            bytes: number(row.bytes)?,
            file: row.file,
            times: Span { from: row.from_time, to: row.to_time },
            sealed_at: row.sealed_at,
            level: u8::try_from(row.level).ok()?,
        })
    }
}

impl SealedRun {
    pub(super) fn key(&self, keyspace: Keyspace) -> Result<RowKey> {
        keyspace.key(keys::uuid_run(self.number))
    }

    pub(super) fn row(&self, keyspace: Keyspace) -> Result<Row> {
        let id = keys::uuid_run(self.number);
        let row = RunRow {
            id: id.clone(),
            file: self.file.clone(),
            entries: int(self.entries),
            bytes: int(self.bytes),
            sums: Bytes::from(self.sums.clone()),
            level: self.level.into(),
            pending: self.is_pending,
        };
        keyspace.row(id, row.into_value())
    }

    fn of(row: RunRow) -> Option<Self> {
        Some(Self {
            number: u64::try_from(keys::part(&row.id, 0, RUNS.name).ok()?).ok()?,
            file: row.file,
            entries: u64::try_from(row.entries).ok()?,
            bytes: u64::try_from(row.bytes).ok()?,
            sums: row.sums.to_vec(),
            level: u8::try_from(row.level).ok()?,
            is_pending: row.pending,
        })
    }
}

/// The newest segment of a partition that begins before an arrival number.
pub(super) async fn newest_before(
    store: &Store,
    project: ProjectId,
    partition: u16,
    end: u64,
) -> Result<Option<SealedSegment>> {
    let id = |first| keys::segment(project, partition, first);
    let range = Arc::new(store.db.keyspace().await?.range(id(0), id(end))?);
    let work = move |tx: Transaction| {
        let range = Arc::clone(&range);
        async move { newest_in(&tx, &range).await }
    };
    store.db.transact(HOLDING, (), work).await
}

/// The last segment of a range of one partition.
pub(super) async fn newest_in(
    tx: &Transaction,
    range: &IdRange,
) -> Result<Option<SealedSegment>, Failure> {
    let row: Option<SegmentRow> = tx.last(range).await?;
    Ok(row.map(|row| SealedSegment::of(row).ok_or_else(|| wrong(SEGMENTS))).transpose()?)
}

/// The checksums of a file; `None`: it is not in the catalog any more.
pub(super) async fn sums(store: &Store, file: &str) -> Result<Option<Vec<u8>>> {
    sums_in(&store.db, file).await
}

/// The same, of an engine that is opened without the rest of the store.
pub(super) async fn sums_in(db: &Db, file: &str) -> Result<Option<Vec<u8>>> {
    let row = db.get_one::<SumsRow>(SUMS, keys::segment_sums(file)).await?;
    Ok(row.map(|row| row.sums.to_vec()))
}

/// Iterates over segments, in the order of their ids: project, partition, arrival.
#[derive(Debug)]
pub(super) struct Segments {
    rest: Option<IdRange>,
}

impl Segments {
    /// All segments.
    pub(super) async fn all(store: &Store) -> Result<Self> {
        Self::all_in(&store.db).await
    }

    /// The same, of an engine that is opened without the rest of the store.
    pub(super) async fn all_in(db: &Db) -> Result<Self> {
        let (from, to) = keys::all_projects("event_segment");
        Ok(Self { rest: Some(db.keyspace().await?.range(from, to)?) })
    }

    /// All segments after this project, partition and arrival number.
    pub(super) async fn after(
        store: &Store,
        (project, partition, last): (ProjectId, u16, u64),
    ) -> Result<Self> {
        let (_, to) = keys::all_projects("event_segment");
        let from = keys::segment(project, partition, last.saturating_add(1));
        Ok(Self { rest: Some(store.db.keyspace().await?.range(from, to)?) })
    }

    /// The segments of a project.
    pub(super) async fn of(store: &Store, project: ProjectId) -> Result<Self> {
        let (from, to) = (keys::segment(project, 0, 0), keys::segment(project, u16::MAX, 0));
        Ok(Self { rest: Some(store.db.keyspace().await?.range(from, to)?) })
    }

    /// The next segments; `None`: there are no more.
    pub(super) async fn next(&mut self, store: &Store) -> Result<Option<Vec<SealedSegment>>> {
        self.next_in(&store.db).await
    }

    /// The same, of an engine that is opened without the rest of the store.
    pub(super) async fn next_in(&mut self, db: &Db) -> Result<Option<Vec<SealedSegment>>> {
        let rows = db.next_rows::<SegmentRow>(SEGMENTS, &mut self.rest, ROWS).await?;
        let Some(rows) = rows else { return Ok(None) };
        let segments =
            rows.into_iter().map(|row| SealedSegment::of(row).ok_or_else(|| wrong(SEGMENTS)));
        segments.collect::<Result<_>>().map(Some)
    }
}

/// Bytes of the segments of a project.
pub(in crate::events) async fn bytes(store: &Store, project: ProjectId) -> Result<u64> {
    let mut all = Segments::of(store, project).await?;
    let mut bytes = 0_u64;
    while let Some(some) = all.next(store).await? {
        bytes += some.iter().map(|segment| segment.bytes).sum::<u64>();
    }
    Ok(bytes)
}

/// The typed columns of a project, in the order in which they were added.
pub(super) async fn columns(store: &Store, project: ProjectId) -> Result<Vec<TypedColumn>> {
    let row = store.db.get_one::<ColumnsRow>(COLUMNS, keys::columns(project)).await?;
    let columns = row.map(|row| row.columns).unwrap_or_default().into_iter();
    let column = |ColumnRow { property, kind }| {
        let kind = ColumnType::of_name(&kind).ok_or_else(|| wrong(COLUMNS))?;
        Ok(TypedColumn { property, kind })
    };
    columns.map(column).collect()
}

/// Adds the columns of a new file to those of its project. Returns their row; `None`: it
/// has no new ones.
pub(super) fn add_columns(
    columns: &mut Vec<TypedColumn>,
    typed: Vec<TypedColumn>,
    keyspace: Keyspace,
    project: ProjectId,
) -> Result<Option<Row>> {
    let before = columns.len();
    for column in typed {
        if columns.iter().all(|known| known.property != column.property) {
            columns.push(column);
        }
    }
    if columns.len() == before {
        return Ok(None);
    }
    let row = |column: &TypedColumn| ColumnRow {
        property: column.property.clone(),
        kind: column.kind.name().to_owned(),
    };
    let row = ColumnsRow { columns: columns.iter().map(row).collect() };
    keyspace.row(keys::columns(project), row.into_value()).map(Some)
}

/// All runs, the oldest first.
pub(super) async fn runs(store: &Store) -> Result<Vec<SealedRun>> {
    let (from, to) = keys::all_projects("event_uuid_run");
    let range = Arc::new(store.db.keyspace().await?.range(from, to)?);
    let work = move |tx: Transaction| {
        let range = Arc::clone(&range);
        // Few, because they are merged.
        async move { tx.first::<RunRow>(&range, u32::MAX).await }
    };
    let (rows, _) = store.db.transact(RUNS, (), work).await?;
    rows.into_iter().map(|row| SealedRun::of(row).ok_or_else(|| wrong(RUNS))).collect()
}

/// The number of the next run.
pub(super) async fn next_run(store: &Store) -> Result<u64> {
    let (from, to) = keys::all_projects("event_uuid_run");
    let range = Arc::new(store.db.keyspace().await?.range(from, to)?);
    let work = move |tx: Transaction| {
        let range = Arc::clone(&range);
        async move { tx.last::<RunRow>(&range).await }
    };
    let Some(last) = store.db.transact(RUNS, (), work).await? else { return Ok(1) };
    let last = SealedRun::of(last).ok_or_else(|| wrong(RUNS))?;
    Ok(last.number.saturating_add(1))
}

fn wrong(operation: Operation) -> Error {
    Error::Shape { statement: operation.name, detail: "an unexpected row".to_owned() }
}

fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
