//! The buckets of a range, with their texts (QRY-8, QRY-10).

use std::ops::Range;

use weir_model::errors::FieldError;

use super::calendar::Calendar;
use super::labels;
use super::range::{TimeRange, outside};
use crate::time::{DateText, Interval};

/// Most buckets of a question.
pub const BUCKETS_MAX: usize = 10_000;

/// The buckets of a range, in order and without gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets {
    interval: Interval,
    /// One more than buckets.
    boundaries: Vec<i64>,
    begin: i64,
    end: i64,
    days: Vec<String>,
    labels: Vec<String>,
}

impl Buckets {
    /// The length of its buckets.
    pub fn interval(&self) -> Interval {
        self.interval
    }

    /// How many buckets there are; at least one.
    pub fn len(&self) -> usize {
        self.days.len()
    }

    /// Whether there is no bucket, which does not happen.
    pub fn is_empty(&self) -> bool {
        self.days.is_empty()
    }

    /// The instants at which buckets begin, and the one at which the last one ends, in
    /// microseconds.
    pub fn boundaries(&self) -> &[i64] {
        &self.boundaries
    }

    /// Events count from this instant on. It may be within the first bucket.
    pub fn begin(&self) -> i64 {
        self.begin
    }

    /// Events count before this instant. It may be within the last bucket.
    pub fn end(&self) -> i64 {
        self.end
    }

    /// The beginning of each bucket in local time, as `2026-08-21` or
    /// `2026-08-21 14:00:00`. An hour that comes twice has the same text twice.
    pub fn days(&self) -> &[String] {
        &self.days
    }

    /// The text of each bucket for readers.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// The times that count in a bucket: those of it that are in the range. `None`: there is
    /// no such bucket.
    pub fn span(&self, at: usize) -> Option<Range<i64>> {
        let (start, end) = (self.boundaries.get(at)?, self.boundaries.get(at + 1)?);
        Some(self.begin.max(*start)..self.end.min(*end))
    }

    /// The number of the bucket of an event. `None`: the event does not count.
    pub fn index(&self, micros: i64) -> Option<usize> {
        if !(self.begin..self.end).contains(&micros) {
            return None;
        }
        let after = self.boundaries.partition_point(|boundary| *boundary <= micros);
        after.checked_sub(1).filter(|at| *at < self.len())
    }
}

impl Calendar {
    /// The number of the bucket that contains a time, such as one of [`Buckets::days`]; also
    /// of one in the first bucket that is before the range. An hour that comes twice is the
    /// first one. `None`: there is no such bucket, or the date is relative.
    pub fn bucket_of(&self, buckets: &Buckets, day: DateText) -> Option<usize> {
        let micros = self.time_of(day)?;
        let after = buckets.boundaries.partition_point(|boundary| *boundary <= micros);
        after.checked_sub(1).filter(|at| *at < buckets.len())
    }

    /// The beginning of the interval before the first bucket. `None`: it is outside of the
    /// calendar.
    pub fn interval_before(&self, buckets: &Buckets) -> Option<i64> {
        let first = buckets.boundaries.first()?;
        self.floor(buckets.interval.unit(), first.checked_sub(1)?)
    }

