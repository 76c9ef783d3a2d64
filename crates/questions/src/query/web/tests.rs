//! Reading questions about a site.

use serde_json::{Value, json};

use super::*;
use crate::query::Query;

fn written(sent: &Value) -> Value {
    let query = Query::read(sent).unwrap_or_else(|fault| panic!("{fault:?} in {sent}"));
    let value = serde_json::to_value(&query).unwrap();
    assert_eq!(Query::read(&value).unwrap(), query, "read again: {value}");
    value
}

fn fault(sent: &Value) -> (String, String) {
    let fault = Query::read(sent).unwrap_err();
    (fault.attr.unwrap_or_default(), fault.code)
}

fn table(more: &Value) -> Value {
    let mut query = json!({ "kind": "WebStatsTableQuery", "breakdownBy": "Page" });
    query.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    query
}

#[test]
fn questions_about_a_site_have_one_form() {
    let overview = json!({ "kind": "WebOverviewQuery", "compare": true,
        "sampling": { "enabled": false }, "orderBy": ["Views", "DESC"], "useSessionsTable": true,
        "interval": "hour" });
    let expected = json!({ "kind": "WebOverviewQuery", "compareFilter": { "compare": true } });
    assert_eq!(written(&overview), expected);
    let sent = table(&json!({
        "dateRange": { "date_from": "-30d" },
        "properties": [
            { "key": "$entry_pathname", "type": "session", "value": ["/a"] },
            { "key": "$browser", "value": "Chrome" },
        ],
        "filterTestAccounts": true,
        "includeBounceRate": true,
        "orderBy": ["BounceRate", "ASC"],
        "compareFilter": { "compare": true, "compare_to": "-1w" },
        "limit": "10",
        "interval": "day",
    }));
    let expected = json!({
        "kind": "WebStatsTableQuery",
        "dateRange": { "date_from": "-30d" },
        "properties": [
            { "type": "event", "key": "$browser", "operator": "exact", "value": "Chrome" },
            { "type": "session", "key": "$entry_pathname", "operator": "exact", "value": "/a" },
        ],
        "filterTestAccounts": true,
        "breakdownBy": "Page",
        "includeBounceRate": true,
        "orderBy": ["BounceRate", "ASC"],
        "compareFilter": { "compare": true, "compare_to": "-1w" },
        "limit": 10,
        "offset": 0,
    });
    assert_eq!(written(&sent), expected);
    let trends = json!({ "kind": "WebTrendsQuery", "interval": "day",
        "metrics": ["UniqueUsers", "Sessions"] });
    assert_eq!(written(&trends), trends);
}

#[test]
fn filters_of_sessions_stand_beside_groups() {
    let entry = json!({ "type": "session", "key": "$end_pathname", "operator": "is_set" });
    let browser = json!({ "type": "event", "key": "$browser", "operator": "exact", "value": "A" });
    let either = json!({ "type": "OR", "values": [browser] });
    let all = json!({ "type": "AND", "values": [either, entry] });
    for sent in [json!([entry, either]), all.clone()] {
        assert_eq!(written(&table(&json!({ "properties": sent })))["properties"], all);
    }
    let sent = table(&json!({ "properties": either }));
    assert_eq!(written(&sent)["properties"], either);
    let none = table(&json!({ "properties": { "type": "OR", "values": [] } }));
    assert_eq!(written(&none)["properties"], Value::Null);
    // A dashboard adds its filters.
    let sent = table(&json!({ "properties": [entry] }));
    let dashboard = crate::query::DashboardFilters::read(&json!({ "properties": either })).unwrap();
    let query = dashboard.applied(Query::read(&sent).unwrap()).unwrap();
    assert_eq!(serde_json::to_value(&query).unwrap()["properties"], all);
}

#[test]
fn faults_of_questions_about_a_site_have_their_path() {
    let session = |key: &str| json!({ "type": "session", "key": key, "value": "a" });
    let with = |filters: Value| table(&json!({ "properties": filters }));
    for (sent, attr, code) in [
        (json!({ "kind": "WebStatsTableQuery" }), "breakdownBy", "required"),
        (table(&json!({ "breakdownBy": "City" })), "breakdownBy", "invalid_choice"),
        (table(&json!({ "limit": 10_001 })), "limit", "max_value"),
        (table(&json!({ "orderBy": ["Views"] })), "orderBy", "invalid_input"),
        (table(&json!({ "orderBy": ["BounceRate", "ASC"] })), "orderBy__0", "invalid_input"),
        (table(&json!({ "orderBy": ["Views", "UP"] })), "orderBy__1", "invalid_choice"),
        (table(&json!({ "includeScrollDepth": true })), "includeScrollDepth", "invalid_input"),
        (table(&json!({ "sampling": { "enabled": true } })), "sampling__enabled", "invalid_input"),
        (table(&json!({ "conversionGoal": { "actionId": 1 } })), "conversionGoal", "invalid_input"),
        (table(&json!({ "breakdown": "a" })), "breakdown", "invalid_input"),
        (with(json!([session("$channel_type")])), "properties__0__key", "invalid_choice"),
        (with(json!([{ "type": "session" }])), "properties__0__key", "required"),
        (
            with(json!({ "type": "OR", "values": [session("$end_pathname")] })),
            "properties__values__0__type",
            "invalid_choice",
        ),
        (with(json!(vec![session("$end_pathname"); 21])), "properties__20", "max_length"),
        (json!({ "kind": "WebTrendsQuery" }), "metrics", "required"),
        (json!({ "kind": "WebTrendsQuery", "metrics": [] }), "metrics", "required"),
        (
            json!({ "kind": "WebTrendsQuery", "metrics": ["Sessions", "Sessions"] }),
            "metrics",
            "invalid_input",
        ),
        (
            json!({ "kind": "WebTrendsQuery", "metrics": ["Sessions"],
                "compareFilter": { "compare": true } }),
            "compareFilter",
            "invalid_input",
        ),
    ] {
        assert_eq!(fault(&sent), (attr.to_owned(), code.to_owned()), "{sent}");
    }
}

#[test]
fn each_value_has_a_property_of_views() {
    for breakdown in WebBreakdown::ALL {
        let of_session = breakdown.session_property();
        assert_eq!(of_session.is_none(), breakdown.view() == WebView::Each, "{breakdown:?}");
    }
    assert_eq!(WebBreakdown::Page.view_of_bounces(), WebView::First);
    assert_eq!(WebBreakdown::Browser.view_of_bounces(), WebView::Each);
    assert_eq!(WebBreakdown::ExitPage.property(), "$pathname");
    assert_eq!(WebBreakdown::ExitPage.view(), WebView::Last);
    assert_eq!(WebBreakdown::InitialUtmTerm.property(), "utm_term");
    assert_eq!(WebBreakdown::Country.property(), "$geoip_country_code");
}
