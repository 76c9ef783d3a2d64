//! Historical migrations: what is known of events that were brought in from
//! elsewhere, by source and day, and the migrations that people have announced.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::time::Timestamp;

/// Events of one source on one day: a key and a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportSource {
    /// Days since 1970, UTC.
    pub day: i64,
    /// The key that they came with, masked.
    pub key: String,
    /// The library that sent them.
    pub library: String,
    /// Whether they came with `historical_migration`. Without it, only old events
    /// count.
    pub historical: bool,
    /// What was counted.
    pub counts: ImportCounts,
}

impl ImportSource {
    /// The day, such as 2026-08-21.
    #[must_use]
    pub fn day_text(&self) -> String {
        let begin = Timestamp::from_micros(self.day.saturating_mul(86_400_000_000));
        begin.to_chrono().format("%Y-%m-%d").to_string()
    }
}

/// What is counted of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportCounts {
    /// Events that were accepted for storing.
    pub accepted: u64,
    /// Events that were not.
    pub dropped: u64,
    /// When the first request came, microseconds.
    pub first_at: i64,
    /// When the last request came, microseconds.
    pub last_at: i64,
    /// The earliest event time, microseconds; later than the latest: there is none.
    pub oldest: i64,
    /// The latest event time, microseconds.
    pub newest: i64,
    /// The time of the first event in order of arrival, microseconds.
    pub begins: i64,
    /// The time of the last one.
    pub ends: i64,
    /// Events that are earlier than the one before them.
    pub out_of_order: u64,
    /// Events that were ahead of our clock.
    pub future: u64,
    /// Events without a distinct id.
    pub missing_ids: u64,
    /// Minutes in which events came.
    pub minutes: u64,
    /// Events of the fullest minute.
    pub peak: u64,
    /// The last minute, since 1970.
    pub minute: i64,
    /// Events of that minute.
    pub in_minute: u64,
    /// Codes of reasons for which events were dropped, with how often.
    pub reasons: BTreeMap<String, u64>,
}

impl ImportCounts {
    /// Events that were sent.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.accepted + self.dropped
    }

    /// Events of a minute, on average over the minutes in which some came.
    #[must_use]
    pub fn rate(&self) -> u64 {
        self.sent() / self.minutes.max(1)
    }

    /// Whether there is an event with a time.
    #[must_use]
    pub fn has_times(&self) -> bool {
        self.oldest <= self.newest
    }

    /// Adds what came after this.
    pub fn add(&mut self, later: &Self) {
        if self.has_times() && later.has_times() && later.begins < self.ends {
            self.out_of_order += 1;
        }
        if later.has_times() {
            if !self.has_times() {
                self.begins = later.begins;
            }
            self.ends = later.ends;
        }
        self.oldest = self.oldest.min(later.oldest);
        self.newest = self.newest.max(later.newest);
        self.accepted += later.accepted;
        self.dropped += later.dropped;
        self.first_at = self.first_at.min(later.first_at);
        self.last_at = self.last_at.max(later.last_at);
        self.out_of_order += later.out_of_order;
        self.future += later.future;
        self.missing_ids += later.missing_ids;
        self.peak = self.peak.max(later.peak);
        if later.minute == self.minute {
            // One minute of both: the rest of what came later is in others.
            self.minutes += later.minutes.saturating_sub(1);
            self.in_minute += later.in_minute;
        } else {
            self.minutes += later.minutes;
            if later.minute > self.minute {
                (self.minute, self.in_minute) = (later.minute, later.in_minute);
            }
        }
        self.peak = self.peak.max(self.in_minute);
        for (code, times) in &later.reasons {
            *self.reasons.entry(code.clone()).or_default() += times;
        }
    }
}

/// A migration that somebody has announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportPlan {
    /// Id, in order of time.
    pub id: Uuid,
    /// Where the events come from.
    pub source: String,
    /// Name of the file to import; may be empty.
    pub file: String,
    /// What else is to be known.
    pub note: String,
    /// How many events there are, if that is known.
    pub total: Option<u64>,
    /// When it was started.
    pub created_at: Timestamp,
    /// Historical events that the project was sent before.
    pub baseline: u64,
    /// When it was marked finished, and how many events it had sent.
    pub finished: Option<(Timestamp, u64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(minute: i64, events: u64, begins: i64, ends: i64) -> ImportCounts {
        ImportCounts {
            accepted: events,
            dropped: 0,
            first_at: minute * 60_000_000,
            last_at: minute * 60_000_000,
            oldest: begins.min(ends),
            newest: begins.max(ends),
            begins,
            ends,
            out_of_order: 0,
            future: 0,
            missing_ids: 0,
            minutes: 1,
            peak: events,
            minute,
            in_minute: events,
            reasons: BTreeMap::new(),
        }
    }

    #[test]
    fn minutes_and_order_go_on_over_requests() {
        let mut all = counts(5, 10, 100, 200);
        all.add(&counts(5, 30, 200, 300));
        assert_eq!((all.minutes, all.peak, all.in_minute, all.out_of_order), (1, 40, 40, 0));
        all.add(&counts(7, 20, 250, 400));
        assert_eq!((all.minutes, all.peak, all.in_minute, all.out_of_order), (2, 40, 20, 1));
        assert_eq!((all.oldest, all.newest, all.sent(), all.rate()), (100, 400, 60, 30));
    }
}
