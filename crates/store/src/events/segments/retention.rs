//! Removing segments: those that are too old, and those of a deleted project.
//!
//! What leads to a block is removed before its data: pointers and summaries, then the row
//! of the catalog, then the segment in the table of the project, then the file. So a removal
//! that was interrupted continues with the next call.
//!
//! The runs keep the uuids, so that an old event that is sent again is still refused. A
//! place without a summary is one of an event that was removed. Those of a deleted project go
//! away when its other data is gone (`runs::forget`).

use std::future::Future;
use std::sync::Arc;

use surrealdb::types::{SurrealValue, Value};
use weir_model::{ProjectId, Timestamp};

use super::catalog::{self, SealedSegment, Segments};
use super::{read, runs, table};
use crate::counts::{CountWrites, EventCounts, Slot, Uncounted};
use crate::db::{Failure, Operation};
use crate::events::StoredEvent;
use crate::events::block::{SECOND, Summary, WIDE};
use crate::events::keys;
use crate::events::next::EventBounds;
use crate::events::read::{BlockRef, firsts_between};
use crate::transaction::{Keyspace, RowKey, Transaction};
use crate::{Error, Result, Store};

/// Summaries that are read at a time.
const SUMMARIES_AT_A_TIME: usize = 32;
/// Records that one transaction removes, and those of one block more.
const CHUNK: usize = 1_000;

const SUMMARIES: Operation = Operation::read("event summaries to remove");
const KEPT: Operation = Operation::read("event blocks that are not sealed");
const DELETE: Operation = Operation::delete("remove event segments");
const REMOVE: Operation = Operation::delete("remove an event segment");
const REMOVED: Operation = Operation::read("removed events");

/// `event_removed:<project>`
#[derive(SurrealValue)]
struct RemovedRow {
    events: i64,
}

/// What a call of [`drop_older`] removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dropped {
    /// The number of segments.
    pub segments: usize,
    /// The number of events in them.
    pub events: u64,
    /// The number of old segments that stay because they may contain unread events.
    pub unread: usize,
}

/// Which events of a project are not kept.
#[derive(Debug, Clone)]
pub struct Old {
    /// Events of an earlier time are old.
    pub before: Timestamp,
    /// Events that will still be read.
    pub unread: Vec<EventBounds>,
}

/// Removes the segments of a project all of whose events are old. Segments that may contain
/// unread events stay; so do newer segments and events that are not sealed. The uuids of the
/// events stay known. `now` is the time of the change. `old` is awaited when no other task
/// changes files any more, which can take long; `None`: all events are kept.
///
/// # Errors
/// Errors of the store and of `old`. The next call continues.
pub async fn drop_older(
    store: &Store,
    project: ProjectId,
    now: Timestamp,
    old: impl Future<Output = Result<Option<Old>>>,
) -> Result<Dropped> {
    let mut dropped = Dropped::default();
    if store.segments.files.is_none() {
        return Ok(dropped);
    }
    let _changing = store.segments.changing().await?;
    let Some(Old { before, unread }) = old.await? else { return Ok(dropped) };
    // A place of the index must not lead to a removed event.
    runs::clear_pending(store).await?;
    let uncounted = Uncounted::of(store, project).await?;
    let mut all = Segments::of(store, project).await?;
    while let Some(some) = all.next(store).await? {
        let old = some.into_iter().filter(|segment| segment.times.to < before.micros());
        let is_unread = |segment: &SealedSegment| {
            let arrivals = (segment.first, segment.last);
            unread.iter().any(|unread| unread.may_pass(arrivals, segment.times))
        };
        let (kept, old): (Vec<SealedSegment>, Vec<SealedSegment>) = old.partition(is_unread);
        dropped.unread += kept.len();
        if old.is_empty() {
            continue;
        }
        let columns = catalog::columns(store, project).await?;
        let log = table::begin(store, project);
        for segment in &old {
            remove(store, segment, Some(&uncounted)).await?;
            dropped.segments += 1;
            dropped.events += segment.rows;
        }
        log.commit(store, columns, &old, &[], now).await;
        remove_files(store, &old).await?;
    }
    if dropped.segments > 0 {
        // Summaries of removed blocks are there too.
        store.blocks.forget(project);
    }
    Ok(dropped)
}

