//! Boundaries of intervals, by the clock and by the calendar.

use super::*;
use serde_json::Map;
use weir_model::exports::{Destination, ExportModel};
use weir_model::{BatchExportId, ProjectId};

fn time(text: &str) -> Timestamp {
    Timestamp::parse_lenient(text).unwrap()
}

fn plain(interval: Interval) -> Cadence {
    Cadence::of(interval, UTC, None, None).unwrap()
}

fn local(interval: Interval, zone: &str, day: i64, hour: i64) -> Cadence {
    let day = (interval == Interval::Week).then_some(day);
    Cadence::of(interval, zone, day, Some(hour)).unwrap()
}

/// The boundaries between two times, from the first one after `from` on.
fn boundaries(cadence: &Cadence, from: &str, until: &str) -> Vec<String> {
    let (mut at, until) = (cadence.boundary_after(time(from)), time(until));
    let mut found = Vec::new();
    while at <= until {
        found.push(at.to_string()[5..16].to_owned());
        let inside = at.plus_seconds(1);
        assert_eq!(cadence.boundary_before(inside), at);
        assert_eq!(cadence.boundary_before(at), at);
        let next = cadence.boundary_after(at);
        assert_eq!(cadence.boundary_after(inside), next);
        assert_eq!(cadence.start_of(next), at);
        at = next;
    }
    found
}

#[test]
fn boundaries_are_those_of_the_clock_and_of_sundays() {
    for (interval, at, expected) in [
        (Interval::Hour, "2026-08-21T14:59:59.999999", "2026-08-21T14:00:00Z"),
        (Interval::Hour, "2026-08-21T14:00", "2026-08-21T14:00:00Z"),
        (Interval::Day, "2026-08-21T14:00", "2026-08-21T00:00:00Z"),
        (Interval::Day, "2026-08-21T23:59:59.999999", "2026-08-21T00:00:00Z"),
        // A Friday; Sunday was the 16th.
        (Interval::Week, "2026-08-21T14:00", "2026-08-16T00:00:00Z"),
        (Interval::Week, "2026-08-16T00:00", "2026-08-16T00:00:00Z"),
        (Interval::Week, "2026-08-15T23:59", "2026-08-09T00:00:00Z"),
        (Interval::FiveMinutes, "2026-08-21T14:04:59", "2026-08-21T14:00:00Z"),
        (Interval::QuarterHour, "2026-08-21T14:46", "2026-08-21T14:45:00Z"),
        (Interval::Week, "1970-01-01T00:00", "1969-12-28T00:00:00Z"),
    ] {
        let cadence = plain(interval);
        let before = cadence.boundary_before(time(at));
        assert_eq!(before.to_string(), expected, "{interval} {at}");
        let after = cadence.boundary_after(time(at));
        assert_eq!(after, before.plus_seconds(interval.seconds()), "{interval} {at}");
    }
}

#[test]
fn days_begin_at_their_hour_of_the_time_zone() {
    let berlin = local(Interval::Day, "Europe/Berlin", 0, 3);
    assert_eq!(
        boundaries(&berlin, "2026-08-20T12:00", "2026-08-22T12:00"),
        ["08-21T01:00", "08-22T01:00"]
    );
    // A quarter of an hour off the full hour.
    let nepal = local(Interval::Day, "Asia/Kathmandu", 0, 0);
    assert_eq!(
        boundaries(&nepal, "2026-08-20T12:00", "2026-08-22T12:00"),
        ["08-20T18:15", "08-21T18:15"]
    );
    // On the other side of the date line it is already tomorrow.
    let far = local(Interval::Day, "Pacific/Kiritimati", 0, 23);
    assert_eq!(boundaries(&far, "2026-08-20T12:00", "2026-08-22T08:59"), ["08-21T09:00"]);
}

