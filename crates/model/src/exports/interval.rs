//! How often an export runs (batch-exports 3).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const WEEK: i64 = 7 * DAY;
/// 1970 began on a Thursday; weeks begin on Sunday.
const FIRST_SUNDAY: i64 = 3 * DAY;

/// Runs that a backfill has at most.
pub const BACKFILL_RUNS_MAX: u64 = 5_000;

/// How often an export runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum Interval {
    /// Every hour.
    #[serde(rename = "hour")]
    Hour,
    /// Every day, at midnight UTC.
    #[serde(rename = "day")]
    Day,
    /// Every week, on Sunday at midnight UTC.
    #[serde(rename = "week")]
    Week,
    /// Every five minutes.
    #[serde(rename = "every 5 minutes")]
    FiveMinutes,
    /// Every quarter of an hour.
    #[serde(rename = "every 15 minutes")]
    QuarterHour,
}

impl Interval {
    /// All of them, in the order in which forms offer them.
    pub const ALL: [Self; 5] =
        [Self::Hour, Self::Day, Self::Week, Self::FiveMinutes, Self::QuarterHour];

    /// The words on the wire, in the same order.
    pub const WORDS: [&'static str; 5] =
        ["hour", "day", "week", "every 5 minutes", "every 15 minutes"];

    /// The word on the wire.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::FiveMinutes => "every 5 minutes",
            Self::QuarterHour => "every 15 minutes",
        }
    }

    /// The interval of this word.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|interval| interval.text() == text)
    }

    /// Its length in seconds.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        match self {
            Self::Hour => HOUR,
            Self::Day => DAY,
            Self::Week => WEEK,
            Self::FiveMinutes => 5 * MINUTE,
            Self::QuarterHour => 15 * MINUTE,
        }
    }

    /// The last boundary between intervals that is not after this time.
    #[must_use]
    pub fn boundary_before(self, time: Timestamp) -> Timestamp {
        let offset = if self == Self::Week { FIRST_SUNDAY } else { 0 };
        let seconds = time.micros().div_euclid(1_000_000) - offset;
        let length = self.seconds();
        let boundary = seconds.div_euclid(length) * length + offset;
        Timestamp::from_micros(boundary.saturating_mul(1_000_000))
    }

    /// The first boundary between intervals after this time.
    #[must_use]
    pub fn boundary_after(self, time: Timestamp) -> Timestamp {
        self.boundary_before(time).plus_seconds(self.seconds())
    }

    /// Where the first run of a backfill begins: not before the first event, but
    /// where a run would begin.
    #[must_use]
    pub fn backfill_start(self, start: Option<Timestamp>, first_event: Timestamp) -> Timestamp {
        let Some(start) = start else { return self.boundary_before(first_event) };
        let length = self.seconds().saturating_mul(1_000_000);
        let ahead = first_event.micros().saturating_sub(start.micros());
        let empty = ahead.max(0).div_euclid(length);
        start.plus_seconds(empty.saturating_mul(self.seconds()))
    }

    /// How many runs a backfill between two instants takes: a part of what a run
    /// covers takes one too.
    #[must_use]
    pub fn runs_between(self, start: Timestamp, end: Timestamp) -> u64 {
        parts(start, end, self.backfill_step(start, end))
    }

    /// Seconds that each run of a backfill between two instants covers: an
    /// interval, or as many of them as leave it with [`BACKFILL_RUNS_MAX`] runs. One
    /// event of long ago must not make it endless.
    #[must_use]
    pub fn backfill_step(self, start: Timestamp, end: Timestamp) -> i64 {
        let intervals = parts(start, end, self.seconds()).div_ceil(BACKFILL_RUNS_MAX).max(1);
        self.seconds().saturating_mul(i64::try_from(intervals).unwrap_or(i64::MAX))
    }
}