/// Removes the sealed events of a deleted project. The caller keeps other tasks from
/// sealing until the other events are removed too.
pub(in crate::events) async fn purge(store: &Store, project: ProjectId) -> Result<()> {
    let Some(files) = store.segments.files.clone() else { return Ok(()) };
    runs::clear_pending(store).await?;
    table::remove(store, project).await?;
    let of_project = format!("{project}/");
    let replaced = store.segments.take_replaced(|name, _| name.starts_with(&of_project));
    runs::remove(store, replaced).await?;
    let mut all = Segments::of(store, project).await?;
    while let Some(some) = all.next(store).await? {
        for segment in &some {
            remove(store, segment, None).await?;
        }
        remove_files(store, &some).await?;
    }
    let columns = store.db.keyspace().await?.key(keys::columns(project))?;
    store.db.delete_keys(DELETE, vec![columns.into_bytes()]).await?;
    let removed = store.segments.blocking(files.path(""), {
        let files = files.clone();
        move || {
            files.remove_directories(project);
            Ok(())
        }
    });
    removed.await?.map_err(|error| store.segments.error(error))
}

/// Removes a segment from the catalog, and what leads to its blocks before. Its events are
/// subtracted from the counts of their persons, except those that are not counted yet.
/// Without `uncounted` none of them is subtracted.
async fn remove(
    store: &Store,
    segment: &SealedSegment,
    uncounted: Option<&Uncounted>,
) -> Result<()> {
    let SealedSegment { project, partition, first, last, .. } = *segment;
    let end = last.saturating_add(1);
    let mut firsts = firsts_between(store, project, partition, first, end).await?;
    // A damaged block was not sealed.
    let kept = unsealed(store, project, partition, (first, end)).await?;
    firsts.retain(|first| !kept.contains(first));
    let keyspace = store.db.keyspace().await?;
    for some in firsts.chunks(SUMMARIES_AT_A_TIME) {
        let ids = some.iter().map(|first| keys::summary(project, partition, *first));
        let ids: Vec<_> = ids.collect();
        let summaries = store.db.get::<Summary>(SUMMARIES, ids.clone()).await?;
        let mut leading: Vec<Vec<u8>> = Vec::new();
        for ((first, id), summary) in some.iter().zip(ids).zip(summaries) {
            let pointers = match summary {
                Some(summary) => pointers(store, project, (partition, *first), &summary).await,
                None => Vec::new(),
            };
            for (width, bucket) in pointers {
                let pointer = keys::time(project, width, bucket, partition, *first);
                leading.push(keyspace.key(pointer)?.into_bytes());
            }
            let summary = keyspace.key(id)?;
            if let Some(uncounted) = uncounted {
                store.db.delete_keys(DELETE, std::mem::take(&mut leading)).await?;
                subtract(store, project, (partition, *first), summary, uncounted).await?;
                continue;
            }
            leading.push(summary.into_bytes());
            if leading.len() >= CHUNK {
                store.db.delete_keys(DELETE, std::mem::take(&mut leading)).await?;
            }
        }
        store.db.delete_keys(DELETE, leading).await?;
    }
    let row = Arc::new(segment.key(keyspace)?);
    let sums = Arc::new(segment.sums_key(keyspace)?);
    let events = segment.rows;
    let work = move |tx: Transaction| {
        let (row, sums) = (Arc::clone(&row), Arc::clone(&sums));
        async move {
            // It may run twice, and counts once.
            if tx.get_one::<Value>(&row).await?.is_none() {
                return Ok(());
            }
            add_removed(&tx, keyspace, project, events).await?;
            let keys = [&row, &sums].map(|key| RowKey::clone(key).into_bytes());
            tx.delete(&keys).await
        }
    };
    store.db.transact(REMOVE, (), work).await
}

/// Adds to the number of removed events of a project. Heads still count them.
pub(super) async fn add_removed(
    tx: &Transaction,
    keyspace: Keyspace,
    project: ProjectId,
    events: u64,
) -> Result<(), Failure> {
    let id = keys::removed(project);
    let before: Option<RemovedRow> = tx.get_for_update(&keyspace.key(id.clone())?).await?;
    let before = before.map_or(0, |row| row.events);
    let events = i64::try_from(events).unwrap_or(i64::MAX);
    let after = RemovedRow { events: before.saturating_add(events) };
    tx.set(&keyspace.row(id, after.into_value())?).await
}

