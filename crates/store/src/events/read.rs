//! Reading events by uuid, and functions that all reads share. Every read is a point get
//! or a narrow range, because a limit does not stop a range scan (DUR-12).
//!
//! What does not belong here: pages by event time (`by_time`) and by order of arrival
//! (`arrivals`).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use surrealdb::types::{
    Array, Bytes, RecordId, RecordIdKey, RecordIdKeyRange, SurrealValue, Value,
};
use uuid::Uuid;
use weir_model::ProjectId;
use weir_segments::run::Key;

use super::apply::Head;
use super::block::{BlockBuilder, StoredEvent, Summary, decode, decode_one, decompress};
use super::shared::{NeededEnd, SharedEvents};
use super::uuids::{self, Place, UuidKeys};
use super::{PARTITIONS, keys, segments};
use crate::bind::bind;
use crate::db::{Operation, Statement};
use crate::erasures::Erased;
use crate::transaction::Transaction;
use crate::{Error, Result, Store};

/// Records that one statement reads.
pub(super) const FETCH: usize = 256;

const HEADS: Operation = Operation::read("event heads");
// One small row per project and partition, read once at the start.
const ALL_HEADS: Statement = Statement::read("all event heads", "SELECT * FROM event_head;");
const BLOCK: Operation = Operation::read("event block");
const FIRSTS: Operation = Operation::read("event blocks by arrival");
const UUIDS: Operation = Operation::read(uuids::NAME);
const SUMMARY: Operation = Operation::read("summary of a removed event");

#[derive(SurrealValue)]
struct BlockRow {
    data: Bytes,
}

/// The key of a block: partition and first arrival number.
pub(crate) type BlockRef = (u16, u64);

/// The head of a project in a partition.
pub async fn head(store: &Store, project: ProjectId, partition: u16) -> Result<Option<Head>> {
    one(store, HEADS, keys::head(project, partition)).await
}

/// All heads of a project, by partition.
pub async fn heads(store: &Store, project: ProjectId) -> Result<BTreeMap<u16, Head>> {
    let ids = (0..PARTITIONS).map(|partition| keys::head(project, partition)).collect();
    let found = store.db.get::<Head>(HEADS, ids).await?;
    Ok((0..).zip(found).filter_map(|(partition, head)| Some((partition, head?))).collect())
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
    let data = block_data(store, project, (partition, first)).await?;
    data.map(|data| BlockBuilder::reopen(project, first, &data)).transpose()
}

/// Which of these uuids are already stored, in no particular order. Where a run is damaged
/// and cannot be repaired, a uuid counts as new: its event cannot be read either.
///
/// # Errors
/// [`Error::Damaged`] immediately when a run is damaged where one of the uuids would be, until it
/// is repaired ([`repair_runs`](super::repair_runs)); and when the store or a file cannot be
/// read.
pub async fn stored_uuids(store: &Store, project: ProjectId, uuids: &[Uuid]) -> Result<Vec<Uuid>> {
    let found = uuid_values(store, project, uuids.to_vec(), |_| Ok(true)).await?;
    let mut stored: Vec<Uuid> = found.into_iter().map(|(uuid, _)| uuid).collect();
    // After the index, see `segments::find`.
    let rest = not_among(uuids, &stored);
    let found = segments::find_readable(&store.segments, run_keys(project, &rest)).await?;
    let mut lost = 0;
    for (uuid, found) in rest.into_iter().zip(found) {
        match found {
            Some(segments::Found::Lost(_)) => lost += 1,
            Some(_) => stored.push(uuid),
            None => {}
        }
    }
    if lost > 0 {
        tracing::warn!(
            project = project.0,
            events = lost,
            "events are stored although a damaged run of event uuids may have their uuids"
        );
    }
    Ok(stored)
}

fn run_keys(project: ProjectId, uuids: &[Uuid]) -> Arc<[Key]> {
    uuids.iter().map(|uuid| Key { project: project.0, uuid: *uuid }).collect()
}

/// Those of `uuids` that are not in `found`.
fn not_among(uuids: &[Uuid], found: &[Uuid]) -> Vec<Uuid> {
    let found: HashSet<&Uuid> = found.iter().collect();
    uuids.iter().filter(|uuid| !found.contains(uuid)).copied().collect()
}

/// Where the events of sealed uuids are. Others are skipped.
///
/// # Errors
/// [`Error::Damaged`] when a run is damaged where a uuid would be.
async fn sealed_places(
    store: &Store,
    project: ProjectId,
    uuids: &[Uuid],
) -> Result<Vec<(Uuid, Place)>> {
    let found = segments::find(&store.segments, run_keys(project, uuids)).await?;
    let places = uuids.iter().zip(found).filter_map(|(uuid, found)| match found? {
        segments::Found::At(place) => Some(Ok((*uuid, place))),
        segments::Found::Unreadable(run) | segments::Found::Lost(run) => {
            Some(Err(segments::unreadable(&store.segments, run)))
        }
    });
    places.collect()
}

