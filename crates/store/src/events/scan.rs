//! Reading a project's events in order of arrival, over all partitions: for exports,
//! which read all events of a range of arrival numbers.
//!
//! What belongs here: finding the blocks of a range, reading them ahead, merging
//! partitions, counting. What does not: pages for users (`read`, `by_time`), persons.
//!
//! A few blocks of each partition are in memory, however long the range is. The keys of
//! blocks are read in parts too. Only with a range of event time all keys are in memory,
//! because their pointers are in another order.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::Arc;

use surrealdb::types::{Bytes, RecordId, SurrealValue};
use tokio::task::{JoinHandle, JoinSet};
use weir_model::ProjectId;

use super::apply::Head;
use super::block::{StoredEvent, Summary};
use super::next::Pointers;
use super::read::{
    BlockRef, FETCH, first_of, firsts_between, heads, partition_of, range, read_block,
};
use super::{PARTITIONS, keys};
use crate::bind::bind;
use crate::db::{Operation, Statement};
use crate::{Error, Result, Store};

/// Arrival numbers of the first range that is searched for blocks.
const FIRST_WIDTH: u64 = 20_000;
/// After a range with at most this many blocks, the next one is longer,
const FEW: usize = 64;
/// and after one with at least this many shorter.
const MANY: usize = 512;
/// Blocks of a partition that are read before they are needed.
const AHEAD: usize = 1;
/// Blocks that a count opens at the same time.
const RECORDS_PER_STATEMENT: usize = 4;
/// A batch of events ends at this many events,
const BATCH_EVENTS: usize = 1_000;
/// or at this many bytes.
const BATCH_BYTES: usize = 1 << 20;

/// A filter of events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only events with a higher arrival number,
    pub after: u64,
    /// and at most this one.
    pub up_to: u64,
    /// Only events in this range of event time.
    pub time: Option<TimeRange>,
    /// Without these events.
    pub except: Vec<Except>,
    /// Only events with these names; empty: all names.
    pub include: HashSet<String>,
    /// Without events with these names.
    pub exclude: HashSet<String>,
}

/// Events that another run exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Except {
    /// Events with at most this arrival number,
    pub up_to: u64,
    /// in this range of event time.
    pub time: TimeRange,
}

/// A range of event time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// The first microsecond of the range.
    pub start: i64,
    /// The microsecond after the last one of the range.
    pub end: i64,
}

impl Except {
    fn takes(&self, event: &StoredEvent) -> bool {
        event.arrival <= self.up_to && self.time.holds(event.timestamp, event.timestamp)
    }
}

impl TimeRange {
    /// Every event time.
    pub(crate) const ALL: Self = Self { start: i64::MIN, end: i64::MAX };

    /// Whether all times from `from` to `to` (both inclusive) are in this range.
    fn holds(self, from: i64, to: i64) -> bool {
        from >= self.start && to < self.end
    }

    /// The overlap of this range with the times from `from` to `to` (both inclusive): the
    /// overlap and the whole length, in microseconds.
    fn within(self, from: i64, to: i64) -> (u64, u64) {
        let length = |from: i64, to: i64| u64::try_from(to.saturating_sub(from)).unwrap_or(0);
        let end = to.saturating_add(1);
        (length(self.start.max(from), self.end.min(end)), length(from, end).max(1))
    }
}

/// The given part of a count, rounded up.
fn part(count: u64, (part, whole): (u64, u64)) -> u64 {
    let scaled = u128::from(count) * u128::from(part.min(whole));
    u64::try_from(scaled.div_ceil(u128::from(whole.max(1)))).unwrap_or(count)
}

/// The decision about a block by its summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// None of its events is selected.
    Nothing,
    /// All of its events are selected: so many.
    All(u64),
    /// Some events may be selected: approximately so many.
    Something(u64),
}

impl Selection {
    fn takes_name(&self, name: &str) -> bool {
        (self.include.is_empty() || self.include.contains(name)) && !self.exclude.contains(name)
    }

    fn takes(&self, event: &StoredEvent) -> bool {
        event.arrival > self.after
            && event.arrival <= self.up_to
            && self.time.is_none_or(|time| time.holds(event.timestamp, event.timestamp))
            && !self.except.iter().any(|except| except.takes(event))
            && self.takes_name(&event.event)
    }

