//! Historical migrations: statistics of imported events, by source and day, and the
//! migrations that users have announced.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::time::Timestamp;

/// Statistics of the events of one source on one day. A source is a project key and a
/// client library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportSource {
    /// Days since 1970, UTC.
    pub day: i64,
    /// The project key of the events, masked.
    pub key: String,
    /// The client library that sent them.
    pub library: String,
    /// Whether they were sent with `historical_migration`. Otherwise only old events are
    /// counted.
    pub historical: bool,
    /// The counts.
    pub counts: ImportCounts,
}

impl ImportSource {
    /// The day, such as 2026-08-21.
    pub fn day_text(&self) -> String {
        Timestamp::from_micros(self.day.saturating_mul(86_400_000_000)).day_text()
    }
}

/// Counts of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportCounts {
    /// Accepted events.
    pub accepted: u64,
    /// Dropped events.
    pub dropped: u64,
    /// Time of the first request, in microseconds.
    pub first_at: i64,
    /// Time of the last request, in microseconds.
    pub last_at: i64,
    /// The earliest event time, in microseconds; if it is later than the latest, there is
    /// none.
    pub oldest: i64,
    /// The latest event time, in microseconds.
    pub newest: i64,
    /// The time of the first event in order of arrival, in microseconds.
    pub begins: i64,
    /// The time of the last event in order of arrival, in microseconds.
    pub ends: i64,
    /// Events that are earlier than the previous one.
    pub out_of_order: u64,
    /// Events ahead of the clock of the service.
    pub future: u64,
    /// Events without a distinct id.
    pub missing_ids: u64,
    /// Minutes with at least one event.
    pub minutes: u64,
    /// Events of the minute with the most events.
    pub peak: u64,
    /// The last minute, since 1970.
    pub minute: i64,
    /// Events of that minute.
    pub in_minute: u64,
    /// Number of dropped events by drop reason.
    pub reasons: BTreeMap<String, u64>,
}

impl ImportCounts {
    /// Events that were sent.
    pub fn sent(&self) -> u64 {
        self.accepted + self.dropped
    }

    /// Events per minute, averaged over the minutes with events.
    pub fn rate(&self) -> u64 {
        self.sent() / self.minutes.max(1)
    }

    /// Whether there is an event with a time.
    pub fn has_times(&self) -> bool {
        self.oldest <= self.newest
    }

    /// Adds later counts.
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
            // Both share one minute. The other minutes of the later counts are new ones.
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

/// A migration that a user has announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportPlan {
    /// Id of the plan. Ids increase with time.
    pub id: Uuid,
    /// The system that the events come from.
    pub source: String,
    /// Name of the file to import; may be empty.
    pub file: String,
    /// Further information.
    pub note: String,
    /// Total number of events, if known.
    pub total: Option<u64>,
    /// Time of the start.
    pub created_at: Timestamp,
    /// Historical events that the project had received before the start.
    pub baseline: u64,
    /// When it was marked as finished, and how many events it had sent.
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
    fn minutes_and_order_continue_over_requests() {
        let mut all = counts(5, 10, 100, 200);
        all.add(&counts(5, 30, 200, 300));
        assert_eq!((all.minutes, all.peak, all.in_minute, all.out_of_order), (1, 40, 40, 0));
        all.add(&counts(7, 20, 250, 400));
        assert_eq!((all.minutes, all.peak, all.in_minute, all.out_of_order), (2, 40, 20, 1));
        assert_eq!((all.oldest, all.newest, all.sent(), all.rate()), (100, 400, 60, 30));
    }
}
