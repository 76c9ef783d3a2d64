//! Reading questions, their canonical form, and hostile input.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::evaluate::FunnelOutcome;
use crate::results::{BreakdownValue, CompareLabel};
use crate::time::DateText;

fn fault(value: &Value) -> (String, String) {
    let fault = Query::read(value).unwrap_err();
    (fault.attr.unwrap_or_default(), fault.code)
}

/// The canonical form of a question, which is read as the same question.
fn written(sent: &Value) -> Value {
    let query = Query::read(sent).unwrap_or_else(|fault| panic!("{fault:?} in {sent}"));
    let value = serde_json::to_value(&query).unwrap();
    assert_eq!(value["kind"], query.kind());
    assert_eq!(Query::read(&value).unwrap(), query, "read again: {value}");
    assert_eq!(serde_json::from_value::<Query>(value.clone()).unwrap(), query);
    value
}

fn pageview() -> Value {
    json!({ "kind": "EventsNode", "event": "$pageview", "math": "total" })
}

#[test]
fn a_trend_has_one_form() {
    let sent = json!({
        "kind": "InsightVizNode",
        "source": {
            "kind": "TrendsQuery",
            "series": [
                { "kind": "EventsNode", "event": "$pageview", "name": "$pageview", "math": "dau" },
                { "event": null, "math": "p90", "math_property": "$time", "custom_name": "slow" },
                { "event": "", "math": "unique_group", "math_group_type_index": "1" },
            ],
            "interval": "week",
            "dateRange": { "date_from": "-30d", "date_to": null, "explicitDate": false },
            "trendsFilter": { "display": "ActionsBar", "formula": "A / B", "showLegend": true,
                "smoothingIntervals": 1 },
            "breakdownFilter": { "breakdown": "$browser", "breakdown_type": "event" },
            "compareFilter": { "compare": true, "compare_to": "-1y" },
            "filterTestAccounts": true,
            "properties": [],
            "samplingFactor": null,
            "tags": { "scene": "Insights" },
            "version": 2,
        },
        "full": true,
    });
    let expected = json!({
        "kind": "TrendsQuery",
        "dateRange": { "date_from": "-30d" },
        "filterTestAccounts": true,
        "interval": "week",
        "series": [
            { "kind": "EventsNode", "event": "$pageview", "name": "$pageview", "math": "dau" },
            { "kind": "EventsNode", "event": null, "custom_name": "slow", "math": "p90",
                "math_property": "$time" },
            { "kind": "EventsNode", "event": null, "math": "unique_group",
                "math_group_type_index": 1 },
        ],
        "trendsFilter": { "display": "ActionsBar", "formulaNodes": [{ "formula": "A / B" }] },
        "breakdownFilter": { "breakdown": "$browser", "breakdown_type": "event",
            "breakdown_limit": 25 },
        "compareFilter": { "compare": true, "compare_to": "-1y" },
    });
    assert_eq!(written(&sent), expected);
}

#[test]
fn a_funnel_has_one_form() {
    let sent = json!({
        "kind": "FunnelsQuery",
        "series": [pageview(), { "event": "sign up" }, { "event": "pay" }],
        "funnelsFilter": {
            "funnelOrderType": "strict",
            "funnelVizType": "time_to_convert",
            "funnelWindowInterval": 2,
            "funnelWindowIntervalUnit": "hour",
            "exclusions": [{ "kind": "EventsNode", "event": "cancel", "funnelFromStep": 0,
                "funnelToStep": 1 }],
            "layout": "horizontal",
            "binCount": 10,
        },
        "breakdownFilter": { "breakdowns": [
            { "property": "$os" },
            { "property": "plan", "type": "group", "group_type_index": 0 },
        ] },
        "aggregation_group_type_index": 0,
    });
    let value = written(&sent);
    assert_eq!(
        value["funnelsFilter"],
        json!({
            "funnelOrderType": "strict",
            "funnelVizType": "time_to_convert",
            "funnelWindowInterval": 2,
            "funnelWindowIntervalUnit": "hour",
            "exclusions": [{ "kind": "EventsNode", "event": "cancel", "math": "total",
                "funnelFromStep": 0, "funnelToStep": 1 }],
            "breakdownAttributionType": "first_touch",
            "breakdownAttributionValue": 0,
            "funnelFromStep": 0,
            "funnelToStep": 2,
            "binCount": 10,
        })
    );
    assert_eq!(
        value["breakdownFilter"]["breakdowns"],
        json!([
            { "property": "$os", "type": "event" },
            { "property": "plan", "type": "group", "group_type_index": 0 },
        ])
    );
    let short = written(&json!({ "kind": "FunnelsQuery", "series": [pageview(), pageview()] }));
    assert_eq!(short["funnelsFilter"]["funnelWindowInterval"], 14);
    assert_eq!(short["funnelsFilter"]["funnelToStep"], 1);
}

