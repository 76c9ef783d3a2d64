//! Dates as clients write them: `-7d`, `mStart`, `all`, `2026-08-21` (QRY-6).
//!
//! What belongs here: what a text means without a time zone and without the current time.
//! What does not: the instant that it stands for (`range`).

use std::fmt;

use serde::{Serialize, Serializer};
use weir_model::Timestamp;
use weir_model::time::text::{Forms, calendar};

/// Longest text of a date.
const TEXT_MAX: usize = 40;
/// The largest number in a relative date.
const BACK_MAX: u32 = 100_000;
const DAY: i64 = 86_400_000_000;
const MINUTE: i64 = 60_000_000;
/// Bytes of a date without a time, such as `2026-08-21`.
const DAY_LENGTH: usize = 10;

/// A unit of relative dates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DateUnit {
    /// `M`
    Minute,
    /// `h`
    Hour,
    /// `d`
    Day,
    /// `w`
    Week,
    /// `m`
    Month,
    /// `q`
    Quarter,
    /// `y`
    Year,
}

impl DateUnit {
    const LETTERS: [(Self, char); 7] = [
        (Self::Minute, 'M'),
        (Self::Hour, 'h'),
        (Self::Day, 'd'),
        (Self::Week, 'w'),
        (Self::Month, 'm'),
        (Self::Quarter, 'q'),
        (Self::Year, 'y'),
    ];

    /// Its letter.
    pub fn letter(self) -> char {
        let found = Self::LETTERS.iter().find(|(unit, _)| *unit == self);
        found.map_or('d', |(_, letter)| *letter)
    }

    fn of_letter(letter: char) -> Option<Self> {
        let found = Self::LETTERS.iter().find(|(_, other)| *other == letter);
        found.map(|(unit, _)| *unit)
    }

    /// The length in microseconds of a unit of the clock. `None`: a unit of the calendar.
    pub const fn clock_micros(self) -> Option<i64> {
        match self {
            Self::Minute => Some(MINUTE),
            Self::Hour => Some(60 * MINUTE),
            _ => None,
        }
    }
}

/// An edge of the unit of a relative date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Edge {
    /// `Start`: the beginning of the unit.
    Start,
    /// `End`: the end of the unit.
    End,
}

/// A number of units before the current time: `-7d`, `-1mStart`, `yStart`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RelativeDate {
    /// How many units back.
    pub back: u32,
    /// The unit.
    pub unit: DateUnit,
    /// The edge of the unit. `None`: the same time of the day.
    pub edge: Option<Edge>,
}

impl RelativeDate {
    fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix('-').unwrap_or(text);
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let (digits, rest) = rest.split_at_checked(end)?;
        let back = if digits.is_empty() { 0 } else { digits.parse().ok()? };
        let mut letters = rest.chars();
        let unit = DateUnit::of_letter(letters.next()?)?;
        let edge = match letters.as_str() {
            "" => None,
            "Start" => Some(Edge::Start),
            "End" => Some(Edge::End),
            _ => return None,
        };
        // A letter alone would be the current time, which is more likely a mistake.
        let says_something = !digits.is_empty() || edge.is_some();
        (says_something && back <= BACK_MAX).then_some(Self { back, unit, edge })
    }
}

impl fmt::Display for RelativeDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.back > 0 || self.edge.is_none() {
            write!(f, "-{}", self.back)?;
        }
        write!(f, "{}", self.unit.letter())?;
        match self.edge {
            None => Ok(()),
            Some(Edge::Start) => f.write_str("Start"),
            Some(Edge::End) => f.write_str("End"),
        }
    }
}

/// A date in a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DateText {
    /// `all`: since the first event.
    All,
    /// Relative to the current time.
    Relative(RelativeDate),
    /// A day of the calendar, as microseconds of its beginning as if it were in UTC.
    Day(i64),
    /// A time without a zone, as microseconds as if it were in UTC.
    Local(i64),
    /// A time with a zone, in microseconds.
    Instant(i64),
}

impl DateText {
    /// The date of a text. `None` if it is no date.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.len() > TEXT_MAX {
            return None;
        }
        if text == "all" {
            return Some(Self::All);
        }
        if let Some(relative) = RelativeDate::parse(text) {
            return Some(Self::Relative(relative));
        }
        let micros = calendar(text, Forms::Unambiguous)?;
        Some(match text.get(DAY_LENGTH..) {
            None | Some("") => Self::Day(micros),
            Some(time) if time.contains(['Z', 'z', '+', '-']) => Self::Instant(micros),
            Some(_) => Self::Local(micros),
        })
    }
}

/// The text that clients write.
impl fmt::Display for DateText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Relative(relative) => relative.fmt(f),
            Self::Day(micros) => {
                let start = micros.div_euclid(DAY) * DAY;
                f.write_str(&Timestamp::from_micros(start).day_text())
            }
            Self::Local(micros) => {
                let text = Timestamp::from_micros(*micros).to_string();
                f.write_str(text.trim_end_matches('Z'))
            }
            Self::Instant(micros) => Timestamp::from_micros(*micros).fmt(f),
        }
    }
}

impl Serialize for DateText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_that_clients_write_are_read() {
        for (text, written) in [
            ("all", "all"),
            ("-7d", "-7d"),
            ("7d", "-7d"),
            ("-0d", "-0d"),
            ("-24h", "-24h"),
            ("-30M", "-30M"),
            ("-2w", "-2w"),
            ("-1q", "-1q"),
            ("dStart", "dStart"),
            ("-0dStart", "dStart"),
            ("mStart", "mStart"),
            ("-1mStart", "-1mStart"),
            ("-1mEnd", "-1mEnd"),
            ("yStart", "yStart"),
            (" 2026-08-21 ", "2026-08-21"),
            ("2026/08/21", "2026-08-21"),
            ("2026-08-21T14:05", "2026-08-21T14:05:00"),
            ("2026-08-21 14:05:06.5", "2026-08-21T14:05:06.500000"),
            ("2026-08-21T14:05:00Z", "2026-08-21T14:05:00Z"),
            ("2026-08-21T14:05:00-02:00", "2026-08-21T16:05:00Z"),
        ] {
            let read = DateText::parse(text).unwrap();
            assert_eq!(read.to_string(), written, "{text}");
            assert_eq!(DateText::parse(written), Some(read), "{written}");
        }
        let month = DateText::parse("-1mStart").unwrap();
        let expected = RelativeDate { back: 1, unit: DateUnit::Month, edge: Some(Edge::Start) };
        assert_eq!(month, DateText::Relative(expected));
    }

    #[test]
    fn other_texts_are_no_dates() {
        for text in [
            "",
            "-",
            "d",
            "-d",
            "--7d",
            "+7d",
            "-7",
            "-7x",
            "-7D",
            "-7dstart",
            "-7d ago",
            "-100001d",
            "-99999999999999999999d",
            "-١d",
            "All",
            "yesterday",
            "2026-02-30",
            "2026-08-21T25:00",
            "2026-08-21T14:05 Europe/Berlin",
            "2026-08-21T14:05:06.00000000000000000000000000000000000000000000001",
        ] {
            assert_eq!(DateText::parse(text), None, "{text}");
        }
    }
}
