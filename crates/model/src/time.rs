//! Points in time as the API returns them.

pub mod text;

use std::fmt;

use chrono::{DateTime, Datelike as _, Timelike as _, Utc};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use text::Forms;

/// A point in time, UTC, microsecond precision.
///
/// Written as `2024-08-01T12:00:00.123456Z`, without decimals when the
/// microseconds are zero (API-10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(DateTime<Utc>);

impl Timestamp {
    /// The first instant of 1970.
    pub const EPOCH: Self = Self(DateTime::<Utc>::UNIX_EPOCH);

    /// From microseconds since 1970; values beyond the calendar become the epoch.
    pub fn from_micros(micros: i64) -> Self {
        Self(DateTime::from_timestamp_micros(micros).unwrap_or(DateTime::UNIX_EPOCH))
    }

    /// Microseconds since 1970.
    pub fn micros(self) -> i64 {
        self.0.timestamp_micros()
    }

    /// The value as a `chrono` time.
    pub fn to_chrono(self) -> DateTime<Utc> {
        self.0
    }

    /// Parses the written form, and any other RFC 3339 form.
    pub fn parse(text: &str) -> Option<Self> {
        DateTime::parse_from_rfc3339(text).ok().map(|t| Self::from(t.with_timezone(&Utc)))
    }

    /// Parses the forms that API clients send ([`Forms::Exact`]). Stored times must have
    /// the form of [`Timestamp::parse`].
    pub fn parse_lenient(text: &str) -> Option<Self> {
        text::calendar(text, Forms::Exact).map(Self::from_micros)
    }

    /// This time moved by a number of seconds.
    #[must_use]
    pub fn plus_seconds(self, seconds: i64) -> Self {
        Self::from_micros(self.micros().saturating_add(seconds.saturating_mul(1_000_000)))
    }

    /// `2026-08-21 14:05 UTC`: the form in pages until the browser applies its zone.
    pub fn minute_text(self) -> String {
        format!("{} {:02}:{:02} UTC", self.day_text(), self.0.hour(), self.0.minute())
    }

    /// `2026-08-21`: the day in UTC.
    pub fn day_text(self) -> String {
        let time = self.0;
        let year = match time.year() {
            year @ 0..=9999 => format!("{year:04}"),
            year => format!("{year:+05}"),
        };
        format!("{year}-{:02}-{:02}", time.month(), time.day())
    }
}

impl From<DateTime<Utc>> for Timestamp {
    fn from(time: DateTime<Utc>) -> Self {
        Self::from_micros(time.timestamp_micros())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = self.0;
        let (day, hour, minute) = (self.day_text(), time.hour(), time.minute());
        write!(f, "{day}T{hour:02}:{minute:02}:{:02}", time.second())?;
        match time.nanosecond() / 1_000 {
            0 => f.write_str("Z"),
            micros => write!(f, ".{micros:06}Z"),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("not an RFC 3339 time"))
    }
}

#[cfg(test)]
mod tests {
    use super::Timestamp;

    #[test]
    fn reads_what_clients_write() {
        for (text, expected) in [
            ("2026-06-01T10:00", "2026-06-01T10:00:00Z"),
            ("2026-06-01 10:00", "2026-06-01T10:00:00Z"),
            ("2026-06-01T10:00:05", "2026-06-01T10:00:05Z"),
            ("2026-06-01 10:00:05.25", "2026-06-01T10:00:05.250000Z"),
            ("2026-06-01T10:00:05.123456789Z", "2026-06-01T10:00:05.123456Z"),
            ("2026-06-01T10:00Z", "2026-06-01T10:00:00Z"),
            ("2026-06-01t10:00:05z", "2026-06-01T10:00:05Z"),
            ("2026-06-01T10:00+02:00", "2026-06-01T08:00:00Z"),
            ("2026-06-01 10:00:05 -0330", "2026-06-01T13:30:05Z"),
            ("2026-06-01T00:30:00.5+01", "2026-05-31T23:30:00.500000Z"),
            (" 2024-02-29T23:59:59Z ", "2024-02-29T23:59:59Z"),
        ] {
            let read = Timestamp::parse_lenient(text).map(|time| time.to_string());
            assert_eq!(read.as_deref(), Some(expected), "{text}");
        }
        for bad in [
            "",
            "x",
            "2026-06-01",
            "2026-06-01T",
            "2026-06-01T10",
            "2026-06-01T10:0",
            "2026-6-01T10:00",
            "2026-06-31T10:00",
            "2026-02-29T10:00",
            "2026-06-01T24:00",
            "2026-06-01T10:60",
            "2026-06-01T10:00:",
            "2026-06-01T10:00:61",
            "2026-06-01T10:00:05.",
            "2026-06-01T10:00:05.x",
            "2026-06-01T10:00:05:06",
            "2026-06-01T10:00+2:00",
            "2026-06-01T10:00+02:",
            "2026-06-01T10:00+24:00",
            "2026-06-01T10:00ZZ",
            "2026-06-01  10:00",
            "2026-06-01_10:00",
            "+026-06-01T10:00",
            "２０２6-06-01T10:00",
            "2026-06-0ä",
        ] {
            assert_eq!(Timestamp::parse_lenient(bad), None, "{bad}");
        }
        // A stored time has a zone.
        assert_eq!(Timestamp::parse("2026-06-01T10:00:05"), None);
    }

    #[test]
    fn writes_six_decimals_or_none() {
        assert_eq!(Timestamp::from_micros(0).to_string(), "1970-01-01T00:00:00Z");
        assert_eq!(
            Timestamp::from_micros(1_722_513_600_123_456).to_string(),
            "2024-08-01T12:00:00.123456Z"
        );
        assert_eq!(
            Timestamp::parse("2024-08-01T14:00:00.5+02:00").map(|t| t.to_string()),
            Some("2024-08-01T12:00:00.500000Z".to_owned())
        );
    }
}