#[test]
fn the_other_kinds_have_one_form() {
    let retention = written(&json!({
        "kind": "RetentionQuery",
        "retentionFilter": {
            "retentionType": "retention_first_time",
            "period": "Week",
            "totalIntervals": 5,
            "targetEntity": { "id": "sign up", "name": "sign up", "type": "events", "order": 0 },
            "retentionReference": "total",
        },
    }));
    assert_eq!(
        retention["retentionFilter"],
        json!({
            "retentionType": "retention_first_time",
            "period": "Week",
            "totalIntervals": 5,
            "targetEntity": { "type": "events", "id": "sign up" },
            "returningEntity": { "type": "events", "id": "$pageview" },
        })
    );
    let paths = written(&json!({
        "kind": "PathsQuery",
        "pathsFilter": { "includeEventTypes": ["$pageview", "custom_event"],
            "startPoint": "https://a.example/b/", "endPoint": "/", "pathReplacements": false,
            "pathsHogQLExpression": "a || b" },
    }));
    assert_eq!(
        paths["pathsFilter"],
        json!({
            "includeEventTypes": ["$pageview", "custom_event"],
            "startPoint": "https://a.example/b",
            "endPoint": "/",
            "stepLimit": 5,
            "edgeLimit": 50,
        })
    );
    let stickiness = written(&json!({
        "kind": "StickinessQuery",
        "series": [pageview()],
        "stickinessFilter": { "computedAs": "cumulative",
            "stickinessCriteria": { "operator": "exact", "value": 3 } },
        "intervalCount": 1,
    }));
    assert_eq!(
        stickiness["stickinessFilter"],
        json!({ "computedAs": "cumulative",
            "stickinessCriteria": { "operator": "exact", "value": 3 } })
    );
    let lifecycle = written(&json!({
        "kind": "LifecycleQuery",
        "series": [pageview()],
        "lifecycleFilter": { "toggledLifecycles": ["new"] },
    }));
    let expected = json!({ "kind": "LifecycleQuery", "interval": "day", "series": [pageview()] });
    assert_eq!(lifecycle, expected);
    let events = written(&json!({
        "kind": "DataTableNode",
        "source": { "kind": "EventsQuery", "select": ["*", "event"], "after": "-24h",
            "orderBy": ["timestamp DESC"] },
    }));
    let expected = json!({ "kind": "EventsQuery", "select": ["*", "event"], "after": "-24h",
        "orderBy": ["timestamp DESC"], "limit": 100, "offset": 0 });
    assert_eq!(events, expected);
    let sql = written(&json!({
        "kind": "HogQLQuery",
        "query": "select count() from events where event = {name}",
        "values": { "name": "sign up", "n": 1, "nothing": null },
        "filters": { "dateRange": { "date_from": "mStart" } },
        "explain": true,
    }));
    assert_eq!(sql["values"], json!({ "name": "sign up", "n": 1, "nothing": null }));
    assert_eq!(sql["filters"], json!({ "dateRange": { "date_from": "mStart" } }));
}