    fn judge(&self, first: u64, brief: &Brief) -> Verdict {
        let last = u64::try_from(brief.last).unwrap_or(0);
        if last <= self.after || first > self.up_to {
            return Verdict::Nothing;
        }
        let mut is_all = first > self.after && last <= self.up_to;
        let count = u64::try_from(brief.count).unwrap_or(0);
        let mut about = count;
        if let Some(time) = self.time {
            if brief.summary().latest_before(time.end).is_none_or(|latest| latest < time.start) {
                return Verdict::Nothing;
            }
            is_all &= time.holds(brief.from_time, brief.to_time);
            about = part(about, time.within(brief.from_time, brief.to_time));
        }
        for Except { up_to, time } in self.except.iter().filter(|except| first <= except.up_to) {
            if last <= *up_to && time.holds(brief.from_time, brief.to_time) {
                return Verdict::Nothing;
            }
            is_all &= brief.to_time < time.start || brief.from_time >= time.end;
        }
        if !self.include.is_empty() || !self.exclude.is_empty() {
            let taken = brief.names.iter().filter(|name| self.takes_name(name)).count();
            // A block that lists no names has more names than can be listed.
            if taken == 0 && !brief.names.is_empty() {
                return Verdict::Nothing;
            }
            is_all &= taken > 0 && taken == brief.names.len();
            about = part(about, (taken.max(1) as u64, brief.names.len().max(1) as u64));
        }
        match is_all {
            true => Verdict::All(count),
            false => Verdict::Something(about.max(1)),
        }
    }
}

/// The part of a summary that is needed here.
#[derive(SurrealValue)]
pub(super) struct Brief {
    pub(super) id: RecordId,
    pub(super) last: i64,
    count: i64,
    from_time: i64,
    to_time: i64,
    names: Vec<String>,
    seconds: Option<Bytes>,
}

impl Brief {
    pub(super) fn summary(&self) -> Summary {
        Summary {
            last: self.last,
            count: self.count,
            bytes: 0,
            from_time: self.from_time,
            to_time: self.to_time,
            names: Vec::new(),
            ids: Bytes::default(),
            seconds: self.seconds.clone(),
            erased: None,
        }
    }
}

const BRIEFS: Statement = Statement::read(
    "event summaries in order",
    "SELECT id, last, count, from_time, to_time, names, seconds FROM $range;",
);
pub(super) const BRIEFS_OF: Operation = Operation::read("event summaries of blocks");

/// A block that may have selected events.
#[derive(Debug, Clone, Copy)]
struct Block {
    first: u64,
    verdict: Verdict,
}

/// The blocks of a partition, in order.
#[derive(Debug)]
struct Lane {
    partition: u16,
    /// Blocks that were found and are not read yet.
    found: VecDeque<Block>,
    /// Arrival number from which to search for more; `None`: all are found.
    from: Option<u64>,
    /// The width of the next range of arrival numbers.
    width: u64,
    /// Blocks that are being read, with their first arrival numbers.
    ahead: VecDeque<(u64, JoinHandle<Result<Vec<StoredEvent>>>)>,
    /// Events that were read.
    events: VecDeque<StoredEvent>,
}

/// A scan through the events of a selection.
#[derive(Debug)]
pub struct Scan {
    source: Arc<EventSource>,
    lanes: Vec<Lane>,
}

struct EventSource {
    store: Store,
    project: ProjectId,
    selection: Selection,
}

impl std::fmt::Debug for EventSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventSource").field("project", &self.project).finish_non_exhaustive()
    }
}

impl Scan {
    /// Begins before the first event. Everything up to the selection's last arrival
    /// number must be applied, because later events may be missed.
    pub async fn begin(store: &Store, project: ProjectId, selection: Selection) -> Result<Self> {
        let source = Arc::new(EventSource { store: store.clone(), project, selection });
        let lanes = match source.selection.time {
            None => source.lanes().await?,
            Some(time) => source.lanes_by_time(time).await?,
        };
        Ok(Self { source, lanes })
    }

    /// The next events in order of arrival; `None` at the end.
    ///
    /// # Errors
    /// When the store cannot be read or a block is damaged.
    pub async fn next(&mut self) -> Result<Option<Vec<StoredEvent>>> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < BATCH_EVENTS && bytes < BATCH_BYTES {
            for lane in &mut self.lanes {
                lane.look_ahead(&self.source).await?;
            }
            self.lanes.retain(|lane| lane.next_arrival().is_some());
            let order = |lane: &Lane| lane.next_arrival().unwrap_or(u64::MAX);
            self.lanes.sort_by_key(order);
            // Up to this number the first lane is ahead of all others.
            let until = self.lanes.get(1).map_or(u64::MAX, order);
            let Some(lane) = self.lanes.first_mut() else { break };
            if lane.events.is_empty() {
                lane.take_block().await?;
            }
            while batch.len() < BATCH_EVENTS && bytes < BATCH_BYTES {
                let Some(event) = lane.events.pop_front_if(|event| event.arrival <= until) else {
                    break;
                };
                bytes += size(&event);
                batch.push(event);
            }
        }
        Ok((!batch.is_empty()).then_some(batch))
    }
}

