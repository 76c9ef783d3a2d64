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

fn range(zone: &str, interval: Interval, from: Option<&str>, to: Option<&str>) -> (String, String) {
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
        (Some("2026-10-25"), Some("2026-10-25"), "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"),
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
    previous_at("UTC", NOW, interval, &dates(Some(from), to), by)
}

fn previous_at(
    zone: &str,
    now: &str,
    interval: Interval,
    dates: &DateRange,
    by: Option<&str>,
) -> (String, String) {
    let calendar = calendar(zone);
    let range = calendar.range(dates, interval, Timestamp::parse(now).unwrap(), None).unwrap();
    let compare_to = by.map(|text| match DateText::parse(text).unwrap() {
        DateText::Relative(relative) => relative,
        other => panic!("{other}"),
    });
    let compare = CompareFilter { compare_to };
    texts(&calendar.previous(dates, &range, &compare).unwrap())
}

#[test]
fn a_range_that_is_moved_by_months_keeps_its_days() {
    use Interval::{Day, Hour};
    for (zone, now, interval, from, by, begin, end) in [
        ("UTC", "2026-07-28T14:05:30Z", Day, "dStart", "-1m", "2026-06-28T00", "2026-06-29T00"),
        ("UTC", "2026-07-29T14:05:30Z", Day, "dStart", "-1m", "2026-06-29T00", "2026-06-30T00"),
        ("UTC", "2026-07-30T14:05:30Z", Day, "dStart", "-1m", "2026-06-30T00", "2026-07-01T00"),
        ("UTC", "2026-07-31T14:05:30Z", Day, "dStart", "-1m", "2026-06-30T00", "2026-07-01T00"),
        ("UTC", "2026-07-30T14:05:30Z", Day, "mStart", "-1m", "2026-06-01T00", "2026-07-01T00"),
        ("UTC", "2026-07-31T14:05:30Z", Day, "mStart", "-1q", "2026-04-01T00", "2026-05-02T00"),
        ("UTC", "2026-03-30T14:05:30Z", Day, "-2d", "-1m", "2026-02-28T00", "2026-03-03T00"),
        ("UTC", "2028-02-29T14:05:30Z", Day, "dStart", "-1y", "2027-02-28T00", "2027-03-01T00"),
        ("UTC", "2026-07-30T23:05:30Z", Hour, "-2h", "-1m", "2026-06-30T21", "2026-07-01T00"),
        // Clocks were set forward in between: the same days, an hour later in UTC.
        (
            "Europe/Berlin",
            "2026-03-30T10:05:30Z",
            Day,
            "dStart",
            "-1m",
            "2026-02-27T23",
            "2026-02-28T23",
        ),
    ] {
        let expected = (format!("{begin}:00:00Z"), format!("{end}:00:00Z"));
        let found = previous_at(zone, now, interval, &dates(Some(from), None), Some(by));
        assert_eq!(found, expected, "{now} {from} {by}");
    }
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
    assert_eq!(of(Interval::Day, None, None).days(), ["2026-08-19", "2026-08-20", "2026-08-21"]);
    assert_eq!(of(Interval::Week, None, None).days(), ["2026-08-03", "2026-08-10", "2026-08-17"]);
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