    /// The buckets of a range.
    ///
    /// # Errors
    /// `max_length` at `interval`: more than [`BUCKETS_MAX`]. `invalid_input` at
    /// `dateRange`: outside of the calendar.
    pub fn buckets(&self, range: &TimeRange) -> Result<Buckets, FieldError> {
        let interval = range.interval();
        let (from, to) = (range.begin(), range.end());
        // No bucket is longer than this, so more of them are needed.
        if to.saturating_sub(from) / longest(interval) > length(BUCKETS_MAX) {
            return Err(too_many());
        }
        let mut boundaries = Vec::new();
        let mut starts = Vec::new();
        if let Some(micros) = interval.unit().clock_micros() {
            let mut at = self.floor(interval.unit(), from).ok_or_else(outside)?;
            // There is at least one: a range that was moved may be in an hour that clocks skip.
            while at < to || starts.is_empty() {
                if starts.len() == BUCKETS_MAX {
                    return Err(too_many());
                }
                boundaries.push(at);
                starts.push(self.local(at));
                at = self.clock_next(micros, at);
            }
            boundaries.push(at);
        } else {
            let unit = interval.unit();
            let (mut date, mut at) = self.calendar_floor(unit, from).ok_or_else(outside)?;
            while at < to || starts.is_empty() {
                if starts.len() == BUCKETS_MAX {
                    return Err(too_many());
                }
                boundaries.push(at);
                starts.push(date.at(0, 0, 0, 0));
                (date, at) = self.calendar_next(unit, date, at).ok_or_else(outside)?;
            }
            boundaries.push(at);
        }
        let begin = match boundaries.first() {
            Some(first) if !range.keeps_begin() => *first,
            _ => from,
        };
        let (first, last) = (self.local(begin).date(), self.local(to - 1).date());
        Ok(Buckets {
            interval,
            days: starts.iter().map(|start| labels::day(interval, *start)).collect(),
            labels: starts
                .iter()
                .map(|start| labels::label(interval, *start, first, last))
                .collect(),
            boundaries,
            begin,
            end: to,
        })
    }
}

/// Upper bound of the length of a bucket in microseconds.
fn longest(interval: Interval) -> i64 {
    const HOUR: i64 = 3_600_000_000;
    const DAY: i64 = 24 * HOUR;
    // With what a change of the clock adds: up to an hour, or a day at the date line.
    match interval {
        Interval::Minute => 2 * HOUR / 60,
        Interval::Hour => 2 * HOUR,
        Interval::Day => 2 * DAY,
        Interval::Week => 8 * DAY,
        Interval::Month => 32 * DAY,
    }
}

