use serde_json::value::RawValue;
use serde_json::{Value, json};
use weir_model::Timestamp;
use weir_questions::results::{Answer, ResolvedRange};

use super::*;

fn time(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// The report of a question with these results.
fn report(query: &Value, results: &Value) -> Report {
    let range = ResolvedRange {
        date_from: time("2026-08-14T22:00:00Z"),
        date_to: time("2026-08-21T21:59:59Z"),
    };
    let answer = Answer {
        results: RawValue::from_string(results.to_string()).unwrap(),
        has_more: None,
        resolved_date_range: Some(range),
        timezone: "Europe/Berlin".to_owned(),
        is_cached: false,
        last_refresh: time("2026-08-21T12:00:00Z"),
    };
    let answered = Answered { answer, rows: None, cache_key: String::new() };
    let empty = Report { name: "Payments".to_owned(), path: "/p".to_owned(), ..Report::default() };
    of(&Query::read(query).unwrap(), &answered, empty).unwrap()
}

fn series(label: &str, numbers: &[f64]) -> Value {
    let days: Vec<String> = (1..=numbers.len()).map(|day| format!("day {day}")).collect();
    json!({
        "action": null, "order": 0, "label": label, "count": 0, "data": numbers,
        "labels": days, "days": days,
    })
}

fn trends(display: &str) -> Value {
    json!({
        "kind": "TrendsQuery", "series": [{"event": "paid"}], "trendsFilter": {"display": display},
    })
}

fn rows(report: &Report) -> &[Vec<String>] {
    &report.table.as_ref().unwrap().rows
}

#[test]
fn numbers_over_time_are_a_chart_and_the_last_of_them_a_table() {
    let numbers: Vec<f64> = (0..130).map(f64::from).collect();
    let line = report(&trends("ActionsLineGraph"), &json!([series("paid", &numbers)]));
    assert_eq!(line.range, "2026-08-15 to 2026-08-21, Europe/Berlin");
    assert_eq!((line.name.as_str(), line.path.as_str()), ("Payments", "/p"));
    let chart = line.chart.as_ref().unwrap();
    assert_eq!((chart.kind, chart.labels.len()), (ChartKind::Lines, POINTS_MAX));
    assert_eq!(chart.series[0].values.last().unwrap(), &Finite::new(129.0));
    assert_eq!(rows(&line)[0].first().unwrap(), "paid");
    assert_eq!(rows(&line)[0].last().unwrap(), "129");
    assert_eq!(rows(&line)[0].len(), COLUMNS_MAX);
    assert_eq!(
        line.notes,
        [
            "The table has the last 7 of 130 intervals.",
            "The chart has the last 120 of 130 intervals.",
        ]
    );
    let bars = report(&trends("ActionsBar"), &json!([series("paid", &[1.0, 1234.5])]));
    assert_eq!(bars.chart.unwrap().kind, ChartKind::Bars);
    let few = report(&trends("ActionsBar"), &json!([series("paid", &[1.0, 1234.5])]));
    assert_eq!(rows(&few), [["paid", "1", "1,234.5"]]);
    assert!(few.notes.is_empty());
}

#[test]
fn one_number_is_shown_alone_and_several_as_bars() {
    let total = |label: &str, number: f64| {
        let mut one = series(label, &[]);
        one["aggregated_value"] = json!(number);
        one
    };
    let number = report(&trends("BoldNumber"), &json!([total("paid", -1234.0)]));
    assert_eq!(number.number.as_deref(), Some("-1,234"));
    assert_eq!((&number.chart, &number.table), (&None, &None));
    let found = json!([total(BREAKDOWN_OTHER, 3.0), total("", 2.0)]);
    let values = report(&trends("ActionsBarValue"), &found);
    assert_eq!(rows(&values), [["All other values", "3"], ["Empty text", "2"]]);
    let chart = values.chart.unwrap();
    assert_eq!((chart.kind, chart.series.len()), (ChartKind::Bars, 1));
    assert_eq!(chart.labels, ["All other values", "Empty text"]);
}

#[test]
fn everything_has_a_bound_and_says_what_is_hidden() {
    let long = "x".repeat(1_000);
    let found: Vec<Value> = (0..40).map(|_| series(&long, &[1.0])).collect();
    let report = report(&trends("ActionsLineGraph"), &json!(found));
    let chart = report.chart.as_ref().unwrap();
    assert_eq!((chart.series.len(), rows(&report).len()), (SERIES_MAX, ROWS_MAX));
    assert_eq!(chart.series[0].label.chars().count(), LABEL_MAX);
    assert_eq!(
        report.notes,
        ["The table has the first 12 of 40 rows.", "The chart has the first 10 of 40 series."]
    );
}

#[test]
fn stickiness_says_which_series_are_hidden() {
    let query = json!({"kind": "StickinessQuery", "series": [{"event": "paid"}]});
    let one = |at: usize| {
        json!({
            "action": {
                "id": "paid", "type": "events", "order": at, "name": "paid",
                "custom_name": null, "math": "total", "math_property": null,
                "math_group_type_index": null,
            },
            "label": format!("paid {at}"), "count": 3, "data": [2, 1], "days": [1, 2],
            "labels": ["1 day", "2 days"],
        })
    };
    let found: Vec<Value> = (0..12).map(one).collect();
    let report = report(&query, &json!(found));
    assert_eq!(rows(&report)[0], ["1 day", "2", "2", "2", "2", "2", "2", "2"]);
    assert_eq!(report.chart.as_ref().unwrap().series.len(), SERIES_MAX);
    assert_eq!(
        report.notes,
        ["The table has the first 7 of 12 series.", "The chart has the first 10 of 12 series."]
    );
}

#[test]
fn steps_and_cohorts_have_shares() {
    let step = |order: usize, name: &str, count: u64| {
        json!({
            "action_id": name, "name": name, "custom_name": null, "order": order, "count": count,
            "type": "events", "people": [], "average_conversion_time": null,
            "median_conversion_time": null,
        })
    };
    let funnel = json!({
        "kind": "FunnelsQuery", "series": [{"event": "view"}, {"event": "paid"}],
    });
    let steps = report(&funnel, &json!([step(0, "view", 8), step(1, "paid", 1)]));
    assert_eq!(rows(&steps), [["1. view", "8", "100.0 %"], ["2. paid", "1", "12.5 %"]]);
    assert_eq!(steps.chart.unwrap().labels, ["1. view", "2. paid"]);

    let retention = json!({
        "kind": "RetentionQuery",
        "retentionFilter": {
            "targetEntity": {"id": "view", "type": "events"},
            "returningEntity": {"id": "view", "type": "events"},
        },
    });
    let value = |count: u64, label: &str| json!({"count": count, "label": label});
    let found = json!([
        {
            "values": [value(4, "Day 0"), value(1, "Day 1")], "label": "Day 0",
            "date": "2026-08-19T22:00:00Z",
        },
        {"values": [value(0, "Day 0")], "label": "Day 1", "date": "2026-08-20T22:00:00Z"},
    ]);
    let cohorts = report(&retention, &found);
    assert_eq!(cohorts.chart, None);
    assert_eq!(rows(&cohorts), [["2026-08-20", "4", "25.0 %"], ["2026-08-21", "0", ""]]);
}

#[test]
fn an_answer_without_numbers_says_so_and_single_persons_are_not_shown() {
    let none = report(&trends("ActionsTable"), &json!([]));
    assert_eq!((&none.chart, &none.table), (&None, &None));
    assert_eq!(none.notes, ["There are no numbers in this range."]);
    for (query, expected) in [
        (trends("ActionsTable"), true),
        (json!({"kind": "EventsQuery", "select": ["distinct_id"]}), false),
        (json!({"kind": "HogQLQuery", "query": "select distinct_id from events"}), false),
    ] {
        assert_eq!(is_shown(&Query::read(&query).unwrap()), expected, "{query}");
    }
}

#[test]
fn amounts_have_three_digits_behind_the_point_at_most() {
    for (number, expected) in [
        (0.0, "0"),
        (-0.0001, "0"),
        (0.333_33, "0.333"),
        (0.9999, "1"),
        (1_204_000.0, "1,204,000"),
        (-1_204.5, "-1,204.5"),
        (1e20, "1e20"),
    ] {
        assert_eq!(amount(number), expected);
    }
}
