//! Answers that were computed before, for equal questions (API-62).
//!
//! An answer of the same version of the events and of their persons is right. Another one is
//! given for a moment, which is longer the longer it took to compute, unless persons were
//! erased since.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use weir_store::events::SnapshotVersion;
use weir_store::people::MergePosition;

use super::kinds::Computed;

/// The most bytes of an answer that is kept.
const LARGEST: usize = 512 << 10;
/// An answer is given again for so many times as long as it took.
const TIMES: u32 = 10;
/// The longest time for which an answer is given again.
const LONGEST: Duration = Duration::from_secs(5 * 60);
/// Bytes of an answer beside its results, with its key.
const OVERHEAD: usize = 512;

/// What an answer was computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) events: SnapshotVersion,
    pub(super) people: MergePosition,
    /// The number of the erasures from before the events were read.
    pub(super) erasures: u64,
}

/// The answers that are kept.
pub(super) struct Results {
    /// The most bytes of all of them.
    most: usize,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    by_key: HashMap<String, Entry>,
    bytes: usize,
    /// How often an answer was kept or given again.
    uses: u64,
}

struct Entry {
    computed: Arc<Computed>,
    version: Version,
    at: Instant,
    took: Duration,
    bytes: usize,
    /// The number of its last use.
    used: u64,
}

impl Results {
    pub(super) fn new(most: usize) -> Self {
        Self { most, entries: Mutex::default() }
    }

    /// An answer from a moment ago, if no person was erased since.
    pub(super) fn recent(&self, key: &str, erasures: u64, now: Instant) -> Option<Arc<Computed>> {
        let is_recent = |entry: &Entry| {
            let fresh = entry.took.saturating_mul(TIMES).min(LONGEST);
            now.saturating_duration_since(entry.at) < fresh
        };
        self.find(key, |entry| entry.version.erasures == erasures && is_recent(entry))
    }

    /// An answer of any age, if no person was erased since.
    pub(super) fn any(&self, key: &str, erasures: u64) -> Option<Arc<Computed>> {
        self.find(key, |entry| entry.version.erasures == erasures)
    }

    /// An answer from the same events.
    pub(super) fn of_version(&self, key: &str, version: Version) -> Option<Arc<Computed>> {
        self.find(key, |entry| entry.version == version)
    }

    fn find(&self, key: &str, suffices: impl Fn(&Entry) -> bool) -> Option<Arc<Computed>> {
        let mut entries = self.entries.lock();
        entries.uses += 1;
        let used = entries.uses;
        let entry = entries.by_key.get_mut(key).filter(|entry| suffices(entry))?;
        entry.used = used;
        Some(Arc::clone(&entry.computed))
    }

    pub(super) fn put(
        &self,
        key: &str,
        computed: &Arc<Computed>,
        version: Version,
        took: Duration,
    ) {
        let bytes = computed.results.get().len() + OVERHEAD;
        if bytes > LARGEST.min(self.most) {
            return;
        }
        let mut entries = self.entries.lock();
        entries.uses += 1;
        let entry = Entry {
            computed: Arc::clone(computed),
            version,
            at: Instant::now(),
            took,
            bytes,
            used: entries.uses,
        };
        entries.bytes += bytes;
        if let Some(former) = entries.by_key.insert(key.to_owned(), entry) {
            entries.bytes -= former.bytes;
        }
        while entries.bytes > self.most {
            let oldest = entries.by_key.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { return };
            if let Some(removed) = entries.by_key.remove(&oldest) {
                entries.bytes -= removed.bytes;
            }
        }
    }
}