/// Parts of so many seconds between two instants, the last of which may be shorter.
fn parts(start: Timestamp, end: Timestamp, seconds: i64) -> u64 {
    let micros = end.micros().saturating_sub(start.micros()).max(0);
    let length = seconds.saturating_mul(1_000_000);
    u64::try_from(micros.saturating_add(length - 1) / length).unwrap_or(0)
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::Interval;
    use crate::time::Timestamp;

    fn time(text: &str) -> Timestamp {
        Timestamp::parse_lenient(text).unwrap()
    }

    #[test]
    fn boundaries_are_those_of_the_clock_and_of_sundays() {
        for (interval, at, expected) in [
            (Interval::Hour, "2026-08-21T14:59:59.999999", "2026-08-21T14:00:00Z"),
            (Interval::Hour, "2026-08-21T14:00", "2026-08-21T14:00:00Z"),
            (Interval::Day, "2026-08-21T14:00", "2026-08-21T00:00:00Z"),
            // A Friday; Sunday was the 16th.
            (Interval::Week, "2026-08-21T14:00", "2026-08-16T00:00:00Z"),
            (Interval::Week, "2026-08-16T00:00", "2026-08-16T00:00:00Z"),
            (Interval::FiveMinutes, "2026-08-21T14:04:59", "2026-08-21T14:00:00Z"),
            (Interval::QuarterHour, "2026-08-21T14:46", "2026-08-21T14:45:00Z"),
            (Interval::Week, "1970-01-01T00:00", "1969-12-28T00:00:00Z"),
        ] {
            assert_eq!(interval.boundary_before(time(at)).to_string(), expected, "{interval} {at}");
        }
    }

    #[test]
    fn words_read_back() {
        for (interval, word) in Interval::ALL.into_iter().zip(Interval::WORDS) {
            assert_eq!((interval.text(), Interval::of(word)), (word, Some(interval)));
            assert_eq!(serde_json::to_value(interval).unwrap(), word);
        }
        assert_eq!(Interval::of("Hour"), None);
    }

    #[test]
    fn a_part_of_an_interval_takes_a_run() {
        let between = |start: &str, end: &str| Interval::Hour.runs_between(time(start), time(end));
        assert_eq!(between("2026-08-21T14:00", "2026-08-21T16:00"), 2);
        assert_eq!(between("2026-08-21T14:00", "2026-08-21T16:01"), 3);
        assert_eq!(between("2026-08-21T16:00", "2026-08-21T14:00"), 0);
    }

    #[test]
    fn a_backfill_begins_where_there_is_something() {
        let time = |text: &str| time(&format!("2026-{text}"));
        let of = |start: Option<&str>, first: &str| {
            Interval::Hour.backfill_start(start.map(time), time(first)).to_string()
        };
        assert_eq!(of(None, "08-21T14:20"), "2026-08-21T14:00:00Z");
        assert_eq!(of(Some("08-01T00:30"), "08-21T14:20"), "2026-08-21T13:30:00Z");
        assert_eq!(of(Some("08-01T00:30"), "08-21T14:30"), "2026-08-21T14:30:00Z");
        assert_eq!(of(Some("08-22T00:30"), "08-21T14:30"), "2026-08-22T00:30:00Z");
    }

    #[test]
    fn a_long_backfill_has_longer_runs_instead_of_more() {
        let of = |interval: Interval, start: &str| {
            let (start, end) = (time(start), time("2026-08-21T14:00"));
            (interval.backfill_step(start, end), interval.runs_between(start, end))
        };
        assert_eq!(of(Interval::Hour, "2026-08-21T12:00"), (3_600, 2));
        assert_eq!(of(Interval::Day, "1970-01-01T00:00"), (5 * 86_400, 4_138));
        // 5,000 of five minutes, and one more.
        assert_eq!(of(Interval::FiveMinutes, "2026-08-04T05:20"), (300, 5_000));
        assert_eq!(of(Interval::FiveMinutes, "2026-08-04T05:15"), (600, 2_501));
        assert_eq!(of(Interval::FiveMinutes, "2026-08-21T14:00"), (300, 0));
        let (_, runs) = of(Interval::FiveMinutes, "1970-01-01T00:00");
        assert!((4_990..=5_000).contains(&runs), "{runs}");
    }
}