/// A list of persons with this source.
fn actors(source: Value) -> Value {
    json!({ "kind": "ActorsQuery", "source": source })
}

fn trend(breakdown: Value) -> Value {
    json!({ "kind": "TrendsQuery", "interval": "day", "series": [pageview(), pageview()],
        "breakdownFilter": breakdown, "compareFilter": { "compare": true } })
}

fn funnel(visualization: &str) -> Value {
    json!({ "kind": "FunnelsQuery", "series": vec![pageview(); 3],
        "funnelsFilter": { "funnelVizType": visualization } })
}

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
    let expected = Cell::Retention { period: 2, breakdown: None };
    assert_eq!(of(insight(retention, json!({ "interval": 2 }))), expected);
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

/// Saved questions as clients of PostHog write them, with members for drawing, logging and
/// caching, and with members of every kind that are null.
#[test]
fn questions_of_clients_are_read() {
    let nulls = |mut query: Value, names: &[&str]| {
        for name in names {
            query[*name] = Value::Null;
        }
        query
    };
    let common = [
        "dataColorTheme",
        "modifiers",
        "response",
        "samplingFactor",
        "tags",
        "version",
        "aggregation_group_type_index",
        "conversionGoal",
        "compareFilter",
        "breakdownFilter",
        "filterTestAccounts",
        "dateRange",
        "properties",
        "interval",
    ];
    let viz = |source: Value| {
        json!({ "kind": "InsightVizNode", "source": source, "full": true, "embedded": false,
            "showHeader": true, "showTable": true, "showLastComputation": true, "version": null,
            "vizSpecificOptions": { "ActionsPie": { "hideAggregation": true } },
            "suppressSessionAnalysisWarning": true })
    };
    let event = || {
        json!({ "kind": "EventsNode", "event": "$pageview", "name": "$pageview",
            "custom_name": null, "math": "total", "math_hogql": null, "math_multiplier": null,
            "math_property": null, "math_property_type": null,
            "math_property_revenue_currency": null, "math_group_type_index": null,
            "optionalInFunnel": null, "limit": null, "orderBy": null, "properties": null,
            "fixedProperties": null, "response": null, "version": 1 })
    };
    for (sent, kind) in [
        (
            viz(json!({
                "kind": "TrendsQuery",
                "version": 2,
                "tags": { "productKey": "product_analytics", "scene": "Insight" },
                "series": [event()],
                "interval": "day",
                "dateRange": { "date_from": "-30d", "date_to": null, "explicitDate": false,
                    "daysOfWeek": [], "excludeIncompletePeriods": false },
                "properties": { "type": "AND", "values": [{ "type": "AND", "values": [
                    { "key": "$browser", "type": "event", "value": ["Chrome"],
                        "operator": "exact" },
                    { "key": "email", "type": "person", "value": "is_set",
                        "operator": "is_set", "label": null },
                    {},
                ] }] },
                "trendsFilter": { "display": "ActionsLineGraph", "showLegend": true,
                    "yAxisScaleType": "linear", "smoothingIntervals": 1, "formula": "",
                    "formulas": null, "aggregationAxisFormat": "numeric", "decimalPlaces": 2,
                    "showAlertThresholdLines": false, "hideWeekends": false,
                    "showAnnotations": true, "xAxisLabel": "day", "chartStyle": {}, "showPercentStackView": false,
                    "resultCustomizationBy": "value", "resultCustomizations": {},
                    "hiddenLegendIndexes": [], "goalLines": [{ "label": "a", "value": 1 }],
                    "breakdown_histogram_bin_count": 10, "showMultipleYAxes": false },
                "breakdownFilter": { "breakdown_type": "event" },
                "compareFilter": { "compare": false },
                "filterTestAccounts": false,
                "samplingFactor": null,
                "dataColorTheme": 3,
                "modifiers": { "personsOnEventsMode": "person_id_override_properties_on_events" },
            })),
            "TrendsQuery",
        ),
        (
            viz(json!({
                "kind": "FunnelsQuery",
                "series": [event(), event()],
                "interval": "day",
                "funnelsFilter": { "layout": "horizontal", "funnelVizType": "steps",
                    "funnelOrderType": "ordered", "funnelStepReference": "total",
                    "funnelWindowInterval": 14, "funnelWindowIntervalUnit": "day",
                    "funnelAggregateByHogQL": "person_id", "useUdf": null, "binCount": null,
                    "exclusions": [], "hiddenLegendBreakdowns": [], "resultCustomizations": null,
                    "breakdownAttributionType": "first_touch", "funnelFromStep": null,
                    "showValuesOnSeries": false, "goalLines": null },
                "breakdownFilter": { "breakdown": ["$browser"], "breakdown_type": "event",
                    "breakdown_group_type_index": null, "breakdown_histogram_bin_count": null,
                    "breakdown_hide_other_aggregation": null, "breakdown_limit": null,
                    "breakdown_normalize_url": null, "breakdowns": null },
            })),
            "FunnelsQuery",
        ),
        (
            viz(json!({
                "kind": "RetentionQuery",
                "retentionFilter": { "period": "Week", "totalIntervals": 11,
                    "retentionType": "retention_first_time", "retentionReference": "total",
                    "aggregationType": "count", "cumulative": false, "display": null,
                    "dashboardDisplay": "table_only", "meanRetentionCalculation": "simple",
                    "minimumOccurrences": null, "timeWindowMode": "strict_calendar_dates",
                    "targetEntity": { "id": "$pageview", "name": "$pageview", "type": "events",
                        "kind": null, "order": 0, "uuid": "a", "properties": [] },
                    "returningEntity": { "id": null, "type": "events", "custom_name": null },
                    "showTrendLines": false },
            })),
            "RetentionQuery",
        ),
        (
            viz(json!({
                "kind": "PathsQuery",
                "pathsFilter": { "includeEventTypes": ["$pageview"], "stepLimit": 5,
                    "edgeLimit": 50, "pathGroupings": null, "excludeEvents": null,
                    "localPathCleaningFilters": [], "pathReplacements": false,
                    "minEdgeWeight": null, "maxEdgeWeight": null, "startPoint": "",
                    "endPoint": null, "pathStartKey": null, "showFullUrls": true },
                "funnelPathsFilter": null,
            })),
            "PathsQuery",
        ),
        (
            viz(json!({
                "kind": "StickinessQuery",
                "series": [event()],
                "intervalCount": null,
                "stickinessFilter": { "display": "ActionsLineGraph", "showLegend": true,
                    "showValuesOnSeries": false, "hiddenLegendIndexes": null,
                    "stickinessCriteria": null, "computedAs": "non_cumulative" },
                "breakdownFilter": { "breakdown_type": "event" },
            })),
            "StickinessQuery",
        ),
        (
            viz(json!({
                "kind": "LifecycleQuery",
                "series": [event()],
                "lifecycleFilter": { "showLegend": false, "stacked": true,
                    "showValuesOnSeries": true, "toggledLifecycles": ["new", "dormant"] },
                "compareFilter": { "compare": false },
            })),
            "LifecycleQuery",
        ),
        (
            json!({
                "kind": "DataTableNode",
                "source": { "kind": "WebOverviewQuery", "properties": [], "compare": true,
                    "sampling": { "enabled": false, "forceSamplingRate": { "numerator": 1 } },
                    "includeRevenue": false, "doPathCleaning": false, "useSessionsTable": true,
                    "orderBy": null },
            }),
            "WebOverviewQuery",
        ),
        (
            json!({
                "kind": "DataTableNode",
                "full": true,
                "propertiesViaUrl": true,
                "columns": ["*", "event", "person"],
                "source": { "kind": "EventsQuery", "after": "-24h", "before": null,
                    "select": ["*", "event", "coalesce(properties.$current_url, '') -- Url"],
                    "orderBy": ["timestamp DESC"], "event": null, "actionId": null,
                    "personId": null, "where": null, "source": null, "properties": [],
                    "fixedProperties": null, "limit": null, "offset": null, "modifiers": null },
            }),
            "EventsQuery",
        ),
        (
            json!({
                "kind": "DataVisualizationNode",
                "display": "ActionsLineGraph",
                "chartSettings": { "xAxis": { "column": "a" } },
                "tableSettings": null,
                "source": { "kind": "HogQLQuery", "query": "select count() from events",
                    "variables": {}, "values": null, "filters": { "dateRange": null,
                        "properties": null, "filterTestAccounts": null }, "explain": null,
                    "name": null },
            }),
            "HogQLQuery",
        ),
    ] {
        assert_eq!(written(&sent)["kind"], kind);
        let with_nulls = nulls(sent["source"].clone(), &common);
        assert_eq!(written(&with_nulls)["kind"], kind);
    }
}

