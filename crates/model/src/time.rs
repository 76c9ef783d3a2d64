//! Points in time as the API shows them.

use std::fmt;

use chrono::{DateTime, Timelike, Utc};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time, UTC, microsecond precision.
///
/// Written as `2024-08-01T12:00:00.123456Z`, without decimals when the
/// microseconds are zero (management-api 1.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(DateTime<Utc>);

impl Timestamp {
    /// The first instant of 1970.
    pub const EPOCH: Self = Self(DateTime::<Utc>::UNIX_EPOCH);

    /// From microseconds since 1970; values beyond the calendar become the epoch.
    #[must_use]
    pub fn from_micros(micros: i64) -> Self {
        Self(DateTime::from_timestamp_micros(micros).unwrap_or(DateTime::UNIX_EPOCH))
    }

    /// Microseconds since 1970.
    #[must_use]
    pub fn micros(self) -> i64 {
        self.0.timestamp_micros()
    }

    /// The value as a `chrono` time.
    #[must_use]
    pub fn to_chrono(self) -> DateTime<Utc> {
        self.0
    }

    /// Reads the written form, and any other RFC 3339 form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        DateTime::parse_from_rfc3339(text).ok().map(|t| Self::from(t.with_timezone(&Utc)))
    }

    /// This time moved by a number of seconds.
    #[must_use]
    pub fn plus_seconds(self, seconds: i64) -> Self {
        Self::from_micros(self.micros().saturating_add(seconds.saturating_mul(1_000_000)))
    }

    /// `2026-08-21 14:05 UTC`: the form pages show before the browser knows better.
    #[must_use]
    pub fn minute_text(self) -> String {
        self.0.format("%Y-%m-%d %H:%M UTC").to_string()
    }

    /// `14:05:09.123`: the form of the live list.
    #[must_use]
    pub fn clock_text(self) -> String {
        self.0.format("%H:%M:%S%.3f").to_string()
    }
}

impl From<DateTime<Utc>> for Timestamp {
    fn from(time: DateTime<Utc>) -> Self {
        Self::from_micros(time.timestamp_micros())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = if self.0.nanosecond() < 1_000 {
            "%Y-%m-%dT%H:%M:%SZ"
        } else {
            "%Y-%m-%dT%H:%M:%S%.6fZ"
        };
        self.0.format(form).fmt(f)
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
