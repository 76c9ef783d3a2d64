//! Pages of events by event time. A page is read in ranges of event time from the newest
//! on, opening the blocks that may hold events of the range.
//!
//! What belongs here: the length of a range, the order in which blocks are opened,
//! filters. What does not: other orders (`read`), skipping events by an offset (`skip`).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;
use weir_model::ProjectId;
use weir_model::events::EventQuery;

use super::apply::Head;
use super::block::{Span, StoredEvent, Summary};
use super::next::count_pointers;
use super::read::{BlockRef, FETCH, by_uuid, heads, pointed, shared_block};
use super::scan::size;
use super::shared::{Index, NeededEnd, SharedEvents};
use super::{historical_partition, keys, live_partition};
use crate::db::Operation;
use crate::transaction::Transaction;
use crate::{Result, Store};

/// The first range of event time that a page reads, microseconds.
pub(super) const FIRST_WINDOW: i64 = 60_000_000;
/// The longest range of event time that one statement reads, microseconds.
pub(super) const LONGEST_WINDOW: i64 = 64 * 86_400_000_000;
/// After a range with at most this many pointers, the next one is longer.
const FEW_POINTERS: usize = 200;
/// After a range with at least this many pointers, the next one is shorter.
const MANY_POINTERS: usize = 2_000;
/// Summaries of blocks with long spans that a page keeps: they occur in every range.
const KEPT: usize = 8_192;
/// Bytes of properties after which a page ends early: many requests read pages
/// concurrently, and each has its page in memory.
const PAGE_BYTES: usize = 1 << 20;
/// Bytes of decoded blocks that a page keeps for its next steps, as long as the budget
/// that all pages share is not used up.
const BLOCK_BYTES: usize = 16 << 20;

const SUMMARIES: Operation = Operation::read("event summaries");
const TIMES: Operation = Operation::read("event blocks by time");

/// The beginning of a page: `before` and `before_uuid` of its query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Only events before this time, microseconds.
    pub before: i64,
    /// Also the events at `before` with a smaller uuid than this one; `None`: none of
    /// them.
    pub uuid: Option<Uuid>,
}

impl Cursor {
    /// The cursor after an event.
    pub fn behind(event: &StoredEvent) -> Self {
        Self { before: event.timestamp, uuid: Some(event.uuid) }
    }
}

/// A page of events, newest event time first (equal times: larger uuid first). Returns up
/// to `limit` events and whether there are more.
///
/// # Errors
/// When the store cannot be read or a block is damaged.
pub async fn page(
    store: &Store,
    project: ProjectId,
    query: &EventQuery,
) -> Result<(Vec<StoredEvent>, bool)> {
    let (found, next) = page_until(store, project, query, None).await?;
    Ok((found, next.is_some()))
}

/// A page like [`page`], with the cursor of the next page. When events are rare, the page
/// ends at `until` with the events found so far, and the next page continues from there.
///
/// # Errors
/// As [`page`].
pub async fn page_until(
    store: &Store,
    project: ProjectId,
    query: &EventQuery,
    until: Option<Instant>,
) -> Result<(Vec<StoredEvent>, Option<Cursor>)> {
    if let Some(uuid) = query.uuid {
        let event = by_uuid(store, project, uuid).await?;
        return Ok((event.into_iter().filter(|e| matches(query, e)).collect(), None));
    }
    let Some(mut reader) = Reader::begin(store, project, query).await? else {
        return Ok((Vec::new(), None));
    };
    reader.until = until;
    let mut found: Vec<StoredEvent> = Vec::new();
    let (lower, mut high, mut width) = (reader.lower, reader.upper, FIRST_WINDOW);
    let mut bytes = 0;
    while high > lower && found.len() <= query.limit {
        let low = lower.max(high.saturating_sub(width));
        let window = reader.window(low, high, query.limit + 1 - found.len()).await?;
        high = window.low;
        if width == LONGEST_WINDOW && window.narrow == 0 {
            high = reader.end_of_gap(high).await?;
        }
        width = next_width(width, window.narrow);
        for event in window.events {
            bytes += event.properties.len();
            let block_ref = Cursor::behind(&event);
            found.push(event);
            if bytes > PAGE_BYTES && found.len() <= query.limit {
                // The page is shorter than requested. The next one continues here.
                return Ok((found, Some(block_ref)));
            }
        }
        // A range without blocks costs little, so it is passed even after `until`.
        let is_late = window.has_blocks && reader.is_late();
        if is_late && high > lower && found.len() <= query.limit {
            return Ok((found, Some(Cursor { before: high, uuid: None })));
        }
    }
    let more = found.len() > query.limit;
    found.truncate(query.limit);
    let next = found.last().filter(|_| more).map(Cursor::behind);
    Ok((found, next))
}

