//! The latest dropped and altered events, in compressed blocks.
//!
//! | table | id | holds |
//! |---|---|---|
//! | `affected_block` | `[project, partition, first number]` | the events of a block, compressed |
//! | `affected_summary` | the same | number, times and codes of these events |
//!
//! The consumers of the log write blocks in their transactions. The last block of a
//! project and partition stays open: it is rewritten with added events. Numbers are
//! dense. Only the uuid of an altered event is kept: the event is read where it is
//! stored.
//!
//! The newest [`KEPT`] events of a project and partition are kept, for at most [`DAYS`]
//! days. [`forget`] removes older ones, block by block.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use surrealdb::types::{Bytes, RecordId, RecordIdKey, SurrealValue, Value};
use uuid::Uuid;
use weir_model::outcomes::Warning;
use weir_model::warnings::{AffectedCursor, AffectedQuery};
use weir_model::{ProjectId, Timestamp};

use crate::bind::bind;
use crate::db::{Operation, Statement};
use crate::erasures::{Erased, note_removed};
use crate::events::{Head, PARTITIONS, Span, head_key, part, range};
use crate::transaction::Transaction;
use crate::{Error, Result, Store};

/// The number of newest events that are kept of a project in one partition, rounded up
/// to whole blocks. A project has [`PARTITIONS`] partitions.
pub const KEPT: i64 = 100_000;
/// Days for which they are kept.
pub const DAYS: i64 = 30;
/// A block is full at this many events,
const FULL_EVENTS: i64 = 500;
/// or at this many bytes before compression,
const FULL_BYTES: usize = 256 << 10;
/// or when the next event is later than the first one by this much, so that old events
/// can be removed as whole blocks.
const FULL_MICROS: i64 = DAY;
const DAY: i64 = 86_400 * 1_000_000;
const COMPRESSION: i32 = 1;
/// The largest size of a block after decompression: a nearly full one, and the largest
/// event.
const LARGEST: usize = 4 << 20;
/// Blocks that one removal deletes at a time.
const REMOVED: usize = 50;

const OPEN: Operation = Operation::read("open affected block");
const BLOCK: Statement = Statement::read("affected block", "SELECT VALUE data FROM $id;");
// A few hundred small records of a project and partition.
const SUMMARIES: Statement = Statement::read("affected summaries", "SELECT * FROM $range;");
const ERASE: Operation = Operation::delete("erase affected events");
const DELETE: Statement =
    Statement::delete("remove affected events", "BEGIN; DELETE $ids RETURN NONE; COMMIT;")
        .within(std::time::Duration::from_secs(60));

/// An event that was dropped or altered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Affected {
    /// The reason for which it was dropped, or the warnings with which it was stored.
    pub codes: Vec<String>,
    /// Whether it was stored (altered) or dropped.
    pub is_stored: bool,
    /// When it was received, microseconds.
    pub received_at: i64,
    /// Details of the reason: for example which transformation dropped it.
    pub detail: Option<String>,
    /// Name of the event, if it had one.
    pub event: Option<String>,
    /// Distinct id of the event, if it had one.
    pub distinct_id: Option<String>,
    /// Uuid of the event, if it had one.
    pub uuid: Option<Uuid>,
    /// The payload as received, cut when it is long; empty for a stored event.
    pub payload: String,
}

/// A page of dropped and altered events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AffectedPage {
    /// The events, newest first.
    pub found: Vec<(AffectedCursor, Affected)>,
    /// Whether there are more events.
    pub more: bool,
    /// The number of events in damaged blocks that may belong to the page.
    pub unreadable: u64,
}

/// A block that is being filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AffectedBuilder {
    /// Number of its first event, which is part of the id of the block.
    pub first: i64,
    count: i64,
    raw: Vec<u8>,
    span: Span,
    codes: BTreeSet<String>,
}

/// A block to be written.
#[derive(Debug, Clone)]
pub struct AffectedBlock {
    first: i64,
    data: Vec<u8>,
    summary: Summary,
}

#[derive(Debug, Clone, SurrealValue)]
struct Summary {
    count: i64,
    from_at: i64,
    to_at: i64,
    codes: Vec<String>,
}

#[derive(SurrealValue)]
struct SummaryRow {
    id: RecordId,
    count: i64,
    from_at: i64,
    to_at: i64,
    codes: Vec<String>,
}

#[derive(SurrealValue)]
struct BlockRow {
    data: Bytes,
}

