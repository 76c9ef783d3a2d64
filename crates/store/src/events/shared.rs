//! Blocks in memory, for all readers: those that were filled or read last.
//!
//! The events of a block at an index never change, and further ones are only added at its
//! end. So a block in memory is right as far as it goes. A reader knows from the storage
//! how far it must go, and otherwise reads the storage. What is here is committed: a
//! consumer shares the events of a batch after its transaction, and readers share what they
//! have read. Only erasing a person changes blocks. The blocks of the project are then removed
//! from here, and what a reader has read before is not kept. The same holds for the columns
//! of blocks that questions have read.
//!
//! What belongs here: which blocks are in memory, as far as which event. What does not:
//! reading and decoding a block (`read`), filling it (`weir-ingest`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quick_cache::Weighter;
use quick_cache::unsync::Cache;
use weir_model::ProjectId;

use super::block::{BlockBuilder, StoredEvent, Summary, decode_plain};
use super::columns::BlockColumns;
use super::read::BlockRef;
use super::scan::size;
use crate::Store;

/// Upper bound of the bytes of the blocks in memory.
const BLOCK_BYTES: u64 = 16 << 20;
/// A larger block is not kept: it would take the place of all others.
const LARGEST: usize = 4 << 20;
/// Upper bound of the bytes of the summaries in memory.
const SUMMARY_BYTES: u64 = 8 << 20;
/// Upper bound of the bytes of the columns of blocks in memory.
const COLUMN_BYTES: u64 = 16 << 20;
/// Numbers of blocks, summaries and columns of blocks to expect. The caches size their tables
/// by them.
const BLOCKS: usize = 64;
const SUMMARIES: usize = 20_000;
const COLUMNS: usize = 512;
/// Bytes that an entry takes beside its content.
const OVERHEAD: usize = 100;
/// Blocks at the end of a batch that a consumer shares. The newest events of a partition
/// are in them.
pub const NEWEST: usize = 2;

type Key = (ProjectId, BlockRef);

/// The events of a block, or of its beginning, in order of arrival.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedEvents {
    pieces: Vec<Arc<Vec<StoredEvent>>>,
}

impl SharedEvents {
    pub(super) fn iter(&self) -> impl Iterator<Item = &StoredEvent> {
        self.pieces.iter().flat_map(|piece| piece.iter())
    }

    /// The events from the newest to the oldest.
    pub(super) fn iter_back(&self) -> impl Iterator<Item = &StoredEvent> {
        self.pieces.iter().rev().flat_map(|piece| piece.iter().rev())
    }

    pub(super) fn iter_at(&self) -> impl Iterator<Item = (Index, &StoredEvent)> {
        let pieces = self.pieces.iter().enumerate();
        pieces.flat_map(|(piece, events)| {
            events.iter().enumerate().map(move |(at, event)| (Index { piece, at }, event))
        })
    }

    pub(super) fn get(&self, index: Index) -> Option<&StoredEvent> {
        self.pieces.get(index.piece)?.get(index.at)
    }
}

impl From<Vec<StoredEvent>> for SharedEvents {
    fn from(events: Vec<StoredEvent>) -> Self {
        Self { pieces: vec![Arc::new(events)] }
    }
}

/// The index of an event in a block in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Index {
    piece: usize,
    at: usize,
}

/// Events that were added together. A consumer shares them encoded, as they are in their
/// block: most of them are replaced before a reader needs them.
enum Piece {
    Encoded(Vec<u8>),
    Decoded(Arc<Vec<StoredEvent>>),
}

impl Piece {
    /// The events. `None` if they cannot be decoded.
    fn events(&mut self) -> Option<Arc<Vec<StoredEvent>>> {
        if let Self::Encoded(bytes) = self {
            *self = Self::Decoded(Arc::new(decode_plain(bytes).ok()?));
        }
        match self {
            Self::Decoded(events) => Some(Arc::clone(events)),
            Self::Encoded(_) => None,
        }
    }
}

