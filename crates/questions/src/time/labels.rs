//! The texts of buckets: `days` and `labels` of results (QRY-10).

use jiff::civil::{Date, DateTime};

use crate::time::Interval;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

fn month(date: Date) -> &'static str {
    let at = usize::try_from(date.month()).unwrap_or(1).saturating_sub(1);
    MONTHS.get(at).copied().unwrap_or_default()
}

fn iso(date: Date) -> String {
    format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day())
}

/// `2026-08-21`, with the time for buckets of the clock: `2026-08-21 14:00:00`.
pub(super) fn day(interval: Interval, start: DateTime) -> String {
    let date = iso(start.date());
    if !interval.is_of_clock() {
        return date;
    }
    format!("{date} {:02}:{:02}:{:02}", start.hour(), start.minute(), start.second())
}

/// `21-Aug-2026`, `21-Aug 14:00`, `Aug 2026`; for a week, the days of it that are in the
/// range: `17–23 Aug`.
pub(super) fn label(interval: Interval, start: DateTime, first: Date, last: Date) -> String {
    let date = start.date();
    match interval {
        Interval::Minute | Interval::Hour => {
            let (hour, minute) = (start.hour(), start.minute());
            format!("{}-{} {hour:02}:{minute:02}", date.day(), month(date))
        }
        Interval::Day => full(date),
        Interval::Week => {
            let end = date.checked_add(jiff::Span::new().days(6)).unwrap_or(date);
            let begin = date.max(first);
            days(begin, end.min(last).max(begin))
        }
        Interval::Month => format!("{} {}", month(date), date.year()),
    }
}

/// `21-Aug-2026`
fn full(date: Date) -> String {
    format!("{}-{}-{}", date.day(), month(date), date.year())
}

fn days(begin: Date, end: Date) -> String {
    if begin == end {
        return full(begin);
    }
    if begin.year() != end.year() {
        return format!("{} – {}", full(begin), full(end));
    }
    if begin.month() != end.month() {
        let (from, to) = (month(begin), month(end));
        return format!("{}-{from} – {}-{to}", begin.day(), end.day());
    }
    format!("{}–{} {}", begin.day(), end.day(), month(end))
}

#[cfg(test)]
mod tests {
    use jiff::civil::{date, datetime};

    use super::*;

    #[test]
    fn texts_have_the_published_form() {
        let start = datetime(2026, 8, 1, 4, 5, 0, 0);
        let of = |interval| {
            let date = start.date();
            (day(interval, start), label(interval, start, date, date))
        };
        assert_eq!(of(Interval::Minute), pair("2026-08-01 04:05:00", "1-Aug 04:05"));
        assert_eq!(of(Interval::Hour), pair("2026-08-01 04:05:00", "1-Aug 04:05"));
        assert_eq!(of(Interval::Day), pair("2026-08-01", "1-Aug-2026"));
        assert_eq!(of(Interval::Month), pair("2026-08-01", "Aug 2026"));
    }

    #[test]
    fn a_week_names_its_days_in_the_range() {
        let week = |start: Date, first: Date, last: Date| {
            label(Interval::Week, start.at(0, 0, 0, 0), first, last)
        };
        let (early, late) = (date(2026, 1, 1), date(2027, 12, 31));
        assert_eq!(week(date(2026, 8, 16), early, late), "16–22 Aug");
        assert_eq!(week(date(2026, 8, 30), early, late), "30-Aug – 5-Sep");
        assert_eq!(week(date(2026, 12, 27), early, late), "27-Dec-2026 – 2-Jan-2027");
        assert_eq!(week(date(2026, 8, 16), date(2026, 8, 18), date(2026, 8, 20)), "18–20 Aug");
        assert_eq!(week(date(2026, 8, 16), early, date(2026, 8, 16)), "16-Aug-2026");
    }

    fn pair(day: &str, label: &str) -> (String, String) {
        (day.to_owned(), label.to_owned())
    }
}