/// The length of the next range: longer after few pointers, shorter after many, so that
/// every statement reads a bounded number of them.
pub(super) fn next_width(width: i64, pointers: usize) -> i64 {
    match pointers {
        0..=FEW_POINTERS => width.saturating_mul(4).min(LONGEST_WINDOW),
        MANY_POINTERS.. => (width / 4).max(FIRST_WINDOW),
        _ => width,
    }
}

/// The partitions that may have events of a distinct id: its own live partition, the
/// historical one, and those with events whose distinct id a transformation changed.
pub(super) fn partitions_of(
    project: ProjectId,
    distinct_id: &str,
    heads: &BTreeMap<u16, Head>,
) -> Vec<u16> {
    let own = [live_partition(project, distinct_id), historical_partition(project)];
    let strays = heads.iter().filter(|(_, head)| head.strays).map(|(partition, _)| *partition);
    own.into_iter().chain(strays).collect()
}

/// An event of a block that was opened for a range.
struct Found {
    time: i64,
    uuid: Uuid,
    /// Bytes of its properties.
    bytes: usize,
    /// The number of the block among those that were opened.
    block: usize,
    at: Index,
}

/// The number of events after which the sum of their properties exceeds `bytes`.
fn first_beyond(events: &[Found], bytes: usize) -> Option<usize> {
    let mut sum = 0;
    let beyond = events.iter().position(|event| {
        sum += event.bytes;
        sum > bytes
    });
    beyond.map(|at| at + 1)
}

/// The result of reading a range of event time.
struct Window {
    /// The number of pointers whose width is at most the length of the range. A shorter
    /// range does not have fewer of the wider pointers, so they are not counted.
    narrow: usize,
    /// Whether any block in the range may have events of the query.
    has_blocks: bool,
    events: Vec<StoredEvent>,
    /// The beginning of the range that was read: later than requested when time was up.
    low: i64,
}

/// The blocks that may hold events of the query in a range.
pub(super) struct Candidates {
    /// See the field of [`Window`].
    pub(super) narrow: usize,
    pub(super) blocks: Vec<Candidate>,
}

/// A block that may hold events of the query in a range.
pub(super) struct Candidate {
    pub(super) block_ref: BlockRef,
    /// The arrival number of its last event.
    last: u64,
    /// The latest time in the range at which it may have an event.
    latest: i64,
    /// Its earliest and latest event time.
    pub(super) span: Span,
    /// The number of its events, if the query takes all of them apart from its bounds of
    /// time.
    pub(super) all: Option<u64>,
}

impl Candidate {
    /// `None` when the block has no event before `high`.
    fn of(block_ref: BlockRef, summary: &Summary, all: Option<u64>, high: i64) -> Option<Self> {
        let span = Span { from: summary.from_time, to: summary.to_time };
        let last = u64::try_from(summary.last).unwrap_or(0);
        summary.latest_before(high).map(|latest| Self { block_ref, last, latest, span, all })
    }
}

/// The kept part of the summary of a block with a long span.
struct Wide {
    summary: Arc<Summary>,
    /// See the field of [`Candidate`].
    all: Option<u64>,
}

/// The state of reading one page. Every kept block is decoded once.
pub(super) struct Reader<'a> {
    pub(super) store: &'a Store,
    pub(super) project: ProjectId,
    pub(super) query: &'a EventQuery,
    /// The earliest time of the query (inclusive), microseconds.
    pub(super) lower: i64,
    /// The latest time of the query (exclusive), microseconds.
    pub(super) upper: i64,
    /// The partitions that are read; `None`: all.
    partitions: Option<Vec<u16>>,
    /// The newest block of each partition. Earlier blocks get no further events.
    newest: BTreeMap<u16, u64>,
    /// Summaries of blocks with long spans; `None`: the block has no event of the query.
    wide: HashMap<BlockRef, Option<Wide>>,
    blocks: HashMap<BlockRef, SharedEvents>,
    block_bytes: usize,
    /// The part of the shared budget that `blocks` uses.
    room: Option<OwnedSemaphorePermit>,
    /// The page ends early from this time on.
    until: Option<Instant>,
}

