//! JSON Schemas of the arguments of tools. Models read them, so they say what a model needs to
//! ask well. The question itself is checked by `weir-questions`.

use serde_json::{Map, Value, json};
use weir_model::pagination::{DEFAULT_LIMIT, MAX_LIMIT};
use weir_questions::query::{WebBreakdown, WebMetric};
use weir_service::questions::KINDS;

/// The objects that have properties.
pub(super) const OWNERS: [&str; 3] = ["event", "person", "group"];

/// An argument that means the same in every tool that has it.
pub(super) fn shared(name: &str) -> Value {
    match name {
        "project_id" => json!({
            "type": "integer", "minimum": 1,
            "description": "Number of the project. It may be missing if the key has one project.",
        }),
        "search" => json!({
            "type": "string", "description": "Only those whose name contains this, in any case.",
        }),
        "limit" => json!({
            "type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT,
            "description": "Most results.",
        }),
        "offset" => json!({
            "type": "integer", "minimum": 0, "default": 0,
            "description": "The number of results to skip.",
        }),
        "type" => json!({
            "type": "string", "enum": OWNERS, "description": "Only properties of these objects.",
        }),
        "refresh" => json!({
            "type": "string", "enum": ["blocking", "force_blocking"], "default": "blocking",
            "description": "force_blocking computes the answer also if one is known.",
        }),
        "values" => json!({
            "type": "object",
            "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
            "description": "Values that replace {name} in the query.",
        }),
        "insight" => json!({
            "type": "string", "description": "Number or short id of the insight.",
        }),
        "dashboard" => json!({"type": "string", "description": "Number of the dashboard."}),
        // The test of the tools finds an argument without a description.
        _ => Value::Null,
    }
}

/// A question in SQL.
pub(super) fn sql() -> Value {
    json!({
        "type": "string",
        "description": "One SELECT. Tables and their columns: \
            events (uuid, event, timestamp, distinct_id, person_id, properties.x, \
            person.properties.x, group_0.properties.x, session.id), \
            persons (id, created_at, properties.x, is_identified, distinct_ids), \
            groups (index, key, properties.x, created_at), \
            sessions (session_id, person_id, start_timestamp, end_timestamp, duration, \
            event_count, pageview_count, entry_current_url, is_bounce). \
            Aggregates: count, uniq, sum, avg, min, max, median, quantile(0.9)(x), countIf(c). \
            Times without an offset are in the time zone of the project. Example: \
            SELECT toStartOfWeek(timestamp) AS week, uniq(person_id) FROM events \
            WHERE event = 'signed up' GROUP BY week ORDER BY week",
    })
}