/// The first arrival numbers of the blocks that begin in the range, in order.
pub(crate) async fn firsts_between(
    store: &Store,
    project: ProjectId,
    partition: u16,
    low: u64,
    end: u64,
) -> Result<Vec<u64>> {
    let id = |first| keys::summary(project, partition, first);
    let range = Arc::new(store.db.keyspace().await?.range(id(low), id(end))?);
    let work = move |tx: Transaction| {
        let range = Arc::clone(&range);
        async move { tx.numbers::<3>(&range).await }
    };
    let found = store.db.transact(FIRSTS, (), work).await?;
    Ok(found.into_iter().map(|[_, _, first]| u64::try_from(first).unwrap_or(0)).collect())
}

/// Calls `see` with the stored events that have these uuids, block by block. Unknown
/// uuids are skipped, and those of events that were removed because of their age or with
/// their person.
///
/// # Errors
/// When the store cannot be read or a block is damaged.
pub async fn see_each(
    store: &Store,
    project: ProjectId,
    uuids: &[Uuid],
    mut see: impl FnMut(&StoredEvent),
) -> Result<()> {
    let keys = UuidKeys::of(store.db.keyspace().await?, project)?;
    let found = uuid_values(store, project, uuids.to_vec(), Ok).await?;
    let mut blocks: BTreeMap<BlockRef, Vec<(Uuid, u32)>> = BTreeMap::new();
    let mut add = |uuid: Uuid, place: Place| {
        blocks.entry(place.block_ref()).or_default().push((uuid, place.index));
    };
    let indexed: Vec<Uuid> = found.iter().map(|(uuid, _)| *uuid).collect();
    for (uuid, value) in found {
        add(uuid, keys.place(uuid, &value)?);
    }
    let rest = not_among(uuids, &indexed);
    for (uuid, place) in sealed_places(store, project, &rest).await? {
        add(uuid, place);
    }
    let erased = store.erasures.of(project);
    for (block_ref, events) in blocks {
        let block = read_whole_block(store, project, block_ref).await?;
        for (uuid, index) in events {
            if index == uuids::ERASED {
                continue;
            }
            let mut found = block.get(index as usize).filter(|event| event.uuid == uuid);
            if found.is_none() {
                match check_removed(store, project, block_ref, uuid).await {
                    Ok(()) => found = block.iter().find(|event| event.uuid == uuid),
                    // An open block may have been written again since the place was read.
                    Err(Error::Shape { .. }) => {
                        if let Some(event) = by_uuid(store, project, uuid).await? {
                            see(&event);
                        }
                    }
                    Err(error) => return Err(error),
                }
            }
            if let Some(event) = found
                && !is_erased(erased.as_deref(), block_ref, event)
            {
                see(event);
            }
        }
    }
    Ok(())
}

/// Whether an event is to be erased and must not be shown any more.
fn is_erased(erased: Option<&Erased>, (partition, _): BlockRef, event: &StoredEvent) -> bool {
    erased.is_some_and(|erased| erased.takes(partition, event.arrival, &event.distinct_id))
}

pub(super) async fn by_uuid(
    store: &Store,
    project: ProjectId,
    uuid: Uuid,
) -> Result<Option<StoredEvent>> {
    let keyspace = store.db.keyspace().await?;
    let keys = UuidKeys::of(keyspace, project)?;
    let found = store.db.transact(UUIDS, (), move |tx| {
        let keys = keys.clone();
        async move {
            let value = tx.entries(&[&keys.key(uuid)]).await?.into_iter().flatten().next();
            let Some(value) = value else { return Ok(None) };
            let place = keys.place(uuid, &value)?;
            let block = keyspace.key(keys::block(project, place.partition, place.first))?;
            let row: Option<BlockRow> = tx.get(&[block]).await?.into_iter().flatten().next();
            Ok(Some((place, row.map(|row| row.data))))
        }
    });
    let (place, data) = match found.await? {
        Some(found) => found,
        None => match sealed_places(store, project, &[uuid]).await?.pop() {
            Some((_, place)) => (place, None),
            None => return Ok(None),
        },
    };
    let (block_ref, index) = (place.block_ref(), place.index);
    if index == uuids::ERASED {
        return Ok(None);
    }
    let event = match data {
        Some(data) => decode_one(&data, index)?,
        None => segments::event(store, project, block_ref, index).await?,
    };
    let event = match event.filter(|event| event.uuid == uuid) {
        Some(event) => Some(event),
        None => {
            check_removed(store, project, block_ref, uuid).await?;
            let block = read_whole_block(store, project, block_ref).await?;
            block.into_iter().find(|event| event.uuid == uuid)
        }
    };
    let erased = store.erasures.of(project);
    Ok(event.filter(|event| !is_erased(erased.as_deref(), block_ref, event)))
}

/// Checks why a place does not lead to its event: a run has its uuid, and its block was
/// removed for its age, or events of it were erased with their persons. Then the event is at
/// a lower index of the block, or went away itself.
///
/// # Errors
/// [`Error::Shape`] when it is damage.
async fn check_removed(
    store: &Store,
    project: ProjectId,
    (partition, first): BlockRef,
    uuid: Uuid,
) -> Result<()> {
    let id = keys::summary(project, partition, first);
    let summary = store.db.get_one::<Summary>(SUMMARY, id).await?;
    let is_sealed = !sealed_places(store, project, &[uuid]).await?.is_empty();
    match is_sealed && summary.is_none_or(|summary| summary.erased == Some(true)) {
        true => Ok(()),
        false => Err(uuids::damaged("a place without its event")),
    }
}