/// The number of events of a selection. Opens only the blocks whose summaries do not
/// decide.
///
/// # Errors
/// When the store cannot be read or a block is damaged.
pub async fn count(store: &Store, project: ProjectId, selection: Selection) -> Result<u64> {
    let mut scan = Scan::begin(store, project, selection).await?;
    let mut reading: JoinSet<Result<usize>> = JoinSet::new();
    let mut count = 0;
    for lane in &mut scan.lanes {
        loop {
            lane.find(&scan.source).await?;
            let Some(block) = lane.found.pop_front() else { break };
            match block.verdict {
                Verdict::Nothing => {}
                Verdict::All(events) => count += events,
                Verdict::Something(_) => {
                    let block_ref = (lane.partition, block.first);
                    let source = Arc::clone(&scan.source);
                    reading.spawn(async move { Ok(source.read(block_ref).await?.len()) });
                    if reading.len() >= RECORDS_PER_STATEMENT {
                        count += ended(reading.join_next().await)?;
                    }
                }
            }
        }
    }
    while !reading.is_empty() {
        count += ended(reading.join_next().await)?;
    }
    Ok(count)
}

/// The approximate number of events of a selection, from the summaries of blocks alone.
/// This is fast even when many blocks would have to be opened.
pub async fn estimate(store: &Store, project: ProjectId, selection: Selection) -> Result<u64> {
    let mut scan = Scan::begin(store, project, selection).await?;
    let mut about: u64 = 0;
    for lane in &mut scan.lanes {
        loop {
            lane.find(&scan.source).await?;
            let Some(block) = lane.found.pop_front() else { break };
            about = about.saturating_add(match block.verdict {
                Verdict::Nothing => 0,
                Verdict::All(events) | Verdict::Something(events) => events,
            });
        }
    }
    Ok(about)
}

fn ended(read: Option<Result<Result<usize>, tokio::task::JoinError>>) -> Result<u64> {
    match read {
        Some(read) => Ok(read.map_err(|_| Error::Stopped)?? as u64),
        None => Ok(0),
    }
}

impl EventSource {
    /// The selected events of a block.
    async fn read(&self, block_ref: BlockRef) -> Result<Vec<StoredEvent>> {
        let mut events = read_block(&self.store, self.project, block_ref).await?;
        events.retain(|event| self.selection.takes(event));
        Ok(events)
    }

    /// The partitions that may have selected events.
    async fn lanes(&self) -> Result<Vec<Lane>> {
        let mut lanes = Vec::new();
        for (partition, head) in heads(&self.store, self.project).await? {
            let last = u64::try_from(head.last).unwrap_or(0);
            if head.count == 0 || last <= self.selection.after {
                continue;
            }
            let begin = self.selection.after.saturating_add(1);
            // The block that holds the first number may begin before it.
            let from = floor(&self.store, self.project, partition, begin).await?.unwrap_or(begin);
            lanes.push(Lane { from: Some(from), ..Lane::new(partition) });
        }
        Ok(lanes)
    }

    /// Lanes with all blocks that have events in a range of event time.
    async fn lanes_by_time(&self, time: TimeRange) -> Result<Vec<Lane>> {
        let mut lanes: Vec<Lane> = (0..PARTITIONS).map(Lane::new).collect();
        // Cut to the times of stored events: the range may have no beginning.
        let heads = heads(&self.store, self.project).await?;
        let spans = || heads.values().filter_map(Head::span);
        let (from, to) = (spans().map(|span| span.from).min(), spans().map(|span| span.to).max());
        let (Some(from), Some(to)) = (from, to) else { return Ok(lanes) };
        let (start, end) = (time.start.max(from), time.end.min(to.saturating_add(1)));
        if start >= end {
            return Ok(lanes);
        }
        let block_refs = self.block_refs(TimeRange { start, end }).await?;
        // In order, so the blocks of each lane are too.
        let block_refs: Vec<BlockRef> = block_refs.into_iter().collect();
        for some in block_refs.chunks(FETCH) {
            let id =
                |(partition, first): &BlockRef| keys::summary(self.project, *partition, *first);
            let ids: Vec<RecordId> = some.iter().map(id).collect();
            let briefs = self.store.db.get::<Brief>(BRIEFS_OF, ids).await?;
            for brief in briefs.into_iter().flatten() {
                let partition = partition_of(&brief.id, 1, BRIEFS_OF.name)?;
                if let Some(lane) = lanes.get_mut(usize::from(partition)) {
                    lane.add(&self.selection, &brief, BRIEFS_OF.name)?;
                }
            }
        }
        Ok(lanes)
    }