struct Held {
    pieces: Vec<Arc<Mutex<Piece>>>,
    count: usize,
    /// The arrival number of the last event.
    last: u64,
    bytes: usize,
    /// Whether no further events are added.
    is_closed: bool,
}

impl Held {
    fn of(events: SharedEvents, is_closed: bool) -> Self {
        let bytes = events.iter().map(size).sum();
        let (count, last) = (events.iter().count(), events.iter().last().map(|e| e.arrival));
        let pieces =
            events.pieces.into_iter().map(|piece| Arc::new(Mutex::new(Piece::Decoded(piece))));
        Self { pieces: pieces.collect(), count, last: last.unwrap_or(0), bytes, is_closed }
    }

    fn added(added: Added, is_closed: bool) -> Self {
        let Added { first: _, index: _, count, last, encoded } = added;
        // What they take once they are decoded.
        let bytes = encoded.len() + count * size_of::<StoredEvent>();
        let pieces = vec![Arc::new(Mutex::new(Piece::Encoded(encoded)))];
        Self { pieces, count, last, bytes, is_closed }
    }

    fn add(&mut self, more: Self) {
        self.pieces.extend(more.pieces);
        self.count += more.count;
        self.last = self.last.max(more.last);
        self.bytes += more.bytes;
        self.is_closed |= more.is_closed;
    }
}

#[derive(Debug, Clone)]
struct BlockWeight;

impl Weighter<Key, Held> for BlockWeight {
    fn weight(&self, _key: &Key, held: &Held) -> u64 {
        (OVERHEAD + held.bytes) as u64
    }
}

#[derive(Debug, Clone)]
struct SummaryWeight;

impl Weighter<Key, Arc<Summary>> for SummaryWeight {
    fn weight(&self, _key: &Key, summary: &Arc<Summary>) -> u64 {
        let seconds = summary.seconds.as_ref().map_or(0, |seconds| seconds.len());
        (OVERHEAD + size_of::<Summary>() + seconds) as u64
    }
}

#[derive(Debug, Clone)]
struct ColumnsWeight;

impl Weighter<Key, Arc<BlockColumns>> for ColumnsWeight {
    fn weight(&self, _key: &Key, columns: &Arc<BlockColumns>) -> u64 {
        (OVERHEAD + columns.memory()) as u64
    }
}

/// The last event that a reader needs of a block in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NeededEnd {
    /// To the event with this arrival number.
    To(u64),
    /// To the end of a block to which no further events are added.
    End,
}

/// The blocks in memory.
pub(crate) struct SharedBlocks {
    blocks: Mutex<Cache<Key, Held, BlockWeight>>,
    /// Summaries of closed blocks, without names and distinct ids.
    summaries: Mutex<Cache<Key, Arc<Summary>, SummaryWeight>>,
    /// Columns of closed blocks, also with events that are to be erased.
    columns: Mutex<Cache<Key, Arc<BlockColumns>, ColumnsWeight>>,
    /// How often blocks were removed.
    removals: AtomicU64,
}

impl Default for SharedBlocks {
    fn default() -> Self {
        Self {
            blocks: Mutex::new(Cache::with_weighter(BLOCKS, BLOCK_BYTES, BlockWeight)),
            summaries: Mutex::new(Cache::with_weighter(SUMMARIES, SUMMARY_BYTES, SummaryWeight)),
            columns: Mutex::new(Cache::with_weighter(COLUMNS, COLUMN_BYTES, ColumnsWeight)),
            removals: AtomicU64::new(0),
        }
    }
}

impl SharedBlocks {
    pub(super) fn get(
        &self,
        project: ProjectId,
        block_ref: BlockRef,
        reach: NeededEnd,
    ) -> Option<SharedEvents> {
        let pieces = {
            let blocks = lock(&self.blocks);
            let held = blocks.get(&(project, block_ref))?;
            let is_enough = match reach {
                NeededEnd::To(last) => held.last >= last,
                NeededEnd::End => held.is_closed,
            };
            is_enough.then(|| held.pieces.clone())?
        };
        // The first reader decodes them, while other blocks can be used.
        let pieces: Option<_> = pieces.iter().map(|piece| lock(piece).events()).collect();
        Some(SharedEvents { pieces: pieces? })
    }

