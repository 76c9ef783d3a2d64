//! Events in compressed, immutable blocks, found by order of arrival, by event time, by
//! distinct id and by uuid.
//!
//! | table | id | holds |
//! |---|---|---|
//! | `event_block` | `[project, partition, first arrival]` | the events of a block, compressed. Sealed blocks have no such record: their events are in a file (`segments`) |
//! | `event_summary` | the same | the data with which a reader can skip a block |
//! | `event_time` | `[project, width, bucket, partition, first arrival]` | nothing: a pointer from a range of event time to a block |
//! | `event_uuid` | `[project, uuid]` | the block of the event and its index; prevents a second one. Not a record (`uuids`). Sealed uuids are in files (`segments`) |
//! | `event_head` | `[project, partition]` | the newest block and the totals |
//! | `event_removed` | project | how many events were removed for their age or with their persons |
//! | `event_segment`, `event_segment_sums`, `event_uuid_run`, `event_columns` | | the catalog of these files (`segments/catalog`) |
//! | `ingest_position` | partition | how far the log is applied |
//!
//! The last block of a (project, partition) stays open: further events are added by
//! rewriting it until it is full, so that a project with little traffic does not have a
//! block per event. Full blocks never change.
//!
//! Invariants: a block holds events of one partition in order of arrival; the live events
//! of one distinct id are all in one partition, and so are the historical events of a
//! project; an event is readable exactly when its position is applied, because both are
//! one transaction. A transformation can change the distinct id of an event, which then
//! stays in its partition ([`is_stray`]). See `docs/adr/0003-event-layout.md`.

mod apply;
mod arrivals;
mod block;
mod by_step;
mod by_time;
mod columns;
mod keys;
mod next;
mod purge;
mod read;
mod received;
mod scan;
mod segments;
mod shared;
mod skip;
mod stored_bytes;
mod uuids;

pub use apply::{
    Apply, Head, NewBlock, Position, ProjectWrite, Sample, WarningCount, apply, position, positions,
};
pub use arrivals::{ArrivalPage, Found, Search, arrivals, search};
pub use block::{BlockBuilder, BorrowedEvent, NewEvent, Span, StoredEvent, Summary};
pub use by_step::{TimeSteps, by_step};
pub use by_time::{Cursor, page, page_until};
pub use columns::{
    BlockColumns, EventSnapshot, Needed, OpenBlock, OpenPart, OpenSegment, Part, SnapshotVersion,
    open_part, open_replaced, snapshot,
};
pub use next::{EventBounds, first_times, next_time};
pub use purge::purge;
pub use read::{head, heads, next_arrivals, open_block, see_each, stored_uuids};
pub use received::last_before;
pub use scan::{Except, Scan, Selection, TimeRange, count, estimate, size};
pub use segments::{
    BucketState, Copied, Dropped, HeldObjects, MergedSegments, Miscount, Old, PersonSnapshots,
    SealBounds, SealReport, SegmentCopies, SegmentFile, Unsound, check_counts, check_files,
    damage_found, drop_older, merge_segments, removed, repair_runs, seal_all, uses_bucket,
    write_persons,
};
pub use shared::{Added, NEWEST, share};
pub use skip::{Begin, skip};
pub use stored_bytes::stored_bytes;

pub(crate) use self::keys::{head as head_key, part};
pub(crate) use self::read::{firsts_between as blocks_between, range, read_whole_block};
pub(crate) use self::segments::{
    DIRECTORY as SEGMENTS, Segments, erase_blocks, erase_segment, erase_snapshot, has_files,
    has_replaced, lock_existing as lock_segments, segment_count, segments_to_check,
    start as start_segments,
};
pub(crate) use self::shared::SharedBlocks;

use weir_model::ProjectId;

/// The number of partitions of live events. Project and distinct id select the partition.
pub const LIVE_PARTITIONS: u16 = 4;
/// The number of partitions of historical events (`historical_migration`). They are
/// separate so that an import never delays live events.
pub const HISTORICAL_PARTITIONS: u16 = 2;
/// The number of all partitions: first the live ones, then the historical ones.
pub const PARTITIONS: u16 = LIVE_PARTITIONS + HISTORICAL_PARTITIONS;

/// The partition of the live events of a distinct id.
///
/// It must never change for a data directory: events of a distinct id stay in order only
/// because all of them are in one partition.
pub fn live_partition(project: ProjectId, distinct_id: &str) -> u16 {
    spread(project, distinct_id, LIVE_PARTITIONS)
}

/// The partition of a project's historical events: one for all of them, so that an import
/// keeps its order (ING-56).
pub fn historical_partition(project: ProjectId) -> u16 {
    LIVE_PARTITIONS + spread(project, "", HISTORICAL_PARTITIONS)
}

/// The partition of a live or historical event.
pub fn partition(project: ProjectId, distinct_id: &str, historical: bool) -> u16 {
    match historical {
        true => historical_partition(project),
        false => live_partition(project, distinct_id),
    }
}

/// Whether a transformation gave an event in this partition this distinct id: such an
/// event stays in the partition of the distinct id that it was sent with.
pub fn is_stray(project: ProjectId, partition: u16, distinct_id: &str) -> bool {
    partition < LIVE_PARTITIONS && partition != live_partition(project, distinct_id)
}

fn spread(project: ProjectId, distinct_id: &str, over: u16) -> u16 {
    let hash = fingerprint(project, distinct_id);
    u16::try_from(hash % u32::from(over)).unwrap_or(0)
}

/// A stable 32-bit fingerprint of a distinct id, used to select a partition and to skip
/// blocks.
pub(crate) fn fingerprint(project: ProjectId, distinct_id: &str) -> u32 {
    // FNV-1a with a final mix: its results are fixed, unlike those of the hashers of std.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in project.0.to_le_bytes().iter().chain(distinct_id.as_bytes()) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    u32::try_from(hash >> 32).unwrap_or(0)
}

#[cfg(test)]
mod tests;
