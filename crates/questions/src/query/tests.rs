//! Reading questions, their canonical form, and hostile input.

use proptest::prelude::*;
use serde_json::json;

use super::*;

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
    fn any_value_is_a_question_or_a_fault(value in values(), kind in 0..8_usize) {
        let kinds = [
            "TrendsQuery", "FunnelsQuery", "RetentionQuery", "PathsQuery", "StickinessQuery",
            "LifecycleQuery", "EventsQuery", "HogQLQuery",
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
