//! Reading questions, their canonical form, and hostile input.

mod actors;
mod clients;
mod faults;

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