#[test]
fn what_a_question_cannot_have_is_refused() {
    let lifecycle = || json!({ "kind": "LifecycleQuery", "series": [pageview()] });
    let funnel = || funnel("steps");
    let stickiness = || json!({ "kind": "StickinessQuery", "series": [pageview()] });
    let retention = || json!({ "kind": "RetentionQuery", "retentionFilter": {} });
    let paths = || json!({ "kind": "PathsQuery", "pathsFilter": {} });
    let breakdown = || json!({ "breakdown": "$os" });
    let compare = || json!({ "compare": true });
    for (mut query, name, value) in [
        (lifecycle(), "breakdownFilter", breakdown()),
        (stickiness(), "breakdownFilter", breakdown()),
        (paths(), "breakdownFilter", breakdown()),
        (lifecycle(), "compareFilter", compare()),
        (funnel(), "compareFilter", compare()),
        (retention(), "compareFilter", compare()),
        (paths(), "compareFilter", compare()),
    ] {
        query[name] = value;
        assert_eq!(fault(&query), (name.to_owned(), "invalid_input".to_owned()), "{query}");
    }
    for (mut query, filter, name, value, code) in [
        (funnel(), "funnelsFilter", "funnelAggregateByHogQL", "properties.a", "invalid_input"),
        (retention(), "retentionFilter", "aggregationType", "sum", "invalid_choice"),
        (retention(), "retentionFilter", "timeWindowMode", "24_hour_windows", "invalid_choice"),
    ] {
        query[filter][name] = json!(value);
        assert_eq!(fault(&query), (format!("{filter}__{name}"), code.to_owned()));
    }
}