    /// How often blocks were removed so far. A reader asks before it reads the storage.
    pub(super) fn removals(&self) -> u64 {
        self.removals.load(Ordering::Acquire)
    }

    /// Keeps a block as it was read from the storage, unless blocks were removed since:
    /// `removals` is the number from before it was read.
    pub(super) fn put(
        &self,
        project: ProjectId,
        block_ref: BlockRef,
        events: SharedEvents,
        is_closed: bool,
        removals: u64,
    ) {
        let held = Held::of(events, is_closed);
        if held.count == 0 || held.bytes > LARGEST {
            return;
        }
        let mut blocks = lock(&self.blocks);
        if self.removals() != removals {
            return;
        }
        let present = blocks.peek(&(project, block_ref));
        // A consumer may have added events since.
        if present.is_none_or(|present| (present.last, present.is_closed) < (held.last, is_closed))
        {
            blocks.insert((project, block_ref), held);
        }
    }

    /// Adds events to a block, the first of them at `index`.
    fn add(&self, project: ProjectId, block_ref: BlockRef, index: usize, added: Held) {
        let key = (project, block_ref);
        let mut blocks = lock(&self.blocks);
        if index == 0 && added.bytes <= LARGEST {
            blocks.insert(key, added);
            return;
        }
        if let Some(mut held) = blocks.get_mut(&key) {
            if held.count >= index + added.count && held.last >= added.last {
                // A reader has read them already.
                held.is_closed |= added.is_closed;
                return;
            }
            if held.count == index && held.bytes + added.bytes <= LARGEST {
                held.add(added);
                return;
            }
        }
        // Events before these are missing here, or it has become too large.
        blocks.remove(&key);
    }

    /// The summaries of these blocks that are in memory, in the same order.
    pub(super) fn summaries(
        &self,
        project: ProjectId,
        block_refs: &[BlockRef],
    ) -> Vec<Option<Arc<Summary>>> {
        let summaries = lock(&self.summaries);
        let of = |block_ref: &BlockRef| summaries.get(&(project, *block_ref)).map(Arc::clone);
        block_refs.iter().map(of).collect()
    }

    /// Keeps the summary of a block to which no further events are added, unless blocks were
    /// removed since: `removals` is the number from before it was read.
    pub(super) fn put_summary(
        &self,
        project: ProjectId,
        block_ref: BlockRef,
        summary: Arc<Summary>,
        removals: u64,
    ) {
        let mut summaries = lock(&self.summaries);
        if self.removals() == removals {
            summaries.insert((project, block_ref), summary);
        }
    }

    /// The columns of a closed block, if they are in memory.
    pub(super) fn columns(
        &self,
        project: ProjectId,
        block_ref: BlockRef,
    ) -> Option<Arc<BlockColumns>> {
        lock(&self.columns).get(&(project, block_ref)).map(Arc::clone)
    }

    /// Keeps the columns of a block to which no further events are added, unless blocks were
    /// removed since: `removals` is the number from before it was read.
    pub(super) fn put_columns(
        &self,
        project: ProjectId,
        block_ref: BlockRef,
        columns: Arc<BlockColumns>,
        removals: u64,
    ) {
        let mut kept = lock(&self.columns);
        if self.removals() == removals {
            kept.insert((project, block_ref), columns);
        }
    }

