//! The range of a question, and the one that it is compared with (QRY-9, QRY-11).
//!
//! What belongs here: which instants a pair of dates means. What does not: how the range is
//! divided (`buckets`).

use std::ops::Range;

use jiff::civil::Date;
use weir_model::Timestamp;
use weir_model::errors::FieldError;

use super::calendar::{Calendar, days_or_months_back};
use crate::query::{CompareFilter, DateRange};
use crate::time::{Buckets, DateText, DateUnit, Edge, Interval, RelativeDate};

/// Days that a range without a beginning covers before the current one.
const DEFAULT_DAYS: u32 = 7;
const DAY_HOURS: i64 = 24;
const HOUR: i64 = 3_600_000_000;

/// The range of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    begin: i64,
    end: i64,
    interval: Interval,
    keeps_begin: bool,
}

impl TimeRange {
    #[cfg(test)]
    pub(super) fn new(begin: i64, end: i64, interval: Interval) -> Self {
        Self { begin, end, interval, keeps_begin: false }
    }

    /// Its first instant in microseconds.
    pub fn begin(&self) -> i64 {
        self.begin
    }

    /// The first instant after it in microseconds.
    pub fn end(&self) -> i64 {
        self.end
    }

    /// The length of its buckets.
    pub fn interval(&self) -> Interval {
        self.interval
    }

    /// Whether events before it do not count, although they are in its first bucket.
    pub(super) fn keeps_begin(&self) -> bool {
        self.keeps_begin
    }
}

impl Calendar {
    /// The range of a pair of dates. `earliest` is the time of the first event, for `all`.
    ///
    /// # Errors
    /// `invalid_input` at `dateRange`, `dateRange__date_from` or `dateRange__date_to`: the
    /// range is empty or outside of the calendar.
    pub fn range(
        &self,
        dates: &DateRange,
        interval: Interval,
        now: Timestamp,
        earliest: Option<Timestamp>,
    ) -> Result<TimeRange, FieldError> {
        let now = now.micros();
        let begin = self
            .beginning(dates, interval, now, earliest)
            .ok_or_else(|| fault("dateRange__date_from", OUTSIDE))?;
        let end = self
            .ending(dates, interval, now)
            .ok_or_else(|| fault("dateRange__date_to", OUTSIDE))?;
        if end <= begin {
            return Err(fault("dateRange__date_to", "The range ends before it begins."));
        }
        let is_of_hours = matches!(
            dates.date_from,
            Some(DateText::Relative(RelativeDate {
                unit: DateUnit::Minute | DateUnit::Hour,
                edge: None,
                ..
            }))
        );
        let keeps_begin = dates.explicit_date || (is_of_hours && !interval.is_of_clock());
        Ok(TimeRange { begin, end, interval, keeps_begin })
    }

    /// The times that a date means where it is compared with others: a whole day, or one
    /// instant. `None`: it is `all`, or outside of the calendar.
    pub fn span_of(&self, date: DateText, now: Timestamp) -> Option<Range<i64>> {
        let start = match date {
            DateText::Relative(relative) => self.relative(relative, now.micros())?,
            date => self.time_of(date)?,
        };
        let end = match date {
            DateText::Day(_) => self.ceiling(DateUnit::Day, start)?,
            _ => start.checked_add(1)?,
        };
        Some(start..end)
    }

    /// The first instant of a day, or the instant of a time. `None`: the date is relative, or
    /// outside of the calendar.
    pub(crate) fn time_of(&self, date: DateText) -> Option<i64> {
        match date {
            DateText::Day(day) => self.start_of_day(date_of(day)),
            DateText::Local(local) => self.instant_of(utc(local)),
            DateText::Instant(micros) => Some(micros),
            DateText::All | DateText::Relative(_) => None,
        }
    }

    fn beginning(
        &self,
        dates: &DateRange,
        interval: Interval,
        now: i64,
        earliest: Option<Timestamp>,
    ) -> Option<i64> {
        let relative = match dates.date_from {
            Some(DateText::All) => {
                let earliest = earliest.map_or(now, Timestamp::micros);
                return self.floor(DateUnit::Day, earliest.min(now));
            }
            Some(DateText::Relative(relative)) => relative,
            Some(date) => return self.time_of(date),
            None => RelativeDate { back: DEFAULT_DAYS, unit: DateUnit::Day, edge: None },
        };
        let moved = self.relative(relative, now)?;
        if relative.edge.is_some() || (dates.explicit_date && dates.date_from.is_some()) {
            return Some(moved);
        }
        let unit = match relative.unit {
            _ if interval == Interval::Minute && dates.date_from.is_some() => DateUnit::Minute,
            DateUnit::Minute | DateUnit::Hour => relative.unit,
            _ => DateUnit::Day,
        };
        self.floor(unit, moved)
    }

