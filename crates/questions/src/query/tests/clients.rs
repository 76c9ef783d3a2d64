//! Questions as clients send them.

use super::*;

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
