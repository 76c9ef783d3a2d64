//! Decoded records in memory, so that all consumers read the same copy.
//!
//! What belongs here: which records stay in memory. What does not: reading them from disk
//! (`local`).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Offset, Record};

/// Records by offset, bounded by the memory they take. The oldest records are removed
/// first.
#[derive(Debug)]
pub(super) struct Cache {
    records: BTreeMap<Offset, Arc<Record>>,
    bytes: usize,
    limit: usize,
}

impl Cache {
    pub(super) fn new(limit: usize) -> Self {
        Self { records: BTreeMap::new(), bytes: 0, limit }
    }

    pub(super) fn insert(&mut self, record: Arc<Record>) {
        self.bytes += record.memory();
        if let Some(replaced) = self.records.insert(record.offset, record) {
            self.bytes -= replaced.memory();
        }
        while self.bytes > self.limit && self.records.len() > 1 {
            self.remove_first();
        }
    }

    /// Removes records that no consumer will read again.
    pub(super) fn remove_before(&mut self, offset: Offset) {
        while self.records.first_key_value().is_some_and(|(_, record)| record.next <= offset) {
            self.remove_first();
        }
    }

    pub(super) fn get(&self, offset: Offset) -> Option<Arc<Record>> {
        self.records.get(&offset).cloned()
    }

    fn remove_first(&mut self) {
        if let Some((_, record)) = self.records.pop_first() {
            self.bytes -= record.memory();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::tests::batch;
    use crate::log::frame::Header;

    fn record(offset: u64, events: u32) -> Arc<Record> {
        let encoded = batch("a", events).into_encoded();
        let header = Header {
            offset,
            synced: 0,
            project: 1,
            first_arrival: 1,
            count: encoded.count,
            length: u32::try_from(encoded.payload.len()).unwrap(),
            payload_crc: encoded.payload_crc,
            historical: Some(false),
        };
        Arc::new(Record::with_batch(&header, &encoded))
    }

    #[test]
    fn the_oldest_go_first_by_what_they_take_in_memory() {
        // This payload compresses to a few bytes. The decoded form counts.
        let (small, large) = (record(0, 1), record(8, 1_000));
        assert!(large.memory() > 100_000 && large.size() < 50_000, "{}", large.size());
        let mut cache = Cache::new(large.memory() + small.memory());
        cache.insert(Arc::clone(&small));
        cache.insert(Arc::clone(&large));
        cache.insert(large);
        assert!(cache.get(Offset(0)).is_some() && cache.get(Offset(8)).is_some());
        cache.insert(record(16, 2));
        assert!(cache.get(Offset(0)).is_none());
        cache.remove_before(Offset(u64::MAX));
        assert_eq!((cache.records.len(), cache.bytes), (0, 0));
        // The newest record stays, even if it is larger than the bound: a consumer has
        // just requested it.
        let mut cache = Cache::new(1);
        cache.insert(small);
        assert!(cache.get(Offset(0)).is_some());
    }
}
