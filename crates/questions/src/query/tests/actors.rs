//! Lists of the persons of a number.

use super::*;
use crate::evaluate::FunnelOutcome;
use crate::results::{BreakdownValue, CompareLabel};
use crate::time::DateText;

#[test]
fn a_list_of_persons_has_one_form() {
    let trends = actors(json!({
        "kind": "InsightActorsQuery",
        "source": trend(json!({ "breakdown": "$browser" })),
        "day": "2026-08-21",
        "series": 1,
        "breakdown": ["Chrome"],
        "compare": "previous",
        "includeRecordings": false,
    }));
    let mut sent = json!({ "kind": "DataTableNode", "source": trends });
    for (name, value) in [
        ("select", json!(["actor", "created_at", "event_count"])),
        ("orderBy", json!(["event_count DESC, actor_id asc", "created_at"])),
        ("limit", json!(10)),
        ("search", json!("")),
    ] {
        sent["source"][name] = value;
    }
    let value = written(&sent);
    assert_eq!(value["select"], json!(["actor", "created_at", "event_count"]));
    assert_eq!(value["orderBy"], json!(["event_count DESC", "id ASC", "created_at ASC"]));
    assert_eq!((&value["limit"], &value["offset"]), (&json!(10), &json!(0)));
    let source = &value["source"];
    assert_eq!(source["source"]["breakdownFilter"]["breakdown"], "$browser");
    for (name, expected) in [
        ("kind", json!("InsightActorsQuery")),
        ("day", json!("2026-08-21")),
        ("series", json!(1)),
        ("breakdown", json!("Chrome")),
        ("compare", json!("previous")),
    ] {
        assert_eq!(source[name], expected, "{name}");
    }
    let short = written(&actors(json!({ "kind": "InsightActorsQuery",
        "source": { "kind": "LifecycleQuery", "series": [pageview()] } })));
    assert_eq!(short["select"], json!(["actor", "id", "created_at"]));
    assert_eq!(short["limit"], 100);
    assert_eq!(short.get("orderBy"), None);
}

#[test]
fn every_number_has_its_persons() {
    let insight = |source: Value, members: Value| {
        let mut node = json!({ "kind": "InsightActorsQuery", "source": source });
        node.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        node
    };
    let of = |source: Value| {
        written(&actors(source.clone()));
        match Query::read(&actors(source)).unwrap() {
            Query::Actors(actors) => actors.cell,
            other => panic!("{other:?}"),
        }
    };
    let two = json!({ "breakdowns": [{ "property": "a" }, { "property": "b" }] });
    let cell = of(insight(
        trend(two),
        json!({ "day": "2026-08-21 14:00:00",
        "breakdown": ["x", 7] }),
    ));
    let expected = Cell::Trends {
        day: DateText::parse("2026-08-21T14:00:00"),
        series: 0,
        breakdown: Some(BreakdownValue::Many(vec!["x".to_owned(), "7".to_owned()])),
        compare: CompareLabel::Current,
    };
    assert_eq!(cell, expected);
    let stickiness = |computed: &str| {
        json!({ "kind": "StickinessQuery", "series": [pageview()],
            "stickinessFilter": { "computedAs": computed } })
    };
    for (computed, members, operator) in [
        ("non_cumulative", json!({}), StickinessOperator::Exact),
        ("cumulative", json!({}), StickinessOperator::GreaterOrEqual),
        ("cumulative", json!({ "operator": "lte" }), StickinessOperator::LessOrEqual),
    ] {
        let kind = match members.get("operator") {
            Some(_) => "StickinessActorsQuery",
            None => "InsightActorsQuery",
        };
        let mut node = insight(stickiness(computed), members);
        node["kind"] = json!(kind);
        node["day"] = json!(3);
        let expected = Cell::Stickiness {
            intervals: Some(3),
            operator,
            series: 0,
            compare: CompareLabel::Current,
        };
        assert_eq!(of(node), expected);
    }
    let lifecycle = json!({ "kind": "LifecycleQuery", "series": [pageview()] });
    assert_eq!(
        of(insight(lifecycle, json!({ "day": "2026-08-21", "status": "dormant" }))),
        Cell::Lifecycle {
            day: DateText::parse("2026-08-21"),
            status: Some(LifecycleStatus::Dormant),
        }
    );
    let retention = json!({ "kind": "RetentionQuery", "retentionFilter": {} });
    let expected = |after| Cell::Retention { period: 2, after, breakdown: None };
    for (members, after) in
        [(json!({ "interval": 2 }), None), (json!({ "interval": 2, "appearance": 7 }), Some(7))]
    {
        assert_eq!(of(insight(retention.clone(), members)), expected(after));
    }
    let paths = |keys: Value| {
        let source = json!({ "kind": "PathsQuery", "pathsFilter": keys });
        of(insight(source, json!({})))
    };
    let key = |step: u32, name: &str| Some(PathKey { step, name: name.to_owned() });
    let keys = PathKeys { from: key(1, "/a_b"), to: key(2, ""), dropoff: None };
    let sent = json!({ "pathStartKey": "1_/a_b", "pathEndKey": "2_" });
    assert_eq!(paths(sent), Cell::Paths(keys));
    let dropoff = PathKeys { dropoff: key(20, "x"), ..PathKeys::default() };
    assert_eq!(paths(json!({ "pathDropoffKey": "20_x" })), Cell::Paths(dropoff));
    assert_eq!(paths(json!({})), Cell::Paths(PathKeys::default()));
    let steps = |step: i64| {
        of(json!({ "kind": "FunnelsActorsQuery", "source": funnel("steps"),
            "funnelStep": step }))
    };
    for (number, step, is_dropped) in [(1, 0, false), (3, 2, false), (-2, 1, true), (-3, 2, true)] {
        let step = FunnelStep { step, is_dropped };
        assert_eq!(steps(number), Cell::FunnelStep { step, breakdown: None });
    }
    let begin = json!({ "kind": "FunnelsActorsQuery", "source": funnel("trends"),
        "funnelTrendsDropOff": true, "funnelTrendsEntrancePeriodStart": "2026-08-21 00:00:00" });
    let expected = Cell::FunnelTrend {
        begin: DateText::parse("2026-08-21T00:00:00").unwrap(),
        is_dropped: true,
        breakdown: None,
    };
    assert_eq!(of(begin), expected);
}

