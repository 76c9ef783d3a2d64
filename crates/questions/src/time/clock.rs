//! What clocks and the calendar of a project show, for expressions of SQL (QRY-49, QRY-53).
//!
//! What belongs here: instants and local times as numbers. What does not: ranges of questions
//! (`range`) and their buckets (`buckets`).

use std::ops::Range;

use jiff::ToSpan;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::calendar::{Calendar, instant};
use crate::time::DateUnit;

impl Calendar {
    /// The unit that contains an instant: its first instant, and the one after it. `None`: it
    /// is outside of the calendar.
    pub fn unit(&self, unit: DateUnit, micros: i64) -> Option<Range<i64>> {
        Some(self.floor(unit, micros)?..self.ceiling(unit, micros)?)
    }

    /// What clocks show at an instant, as if it were in UTC.
    pub fn clock(&self, micros: i64) -> Option<i64> {
        as_utc(self.local(micros))
    }

    /// The instant at which clocks show a time. A time that clocks skip becomes the time after
    /// the change; of a time that comes twice, it is the first one.
    pub fn at_clock(&self, local: i64) -> Option<i64> {
        self.instant_of(TimeZone::UTC.to_datetime(instant(local)))
    }

    /// The instant some units later, or earlier if their number is negative: hours and minutes
    /// by their length, days and longer units at the same time of the day. A day that a month
    /// does not have becomes its last one.
    pub fn moved_by(&self, micros: i64, count: i64, unit: DateUnit) -> Option<i64> {
        if let Some(length) = unit.clock_micros() {
            return micros.checked_add(length.checked_mul(count)?);
        }
        let span = match unit {
            DateUnit::Week => 0.days().try_days(count.checked_mul(7)?),
            DateUnit::Month => 0.days().try_months(count),
            DateUnit::Quarter => 0.days().try_months(count.checked_mul(3)?),
            DateUnit::Year => 0.days().try_years(count),
            _ => 0.days().try_days(count),
        };
        let local = self.local(micros);
        let date = local.date().checked_add(span.ok()?).ok()?;
        self.instant_of(date.to_datetime(local.time()))
    }
}

fn as_utc(local: DateTime) -> Option<i64> {
    TimeZone::UTC.to_timestamp(local).ok().map(|instant| instant.as_microsecond())
}

#[cfg(test)]
mod tests {
    use weir_model::Timestamp;

    use super::*;
    use crate::time::WeekStart;

    fn micros(text: &str) -> i64 {
        Timestamp::parse(text).unwrap().micros()
    }

    #[test]
    fn clocks_and_instants_follow_the_time_zone() {
        let berlin = Calendar::new("Europe/Berlin", WeekStart::Monday).unwrap();
        for (instant, clock) in [
            ("2026-06-01T22:30:00Z", "2026-06-02T00:30:00Z"),
            ("2026-10-25T00:30:00Z", "2026-10-25T02:30:00Z"),
            ("2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"),
        ] {
            assert_eq!(berlin.clock(micros(instant)), Some(micros(clock)), "{instant}");
        }
        // A time that comes twice, and one that clocks skip.
        let at = |clock: &str| Timestamp::from_micros(berlin.at_clock(micros(clock)).unwrap());
        assert_eq!(at("2026-10-25T02:30:00Z").to_string(), "2026-10-25T00:30:00Z");
        assert_eq!(at("2026-03-29T02:30:00Z").to_string(), "2026-03-29T01:30:00Z");
    }

    #[test]
    fn instants_are_moved_by_the_calendar() {
        let berlin = Calendar::new("Europe/Berlin", WeekStart::Monday).unwrap();
        for (from, count, unit, to) in [
            ("2026-10-24T12:00:00Z", 1, DateUnit::Day, "2026-10-25T13:00:00Z"),
            ("2026-10-24T12:00:00Z", 24, DateUnit::Hour, "2026-10-25T12:00:00Z"),
            ("2026-01-31T12:00:00Z", 1, DateUnit::Month, "2026-02-28T12:00:00Z"),
            ("2026-03-31T11:00:00Z", -1, DateUnit::Month, "2026-02-28T12:00:00Z"),
            ("2024-02-29T12:00:00Z", 1, DateUnit::Year, "2025-02-28T12:00:00Z"),
            ("2026-08-21T12:00:00Z", -1, DateUnit::Quarter, "2026-05-21T12:00:00Z"),
            ("2026-08-21T12:00:00Z", 2, DateUnit::Week, "2026-09-04T12:00:00Z"),
        ] {
            assert_eq!(berlin.moved_by(micros(from), count, unit), Some(micros(to)), "{from}");
        }
        for count in [i64::MIN, i64::MAX] {
            assert_eq!(berlin.moved_by(0, count, DateUnit::Year), None);
            assert_eq!(berlin.moved_by(0, count, DateUnit::Week), None);
            assert_eq!(berlin.moved_by(1, count, DateUnit::Hour), None);
        }
    }

    #[test]
    fn a_unit_has_its_bounds() {
        let berlin = Calendar::new("Europe/Berlin", WeekStart::Monday).unwrap();
        let unit = berlin.unit(DateUnit::Day, micros("2026-10-25T12:00:00Z")).unwrap();
        assert_eq!(unit, micros("2026-10-24T22:00:00Z")..micros("2026-10-25T23:00:00Z"));
    }
}
