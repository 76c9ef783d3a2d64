//! Values in the memory of this process for a later request of the same browser: under an
//! unguessable name, for a limited time, within a bound of bytes.
//!
//! What belongs here: how much is kept, and for how long. What does not: the kind of
//! value (`held_forms`, `kept_input`).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use uuid::Uuid;

/// Bytes that an entry counts in addition to its value, so that the number of entries is
/// bounded.
const ENTRY_BYTES: usize = 1 << 10;

/// Entries of one kind.
pub(super) struct Memory<T> {
    most: usize,
    entries: Mutex<HashMap<String, Entry<T>>>,
}

struct Entry<T> {
    value: T,
    size: usize,
    until: Instant,
}

impl<T: Clone> Memory<T> {
    /// Holds at most this many bytes. When it is full, the entries that expire first are
    /// removed.
    pub(super) fn new(most: usize) -> Self {
        Self { most, entries: Mutex::default() }
    }

    /// Keeps a value of this size, and returns its name.
    pub(super) fn put(&self, value: T, size: usize, seconds: u32, now: Instant) -> String {
        let name = Uuid::new_v4().simple().to_string();
        let size = size.saturating_add(ENTRY_BYTES);
        let until = now + Duration::from_secs(seconds.into());
        let mut entries = self.entries.lock();
        entries.retain(|_, entry| now < entry.until);
        let used = entries.values().fold(0_usize, |used, entry| used.saturating_add(entry.size));
        let mut room = self.most.saturating_sub(used);
        if room < size {
            let mut ends: Vec<_> =
                entries.iter().map(|(name, entry)| (entry.until, name.clone())).collect();
            ends.sort();
            for (_, first) in ends {
                if room >= size {
                    break;
                }
                room += entries.remove(&first).map_or(0, |entry| entry.size);
            }
        }
        if room >= size {
            entries.insert(name.clone(), Entry { value, size, until });
        }
        name
    }

    /// The value under this name.
    pub(super) fn get(&self, name: &str, now: Instant) -> Option<T> {
        let entries = self.entries.lock();
        entries.get(name).filter(|entry| now < entry.until).map(|entry| entry.value.clone())
    }

    /// Removes and returns the value under this name.
    pub(super) fn take(&self, name: &str, now: Instant) -> Option<T> {
        let entry = self.entries.lock().remove(name)?;
        (now < entry.until).then_some(entry.value)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{ENTRY_BYTES, Memory};

    #[test]
    fn what_ends_first_makes_room() {
        let size = 10_000;
        let memory = Memory::new(4 * (size + ENTRY_BYTES));
        let now = Instant::now();
        let names: Vec<String> = (0..6_u64)
            .map(|number| memory.put(number, size, 60, now + Duration::from_millis(number)))
            .collect();
        let later = now + Duration::from_secs(1);
        let left: Vec<u64> = names.iter().filter_map(|name| memory.get(name, later)).collect();
        assert_eq!(left, [2, 3, 4, 5]);
        let huge = memory.put(7, 5 * size, 60, later);
        assert_eq!(memory.get(&huge, later), None, "it fits nowhere");
    }

    #[test]
    fn small_entries_count_too() {
        let memory = Memory::new(10 * ENTRY_BYTES);
        let now = Instant::now();
        for number in 0..100 {
            memory.put(number, 0, 60, now);
        }
        assert_eq!(memory.entries.lock().len(), 10);
    }

    #[test]
    fn entries_end_and_are_taken_once() {
        let memory = Memory::new(1 << 20);
        let now = Instant::now();
        let (one, other) = (memory.put("a", 1, 60, now), memory.put("b", 1, 60, now));
        assert_eq!((memory.get(&one, now), memory.get("", now)), (Some("a"), None));
        assert_eq!((memory.take(&one, now), memory.take(&one, now)), (Some("a"), None));
        assert_eq!(memory.get(&other, now + Duration::from_secs(60)), None);
        assert_eq!(memory.take(&other, now + Duration::from_secs(60)), None);
    }
}
