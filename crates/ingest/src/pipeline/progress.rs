//! How far the log is applied, for everything that waits for it.
//!
//! What belongs here: the positions of all partitions and what follows from them. What
//! does not: moving a position (`committer`, `consumer`).

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;
use weir_store::events::LIVE_PARTITIONS;

use crate::log::{IngestLog, Offset};

/// With this many bytes of log to apply, a partition is behind: its batch is written
/// immediately, and imports wait for it.
pub(super) const BEHIND_BYTES: u64 = 512 << 10;

/// How far each partition is applied, for all readers.
#[derive(Debug)]
pub(crate) struct Progress {
    positions: Vec<AtomicU64>,
    /// The positions in the store.
    stored: Vec<AtomicU64>,
    changed: watch::Sender<u64>,
    /// Offset that stored positions must reach before the log can remove segments.
    store_up_to: watch::Sender<u64>,
}

impl Progress {
    pub(crate) fn new(positions: Vec<u64>) -> Self {
        let lowest = positions.iter().copied().min().unwrap_or(0);
        Self {
            stored: positions.iter().copied().map(AtomicU64::new).collect(),
            positions: positions.into_iter().map(AtomicU64::new).collect(),
            changed: watch::channel(lowest).0,
            store_up_to: watch::channel(0).0,
        }
    }

    /// The watermark: the lowest applied position. Everything before it is readable.
    pub(crate) fn lowest(&self) -> u64 {
        self.positions.iter().map(|p| p.load(Ordering::Acquire)).min().unwrap_or(0)
    }

    /// The position that has to rise for more events to become readable. It is the one of
    /// live events while they are behind, because imports wait for them.
    pub(crate) fn next_to_move(&self, end: u64) -> u64 {
        let live = self.lowest_live();
        if end.saturating_sub(live) > BEHIND_BYTES { live } else { self.lowest() }
    }

    /// The lowest position that a partition of live events has applied.
    pub(crate) fn lowest_live(&self) -> u64 {
        let live = self.positions.iter().take(LIVE_PARTITIONS.into());
        live.map(|position| position.load(Ordering::Acquire)).min().unwrap_or(u64::MAX)
    }

    /// Reports every change of the lowest position.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Reports how far positions must be stored before the log can remove its next
    /// segments.
    pub(super) fn subscribe_store_up_to(&self) -> watch::Receiver<u64> {
        self.store_up_to.subscribe()
    }

    /// Lets the log remove segments that are applied and stored. If stored positions are
    /// too low for that, asks the consumers to store theirs. Consumers without events store
    /// them rarely.
    pub(crate) fn release_before(&self, log: &dyn IngestLog) {
        let stored = self.stored.iter().map(|p| p.load(Ordering::Acquire)).min().unwrap_or(0);
        if let Some(needed) = log.release_before(Offset(self.lowest()), Offset(stored)) {
            self.store_up_to.send_if_modified(|present| {
                let rises = needed.0 > *present;
                *present = needed.0.max(*present);
                rises
            });
        }
    }

    pub(super) fn set_stored(&self, partition: u16, position: u64) {
        if let Some(entry) = self.stored.get(usize::from(partition)) {
            entry.store(position, Ordering::Release);
        }
    }

    pub(super) fn set_applied(&self, partition: u16, position: u64) {
        if let Some(entry) = self.positions.get(usize::from(partition)) {
            entry.store(position, Ordering::Release);
        }
        let lowest = self.lowest();
        self.changed.send_if_modified(|present| {
            let rises = lowest > *present;
            if rises {
                *present = lowest;
            }
            rises
        });
    }
}
