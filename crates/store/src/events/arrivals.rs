//! Reading events by order of arrival, newest first: the latest events, and searches
//! through them with a filter.
//!
//! What does not belong here: pages by event time (`by_time`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_model::ProjectId;

use super::apply::Head;
use super::block::{StoredEvent, Summary};
use super::by_time::partitions_of;
use super::keys;
use super::read::{firsts_between, heads, shared_block};
use super::scan::size;
use super::shared::{NeededEnd, SharedEvents};
use crate::db::Operation;
use crate::{Error, Result, Store};

/// The first range of arrival numbers that a page reads.
const FIRST_ARRIVALS: u64 = 2_048;
/// Bytes of events after which a page by arrival ends early.
const PAGE_BYTES: usize = 16 << 20;
/// After this many blocks in a row that were received before the time of a search, it reads
/// no older blocks of their partition. One such block can be from a replay.
const PASSED_BLOCKS: u8 = 3;

const SUMMARY: Operation = Operation::read("event summary of a block");

/// Events in order of arrival, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrivalPage {
    /// The events, newest first.
    pub events: Vec<StoredEvent>,
    /// Whether there are older ones.
    pub more: bool,
}

/// A search through the events of a project, newest first.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    /// Only events with a lower arrival number. `None`: all.
    pub before: Option<u64>,
    /// Only events with a higher arrival number.
    pub after: u64,
    /// Only events that were received at this time or later, microseconds.
    pub since: Option<i64>,
    /// At most this many events.
    pub limit: usize,
    /// The search ends early after this time, but not where it began. Waiting for other
    /// searches does not count.
    pub within: Option<Duration>,
    /// Only events of this distinct id.
    pub distinct_id: Option<&'a str>,
    /// Whether events of this name are searched. `None`: all names.
    pub takes_name: Option<&'a (dyn Fn(&str) -> bool + Send + Sync)>,
    /// Whether an event is found. It also checks name, distinct id and time.
    pub takes: &'a (dyn Fn(&StoredEvent) -> bool + Send + Sync),
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The events, newest first.
    pub events: Vec<StoredEvent>,
    /// The search continues before this arrival number. `None`: all events were searched.
    pub next: Option<u64>,
}

/// The newest events by order of arrival, before arrival number `before`.
///
/// # Errors
/// As [`search`].
pub async fn arrivals(
    store: &Store,
    project: ProjectId,
    before: Option<u64>,
    limit: usize,
) -> Result<ArrivalPage> {
    let all = Search {
        before,
        after: 0,
        since: None,
        limit,
        within: None,
        distinct_id: None,
        takes_name: None,
        takes: &|_| true,
    };
    let Found { events, next } = search(store, project, &all).await?;
    Ok(ArrivalPage { events, more: next.is_some() })
}

