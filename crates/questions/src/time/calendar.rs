//! Units of the clock and of the calendar in a time zone (QRY-7).
//!
//! A day has 23 or 25 hours where clocks are changed. An hour that comes twice is two
//! hours. A day that begins without midnight begins with its first instant.

use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp as Instant, ToSpan};

use crate::time::{DateUnit, Edge, RelativeDate};

/// How many changes of the offset may lie within a minute or an hour.
const CHANGES_MAX: usize = 4;
const SECOND: i64 = 1_000_000;

/// The day on which weeks begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WeekStart {
    /// Sunday, as projects without a setting have it.
    #[default]
    Sunday,
    /// Monday.
    Monday,
}

impl WeekStart {
    /// From the setting of a project: 0 Sunday, 1 Monday.
    pub fn of_project(week_start_day: Option<i64>) -> Self {
        if week_start_day == Some(1) { Self::Monday } else { Self::Sunday }
    }
}

/// The calendar of a project: its time zone, and where its weeks begin.
#[derive(Debug, Clone)]
pub struct Calendar {
    zone: TimeZone,
    week_start: WeekStart,
}

impl Calendar {
    /// The calendar of a time zone by its IANA name. `None` if there is no such zone.
    pub fn new(timezone: &str, week_start: WeekStart) -> Option<Self> {
        // The binary contains the whole table: the one of the machine may be older.
        let zone = TimeZoneDatabase::bundled().get(timezone).ok()?;
        Some(Self { zone, week_start })
    }

    /// The local time of an instant.
    pub(super) fn local(&self, micros: i64) -> DateTime {
        self.zone.to_datetime(instant(micros))
    }

    /// The instant of a local time. A time that clocks skip becomes the time after the
    /// change; of a time that comes twice, it is the first one.
    pub(super) fn instant_of(&self, local: DateTime) -> Option<i64> {
        self.zone.to_timestamp(local).ok().map(Instant::as_microsecond)
    }

    /// The first instant of a day.
    pub(super) fn start_of_day(&self, date: Date) -> Option<i64> {
        self.instant_of(date.at(0, 0, 0, 0))
    }

    /// The beginning of the unit that contains an instant.
    pub(super) fn floor(&self, unit: DateUnit, micros: i64) -> Option<i64> {
        match unit.clock_micros() {
            Some(length) => Some(self.clock_floor(length, micros)),
            None => self.calendar_floor(unit, micros).map(|(_, start)| start),
        }
    }

    /// Whether an instant is on a Saturday or a Sunday.
    pub fn is_weekend(&self, micros: i64) -> bool {
        matches!(self.local(micros).weekday(), Weekday::Saturday | Weekday::Sunday)
    }

    /// The end of the unit that contains an instant. `None`: it is beyond the calendar.
    pub fn ceiling(&self, unit: DateUnit, micros: i64) -> Option<i64> {
        if let Some(length) = unit.clock_micros() {
            return Some(self.clock_next(length, self.clock_floor(length, micros)));
        }
        let (date, start) = self.calendar_floor(unit, micros)?;
        self.calendar_next(unit, date, start).map(|(_, next)| next)
    }

    /// The first day of the unit that contains an instant, and its first instant.
    pub(super) fn calendar_floor(&self, unit: DateUnit, micros: i64) -> Option<(Date, i64)> {
        let date = self.first_day(unit, self.local(micros).date())?;
        // Where clocks are set back around midnight, the next day may have begun already.
        let after = next_first_day(unit, date);
        let before = date.yesterday().ok().and_then(|last| self.first_day(unit, last));
        [after, Some(date), before]
            .into_iter()
            .flatten()
            .filter_map(|date| Some((date, self.start_of_day(date)?)))
            .find(|(_, start)| *start <= micros)
    }