impl<'a> Reader<'a> {
    /// Begins to read a page and computes its bounds of event time; `None`: there are no
    /// events.
    pub(super) async fn begin(
        store: &'a Store,
        project: ProjectId,
        query: &'a EventQuery,
    ) -> Result<Option<Self>> {
        let heads = heads(store, project).await?;
        let spans = || heads.values().filter_map(Head::span);
        let newest = spans().map(|span| span.to).max();
        let oldest = spans().map(|span| span.from).min();
        let (Some(newest), Some(oldest)) = (newest, oldest) else { return Ok(None) };
        let lower =
            query.after.map_or(oldest, |after| oldest.max(after.micros().saturating_add(1)));
        // The bound is exclusive. With a uuid, events at `before` itself are included.
        let upper = query.before.map_or(newest + 1, |before| {
            let end = before.micros().saturating_add(i64::from(query.before_uuid.is_some()));
            end.min(newest + 1)
        });
        let names_ids = query.distinct_id.is_some() || !query.any_of.is_empty();
        let partitions = names_ids.then(|| {
            let ids = query.distinct_id.iter().chain(&query.any_of);
            ids.flat_map(|id| partitions_of(project, id, &heads)).collect::<Vec<u16>>()
        });
        let first = |head: &Head| u64::try_from(head.newest).unwrap_or(0);
        let newest = heads.iter().map(|(partition, head)| (*partition, first(head))).collect();
        let (wide, blocks) = (HashMap::new(), HashMap::new());
        Ok(Some(Self {
            store,
            project,
            query,
            lower,
            upper,
            partitions,
            newest,
            wide,
            blocks,
            block_bytes: 0,
            room: None,
            until: None,
        }))
    }

    fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// The newest `wanted` events with `low <= time < high`, in order.
    async fn window(&mut self, mut low: i64, high: i64, mut wanted: usize) -> Result<Window> {
        let Candidates { narrow, mut blocks } = self.candidates(low, high).await?;
        blocks.sort_by_key(|block| std::cmp::Reverse(block.latest));
        let has_blocks = !blocks.is_empty();
        let mut opened: Vec<SharedEvents> = Vec::new();
        // Only the events of the page are copied.
        let mut found: Vec<Found> = Vec::new();
        for Candidate { block_ref, last, latest, .. } in blocks {
            // Blocks are sorted by their latest event. Once enough events are newer than
            // the rest of the blocks, the rest cannot matter.
            if found.len() >= wanted && found.get(wanted - 1).is_some_and(|e| e.time > latest) {
                break;
            }
            // All events that are newer than this block have been found.
            if latest + 1 < high && self.is_late() {
                low = latest + 1;
                found.retain(|event| event.time >= low);
                break;
            }
            let events = self.block(block_ref, last).await?;
            let inside = |e: &StoredEvent| {
                e.timestamp >= low && e.timestamp < high && matches(self.query, e)
            };
            found.extend(events.iter_at().filter(|(_, event)| inside(event)).map(|(at, event)| {
                Found {
                    time: event.timestamp,
                    uuid: event.uuid,
                    bytes: event.properties.len(),
                    block: opened.len(),
                    at,
                }
            }));
            opened.push(events);
            found.sort_unstable_by_key(|e| std::cmp::Reverse((e.time, e.uuid)));
            found.truncate(wanted);
            if let Some(enough) = first_beyond(&found, PAGE_BYTES) {
                wanted = enough;
                found.truncate(wanted);
            }
        }
        let event = |found: &Found| opened.get(found.block)?.get(found.at).cloned();
        let events = found.iter().filter_map(event).collect();
        Ok(Window { narrow, has_blocks, events, low })
    }