    fn ending(&self, dates: &DateRange, interval: Interval, now: i64) -> Option<i64> {
        let day_end = |micros: i64| self.ceiling(DateUnit::Day, micros);
        // A question by days or longer units includes the whole last day.
        let whole_day = |micros: i64| match dates.explicit_date || interval.is_of_clock() {
            true => Some(micros),
            false => day_end(micros),
        };
        match dates.date_to {
            None if dates.explicit_date => Some(now),
            None if interval.is_of_clock() => self.ceiling(interval.unit(), now),
            None | Some(DateText::All) => day_end(now),
            Some(date @ DateText::Day(_)) => {
                let start = self.time_of(date)?;
                if dates.explicit_date { Some(start) } else { day_end(start) }
            }
            Some(date @ (DateText::Local(_) | DateText::Instant(_))) => {
                whole_day(self.time_of(date)?)
            }
            Some(DateText::Relative(relative)) => {
                let moved = self.relative(relative, now)?;
                match relative.edge {
                    Some(Edge::End) => Some(moved),
                    Some(Edge::Start) => whole_day(moved),
                    None if dates.explicit_date => Some(moved),
                    None if interval.is_of_clock() && relative.unit.clock_micros().is_some() => {
                        self.ceiling(relative.unit, moved)
                    }
                    None => day_end(moved),
                }
            }
        }
    }

    /// The range that a range is compared with: the period before it, or the same range
    /// some units earlier.
    ///
    /// # Errors
    /// `invalid_input` at `compareFilter__compare_to`: outside of the calendar.
    pub fn previous(
        &self,
        dates: &DateRange,
        range: &TimeRange,
        compare: &CompareFilter,
    ) -> Result<TimeRange, FieldError> {
        let (begin, end) = match compare.compare_to {
            Some(date) => self.moved(range, date.back, date.unit),
            None => self.period_before(dates, range),
        }
        .ok_or_else(|| fault("compareFilter__compare_to", OUTSIDE))?;
        Ok(TimeRange { begin, end, ..*range })
    }

    /// The same for numbers of a site by day: today so far is compared with the same hours of
    /// the day before.
    ///
    /// # Errors
    /// As [`previous`](Self::previous).
    pub fn previous_of_site(
        &self,
        dates: &DateRange,
        range: &TimeRange,
        compare: &CompareFilter,
        now: Timestamp,
    ) -> Result<TimeRange, FieldError> {
        let mut compared = *range;
        let is_today = dates.date_to.is_none() && self.days_of(range) == Some(1);
        if is_today
            && compare.compare_to.is_none()
            && let Some(end) = self.ending(dates, Interval::Hour, now.micros())
            && end > range.begin
        {
            (compared.end, compared.interval) = (end, Interval::Hour);
        }
        self.previous(dates, &compared, compare)
    }

    fn moved(&self, range: &TimeRange, back: u32, unit: DateUnit) -> Option<(i64, i64)> {
        Some((self.back(range.begin, back, unit)?, self.back(range.end, back, unit)?))
    }

    fn period_before(&self, dates: &DateRange, range: &TimeRange) -> Option<(i64, i64)> {
        let relative = match dates.date_from {
            Some(DateText::Relative(relative)) => Some(relative),
            _ => None,
        };
        // The current week, month or year so far is compared with the whole one before.
        if let Some(RelativeDate { back: 0, unit, edge: Some(Edge::Start) }) = relative
            && dates.date_to.is_none()
            && matches!(unit, DateUnit::Week | DateUnit::Month | DateUnit::Quarter | DateUnit::Year)
        {
            return Some((self.floor(unit, range.begin - 1)?, range.begin));
        }
        match range.interval {
            Interval::Minute => Some((range.begin - (range.end - range.begin), range.begin)),
            Interval::Hour => {
                // Whole days, so that hours are compared with the same hours.
                let hours = (range.end - range.begin).div_euclid(HOUR) - 1;
                let days = u32::try_from((hours + DAY_HOURS - 1) / DAY_HOURS).ok()?.max(1);
                self.moved(range, days, DateUnit::Day)
            }
            Interval::Day | Interval::Week | Interval::Month => {
                let days = match (dates.date_from, relative) {
                    (None, _) => Some(DEFAULT_DAYS),
                    (_, Some(RelativeDate { back, unit: DateUnit::Day, edge: None })) => Some(back),
                    _ => None,
                };
                // `-7d` is seven days and the current one. Each day is compared with the same
                // day of the week, so the current one is in both ranges.
                let weeks = days.filter(|days| {
                    range.interval == Interval::Day
                        && dates.date_to.is_none()
                        && *days > 0
                        && days.is_multiple_of(7)
                });
                let days = match weeks {
                    Some(days) => days,
                    None => self.days_of(range)?,
                };
                self.moved(range, days, DateUnit::Day)
            }
        }
    }