    /// The unit after one that begins on this day and at this instant.
    pub(super) fn calendar_next(
        &self,
        unit: DateUnit,
        date: Date,
        start: i64,
    ) -> Option<(Date, i64)> {
        let mut date = date;
        // A zone that changed sides of the date line has skipped a day.
        for _ in 0..CHANGES_MAX {
            date = next_first_day(unit, date)?;
            let next = self.start_of_day(date)?;
            if next > start {
                let is_day = unit == DateUnit::Day;
                return Some((if is_day { self.local(next).date() } else { date }, next));
            }
        }
        None
    }

    /// The instant this many units earlier, at the same time of the day.
    pub(super) fn back(&self, micros: i64, back: u32, unit: DateUnit) -> Option<i64> {
        if back == 0 {
            return Some(micros);
        }
        if let Some(length) = unit.clock_micros() {
            return micros.checked_sub(length.checked_mul(i64::from(back))?);
        }
        let local = self.local(micros);
        let date = days_or_months_back(local.date(), back, unit)?;
        self.instant_of(date.to_datetime(local.time()))
    }

    /// The instant of a relative date. The end of a unit is the beginning of the next one.
    pub(super) fn relative(&self, date: RelativeDate, now: i64) -> Option<i64> {
        let moved = self.back(now, date.back, date.unit)?;
        match date.edge {
            None => Some(moved),
            Some(Edge::Start) => self.floor(date.unit, moved),
            Some(Edge::End) => self.ceiling(date.unit, moved),
        }
    }

    /// The first day of the unit that contains a day.
    pub(super) fn first_day(&self, unit: DateUnit, date: Date) -> Option<Date> {
        match unit {
            DateUnit::Minute | DateUnit::Hour | DateUnit::Day => Some(date),
            DateUnit::Week => {
                let over = match self.week_start {
                    WeekStart::Sunday => date.weekday().to_sunday_zero_offset(),
                    WeekStart::Monday => date.weekday().to_monday_zero_offset(),
                };
                date.checked_sub(i64::from(over).days()).ok()
            }
            DateUnit::Month => Some(date.first_of_month()),
            DateUnit::Quarter => {
                let month = (date.month() - 1) / 3 * 3 + 1;
                Date::new(date.year(), month, 1).ok()
            }
            DateUnit::Year => Some(date.first_of_year()),
        }
    }

    /// The beginning of the minute or hour that contains an instant.
    fn clock_floor(&self, length: i64, micros: i64) -> i64 {
        let mut at = micros;
        for _ in 0..CHANGES_MAX {
            let start = at - (at + self.offset(at)).rem_euclid(length);
            match self.last_change(at) {
                Some(change) if change > start => {
                    if self.begins_unit(change, length) {
                        return change;
                    }
                    // The unit began before the change.
                    at = change - 1;
                }
                _ => return start,
            }
        }
        at
    }

    /// The beginning of the minute or hour after one that begins at this instant.
    pub(super) fn clock_next(&self, length: i64, start: i64) -> i64 {
        let mut at = start;
        for _ in 0..CHANGES_MAX {
            let next = at + length - (at + self.offset(at)).rem_euclid(length);
            match self.next_change(at) {
                Some(change) if change <= next => {
                    if self.begins_unit(change, length) {
                        return change;
                    }
                    at = change;
                }
                _ => return next,
            }
        }
        at + length
    }

    /// Whether a minute or hour begins where the offset changes: local time is then at its
    /// beginning, or in another one than before.
    fn begins_unit(&self, change: i64, length: i64) -> bool {
        let after = change + self.offset(change);
        let before = change - 1 + self.offset(change - 1);
        after.rem_euclid(length) == 0 || after.div_euclid(length) != before.div_euclid(length)
    }

    /// Microseconds by which local time is ahead of UTC.
    fn offset(&self, micros: i64) -> i64 {
        i64::from(self.zone.to_offset(instant(micros)).seconds()) * SECOND
    }