fn length(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn too_many() -> FieldError {
    let detail = format!(
        "The range has more than {BUCKETS_MAX} intervals. Choose a longer interval or a shorter \
         range."
    );
    FieldError::new("interval", "max_length", detail)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_model::Timestamp;

    use super::*;
    use crate::query::DateRange;
    use crate::time::WeekStart;

    fn buckets(
        zone: &str,
        interval: Interval,
        from: &str,
        to: Option<&str>,
    ) -> Result<Buckets, FieldError> {
        let calendar = Calendar::new(zone, WeekStart::Sunday).unwrap();
        let dates = DateRange {
            date_from: DateText::parse(from),
            date_to: to.and_then(DateText::parse),
            explicit_date: false,
        };
        let now = Timestamp::parse("2026-08-21T14:05:30Z").unwrap();
        let range = calendar.range(&dates, interval, now, None)?;
        calendar.buckets(&range)
    }

    fn lengths(buckets: &Buckets) -> Vec<i64> {
        let pairs = buckets.boundaries().windows(2);
        pairs.map(|pair| (pair[1] - pair[0]) / 3_600_000_000).collect()
    }

    #[test]
    fn days_are_those_of_the_zone() {
        let zone = "Europe/Berlin";
        let found = buckets(zone, Interval::Day, "2026-10-24", Some("2026-10-26")).unwrap();
        assert_eq!(lengths(&found), [24, 25, 24]);
        assert_eq!(found.days(), ["2026-10-24", "2026-10-25", "2026-10-26"]);
        assert_eq!(found.labels(), ["24-Oct-2026", "25-Oct-2026", "26-Oct-2026"]);
        let found = buckets(zone, Interval::Day, "2026-03-28", Some("2026-03-30")).unwrap();
        assert_eq!(lengths(&found), [24, 23, 24]);
        let found = buckets("Pacific/Apia", Interval::Day, "2011-12-29", Some("2012-01-01"));
        assert_eq!(found.unwrap().days(), ["2011-12-29", "2011-12-31", "2012-01-01"]);
    }

    #[test]
    fn a_day_of_25_hours_has_25_buckets() {
        let zone = "Europe/Berlin";
        let found = buckets(zone, Interval::Hour, "2026-10-25", Some("2026-10-25")).unwrap();
        assert_eq!(found.len(), 25);
        assert_eq!(found.days()[2..4], ["2026-10-25 02:00:00", "2026-10-25 02:00:00"]);
        assert_eq!(found.labels()[4], "25-Oct 03:00");
        let found = buckets(zone, Interval::Hour, "2026-03-29", Some("2026-03-29")).unwrap();
        assert_eq!(found.len(), 23);
        assert_eq!(found.days()[1..3], ["2026-03-29 01:00:00", "2026-03-29 03:00:00"]);
    }

    #[test]
    fn weeks_and_months_begin_before_the_range() {
        let found = buckets("UTC", Interval::Week, "2026-08-04", Some("2026-08-18")).unwrap();
        assert_eq!(found.days(), ["2026-08-02", "2026-08-09", "2026-08-16"]);
        assert_eq!(found.labels(), ["2–8 Aug", "9–15 Aug", "16–18 Aug"]);
        assert_eq!(found.begin(), found.boundaries()[0]);
        assert!(found.end() < found.boundaries()[3]);
        let found = buckets("UTC", Interval::Month, "-2m", None).unwrap();
        assert_eq!(found.labels(), ["Jun 2026", "Jul 2026", "Aug 2026"]);
    }

    #[test]
    fn events_belong_to_one_bucket_or_none() {
        let found = buckets("UTC", Interval::Day, "2026-08-01", Some("2026-08-02")).unwrap();
        let day = 86_400_000_000;
        let begin = found.begin();
        assert_eq!(found.index(begin - 1), None);
        assert_eq!(found.index(begin), Some(0));
        assert_eq!(found.index(begin + day - 1), Some(0));
        assert_eq!(found.index(begin + day), Some(1));
        assert_eq!(found.index(begin + 2 * day), None);
        let found = buckets("UTC", Interval::Day, "-30h", None).unwrap();
        assert_eq!(found.index(found.boundaries()[0]), None, "before the range");
        assert_eq!(found.index(found.begin()), Some(0));
        for micros in [i64::MIN, i64::MAX] {
            assert_eq!(found.index(micros), None);
        }
    }

    #[test]
    fn a_text_of_days_names_its_bucket() {
        let berlin = Calendar::new("Europe/Berlin", WeekStart::Sunday).unwrap();
        let found =
            buckets("Europe/Berlin", Interval::Hour, "2026-10-25", Some("2026-10-25")).unwrap();
        for (at, day) in found.days().iter().enumerate() {
            // The hour that comes twice is the first one.
            let expected = if at == 3 { 2 } else { at };
            let day = DateText::parse(day).unwrap();
            assert_eq!(berlin.bucket_of(&found, day), Some(expected), "{day}");
        }
        let weeks =
            buckets("Europe/Berlin", Interval::Week, "2026-08-04T10:00", Some("2026-08-18"));
        let weeks = weeks.unwrap();
        for (day, expected) in [
            ("2026-08-02", Some(0)),
            ("2026-08-04", Some(0)),
            ("2026-08-09", Some(1)),
            ("2026-08-09T00:00:00Z", Some(1)),
            ("2026-08-08T22:00:00Z", Some(1)),
            ("2026-08-01", None),
            ("2026-08-23", None),
            ("-7d", None),
            ("all", None),
        ] {
            let day = DateText::parse(day).unwrap();
            assert_eq!(berlin.bucket_of(&weeks, day), expected, "{day}");
        }
    }

    #[test]
    fn the_times_of_a_bucket_are_in_the_range() {
        let found = buckets("UTC", Interval::Day, "-30h", None).unwrap();
        assert_eq!(found.span(0), Some(found.begin()..found.boundaries()[1]));
        assert_eq!(found.span(1), Some(found.boundaries()[1]..found.end()));
        assert_eq!(found.span(2), None);
    }

    #[test]
    fn the_interval_before_has_the_length_of_its_unit() {
        for (interval, expected) in [
            (Interval::Hour, "2026-10-25T00:00:00Z"),
            (Interval::Day, "2026-10-24T22:00:00Z"),
            (Interval::Week, "2026-10-17T22:00:00Z"),
            (Interval::Month, "2026-08-31T22:00:00Z"),
        ] {
            let berlin = Calendar::new("Europe/Berlin", WeekStart::Sunday).unwrap();
            let from = match interval {
                Interval::Hour => "2026-10-25T01:30:00Z",
                _ => "2026-10-26",
            };
            let found = buckets("Europe/Berlin", interval, from, Some("2026-10-26")).unwrap();
            let before = berlin.interval_before(&found).map(Timestamp::from_micros);
            assert_eq!(before, Timestamp::parse(expected), "{interval:?}");
        }
    }

    #[test]
    fn too_many_buckets_are_refused() {
        for (interval, from, to) in [
            (Interval::Minute, "-7d", None),
            (Interval::Hour, "1970-01-01", None),
            (Interval::Day, "0001-01-01", None),
            (Interval::Month, "0001-01-01", Some("9990-01-01")),
            (Interval::Minute, "-99999y", None),
        ] {
            let refused = buckets("UTC", interval, from, to).unwrap_err();
            assert!(["max_length", "invalid_input"].contains(&refused.code.as_str()), "{from}");
        }
        assert_eq!(buckets("UTC", Interval::Minute, "-6d", None).unwrap().len(), 8_641);
        assert_eq!(buckets("UTC", Interval::Month, "1200-01-01", None).unwrap().len(), 9_920);
    }

    /// Zones with changes at midnight, by half an hour, over the date line, and without any.
    fn zones() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "UTC",
            "Europe/Berlin",
            "America/St_Johns",
            "America/Sao_Paulo",
            "America/Havana",
            "Asia/Kathmandu",
            "Asia/Beirut",
            "Australia/Lord_Howe",
            "Africa/Casablanca",
            "Africa/Monrovia",
            "Antarctica/Troll",
            "Pacific/Apia",
            "Pacific/Kwajalein",
            "Europe/Dublin",
            "America/Juneau",
        ])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn buckets_have_no_gaps_in_any_zone(
            zone in zones(),
            // From 1900 to 2100.
            begin in -2_208_988_800_i64..4_102_444_800,
            length in 1..40_000_000_i64,
            interval in prop::sample::select(Interval::ALL),
            from_change in any::<bool>(),
        ) {
            let calendar = Calendar::new(zone, WeekStart::Monday).unwrap();
            let second = 1_000_000;
            // Ranges around a change of clocks find most faults.
            let change = calendar.next_change(begin * second).filter(|_| from_change);
            let begin = change.map_or(begin * second, |change| change - length % 7_200 * second);
            let most = match interval {
                Interval::Minute => 86_400,
                Interval::Hour => 40 * 86_400,
                _ => i64::MAX,
            };
            let range = TimeRange::new(begin, begin + (length.min(most)) * second, interval);
            let found = calendar.buckets(&range).unwrap();
            let boundaries = found.boundaries();
            prop_assert!(boundaries.is_sorted_by(|a, b| a < b), "{boundaries:?}");
            prop_assert!(boundaries[0] <= range.begin());
            prop_assert!(range.end() <= boundaries[found.len()]);
            prop_assert_eq!(boundaries.len(), found.len() + 1);
            prop_assert_eq!(found.labels().len(), found.len());
            let longest = longest(interval);
            for (at, pair) in boundaries.windows(2).enumerate() {
                let unit = interval.unit();
                // The bucket is the unit that contains its first and its last instant.
                for micros in [pair[0], pair[1] - 1] {
                    prop_assert_eq!(calendar.floor(unit, micros), Some(pair[0]));
                    prop_assert_eq!(calendar.ceiling(unit, micros), Some(pair[1]));
                }
                prop_assert!(pair[1] - pair[0] <= longest, "{} {:?}", found.days()[at], pair);
                let span = found.span(at).unwrap();
                prop_assert_eq!(found.index(span.start), Some(at));
                prop_assert_eq!(found.index(span.end - 1), Some(at));
            }
            prop_assert_eq!(found.index(range.end()), None);
            prop_assert_eq!(found.index(found.begin() - 1), None);
        }
    }
}