    /// The days of a range; a part of a day is one more.
    fn days_of(&self, range: &TimeRange) -> Option<u32> {
        let first = self.local(range.begin).date();
        let last = self.local(range.end - 1).date();
        let days = last.since(first).ok()?.get_days();
        u32::try_from(days).ok()?.checked_add(1)
    }

    /// The periods of a question about retention: whole ones up to the end of the range.
    /// Without a beginning of the range, there are `total` of them.
    ///
    /// # Errors
    /// Those of [`Calendar::range`] and [`Calendar::buckets`].
    pub fn periods(
        &self,
        dates: &DateRange,
        period: Interval,
        total: u32,
        now: Timestamp,
        earliest: Option<Timestamp>,
    ) -> Result<Buckets, FieldError> {
        let unit = period.unit();
        let last = self
            .ending(dates, period, now.micros())
            .ok_or_else(|| fault("dateRange__date_to", OUTSIDE))?
            - 1;
        let begin = match dates.date_from {
            Some(_) => self.range(dates, period, now, earliest)?.begin,
            None => self
                .floor(unit, last)
                .and_then(|start| self.first_of(unit, start, total.saturating_sub(1)))
                .ok_or_else(outside)?,
        };
        let (begin, end) =
            self.floor(unit, begin).zip(self.ceiling(unit, last)).ok_or_else(outside)?;
        self.buckets(&TimeRange { begin, end, interval: period, keeps_begin: false })
    }

    /// The beginning of the unit this many units before one that begins at an instant.
    fn first_of(&self, unit: DateUnit, start: i64, back: u32) -> Option<i64> {
        match unit.clock_micros() {
            Some(_) => self.floor(unit, self.back(start, back, unit)?),
            None => self.start_of_day(days_or_months_back(self.local(start).date(), back, unit)?),
        }
    }
}

const OUTSIDE: &str = "The date is outside of the calendar.";

fn fault(attr: &str, detail: &str) -> FieldError {
    FieldError::new(attr, "invalid_input", detail)
}

pub(super) fn outside() -> FieldError {
    fault("dateRange", OUTSIDE)
}

/// The civil time of microseconds as if they were in UTC.
fn utc(micros: i64) -> jiff::civil::DateTime {
    jiff::tz::Offset::UTC.to_datetime(super::calendar::instant(micros))
}

