//! The first event of a range of event time: for backfills, which skip the intervals
//! without events.
//!
//! What belongs here: finding it by pointers, summaries and a few blocks. What does not:
//! reading all events of a range (`scan`).

use std::collections::HashSet;
use std::sync::Arc;

use surrealdb::types::RecordId;
use weir_model::ProjectId;

use super::apply::Head;
use super::block::{Span, StoredEvent};
use super::keys;
use super::read::{BlockRef, FETCH, first_of, heads, partition_of, pointed, read_block};
use super::scan::{BRIEFS_OF, Brief, TimeRange};
use crate::db::Operation;
use crate::transaction::{IdRange, Transaction};
use crate::{Result, Store};

/// The number of buckets of the first window.
const FIRST: i64 = 16;
/// The pointers of a window with more buckets than this are counted before they are read.
const UNCOUNTED: i64 = 360;
/// The largest number of pointers of a window with more than a single bucket.
const MANY: u32 = 4_000;

const COUNT: Operation = Operation::read("event blocks in a time range, counted");
const BY_TIME: Operation = Operation::read("event blocks in a time range");

/// The number of pointers of one width in these buckets, at most `most`.
pub(super) async fn count_pointers(
    store: &Store,
    project: ProjectId,
    width: i64,
    buckets: std::ops::Range<i64>,
    most: u32,
) -> Result<usize> {
    let range = Arc::new(pointers_in(store, project, width, buckets).await?);
    let work = move |tx: Transaction| {
        let range = Arc::clone(&range);
        async move { tx.count(&range, most).await }
    };
    store.db.transact(COUNT, (), work).await
}

async fn pointers_in(
    store: &Store,
    project: ProjectId,
    width: i64,
    buckets: std::ops::Range<i64>,
) -> Result<IdRange> {
    let bucket = |bucket| keys::time_bucket(project, width, bucket);
    store.db.keyspace().await?.range(bucket(buckets.start), bucket(buckets.end))
}

/// The pointers of one width in a range of event time, in order of their buckets. They
/// are read in windows. A window grows while it is empty, because years may lie between
/// two events.
pub(super) struct Pointers {
    project: ProjectId,
    width: i64,
    at: i64,
    end: i64,
    step: i64,
}

impl Pointers {
    pub(super) fn new(project: ProjectId, width: i64, time: TimeRange) -> Self {
        let at = keys::bucket(time.start, width);
        let end = keys::bucket(time.end.saturating_sub(1), width) + 1;
        Self { project, width, at, end, step: FIRST }
    }

    /// The blocks that the pointers of the next window lead to; `None`: there are no more
    /// pointers.
    pub(super) async fn next(&mut self, store: &Store) -> Result<Option<Vec<BlockRef>>> {
        while self.at < self.end {
            let to = self.at.saturating_add(self.step).min(self.end);
            if self.step > UNCOUNTED {
                let (project, width, buckets) = (self.project, self.width, self.at..to);
                if count_pointers(store, project, width, buckets, MANY + 1).await? > MANY as usize {
                    self.step = (self.step / 8).max(FIRST);
                    continue;
                }
            }
            let range = pointers_in(store, self.project, self.width, self.at..to).await?;
            let range = Arc::new(range);
            let work = move |tx: Transaction| {
                let range = Arc::clone(&range);
                async move { tx.numbers::<5>(&range).await }
            };
            let found = store.db.transact(BY_TIME, (), work).await?;
            self.at = to;
            if found.is_empty() {
                self.step = self.step.saturating_mul(4);
                continue;
            }
            let block_refs = found.into_iter().map(|pointer| pointed(pointer, BY_TIME.name));
            return block_refs.collect::<Result<Vec<BlockRef>>>().map(Some);
        }
        Ok(None)
    }
}

/// A filter of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventBounds {
    /// Only events with a higher arrival number,
    pub after: u64,
    /// and at most this one.
    pub up_to: u64,
    /// Only events in this range of event time.
    pub time: TimeRange,
}

impl EventBounds {
    /// All events with a higher arrival number.
    pub fn after(after: u64) -> Self {
        Self { after, up_to: u64::MAX, time: TimeRange::ALL }
    }

    /// Whether an event with one of these arrival numbers (both inclusive) and one of these
    /// times may pass.
    pub(super) fn may_pass(&self, (first, last): (u64, u64), times: Span) -> bool {
        let arrives = last > self.after && first <= self.up_to;
        arrives && times.to >= self.time.start && times.from < self.time.end
    }
}

