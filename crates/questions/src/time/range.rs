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

    /// The range of the same length that begins so many units earlier.
    fn moved(&self, range: &TimeRange, back: u32, unit: DateUnit) -> Option<(i64, i64)> {
        let begin = self.back(range.begin, back, unit)?;
        if unit.clock_micros().is_some() {
            return Some((begin, self.back(range.end, back, unit)?));
        }
        // Months differ in length. An end that is moved by itself would lose days, as 31 July
        // and 30 July both become 30 June.
        let (first, last) = (self.local(range.begin), self.local(range.end));
        let days = last.date().since(first.date()).ok()?;
        let date = days_or_months_back(first.date(), back, unit)?.checked_add(days).ok()?;
        let end = self.instant_of(date.to_datetime(last.time()))?;
        Some((begin, end.max(begin)))
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
mod tests;