#[test]
fn persons_of_a_step_did_it_or_stopped_before_it() {
    let outcome =
        |steps: i64, is_excluded| FunnelOutcome { times: (0..steps).collect(), is_excluded };
    for (step, is_dropped, done, expected) in [
        (0, false, 0, false),
        (0, false, 1, true),
        (1, false, 1, false),
        (1, false, 3, true),
        (1, true, 1, true),
        (1, true, 0, false),
        (1, true, 2, false),
    ] {
        let step = FunnelStep { step, is_dropped };
        assert_eq!(step.contains(&outcome(done, false)), expected, "{step:?} {done}");
        assert!(!step.contains(&outcome(done, true)), "excluded: {step:?} {done}");
    }
}

#[test]
fn faults_of_a_list_of_persons_have_their_path() {
    let insight = |source: Value, name: &str, value: Value| {
        actors(json!({ "kind": "InsightActorsQuery", "source": source, name: value }))
    };
    let plain = || json!({ "kind": "TrendsQuery", "series": [pageview()] });
    let by_browser = || trend(json!({ "breakdown": "$browser" }));
    let outer = |name: &str, value: Value| {
        let mut query = insight(plain(), "day", Value::Null);
        query[name] = value;
        query
    };
    let paths = |keys: Value| json!({ "kind": "PathsQuery", "pathsFilter": keys });
    let steps = |visualization: &str, name: &str, value: Value| {
        actors(json!({ "kind": "FunnelsActorsQuery", "source": funnel(visualization),
            name: value }))
    };
    for (sent, attr, code) in [
        (json!({ "kind": "ActorsQuery" }), "source", "required"),
        (actors(plain()), "source__kind", "invalid_choice"),
        (actors(json!({ "kind": "InsightActorsQuery" })), "source__source", "required"),
        (
            insight(json!({ "kind": "HogQLQuery", "query": "x" }), "day", Value::Null),
            "source__source__kind",
            "invalid_choice",
        ),
        (insight(funnel("steps"), "day", Value::Null), "source__source__kind", "invalid_choice"),
        (
            insight(json!({ "kind": "WebOverviewQuery" }), "day", Value::Null),
            "source__source__kind",
            "invalid_choice",
        ),
        (
            insight(json!({ "kind": "TrendsQuery" }), "day", Value::Null),
            "source__source__series",
            "required",
        ),
        (insight(plain(), "day", json!("-7d")), "source__day", "invalid_input"),
        (insight(plain(), "day", json!("soon")), "source__day", "invalid_input"),
        (insight(plain(), "series", json!(1)), "source__series", "max_value"),
        (insight(plain(), "status", json!("new")), "source__status", "invalid_input"),
        (insight(plain(), "breakdown", json!("x")), "source__breakdown", "invalid_input"),
        (insight(by_browser(), "breakdown", json!([])), "source__breakdown", "invalid_input"),
        (insight(by_browser(), "breakdown", json!(["a", "b"])), "source__breakdown", "max_length"),
        (insight(by_browser(), "breakdown", json!({})), "source__breakdown", "invalid_input"),
        (insight(plain(), "compare", json!("previous")), "source__compare", "invalid_input"),
        (insight(by_browser(), "compare", json!("next")), "source__compare", "invalid_choice"),
        (
            insight(plain(), "includeRecordings", json!(true)),
            "source__includeRecordings",
            "invalid_input",
        ),
        (insight(plain(), "operator", json!("lte")), "source__operator", "invalid_input"),
        (
            insight(json!({ "kind": "RetentionQuery", "retentionFilter": {} }), "day", Value::Null),
            "source__interval",
            "required",
        ),
        (
            insight(paths(json!({ "pathStartKey": "/a" })), "day", Value::Null),
            "source__source__pathsFilter__pathStartKey",
            "invalid_input",
        ),
        (
            insight(paths(json!({ "pathEndKey": "21_a" })), "day", Value::Null),
            "source__source__pathsFilter__pathEndKey",
            "invalid_input",
        ),
        (
            insight(
                paths(json!({ "pathStartKey": "1_a", "pathEndKey": "3_a" })),
                "day",
                Value::Null,
            ),
            "source__source__pathsFilter__pathEndKey",
            "invalid_input",
        ),
        (
            insight(
                paths(json!({ "pathStartKey": "1_a", "pathDropoffKey": "2_a" })),
                "day",
                Value::Null,
            ),
            "source__source__pathsFilter__pathDropoffKey",
            "invalid_input",
        ),
        (paths(json!({ "pathStartKey": "1_a" })), "pathsFilter__pathStartKey", "invalid_input"),
        (steps("steps", "funnelStep", json!(4)), "source__funnelStep", "max_value"),
        (steps("steps", "funnelStep", json!(-4)), "source__funnelStep", "min_value"),
        (steps("steps", "funnelStep", json!(0)), "source__funnelStep", "invalid_input"),
        (steps("steps", "funnelStep", json!(-1)), "source__funnelStep", "invalid_input"),
        (steps("steps", "funnelStep", Value::Null), "source__funnelStep", "required"),
        (
            steps("trends", "funnelTrendsDropOff", json!(true)),
            "source__funnelTrendsEntrancePeriodStart",
            "required",
        ),
        (steps("trends", "funnelStep", json!(1)), "source__funnelStep", "invalid_input"),
        (insight(plain(), "interval", json!(1)), "source__interval", "invalid_input"),
        (
            steps("steps", "funnelTrendsDropOff", json!(false)),
            "source__funnelTrendsDropOff",
            "invalid_input",
        ),
        (
            steps("steps", "funnelCustomSteps", json!([2])),
            "source__funnelCustomSteps",
            "invalid_input",
        ),
        (outer("search", json!("ann")), "search", "invalid_input"),
        (outer("select", json!(["actor", "email"])), "select__1", "invalid_choice"),
        (outer("orderBy", json!(["email"])), "orderBy__0", "invalid_choice"),
        (outer("orderBy", json!(["id down"])), "orderBy__0", "invalid_choice"),
        (outer("orderBy", json!(["id,"])), "orderBy__0", "invalid_choice"),
        (outer("orderBy", json!(vec![["id"; 11].join(",")])), "orderBy", "max_length"),
        (outer("limit", json!(1_001)), "limit", "max_value"),
        (outer("offset", json!(-1)), "offset", "min_value"),
    ] {
        assert_eq!(fault(&sent), (attr.to_owned(), code.to_owned()), "{sent}");
    }
    let lifecycle = json!({ "kind": "LifecycleQuery", "series": [pageview()] });
    for (name, value) in [("select", json!(["event_count"])), ("orderBy", json!(["event_count"]))] {
        let mut query = insight(lifecycle.clone(), "day", Value::Null);
        query[name] = value;
        assert_eq!(fault(&query).0, format!("{name}__0"));
    }
}
