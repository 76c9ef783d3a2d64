//! Reading events by uuid and by order of arrival, and functions that all reads share.
//! Every read is a point get or a narrow range, because a limit does not stop a range
//! scan (DUR-12).
//!
//! What does not belong here: pages by event time (`by_time`).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use surrealdb::types::{
    Array, Bytes, RecordId, RecordIdKey, RecordIdKeyRange, SurrealValue, Value,
};
use uuid::Uuid;
use weir_model::ProjectId;

use super::apply::Head;
use super::block::{BlockBuilder, StoredEvent, decode};
use super::scan::size;
use super::{PARTITIONS, keys};
use crate::bind::bind;
use crate::db::Statement;
use crate::{Error, Result, Store};

/// Records that one statement reads.
pub(super) const FETCH: usize = 256;
/// The first range of arrival numbers that a page reads.
const FIRST_ARRIVALS: u64 = 2_048;
/// Bytes of events after which a page by arrival ends early.
const PAGE_BYTES: usize = 16 << 20;

const HEADS: Statement = Statement::read("event heads", "SELECT * FROM $ids;");
// One small row per project and partition, read once at the start.
const ALL_HEADS: Statement = Statement::read("all event heads", "SELECT * FROM event_head;");
pub(super) const BLOCKS: Statement = Statement::read("event blocks", "SELECT * FROM $ids;");
const SUMMARY_RANGE: Statement =
    Statement::read("event summaries by arrival", "SELECT VALUE id FROM $range;");
const UUIDS: Statement = Statement::read("event uuids", "SELECT * FROM $ids;");

#[derive(SurrealValue)]
pub(super) struct BlockRow {
    id: RecordId,
    pub(super) data: Bytes,
}

#[derive(SurrealValue)]
struct UuidRow {
    id: RecordId,
    at: Vec<i64>,
}

impl UuidRow {
    /// The block of the event, and its index in it.
    fn block_ref(&self) -> Result<(BlockRef, usize)> {
        let [partition, first, index] = self.at.as_slice() else {
            let detail = "unexpected place".to_owned();
            return Err(Error::Shape { statement: UUIDS.name, detail });
        };
        let block_ref =
            (u16::try_from(*partition).unwrap_or(0), u64::try_from(*first).unwrap_or(0));
        Ok((block_ref, usize::try_from(*index).unwrap_or(usize::MAX)))
    }
}

/// The key of a block: partition and first arrival number.
pub(super) type BlockRef = (u16, u64);

/// Events in order of arrival, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrivalPage {
    /// The events, newest first.
    pub events: Vec<StoredEvent>,
    /// Whether there are older ones.
    pub more: bool,
}

/// The head of a project in a partition.
pub async fn head(store: &Store, project: ProjectId, partition: u16) -> Result<Option<Head>> {
    let vars = bind! { ids: vec![keys::head(project, partition)] };
    store.db.run(HEADS, vars).await?.row(0)
}

/// All heads of a project, by partition.
pub async fn heads(store: &Store, project: ProjectId) -> Result<BTreeMap<u16, Head>> {
    let ids: Vec<_> = (0..PARTITIONS).map(|p| keys::head(project, p)).collect();
    let rows: Vec<Value> = store.db.run(HEADS, bind! { ids: ids }).await?.rows(0)?;
    let mut heads = BTreeMap::new();
    for row in rows {
        let (id, head) = split_id::<Head>(row, HEADS.name)?;
        heads.insert(partition_of(&id, 1, HEADS.name)?, head);
    }
    Ok(heads)
}

/// For every project with events, the first arrival number that is not stored.
pub async fn next_arrivals(store: &Store) -> Result<HashMap<i64, u64>> {
    let rows: Vec<Value> = store.db.run(ALL_HEADS, bind! {}).await?.rows(0)?;
    let mut next: HashMap<i64, u64> = HashMap::new();
    for row in rows {
        let (id, head) = split_id::<Head>(row, ALL_HEADS.name)?;
        let after = u64::try_from(head.last).unwrap_or(0) + 1;
        let known = next.entry(keys::part(&id, 0, ALL_HEADS.name)?).or_insert(1);
        *known = (*known).max(after);
    }
    Ok(next)
}

/// The newest block of a project in a partition, to be filled further.
///
/// # Errors
/// When the store cannot be read or the block is damaged.
pub async fn open_block(
    store: &Store,
    project: ProjectId,
    partition: u16,
    head: &Head,
) -> Result<Option<BlockBuilder>> {
    let first = u64::try_from(head.newest).unwrap_or(0);
    let vars = bind! { ids: vec![keys::block(project, partition, first)] };
    let row: Option<BlockRow> = store.db.run(BLOCKS, vars).await?.row(0)?;
    row.map(|row| BlockBuilder::reopen(project, first, &row.data)).transpose()
}

