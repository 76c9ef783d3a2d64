//! The quota of a personal API key (API-14): requests in any minute and in any hour,
//! counted in memory.
//!
//! What belongs here: sliding windows and their bounded table. A restart resets the
//! counts, which allows one more window at most.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use weir_model::KeyId;

/// Most keys in the table.
const KEYS: usize = 10_000;
/// Number of parts that a window is counted in.
const PARTS: u32 = 60;

/// Requests that a key may make; 0 means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// Requests in any minute.
    pub per_minute: u32,
    /// Requests in any hour.
    pub per_hour: u32,
}

/// Counts requests per key.
#[derive(Debug)]
pub struct Throttle {
    rates: Rates,
    start: Instant,
    // Locked for a few array operations, never across an await.
    keys: Mutex<HashMap<KeyId, Counts>>,
}

#[derive(Debug)]
struct Counts {
    minute: Window,
    hour: Window,
}

impl Throttle {
    /// A throttle without counts.
    pub fn new(rates: Rates) -> Self {
        Self { rates, start: Instant::now(), keys: Mutex::default() }
    }

    /// Counts a request of `key`.
    ///
    /// # Errors
    /// The seconds to wait when the quota is used up. The request is not counted then.
    pub fn count(&self, key: &KeyId) -> Result<(), u64> {
        self.count_at(key, self.start.elapsed())
    }

    fn count_at(&self, key: &KeyId, now: Duration) -> Result<(), u64> {
        let mut keys = self.keys.lock();
        if keys.len() >= KEYS && !keys.contains_key(key) {
            make_room(&mut keys, now);
        }
        let counts = keys.entry(key.clone()).or_insert_with(|| Counts {
            minute: Window::new(Duration::from_secs(60)),
            hour: Window::new(Duration::from_secs(3600)),
        });
        counts.minute.advance(now);
        counts.hour.advance(now);
        let wait = counts
            .minute
            .wait(self.rates.per_minute, now)
            .max(counts.hour.wait(self.rates.per_hour, now));
        if let Some(wait) = wait {
            let whole = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            return Err(whole.max(1));
        }
        counts.minute.add();
        counts.hour.add();
        Ok(())
    }
}

/// Removes keys without recent requests. If there are none, removes those with the oldest
/// requests.
fn make_room(keys: &mut HashMap<KeyId, Counts>, now: Duration) {
    keys.retain(|_, counts| {
        counts.hour.advance(now);
        counts.hour.total > 0
    });
    if keys.len() >= KEYS {
        let mut heard: Vec<u64> = keys.values().map(|counts| counts.minute.newest).collect();
        let (_, median, _) = heard.select_nth_unstable(KEYS / 2);
        let median = *median;
        keys.retain(|_, counts| counts.minute.newest > median);
    }
}

/// Requests in the latest window, counted in [`PARTS`] parts.
#[derive(Debug)]
struct Window {
    part: Duration,
    /// Number of the newest part since the start.
    newest: u64,
    /// Parts with requests and their number, oldest first.
    counts: VecDeque<(u64, u32)>,
    total: u32,
}

impl Window {
    fn new(span: Duration) -> Self {
        Self { part: span / PARTS, newest: 0, counts: VecDeque::new(), total: 0 }
    }

    /// Removes the parts that have left the window.
    fn advance(&mut self, now: Duration) {
        let part = now.as_millis() / self.part.as_millis().max(1);
        self.newest = self.newest.max(u64::try_from(part).unwrap_or(u64::MAX));
        while let Some((part, count)) = self.counts.front().copied() {
            if part + u64::from(PARTS) > self.newest {
                break;
            }
            self.counts.pop_front();
            self.total -= count;
        }
    }

    fn add(&mut self) {
        match self.counts.back_mut() {
            Some((part, count)) if *part == self.newest => *count += 1,
            Some(_) | None => self.counts.push_back((self.newest, 1)),
        }
        self.total += 1;
    }

    /// Time until one more request is allowed, if none is now.
    fn wait(&self, limit: u32, now: Duration) -> Option<Duration> {
        if limit == 0 || self.total < limit {
            return None;
        }
        let (oldest, _) = self.counts.front()?;
        let leaves = self.part.saturating_mul(u32::try_from(oldest + u64::from(PARTS)).ok()?);
        Some(leaves.saturating_sub(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> KeyId {
        KeyId(name.to_owned())
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn windows_slide() {
        let throttle = Throttle::new(Rates { per_minute: 3, per_hour: 5 });
        let a = key("a");
        for second in [0, 10, 20] {
            assert_eq!(throttle.count_at(&a, at(second)), Ok(()));
        }
        assert_eq!(throttle.count_at(&a, at(30)), Err(30));
        assert_eq!(throttle.count_at(&key("b"), at(30)), Ok(()));
        assert_eq!(throttle.count_at(&a, at(59)), Err(1));
        assert_eq!(throttle.count_at(&a, at(60)), Ok(()));
        assert_eq!(throttle.count_at(&a, at(70)), Ok(()));
        // Five in this hour: the first leaves the window after its minute.
        assert_eq!(throttle.count_at(&a, at(200)), Err(3400));
        assert_eq!(throttle.count_at(&a, at(3600)), Ok(()));
    }

    #[test]
    fn zero_is_no_limit() {
        let throttle = Throttle::new(Rates { per_minute: 0, per_hour: 0 });
        for _ in 0..10_000 {
            assert_eq!(throttle.count_at(&key("a"), at(1)), Ok(()));
        }
    }

    #[test]
    fn the_table_is_bounded() {
        let throttle = Throttle::new(Rates { per_minute: 1, per_hour: 1 });
        for number in 0..3 * KEYS {
            let _ = throttle.count_at(&key(&number.to_string()), at(number as u64 / 1000));
        }
        assert!(throttle.keys.lock().len() <= KEYS);
    }
}
