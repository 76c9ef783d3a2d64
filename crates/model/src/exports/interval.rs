//! The length of an export's intervals (EXP-19). `weir-schedule` computes the boundaries of
//! intervals.

use std::fmt;

use serde::{Deserialize, Serialize};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const WEEK: i64 = 7 * DAY;

/// The length of an export's intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum Interval {
    /// Every hour.
    #[serde(rename = "hour")]
    Hour,
    /// Every day, at an hour in a time zone: midnight UTC by default.
    #[serde(rename = "day")]
    Day,
    /// Every week, at a day and an hour in a time zone: Sunday, midnight UTC by default.
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
    /// All values, in the order of forms.
    pub const ALL: [Self; 5] =
        [Self::Hour, Self::Day, Self::Week, Self::FiveMinutes, Self::QuarterHour];

    /// The words on the wire, in the same order.
    pub const WORDS: [&'static str; 5] =
        ["hour", "day", "week", "every 5 minutes", "every 15 minutes"];

    /// The word on the wire.
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
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|interval| interval.text() == word)
    }

    /// Its length in seconds, ignoring changes to and from daylight saving time.
    pub const fn seconds(self) -> i64 {
        match self {
            Self::Hour => HOUR,
            Self::Day => DAY,
            Self::Week => WEEK,
            Self::FiveMinutes => 5 * MINUTE,
            Self::QuarterHour => 15 * MINUTE,
        }
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::Interval;

    #[test]
    fn words_read_back() {
        for (interval, word) in Interval::ALL.into_iter().zip(Interval::WORDS) {
            assert_eq!((interval.text(), Interval::of(word)), (word, Some(interval)));
            assert_eq!(serde_json::to_value(interval).unwrap(), word);
        }
        assert_eq!(Interval::of("Hour"), None);
    }
}