/// Which of these uuids are already stored, in no particular order.
pub async fn stored_uuids(store: &Store, project: ProjectId, uuids: &[Uuid]) -> Result<Vec<Uuid>> {
    let mut stored = Vec::new();
    // In the order of their ids, as when they are written: neighbours are found faster.
    let mut uuids = uuids.to_vec();
    uuids.sort_unstable();
    for chunk in uuids.chunks(FETCH) {
        let ids: Vec<_> = chunk.iter().map(|uuid| keys::uuid(project, *uuid)).collect();
        let rows: Vec<UuidRow> = store.db.run(UUIDS, bind! { ids: ids }).await?.rows(0)?;
        for row in rows {
            if let RecordIdKey::Array(parts) = &row.id.key
                && let Some(Value::Uuid(uuid)) = parts.get(1)
            {
                stored.push(Uuid::from_bytes(*uuid.as_bytes()));
            }
        }
    }
    Ok(stored)
}

/// The newest events by order of arrival, before arrival number `before`.
///
/// Opens only the blocks that it needs, the newest first. The page is shorter when events
/// are large. A page can have many megabytes, so a semaphore bounds how many are read at
/// the same time. Callers should keep only the events that they need.
///
/// # Errors
/// When the store cannot be read or a block is damaged.
pub async fn arrivals(
    store: &Store,
    project: ProjectId,
    before: Option<u64>,
    limit: usize,
) -> Result<ArrivalPage> {
    let permit = Arc::clone(&store.arrival_reads).acquire_owned().await;
    let _permit = permit.map_err(|_| Error::Stopped)?;
    let end = before.unwrap_or(u64::MAX);
    let mut ends = Vec::new();
    for (partition, head) in heads(store, project).await? {
        if head.count > 0 {
            ends.extend(BlocksBack::begin(store, project, partition, &head, end).await?);
        }
    }
    let mut events: Vec<StoredEvent> = Vec::new();
    let (mut bytes, mut is_short) = (0, false);
    // The partition whose next block may hold the newest event.
    while let Some(at) = (0..ends.len()).max_by_key(|at| ends.get(*at).map(|back| back.last)) {
        let Some(back) = ends.get_mut(at) else { break };
        let newer = events.iter().filter(|event| event.arrival > back.last).count();
        if newer > limit {
            break;
        }
        if newer > 0 && bytes > PAGE_BYTES {
            // Older events may be preceded by events that were not read.
            let last = back.last;
            events.retain(|event| event.arrival > last);
            is_short = true;
            break;
        }
        let found = read_block(store, project, (back.partition, back.first)).await?;
        bytes += found.iter().map(size).sum::<usize>();
        events.extend(found.into_iter().filter(|event| event.arrival < end));
        if !back.step(store, project).await? {
            ends.swap_remove(at);
        }
    }
    events.sort_by_key(|event| std::cmp::Reverse(event.arrival));
    let more = is_short || events.len() > limit;
    events.truncate(limit);
    Ok(ArrivalPage { events, more })
}

/// Iterates over the blocks of a partition from the newest to the oldest.
struct BlocksBack {
    partition: u16,
    /// First arrival number of the next block.
    first: u64,
    /// No event of this block, or of an earlier one, has a higher arrival number.
    last: u64,
}

impl BlocksBack {
    /// Begins at the newest block with an event before `end`.
    async fn begin(
        store: &Store,
        project: ProjectId,
        partition: u16,
        head: &Head,
        end: u64,
    ) -> Result<Option<Self>> {
        let number = |value: i64| u64::try_from(value).unwrap_or(0);
        let newest = Self {
            partition,
            first: number(head.newest),
            last: number(head.last).min(end.saturating_sub(1)),
        };
        if newest.first < end {
            return Ok(Some(newest));
        }
        let mut older = Self { first: end, ..newest };
        Ok(older.step(store, project).await?.then_some(older))
    }

    /// Goes to the previous block; `false`: there is none. Reads the ids of a range of
    /// arrival numbers, not the blocks. The range grows while it has only events of other
    /// partitions.
    async fn step(&mut self, store: &Store, project: ProjectId) -> Result<bool> {
        let mut width = FIRST_ARRIVALS;
        loop {
            let low = self.first.saturating_sub(width);
            let firsts = firsts_between(store, project, self.partition, low, self.first).await?;
            if let Some(first) = firsts.last() {
                self.last = self.last.min(self.first.saturating_sub(1));
                self.first = *first;
                return Ok(true);
            }
            if low == 0 {
                return Ok(false);
            }
            width = width.saturating_mul(4);
        }
    }
}