impl Affected {
    /// What stays of it when its person is erased.
    fn without_data(&self) -> Self {
        let Self { codes, is_stored, received_at, .. } = self;
        Self {
            codes: codes.clone(),
            is_stored: *is_stored,
            received_at: *received_at,
            detail: None,
            event: None,
            distinct_id: None,
            uuid: None,
            payload: String::new(),
        }
    }
}

impl AffectedBuilder {
    /// An empty block that begins with this number.
    #[must_use]
    pub fn begin(first: i64) -> Self {
        let span = Span { from: i64::MAX, to: i64::MIN };
        Self { first, count: 0, raw: Vec::new(), span, codes: BTreeSet::new() }
    }

    /// Adds an event.
    ///
    /// # Errors
    /// When it cannot be encoded.
    pub fn push(&mut self, event: &Affected) -> Result<()> {
        self.raw = postcard::to_extend(event, std::mem::take(&mut self.raw))
            .map_err(|error| broken(error.to_string()))?;
        self.span = self.span.with(event.received_at);
        self.codes.extend(event.codes.iter().cloned());
        self.count += 1;
        Ok(())
    }

    /// Whether an event that was received at this time must go into another block.
    #[must_use]
    pub fn is_full(&self, received_at: i64) -> bool {
        self.count >= FULL_EVENTS
            || self.raw.len() >= FULL_BYTES
            || self.count > 0 && received_at.saturating_sub(self.span.from) > FULL_MICROS
    }

    /// The block in the form that is written.
    ///
    /// # Errors
    /// When the bytes cannot be compressed.
    pub fn finish(&self) -> Result<AffectedBlock> {
        let data = zstd::bulk::compress(&self.raw, COMPRESSION)
            .map_err(|error| broken(error.to_string()))?;
        let summary = Summary {
            count: self.count,
            from_at: self.span.from,
            to_at: self.span.to,
            codes: self.codes.iter().cloned().collect(),
        };
        Ok(AffectedBlock { first: self.first, data, summary })
    }
}

/// The block that begins with this number, to be filled further. `None`: there is none,
/// or it is damaged. Then the consumer continues with a new block.
///
/// # Errors
/// When the store cannot be read.
pub async fn open(
    store: &Store,
    project: ProjectId,
    partition: u16,
    first: i64,
) -> Result<Option<AffectedBuilder>> {
    let id = key("affected_block", project, partition, first);
    let found = store.db.get::<BlockRow>(OPEN, vec![id]).await?;
    let Some(row) = found.into_iter().flatten().next() else { return Ok(None) };
    let mut block = AffectedBuilder::begin(first);
    let filled = decode(&row.data).and_then(|events| events.iter().try_for_each(|e| block.push(e)));
    match filled {
        Ok(()) => Ok(Some(block)),
        Err(error) => {
            tracing::error!(%project, partition, first, %error, "kept dropped events are damaged");
            Ok(None)
        }
    }
}

/// The records of a block and of its summary: ids and contents.
pub(crate) fn rows(
    project: ProjectId,
    partition: u16,
    block: AffectedBlock,
) -> [(RecordId, Value); 2] {
    let AffectedBlock { first, data, summary } = block;
    let id = |table| key(table, project, partition, first);
    let data = BlockRow { data: Bytes::from(data) };
    [(id("affected_block"), data.into_value()), (id("affected_summary"), summary.into_value())]
}

/// Dropped and altered events of a project, newest first. Events of damaged blocks are
/// skipped and counted.
///
/// # Errors
/// When the store cannot be read.
pub async fn page(
    store: &Store,
    project: ProjectId,
    query: &AffectedQuery,
) -> Result<AffectedPage> {
    let mut blocks = Vec::new();
    for partition in 0..PARTITIONS {
        let found = summaries(store, project, partition).await?.into_iter();
        blocks.extend(found.filter(|row| may_have(query, row)).map(|row| (partition, row)));
    }
    // By the time of their latest event: no later block has a newer event than that.
    blocks.sort_by_key(|(_, row)| Reverse(row.to_at));
    let mut blocks = blocks.into_iter().peekable();
    let (mut page, mut waiting, mut passed) = (AffectedPage::default(), Vec::new(), 0);
    while let Some((partition, row)) = blocks.next() {
        let first = part(&row.id, 2, SUMMARIES.name)?;
        let events = match read(store, project, partition, first).await {
            Err(error @ Error::Shape { .. }) => {
                tracing::error!(
                    %project, partition, first, events = row.count, %error,
                    "kept dropped events are damaged and skipped"
                );
                page.unreadable += u64::try_from(row.count).unwrap_or(0);
                Vec::new()
            }
            read => read?,
        };
        let events = (first..).zip(events);
        let placed = events.map(|(number, event)| {
            let received_at = Timestamp::from_micros(event.received_at);
            (AffectedCursor { received_at, partition, number }, event)
        });
        waiting.extend(placed.filter(|(cursor, event)| fits(query, cursor, event)));
        waiting.sort_unstable_by_key(|(cursor, _)| Reverse(*cursor));
        waiting.truncate(query.offset - passed + query.limit + 1 - page.found.len());
        let rest = blocks.peek().map(|(_, row)| row.to_at);
        let is_settled =
            |cursor: &AffectedCursor| rest.is_none_or(|at| cursor.received_at.micros() > at);
        let settled = waiting.partition_point(|(cursor, _)| is_settled(cursor));
        for event in waiting.drain(..settled) {
            if passed < query.offset {
                passed += 1;
            } else if page.found.len() < query.limit {
                page.found.push(event);
            } else {
                page.more = true;
                return Ok(page);
            }
        }
    }
    Ok(page)
}

