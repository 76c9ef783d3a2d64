//! Events: compressed, immutable blocks, found by order of arrival, by event
//! time, by distinct id and by uuid.
//!
//! | table | id | holds |
//! |---|---|---|
//! | `event_block` | `[project, partition, first arrival]` | the events of a block, compressed |
//! | `event_summary` | the same | what a reader needs to pass a block over |
//! | `event_time` | `[project, width, bucket, partition, first arrival]` | nothing: leads from a stretch of event time to a block |
//! | `event_uuid` | `[project, uuid]` | where the event is; refuses a second one |
//! | `event_head` | `[project, partition]` | the newest block and the totals |
//! | `ingest_position` | partition | how far the log is applied |
//!
//! The last block of a (project, partition) stays open: further events are
//! added by writing it anew until it is full, so that slow traffic does not
//! leave a block per event. Full blocks never change.
//!
//! Invariants: a block holds events of one partition in order of arrival; the
//! events of one distinct id are all in one partition (one for live, one for
//! historical events); an event is readable exactly when its position is
//! applied, because both are one transaction. See
//! `docs/adr/0003-event-layout.md`.

mod apply;
mod block;
mod by_time;
mod keys;
mod next;
mod purge;
mod read;
mod received;
mod scan;
mod skip;

pub use apply::{
    Apply, Head, NewBlock, Position, ProjectWrite, Sample, WarningCount, apply, position, positions,
};
pub use block::{BlockBuilder, Span, StoredEvent, Summary};
pub use by_time::{Cursor, page, page_until};
pub use next::{Wanted, first_times, next_time};
pub use purge::purge;
pub use read::{
    ArrivalPage, arrivals, head, heads, next_arrivals, open_block, see_each, stored_uuids,
};
pub use received::last_before;
pub use scan::{Except, Scan, Selection, TimeStretch, count, estimate, size};
pub use skip::{Begin, skip};

pub(crate) use self::keys::part;
pub(crate) use self::read::range;

use weir_model::ProjectId;

/// Partitions that live events are spread over by project and distinct id.
pub const LIVE_PARTITIONS: u16 = 4;
/// Partitions of events that came with `historical_migration`: an import never
/// delays live traffic.
pub const HISTORICAL_PARTITIONS: u16 = 2;
/// All partitions: live ones first.
pub const PARTITIONS: u16 = LIVE_PARTITIONS + HISTORICAL_PARTITIONS;

/// The partition of a distinct id's live events.
///
/// Fixed for the life of a data directory: order is kept per distinct id
/// because all its events go one way.
#[must_use]
pub fn live_partition(project: ProjectId, distinct_id: &str) -> u16 {
    spread(project, distinct_id, LIVE_PARTITIONS)
}

/// The partition of a project's historical events: one for all of them, because
/// an import keeps its order (ING-56).
#[must_use]
pub fn historical_partition(project: ProjectId) -> u16 {
    LIVE_PARTITIONS + spread(project, "", HISTORICAL_PARTITIONS)
}

/// The partition of an event that came with `historical_migration` or without.
#[must_use]
pub fn partition(project: ProjectId, distinct_id: &str, historical: bool) -> u16 {
    match historical {
        true => historical_partition(project),
        false => live_partition(project, distinct_id),
    }
}

/// Whether an event of this distinct id in this partition is one that a
/// transformation gave another id: it stays in the partition of the one that was
/// sent.
#[must_use]
pub fn is_stray(project: ProjectId, partition: u16, distinct_id: &str) -> bool {
    partition < LIVE_PARTITIONS && partition != live_partition(project, distinct_id)
}

fn spread(project: ProjectId, distinct_id: &str, over: u16) -> u16 {
    let hash = fingerprint(project, distinct_id);
    u16::try_from(hash % u32::from(over)).unwrap_or(0)
}

/// A stable 32-bit fingerprint of a distinct id, used to choose a partition
/// and to pass over blocks.
pub(crate) fn fingerprint(project: ProjectId, distinct_id: &str) -> u32 {
    // FNV-1a with a final mix: stable by definition, unlike the hashers of std.
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