#[test]
fn days_on_which_clocks_change_are_whole() {
    let midnight = local(Interval::Day, "Europe/Berlin", 0, 0);
    // The 29th of March has 23 hours, the 25th of October 25.
    assert_eq!(
        boundaries(&midnight, "2026-03-27T12:00", "2026-03-30T12:00"),
        ["03-27T23:00", "03-28T23:00", "03-29T22:00"]
    );
    assert_eq!(
        boundaries(&midnight, "2026-10-23T12:00", "2026-10-26T12:00"),
        ["10-23T22:00", "10-24T22:00", "10-25T23:00"]
    );
    // Two o'clock does not exist in March, and comes twice in October.
    let two = local(Interval::Day, "Europe/Berlin", 0, 2);
    assert_eq!(
        boundaries(&two, "2026-03-27T12:00", "2026-03-30T12:00"),
        ["03-28T01:00", "03-29T01:00", "03-30T00:00"]
    );
    assert_eq!(
        boundaries(&two, "2026-10-23T12:00", "2026-10-26T12:00"),
        ["10-24T00:00", "10-25T00:00", "10-26T01:00"]
    );
    // Havana skips midnight, Lord Howe Island skips half an hour after two, and in
    // St. John's midnight comes twice.
    let havana = local(Interval::Day, "America/Havana", 0, 0);
    assert_eq!(
        boundaries(&havana, "2026-03-06T12:00", "2026-03-09T12:00"),
        ["03-07T05:00", "03-08T05:00", "03-09T04:00"]
    );
    let howe = local(Interval::Day, "Australia/Lord_Howe", 0, 2);
    assert_eq!(
        boundaries(&howe, "2026-10-02T20:00", "2026-10-05T12:00"),
        ["10-03T15:30", "10-04T15:00"]
    );
    let stjohns = local(Interval::Day, "America/St_Johns", 0, 0);
    assert_eq!(
        boundaries(&stjohns, "2005-10-28T12:00", "2005-10-31T12:00"),
        ["10-29T02:30", "10-30T02:30", "10-31T03:30"]
    );
}

#[test]
fn a_day_that_a_zone_skipped_is_no_interval() {
    // Samoa skipped from the 29th of December 2011 to the 31st.
    for (hour, expected) in [
        (0, ["12-29T10:00", "12-30T10:00", "12-31T10:00"]),
        (2, ["12-29T12:00", "12-30T12:00", "12-31T12:00"]),
    ] {
        let apia = local(Interval::Day, "Pacific/Apia", 0, hour);
        assert_eq!(boundaries(&apia, "2011-12-28T20:00", "2011-12-31T20:00"), expected);
        let (start, end) = (time("2011-12-01T00:00"), time("2012-01-10T00:00"));
        let (mut next, mut cut) = (start, 0);
        while next < end {
            let (_, until) = apia.backfill_run(start, 1, next, end);
            assert!(until > next, "{next}");
            (next, cut) = (until, cut + 1);
        }
        assert!((39..=40).contains(&cut), "{cut}");
    }
}

#[test]
fn weeks_begin_on_their_day() {
    // Fridays at nine in New York, over the clock change of the 1st of November.
    let friday = local(Interval::Week, "America/New_York", 5, 9);
    assert_eq!(
        boundaries(&friday, "2026-10-20T00:00", "2026-11-14T00:00"),
        ["10-23T13:00", "10-30T13:00", "11-06T14:00", "11-13T14:00"]
    );
    for day in 0..7 {
        let week = local(Interval::Week, "Asia/Tokyo", day, 23);
        let all = boundaries(&week, "2026-08-01T00:00", "2026-09-01T00:00");
        assert!((4..=5).contains(&all.len()), "{day}: {all:?}");
    }
}

#[test]
fn every_zone_has_each_day_once() {
    let whole = time("2026-01-01T00:00")..time("2027-01-01T00:00");
    for name in tz::TimeZoneDatabase::bundled().available() {
        let cadence = local(Interval::Day, name.as_str(), 0, 2);
        let mut at = cadence.boundary_after(whole.start);
        while at < whole.end {
            let next = cadence.boundary_after(at);
            let hours = (next.micros() - at.micros()) / MICROS / 3_600;
            assert!((22..=26).contains(&hours), "{name} {at} {next}");
            assert_eq!(cadence.start_of(next), at, "{name}");
            at = next;
        }
    }
}

#[test]
fn what_is_no_cadence_is_none() {
    let of = |zone, day, hour| Cadence::of(Interval::Week, zone, day, hour).is_some();
    assert!(of("Europe/Berlin", Some(6), Some(23)));
    assert!(!of("Europe/Nowhere", None, None));
    assert!(!of("", None, None));
    for (day, hour) in [(Some(7), None), (Some(-1), None), (None, Some(24)), (None, Some(-1))] {
        assert!(!of(UTC, day, hour), "{day:?} {hour:?}");
    }
    assert_eq!(zone_name("europe/berlin").as_deref(), Some("Europe/Berlin"));
    assert_eq!(zone_name("utc").as_deref(), Some(UTC));
}

#[test]
fn one_name_means_the_same_boundaries() {
    assert_eq!(plain(Interval::Day).name(), "day");
    assert_eq!(local(Interval::Day, UTC, 0, 3).name(), "day 0 3 UTC");
    assert_eq!(local(Interval::Week, "Asia/Tokyo", 1, 0).name(), "week 1 0 Asia/Tokyo");
    // Hours follow the clock in every time zone.
    let hour = Cadence::of(Interval::Hour, "Asia/Tokyo", None, None).unwrap();
    assert_eq!(hour.name(), "hour");
}