/// The newest events of a search.
///
/// Opens only the blocks that it needs, the newest first. The page is shorter when events
/// are large. A page can have many megabytes, so a semaphore bounds how many are read at
/// the same time. Callers should keep only the events that they need.
///
/// # Errors
/// When the store cannot be read or a block is damaged.
pub async fn search(store: &Store, project: ProjectId, search: &Search<'_>) -> Result<Found> {
    let permit = Arc::clone(&store.arrival_reads).acquire_owned().await;
    let _permit = permit.map_err(|_| Error::Stopped)?;
    let until = search.within.and_then(|within| Instant::now().checked_add(within));
    let end = search.before.unwrap_or(u64::MAX);
    let heads = heads(store, project).await?;
    let partitions = search.distinct_id.map(|id| partitions_of(project, id, &heads));
    let mut ends = Vec::new();
    for (partition, head) in &heads {
        if head.count > 0 && partitions.as_ref().is_none_or(|some| some.contains(partition)) {
            ends.extend(BlocksBack::begin(store, project, *partition, head, end).await?);
        }
    }
    let mut events: Vec<StoredEvent> = Vec::new();
    let (mut bytes, mut next, mut has_searched) = (0, None, false);
    // The partition whose next block may hold the newest event.
    while let Some(at) = (0..ends.len()).max_by_key(|at| ends.get(*at).map(|back| back.last)) {
        let Some(back) = ends.get_mut(at) else { break };
        if back.last <= search.after {
            break;
        }
        let newer = events.iter().filter(|event| event.arrival > back.last).count();
        if newer > search.limit {
            break;
        }
        // At first, every partition may hold the event before `end`.
        let has_advanced = has_searched && back.last.saturating_add(1) < end;
        let is_late = has_advanced && until.is_some_and(|until| Instant::now() >= until);
        if is_late || newer > 0 && bytes > PAGE_BYTES {
            // Older events may be preceded by events that were not read.
            let last = back.last;
            events.retain(|event| event.arrival > last);
            next = Some(last.saturating_add(1));
            break;
        }
        if back.may_have(store, project, search).await? {
            let found = back.read(store, project).await?;
            // Arrival numbers follow the time of receipt, except after a replay.
            let is_passed = search.since.is_some_and(|since| {
                found.iter().next().is_some() && found.iter().all(|event| event.received_at < since)
            });
            back.passed = if is_passed { back.passed + 1 } else { 0 };
            let found = found.iter_back().filter(|event| event.arrival < end);
            let taken = found.filter(|event| (search.takes)(event));
            let before = events.len();
            // One more than the page says that there are more.
            events.extend(taken.take(search.limit.saturating_add(1)).cloned());
            bytes += events.get(before..).unwrap_or_default().iter().map(size).sum::<usize>();
        }
        has_searched = true;
        // Blocks in memory are searched without waiting for anything.
        tokio::task::yield_now().await;
        if back.passed >= PASSED_BLOCKS || !back.step(store, project).await? {
            ends.swap_remove(at);
        }
    }
    events.sort_by_key(|event| std::cmp::Reverse(event.arrival));
    if next.is_none() && events.len() > search.limit {
        next = search.limit.checked_sub(1).and_then(|at| events.get(at)).map(|last| last.arrival);
    }
    events.truncate(search.limit);
    Ok(Found { events, next })
}

/// Iterates over the blocks of a partition from the newest to the oldest.
struct BlocksBack {
    partition: u16,
    /// First arrival number of the next block.
    first: u64,
    /// No event of this block, or of an earlier one, has a higher arrival number.
    last: u64,
    /// The first and the last arrival number of the newest block of the partition, which
    /// may get further events.
    newest: (u64, u64),
    /// The number of the last blocks in a row that were received before the time of the
    /// search.
    passed: u8,
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
            newest: (number(head.newest), number(head.last)),
            first: number(head.newest),
            last: number(head.last).min(end.saturating_sub(1)),
            passed: 0,
        };
        if newest.first < end {
            return Ok(Some(newest));
        }
        let mut older = Self { first: end, ..newest };
        Ok(older.step(store, project).await?.then_some(older))
    }

    /// The events of the next block.
    async fn read(&self, store: &Store, project: ProjectId) -> Result<SharedEvents> {
        let (newest, last) = self.newest;
        let is_closed = self.first < newest;
        let reach = if is_closed { NeededEnd::End } else { NeededEnd::To(last) };
        shared_block(store, project, (self.partition, self.first), reach, is_closed).await
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

    /// Whether the block may have events of the search, by its summary.
    async fn may_have(
        &self,
        store: &Store,
        project: ProjectId,
        search: &Search<'_>,
    ) -> Result<bool> {
        if search.takes_name.is_none() && search.distinct_id.is_none() {
            return Ok(true);
        }
        let id = keys::summary(project, self.partition, self.first);
        let summary: Option<Summary> = store.db.get_one(SUMMARY, id).await?;
        let Some(summary) = summary else { return Ok(true) };
        let has_name = search.takes_name.is_none_or(|takes| {
            // A block with too many names lists none.
            summary.names.is_empty() || summary.names.iter().any(|name| takes(name))
        });
        let is_about = search.distinct_id.is_none_or(|id| summary.may_be_about(project, id));
        Ok(has_name && is_about)
    }
}