    /// The last change of the offset that is not after an instant.
    fn last_change(&self, micros: i64) -> Option<i64> {
        let next_second = (micros.div_euclid(SECOND) + 1).saturating_mul(SECOND);
        let change = self.zone.preceding(instant(next_second)).next()?;
        Some(change.timestamp().as_microsecond())
    }

    /// The first change of the offset after an instant.
    pub(super) fn next_change(&self, micros: i64) -> Option<i64> {
        let this_second = micros.div_euclid(SECOND) * SECOND;
        let change = self.zone.following(instant(this_second)).next()?;
        Some(change.timestamp().as_microsecond())
    }
}

/// The first day of the next unit, from the first day of one.
fn next_first_day(unit: DateUnit, date: Date) -> Option<Date> {
    let span = match unit {
        DateUnit::Minute | DateUnit::Hour | DateUnit::Day => 1.day(),
        DateUnit::Week => 7.days(),
        DateUnit::Month => 1.month(),
        DateUnit::Quarter => 3.months(),
        DateUnit::Year => 1.year(),
    };
    date.checked_add(span).ok()
}

/// The day this many units earlier: the last day of a month that is shorter.
pub(super) fn days_or_months_back(date: Date, back: u32, unit: DateUnit) -> Option<Date> {
    let back = i64::from(back);
    let span = jiff::Span::new();
    let span = match unit {
        DateUnit::Minute | DateUnit::Hour => return Some(date),
        DateUnit::Day => span.try_days(back),
        DateUnit::Week => span.try_days(back * 7),
        DateUnit::Month => span.try_months(back),
        DateUnit::Quarter => span.try_months(back * 3),
        DateUnit::Year => span.try_years(back),
    };
    date.checked_sub(span.ok()?).ok()
}