    /// Removes the blocks of a project.
    pub(crate) fn forget(&self, project: ProjectId) {
        // Before the locks: what is put later is compared with this number.
        self.removals.fetch_add(1, Ordering::AcqRel);
        lock(&self.blocks).retain(|(of, _), _| *of != project);
        lock(&self.summaries).retain(|(of, _), _| *of != project);
        lock(&self.columns).retain(|(of, _), _| *of != project);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Events that a batch has added to one block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    /// The first arrival number of the block.
    first: u64,
    /// The index of the first of the events in the block.
    index: u32,
    /// The number of the events.
    count: usize,
    /// The arrival number of the last of them.
    last: u64,
    /// The events as they are in the block before compression.
    encoded: Vec<u8>,
}

impl Added {
    /// The events of a block from the index `index` on, which begin at the byte `begin`.
    /// `last` is the arrival number of the last one.
    pub fn of(block: &BlockBuilder, index: u32, begin: usize, last: u64) -> Self {
        let encoded = block.encoded_from(begin).unwrap_or_default().to_vec();
        let count = usize::try_from(block.count()).unwrap_or(0).saturating_sub(index as usize);
        Self { first: block.first, index, count, last, encoded }
    }
}

/// Shares the events that a committed batch has added to the last blocks of a project, in
/// the order of the blocks. No further events are added to any but the last of them.
pub fn share(store: &Store, project: ProjectId, partition: u16, blocks: Vec<Added>) {
    let count = blocks.len();
    for (number, added) in blocks.into_iter().enumerate() {
        let (block_ref, index) = ((partition, added.first), added.index as usize);
        store.blocks.add(project, block_ref, index, Held::added(added, number + 1 < count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::block::tests::event;

    const PROJECT: ProjectId = ProjectId(7);
    const BLOCK: BlockRef = (0, 1);

    fn events(from: u64, to: u64) -> SharedEvents {
        let events: Vec<StoredEvent> = (from..=to).map(|n| event(n, "a")).collect();
        events.into()
    }

    /// Events as a consumer shares them.
    fn held(from: u64, to: u64) -> Held {
        let mut block = BlockBuilder::begin(PROJECT, &event(from, "a")).unwrap();
        for arrival in from + 1..=to {
            block.push(&event(arrival, "a")).unwrap();
        }
        Held::added(Added::of(&block, 0, 0, to), false)
    }

    fn put(blocks: &SharedBlocks, events: SharedEvents, is_closed: bool) {
        blocks.put(PROJECT, BLOCK, events, is_closed, blocks.removals());
    }

    fn last(blocks: &SharedBlocks, reach: NeededEnd) -> Option<u64> {
        let events = blocks.get(PROJECT, BLOCK, reach)?;
        let arrivals: Vec<u64> = events.iter().map(|event| event.arrival).collect();
        assert!(arrivals.iter().copied().eq(1..=arrivals.len() as u64), "{arrivals:?}");
        arrivals.last().copied()
    }

    #[test]
    fn a_block_serves_readers_who_need_no_later_event() {
        let blocks = SharedBlocks::default();
        assert_eq!(last(&blocks, NeededEnd::To(0)), None);
        blocks.add(PROJECT, BLOCK, 0, held(1, 2));
        assert_eq!(last(&blocks, NeededEnd::To(2)), Some(2));
        assert_eq!(last(&blocks, NeededEnd::To(3)), None);
        assert_eq!(last(&blocks, NeededEnd::End), None);
        blocks.add(PROJECT, BLOCK, 2, held(3, 5));
        assert_eq!(last(&blocks, NeededEnd::To(3)), Some(5));
        // Read before the events were added.
        put(&blocks, events(1, 4), false);
        assert_eq!(last(&blocks, NeededEnd::To(5)), Some(5));
        put(&blocks, events(1, 5), true);
        assert_eq!(last(&blocks, NeededEnd::End), Some(5));
        assert!(blocks.get(ProjectId(8), BLOCK, NeededEnd::To(0)).is_none());
        assert!(blocks.get(PROJECT, (1, 1), NeededEnd::To(0)).is_none());
    }

    #[test]
    fn a_block_with_a_gap_is_removed() {
        let blocks = SharedBlocks::default();
        blocks.add(PROJECT, BLOCK, 0, held(1, 2));
        blocks.add(PROJECT, BLOCK, 3, held(4, 5));
        assert_eq!(last(&blocks, NeededEnd::To(0)), None);
        blocks.add(PROJECT, BLOCK, 5, held(6, 7));
        assert_eq!(last(&blocks, NeededEnd::To(0)), None);
        put(&blocks, events(1, 7), false);
        // A reader was faster than the consumer.
        blocks.add(PROJECT, BLOCK, 5, held(6, 7));
        blocks.add(PROJECT, BLOCK, 7, held(8, 8));
        assert_eq!(last(&blocks, NeededEnd::To(8)), Some(8));
        blocks.forget(ProjectId(8));
        assert_eq!(last(&blocks, NeededEnd::To(8)), Some(8));
        blocks.forget(PROJECT);
        assert_eq!(last(&blocks, NeededEnd::To(0)), None);
    }

    /// A reader and a consumer are slower than an erasure.
    #[test]
    fn a_block_from_before_an_erasure_is_not_kept() {
        let blocks = SharedBlocks::default();
        let removals = blocks.removals();
        blocks.forget(PROJECT);
        blocks.put(PROJECT, BLOCK, events(1, 5), true, removals);
        assert_eq!(last(&blocks, NeededEnd::To(0)), None);
        // The consumer shares all five events, and two of them were erased.
        blocks.add(PROJECT, BLOCK, 0, held(1, 5));
        blocks.add(PROJECT, BLOCK, 3, held(6, 7));
        assert_eq!(last(&blocks, NeededEnd::To(0)), None);
    }

    #[test]
    fn columns_from_before_an_erasure_are_not_kept() {
        let blocks = SharedBlocks::default();
        let block = BlockBuilder::begin(PROJECT, &event(1, "a")).unwrap();
        let columns = BlockColumns::of(block.encoded_from(0).unwrap(), 1).unwrap();
        let columns = Arc::new(columns);
        let removals = blocks.removals();
        blocks.forget(PROJECT);
        blocks.put_columns(PROJECT, BLOCK, Arc::clone(&columns), removals);
        assert_eq!(blocks.columns(PROJECT, BLOCK), None);
        blocks.put_columns(PROJECT, BLOCK, Arc::clone(&columns), blocks.removals());
        blocks.forget(ProjectId(8));
        assert_eq!(blocks.columns(PROJECT, BLOCK), Some(columns));
        blocks.forget(PROJECT);
        assert_eq!(blocks.columns(PROJECT, BLOCK), None);
    }

    #[test]
    fn large_blocks_are_not_kept_and_all_together_are_bounded() {
        let blocks = SharedBlocks::default();
        let large = |arrival: u64, bytes: usize| {
            let event = StoredEvent { properties: "x".repeat(bytes), ..event(arrival, "a") };
            SharedEvents::from(vec![event])
        };
        let of_size = |arrival: u64, bytes: usize| Held::of(large(arrival, bytes), false);
        blocks.add(PROJECT, BLOCK, 0, of_size(1, LARGEST));
        assert_eq!(last(&blocks, NeededEnd::To(0)), None);
        put(&blocks, large(1, LARGEST), true);
        assert_eq!(last(&blocks, NeededEnd::To(0)), None);
        blocks.add(PROJECT, BLOCK, 0, of_size(1, LARGEST / 2));
        blocks.add(PROJECT, BLOCK, 1, of_size(2, LARGEST / 2));
        assert_eq!(last(&blocks, NeededEnd::To(0)), None, "it has become too large");
        for first in 1..200 {
            blocks.add(PROJECT, (0, first), 0, of_size(first, LARGEST / 4));
        }
        assert!(lock(&blocks.blocks).weight() <= BLOCK_BYTES);
    }

    #[test]
    fn events_that_cannot_be_decoded_are_read_from_the_storage() {
        let blocks = SharedBlocks::default();
        let mut damaged = held(1, 2);
        let encoded = vec![9; 9];
        damaged.pieces = vec![Arc::new(Mutex::new(Piece::Encoded(encoded)))];
        blocks.add(PROJECT, BLOCK, 0, damaged);
        assert_eq!(last(&blocks, NeededEnd::To(0)), None);
    }
}