/// The dropped or altered event with this number. `None`: it is not kept.
///
/// # Errors
/// When the store cannot be read or the block is damaged.
pub async fn one(
    store: &Store,
    project: ProjectId,
    partition: u16,
    number: i64,
) -> Result<Option<Affected>> {
    for row in summaries(store, project, partition).await? {
        let first = part(&row.id, 2, SUMMARIES.name)?;
        if (first..first.saturating_add(row.count)).contains(&number) {
            let events = read(store, project, partition, first).await?;
            return Ok((first..).zip(events).find_map(|(at, it)| (at == number).then_some(it)));
        }
    }
    Ok(None)
}

/// Removes events that are kept no longer. Run in the background.
///
/// # Errors
/// When the store cannot be read or written; a further call continues.
pub async fn forget(store: &Store, project: ProjectId, now: Timestamp) -> Result<()> {
    let oldest = now.micros().saturating_sub(DAYS * DAY);
    for partition in 0..PARTITIONS {
        let found = summaries(store, project, partition).await?;
        let mut newer = 0;
        let mut gone = Vec::new();
        for row in found.iter().rev() {
            if newer >= KEPT || row.to_at < oldest {
                gone.push(part(&row.id, 2, SUMMARIES.name)?);
            }
            newer += row.count;
        }
        remove(store, project, partition, &gone).await?;
    }
    Ok(())
}

/// Removes what dropped and altered events say of erased persons. When they were received and
/// their codes stay.
///
/// # Errors
/// When the store cannot be read or written; a further call continues. Damaged blocks are
/// removed.
pub(super) async fn erase(store: &Store, project: ProjectId, erased: &Arc<Erased>) -> Result<()> {
    for partition in 0..PARTITIONS {
        for row in summaries(store, project, partition).await? {
            let first = part(&row.id, 2, SUMMARIES.name)?;
            match erase_from(store, project, (partition, first), erased).await {
                Err(error @ Error::Shape { .. }) => {
                    tracing::error!(
                        %project, partition, first, %error,
                        "damaged dropped events are removed: they may be of an erased person"
                    );
                    remove(store, project, partition, &[first]).await?;
                }
                done => done?,
            }
        }
    }
    Ok(())
}

async fn erase_from(
    store: &Store,
    project: ProjectId,
    (partition, first): (u16, i64),
    erased: &Arc<Erased>,
) -> Result<()> {
    let keyspace = store.db.keyspace().await?;
    let id = || key("affected_block", project, partition, first);
    let head = || head_key(project, partition);
    let keys = Arc::new((keyspace.key(id())?, keyspace.key(head())?));
    let (erased, id, head) = (Arc::clone(erased), id(), head());
    let work = move |tx: Transaction| {
        let (keys, erased) = (Arc::clone(&keys), Arc::clone(&erased));
        let (id, head) = (id.clone(), head.clone());
        async move {
            let (of_block, of_head) = &*keys;
            // Retention may have removed it.
            let Some(row) = tx.get_for_update::<BlockRow>(of_block).await? else {
                return Ok(());
            };
            let mut block = AffectedBuilder::begin(first);
            let mut of_erasures: BTreeMap<usize, i64> = BTreeMap::new();
            for event in decode(&row.data)? {
                let (id, received_at) = (event.distinct_id.as_deref(), event.received_at);
                match erased.sample_taken_by(id, &event.payload, received_at) {
                    Some(erasure) => {
                        *of_erasures.entry(erasure).or_default() += 1;
                        block.push(&event.without_data())?;
                    }
                    None => block.push(&event)?,
                }
            }
            if of_erasures.is_empty() {
                return Ok(());
            }
            let found: Option<Head> = tx.get_for_update(of_head).await?;
            if let Some(mut found) = found
                && found.affected == first
            {
                // Its consumer has the block in memory.
                found.erased = Some(found.erased.unwrap_or(0).saturating_add(1));
                tx.set(&keyspace.row(head, found.into_value())?).await?;
            }
            let data = BlockRow { data: Bytes::from(block.finish()?.data) };
            tx.set(&keyspace.row(id, data.into_value())?).await?;
            for (at, samples) in of_erasures {
                if let Some(one) = erased.pending.get(at) {
                    note_removed(&tx, keyspace, project, one.id, (0, samples)).await?;
                }
            }
            Ok(())
        }
    };
    store.db.transact(ERASE, (), work).await
}