#[test]
fn a_map_has_as_many_values_as_countries() {
    let query = |display: &str, limit: Value| {
        json!({ "kind": "TrendsQuery", "series": [pageview()],
            "trendsFilter": { "display": display },
            "breakdownFilter": { "breakdown": "$geoip_country_code", "breakdown_limit": limit } })
    };
    for (display, limit, expected) in [
        ("WorldMap", Value::Null, 250),
        ("WorldMap", json!(10), 10),
        ("ActionsPie", Value::Null, 25),
    ] {
        let value = written(&query(display, limit));
        assert_eq!(value["breakdownFilter"]["breakdown_limit"], expected, "{display}");
    }
}

#[test]
fn added_numbers_count_each_person_once() {
    let of = |display: &str, math: Value| {
        let mut series = json!({ "event": "a" });
        series.as_object_mut().unwrap().extend(math.as_object().unwrap().clone());
        let query = json!({ "kind": "TrendsQuery", "series": [series],
            "trendsFilter": { "display": display } });
        let Query::Trends(trends) = Query::read(&query).unwrap() else { panic!() };
        trends.counts_once(&trends.series[0])
    };
    let cumulative = "ActionsLineGraphCumulative";
    assert!(of(cumulative, json!({ "math": "dau" })));
    assert!(of(cumulative, json!({ "math": "unique_session" })));
    assert!(of(cumulative, json!({ "math": "unique_group", "math_group_type_index": 0 })));
    assert!(!of(cumulative, json!({ "math": "total" })));
    assert!(!of(cumulative, json!({ "math": "sum", "math_property": "b" })));
    assert!(!of("ActionsLineGraph", json!({ "math": "dau" })));
}