/// The first arrival numbers of the blocks that begin in the range, in order.
pub(super) async fn firsts_between(
    store: &Store,
    project: ProjectId,
    partition: u16,
    low: u64,
    end: u64,
) -> Result<Vec<u64>> {
    let int = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let from = [project.0, partition.into(), int(low)];
    let to = [project.0, partition.into(), int(end)];
    let vars = bind! { range: range("event_summary", &from, &to) };
    let ids: Vec<RecordId> = store.db.run(SUMMARY_RANGE, vars).await?.rows(0)?;
    ids.iter().map(|id| first_of(id, 2, SUMMARY_RANGE.name)).collect()
}

/// Calls `see` with the stored events that have these uuids, block by block. Unknown
/// uuids are skipped.
///
/// # Errors
/// When the store cannot be read or a block is damaged.
pub async fn see_each(
    store: &Store,
    project: ProjectId,
    uuids: &[Uuid],
    mut see: impl FnMut(&StoredEvent),
) -> Result<()> {
    let mut block_refs: BTreeMap<BlockRef, Vec<usize>> = BTreeMap::new();
    for chunk in uuids.chunks(FETCH) {
        let ids: Vec<_> = chunk.iter().map(|uuid| keys::uuid(project, *uuid)).collect();
        let rows: Vec<UuidRow> = store.db.run(UUIDS, bind! { ids: ids }).await?.rows(0)?;
        for row in rows {
            let (block_ref, index) = row.block_ref()?;
            block_refs.entry(block_ref).or_default().push(index);
        }
    }
    for (block_ref, indexes) in block_refs {
        let events = read_block(store, project, block_ref).await?;
        indexes.into_iter().filter_map(|index| events.get(index)).for_each(&mut see);
    }
    Ok(())
}

pub(super) async fn by_uuid(
    store: &Store,
    project: ProjectId,
    uuid: Uuid,
) -> Result<Option<StoredEvent>> {
    let vars = bind! { ids: vec![keys::uuid(project, uuid)] };
    let row: Option<UuidRow> = store.db.run(UUIDS, vars).await?.row(0)?;
    let Some(row) = row else { return Ok(None) };
    let (block_ref, index) = row.block_ref()?;
    Ok(read_block(store, project, block_ref).await?.into_iter().nth(index))
}

pub(super) async fn read_block(
    store: &Store,
    project: ProjectId,
    block_ref: BlockRef,
) -> Result<Vec<StoredEvent>> {
    let vars = bind! { ids: vec![keys::block(project, block_ref.0, block_ref.1)] };
    let row: Option<BlockRow> = store.db.run(BLOCKS, vars).await?.row(0)?;
    row.map_or_else(|| Ok(Vec::new()), |row| decode(&row.data))
}

/// The ids from `from` (inclusive) to `to` (exclusive). An id that begins with the
/// numbers of a bound sorts after the bound.
pub(crate) fn range(table: &'static str, from: &[i64], to: &[i64]) -> RecordId {
    let key = |parts: &[i64]| {
        let parts: Vec<Value> = parts.iter().map(|n| Value::Number((*n).into())).collect();
        RecordIdKey::Array(Array::from(parts))
    };
    let bounds = RecordIdKeyRange {
        start: std::ops::Bound::Included(key(from)),
        end: std::ops::Bound::Excluded(key(to)),
    };
    RecordId::new(table, RecordIdKey::Range(Box::new(bounds)))
}

/// The id of a row, and the rest of the row.
pub(super) fn split_id<T: SurrealValue>(
    row: Value,
    statement: &'static str,
) -> Result<(RecordId, T)> {
    let wrong = |detail: &str| Error::Shape { statement, detail: detail.to_owned() };
    let Value::Object(object) = &row else { return Err(wrong("a row is not an object")) };
    let id = object.get("id").cloned().ok_or_else(|| wrong("a row without id"))?;
    let id = RecordId::from_value(id).map_err(|e| wrong(e.message()))?;
    let rest = T::from_value(row).map_err(|e| wrong(e.message()))?;
    Ok((id, rest))
}

pub(super) fn partition_of(id: &RecordId, index: usize, statement: &'static str) -> Result<u16> {
    let number = keys::part(id, index, statement)?;
    u16::try_from(number)
        .map_err(|_| Error::Shape { statement, detail: format!("partition {number}") })
}

pub(super) fn first_of(id: &RecordId, index: usize, statement: &'static str) -> Result<u64> {
    let number = keys::part(id, index, statement)?;
    u64::try_from(number)
        .map_err(|_| Error::Shape { statement, detail: format!("arrival {number}") })
}