#[test]
fn a_part_of_an_interval_takes_a_run() {
    let hour = plain(Interval::Hour);
    let between = |start: &str, end: &str| hour.runs_between(time(start), time(end));
    assert_eq!(between("2026-08-21T14:00", "2026-08-21T16:00"), 2);
    assert_eq!(between("2026-08-21T14:00", "2026-08-21T16:01"), 3);
    assert_eq!(between("2026-08-21T16:00", "2026-08-21T14:00"), 0);
}

#[test]
fn a_backfill_begins_where_there_is_something() {
    let time = |text: &str| time(&format!("2026-{text}"));
    let hour = plain(Interval::Hour);
    let of = |start: Option<&str>, first: &str| {
        hour.backfill_start(start.map(time), time(first)).to_string()
    };
    assert_eq!(of(None, "08-21T14:20"), "2026-08-21T14:00:00Z");
    assert_eq!(of(Some("08-01T00:30"), "08-21T14:20"), "2026-08-21T13:30:00Z");
    assert_eq!(of(Some("08-01T00:30"), "08-21T14:30"), "2026-08-21T14:30:00Z");
    assert_eq!(of(Some("08-22T00:30"), "08-21T14:30"), "2026-08-22T00:30:00Z");
    let day = local(Interval::Day, "Europe/Berlin", 0, 0);
    let of =
        |start: &str, first: &str| day.backfill_start(Some(time(start)), time(first)).to_string();
    assert_eq!(of("03-01T23:00", "03-30T21:59"), "2026-03-29T22:00:00Z");
    assert_eq!(of("03-01T23:00", "03-30T22:00"), "2026-03-30T22:00:00Z");
    assert_eq!(of("03-01T23:00", "03-29T22:59"), "2026-03-29T22:00:00Z");
}

#[test]
fn a_long_backfill_has_longer_runs_instead_of_more() {
    let of = |interval: Interval, start: &str| {
        let (start, end) = (time(start), time("2026-08-21T14:00"));
        let cadence = plain(interval);
        (cadence.intervals_per_run(start, end), cadence.runs_between(start, end))
    };
    assert_eq!(of(Interval::Hour, "2026-08-21T12:00"), (1, 2));
    assert_eq!(of(Interval::Day, "1970-01-01T00:00"), (5, 4_138));
    // 5,000 runs of five minutes, and one more.
    assert_eq!(of(Interval::FiveMinutes, "2026-08-04T05:20"), (1, 5_000));
    assert_eq!(of(Interval::FiveMinutes, "2026-08-04T05:15"), (2, 2_501));
    assert_eq!(of(Interval::FiveMinutes, "2026-08-21T14:00"), (1, 0));
    let (_, runs) = of(Interval::FiveMinutes, "1970-01-01T00:00");
    assert!((4_990..=5_000).contains(&runs), "{runs}");
}

#[test]
fn runs_of_a_backfill_lie_side_by_side() {
    for (cadence, start, end, runs) in [
        (plain(Interval::Hour), "2026-08-21T12:30", "2026-08-21T15:00", 3),
        (plain(Interval::FiveMinutes), "2026-01-01T00:00", "2026-08-21T15:00", 4_786),
        (local(Interval::Day, "Europe/Berlin", 0, 0), "2026-03-26T23:00", "2026-03-31T22:00", 5),
        (local(Interval::Day, "Europe/Berlin", 0, 0), "2026-10-20T22:00", "2026-10-27T23:00", 7),
        (local(Interval::Day, "Europe/Berlin", 0, 2), "2026-03-20T01:00", "2026-04-02T00:00", 13),
        (
            local(Interval::Week, "America/New_York", 0, 0),
            "2026-10-18T04:00",
            "2026-11-15T05:00",
            4,
        ),
        (
            local(Interval::Day, "Europe/Berlin", 0, 0),
            "1980-01-01T00:00",
            "2026-08-21T00:00",
            4_259,
        ),
    ] {
        let (start, end) = (time(start), time(end));
        assert_eq!(cadence.runs_between(start, end), runs, "{cadence:?} {start}");
        let (mut next, mut cut) = (start, 0);
        while next < end {
            let each = cadence.intervals_per_run(start, end);
            let (begin, until) = cadence.backfill_run(start, each, next, end);
            assert_eq!(begin, next, "{cadence:?}");
            assert!(until > next, "{cadence:?} {next}");
            let within = Timestamp::from_micros(until.micros() - 1);
            assert_eq!(cadence.backfill_run(start, each, within, end), (begin, until));
            (next, cut) = (until, cut + 1);
        }
        assert_eq!((next, cut), (end, runs), "{cadence:?} {start}");
    }
    // An hour that is missing on one day does not move other boundaries.
    let two = local(Interval::Day, "Europe/Berlin", 0, 2);
    let (start, end) = (time("2026-03-29T01:00"), time("2026-04-05T00:00"));
    assert_eq!(two.backfill_run(start, 1, start, end).1.to_string(), "2026-03-30T00:00:00Z");
    // Runs end where regular runs do, before and after a clock change.
    let day = local(Interval::Day, "Europe/Berlin", 0, 0);
    let (start, end) = (time("2026-03-27T23:00"), time("2026-03-30T22:00"));
    let (_, first) = day.backfill_run(start, 1, start, end);
    let (_, second) = day.backfill_run(start, 1, first, end);
    let shown = [first, second].map(|cut| cut.to_string());
    assert_eq!(shown, ["2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"]);
}