#[test]
fn faults_have_the_path_of_their_field() {
    let trend = |more: Value| {
        let mut query = json!({ "kind": "TrendsQuery", "series": [pageview()] });
        for (name, value) in more.as_object().unwrap() {
            query[name.as_str()] = value.clone();
        }
        query
    };
    let series = |series: Value| trend(json!({ "series": [series] }));
    for (sent, attr, code) in [
        (json!([]), "", "invalid_input"),
        (json!({}), "kind", "required"),
        (json!({ "kind": "PersonsNode" }), "kind", "invalid_choice"),
        (json!({ "kind": 7 }), "kind", "invalid_choice"),
        (json!({ "kind": "InsightVizNode" }), "source", "required"),
        (
            json!({ "kind": "InsightVizNode", "source": { "kind": "InsightVizNode" } }),
            "source__kind",
            "invalid_choice",
        ),
        (json!({ "kind": "TrendsQuery" }), "series", "required"),
        (trend(json!({ "series": [] })), "series", "min_length"),
        (trend(json!({ "series": vec![pageview(); 27] })), "series", "max_length"),
        (trend(json!({ "series": {} })), "series", "not_a_list"),
        (series(json!(7)), "series__0", "invalid_input"),
        (series(json!({ "kind": "ActionsNode", "id": 1 })), "series__0__kind", "invalid_choice"),
        (series(json!({ "math": "weekly_active" })), "series__0__math", "invalid_choice"),
        (series(json!({ "math": "sum" })), "series__0__math_property", "required"),
        (
            series(json!({ "math": "sum", "math_property": "a",
                "math_property_type": "person_properties" })),
            "series__0__math_property_type",
            "invalid_choice",
        ),
        (
            series(json!({ "math": "unique_group", "math_group_type_index": 5 })),
            "series__0__math_group_type_index",
            "max_value",
        ),
        (
            series(json!({ "math": "hogql", "math_hogql": "count()" })),
            "series__0__math_hogql",
            "invalid_input",
        ),
        (series(json!({ "event": "x".repeat(401) })), "series__0__event", "max_length"),
        (series(json!({ "event": "a\u{0}" })), "series__0__event", "null_characters_not_allowed"),
        (series(json!({ "evnt": "a" })), "series__0__evnt", "invalid_input"),
        (
            series(json!({ "properties": [{ "key": "a", "operator": "gt", "value": "b" }] })),
            "series__0__properties__0__value",
            "invalid_input",
        ),
        (trend(json!({ "interval": "second" })), "interval", "invalid_choice"),
        (trend(json!({ "samplingFactor": 0.1 })), "samplingFactor", "invalid_input"),
        (trend(json!({ "sampling": 1 })), "sampling", "invalid_input"),
        (
            trend(json!({ "dateRange": { "date_from": "soon" } })),
            "dateRange__date_from",
            "invalid_input",
        ),
        (
            trend(json!({ "dateRange": { "date_to": "all" } })),
            "dateRange__date_to",
            "invalid_input",
        ),
        (
            trend(json!({ "trendsFilter": { "formula": "A / B" } })),
            "trendsFilter__formula",
            "invalid_input",
        ),
        (
            trend(json!({ "trendsFilter": { "formulaNodes": [{ "formula": "(" }] } })),
            "trendsFilter__formulaNodes__0__formula",
            "invalid_input",
        ),
        (
            trend(json!({ "trendsFilter": { "smoothingIntervals": 7 } })),
            "trendsFilter__smoothingIntervals",
            "invalid_input",
        ),
        (
            trend(json!({ "trendsFilter": { "hideWeekends": true } })),
            "trendsFilter__hideWeekends",
            "invalid_input",
        ),
        (
            trend(json!({ "dateRange": { "daysOfWeek": [1, 2] } })),
            "dateRange__daysOfWeek",
            "invalid_input",
        ),
        (
            json!({ "kind": "EventsQuery", "select": ["event"], "actionId": 1 }),
            "actionId",
            "invalid_input",
        ),
        (
            trend(
                json!({ "breakdownFilter": { "breakdowns": vec![json!({ "property": "a" }); 4] } }),
            ),
            "breakdownFilter__breakdowns",
            "max_length",
        ),
        (
            trend(json!({ "breakdownFilter": { "breakdown": 4, "breakdown_type": "cohort" } })),
            "breakdownFilter__breakdown_type",
            "invalid_choice",
        ),
        (
            trend(json!({ "breakdownFilter": { "breakdown": "a", "breakdown_limit": 501 } })),
            "breakdownFilter__breakdown_limit",
            "max_value",
        ),
        (
            trend(json!({ "compareFilter": { "compare": true, "compare_to": "mStart" } })),
            "compareFilter__compare_to",
            "invalid_input",
        ),
        (json!({ "kind": "FunnelsQuery", "series": [pageview()] }), "series", "min_length"),
        (
            json!({ "kind": "FunnelsQuery", "series": [pageview(), pageview()],
                "funnelsFilter": { "funnelToStep": 2 } }),
            "funnelsFilter__funnelToStep",
            "max_value",
        ),
        (
            json!({ "kind": "FunnelsQuery", "series": vec![pageview(); 3],
                "funnelsFilter": { "funnelOrderType": "unordered",
                    "exclusions": [{ "event": "a", "funnelToStep": 1 }] } }),
            "funnelsFilter__exclusions__0",
            "invalid_input",
        ),
        (
            json!({ "kind": "FunnelsQuery", "series": vec![pageview(); 3],
                "funnelsFilter": { "funnelOrderType": "unordered",
                    "breakdownAttributionType": "step" } }),
            "funnelsFilter__breakdownAttributionType",
            "invalid_input",
        ),
        (json!({ "kind": "RetentionQuery" }), "retentionFilter", "required"),
        (
            json!({ "kind": "RetentionQuery", "retentionFilter": { "period": "Year" } }),
            "retentionFilter__period",
            "invalid_choice",
        ),
        (
            json!({ "kind": "RetentionQuery",
                "retentionFilter": { "targetEntity": { "id": 3, "type": "actions" } } }),
            "retentionFilter__targetEntity__type",
            "invalid_choice",
        ),
        (
            json!({ "kind": "PathsQuery", "pathsFilter": { "pathsHogQLExpression": "a || b" } }),
            "pathsFilter__pathsHogQLExpression",
            "invalid_input",
        ),
        (
            json!({ "kind": "PathsQuery", "pathsFilter": { "stepLimit": 21 } }),
            "pathsFilter__stepLimit",
            "max_value",
        ),
        (
            json!({ "kind": "LifecycleQuery", "series": vec![pageview(); 2] }),
            "series",
            "max_length",
        ),
        (json!({ "kind": "EventsQuery", "select": [] }), "select", "required"),
        (
            json!({ "kind": "EventsQuery", "select": ["event"], "limit": 50_001 }),
            "limit",
            "max_value",
        ),
        (json!({ "kind": "HogQLQuery", "query": " " }), "query", "blank"),
        (
            json!({ "kind": "HogQLQuery", "query": "select 1", "values": { "a": [1] } }),
            "values__a",
            "invalid_input",
        ),
        (
            json!({ "kind": "HogQLQuery", "query": "select 1", "variables": { "a": {} } }),
            "variables",
            "invalid_input",
        ),
    ] {
        assert_eq!(fault(&sent), (attr.to_owned(), code.to_owned()), "{sent}");
    }
}

