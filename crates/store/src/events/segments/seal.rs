//! Sealing: moving closed blocks into a segment, and their uuids into a run.
//!
//! The order makes every moment safe for a crash and for readers:
//!
//! 1. The segment and the run are written and synced, and the segment is uploaded if there
//!    is a bucket (`objects`). Nothing names them yet.
//! 2. One transaction adds both to the catalog and removes the records of the blocks.
//! 3. The run is held open, so that the uuids are found in it.
//! 4. The log of the table gets the segment (`table`).
//! 5. The entries of the index are removed, some at a time. Until this is recorded, the
//!    next sealing does it again.
//!
//! What belongs here: which blocks are sealed together, and this order. What does not: the
//! form of the files (`weir-segments`), and merging them (`merge`, `runs`).

use std::sync::Arc;

use surrealdb::types::{Bytes, RecordId, SurrealValue};
use weir_model::{ProjectId, Timestamp};
use weir_segments::run::{Entry, Key, Place};
use weir_segments::{
    Error as FileError, Options, Segment, SegmentEvent, TypedColumn, Writer, Written,
};

use super::catalog::{self, SealedSegment};
use super::files::{Files, Unlisted};
use super::runs::{self, HeldRun, NewRun};
use super::{Segments, change, lock, merge, objects, repair, table};
use crate::db::Operation;
use crate::disk::DiskLevel;
use crate::events::block::{Span, StoredEvent, decode, decode_one};
use crate::events::keys;
use crate::events::read::block_data;
use crate::transaction::{IdRange, Row, RowKey, Transaction};
use crate::{Error, Result, Store};

/// A segment is written as soon as so many events wait,
const EVENTS: u64 = 64_000;
/// or so many bytes of them before compression: about 16 MiB as they are in their blocks.
const BYTES: u64 = 64 << 20;
/// Fewer events are sealed when the oldest one was received so long ago, microseconds.
const AGE: i64 = 86_400_000_000;
/// A segment has at most so many blocks, because one transaction removes their records.
const BLOCKS: usize = 4_000;
/// Heads and summaries that one transaction reads.
const ROWS: u32 = 128;

const HEADS: Operation = Operation::read("event heads to seal");
const CLOSED: Operation = Operation::read("event blocks to seal");
const SEAL: Operation = Operation::write("seal events");

/// When blocks are sealed.
#[derive(Debug, Clone, Copy)]
pub struct SealBounds {
    /// As soon as so many events of a partition wait, or 64 MiB of them before compression,
    pub events: u64,
    /// or the oldest was received so long ago, microseconds.
    pub age: i64,
    /// Whether the newest block of each partition is sealed too. Only right as long as no
    /// task applies events: it would fill a block further that it knows from before.
    pub includes_newest: bool,
}

impl SealBounds {
    /// Everything, while no task applies events.
    pub const ALL: Self = Self { events: EVENTS, age: i64::MIN, includes_newest: true };
}

impl Default for SealBounds {
    fn default() -> Self {
        Self { events: EVENTS, age: AGE, includes_newest: false }
    }
}

/// What a call of [`seal_all`] did.
#[derive(Debug, Default)]
pub struct SealReport {
    /// The number of segments that were written.
    pub segments: usize,
    /// The number of events in them.
    pub events: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// Whether it ended because of its limit, so that more may be waiting.
    pub is_limited: bool,
    /// The number of damaged blocks that were found since the start. They stay in the
    /// database.
    pub damaged: usize,
    /// The first error that did not keep the rest from being sealed: of a partition, or of
    /// merging or repairing runs. The next call tries again what it concerns.
    pub failure: Option<Error>,
}

impl SealReport {
    fn note(&mut self, error: Error) {
        self.failure.get_or_insert(error);
    }
}

/// Seals the closed blocks of all projects within these bounds, at most `most` segments.
/// Does nothing if the store is in memory.
///
/// # Errors
/// [`Error::DiskLow`] when the disk is low, [`Error::File`] when a file cannot be written,
/// and errors of the store, before anything was sealed. Nothing is lost then, and the next
/// call continues. See also [`SealReport::failure`].
pub async fn seal_all(
    store: &Store,
    now: Timestamp,
    most: usize,
    bounds: SealBounds,
) -> Result<SealReport> {
    let mut report = SealReport::default();
    if store.segments.files.is_none() {
        return Ok(report);
    }
    seal_into(store, now, most, bounds, &mut report).await?;
    report.damaged = lock(&store.segments.skipped).len();
    Ok(report)
}