#[test]
fn a_plan_has_runs_for_intervals_with_events() {
    let hour = plain(Interval::Hour);
    let plan = |start: Option<&str>, end: &str, firsts: &[Timestamp]| {
        let plan = hour.backfill_plan(start.map(time), time(end), firsts)?;
        Some((plan.start.to_string(), plan.each, plan.runs))
    };
    let end = "2026-08-21T14:00";
    let begins = |text: &str, runs: u64| Some((text.to_owned(), 1, runs));
    assert_eq!(plan(None, end, &[]), None);
    assert_eq!(plan(None, end, &[time("2026-08-21T14:00")]), None);
    // One event of the year 99 makes one run.
    let firsts = [time("0099-03-04T05:06"), time("2026-08-21T12:30")];
    assert_eq!(plan(None, end, &firsts), begins("0099-03-04T05:00:00Z", 2));
    assert_eq!(plan(Some("0001-01-01T00:30"), end, &firsts), begins("0099-03-04T04:30:00Z", 2));
    let hours = |from: &str, count: i64| -> Vec<Timestamp> {
        (0..count).map(|n| time(from).plus_seconds(n * 3_600 + 1)).collect()
    };
    // Later intervals are assumed to have events.
    let counted = i64::try_from(COUNTED).unwrap();
    assert_eq!(
        plan(None, "2026-08-11T00:00", &hours("2026-08-01T00:00", counted)),
        begins("2026-08-01T00:00:00Z", 240)
    );
    let firsts = hours("0099-01-01T00:00", counted);
    let (_, each, runs) = plan(None, end, &firsts).unwrap();
    assert!(each > 3_000 && runs <= BACKFILL_RUNS_MAX, "{each} {runs}");
    let (begin, until) = hour.backfill_run(firsts[0], each, time("2026-08-21T12:30"), time(end));
    assert!(begin <= time("2026-08-21T12:30") && until <= time(end));
}

fn export() -> BatchExport {
    BatchExport {
        id: BatchExportId(uuid::Uuid::nil()),
        team_id: ProjectId(1),
        name: "Nightly".to_owned(),
        destination: Destination { kind: "NoOp".to_owned(), config: Map::new() },
        model: ExportModel::Events,
        interval: Interval::Hour,
        timezone: UTC.to_owned(),
        offset_day: None,
        offset_hour: None,
        paused: false,
        created_at: time("2026-08-01T00:00"),
        last_updated_at: time("2026-08-01T00:00"),
        last_paused_at: None,
        start_at: None,
        end_at: None,
        latest_runs: Vec::new(),
        latest_error: None,
        failing_since: None,
        next_try_at: None,
        hogql_query: None,
        schema: None,
        backfill_id: None,
    }
}

#[test]
fn the_next_run_is_at_the_end_of_an_interval_within_the_window() {
    let time = |text: &str| time(&format!("2026-08-{text}"));
    let next = |export: &BatchExport| {
        Cadence::next_run(export, time("21T14:20")).map(|next| next.to_string()[8..16].to_owned())
    };
    let plain = export();
    assert_eq!(next(&plain).as_deref(), Some("21T15:00"));
    assert_eq!(next(&BatchExport { paused: true, ..plain.clone() }), None);
    for (start, expected) in [("21T14:30", "21T15:00"), ("21T17:00", "21T17:00")] {
        let later = BatchExport { start_at: Some(time(start)), ..plain.clone() };
        assert_eq!(next(&later).as_deref(), Some(expected), "{start}");
    }
    for (end, expected) in [("21T15:00", Some("21T15:00")), ("21T14:59", None)] {
        let ended = BatchExport { end_at: Some(time(end)), ..plain.clone() };
        assert_eq!(next(&ended).as_deref(), expected, "{end}");
    }
    let tokyo = BatchExport {
        interval: Interval::Day,
        timezone: "Asia/Tokyo".to_owned(),
        offset_hour: Some(6),
        ..plain
    };
    assert_eq!(next(&tokyo).as_deref(), Some("21T21:00"));
}
