//! Counters of the engine.
//!
//! What belongs here: counting. What does not: how counters are shown (the server).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use weir_model::exports::Status;

/// Counters of the engine, and its present state.
#[derive(Debug, Default)]
pub struct Metrics {
    ended: Mutex<HashMap<Status, u64>>,
    rows: AtomicU64,
    bytes: AtomicU64,
    attempts_failed: AtomicU64,
    active: AtomicU64,
}

/// The counts since the last call, and the present state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineCounts {
    /// Runs that ended, by status.
    pub ended: HashMap<Status, u64>,
    /// Rows that were given to destinations.
    pub rows: u64,
    /// Bytes of the events of these rows.
    pub bytes: u64,
    /// Attempts that failed.
    pub attempts_failed: u64,
    /// Runs that have begun and not ended.
    pub active: u64,
}

impl Metrics {
    /// Returns the counts since the last call and resets them.
    pub fn take(&self) -> EngineCounts {
        EngineCounts {
            ended: std::mem::take(&mut *self.ended.lock()),
            rows: self.rows.swap(0, Ordering::Relaxed),
            bytes: self.bytes.swap(0, Ordering::Relaxed),
            attempts_failed: self.attempts_failed.swap(0, Ordering::Relaxed),
            active: self.active.load(Ordering::Relaxed),
        }
    }

    pub(super) fn sent(&self, rows: u64, bytes: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn attempt_failed(&self) {
        self.attempts_failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn ended(&self, status: Status) {
        *self.ended.lock().entry(status).or_default() += 1;
    }

    pub(super) fn set_active(&self, runs: usize) {
        self.active.store(runs as u64, Ordering::Relaxed);
    }
}
