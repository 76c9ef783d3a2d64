//! When a subscription is due (API-69): at one time of the day, on days that recur.
//!
//! The time of the day stays where clocks are set forward or back. If it does not exist on a
//! day, the time after the gap counts; if it comes twice, the first one does.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp as Instant};
use weir_model::Timestamp;
use weir_model::subscriptions::{Frequency, Weekday};

use crate::zone;

const DAYS_OF_WEEK: i64 = 7;
const MONTHS_OF_YEAR: i64 = 12;
/// Periods that are tried. The estimate of the first one is at most one too early, and the
/// dates of a period may all be before the searched time.
const TRIES: i64 = 5;

/// How often something recurs in a time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recurrence {
    frequency: Frequency,
    /// The number of days, weeks or months of a period.
    interval: i64,
    weekdays: Vec<Weekday>,
    place: Option<i64>,
    first: Timestamp,
    start: DateTime,
    zone: TimeZone,
}

impl Recurrence {
    /// From the time `first` on, each `interval` days, weeks or months. Without `weekdays` the
    /// day is that of the first time, or the last day of a month that does not have it.
    /// `place` says which of the weekdays of a month is meant. `None` if there is no such time
    /// zone.
    pub fn of(
        frequency: Frequency,
        interval: i64,
        weekdays: &[Weekday],
        place: Option<i64>,
        first: Timestamp,
        timezone: &str,
    ) -> Option<Self> {
        let zone = zone(timezone)?;
        let start = zone.to_datetime(instant(first));
        let (interval, weekdays) = (interval.max(1), weekdays.to_vec());
        Some(Self { frequency, interval, weekdays, place, first, start, zone })
    }

    /// The first time after this one. `None`: it is beyond the calendar.
    pub fn after(&self, time: Timestamp) -> Option<Timestamp> {
        let date = self.zone.to_datetime(instant(time)).date();
        let begin = self.period_of(date).saturating_sub(1).max(0);
        (begin..begin.saturating_add(TRIES))
            .flat_map(|period| self.dates(period))
            .filter_map(|date| {
                let local = date.to_datetime(self.start.time());
                let found = self.zone.to_timestamp(local).ok()?;
                Some(Timestamp::from_micros(found.as_microsecond()))
            })
            .find(|found| *found > time && *found >= self.first)
    }

    /// The number of the period that contains a date, about.
    fn period_of(&self, date: Date) -> i64 {
        let start = self.start.date();
        let units = match self.frequency {
            Frequency::Daily => days_between(start, date),
            Frequency::Weekly => days_between(start, date).div_euclid(DAYS_OF_WEEK),
            Frequency::Monthly => months(date) - months(start),
        };
        units.div_euclid(self.interval)
    }

    /// The dates of a period in order, also those before the first time.
    fn dates(&self, period: i64) -> Vec<Date> {
        let start = self.start.date();
        let Some(units) = period.checked_mul(self.interval) else { return Vec::new() };
        match self.frequency {
            Frequency::Daily => plus_days(start, units).into_iter().collect(),
            Frequency::Weekly if self.weekdays.is_empty() => {
                plus_days(start, units.saturating_mul(DAYS_OF_WEEK)).into_iter().collect()
            }
            Frequency::Weekly => {
                let over = i64::from(start.weekday().to_monday_zero_offset());
                let monday = units.saturating_mul(DAYS_OF_WEEK).saturating_sub(over);
                let days = (0..DAYS_OF_WEEK).filter_map(|day| plus_days(start, monday + day));
                days.filter(|date| self.has_weekday(*date)).collect()
            }
            Frequency::Monthly => {
                let span = Span::new().try_months(units).ok();
                let first = span.and_then(|span| start.first_of_month().checked_add(span).ok());
                first.and_then(|first| self.date_in(first)).into_iter().collect()
            }
        }
    }

    /// The date in the month that begins with this one.
    fn date_in(&self, first: Date) -> Option<Date> {
        let last = i64::from(first.days_in_month());
        if self.weekdays.is_empty() {
            let day = i64::from(self.start.date().day()).min(last);
            return plus_days(first, day - 1);
        }
        let days = (0..last).filter_map(|day| plus_days(first, day));
        let mut days = days.filter(|date| self.has_weekday(*date));
        match self.place.unwrap_or(1) {
            // Only the last one is counted from the end.
            ..=0 => days.next_back(),
            place => days.nth(usize::try_from(place - 1).ok()?),
        }
    }

    fn has_weekday(&self, date: Date) -> bool {
        let at = usize::try_from(date.weekday().to_monday_zero_offset()).ok();
        let day = at.and_then(|at| Weekday::ALL.get(at));
        day.is_some_and(|day| self.weekdays.contains(day))
    }
}

/// `2026-08-21 14:05`, or `2026-08-21` without the time of the day: an instant in a time zone.
/// `None` if there is no such time zone.
pub fn local_text(timezone: &str, time: Timestamp, has_time: bool) -> Option<String> {
    let local = zone(timezone)?.to_datetime(instant(time));
    let day = format!("{:04}-{:02}-{:02}", local.year(), local.month(), local.day());
    if !has_time {
        return Some(day);
    }
    Some(format!("{day} {:02}:{:02}", local.hour(), local.minute()))
}

fn instant(time: Timestamp) -> Instant {
    let end = if time.micros() < 0 { Instant::MIN } else { Instant::MAX };
    Instant::from_microsecond(time.micros()).unwrap_or(end)
}

fn plus_days(date: Date, days: i64) -> Option<Date> {
    date.checked_add(Span::new().try_days(days).ok()?).ok()
}

