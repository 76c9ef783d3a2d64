use chrono::{DateTime, Utc};
use proptest::prelude::*;
use weir_model::outcomes::Warning::{self, FutureTimestamp, InvalidTimestamp, TimestampOutOfRange};
use weir_model::time::text::{Forms, read};

use super::{Claims, event_time, parse_date};

fn parse(text: &str) -> Option<i64> {
    read(text, Forms::Any)
}

fn utc(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text).unwrap().to_utc()
}

/// Microseconds as RFC 3339, for readable failures.
fn show(micros: i64) -> String {
    DateTime::from_timestamp_micros(micros).unwrap().format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

#[test]
fn spellings() {
    for (text, expected) in [
        // RFC 3339
        ("2026-06-01T09:59:58.412Z", "2026-06-01T09:59:58.412000Z"),
        ("2026-06-01T10:10:00.118293+00:00", "2026-06-01T10:10:00.118293Z"),
        ("2026-06-01T10:29:59.190384851Z", "2026-06-01T10:29:59.190384Z"),
        ("2026-06-01T10:16:00.1+00:00", "2026-06-01T10:16:00.100000Z"),
        ("2026-06-01t10:00:00z", "2026-06-01T10:00:00.000000Z"),
        ("2026-06-01T10:00:00-05:30", "2026-06-01T15:30:00.000000Z"),
        ("2026-12-31T23:59:60Z", "2027-01-01T00:00:00.000000Z"),
        ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000000Z"),
        // zones of every length, and none
        ("2026-06-01T10:00:00+03", "2026-06-01T07:00:00.000000Z"),
        ("2026-06-01T10:00:00.805-03", "2026-06-01T13:00:00.805000Z"),
        ("2026-06-01T10:00:00+0330", "2026-06-01T06:30:00.000000Z"),
        ("2026-06-01T10:00:00", "2026-06-01T10:00:00.000000Z"),
        ("2026-06-01T10:00:00.25", "2026-06-01T10:00:00.250000Z"),
        ("2026-06-01 10:00:00 UTC", "2026-06-01T10:00:00.000000Z"),
        // date only, blank instead of the T, no seconds, slashes
        ("2026-06-01", "2026-06-01T00:00:00.000000Z"),
        ("2026-06-01 10:00:00", "2026-06-01T10:00:00.000000Z"),
        ("2026-06-01 10:00:00.5+02:00", "2026-06-01T08:00:00.500000Z"),
        ("2026-06-01 10:00:00 +0200", "2026-06-01T08:00:00.000000Z"),
        ("2026-06-01T10:07Z", "2026-06-01T10:07:00.000000Z"),
        ("2026/06/01", "2026-06-01T00:00:00.000000Z"),
        ("2026/6/1 10:00:00", "2026-06-01T10:00:00.000000Z"),
        ("06/02/2026", "2026-06-02T00:00:00.000000Z"),
        ("6/2/2026 9:05:06", "2026-06-02T09:05:06.000000Z"),
        // RFC 2822
        ("Mon, 1 Jun 2026 10:00:00 +0200", "2026-06-01T08:00:00.000000Z"),
        ("Mon, 01 Jun 2026 10:00:00 GMT", "2026-06-01T10:00:00.000000Z"),
        // epoch
        ("1780308000", "2026-06-01T10:00:00.000000Z"),
        ("1780308000.412", "2026-06-01T10:00:00.412000Z"),
        ("1780308000412", "2026-06-01T10:00:00.412000Z"),
        ("1780308000412.5", "2026-06-01T10:00:00.412500Z"),
        ("1780308000412345", "2026-06-01T10:00:00.412345Z"),
        ("1780308000412345678", "2026-06-01T10:00:00.412345Z"),
        ("-1780308000", "1913-08-02T14:00:00.000000Z"),
        ("100000000", "1973-03-03T09:46:40.000000Z"),
        // whitespace around
        (" 2026-06-01T10:00:00Z\n", "2026-06-01T10:00:00.000000Z"),
    ] {
        assert_eq!(parse(text).map(show).as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn no_spellings() {
    for text in [
        "",
        " ",
        "now",
        "yesterday",
        "2026",
        "20260601",
        "2026-13-01",
        "2026-02-30",
        "2026-06",
        "2026-06-01T",
        "2026-06-01T25:00:00Z",
        "2026-06-01T10:60:00Z",
        "2026-06-01T10:00:61Z",
        "2026-06-01T10:00:00.Z",
        "2026-06-01T10:00:00+3",
        "2026-06-01T10:00:00+99:00",
        "2026-06-01T10:00:00Zx",
        "2026-06/01",
        "26-06-01",
        "1/2/26",
        "-",
        "-2026",
        "+1780308000",
        "12345678901234567890",
        "1780308000.4x",
        "1.5e9",
        "2026-06-01T10:00:00é",
        "é",
        "٢٠٢٦-٠٦-٠١",
    ] {
        assert_eq!(parse(text), None, "{text}");
    }
    // `sent_at` of a body must be a date.
    assert_eq!(parse_date("1780308000"), None);
}

#[test]
fn years_beyond_four_digits() {
    assert_eq!(parse("-0001-12-31T00:00:00Z").map(|time| time / 86_400_000_000), Some(-719_529));
    assert!(parse("+12026-06-01T00:00:00Z").is_some());
    assert!(parse("-262143-01-01").is_some());
    assert_eq!(parse("-999999-01-01"), None);
}

const NOW: &str = "2026-06-01T10:00:00.000000Z";

struct Case {
    timestamp: Option<&'static str>,
    offset: Option<&'static str>,
    sent_at: Option<&'static str>,
    ignore_sent_at: bool,
    expected: &'static str,
    warnings: &'static [Warning],
}

const PLAIN: Case = Case {
    timestamp: None,
    offset: None,
    sent_at: None,
    ignore_sent_at: false,
    expected: NOW,
    warnings: &[],
};

#[test]
fn the_rule() {
    let cases = [
        PLAIN,
        Case { sent_at: Some("2026-06-01T15:00:00Z"), ..PLAIN },
        // timestamp only
        Case {
            timestamp: Some("\"2026-06-01T09:00:00.000001Z\""),
            expected: "2026-06-01T09:00:00.000001Z",
            ..PLAIN
        },
        Case { timestamp: Some("1780300800"), expected: "2026-06-01T08:00:00.000000Z", ..PLAIN },
        Case { timestamp: Some("1780300800.25"), expected: "2026-06-01T08:00:00.250000Z", ..PLAIN },
        // with sent_at: a clock five hours ahead, and one five hours behind
        Case {
            timestamp: Some("\"2026-06-01T14:50:00Z\""),
            sent_at: Some("2026-06-01T15:00:00Z"),
            expected: "2026-06-01T09:50:00.000000Z",
            ..PLAIN
        },
        Case {
            timestamp: Some("\"2026-06-01T04:50:00Z\""),
            sent_at: Some("2026-06-01T05:00:00Z"),
            expected: "2026-06-01T09:50:00.000000Z",
            ..PLAIN
        },
        Case {
            timestamp: Some("\"2026-06-01T10:29:59.190384851Z\""),
            sent_at: Some("2026-06-01T10:30:00.268688670Z"),
            expected: "2026-06-01T09:59:58.921696Z",
            ..PLAIN
        },
        // the sender's clock is not corrected
        Case {
            timestamp: Some("\"2024-04-02T12:00:00Z\""),
            sent_at: Some("2026-06-01T10:00:00.05Z"),
            ignore_sent_at: true,
            expected: "2024-04-02T12:00:00.000000Z",
            ..PLAIN
        },
        // offset, which takes precedence
        Case { offset: Some("2715"), expected: "2026-06-01T09:59:57.285000Z", ..PLAIN },
        Case { offset: Some("2715.0"), expected: "2026-06-01T09:59:57.285000Z", ..PLAIN },
        Case { offset: Some("-1000"), expected: "2026-06-01T10:00:01.000000Z", ..PLAIN },
        Case {
            offset: Some("2715"),
            timestamp: Some("\"2026-06-01T09:00:00Z\""),
            sent_at: Some("2026-06-01T15:00:00Z"),
            expected: "2026-06-01T09:59:57.285000Z",
            ..PLAIN
        },
        Case {
            offset: Some("\"soon\""),
            timestamp: Some("\"2026-06-01T09:00:00Z\""),
            expected: "2026-06-01T09:00:00.000000Z",
            warnings: &[InvalidTimestamp],
            ..PLAIN
        },
        Case { offset: Some("1.5"), warnings: &[InvalidTimestamp], ..PLAIN },
        Case { offset: Some("[]"), timestamp: Some("{}"), warnings: &[InvalidTimestamp], ..PLAIN },
        // unreadable
        Case { timestamp: Some("\"\""), warnings: &[InvalidTimestamp], ..PLAIN },
        Case { timestamp: Some("\"tomorrow\""), warnings: &[InvalidTimestamp], ..PLAIN },
        Case { timestamp: Some("true"), warnings: &[InvalidTimestamp], ..PLAIN },
        Case { timestamp: Some("[1780300800]"), warnings: &[InvalidTimestamp], ..PLAIN },
        Case {
            timestamp: Some("\"tomorrow\""),
            sent_at: Some("2026-06-01T15:00:00Z"),
            warnings: &[InvalidTimestamp],
            ..PLAIN
        },
        // up to 23 hours ahead are valid
        Case {
            timestamp: Some("\"2026-06-02T09:00:00Z\""),
            expected: "2026-06-02T09:00:00.000000Z",
            ..PLAIN
        },
        Case {
            timestamp: Some("\"2026-06-02T09:00:00.000001Z\""),
            warnings: &[FutureTimestamp],
            ..PLAIN
        },
        Case { offset: Some("-9223372036854775808"), warnings: &[FutureTimestamp], ..PLAIN },
        Case {
            timestamp: Some("\"+12345-01-01T00:00:00Z\""),
            warnings: &[FutureTimestamp],
            ..PLAIN
        },
        // the bounds of years
        Case {
            timestamp: Some("\"0000-01-01T00:00:00Z\""),
            expected: "0000-01-01T00:00:00.000000Z",
            ..PLAIN
        },
        Case {
            timestamp: Some("\"-0001-12-31T23:59:59.999999Z\""),
            expected: "1970-01-01T00:00:00.000000Z",
            warnings: &[TimestampOutOfRange],
            ..PLAIN
        },
        Case {
            timestamp: Some("\"0000-01-01T00:00:00Z\""),
            sent_at: Some("2026-06-01T10:00:01Z"),
            expected: "1970-01-01T00:00:00.000000Z",
            warnings: &[TimestampOutOfRange],
            ..PLAIN
        },
        Case {
            offset: Some("9223372036854775807"),
            expected: "1970-01-01T00:00:00.000000Z",
            warnings: &[TimestampOutOfRange],
            ..PLAIN
        },
    ];
    for (number, case) in cases.iter().enumerate() {
        let mut warnings = Vec::new();
        let claims = Claims {
            timestamp: case.timestamp,
            offset: case.offset,
            sent_at: case.sent_at.map(utc),
            ignore_sent_at: case.ignore_sent_at,
        };
        let time = event_time(claims, utc(NOW), &mut warnings);
        assert_eq!(show(time), case.expected, "case {number}: {claims:?}");
        assert_eq!(warnings, case.warnings, "case {number}: {claims:?}");
    }
}

#[test]
fn years_that_are_too_late_by_our_own_clock() {
    let mut warnings = Vec::new();
    let claims = Claims { timestamp: None, offset: None, sent_at: None, ignore_sent_at: false };
    let broken_clock = DateTime::from_timestamp(253_402_300_800, 0).unwrap();
    assert_eq!(event_time(claims, broken_clock, &mut warnings), 0);
    assert_eq!(warnings, [TimestampOutOfRange]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rfc_3339_is_read_exactly(micros in -62_167_219_200_000_000_i64..253_402_300_800_000_000) {
        prop_assert_eq!(parse(&show(micros)), Some(micros));
    }

    #[test]
    fn nonsense_does_no_harm(
        timestamp in "[-+0-9TZ:./ ,\"a-e]{0,30}",
        offset in "-?[0-9]{0,20}",
        sent_at in any::<Option<i64>>(),
    ) {
        let claims = Claims {
            timestamp: Some(&timestamp),
            offset: (!offset.is_empty()).then_some(offset.as_str()),
            sent_at: sent_at.and_then(DateTime::from_timestamp_micros),
            ignore_sent_at: false,
        };
        let time = event_time(claims, utc(NOW), &mut Vec::new());
        prop_assert!((super::YEAR_0..super::YEAR_10000).contains(&time));
        let _ = parse(&timestamp);
    }
}
