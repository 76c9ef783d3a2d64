//! Dropped and altered events, read back.

use std::fmt;
use std::str::FromStr;

use crate::time::Timestamp;

/// Where a dropped or altered event stands in the list of them: later ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// When it reached us.
    pub received_at: Timestamp,
    /// Tells those of one time apart, with the number.
    pub partition: u16,
    /// Its number in the partition.
    pub number: i64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.received_at.micros(), self.partition, self.number)
    }
}

/// A text that is no place.
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

/// Which dropped and altered events are wanted; newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AffectedQuery {
    /// Of this reason or warning.
    pub code: Option<String>,
    /// Only those that reached us after this time.
    pub after: Option<Timestamp>,
    /// Only those that reached us before this time.
    pub before: Option<Timestamp>,
    /// Only those behind this place in the list.
    pub behind: Option<Place>,
    /// Only those that were dropped.
    pub is_dropped: bool,
    /// How many to pass over.
    pub offset: usize,
    /// How many at most.
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
