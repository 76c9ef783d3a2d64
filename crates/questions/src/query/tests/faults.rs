//! What is refused, with the path of its field, and bounds.

use super::*;

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