#[test]
fn all_filters_of_a_question_share_one_bound() {
    let filters = |count: usize| vec![json!({ "key": "a", "value": 1 }); count];
    let question = |outer: usize, inner: usize| {
        json!({
            "kind": "TrendsQuery",
            "series": [{ "event": "a", "properties": filters(inner) }],
            "properties": filters(outer),
        })
    };
    assert!(Query::read(&question(50, 50)).is_ok());
    let expected = ("series__0__properties__50".to_owned(), "max_length".to_owned());
    assert_eq!(fault(&question(50, 51)), expected);
}

#[test]
fn fixed_filters_are_filters() {
    let query = json!({
        "kind": "TrendsQuery",
        "series": [pageview()],
        "properties": { "type": "OR", "values": [{ "key": "a", "value": 1 }] },
        "fixedProperties": [{ "key": "b", "value": 1 }],
    });
    let Query::Trends(trends) = Query::read(&query).unwrap() else { panic!() };
    assert_eq!(trends.scope.properties.logic, Logic::And);
    assert_eq!(trends.scope.properties.filters.len(), 2);
    // The canonical form is within the bounds too.
    let filter = || json!({ "key": "a", "value": 1 });
    let deep = (1..4).fold(
        json!({ "type": "OR", "values": [filter()] }),
        |inner, _| json!({ "type": "OR", "values": [inner] }),
    );
    written(&json!({ "kind": "TrendsQuery", "series": [pageview()], "properties": deep,
        "fixedProperties": vec![filter(); 94] }));
}

