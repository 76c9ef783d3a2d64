//! Reading from the newest to the oldest record of a table whose ids rise with time. The
//! engine can neither read a range backwards nor stop within one. So the table is read in
//! ranges of time whose length follows the number of records.
//!
//! What belongs here: the ranges. What does not: statements.

use weir_model::Timestamp;

/// The length of the first range, milliseconds.
const FIRST: i64 = 60_000;
/// After a range with at most this many records, the next one is longer,
const FEW: usize = 100;
/// and after one with at least this many shorter.
const MANY: usize = 2_000;
/// The last millisecond that an id can hold: the year 10889.
const LAST: i64 = (1 << 48) - 1;

/// Ranges of milliseconds, newest first. Both ends are inclusive.
#[derive(Debug)]
pub(super) struct TimeWindows {
    floor: i64,
    high: i64,
    width: i64,
}

impl TimeWindows {
    /// Covers all times between `after` and `before`, including their milliseconds.
    pub(super) fn between(after: Option<Timestamp>, before: Option<Timestamp>) -> Self {
        let millis = |time: Timestamp| time.micros().div_euclid(1_000).clamp(0, LAST);
        Self { floor: after.map_or(0, millis), high: before.map_or(LAST, millis), width: FIRST }
    }

    /// The next range: its first and its last millisecond.
    pub(super) fn next(&mut self) -> Option<(i64, i64)> {
        if self.high < self.floor {
            return None;
        }
        let high = self.high;
        let low = self.floor.max(high.saturating_sub(self.width - 1));
        self.high = low - 1;
        Some((low, high))
    }

    /// Reports the number of records in the last range.
    pub(super) fn had(&mut self, records: usize) {
        self.width = match records {
            0..=FEW => self.width.saturating_mul(8),
            MANY.. => (self.width / 8).max(1),
            _ => self.width,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_cover_everything_once() {
        let time = |millis: i64| Timestamp::from_micros(millis * 1_000 + 7);
        let mut windows = TimeWindows::between(Some(time(5)), Some(time(1_000_000)));
        let mut expected = 1_000_000;
        for records in [0, 3_000, 500, 0, 0, 0, 0, 0] {
            let Some((low, high)) = windows.next() else { break };
            assert_eq!(high, expected);
            assert!(low <= high && low >= 5);
            expected = low - 1;
            windows.had(records);
        }
        assert_eq!((expected, windows.next()), (4, None));
        let mut all = TimeWindows::between(None, None);
        let mut steps = 0;
        while all.next().is_some() {
            all.had(0);
            steps += 1;
        }
        assert!(steps < 20, "{steps}");
    }
}