async fn seal_into(
    store: &Store,
    now: Timestamp,
    most: usize,
    bounds: SealBounds,
    report: &mut SealReport,
) -> Result<()> {
    change(store, move |store| async move { merge::remove_replaced(&store, now).await }).await?;
    let checked = change(store, |store| async move { repair::check(&store).await });
    if let Err(error) = checked.await {
        tracing::warn!(%error, "runs of event uuids are not checked yet");
        report.note(error);
    }
    change(store, |store| async move { runs::clear_pending(&store).await }).await?;
    let is_complete = match objects::catch_up(store).await {
        Ok(is_complete) => is_complete,
        Err(error) => {
            tracing::warn!(%error, "nothing is sealed until the bucket can be used");
            report.note(error);
            return Ok(());
        }
    };
    compare_tables(store, now).await?;
    change(store, |store| async move { objects::tidy(&store).await }).await?;
    seal_lanes(store, now, most, bounds, report).await?;
    report.is_limited |= !is_complete;
    Ok(())
}

/// Seals the closed blocks of all partitions.
async fn seal_lanes(
    store: &Store,
    now: Timestamp,
    most: usize,
    bounds: SealBounds,
    report: &mut SealReport,
) -> Result<()> {
    let mut heads = Heads::all(store).await?;
    while let Some(some) = heads.next(store).await? {
        for lane in some {
            if let Err(error) = seal_lane(store, lane, now, most, bounds, report).await {
                let Lane { project, partition, .. } = lane;
                tracing::warn!(
                    %project, partition, %error,
                    "events of a partition are not sealed yet"
                );
                let is_final =
                    matches!(error, Error::Bucket { .. } | Error::DiskLow | Error::Stopped);
                report.note(error);
                if is_final {
                    return Ok(());
                }
            }
            if report.is_limited {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Seals the closed blocks of a partition.
async fn seal_lane(
    store: &Store,
    lane: Lane,
    now: Timestamp,
    most: usize,
    bounds: SealBounds,
    report: &mut SealReport,
) -> Result<()> {
    let (mut after, mut merges) = (None, true);
    loop {
        if report.segments >= most {
            report.is_limited = true;
            return Ok(());
        }
        let step = change(store, move |store| async move {
            seal_next(&store, &lane, after, now, bounds).await
        });
        match step.await? {
            Step::Nothing => return Ok(()),
            Step::Skipped { last } => after = Some(last),
            Step::Sealed { events, bytes } => {
                report.segments += 1;
                report.events += events;
                report.bytes += bytes;
                after = None;
                if merges {
                    let merged =
                        change(store, |store| async move { runs::merge_due(&store).await });
                    if let Err(error) = merged.await {
                        tracing::warn!(%error, "runs of event uuids are not merged yet");
                        merges = false;
                        report.note(error);
                    }
                }
            }
        }
    }
}

/// Brings the tables of all projects up to the catalog, where that is not known.
async fn compare_tables(store: &Store, now: Timestamp) -> Result<()> {
    let (mut heads, mut before) = (Heads::all(store).await?, None);
    while let Some(some) = heads.next(store).await? {
        for Lane { project, .. } in some {
            if before.replace(project) != Some(project) {
                let compare = move |store: Store| async move {
                    table::compare(&store, project, now).await;
                    Ok(())
                };
                change(store, compare).await?;
            }
        }
    }
    Ok(())
}

/// The blocks of a project in a partition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lane {
    pub(super) project: ProjectId,
    partition: u16,
    /// First arrival number of the newest block, which stays open.
    newest: u64,
}

/// Iterates over the heads of all projects.
pub(super) struct Heads {
    rest: Option<IdRange>,
}

#[derive(SurrealValue)]
struct HeadRow {
    id: RecordId,
    newest: i64,
}

impl Heads {
    pub(super) async fn all(store: &Store) -> Result<Self> {
        let (from, to) = keys::all_projects("event_head");
        Ok(Self { rest: Some(store.db.keyspace().await?.range(from, to)?) })
    }

    pub(super) async fn next(&mut self, store: &Store) -> Result<Option<Vec<Lane>>> {
        let rows = store.db.next_rows::<HeadRow>(HEADS, &mut self.rest, ROWS).await?;
        let Some(rows) = rows else { return Ok(None) };
        let lane = |row: HeadRow| {
            let partition = keys::part(&row.id, 1, HEADS.name)?;
            Ok(Lane {
                project: ProjectId(keys::part(&row.id, 0, HEADS.name)?),
                partition: u16::try_from(partition).map_err(|_| unexpected())?,
                newest: u64::try_from(row.newest).unwrap_or(0),
            })
        };
        rows.into_iter().map(lane).collect::<Result<_>>().map(Some)
    }
}

/// A block that gets no further events and is not sealed.
struct Closed {
    first: u64,
    last: u64,
    events: u64,
    bytes: u64,
}

#[derive(SurrealValue)]
struct ClosedRow {
    id: RecordId,
    last: i64,
    count: i64,
    bytes: i64,
}

enum Step {
    /// There is nothing to seal yet.
    Nothing,
    /// A damaged block stays as it is. The next step continues after it.
    Skipped {
        /// Arrival number of its last event.
        last: u64,
    },
    /// A segment was written.
    Sealed { events: u64, bytes: u64 },
}

/// Writes the next segment of a partition, from the block after the arrival number `after`
/// on; `None`: after all segments that there are.
async fn seal_next(
    store: &Store,
    lane: &Lane,
    after: Option<u64>,
    now: Timestamp,
    bounds: SealBounds,
) -> Result<Step> {
    let Lane { project, partition, newest } = *lane;
    let after = match after {
        Some(after) => Some(after),
        None => {
            let end = newest.saturating_add(bounds.includes_newest.into());
            let last = catalog::newest_before(store, project, partition, end).await?;
            last.map(|segment| segment.last)
        }
    };
    let begin = after.map_or(0, |after| after.saturating_add(1));
    let (blocks, is_full) = closed(store, lane, begin, bounds).await?;
    let Some(oldest) = blocks.first() else { return Ok(Step::Nothing) };
    if !is_full {
        let received = match data_of(store, lane, oldest.first).await? {
            Some(data) => decode_one(&data, 0).ok().flatten().map(|event| event.received_at),
            None => None,
        };
        // A block that cannot be read is reported when it is sealed.
        if received.is_some_and(|at| at > now.micros().saturating_sub(bounds.age)) {
            return Ok(Step::Nothing);
        }
    }
    if store.db.disk().check() == DiskLevel::Low {
        return Err(Error::DiskLow);
    }
    let mut inputs = Vec::with_capacity(blocks.len());
    for block in blocks {
        let data = data_of(store, lane, block.first).await?;
        inputs.push(Input { block, data });
    }
    write(store, lane, inputs, now).await
}

/// The closed blocks that begin at `begin` or later, as many as fit into a segment, and
/// whether they fill it.
async fn closed(
    store: &Store,
    lane: &Lane,
    begin: u64,
    bounds: SealBounds,
) -> Result<(Vec<Closed>, bool)> {
    let id = |first| keys::summary(lane.project, lane.partition, first);
    let end = lane.newest.saturating_add(bounds.includes_newest.into());
    if begin >= end {
        return Ok((Vec::new(), false));
    }
    let mut rest = Some(store.db.keyspace().await?.range(id(begin), id(end))?);
    let (mut blocks, mut events, mut bytes) = (Vec::new(), 0_u64, 0_u64);
    while let Some(rows) = store.db.next_rows::<ClosedRow>(CLOSED, &mut rest, ROWS).await? {
        for row in rows {
            let number = |value: i64| u64::try_from(value).unwrap_or(0);
            let block = Closed {
                first: number(keys::part(&row.id, 2, CLOSED.name)?),
                last: number(row.last),
                events: number(row.count),
                bytes: number(row.bytes),
            };
            events = events.saturating_add(block.events);
            bytes = bytes.saturating_add(block.bytes);
            blocks.push(block);
            if events >= bounds.events || bytes >= BYTES || blocks.len() >= BLOCKS {
                return Ok((blocks, true));
            }
        }
    }
    Ok((blocks, false))
}

/// The events of a block as they are stored; `None`: its record is missing or damaged.
async fn data_of(store: &Store, lane: &Lane, first: u64) -> Result<Option<Bytes>> {
    match block_data(store, lane.project, (lane.partition, first)).await {
        Err(Error::Shape { .. }) => Ok(None),
        data => data,
    }
}

/// A block to be sealed.
struct Input {
    block: Closed,
    /// See [`data_of`].
    data: Option<Bytes>,
}

impl Input {
    /// The events, which are as many as the summary says. `None`: the block is damaged.
    fn events(&self) -> Option<Vec<StoredEvent>> {
        let events = decode(self.data.as_ref()?).ok()?;
        let is_whole = events.len() as u64 == self.block.events
            // The first one may have been erased.
            && events.first().is_some_and(|event| event.arrival >= self.block.first)
            && events.last().is_some_and(|event| event.arrival == self.block.last)
            && events.is_sorted_by(|one, next| one.arrival < next.arrival);
        is_whole.then_some(events)
    }
}

/// Writes a segment of these blocks, up to the first one that is damaged.
async fn write(store: &Store, lane: &Lane, mut inputs: Vec<Input>, now: Timestamp) -> Result<Step> {
    let Lane { project, partition, .. } = *lane;
    let segments = &store.segments;
    let Some(files) = segments.files.clone() else { return Ok(Step::Nothing) };
    let root = files.path("");
    let columns = catalog::columns(store, project).await?;
    loop {
        let Some(last) = inputs.last().map(|input| input.block.last) else {
            return Ok(Step::Nothing);
        };
        let (of, known) = (files.clone(), columns.clone());
        let written = segments.blocking(root.clone(), move || {
            let new = NewFiles::write(&of, project, partition, &inputs, known);
            Ok((new, inputs))
        });
        let (new, read) = written.await?.map_err(|error| segments.error(error))?;
        inputs = read;
        match new {
            Ok(new) => {
                let (file, written, _) = &new.segment;
                let path = file.path();
                let uploaded = objects::upload(store, file.name(), &path, written.bytes).await?;
                let firsts: Vec<u64> = inputs.iter().map(|input| input.block.first).collect();
                let added = add(store, lane, last, new, firsts, columns, now).await?;
                uploaded.named();
                let (held, entries, step) = added;
                runs::clear(store, &held, &entries).await?;
                return Ok(step);
            }
            Err(NotWritten::File(error)) => return Err(segments.error(error)),
            Err(NotWritten::Damaged { at }) => {
                let Some(damaged) = inputs.get(at).map(|input| &input.block) else {
                    return Ok(Step::Nothing);
                };
                if at == 0 {
                    // Passes meet it until a later block of the partition is sealed.
                    if lock(&segments.skipped).insert((project, partition, damaged.first)) {
                        tracing::error!(
                            %project, partition, first = damaged.first,
                            "a damaged block is not sealed"
                        );
                    }
                    return Ok(Step::Skipped { last: damaged.last });
                }
                // Those before it.
                inputs.truncate(at);
            }
        }
    }
}

/// Why files were not written.
enum NotWritten {
    /// The block at this index is damaged.
    Damaged {
        at: usize,
    },
    File(FileError),
}

impl From<FileError> for NotWritten {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

/// A segment and the run of its uuids, which are complete and durable. The catalog does
/// not name them.
struct NewFiles {
    segment: (Unlisted, Written, Segment),
    run: NewRun,
    /// The entries of the run.
    entries: Vec<Entry>,
}

impl NewFiles {
    /// Writes the files, and opens them: what cannot be opened is not used.
    fn write(
        files: &Files,
        project: ProjectId,
        partition: u16,
        inputs: &[Input],
        known: Vec<TypedColumn>,
    ) -> Result<Self, NotWritten> {
        let first = inputs.first().map_or(0, |input| input.block.first);
        let last = inputs.last().map_or(0, |input| input.block.last);
        let file = files.new_segment(project, partition, (first, last))?;
        let path = file.path();
        let mut writer = Writer::create(&path, &options(known))?;
        let mut entries = Vec::new();
        for (at, input) in inputs.iter().enumerate() {
            let events = input.events().ok_or(NotWritten::Damaged { at })?;
            let of_block: Vec<SegmentEvent<'_>> = events.iter().map(sealed).collect();
            writer.push_block_of(input.block.first, &of_block)?;
            entries.extend((0..).zip(&events).map(|(index, event)| Entry {
                key: Key { project: project.0, uuid: event.uuid },
                place: Place { partition, first: input.block.first, index },
            }));
        }
        let written = writer.finish()?;
        let segment = Segment::open(&path, written.bytes, &written.sums)?;
        let run = NewRun::of(files, &mut entries, 0)?;
        Ok(Self { segment: (file, written, segment), run, entries })
    }
}

/// How a segment of a project with these typed columns is written.
pub(super) fn options(known: Vec<TypedColumn>) -> Options {
    let mut options = Options::default();
    options.known = known;
    options
}

fn sealed(event: &StoredEvent) -> SegmentEvent<'_> {
    SegmentEvent {
        arrival: event.arrival,
        uuid: event.uuid,
        event: &event.event,
        distinct_id: &event.distinct_id,
        timestamp: event.timestamp,
        received_at: event.received_at,
        properties: &event.properties,
        elements_chain: &event.elements_chain,
        historical: event.historical,
        warnings: &event.warnings,
    }
}

/// Adds new files to the catalog, and removes the records of the blocks in one transaction.
/// Entries of the index stay.
async fn add(
    store: &Store,
    lane: &Lane,
    last: u64,
    new: NewFiles,
    firsts: Vec<u64>,
    mut columns: Vec<TypedColumn>,
    now: Timestamp,
) -> Result<(HeldRun, Vec<Entry>, Step)> {
    let Lane { project, partition, .. } = *lane;
    let segments: &Segments = &store.segments;
    let NewFiles { segment: (file, written, segment), run, entries } = new;
    let number = catalog::next_run(store).await?;
    let step = Step::Sealed { events: written.rows, bytes: written.bytes };
    let sealed = SealedSegment {
        project,
        partition,
        first: firsts.first().copied().unwrap_or(0),
        last,
        rows: written.rows,
        bytes: written.bytes,
        file: file.keep(),
        times: Span { from: written.from_time, to: written.to_time },
        sealed_at: now.micros(),
        level: 0,
    };
    let held = run.listed(number, 0, true);
    let keyspace = store.db.keyspace().await?;
    let sums = sealed.sums_row(keyspace, written.sums)?;
    let mut rows: Vec<Row> = vec![sealed.row(keyspace)?, sums, held.sealed.row(keyspace)?];
    rows.sort_unstable_by(Row::in_order);
    let row = catalog::add_columns(&mut columns, written.typed, keyspace, project)?;
    let (row, log) = (Arc::new(row), table::begin(store, project));
    let blocks = firsts.iter().map(|first| keys::block(project, partition, *first));
    let blocks = keyspace.keys(blocks)?.into_iter().map(RowKey::into_bytes);
    let (rows, blocks) = (Arc::new(rows), Arc::new(blocks.collect::<Vec<_>>()));
    let work = move |tx: Transaction| {
        let (rows, blocks, row) = (Arc::clone(&rows), Arc::clone(&blocks), Arc::clone(&row));
        async move {
            tx.insert(&rows).await?;
            if let Some(row) = row.as_ref() {
                tx.set(row).await?;
            }
            tx.delete(&blocks).await
        }
    };
    store.db.transact(SEAL, (), work).await?;
    lock(&segments.open).insert(sealed.file.clone(), segment);
    // Before any entry of the index is removed.
    let mut all = segments.runs().to_vec();
    all.push(held.clone());
    segments.set_runs(all);
    log.commit(store, columns, &[], &[sealed], now).await;
    Ok((held, entries, step))
}

fn unexpected() -> Error {
    Error::Shape { statement: HEADS.name, detail: "unexpected record id".to_owned() }
}
