//! Filters of the lists of dropped and altered events.

use std::fmt;
use std::str::FromStr;

use crate::time::Timestamp;

/// A cursor in the list of dropped and altered events, latest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AffectedCursor {
    /// Time of receipt.
    pub received_at: Timestamp,
    /// Distinguishes events of the same time, together with the number.
    pub partition: u16,
    /// Number of the event in the partition.
    pub number: i64,
}

impl fmt::Display for AffectedCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.received_at.micros(), self.partition, self.number)
    }
}

/// The text is not a valid cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidCursor;

impl FromStr for AffectedCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let mut parts = text.splitn(3, ':');
        let mut part = || parts.next().ok_or(InvalidCursor);
        let cursor = Self {
            received_at: Timestamp::from_micros(part()?.parse().map_err(|_| InvalidCursor)?),
            partition: part()?.parse().map_err(|_| InvalidCursor)?,
            number: part()?.parse().map_err(|_| InvalidCursor)?,
        };
        Ok(cursor)
    }
}

/// A filter for dropped and altered events; newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AffectedQuery {
    /// Only events with this reason or warning.
    pub code: Option<String>,
    /// Only events received after this time.
    pub after: Option<Timestamp>,
    /// Only events received before this time.
    pub before: Option<Timestamp>,
    /// Only events after this cursor.
    pub behind: Option<AffectedCursor>,
    /// Only dropped events.
    pub is_dropped: bool,
    /// Number of events to skip.
    pub offset: usize,
    /// Maximum number of events.
    pub limit: usize,
}

#[cfg(test)]
mod tests {
    use super::{AffectedCursor, InvalidCursor};
    use crate::time::Timestamp;

    #[test]
    fn cursors_are_read_back() {
        let received_at = Timestamp::from_micros(1_700_000_000_000_001);
        let cursor = AffectedCursor { received_at, partition: 5, number: 42 };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for text in ["", "1", "1:2", "1:2:x", "1:2:3:4", "x:2:3", "1:99999:3"] {
            assert_eq!(text.parse::<AffectedCursor>(), Err(InvalidCursor), "{text}");
        }
    }
}