    pub(super) async fn candidates(&mut self, low: i64, high: i64) -> Result<Candidates> {
        let (narrow, mut block_refs) = self.block_refs(low, high).await?;
        if let Some(partitions) = &self.partitions {
            block_refs.retain(|(partition, _)| partitions.contains(partition));
        }
        let mut blocks = Vec::new();
        // Summaries also count events that are erased and not removed yet.
        let erased = self.store.erasures.of(self.project);
        let erased = erased.filter(|erased| erased.has_stored_events());
        // Summaries in memory lack what a filter and an erasure need.
        let takes_every_event = erased.is_none()
            && self.query.event.is_none()
            && self.query.distinct_id.is_none()
            && self.query.any_of.is_empty();
        if takes_every_event {
            let summaries = self.store.blocks.summaries(self.project, &block_refs);
            let mut summaries = summaries.into_iter();
            block_refs.retain(|block_ref| {
                let Some(summary) = summaries.next().flatten() else { return true };
                let all = u64::try_from(summary.count).ok();
                blocks.extend(Candidate::of(*block_ref, &summary, all, high));
                false
            });
        }
        let mut unknown = Vec::new();
        for block_ref in block_refs {
            match self.wide.get(&block_ref) {
                Some(known) => blocks.extend(known.as_ref().and_then(|Wide { summary, all }| {
                    Candidate::of(block_ref, summary, *all, high)
                })),
                None => unknown.push(block_ref),
            }
        }
        for chunk in unknown.chunks(FETCH) {
            let id =
                |(partition, first): &BlockRef| keys::summary(self.project, *partition, *first);
            let ids = chunk.iter().map(id).collect();
            let removals = self.store.blocks.removals();
            let found = self.store.db.get::<Summary>(SUMMARIES, ids).await?;
            for (block_ref, summary) in chunk.iter().zip(found) {
                let Some(summary) = summary else { continue };
                let known = self.may_match(&summary).then(|| {
                    let may_be_erased =
                        erased.as_ref().is_some_and(|erased| erased.may_concern(&summary));
                    let takes_all = !may_be_erased && self.takes_all(&summary);
                    let all = takes_all.then_some(summary.count);
                    let all = all.and_then(|count| u64::try_from(count).ok());
                    Wide { all, summary: Arc::new(summary.times_only()) }
                });
                let candidate = known.as_ref().and_then(|Wide { summary, all }| {
                    Candidate::of(*block_ref, summary, *all, high)
                });
                blocks.extend(candidate);
                if let Some(Wide { summary, .. }) = &known
                    && takes_every_event
                    && self.is_closed(*block_ref)
                {
                    let summary = Arc::clone(summary);
                    self.store.blocks.put_summary(self.project, *block_ref, summary, removals);
                    continue;
                }
                let recurs = known.as_ref().is_none_or(|known| known.summary.seconds.is_some());
                if recurs && self.wide.len() < KEPT {
                    self.wide.insert(*block_ref, known);
                }
            }
        }
        blocks.retain(|block| block.latest >= low);
        Ok(Candidates { narrow, blocks })
    }

    /// The number of pointers whose width is at most the length of the range, and the
    /// blocks that pointers of any width lead to.
    async fn block_refs(&self, low: i64, high: i64) -> Result<(usize, Vec<BlockRef>)> {
        let keyspace = self.store.db.keyspace().await?;
        let mut ranges = Vec::with_capacity(keys::WIDTHS.len());
        for width in keys::WIDTHS {
            let from = keys::time_bucket(self.project, width, keys::bucket(low, width));
            let to = keys::time_bucket(self.project, width, keys::bucket(high - 1, width) + 1);
            ranges.push(keyspace.range(from, to)?);
        }
        let ranges = Arc::new(ranges);
        let work = move |tx: Transaction| {
            let ranges = Arc::clone(&ranges);
            async move {
                let mut found = Vec::with_capacity(ranges.len());
                for range in ranges.iter() {
                    found.push(tx.numbers::<5>(range).await?);
                }
                Ok(found)
            }
        };
        let found = self.store.db.transact(TIMES, (), work).await?;
        let mut block_refs: Vec<BlockRef> = Vec::new();
        let mut narrow = 0;
        for (pointers, width) in found.into_iter().zip(keys::WIDTHS) {
            if width * 1_000_000 <= high - low {
                narrow += pointers.len();
            }
            for pointer in pointers {
                block_refs.push(pointed(pointer, TIMES.name)?);
            }
        }
        block_refs.sort_unstable();
        block_refs.dedup();
        Ok((narrow, block_refs))
    }

