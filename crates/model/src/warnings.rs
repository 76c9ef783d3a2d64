//! Filters of the lists of dropped and altered events.

use std::fmt;
use std::str::FromStr;

use crate::time::Timestamp;

/// A cursor in the list of dropped and altered events, latest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Time of receipt.
    pub received_at: Timestamp,
    /// Distinguishes events of the same time, together with the number.
    pub partition: u16,
    /// Number of the event in the partition.
    pub number: i64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.received_at.micros(), self.partition, self.number)
    }
}

/// The text is not a valid cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPlace;

impl FromStr for Place {
    type Err = NoPlace;

    fn from_str(text: &str) -> Result<Self, NoPlace> {
        let mut parts = text.splitn(3, ':');
        let mut part = || parts.next().ok_or(NoPlace);
        let place = Self {
            received_at: Timestamp::from_micros(part()?.parse().map_err(|_| NoPlace)?),
            partition: part()?.parse().map_err(|_| NoPlace)?,
            number: part()?.parse().map_err(|_| NoPlace)?,
        };
        Ok(place)
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
    pub behind: Option<Place>,
    /// Only dropped events.
    pub is_dropped: bool,
    /// Number of events to skip.
    pub offset: usize,
    /// Maximum number of events.
    pub limit: usize,
}

#[cfg(test)]
mod tests {
    use super::{NoPlace, Place};
    use crate::time::Timestamp;

    #[test]
    fn places_are_read_back() {
        let received_at = Timestamp::from_micros(1_700_000_000_000_001);
        let place = Place { received_at, partition: 5, number: 42 };
        assert_eq!(place.to_string().parse(), Ok(place));
        for text in ["", "1", "1:2", "1:2:x", "1:2:3:4", "x:2:3", "1:99999:3"] {
            assert_eq!(text.parse::<Place>(), Err(NoPlace), "{text}");
        }
    }
}
