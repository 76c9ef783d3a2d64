//! The events of a project at one moment, column by column: what a question reads.
//!
//! A [`snapshot`] says which parts the events consist of: segments, and blocks that are not
//! sealed. It reads all of that in one transaction, so each event is in exactly one part.
//! A reader opens one part after another ([`open_part`]). It sees no later event:
//!
//! - An open block may have got further events. They are cut off.
//! - A block may have been sealed. It is then read from its segment.
//! - A segment may have been merged. Its file stays for ten minutes, and is read meanwhile.
//! - A segment may have been rewritten without erased events, or removed for its age, or its
//!   merge was earlier. If it is still open, it is read to its end. Otherwise the part is
//!   gone, and the reader makes the snapshot again.
//!
//! Events of erased persons that are still stored are rows of the parts. An open part says
//! which rows these are ([`OpenSegment::erased_rows`], [`OpenBlock::erased_rows`]), and so does
//! the snapshot for rows whose distinct ids have numbers ([`EventSnapshot::erased_rows`]). The
//! reader must omit them. The snapshot has the list of erasures from after its transaction,
//! and says whether there are later ones ([`EventSnapshot::has_later_erasures`]).
//!
//! What belongs here: the parts, and their columns. What does not: what a question makes of
//! them, and the order of the values in a file (`weir-segments`).

mod block;
mod parts;
mod segment;

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use weir_model::ProjectId;
use weir_segments::{Bits, Error as FileError, TypedColumn};

use super::block::{Span, Summary};
use super::read::BlockRef;
use super::segments::{self, SealedSegment};
use super::{PARTITIONS, TimeRange};
use crate::erasures::Erased;
use crate::people::People;
use crate::{Error, Result, Store};

pub use self::block::{BlockColumns, OpenBlock};
pub use self::segment::OpenSegment;

/// The number of partitions, as a length.
const LANES: usize = PARTITIONS as usize;
/// Bytes of blocks that a snapshot has open at a time, before compression.
pub(super) const OPEN_BYTES: u32 = 16 << 20;

/// The events of a project at one moment.
#[derive(Debug)]
pub struct EventSnapshot {
    project: ProjectId,
    parts: Vec<Part>,
    version: SnapshotVersion,
    /// The erasures that are not done. `None`: there are none.
    erased: Option<Arc<Erased>>,
    /// The typed columns of the project.
    known: Vec<TypedColumn>,
    /// Permits for bytes of blocks, at most [`OPEN_BYTES`].
    pub(super) room: Arc<Semaphore>,
}

/// Which events a snapshot has. Snapshots of a project with equal versions have the same
/// events, as long as the process runs: what was computed from one holds for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SnapshotVersion {
    /// The last arrival number of each partition.
    last: [u64; LANES],
    /// How many events were removed for their age or with their persons.
    removed: u64,
    /// The number of the list of erasures.
    erasures: u64,
}

/// A part of the events of a snapshot: a segment, or a block that is not sealed.
#[derive(Debug, Clone)]
pub struct Part {
    times: Span,
    events: u64,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Segment(SealedSegment),
    Block(Block),
}

/// A block that was not sealed when the snapshot was made.
#[derive(Debug, Clone, Copy)]
struct Block {
    block_ref: BlockRef,
    /// The arrival number of its last event in the snapshot.
    last: u64,
    /// Bytes of its events before compression.
    bytes: u64,
    /// Whether further events may be added to it.
    is_open: bool,
}

/// What a reader needs of a block. Segments are read column by column in either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    /// Arrival numbers, times, names and distinct ids. They are kept in memory for other
    /// questions.
    Columns,
    /// The events too ([`OpenBlock::each_event`]).
    Events,
}

/// An open part.
#[derive(Debug)]
pub enum OpenPart {
    /// A segment.
    Segment(OpenSegment),
    /// A block that was not sealed when the snapshot was made.
    Block(OpenBlock),
}

/// The events of a project with a time in a range, at this moment: the parts that may have
/// such events.
///
/// # Errors
/// [`Error::TooLarge`] when very many blocks wait to be sealed; errors of the store.
pub async fn snapshot(
    store: &Store,
    project: ProjectId,
    times: TimeRange,
) -> Result<EventSnapshot> {
    let parts::Found { last, removed, mut parts } = parts::find(store, project, times).await?;
    parts.sort_by_key(|part| std::cmp::Reverse(part.times.to));
    // After the events: an erasure that has taken some of them is in the list.
    let (erased, erasures) = store.erasures.numbered(project);
    // After the segments: columns are added before a segment has them.
    let known = segments::typed_columns(store, project).await?;
    Ok(EventSnapshot {
        project,
        parts,
        version: SnapshotVersion { last, removed, erasures },
        erased,
        known,
        room: Arc::new(Semaphore::new(OPEN_BYTES as usize)),
    })
}