/// Removes all dropped and altered events of a project.
///
/// # Errors
/// When the store cannot be written; a further call continues.
pub(crate) async fn purge(store: &Store, project: ProjectId) -> Result<()> {
    for partition in 0..PARTITIONS {
        let found = summaries(store, project, partition).await?;
        let firsts: Result<Vec<i64>> =
            found.iter().map(|row| part(&row.id, 2, SUMMARIES.name)).collect();
        remove(store, project, partition, &firsts?).await?;
    }
    Ok(())
}

async fn remove(store: &Store, project: ProjectId, partition: u16, firsts: &[i64]) -> Result<()> {
    for some in firsts.chunks(REMOVED) {
        let of = |table| some.iter().map(move |first| key(table, project, partition, *first));
        let ids: Vec<RecordId> = of("affected_block").chain(of("affected_summary")).collect();
        store.db.run(DELETE, bind! { ids: ids }).await?;
    }
    Ok(())
}

async fn summaries(store: &Store, project: ProjectId, partition: u16) -> Result<Vec<SummaryRow>> {
    let partition = i64::from(partition);
    let (from, to) = ([project.0, partition], [project.0, partition + 1]);
    let vars = bind! { range: range("affected_summary", &from, &to) };
    store.db.run(SUMMARIES, vars).await?.rows(0)
}

async fn read(
    store: &Store,
    project: ProjectId,
    partition: u16,
    first: i64,
) -> Result<Vec<Affected>> {
    let id = key("affected_block", project, partition, first);
    let data: Option<Bytes> = store.db.run(BLOCK, bind! { id: id }).await?.row(0)?;
    // The block was removed since its summary was read.
    data.map_or_else(|| Ok(Vec::new()), |data| decode(&data))
}

fn may_have(query: &AffectedQuery, row: &SummaryRow) -> bool {
    query.code.as_ref().is_none_or(|code| row.codes.contains(code))
        && query.after.is_none_or(|after| row.to_at > after.micros())
        && query.before.is_none_or(|before| row.from_at < before.micros())
        && query.behind.is_none_or(|cursor| row.from_at <= cursor.received_at.micros())
        // A code that is unknown here may be a reason of a newer version.
        && (!query.is_dropped || row.codes.iter().any(|code| Warning::from_code(code).is_none()))
}

fn fits(query: &AffectedQuery, cursor: &AffectedCursor, event: &Affected) -> bool {
    query.code.as_ref().is_none_or(|code| event.codes.contains(code))
        && query.after.is_none_or(|after| cursor.received_at > after)
        && query.before.is_none_or(|before| cursor.received_at < before)
        && query.behind.is_none_or(|last| *cursor < last)
        && !(query.is_dropped && event.is_stored)
}

fn key(table: &'static str, project: ProjectId, partition: u16, first: i64) -> RecordId {
    let parts: Vec<Value> = [project.0, partition.into(), first]
        .into_iter()
        .map(|number| Value::Number(number.into()))
        .collect();
    RecordId::new(table, RecordIdKey::Array(parts.into()))
}

fn decode(data: &[u8]) -> Result<Vec<Affected>> {
    let raw = zstd::bulk::decompress(data, LARGEST).map_err(|error| broken(error.to_string()))?;
    let (mut rest, mut events) = (raw.as_slice(), Vec::new());
    while !rest.is_empty() {
        let (event, after) =
            postcard::take_from_bytes(rest).map_err(|error| broken(error.to_string()))?;
        events.push(event);
        rest = after;
    }
    Ok(events)
}

fn broken(detail: String) -> Error {
    Error::Shape { statement: BLOCK.name, detail }
}

#[cfg(test)]
mod tests;