/// The time of the first event that passes the filter; `None`: there is none. The search
/// stops at any event before `soon`, because the caller does not need an earlier one.
///
/// # Errors
/// When the store cannot be read or a block is damaged.
pub async fn next_time(
    store: &Store,
    project: ProjectId,
    wanted: EventBounds,
    soon: i64,
) -> Result<Option<i64>> {
    let heads = heads(store, project).await?;
    let spans = || heads.values().filter_map(Head::span);
    let (from, to) = (spans().map(|span| span.from).min(), spans().map(|span| span.to).max());
    let (Some(from), Some(to)) = (from, to) else { return Ok(None) };
    let start = wanted.time.start.max(from);
    let end = wanted.time.end.min(to.saturating_add(1));
    let mut search = Search { store, project, wanted, soon, first: None, seen: HashSet::new() };
    for width in keys::WIDTHS {
        // Events after the one that was found do not matter.
        let end = search.first.unwrap_or(end);
        if start >= end || search.is_over() {
            break;
        }
        let mut pointers = Pointers::new(project, width, TimeRange { start, end });
        while let Some(block_refs) = pointers.next(store).await? {
            search.look(block_refs).await?;
            let passed = |first| keys::bucket(first, width) < pointers.at;
            if search.first.is_some_and(passed) {
                break;
            }
        }
    }
    Ok(search.first)
}

/// The time of the first event of each interval that has any, for at most `most`
/// intervals. `end` returns the end of the interval that contains a time.
///
/// # Errors
/// When the store cannot be read or a block is damaged.
pub async fn first_times(
    store: &Store,
    project: ProjectId,
    mut wanted: EventBounds,
    most: usize,
    end: impl Fn(i64) -> i64,
) -> Result<Vec<i64>> {
    let mut times = Vec::new();
    // The first interval needs its exact first event, which sets where all intervals
    // begin.
    let mut soon = i64::MIN;
    while times.len() < most {
        let Some(time) = next_time(store, project, wanted, soon).await? else { break };
        times.push(time);
        wanted.time.start = end(time).max(time.saturating_add(1));
        soon = end(wanted.time.start);
    }
    Ok(times)
}

struct Search<'a> {
    store: &'a Store,
    project: ProjectId,
    wanted: EventBounds,
    soon: i64,
    first: Option<i64>,
    /// Blocks with many pointers occur repeatedly.
    seen: HashSet<BlockRef>,
}

impl Search<'_> {
    fn is_over(&self) -> bool {
        self.first.is_some_and(|first| first < self.soon)
    }

    fn found(&mut self, time: i64) {
        if time < self.first.unwrap_or(self.wanted.time.end) {
            self.first = Some(time);
        }
    }

    /// Searches the summaries of blocks, and opens the blocks whose summaries do not
    /// decide.
    async fn look(&mut self, mut block_refs: Vec<BlockRef>) -> Result<()> {
        block_refs.retain(|block_ref| self.seen.insert(*block_ref));
        let EventBounds { after, up_to, time } = self.wanted;
        for some in block_refs.chunks(FETCH) {
            let id =
                |(partition, first): &BlockRef| keys::summary(self.project, *partition, *first);
            let ids: Vec<RecordId> = some.iter().map(id).collect();
            let briefs = self.store.db.get::<Brief>(BRIEFS_OF, ids).await?;
            let mut blocks = Vec::new();
            for brief in briefs.into_iter().flatten() {
                let partition = partition_of(&brief.id, 1, BRIEFS_OF.name)?;
                let first = first_of(&brief.id, 2, BRIEFS_OF.name)?;
                let last = u64::try_from(brief.last).unwrap_or(0);
                let summary = brief.summary();
                if last <= after || first > up_to {
                    continue;
                }
                let Some(earliest) = summary.earliest_from(time.start) else { continue };
                let is_exact = summary.seconds.is_none() && summary.from_time >= time.start;
                let is_whole = first > after && last <= up_to;
                blocks.push((earliest, is_exact && is_whole, (partition, first)));
            }
            blocks.sort_unstable();
            for (earliest, is_known, block_ref) in blocks {
                if self.is_over() || self.first.is_some_and(|first| earliest >= first) {
                    break;
                }
                if is_known {
                    self.found(earliest);
                    continue;
                }
                let events = read_block(self.store, self.project, block_ref).await?;
                let fits = |event: &&StoredEvent| {
                    event.arrival > after && event.arrival <= up_to && event.timestamp >= time.start
                };
                let first = events.iter().filter(fits).map(|event| event.timestamp).min();
                first.into_iter().for_each(|first| self.found(first));
            }
            if self.is_over() {
                break;
            }
        }
        Ok(())
    }
}