#[test]
fn a_path_does_not_repeat_a_long_name() {
    let mut query = json!({ "kind": "TrendsQuery", "series": [pageview()] });
    query[&"x".repeat(100_000)] = json!(1);
    let (attr, _) = fault(&query);
    assert_eq!(attr.len(), 64);
    let word = "y".repeat(100_000);
    let fault = Query::read(&json!({ "kind": word })).unwrap_err();
    assert!(fault.detail.len() < 200);
}

#[test]
fn windows_have_a_length() {
    for (unit, seconds) in [
        (FunnelWindowUnit::Second, 2),
        (FunnelWindowUnit::Day, 2 * 86_400),
        (FunnelWindowUnit::Month, 62 * 86_400),
    ] {
        assert_eq!(FunnelWindow { length: 2, unit }.micros(), seconds * 1_000_000);
    }
    let longest = FunnelWindow { length: 100_000, unit: FunnelWindowUnit::Month };
    assert!(longest.micros() > 0);
}

/// Values of JSON with the names and words of questions.
fn values() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "TrendsQuery",
        "FunnelsQuery",
        "EventsNode",
        "all",
        "-7d",
        "A/B",
        "event",
        "person",
        "session",
        "$entry_pathname",
        "Page",
        "Sessions",
        "OR",
        "unordered",
        "exact",
        "between",
        "",
        "ä",
    ]);
    let names = prop::sample::select(vec![
        "kind",
        "series",
        "event",
        "math",
        "properties",
        "values",
        "type",
        "key",
        "value",
        "operator",
        "dateRange",
        "date_from",
        "trendsFilter",
        "formula",
        "funnelsFilter",
        "exclusions",
        "breakdownFilter",
        "breakdown",
        "breakdowns",
        "property",
        "breakdownBy",
        "metrics",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        words.prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names.clone(), inner, 0..6).prop_map(|map| {
                map.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Value>()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_is_a_question_or_a_fault(value in values(), kind in 0..12_usize) {
        let kinds = [
            "TrendsQuery", "FunnelsQuery", "RetentionQuery", "PathsQuery", "StickinessQuery",
            "LifecycleQuery", "WebOverviewQuery", "WebStatsTableQuery", "WebTrendsQuery",
            "EventsQuery", "HogQLQuery", "ActorsQuery",
        ];
        let mut value = value;
        if let Value::Object(map) = &mut value {
            map.insert("kind".to_owned(), Value::from(kinds[kind]));
        }
        if let Ok(query) = Query::read(&value) {
            let written = serde_json::to_value(&query).unwrap();
            prop_assert_eq!(Query::read(&written), Ok(query));
        }
    }
}
