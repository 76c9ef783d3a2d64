//! Time in questions: intervals, dates as clients write them, ranges, and buckets.
//!
//! What belongs here: everything that follows from a date, a time zone and the current
//! time. All instants are microseconds since 1970-01-01 UTC, and ranges do not include
//! their end.

#[cfg(feature = "zones")]
mod buckets;
#[cfg(feature = "zones")]
mod calendar;
#[cfg(feature = "zones")]
mod clock;
mod dates;
#[cfg(feature = "zones")]
mod labels;
#[cfg(feature = "zones")]
mod range;

use crate::choices::choices;

#[cfg(feature = "zones")]
pub use buckets::{BUCKETS_MAX, Buckets};
#[cfg(feature = "zones")]
pub use calendar::{Calendar, WeekStart};
pub use dates::{DateText, DateUnit, Edge, RelativeDate};
#[cfg(feature = "zones")]
pub use range::TimeRange;

choices! {
    /// The length of a bucket (QRY-8).
    Interval {
        /// A minute.
        Minute = "minute",
        /// An hour.
        Hour = "hour",
        /// A day of the calendar.
        Day = "day",
        /// A week of the calendar.
        Week = "week",
        /// A month of the calendar.
        Month = "month",
    }
}

impl Interval {
    /// The unit of dates with the same length.
    pub const fn unit(self) -> DateUnit {
        match self {
            Self::Minute => DateUnit::Minute,
            Self::Hour => DateUnit::Hour,
            Self::Day => DateUnit::Day,
            Self::Week => DateUnit::Week,
            Self::Month => DateUnit::Month,
        }
    }

    /// Whether its boundaries follow the clock, not the calendar.
    pub const fn is_of_clock(self) -> bool {
        matches!(self, Self::Minute | Self::Hour)
    }
}
