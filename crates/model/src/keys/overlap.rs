//! How long the previous value of a key stays valid after the key was rolled.

use crate::errors::FieldError;
use crate::time::Timestamp;

const HOUR: i64 = 60 * 60;

/// How long the previous value stays valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overlap {
    /// It ends immediately.
    #[default]
    None,
    /// An hour.
    Hour,
    /// A day.
    Day,
    /// Seven days.
    Week,
}

impl Overlap {
    /// All values, the shortest first.
    pub const ALL: [Self; 4] = [Self::None, Self::Hour, Self::Day, Self::Week];

    /// The word in forms.
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "now",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
        }
    }

    /// The value with this word.
    ///
    /// # Errors
    /// `invalid_choice` at `overlap`.
    pub fn parse(word: &str) -> Result<Self, FieldError> {
        let found = Self::ALL.into_iter().find(|overlap| overlap.word() == word);
        found.ok_or_else(|| {
            FieldError::new("overlap", "invalid_choice", "Choose until when the old value works.")
        })
    }

    /// When the previous value ends if the new one is created at `now`; `None`:
    /// immediately.
    pub fn until(self, now: Timestamp) -> Option<Timestamp> {
        let hours = match self {
            Self::None => return None,
            Self::Hour => 1,
            Self::Day => 24,
            Self::Week => 7 * 24,
        };
        Some(now.plus_seconds(hours * HOUR))
    }
}

#[cfg(test)]
mod tests {
    use super::Overlap;
    use crate::time::Timestamp;

    #[test]
    fn words_and_times() {
        for overlap in Overlap::ALL {
            assert_eq!(Overlap::parse(overlap.word()).unwrap(), overlap);
        }
        assert_eq!(Overlap::parse("year").unwrap_err().attr.as_deref(), Some("overlap"));
        assert_eq!(Overlap::None.until(Timestamp::EPOCH), None);
        let day = Overlap::Day.until(Timestamp::EPOCH);
        assert_eq!(day, Some(Timestamp::EPOCH.plus_seconds(86_400)));
    }
}