/// The events of a block, from memory if they are there. Otherwise they are read, and kept
/// in memory; `is_closed` says whether no further events are added to the block.
pub(super) async fn shared_block(
    store: &Store,
    project: ProjectId,
    block_ref: BlockRef,
    reach: NeededEnd,
    is_closed: bool,
) -> Result<SharedEvents> {
    let events = match store.blocks.get(project, block_ref, reach) {
        Some(events) => events,
        None => {
            let removals = store.blocks.removals();
            let read = read_whole_block(store, project, block_ref).await?;
            let events = SharedEvents::from(read);
            store.blocks.put(project, block_ref, events.clone(), is_closed, removals);
            events
        }
    };
    let Some(erased) = store.erasures.of(project) else { return Ok(events) };
    let is_shown = |event: &&StoredEvent| !is_erased(Some(&erased), block_ref, event);
    if events.iter().all(|event| is_shown(&event)) {
        return Ok(events);
    }
    Ok(events.iter().filter(is_shown).cloned().collect::<Vec<_>>().into())
}

/// The events of a block, sealed or not, without those that are to be erased. None if the
/// block was removed.
pub(super) async fn read_block(
    store: &Store,
    project: ProjectId,
    block_ref: BlockRef,
) -> Result<Vec<StoredEvent>> {
    let mut events = read_whole_block(store, project, block_ref).await?;
    if let Some(erased) = store.erasures.of(project) {
        events.retain(|event| !is_erased(Some(&erased), block_ref, event));
    }
    Ok(events)
}

/// The events of a block, sealed or not, also those that are to be erased. None if the block
/// was removed.
pub(crate) async fn read_whole_block(
    store: &Store,
    project: ProjectId,
    block_ref: BlockRef,
) -> Result<Vec<StoredEvent>> {
    match block_data(store, project, block_ref).await? {
        Some(data) => decode(&data),
        None => Ok(segments::block(store, project, block_ref).await?.unwrap_or_default()),
    }
}

/// The events of a block, sealed or not, as they are before compression, also those that are
/// to be erased. `None`: the block was removed.
pub(super) async fn read_encoded(
    store: &Store,
    project: ProjectId,
    block_ref: BlockRef,
) -> Result<Option<Vec<u8>>> {
    if let Some(data) = block_data(store, project, block_ref).await? {
        return decompress(&data).map(Some);
    }
    let Some(events) = segments::block(store, project, block_ref).await? else { return Ok(None) };
    let block = BlockBuilder::remainder(project, block_ref.1, &events)?;
    Ok(block.as_ref().and_then(|block| block.encoded_from(0)).map(<[u8]>::to_vec))
}

/// The compressed events of a block that is not sealed.
pub(super) async fn block_data(
    store: &Store,
    project: ProjectId,
    (partition, first): BlockRef,
) -> Result<Option<Bytes>> {
    let row: Option<BlockRow> = one(store, BLOCK, keys::block(project, partition, first)).await?;
    Ok(row.map(|row| row.data))
}

/// The uuids that are stored, and what `of` returns for the values of their entries.
async fn uuid_values<T: Send + 'static>(
    store: &Store,
    project: ProjectId,
    mut uuids: Vec<Uuid>,
    of: fn(Vec<u8>) -> Result<T>,
) -> Result<Vec<(Uuid, T)>> {
    // In the order of their keys, as when they are written: neighbours are found faster.
    uuids.sort_unstable();
    let keys = UuidKeys::of(store.db.keyspace().await?, project)?;
    let keys: Vec<Vec<u8>> = uuids.iter().map(|uuid| keys.key(*uuid)).collect();
    let (uuids, keys) = (Arc::new(uuids), Arc::new(keys));
    let work = move |tx: Transaction| {
        let (uuids, keys) = (Arc::clone(&uuids), Arc::clone(&keys));
        async move {
            let mut found = Vec::new();
            let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            for (uuid, value) in uuids.iter().zip(tx.small_values(&keys).await?) {
                if let Some(value) = value {
                    found.push((*uuid, of(value)?));
                }
            }
            Ok(found)
        }
    };
    store.db.transact(UUIDS, (), work).await
}

async fn one<T: SurrealValue + Send + 'static>(
    store: &Store,
    operation: Operation,
    id: RecordId,
) -> Result<Option<T>> {
    Ok(store.db.get(operation, vec![id]).await?.into_iter().flatten().next())
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

/// The block that a pointer leads to: `event_time:[project, width, bucket, partition, first]`.
pub(super) fn pointed(
    [_, _, _, partition, first]: [i64; 5],
    name: &'static str,
) -> Result<BlockRef> {
    match (u16::try_from(partition), u64::try_from(first)) {
        (Ok(partition), Ok(first)) => Ok((partition, first)),
        _ => Err(Error::Shape { statement: name, detail: "unexpected record id".to_owned() }),
    }
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