    /// The lower end of a gap without events that begins before `high`. Centuries may lie
    /// between two events, because the time of an event can be in any year.
    pub(super) async fn end_of_gap(&self, mut high: i64) -> Result<i64> {
        let (mut width, mut reaches_events) = (LONGEST_WINDOW * 4, false);
        while high > self.lower && width > LONGEST_WINDOW {
            let low = self.lower.max(high.saturating_sub(width));
            if !self.is_empty(low, high).await? {
                (width, reaches_events) = (width / 4, true);
                continue;
            }
            high = low;
            if !reaches_events {
                width = width.saturating_mul(4);
            }
        }
        Ok(high)
    }

    /// Whether no pointer leads from a range of event time to a block. At most one is read,
    /// because a long range may have many.
    async fn is_empty(&self, low: i64, high: i64) -> Result<bool> {
        for width in keys::WIDTHS {
            let buckets = keys::bucket(low, width)..keys::bucket(high - 1, width) + 1;
            if count_pointers(self.store, self.project, width, buckets, 1).await? > 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn may_match(&self, summary: &Summary) -> bool {
        self.query.event.as_ref().is_none_or(|name| summary.may_name(name))
            && self
                .query
                .distinct_id
                .as_ref()
                .is_none_or(|id| summary.may_be_about(self.project, id))
            && (self.query.any_of.is_empty()
                || self.query.any_of.iter().any(|id| summary.may_be_about(self.project, id)))
    }

    /// Whether the query takes every event of a block, apart from its bounds of time.
    fn takes_all(&self, summary: &Summary) -> bool {
        self.query.distinct_id.is_none()
            && self.query.any_of.is_empty()
            && self.query.event.as_ref().is_none_or(|name| summary.names == [name.as_str()])
    }

    /// Whether a block gets no further events.
    fn is_closed(&self, (partition, first): BlockRef) -> bool {
        self.newest.get(&partition).is_some_and(|newest| first < *newest)
    }

    /// The events of a block, at least to the one with the arrival number `last`.
    async fn block(&mut self, block_ref: BlockRef, last: u64) -> Result<SharedEvents> {
        if let Some(events) = self.blocks.get(&block_ref) {
            return Ok(events.clone());
        }
        let is_closed = self.is_closed(block_ref);
        let events =
            shared_block(self.store, self.project, block_ref, NeededEnd::To(last), is_closed)
                .await?;
        let bytes = events.iter().map(size).sum::<usize>();
        if self.block_bytes < BLOCK_BYTES && self.take_room(bytes) {
            self.block_bytes += bytes;
            self.blocks.insert(block_ref, events.clone());
        }
        Ok(events)
    }

    /// Takes so many bytes of the shared budget. `false`: the budget is used up, and the
    /// block is decoded again when it is needed.
    fn take_room(&mut self, bytes: usize) -> bool {
        let Ok(bytes) = u32::try_from(bytes) else { return false };
        let Ok(more) = Arc::clone(&self.store.kept_blocks).try_acquire_many_owned(bytes) else {
            return false;
        };
        match &mut self.room {
            Some(room) => room.merge(more),
            None => self.room = Some(more),
        }
        true
    }
}

pub(super) fn matches(query: &EventQuery, event: &StoredEvent) -> bool {
    let after_cursor = match (query.before, query.before_uuid) {
        (Some(before), Some(uuid)) => (event.timestamp, event.uuid) < (before.micros(), uuid),
        (Some(before), None) => event.timestamp < before.micros(),
        (None, _) => true,
    };
    after_cursor
        && query.after.is_none_or(|after| event.timestamp > after.micros())
        && query.event.as_ref().is_none_or(|name| *name == event.event)
        && query.distinct_id.as_ref().is_none_or(|id| *id == event.distinct_id)
        && (query.any_of.is_empty() || query.any_of.contains(&event.distinct_id))
}
