//! The position in the list of events, whose rows come from three places.

use std::fmt;
use std::str::FromStr;

use crate::time::Timestamp;
use crate::warnings::{AffectedCursor, InvalidCursor};

/// The next page has the rows behind this position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowCursor {
    /// Only stored events with a lower arrival number. `None`: all.
    pub arrival: Option<u64>,
    /// Only dropped events behind this one. `None`: all.
    pub dropped: Option<AffectedCursor>,
    /// Only refused requests behind this one. `None`: all.
    pub refused: Option<RefusedCursor>,
}

/// A cursor in the list of refused requests, latest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RefusedCursor {
    /// Time of receipt.
    pub at: Timestamp,
    /// Number of the request. Distinguishes requests of the same time.
    pub number: u64,
}

impl RefusedCursor {
    /// The cursor behind a request with this key, which ends with its number.
    pub fn behind(at: Timestamp, key: &str) -> Self {
        let number = key.rsplit_once('-').and_then(|(_, number)| number.parse().ok());
        Self { at, number: number.unwrap_or(0) }
    }
}

impl fmt::Display for RefusedCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.at.micros(), self.number)
    }
}

impl FromStr for RefusedCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let (at, number) = text.split_once(':').ok_or(InvalidCursor)?;
        Ok(Self {
            at: Timestamp::from_micros(at.parse().map_err(|_| InvalidCursor)?),
            number: number.parse().map_err(|_| InvalidCursor)?,
        })
    }
}

impl RowCursor {
    /// Before the newest row.
    pub const NEWEST: Self = Self { arrival: None, dropped: None, refused: None };
}

/// Three parts with a comma between them. Each may be empty.
impl fmt::Display for RowCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |part: Option<String>| part.unwrap_or_default();
        write!(
            f,
            "{},{},{}",
            text(self.arrival.map(|number| number.to_string())),
            text(self.dropped.map(|cursor| cursor.to_string())),
            text(self.refused.map(|cursor| cursor.to_string()))
        )
    }
}

impl FromStr for RowCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        fn part<T: FromStr>(text: &str) -> Result<Option<T>, InvalidCursor> {
            match text {
                "" => Ok(None),
                text => text.parse().map(Some).map_err(|_| InvalidCursor),
            }
        }
        let parts: Vec<&str> = text.split(',').collect();
        let [arrival, dropped, refused] = parts.as_slice() else { return Err(InvalidCursor) };
        Ok(Self { arrival: part(arrival)?, dropped: part(dropped)?, refused: part(refused)? })
    }
}

#[cfg(test)]
mod tests {
    use super::{RefusedCursor, RowCursor};
    use crate::time::Timestamp;
    use crate::warnings::{AffectedCursor, InvalidCursor};

    #[test]
    fn cursors_are_read_back() {
        let received_at = Timestamp::from_micros(1_700_000_000_000_001);
        let dropped = Some(AffectedCursor { received_at, partition: 5, number: 42 });
        let refused = Some(RefusedCursor { at: received_at, number: 3 });
        for cursor in [
            RowCursor::NEWEST,
            RowCursor { arrival: Some(7), ..RowCursor::NEWEST },
            RowCursor { arrival: Some(u64::MAX), dropped, refused },
        ] {
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for text in ["", "1", "1,2", "x,,", ",1:2,", ",,x", ",,1", "1,,1:2,"] {
            assert_eq!(text.parse::<RowCursor>(), Err(InvalidCursor), "{text}");
        }
    }

    #[test]
    fn the_key_of_a_refused_request_ends_with_its_number() {
        let at = Timestamp::from_micros(7);
        assert_eq!(RefusedCursor::behind(at, "refused-7-12"), RefusedCursor { at, number: 12 });
        assert_eq!(RefusedCursor::behind(at, "other").number, 0);
    }
}