/// Removes the summary of a block and subtracts its events from the counts of their persons,
/// in one transaction. So a block is counted exactly as long as it has a summary.
async fn subtract(
    store: &Store,
    project: ProjectId,
    block_ref: BlockRef,
    summary: RowKey,
    uncounted: &Uncounted,
) -> Result<()> {
    let mut counts = EventCounts::default();
    match read::block(store, project, block_ref).await {
        Ok(events) => {
            let events = events.unwrap_or_default();
            let is_counted = |event: &&StoredEvent| !uncounted.contains(block_ref, event.arrival);
            let erased = store.erasures.of(project);
            let is_erased = |event: &StoredEvent| {
                let erased = erased.as_deref();
                erased.is_some_and(|erased| erased.takes_event(block_ref.0, event))
            };
            for event in events.iter().filter(is_counted) {
                match is_erased(event) {
                    // The other counts of its person went away with the person.
                    true => counts.add_stored_to_groups(project, event),
                    false => counts.add_stored(project, event),
                }
            }
        }
        Err(error @ (Error::Damaged { .. } | Error::Shape { .. })) => {
            tracing::warn!(%project, ?block_ref, %error, "removed events stay counted");
        }
        Err(error) => return Err(error),
    }
    let mut writes = CountWrites::default();
    writes.add(store.db.keyspace().await?, project, Slot::Removed, &counts, &[])?;
    let (writes, summary) = (Arc::new(writes), Arc::new(summary));
    let work = move |tx: Transaction| {
        let (writes, summary) = (Arc::clone(&writes), Arc::clone(&summary));
        async move {
            // It may run twice, and subtracts once.
            if tx.get_one::<Value>(&summary).await?.is_none() {
                return Ok(());
            }
            writes.write(&tx).await?;
            tx.delete(&[RowKey::clone(&summary).into_bytes()]).await
        }
    };
    store.db.transact(DELETE, (), work).await
}

async fn remove_files(store: &Store, segments: &[SealedSegment]) -> Result<()> {
    runs::remove(store, segments.iter().map(|segment| segment.file.clone()).collect()).await
}

/// How many events of a project were removed for their age or with their persons. Heads still
/// count them.
///
/// # Errors
/// Errors of the store.
pub async fn removed(store: &Store, project: ProjectId) -> Result<u64> {
    let row = store.db.get_one::<RemovedRow>(REMOVED, keys::removed(project)).await?;
    Ok(row.map_or(0, |row| u64::try_from(row.events).unwrap_or(0)))
}

/// The blocks in a range of arrival numbers that have a record.
pub(super) async fn unsealed(
    store: &Store,
    project: ProjectId,
    partition: u16,
    (low, end): (u64, u64),
) -> Result<Vec<u64>> {
    let id = |first| keys::block(project, partition, first);
    let range = Arc::new(store.db.keyspace().await?.range(id(low), id(end))?);
    let work = move |tx: Transaction| {
        let range = Arc::clone(&range);
        async move { tx.numbers::<3>(&range).await }
    };
    let found = store.db.transact(KEPT, (), work).await?;
    Ok(found.into_iter().filter_map(|[_, _, first]| u64::try_from(first).ok()).collect())
}

/// The width and bucket of every pointer that may lead to a block. The widths that its
/// writes chose are not known.
async fn pointers(
    store: &Store,
    project: ProjectId,
    block_ref: BlockRef,
    summary: &Summary,
) -> Vec<(i64, i64)> {
    let times = match times(summary) {
        Some(times) => times,
        // Its summary does not list the seconds of a long span. If it cannot be read, then
        // pointers stay that lead to nothing, which readers skip.
        None => match read::block(store, project, block_ref).await {
            Ok(events) => {
                let events = events.unwrap_or_default();
                events.iter().map(|event| (event.timestamp, event.timestamp)).collect()
            }
            Err(error) => {
                tracing::warn!(%project, ?block_ref, %error, "pointers to removed events stay");
                Vec::new()
            }
        },
    };
    let mut pointers = Vec::new();
    for width in keys::WIDTHS {
        let mut buckets = Vec::new();
        for (from, to) in &times {
            buckets.extend(keys::bucket(*from, width)..=keys::bucket(*to, width));
        }
        buckets.sort_unstable();
        buckets.dedup();
        pointers.extend(buckets.into_iter().map(|bucket| (width, bucket)));
    }
    pointers
}

/// Ranges of time that contain the events of a block, each at most an hour long. `None`:
/// its summary does not say.
fn times(summary: &Summary) -> Option<Vec<(i64, i64)>> {
    let Summary { from_time, to_time, .. } = *summary;
    let Some(seconds) = &summary.seconds else {
        let is_short = to_time.saturating_sub(from_time) <= WIDE * SECOND;
        return is_short.then(|| vec![(from_time, to_time)]);
    };
    let (seconds, _) = seconds.as_chunks::<4>();
    let range = |second: &[u8; 4]| {
        let after = i64::from(u32::from_be_bytes(*second)).saturating_mul(SECOND);
        let from = from_time.saturating_add(after);
        (from, from.saturating_add(SECOND - 1).min(to_time))
    };
    Some(seconds.iter().map(range).collect())
}