/// The instant of a time. Times outside of the calendar become its first or last instant.
pub(super) fn instant(micros: i64) -> Instant {
    let end = if micros < 0 { Instant::MIN } else { Instant::MAX };
    Instant::from_microsecond(micros).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use weir_model::Timestamp;

    use super::*;

    fn calendar(zone: &str) -> Calendar {
        Calendar::new(zone, WeekStart::Monday).unwrap()
    }

    fn micros(text: &str) -> i64 {
        Timestamp::parse(text).unwrap().micros()
    }

    fn text(micros: i64) -> String {
        Timestamp::from_micros(micros).to_string()
    }

    #[test]
    fn weekends_are_those_of_the_zone() {
        for (at, expected) in [
            ("2026-08-21T21:59:59Z", false),
            ("2026-08-21T22:00:00Z", true),
            ("2026-08-23T21:59:59Z", true),
            ("2026-08-23T22:00:00Z", false),
        ] {
            assert_eq!(calendar("Europe/Berlin").is_weekend(micros(at)), expected, "{at}");
        }
    }

    #[test]
    fn units_begin_and_end_where_local_time_says() {
        for (zone, unit, at, start, end) in [
            // A day of 25 hours and one of 23.
            (
                "Europe/Berlin",
                DateUnit::Day,
                "2026-10-25T12:00:00Z",
                "2026-10-24T22:00:00Z",
                "2026-10-25T23:00:00Z",
            ),
            (
                "Europe/Berlin",
                DateUnit::Day,
                "2026-03-29T12:00:00Z",
                "2026-03-28T23:00:00Z",
                "2026-03-29T22:00:00Z",
            ),
            // The hour that comes twice.
            (
                "Europe/Berlin",
                DateUnit::Hour,
                "2026-10-25T00:30:00Z",
                "2026-10-25T00:00:00Z",
                "2026-10-25T01:00:00Z",
            ),
            (
                "Europe/Berlin",
                DateUnit::Hour,
                "2026-10-25T01:30:00Z",
                "2026-10-25T01:00:00Z",
                "2026-10-25T02:00:00Z",
            ),
            // An offset that is no whole hour.
            (
                "Asia/Kolkata",
                DateUnit::Hour,
                "2026-08-21T14:05:00Z",
                "2026-08-21T13:30:00Z",
                "2026-08-21T14:30:00Z",
            ),
            // Clocks are set back by half an hour: 02:00 becomes 01:30.
            (
                "Australia/Lord_Howe",
                DateUnit::Hour,
                "2026-04-04T15:10:00Z",
                "2026-04-04T14:00:00Z",
                "2026-04-04T15:30:00Z",
            ),
            (
                "Europe/Berlin",
                DateUnit::Week,
                "2026-08-21T14:05:00Z",
                "2026-08-16T22:00:00Z",
                "2026-08-23T22:00:00Z",
            ),
            (
                "Europe/Berlin",
                DateUnit::Month,
                "2026-10-31T23:30:00Z",
                "2026-10-31T23:00:00Z",
                "2026-11-30T23:00:00Z",
            ),
            (
                "UTC",
                DateUnit::Quarter,
                "2026-08-21T14:05:00Z",
                "2026-07-01T00:00:00Z",
                "2026-10-01T00:00:00Z",
            ),
            (
                "UTC",
                DateUnit::Year,
                "2026-08-21T14:05:00Z",
                "2026-01-01T00:00:00Z",
                "2027-01-01T00:00:00Z",
            ),
            (
                "UTC",
                DateUnit::Minute,
                "1969-12-31T23:59:59.999999Z",
                "1969-12-31T23:59:00Z",
                "1970-01-01T00:00:00Z",
            ),
            // Samoa skipped 30 December 2011.
            (
                "Pacific/Apia",
                DateUnit::Day,
                "2011-12-30T09:00:00Z",
                "2011-12-29T10:00:00Z",
                "2011-12-30T10:00:00Z",
            ),
        ] {
            let calendar = calendar(zone);
            let found = calendar.floor(unit, micros(at)).unwrap();
            assert_eq!(text(found), start, "{zone} {at}");
            assert_eq!(text(calendar.ceiling(unit, micros(at)).unwrap()), end, "{zone} {at}");
            assert_eq!(calendar.floor(unit, found), Some(found), "{zone} {at}");
        }
    }

    #[test]
    fn weeks_begin_on_sunday_or_monday() {
        let sunday = Calendar::new("UTC", WeekStart::of_project(None)).unwrap();
        let monday = Calendar::new("UTC", WeekStart::of_project(Some(1))).unwrap();
        let friday = micros("2026-08-21T14:05:00Z");
        assert_eq!(text(sunday.floor(DateUnit::Week, friday).unwrap()), "2026-08-16T00:00:00Z");
        assert_eq!(text(monday.floor(DateUnit::Week, friday).unwrap()), "2026-08-17T00:00:00Z");
    }

    #[test]
    fn earlier_instants_keep_the_time_of_the_day() {
        let berlin = calendar("Europe/Berlin");
        let back = |at: &str, back, unit| text(berlin.back(micros(at), back, unit).unwrap());
        // Clocks are set back in between.
        let at = "2026-10-26T11:00:00Z";
        assert_eq!(back(at, 2, DateUnit::Day), "2026-10-24T10:00:00Z");
        assert_eq!(back(at, 48, DateUnit::Hour), "2026-10-24T11:00:00Z");
        assert_eq!(back("2026-03-31T10:00:00Z", 1, DateUnit::Month), "2026-02-28T11:00:00Z");
    }

    #[test]
    fn zones_without_a_name_and_times_without_a_date_are_refused() {
        assert!(Calendar::new("Mars/Olympus", WeekStart::Sunday).is_none());
        let utc = calendar("UTC");
        assert_eq!(utc.back(0, 100_000, DateUnit::Year), None);
        for micros in [i64::MIN, i64::MAX] {
            assert_eq!(utc.ceiling(DateUnit::Day, micros).filter(|end| *end <= micros), None);
        }
    }
}