fn days_between(from: Date, to: Date) -> i64 {
    i64::from((to - from).get_days())
}

/// Months since the year 0.
fn months(date: Date) -> i64 {
    i64::from(date.year()) * MONTHS_OF_YEAR + i64::from(date.month())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    /// The first times of a recurrence in Berlin after an instant.
    fn times(
        (frequency, interval): (Frequency, i64),
        weekdays: &[Weekday],
        place: Option<i64>,
        first: &str,
        after: &str,
    ) -> Vec<String> {
        let zone = "Europe/Berlin";
        let of = Recurrence::of(frequency, interval, weekdays, place, time(first), zone).unwrap();
        let next = |found: &Timestamp| of.after(*found);
        let found = std::iter::successors(of.after(time(after)), next);
        found.take(3).map(|found| found.to_string()).collect()
    }

    #[test]
    fn the_time_of_the_day_stays_on_days_of_23_and_25_hours() {
        let daily = (Frequency::Daily, 1);
        let first = "2026-01-01T08:00:00Z";
        assert_eq!(
            times(daily, &[], None, first, "2026-03-28T08:00:00Z"),
            ["2026-03-29T07:00:00Z", "2026-03-30T07:00:00Z", "2026-03-31T07:00:00Z"]
        );
        assert_eq!(
            times(daily, &[], None, first, "2026-10-24T07:00:00Z"),
            ["2026-10-25T08:00:00Z", "2026-10-26T08:00:00Z", "2026-10-27T08:00:00Z"]
        );
        // 02:30 does not exist on one day, and comes twice on another.
        let night = "2026-01-01T01:30:00Z";
        assert_eq!(
            times(daily, &[], None, night, "2026-03-28T02:00:00Z"),
            ["2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z"]
        );
        assert_eq!(
            times(daily, &[], None, night, "2026-10-24T02:00:00Z"),
            ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z", "2026-10-27T01:30:00Z"]
        );
    }

    #[test]
    fn periods_are_counted_from_the_first_time() {
        let first = "2026-08-05T10:00:00Z";
        assert_eq!(
            times((Frequency::Daily, 3), &[], None, first, "2026-08-12T00:00:00Z"),
            ["2026-08-14T10:00:00Z", "2026-08-17T10:00:00Z", "2026-08-20T10:00:00Z"]
        );
        // A Wednesday: without days it is the day.
        assert_eq!(
            times((Frequency::Weekly, 1), &[], None, first, "2026-08-05T10:00:00Z"),
            ["2026-08-12T10:00:00Z", "2026-08-19T10:00:00Z", "2026-08-26T10:00:00Z"]
        );
        let days = [Weekday::Friday, Weekday::Monday];
        assert_eq!(
            times((Frequency::Weekly, 2), &days, None, first, "2026-08-01T00:00:00Z"),
            ["2026-08-07T10:00:00Z", "2026-08-17T10:00:00Z", "2026-08-21T10:00:00Z"]
        );
        assert_eq!(
            times((Frequency::Weekly, 1), &days, None, first, "2030-08-05T09:59:59Z"),
            ["2030-08-05T10:00:00Z", "2030-08-09T10:00:00Z", "2030-08-12T10:00:00Z"]
        );
    }

    #[test]
    fn a_month_has_its_last_day_or_a_chosen_weekday() {
        let monthly = (Frequency::Monthly, 1);
        assert_eq!(
            times(monthly, &[], None, "2026-01-31T10:00:00Z", "2026-01-31T10:00:00Z"),
            ["2026-02-28T10:00:00Z", "2026-03-31T09:00:00Z", "2026-04-30T09:00:00Z"]
        );
        let first = "2026-06-10T10:00:00Z";
        assert_eq!(
            times(monthly, &[Weekday::Monday], Some(1), first, first),
            ["2026-07-06T10:00:00Z", "2026-08-03T10:00:00Z", "2026-09-07T10:00:00Z"]
        );
        assert_eq!(
            times((Frequency::Monthly, 2), &[Weekday::Friday], Some(-1), first, first),
            ["2026-06-26T10:00:00Z", "2026-08-28T10:00:00Z", "2026-10-30T11:00:00Z"]
        );
    }

    #[test]
    fn nothing_is_before_the_first_time_or_beyond_the_calendar() {
        let of = |first: &str| {
            Recurrence::of(Frequency::Daily, 100, &[], None, time(first), "UTC").unwrap()
        };
        let late = of("2030-01-01T00:00:00Z");
        assert_eq!(late.after(Timestamp::EPOCH).unwrap().to_string(), "2030-01-01T00:00:00Z");
        assert_eq!(late.after(time("9999-12-30T00:00:00Z")), None);
        let early = of("0001-01-01T00:00:00Z");
        let found = early.after(time("2026-08-21T00:00:00Z")).unwrap();
        assert!(found > time("2026-08-21T00:00:00Z") && found < time("2026-11-30T00:00:00Z"));
        let none = Recurrence::of(Frequency::Daily, 1, &[], None, Timestamp::EPOCH, "Mars/Olympus");
        assert!(none.is_none());
    }

    #[test]
    fn instants_have_a_text_in_their_zone() {
        let at = time("2026-08-21T22:05:00Z");
        assert_eq!(local_text("Europe/Berlin", at, true).unwrap(), "2026-08-22 00:05");
        assert_eq!(local_text("UTC", at, false).unwrap(), "2026-08-21");
        assert_eq!(local_text("Mars/Olympus", at, false), None);
    }
}