/// A question of another kind.
pub(super) fn question() -> Value {
    let members = [
        ("kind", kind()),
        ("series", series()),
        ("dateRange", dates()),
        ("interval", words("Length of a bucket.", &["minute", "hour", "day", "week", "month"])),
        ("properties", filters()),
        ("breakdownFilter", breakdown()),
        ("compareFilter", compare()),
        ("trendsFilter", of_trends()),
        ("funnelsFilter", of_funnels()),
        ("retentionFilter", of_retention()),
        (
            "pathsFilter",
            object(
                "includeEventTypes (a list of $pageview, $screen and custom_event), startPoint, \
                 endPoint, stepLimit, edgeLimit.",
            ),
        ),
        ("stickinessFilter", object("stickinessCriteria with operator and value.")),
        ("source", actors()),
        ("breakdownBy", rows_of_site()),
        ("includeBounceRate", flag("Whether rows of a WebStatsTableQuery have it.")),
        ("metrics", numbers_of_site()),
        ("select", texts("Columns of an EventsQuery, such as timestamp or properties.plan.")),
        ("where", texts("Conditions of an EventsQuery, such as properties.price > 10.")),
        ("event", text("Name of the events of an EventsQuery.")),
        ("after", text("Beginning of an EventsQuery, such as -24h.")),
        ("before", text("End of an EventsQuery.")),
        (
            "orderBy",
            texts(
                "Order of an EventsQuery, such as timestamp DESC, or a column and a direction of \
                 a WebStatsTableQuery: Visitors, Views or BounceRate, and ASC or DESC.",
            ),
        ),
        ("limit", json!({"type": "integer", "description": "Most rows of a list."})),
        ("offset", json!({"type": "integer", "description": "Rows of a list to skip."})),
        ("query", text("SQL of a HogQLQuery.")),
    ];
    let members: Map<String, Value> =
        members.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    json!({
        "type": "object",
        "description": "The question, as in the body of the API. A fault names its field by its \
            path, such as series__0__math.",
        "required": ["kind"],
        "properties": members,
    })
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn texts(description: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": description})
}

fn words(description: &str, words: &[&str]) -> Value {
    json!({"type": "string", "enum": words, "description": description})
}

fn flag(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}

fn rows_of_site() -> Value {
    let all: Vec<&str> = WebBreakdown::ALL.iter().map(|breakdown| breakdown.word()).collect();
    words("What a WebStatsTableQuery has a row for.", &all)
}

fn numbers_of_site() -> Value {
    let all: Vec<&str> = WebMetric::ALL.iter().map(|metric| metric.word()).collect();
    json!({
        "type": "array",
        "items": words("A number.", &all),
        "description": "Numbers of a WebTrendsQuery for each interval.",
    })
}

fn object(description: &str) -> Value {
    json!({"type": "object", "description": description})
}

fn kind() -> Value {
    words(
        "TrendsQuery, StickinessQuery, LifecycleQuery and FunnelsQuery need series, \
         RetentionQuery needs retentionFilter, PathsQuery needs pathsFilter, EventsQuery needs \
         select, HogQLQuery needs query, and ActorsQuery needs source. About page views of a \
          site: WebOverviewQuery (visitors, views, sessions, duration, bounces), \
          WebStatsTableQuery (needs breakdownBy) and WebTrendsQuery (needs metrics).",
        &KINDS,
    )
}

/// The number that an `ActorsQuery` lists the persons of.
fn actors() -> Value {
    let kinds = ["InsightActorsQuery", "FunnelsActorsQuery", "StickinessActorsQuery"];
    let statuses = ["new", "returning", "resurrecting", "dormant"];
    let number = |description: &str| json!({"type": "integer", "description": description});
    json!({
        "type": "object",
        "description": "Of an ActorsQuery, which lists the persons behind a number of an answer.",
        "properties": {
            "kind": words("FunnelsActorsQuery for a FunnelsQuery.", &kinds),
            "source": object("The question that the number answers."),
            "day": text("A day of a trend or a lifecycle, such as 2026-08-21."),
            "series": number("The number of the series, from 0."),
            "breakdown": {"description": "The breakdown value, as the answer has it."},
            "compare": words("Which of two compared ranges.", &["current", "previous"]),
            "status": words("Of a lifecycle.", &statuses),
            "interval": number("The period of retention in which persons begin, from 0."),
            "appearance": number("The period after it in which they come back."),
            "funnelStep": number("From 1; -2 for those who stopped before the second step."),
        },
    })
}

fn dates() -> Value {
    json!({
        "type": "object",
        "description": "The range; the last seven days and today without it.",
        "properties": {
            "date_from": text("Such as -30d, -12w, mStart, 2026-08-21 or all."),
            "date_to": text("Included. Now without it."),
        },
    })
}

fn breakdown() -> Value {
    json!({
        "type": "object",
        "description": "One result for each value of a property: trends, funnels, retention.",
        "properties": {
            "breakdown": text("Name of the property."),
            "breakdown_type": words("Whose property it is.", &OWNERS),
            "breakdown_group_type_index": {"type": "integer", "minimum": 0, "maximum": 4},
            "breakdown_limit": {"type": "integer", "minimum": 1, "maximum": 500},
        },
    })
}

fn compare() -> Value {
    json!({
        "type": "object",
        "description": "Trends, stickiness, WebOverviewQuery and WebStatsTableQuery: another period \
            as well.",
        "properties": {
            "compare": {"type": "boolean"},
            "compare_to": text("Such as -1w. The period before without it."),
        },
    })
}

fn of_trends() -> Value {
    json!({
        "type": "object",
        "properties": {
            "display": text(
                "BoldNumber answers one number for the range, which counts each person once. \
                 ActionsLineGraph, the default, has one for each interval."
            ),
            "formula": text("Arithmetic over series, such as A / B * 100."),
        },
    })
}

fn of_funnels() -> Value {
    let units = ["second", "minute", "hour", "day", "week", "month"];
    json!({
        "type": "object",
        "properties": {
            "funnelOrderType": words("Order of the steps.", &["ordered", "strict", "unordered"]),
            "funnelVizType": words("One result, or one over time.", &["steps", "trends"]),
            "funnelWindowInterval": {"type": "integer", "minimum": 1},
            "funnelWindowIntervalUnit": words("How long an attempt may take.", &units),
        },
    })
}

fn of_retention() -> Value {
    let kinds = ["retention_recurring", "retention_first_time"];
    json!({
        "type": "object",
        "properties": {
            "targetEntity": entity("What a person does first."),
            "returningEntity": entity("What a person comes back for."),
            "period": words("Length of an interval.", &["Hour", "Day", "Week", "Month"]),
            "totalIntervals": {"type": "integer", "minimum": 1},
            "retentionType": words("Whether only the first time counts as the start.", &kinds),
        },
    })
}

fn series() -> Value {
    let math = [
        "total",
        "dau",
        "unique_session",
        "unique_group",
        "sum",
        "avg",
        "min",
        "max",
        "median",
        "p75",
        "p90",
        "p95",
        "p99",
    ];
    let computed = "total counts events, dau persons. unique_group needs math_group_type_index, \
                    and those from sum on need math_property.";
    let one = json!({
        "type": "object",
        "properties": {
            "event": text("Name of the event; all events without it."),
            "math": words(computed, &math),
            "math_property": text("Property of the event."),
            "math_group_type_index": {"type": "integer", "minimum": 0, "maximum": 4},
            "properties": filters(),
        },
    });
    json!({
        "type": "array",
        "maxItems": 26,
        "description": "What is counted; for a funnel, its steps in order.",
        "items": one,
    })
}

fn entity(description: &str) -> Value {
    json!({
        "type": "object",
        "description": description,
        "properties": {
            "id": text("Name of the event."),
            "type": words("Always events.", &["events"]),
        },
    })
}

fn filters() -> Value {
    let operators = [
        "exact",
        "is_not",
        "icontains",
        "not_icontains",
        "regex",
        "not_regex",
        "gt",
        "gte",
        "lt",
        "lte",
        "between",
        "not_between",
        "in",
        "not_in",
        "is_set",
        "is_not_set",
        "is_date_exact",
        "is_date_before",
        "is_date_after",
    ];
    let one = json!({
        "type": "object",
        "required": ["key"],
        "properties": {
            "key": text("Name of the property."),
            "type": words("Whose property it is.", &OWNERS),
            "group_type_index": {"type": "integer", "minimum": 0, "maximum": 4},
            "operator": words("exact without it.", &operators),
            "value": {"description": "A text, a number, a flag, or a list of them."},
        },
    });
    json!({
        "type": "array",
        "description": "Only events for which all of these are true.",
        "items": one,
    })
}

#[cfg(test)]
mod tests {
    use weir_questions::Query;

    use super::*;

    /// The members that the schema names are those of questions: a question with all of them is
    /// read.
    #[test]
    fn the_members_of_the_schema_are_those_of_questions() {
        let series = json!([{"event": "paid", "math": "sum", "math_property": "price",
            "properties": [{"key": "plan", "type": "event", "operator": "exact", "value": "pro"}]}]);
        let dates = json!({"date_from": "-30d", "date_to": "-1d"});
        let entity = json!({"id": "paid", "type": "events"});
        for question in [
            json!({"kind": "TrendsQuery", "series": series, "dateRange": dates, "interval": "day",
                "breakdownFilter": {"breakdown": "plan", "breakdown_type": "event",
                    "breakdown_limit": 5},
                "compareFilter": {"compare": true, "compare_to": "-1w"},
                "trendsFilter": {"display": "ActionsLineGraph", "formula": "A * 2"}}),
            json!({"kind": "FunnelsQuery", "series": [{"event": "a"}, {"event": "b"}],
                "funnelsFilter": {"funnelOrderType": "ordered", "funnelVizType": "steps",
                    "funnelWindowInterval": 7, "funnelWindowIntervalUnit": "day"}}),
            json!({"kind": "RetentionQuery", "retentionFilter": {"targetEntity": entity,
                "returningEntity": entity, "period": "Week", "totalIntervals": 4,
                "retentionType": "retention_first_time"}}),
            json!({"kind": "PathsQuery", "pathsFilter": {"includeEventTypes": ["$pageview"],
                "startPoint": "/a", "stepLimit": 4, "edgeLimit": 20}}),
            json!({"kind": "StickinessQuery", "series": [{"event": "a"}], "stickinessFilter":
                {"stickinessCriteria": {"operator": "gte", "value": 2}}}),
            json!({"kind": "LifecycleQuery", "series": [{"event": "a"}]}),
            json!({"kind": "EventsQuery", "select": ["timestamp"], "where": ["properties.a > 1"],
                "event": "paid", "after": "-24h", "before": "-1h", "orderBy": ["timestamp DESC"],
                "limit": 10}),
            json!({"kind": "HogQLQuery", "query": "SELECT count() FROM events"}),
            json!({"kind": "ActorsQuery", "limit": 10, "offset": 10, "source": {
                "kind": "InsightActorsQuery", "day": "2026-08-21", "series": 0, "compare": "current",
                "source": {"kind": "TrendsQuery", "series": series}}}),
            json!({"kind": "WebOverviewQuery", "compareFilter": {"compare": true}}),
            json!({"kind": "WebStatsTableQuery", "breakdownBy": "Page", "limit": 10,
                "includeBounceRate": true, "orderBy": ["Views", "DESC"]}),
            json!({"kind": "WebTrendsQuery", "metrics": ["UniqueUsers"], "interval": "day"}),
        ] {
            assert!(Query::read(&question).is_ok(), "{question}: {:?}", Query::read(&question));
            let schema = super::question();
            let kinds = schema["properties"]["kind"]["enum"].as_array().unwrap();
            assert!(kinds.contains(&question["kind"]), "{question}");
            for name in question.as_object().unwrap().keys() {
                assert!(schema["properties"][name].is_object(), "{name}");
            }
        }
    }
}