/// Opens a part of a snapshot: a segment, which is fetched first if it is in the bucket alone,
/// or the columns of a block. `None`: the part is gone, and the snapshot is to be made again.
///
/// A block that is opened with its events keeps room in memory until it is dropped. Another
/// one waits for room. So a task that holds all open blocks must not wait for the next one.
///
/// # Errors
/// [`Error::Damaged`] when a segment is missing or damaged, [`Error::Shape`] when a block is
/// damaged; errors of the bucket and of the store.
pub async fn open_part(
    store: &Store,
    snapshot: &EventSnapshot,
    part: &Part,
    needed: Needed,
) -> Result<Option<OpenPart>> {
    match &part.kind {
        Kind::Segment(sealed) => {
            let columns = segments::open_columns(store, sealed, &snapshot.known).await?;
            let open = columns.map(|columns| OpenSegment::of(snapshot, sealed, columns));
            Ok(open.map(OpenPart::Segment))
        }
        Kind::Block(block) => {
            Ok(block::open(store, snapshot, *block, needed).await?.map(OpenPart::Block))
        }
    }
}

/// Opens a segment again that could not be read because of `error`: if the local copy is
/// damaged, another one is fetched from the bucket.
///
/// # Errors
/// `error` as one of the store ([`Error::Damaged`], [`Error::File`]) when there is no sound
/// copy; errors of the bucket and of the store.
pub async fn open_replaced(
    store: &Store,
    snapshot: &EventSnapshot,
    segment: &OpenSegment,
    error: FileError,
) -> Result<OpenSegment> {
    let sealed = segment.sealed();
    let columns = segments::open_columns_again(store, sealed, &snapshot.known, error).await?;
    Ok(OpenSegment::of(snapshot, sealed, columns))
}

impl EventSnapshot {
    /// The project.
    pub fn project(&self) -> ProjectId {
        self.project
    }

    /// The parts that may have events in the range of times, the one with the latest event
    /// first. A part may have events of other times too.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Which events these are.
    pub fn version(&self) -> SnapshotVersion {
        self.version
    }

    /// Whether persons may have been erased since. Then an answer from these events must not be
    /// given, and the snapshot is to be made again.
    pub fn has_later_erasures(&self, store: &Store) -> bool {
        match (&self.erased, store.erasures.of(self.project)) {
            (Some(own), Some(current)) => !Arc::ptr_eq(own, &current),
            (None, Some(_)) => true,
            // They are done.
            (_, None) => false,
        }
    }

    /// Whether rows of a part, by its number in [`parts`](Self::parts), may be events of erased
    /// persons. Their first arrival number is this one.
    pub fn may_have_erased(&self, part: usize, first_arrival: u64) -> bool {
        let (Some(erased), Some(part)) = (&self.erased, self.parts.get(part)) else { return false };
        first_arrival <= erased.bound(part.partition())
    }

    /// Sets the bit of each row of a part, by its number, that is an event of an erased person.
    /// The rows have these arrival numbers, and distinct ids with these numbers in `people`.
    pub fn erased_rows(
        &self,
        part: usize,
        arrivals: &[u64],
        ids: &[u32],
        people: &People,
        into: &mut Bits,
    ) {
        let (Some(erased), Some(part)) = (&self.erased, self.parts.get(part)) else { return };
        let partition = part.partition();
        people.each_first_id(ids, |row, first_id| {
            let bound = erased.bound_of_first_id(partition, first_id);
            if arrivals.get(row).is_some_and(|arrival| bound.is_some_and(|at| *arrival <= at)) {
                into.set(row);
            }
        });
    }

    /// Waits for room for the events of a block.
    async fn room(&self, bytes: u64) -> Result<OwnedSemaphorePermit> {
        // A larger block is read alone.
        let bytes = u32::try_from(bytes).unwrap_or(OPEN_BYTES).min(OPEN_BYTES);
        Arc::clone(&self.room).acquire_many_owned(bytes).await.map_err(|_| Error::Stopped)
    }
}

impl Part {
    /// A segment; `None`: it has no events in the range of times.
    fn of_segment(sealed: SealedSegment, times: TimeRange) -> Option<Self> {
        let span = sealed.times;
        let has_some = span.from < times.end && span.to >= times.start;
        let events = sealed.rows;
        has_some.then_some(Self { times: span, events, kind: Kind::Segment(sealed) })
    }

    /// A block; `None`: it has no events in the range of times.
    fn of_block(block: Block, summary: &Summary, times: TimeRange) -> Option<Self> {
        let latest = summary.latest_before(times.end)?;
        let span = Span { from: summary.from_time, to: summary.to_time };
        let events = u64::try_from(summary.count).unwrap_or(0);
        (latest >= times.start).then_some(Self { times: span, events, kind: Kind::Block(block) })
    }

    /// The partition of its events.
    fn partition(&self) -> u16 {
        match &self.kind {
            Kind::Segment(sealed) => sealed.partition,
            Kind::Block(block) => block.block_ref.0,
        }
    }

    /// Its earliest and latest event time.
    pub fn times(&self) -> Span {
        self.times
    }

    /// The number of its events, also of those that are to be erased.
    pub fn events(&self) -> u64 {
        self.events
    }
}