    /// The keys of the blocks with events in a range of event time.
    async fn block_refs(&self, time: TimeRange) -> Result<BTreeSet<BlockRef>> {
        let mut block_refs = BTreeSet::new();
        for width in keys::WIDTHS {
            let mut pointers = Pointers::new(self.project, width, time);
            while let Some(found) = pointers.next(&self.store).await? {
                block_refs
                    .extend(found.into_iter().filter(|(_, first)| *first <= self.selection.up_to));
            }
        }
        Ok(block_refs)
    }
}

impl Lane {
    fn new(partition: u16) -> Self {
        Self {
            partition,
            found: VecDeque::new(),
            from: None,
            width: FIRST_WIDTH,
            ahead: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// No later event of this lane has a lower arrival number; `None`: there are no more.
    fn next_arrival(&self) -> Option<u64> {
        let event = self.events.front().map(|event| event.arrival);
        event.or_else(|| self.ahead.front().map(|(first, _)| *first))
    }

    fn add(&mut self, selection: &Selection, brief: &Brief, name: &'static str) -> Result<()> {
        let first = first_of(&brief.id, 2, name)?;
        match selection.judge(first, brief) {
            Verdict::Nothing => {}
            verdict => self.found.push_back(Block { first, verdict }),
        }
        Ok(())
    }

    /// Searches for blocks if none is waiting.
    async fn find(&mut self, source: &EventSource) -> Result<()> {
        let int = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        while self.found.is_empty() {
            let Some(from) = self.from else { break };
            let all = source.selection.up_to.saturating_add(1);
            if from >= all {
                self.from = None;
                break;
            }
            let end = from.saturating_add(self.width).min(all);
            let (project, partition) = (source.project.0, i64::from(self.partition));
            let low = [project, partition, int(from)];
            let high = [project, partition, int(end)];
            let vars = bind! { range: range("event_summary", &low, &high) };
            let briefs: Vec<Brief> = source.store.db.run(BRIEFS, vars).await?.rows(0)?;
            self.width = match briefs.len() {
                0..=FEW => self.width.saturating_mul(4),
                MANY.. => (self.width / 4).max(1),
                _ => self.width,
            };
            for brief in &briefs {
                self.add(&source.selection, brief, BRIEFS.name)?;
            }
            self.from = Some(end);
        }
        Ok(())
    }

    /// Begins to read the blocks that are needed next.
    async fn look_ahead(&mut self, source: &Arc<EventSource>) -> Result<()> {
        while self.ahead.len() < AHEAD {
            self.find(source).await?;
            let Some(block) = self.found.pop_front() else { break };
            let (source, at) = (Arc::clone(source), (self.partition, block.first));
            let reading = tokio::spawn(async move { source.read(at).await });
            self.ahead.push_back((block.first, reading));
        }
        Ok(())
    }

    /// Waits for the next block.
    async fn take_block(&mut self) -> Result<()> {
        let Some((_, reading)) = self.ahead.pop_front() else { return Ok(()) };
        // The task ends early only when the runtime shuts down.
        self.events = reading.await.map_err(|_| Error::Stopped)??.into();
        Ok(())
    }
}

/// The first arrival number of the newest block that begins at `at` or before.
pub(super) async fn floor(
    store: &Store,
    project: ProjectId,
    partition: u16,
    at: u64,
) -> Result<Option<u64>> {
    let end = at.saturating_add(1);
    let (mut high, mut width) = (end, FIRST_WIDTH);
    loop {
        let low = end.saturating_sub(width);
        let firsts = firsts_between(store, project, partition, low, high).await?;
        if let Some(first) = firsts.last() {
            return Ok(Some(*first));
        }
        if low == 0 {
            return Ok(None);
        }
        (high, width) = (low, width.saturating_mul(4));
    }
}

/// Bytes that an event takes for the allocations of its texts, in addition to the texts.
const ALLOCATIONS: usize = 64;

/// The approximate bytes of an event in memory.
pub fn size(event: &StoredEvent) -> usize {
    size_of::<StoredEvent>()
        + ALLOCATIONS
        + event.event.len()
        + event.distinct_id.len()
        + event.properties.len()
        + event.elements_chain.len()
}