fn date_of(micros: i64) -> Date {
    utc(micros).date()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::time::WeekStart;

    const NOW: &str = "2026-08-21T14:05:30Z";

    fn dates(from: Option<&str>, to: Option<&str>) -> DateRange {
        let read = |text: Option<&str>| text.map(|text| DateText::parse(text).unwrap());
        DateRange { date_from: read(from), date_to: read(to), explicit_date: false }
    }

    fn calendar(zone: &str) -> Calendar {
        Calendar::new(zone, WeekStart::Monday).unwrap()
    }

    fn now() -> Timestamp {
        Timestamp::parse(NOW).unwrap()
    }

    fn texts(range: &TimeRange) -> (String, String) {
        let text = |micros| Timestamp::from_micros(micros).to_string();
        (text(range.begin()), text(range.end()))
    }

    fn range(
        zone: &str,
        interval: Interval,
        from: Option<&str>,
        to: Option<&str>,
    ) -> (String, String) {
        let found = calendar(zone).range(&dates(from, to), interval, now(), None);
        texts(&found.unwrap())
    }

    #[test]
    fn dates_have_the_published_meaning() {
        use Interval::{Day, Hour, Minute, Month};
        for (interval, from, to, begin, end) in [
            (Day, None, None, "2026-08-14T00:00:00Z", "2026-08-22T00:00:00Z"),
            (Day, Some("-7d"), None, "2026-08-14T00:00:00Z", "2026-08-22T00:00:00Z"),
            (Month, Some("-7d"), None, "2026-08-14T00:00:00Z", "2026-08-22T00:00:00Z"),
            (Hour, Some("-7d"), None, "2026-08-14T00:00:00Z", "2026-08-21T15:00:00Z"),
            (Hour, Some("-24h"), None, "2026-08-20T14:00:00Z", "2026-08-21T15:00:00Z"),
            (Minute, Some("-1h"), None, "2026-08-21T13:05:00Z", "2026-08-21T14:06:00Z"),
            (Minute, Some("-30M"), None, "2026-08-21T13:35:00Z", "2026-08-21T14:06:00Z"),
            (Day, Some("dStart"), None, "2026-08-21T00:00:00Z", "2026-08-22T00:00:00Z"),
            (Day, Some("-1dStart"), Some("-1dEnd"), "2026-08-20T00:00:00Z", "2026-08-21T00:00:00Z"),
            (Day, Some("mStart"), None, "2026-08-01T00:00:00Z", "2026-08-22T00:00:00Z"),
            (Day, Some("-1mStart"), Some("-1mEnd"), "2026-07-01T00:00:00Z", "2026-08-01T00:00:00Z"),
            (Day, Some("yStart"), None, "2026-01-01T00:00:00Z", "2026-08-22T00:00:00Z"),
            (Day, Some("wStart"), None, "2026-08-17T00:00:00Z", "2026-08-22T00:00:00Z"),
            (Day, Some("all"), None, "2026-08-21T00:00:00Z", "2026-08-22T00:00:00Z"),
            (
                Day,
                Some("2026-08-01"),
                Some("2026-08-03"),
                "2026-08-01T00:00:00Z",
                "2026-08-04T00:00:00Z",
            ),
            (
                Day,
                Some("2026-08-01T10:30"),
                Some("2026-08-03T10:30"),
                "2026-08-01T10:30:00Z",
                "2026-08-04T00:00:00Z",
            ),
            (
                Hour,
                Some("2026-08-01T10:30"),
                Some("2026-08-03T10:30"),
                "2026-08-01T10:30:00Z",
                "2026-08-03T10:30:00Z",
            ),
            (Hour, Some("-3d"), Some("-1d"), "2026-08-18T00:00:00Z", "2026-08-21T00:00:00Z"),
        ] {
            let expected = (begin.to_owned(), end.to_owned());
            assert_eq!(range("UTC", interval, from, to), expected, "{from:?} {to:?}");
        }
    }

    #[test]
    fn dates_without_a_zone_are_local() {
        for (from, to, begin, end) in [
            (
                Some("2026-10-25"),
                Some("2026-10-25"),
                "2026-10-24T22:00:00Z",
                "2026-10-25T23:00:00Z",
            ),
            (Some("2026-08-01T10:30"), None, "2026-08-01T08:30:00Z", "2026-08-21T22:00:00Z"),
            (Some("2026-08-01T10:30Z"), None, "2026-08-01T10:30:00Z", "2026-08-21T22:00:00Z"),
        ] {
            let found = range("Europe/Berlin", Interval::Day, from, to);
            assert_eq!(found, (begin.to_owned(), end.to_owned()), "{from:?}");
        }
    }

    #[test]
    fn explicit_dates_are_not_rounded() {
        let explicit = DateRange {
            explicit_date: true,
            ..dates(Some("2026-08-01T10:30:15"), Some("2026-08-03T11:00"))
        };
        let utc = calendar("UTC");
        let found = utc.range(&explicit, Interval::Day, now(), None).unwrap();
        let expected = ("2026-08-01T10:30:15Z".to_owned(), "2026-08-03T11:00:00Z".to_owned());
        assert_eq!(texts(&found), expected);
        let buckets = utc.buckets(&found).unwrap();
        assert_eq!(buckets.begin(), found.begin());
        assert_eq!(buckets.days(), ["2026-08-01", "2026-08-02", "2026-08-03"]);
        let relative = DateRange { explicit_date: true, ..dates(Some("-1d"), None) };
        let found = utc.range(&relative, Interval::Hour, now(), None).unwrap();
        let expected = ("2026-08-20T14:05:30Z".to_owned(), NOW.to_owned());
        assert_eq!(texts(&found), expected);
    }

    #[test]
    fn all_begins_with_the_first_event() {
        let earliest = Timestamp::parse("2026-02-03T04:05:06Z");
        let all = dates(Some("all"), None);
        let found = calendar("UTC").range(&all, Interval::Day, now(), earliest).unwrap();
        assert_eq!(texts(&found).0, "2026-02-03T00:00:00Z");
        // The clock of a sender was ahead.
        let future = Timestamp::parse("2027-01-01T00:00:00Z");
        let found = calendar("UTC").range(&all, Interval::Day, now(), future).unwrap();
        assert_eq!(texts(&found).0, "2026-08-21T00:00:00Z");
    }

    #[test]
    fn empty_and_endless_ranges_are_refused() {
        for (from, to, attr) in [
            (Some("2026-08-03"), Some("2026-08-01"), "dateRange__date_to"),
            (Some("2027-08-03"), None, "dateRange__date_to"),
            (Some("-99999y"), None, "dateRange__date_from"),
            (None, Some("-99999y"), "dateRange__date_to"),
        ] {
            let range = dates(from, to);
            let refused = calendar("UTC").range(&range, Interval::Day, now(), None).unwrap_err();
            assert_eq!(refused.attr.as_deref(), Some(attr), "{from:?} {to:?}");
        }
    }

    fn previous(
        interval: Interval,
        from: &str,
        to: Option<&str>,
        by: Option<&str>,
    ) -> (String, String) {
        let utc = calendar("UTC");
        let dates = dates(Some(from), to);
        let range = utc.range(&dates, interval, now(), None).unwrap();
        let compare_to = by.map(|text| match DateText::parse(text).unwrap() {
            DateText::Relative(relative) => relative,
            other => panic!("{other}"),
        });
        let compare = CompareFilter { compare_to };
        texts(&utc.previous(&dates, &range, &compare).unwrap())
    }

    #[test]
    fn the_period_before_has_the_published_bounds() {
        use Interval::{Day, Hour, Minute, Week};
        for (interval, from, to, by, begin, end) in [
            // The same days of the week.
            (Day, "-7d", None, None, "2026-08-07T00:00:00Z", "2026-08-15T00:00:00Z"),
            (Day, "-14d", None, None, "2026-07-24T00:00:00Z", "2026-08-08T00:00:00Z"),
            (Day, "-30d", None, None, "2026-06-21T00:00:00Z", "2026-07-22T00:00:00Z"),
            (
                Day,
                "2026-08-01",
                Some("2026-08-03"),
                None,
                "2026-07-29T00:00:00Z",
                "2026-08-01T00:00:00Z",
            ),
            (Day, "mStart", None, None, "2026-07-01T00:00:00Z", "2026-08-01T00:00:00Z"),
            (Week, "yStart", None, None, "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
            (Hour, "-24h", None, None, "2026-08-19T14:00:00Z", "2026-08-20T15:00:00Z"),
            (Hour, "-3h", None, None, "2026-08-20T11:00:00Z", "2026-08-20T15:00:00Z"),
            (Minute, "-30M", None, None, "2026-08-21T13:04:00Z", "2026-08-21T13:35:00Z"),
            (Day, "-7d", None, Some("-1y"), "2025-08-14T00:00:00Z", "2025-08-22T00:00:00Z"),
            (Day, "-7d", None, Some("-2w"), "2026-07-31T00:00:00Z", "2026-08-08T00:00:00Z"),
        ] {
            let expected = (begin.to_owned(), end.to_owned());
            assert_eq!(previous(interval, from, to, by), expected, "{from} {by:?}");
        }
    }

    #[test]
    fn today_so_far_of_a_site_is_compared_with_the_same_hours() {
        let utc = calendar("UTC");
        let back = |text: &str| match DateText::parse(text) {
            Some(DateText::Relative(relative)) => Some(relative),
            _ => None,
        };
        for (from, to, by, begin, end) in [
            ("dStart", None, None, "2026-08-20T00:00:00Z", "2026-08-20T15:00:00Z"),
            ("2026-08-21", None, None, "2026-08-20T00:00:00Z", "2026-08-20T15:00:00Z"),
            ("-1dStart", Some("-1dEnd"), None, "2026-08-19T00:00:00Z", "2026-08-20T00:00:00Z"),
            ("dStart", None, Some("-1w"), "2026-08-14T00:00:00Z", "2026-08-15T00:00:00Z"),
            ("mStart", None, None, "2026-07-01T00:00:00Z", "2026-08-01T00:00:00Z"),
            ("-7d", None, None, "2026-08-07T00:00:00Z", "2026-08-15T00:00:00Z"),
        ] {
            let dates = dates(Some(from), to);
            let range = utc.range(&dates, Interval::Day, now(), None).unwrap();
            let compare = CompareFilter { compare_to: by.and_then(back) };
            let previous = utc.previous_of_site(&dates, &range, &compare, now()).unwrap();
            assert_eq!(texts(&previous), (begin.to_owned(), end.to_owned()), "{from} {by:?}");
        }
    }

    #[test]
    fn periods_of_retention_are_whole() {
        let utc = calendar("UTC");
        let of = |period, from, to| utc.periods(&dates(from, to), period, 3, now(), None).unwrap();
        assert_eq!(
            of(Interval::Day, None, None).days(),
            ["2026-08-19", "2026-08-20", "2026-08-21"]
        );
        assert_eq!(
            of(Interval::Week, None, None).days(),
            ["2026-08-03", "2026-08-10", "2026-08-17"]
        );
        assert_eq!(
            of(Interval::Month, None, Some("2026-03-15")).days(),
            ["2026-01-01", "2026-02-01", "2026-03-01"]
        );
        let hours = of(Interval::Hour, None, None);
        assert_eq!(hours.days()[0], "2026-08-21 12:00:00");
        let weeks = of(Interval::Week, Some("2026-07-30"), Some("2026-08-06"));
        assert_eq!(weeks.days(), ["2026-07-27", "2026-08-03"]);
        assert_eq!(weeks.end(), weeks.boundaries()[2], "the last period is whole");
    }

    #[test]
    fn a_range_that_is_moved_into_a_skipped_hour_has_a_bucket() {
        let berlin = calendar("Europe/Berlin");
        let now = Timestamp::parse("2026-03-30T00:30:00Z").unwrap();
        let dates = dates(Some("-0h"), None);
        let range = berlin.range(&dates, Interval::Hour, now, None).unwrap();
        let compare = CompareFilter { compare_to: None };
        let previous = berlin.previous(&dates, &range, &compare).unwrap();
        assert_eq!(previous.begin(), previous.end());
        let buckets = berlin.buckets(&previous).unwrap();
        assert_eq!(buckets.days(), ["2026-03-29 03:00:00"]);
        assert_eq!(buckets.index(previous.begin()), None, "no event counts in it");
    }

    /// Texts of dates, and none.
    fn texts_of_dates() -> impl Strategy<Value = Option<String>> {
        prop_oneof![
            Just(None),
            Just(Some("all".to_owned())),
            (0..2000_u32, "[Mhdwmqy]", "|Start|End")
                .prop_map(|(back, unit, edge)| Some(format!("-{back}{unit}{edge}"))),
            (1..9999_i32, 1..13_i32, 1..29_i32, "|T02:30|T02:30:00Z").prop_map(
                |(year, month, day, time)| Some(format!("{year:04}-{month:02}-{day:02}{time}"))
            ),
        ]
    }

    proptest! {
        #[test]
        fn any_dates_are_a_range_or_a_fault(
            from in texts_of_dates(),
            to in texts_of_dates(),
            compare_to in prop::option::of((1..100_000_u32, "[Mhdwmqy]")),
            now in -62_000_000_000_i64..253_000_000_000,
            explicit_date in any::<bool>(),
            interval in prop::sample::select(Interval::ALL),
            zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "Pacific/Apia"]),
        ) {
            let calendar = calendar(zone);
            let now = Timestamp::from_micros(now * 1_000_000);
            let dates = DateRange { explicit_date, ..dates(from.as_deref(), to.as_deref()) };
            let compare_to = compare_to.and_then(|(back, unit)| {
                match DateText::parse(&format!("-{back}{unit}")) {
                    Some(DateText::Relative(relative)) => Some(relative),
                    _ => None,
                }
            });
            if let Ok(range) = calendar.range(&dates, interval, now, Some(now)) {
                prop_assert!(range.begin() < range.end());
                for compare in [CompareFilter { compare_to: None }, CompareFilter { compare_to }] {
                    if let Ok(previous) = calendar.previous(&dates, &range, &compare) {
                        prop_assert!(previous.begin() <= previous.end());
                        prop_assert!(previous.begin() < range.begin());
                        if let Ok(buckets) = calendar.buckets(&previous) {
                            prop_assert!(!buckets.is_empty());
                        }
                    }
                }
            }
            if let Ok(periods) = calendar.periods(&dates, interval, 8, now, Some(now)) {
                prop_assert!(!periods.is_empty());
            }
        }
    }
}
