//! Questions: fixed ones for each part of each kind, and others that a number chooses.

use serde_json::{Value, json};
use weir_questions::Query;
use weir_questions::query::FilterGroup;
use weir_questions::time::{Calendar, WeekStart};

use crate::random::Random;
use crate::world::NAMES;

const ALL: usize = 200;
const ZONES: [&str; 4] = ["UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu"];
const NUMBERS: [&str; 9] = ["sum", "avg", "min", "max", "median", "p75", "p90", "p95", "p99"];

/// A question with the calendar of its project.
pub(crate) struct Question {
    pub(crate) query: Value,
    zone: &'static str,
    week_start: WeekStart,
}

impl Question {
    pub(crate) fn calendar(&self) -> Calendar {
        Calendar::new(self.zone, self.week_start).unwrap()
    }

    /// For the other program.
    pub(crate) fn written(&self) -> Value {
        let week_start = format!("{:?}", self.week_start);
        json!({ "zone": self.zone, "weekStart": week_start, "question": self.query })
    }
}

/// The filters of the project for internal users.
pub(crate) fn internal() -> Value {
    json!([{ "key": "plan", "operator": "is_not", "value": "free" }])
}

pub(crate) fn filters(value: &Value) -> FilterGroup {
    let query = json!({ "kind": "LifecycleQuery", "series": [{}], "properties": value });
    match Query::read(&query).unwrap() {
        Query::Lifecycle(query) => query.scope.properties,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn all(random: &mut Random) -> Vec<Question> {
    let mut queries = fixed_trends();
    queries.extend(fixed_filters());
    queries.extend(fixed_funnels());
    queries.extend(fixed_others());
    queries.extend(fixed_web());
    while queries.len() < ALL {
        queries.push(match random.below(11) {
            0..=2 => any_trends(random),
            3..=5 => any_funnel(random),
            6 => any_retention(random),
            7 => any_paths(random),
            8 | 9 => any_web(random),
            _ => any_activity(random),
        });
    }
    let question = |(at, query)| Question {
        query,
        zone: ZONES[at % ZONES.len()],
        week_start: if random.one_in(2) { WeekStart::Sunday } else { WeekStart::Monday },
    };
    queries.into_iter().enumerate().map(question).collect()
}

/// A question with other members.
fn with(mut query: Value, members: Value) -> Value {
    let Value::Object(members) = members else { panic!("{members}") };
    query.as_object_mut().unwrap().extend(members);
    query
}

fn trends(members: Value) -> Value {
    with(json!({ "kind": "TrendsQuery", "series": [{ "event": "$pageview" }] }), members)
}

fn fixed_trends() -> Vec<Value> {
    let price = |math: &str| json!({ "event": "buy", "math": math, "math_property": "price" });
    let mut queries: Vec<Value> = NUMBERS
        .iter()
        .map(|math| {
            trends(json!({ "series": [price(math)], "interval": "week",
            "dateRange": { "date_from": "-30d" } }))
        })
        .collect();
    queries.extend([
        trends(json!({})),
        trends(json!({ "series": [{ "math": "dau" }], "dateRange": { "date_from": "all" } })),
        trends(json!({ "series": [{ "math": "unique_session" }], "interval": "hour" })),
        trends(json!({ "series": [{ "math": "unique_group", "math_group_type_index": 1 }],
            "dateRange": { "date_from": "-1mStart", "date_to": "-1mEnd" } })),
        trends(json!({ "series": [{ "math": "dau" }], "aggregation_group_type_index": 0 })),
        trends(json!({ "interval": "minute", "dateRange": { "date_from": "-3h" } })),
        trends(json!({ "interval": "hour", "dateRange": { "date_from": "2026-10-24",
            "date_to": "2026-10-25" } })),
        trends(json!({ "interval": "month", "dateRange": { "date_from": "2026-05-07" } })),
        trends(json!({ "interval": "week", "dateRange": { "date_from": "-20d",
            "date_to": "2026-10-28" } })),
        trends(json!({ "interval": "day", "dateRange": { "date_from": "2026-10-20T10:30:00",
            "date_to": "2026-10-27T11:00", "explicitDate": true } })),
        trends(json!({ "trendsFilter": { "display": "ActionsLineGraphCumulative" },
            "series": [{ "math": "dau" }, { "event": "buy" }], "dateRange":
            { "date_from": "-30d" } })),
        trends(json!({ "trendsFilter": { "display": "ActionsLineGraphCumulative" },
            "series": [{ "math": "dau" }], "breakdownFilter": { "breakdown": "browser",
            "breakdown_limit": 2 }, "compareFilter": { "compare": true } })),
        trends(json!({ "trendsFilter": { "display": "BoldNumber" }, "series": [{ "math": "dau" }],
            "compareFilter": { "compare": true } })),
        trends(json!({ "trendsFilter": { "display": "ActionsTable" }, "series": [price("avg")],
            "breakdownFilter": { "breakdowns": [{ "property": "plan" }] } })),
        trends(json!({ "trendsFilter": { "display": "WorldMap" }, "series": [{ "math": "dau" }],
            "breakdownFilter": { "breakdown": "$group_0" } })),
        trends(json!({ "breakdownFilter": { "breakdown": "plan", "breakdown_limit": 3 } })),
        trends(json!({ "series": [{ "math": "dau" }, {}], "breakdownFilter":
            { "breakdowns": [{ "property": "browser" }, { "property": "ok" }],
            "breakdown_limit": 4 } })),
        trends(json!({ "breakdownFilter": { "breakdowns": [{ "property": "browser" },
            { "property": "ok" }, { "property": "plan" }], "breakdown_limit": 20 } })),
        trends(json!({ "series": [{}], "breakdownFilter": { "breakdown": "o" } })),
        trends(json!({ "series": [{}], "breakdownFilter": { "breakdown": "$current_url",
            "breakdown_normalize_url": true, "breakdown_hide_other_aggregation": true,
            "breakdown_limit": 2 } })),
        trends(json!({ "series": [{}, price("sum")], "breakdownFilter": { "breakdowns":
            [{ "property": "count", "histogram_bin_count": 4 }] },
            "compareFilter": { "compare": true } })),
        trends(json!({ "compareFilter": { "compare": true }, "dateRange":
            { "date_from": "mStart" } })),
        trends(json!({ "compareFilter": { "compare": true }, "interval": "hour", "dateRange":
            { "date_from": "-30h" } })),
        trends(json!({ "compareFilter": { "compare": true, "compare_to": "-1m" }, "dateRange":
            { "date_from": "-10d" } })),
        // The month before has 30 days.
        trends(json!({ "compareFilter": { "compare": true, "compare_to": "-1m" }, "dateRange":
            { "date_from": "2026-10-30", "date_to": "2026-10-30" } })),
        trends(json!({ "compareFilter": { "compare": true, "compare_to": "-1m" }, "dateRange":
            { "date_from": "2026-10-28", "date_to": "2026-10-31" } })),
        trends(json!({ "series": [price("sum"), { "event": "buy" }], "trendsFilter":
            { "formulaNodes": [{ "formula": "A / B" }, { "formula": "(A - B) * 2 + 1",
            "custom_name": "more" }] } })),
        trends(json!({ "series": [{ "event": "buy" }, {}], "trendsFilter":
            { "formula": "A / B", "display": "ActionsLineGraphCumulative" } })),
        trends(json!({ "series": [{ "event": "buy" }, {}], "trendsFilter": { "formula": "A / B * 100" },
            "breakdownFilter": { "breakdown": "plan", "breakdown_limit": 2 },
            "compareFilter": { "compare": true } })),
        trends(json!({ "series": [{ "event": "buy" }, {}], "trendsFilter":
            { "formulas": ["B ** 2 - A % 3"], "display": "ActionsPie" } })),
    ]);
    queries
}

/// Each operator, and groups of filters.
fn fixed_filters() -> Vec<Value> {
    let filter = |key: &str, operator: &str, value: Value| json!({ "key": key, "operator": operator, "value": value });
    let one = [
        ("plan", "exact", json!(["pro", 5])),
        ("plan", "is_not", json!("pro")),
        ("browser", "icontains", json!("GRÖ")),
        ("plan", "not_icontains", json!(["pr", "5"])),
        ("$current_url", "regex", json!("^/[a-b]$")),
        ("$current_url", "not_regex", json!(["^/a", "d$"])),
        ("price", "gt", json!(9_007_199_254_740_992_u64)),
        ("price", "gte", json!("5")),
        ("price", "lt", json!(2.5)),
        ("price", "lte", json!(0)),
        ("price", "between", json!([0.1, 5])),
        ("price", "not_between", json!([0.1, 5])),
        ("price", "in", json!(["7", 0.7, "x"])),
        ("price", "not_in", json!([5, "1000"])),
        ("o", "is_set", Value::Null),
        ("plan", "is_not_set", Value::Null),
        ("day", "is_date_exact", json!("2026-10-25")),
        ("day", "is_date_before", json!("2026-10-26")),
        ("day", "is_date_after", json!("2026-10-25T04:00")),
    ];
    let month = json!({ "dateRange": { "date_from": "-30d" }, "interval": "week" });
    let mut queries: Vec<Value> = one
        .into_iter()
        .map(|(key, operator, value)| {
            trends(with(
                month.clone(),
                json!({ "series": [{}],
                "properties": [filter(key, operator, value)] }),
            ))
        })
        .collect();
    queries.push(trends(with(
        month,
        json!({
            "series": [{ "properties": [filter("ok", "exact", json!(true))] }],
            "filterTestAccounts": true,
            "properties": { "type": "AND", "values": [
                { "type": "OR", "values": [filter("count", "gt", json!(6)),
                    filter("browser", "exact", json!("Chrome"))] },
                { "type": "OR", "values": [] },
            ] },
        }),
    )));
    queries
}

fn funnel(filter: Value, members: Value) -> Value {
    let query = json!({ "kind": "FunnelsQuery", "funnelsFilter": filter,
        "dateRange": { "date_from": "-30d" },
        "series": [{ "event": "$pageview" }, { "event": "buy" }, { "event": "sign up" }] });
    with(query, members)
}

fn fixed_funnels() -> Vec<Value> {
    let any = json!([{}, { "event": "buy" }, {}]);
    let exclusions = json!([{ "event": "$autocapture" }, { "event": "ünlock",
        "funnelFromStep": 1, "funnelToStep": 2 }]);
    let all = json!([{ "event": "ünlock" }]);
    let broken = |attribution: &str, step: usize, limit: usize| {
        funnel(
            json!({ "breakdownAttributionType": attribution, "breakdownAttributionValue": step }),
            json!({ "breakdownFilter": { "breakdown": "plan", "breakdown_limit": limit } }),
        )
    };
    vec![
        funnel(json!({}), json!({})),
        funnel(json!({ "funnelOrderType": "unordered" }), json!({ "series": any })),
        funnel(json!({ "funnelOrderType": "strict" }), json!({ "series": any })),
        funnel(json!({ "exclusions": exclusions }), json!({})),
        funnel(json!({ "exclusions": all, "funnelOrderType": "unordered" }), json!({})),
        funnel(
            json!({ "exclusions": exclusions, "funnelOrderType": "strict" }),
            json!({ "series": any }),
        ),
        funnel(
            json!({ "funnelWindowInterval": 30, "funnelWindowIntervalUnit": "minute" }),
            json!({}),
        ),
        funnel(json!({}), json!({ "aggregation_group_type_index": 2 })),
        broken("first_touch", 0, 3),
        broken("last_touch", 0, 3),
        broken("all_events", 0, 3),
        broken("step", 1, 3),
        funnel(json!({ "funnelVizType": "time_to_convert" }), json!({ "series": any })),
        funnel(
            json!({ "funnelVizType": "time_to_convert", "binCount": 7, "funnelFromStep": 1 }),
            json!({}),
        ),
        funnel(json!({ "funnelVizType": "trends", "funnelToStep": 1 }), json!({})),
        funnel(
            json!({ "funnelVizType": "trends", "funnelToStep": 1 }),
            json!({ "interval": "week",
            "breakdownFilter": { "breakdowns": [{ "property": "browser" }] } }),
        ),
    ]
}

fn fixed_others() -> Vec<Value> {
    let retention = |filter: Value, members: Value| {
        with(json!({ "kind": "RetentionQuery", "retentionFilter": filter }), members)
    };
    let buy = json!({ "type": "events", "id": "buy" });
    let every = json!({ "type": "events", "id": "" });
    let activity = |kind: &str, members: Value| {
        let query = json!({ "kind": kind, "series": [{}], "dateRange": { "date_from": "-20d" } });
        with(query, members)
    };
    let paths = |filter: Value| json!({ "kind": "PathsQuery", "pathsFilter": filter, "dateRange": { "date_from": "-30d" } });
    vec![
        retention(json!({ "period": "Day" }), json!({})),
        retention(
            json!({ "period": "Week", "totalIntervals": 5, "targetEntity": every,
            "returningEntity": buy, "cumulative": true }),
            json!({}),
        ),
        retention(
            json!({ "period": "Week", "retentionType": "retention_first_time",
            "targetEntity": buy, "returningEntity": every }),
            json!({ "dateRange": { "date_from": "-30d" } }),
        ),
        retention(
            json!({ "period": "Month", "minimumOccurrences": 3, "targetEntity": every,
            "returningEntity": every, "totalIntervals": 3 }),
            json!({}),
        ),
        retention(json!({ "period": "Hour", "totalIntervals": 30 }), json!({})),
        retention(
            json!({ "period": "Week", "targetEntity": every, "returningEntity": every }),
            json!({ "breakdownFilter": { "breakdown": "browser", "breakdown_limit": 2 } }),
        ),
        activity("StickinessQuery", json!({})),
        activity(
            "StickinessQuery",
            json!({ "interval": "week", "stickinessFilter":
            { "computedAs": "cumulative" }, "compareFilter": { "compare": true } }),
        ),
        activity(
            "StickinessQuery",
            json!({ "stickinessFilter": { "stickinessCriteria":
            { "operator": "exact", "value": 2 } }, "series": [{ "event": "buy", "math":
            "unique_group", "math_group_type_index": 0 }, { "event": "$pageview" }] }),
        ),
        activity("LifecycleQuery", json!({})),
        activity("LifecycleQuery", json!({ "interval": "week", "series": [{ "event": "buy" }] })),
        activity(
            "LifecycleQuery",
            json!({ "interval": "hour", "dateRange":
            { "date_from": "-40h" } }),
        ),
        paths(json!({})),
        paths(json!({ "includeEventTypes": ["$pageview", "custom_event"], "startPoint": "/a/",
            "stepLimit": 4 })),
        paths(json!({ "endPoint": "buy", "stepLimit": 3, "edgeLimit": 10 })),
        paths(json!({ "startPoint": "$autocapture", "endPoint": "buy", "stepLimit": 3 })),
        paths(json!({ "pathGroupings": ["/b*", "*gn u*"], "excludeEvents": ["Home"],
            "minEdgeWeight": 2, "maxEdgeWeight": 9 })),
    ]
}

fn web(kind: &str, members: Value) -> Value {
    with(json!({ "kind": kind, "dateRange": { "date_from": "-20d" } }), members)
}

fn fixed_web() -> Vec<Value> {
    let table = |breakdown: &str, members: Value| {
        web("WebStatsTableQuery", with(json!({ "breakdownBy": breakdown }), members))
    };
    let all = ["UniqueUsers", "PageViews", "Sessions", "Bounces", "SessionDuration"];
    let entry = json!([{ "type": "session", "key": "$entry_pathname", "value": ["/", "/a"] },
        { "type": "session", "key": "$end_pathname", "operator": "is_not", "value": "/b?" },
        { "key": "$browser", "value": "Chrome" }]);
    let bounces = json!({ "includeBounceRate": true, "compareFilter": { "compare": true } });
    vec![
        web("WebOverviewQuery", json!({})),
        web("WebOverviewQuery", json!({ "compareFilter": { "compare": true } })),
        web(
            "WebOverviewQuery",
            json!({ "dateRange": { "date_from": "dStart" }, "compareFilter": { "compare": true } }),
        ),
        web("WebOverviewQuery", json!({ "properties": entry })),
        web("WebTrendsQuery", json!({ "metrics": all })),
        web(
            "WebTrendsQuery",
            json!({ "metrics": all, "interval": "hour", "properties": entry,
            "dateRange": { "date_from": "-40h" } }),
        ),
        table("Page", bounces.clone()),
        table("InitialPage", bounces.clone()),
        table("ExitPage", bounces.clone()),
        table("Browser", bounces),
        table("InitialUTMSource", json!({ "limit": 2 })),
        table("InitialReferringDomain", json!({ "orderBy": ["Views", "ASC"], "offset": 1 })),
        table("Country", json!({ "properties": entry })),
    ]
}

fn any_event(random: &mut Random) -> Value {
    match random.one_in(4) {
        true => Value::Null,
        false => json!(random.pick(&NAMES)),
    }
}

fn any_property(random: &mut Random) -> &'static str {
    const NAMES: [&str; 9] =
        ["plan", "price", "count", "browser", "ok", "$current_url", "none", "o", "day"];
    NAMES[random.below(NAMES.len())]
}

fn any_filters(random: &mut Random) -> Value {
    let filters: Vec<Value> = (0..random.below(3)).map(|_| any_filter(random)).collect();
    match random.below(4) {
        0 => json!({ "type": "OR", "values": filters }),
        1 => json!({ "type": "AND", "values": [{ "type": "OR", "values": filters }] }),
        _ => json!(filters),
    }
}

fn any_filter(random: &mut Random) -> Value {
    let operator = *random.pick(&[
        "exact",
        "is_not",
        "icontains",
        "not_icontains",
        "regex",
        "not_regex",
        "is_set",
        "is_not_set",
        "gt",
        "gte",
        "lt",
        "lte",
        "between",
        "not_between",
        "in",
        "not_in",
        "is_date_before",
        "is_date_exact",
        "is_date_after",
    ]);
    let (key, value) = match operator {
        "gt" | "gte" | "lt" | "lte" => {
            ("price", json!(random.pick(&["5", "9007199254740992", "2.5", "-1"])))
        }
        "between" | "not_between" => ("price", json!([1, 7])),
        "is_date_before" | "is_date_exact" | "is_date_after" => {
            ("day", json!(random.pick(&["2026-10-25", "2026-10-26", "-9d"])))
        }
        "regex" | "not_regex" => (any_property(random), json!("^/[a-b]|o|1")),
        _ => {
            let values = [
                json!("pro"),
                json!(["pro", "5"]),
                json!("C"),
                json!(5),
                json!(true),
                json!("5.0"),
            ];
            (any_property(random), random.pick(&values).clone())
        }
    };
    json!({ "key": key, "operator": operator, "value": value })
}

fn any_dates(random: &mut Random) -> Value {
    random
        .pick(&[
            json!({}),
            json!({ "date_from": "-7d" }),
            json!({ "date_from": "-3d", "date_to": "-1d" }),
            json!({ "date_from": "-30h" }),
            json!({ "date_from": "-5h", "date_to": "-2h" }),
            json!({ "date_from": "2026-10-20T10:30:00", "date_to": "2026-10-27T11:00:00",
                "explicitDate": true }),
            json!({ "date_from": "2026-10-20T10:30:00", "date_to": "2026-10-27T11:00:00Z" }),
            json!({ "date_from": "-8d", "explicitDate": true }),
            json!({ "date_from": "mStart" }),
            json!({ "date_from": "-1mStart", "date_to": "-1mEnd" }),
            json!({ "date_from": "-1wStart" }),
            json!({ "date_from": "wStart" }),
            json!({ "date_from": "-14d", "date_to": "2026-10-27" }),
            json!({ "date_from": "-14d" }),
            json!({ "date_from": "-1m" }),
            json!({ "date_from": "2026-10-24", "date_to": "2026-11-02" }),
        ])
        .clone()
}

fn any_breakdown(random: &mut Random) -> Value {
    let limit = 1 + random.below(4);
    let (one, two) = (any_property(random), any_property(random));
    match random.below(5) {
        0 => json!({ "breakdown": one, "breakdown_limit": limit }),
        1 => json!({ "breakdown": "$current_url", "breakdown_normalize_url": true,
            "breakdown_limit": limit }),
        2 => json!({ "breakdowns": [{ "property": one }, { "property": two }],
            "breakdown_limit": limit }),
        3 => json!({ "breakdown": one, "breakdown_limit": limit,
            "breakdown_hide_other_aggregation": true }),
        _ => json!({ "breakdowns": [{ "property": one }] }),
    }
}

fn any_compare(random: &mut Random) -> Value {
    let to = [Value::Null, Value::Null, json!("-1m"), json!("-2w"), json!("-9d")];
    json!({ "compare": true, "compare_to": random.pick(&to) })
}

fn any_scope(random: &mut Random, mut query: Value) -> Value {
    query["dateRange"] = any_dates(random);
    if random.one_in(2) {
        query["properties"] = any_filters(random);
    }
    query["filterTestAccounts"] = json!(random.one_in(4));
    query
}

fn any_trends(random: &mut Random) -> Value {
    let series: Vec<Value> = (0..=random.below(3))
        .map(|_| {
            let mut series = match random.below(6) {
                0 | 1 => json!({ "math": "dau" }),
                2 => json!({ "math": "unique_session" }),
                3 => json!({ "math": "unique_group", "math_group_type_index": random.below(3) }),
                4 => json!({ "math": random.pick(&NUMBERS),
                    "math_property": random.pick(&["price", "count"]) }),
                _ => json!({ "math": "total" }),
            };
            series["event"] = any_event(random);
            if random.one_in(3) {
                series["properties"] = any_filters(random);
            }
            series
        })
        .collect();
    let displays = ["ActionsLineGraph", "ActionsLineGraphCumulative", "BoldNumber", "ActionsTable"];
    let mut filter = json!({ "display": random.pick(&displays) });
    if random.one_in(4) {
        filter["formulaNodes"] = match series.len() {
            1 => json!([{ "formula": "A * 2" }]),
            _ => json!([{ "formula": "A / B" }, { "formula": "A + B", "custom_name": "all" }]),
        };
    }
    let mut query = json!({ "kind": "TrendsQuery", "series": series, "trendsFilter": filter,
        "interval": random.pick(&["day", "hour", "week", "month"]) });
    if random.one_in(6) {
        query["aggregation_group_type_index"] = json!(0);
    }
    if random.one_in(2) {
        query["breakdownFilter"] = any_breakdown(random);
    }
    if random.one_in(3) {
        query["compareFilter"] = any_compare(random);
    }
    any_scope(random, query)
}

fn any_series(random: &mut Random) -> Value {
    let mut series = json!({ "event": any_event(random) });
    if random.one_in(4) {
        series["properties"] = any_filters(random);
    }
    series
}

fn any_funnel(random: &mut Random) -> Value {
    let steps: Vec<Value> = (0..2 + random.below(3)).map(|_| any_series(random)).collect();
    let last = steps.len() - 1;
    let order = *random.pick(&["ordered", "ordered", "strict", "unordered"]);
    let is_unordered = order == "unordered";
    let visualization = match random.below(5) {
        0 => "time_to_convert",
        1 if !is_unordered => "trends",
        _ => "steps",
    };
    let (length, unit) =
        *random.pick(&[(14, "day"), (1, "hour"), (30, "minute"), (3, "day"), (5, "second")]);
    let mut filter = json!({ "funnelOrderType": order, "funnelVizType": visualization,
        "funnelWindowInterval": length, "funnelWindowIntervalUnit": unit });
    if random.one_in(3) {
        let exclusions = (0..=random.below(2)).map(|_| {
            let mut exclusion = json!({ "event": random.pick(&NAMES) });
            if !is_unordered {
                let from = random.below(last);
                exclusion["funnelFromStep"] = json!(from);
                exclusion["funnelToStep"] = json!(from + 1 + random.below(last - from));
            }
            exclusion
        });
        filter["exclusions"] = exclusions.collect();
    }
    let mut query = json!({ "kind": "FunnelsQuery", "series": steps,
        "interval": random.pick(&["day", "week"]) });
    if random.one_in(2) && visualization != "time_to_convert" {
        query["breakdownFilter"] = any_breakdown(random);
        let kinds = ["first_touch", "last_touch", "all_events", "step"];
        let kinds = if is_unordered { &kinds[..3] } else { &kinds[..] };
        filter["breakdownAttributionType"] = json!(random.pick(kinds));
        filter["breakdownAttributionValue"] = json!(random.below(last + 1));
    } else if !is_unordered {
        let from = random.below(last);
        filter["funnelFromStep"] = json!(from);
        filter["funnelToStep"] = json!(from + 1 + random.below(last - from));
    }
    query["funnelsFilter"] = filter;
    if random.one_in(6) {
        query["aggregation_group_type_index"] = json!(2);
    }
    any_scope(random, query)
}

fn any_retention(random: &mut Random) -> Value {
    let mut entity = |filtered: bool| {
        let id = any_event(random).as_str().unwrap_or_default().to_owned();
        let filters = if filtered { any_filters(random) } else { json!([]) };
        json!({ "type": "events", "id": id, "properties": filters })
    };
    let (target, returning) = (entity(false), entity(true));
    let kinds = ["retention_recurring", "retention_first_time"];
    let filter = json!({
        "period": random.pick(&["Hour", "Day", "Week", "Month"]),
        "retentionType": random.pick(&kinds),
        "totalIntervals": 2 + random.below(7),
        "targetEntity": target,
        "returningEntity": returning,
        "cumulative": random.one_in(3),
        "minimumOccurrences": 1 + random.below(2),
    });
    let mut query = json!({ "kind": "RetentionQuery", "retentionFilter": filter });
    if random.one_in(3) {
        query["breakdownFilter"] = any_breakdown(random);
    }
    if random.one_in(6) {
        query["aggregation_group_type_index"] = json!(0);
    }
    any_scope(random, query)
}

fn any_activity(random: &mut Random) -> Value {
    let interval = *random.pick(&["day", "week", "month", "hour"]);
    if random.one_in(2) {
        let query = json!({ "kind": "LifecycleQuery", "series": [any_series(random)],
            "interval": interval });
        return any_scope(random, query);
    }
    let mut query = json!({ "kind": "StickinessQuery", "interval": interval,
        "series": [any_series(random), any_series(random)],
        "stickinessFilter": {
            "computedAs": random.pick(&["cumulative", "non_cumulative"]),
            "stickinessCriteria": { "operator": random.pick(&["gte", "lte", "exact"]),
                "value": 1 + random.below(3) },
        } });
    if random.one_in(3) {
        query["compareFilter"] = any_compare(random);
    }
    any_scope(random, query)
}

fn any_web(random: &mut Random) -> Value {
    let kind = *random.pick(&["WebOverviewQuery", "WebStatsTableQuery", "WebTrendsQuery"]);
    let mut query = any_scope(random, json!({ "kind": kind }));
    if random.one_in(2) && query["properties"].is_null() {
        let keys = ["$entry_pathname", "$end_pathname", "$entry_utm_source"];
        query["properties"] = json!([{ "type": "session", "key": random.pick(&keys),
            "operator": random.pick(&["exact", "is_not", "icontains"]),
            "value": random.pick(&["/", "/a", "news"]) }]);
    }
    match kind {
        "WebTrendsQuery" => {
            query["interval"] = json!(random.pick(&["day", "hour", "week", "month"]));
            query["metrics"] = json!(["UniqueUsers", "PageViews", "SessionDuration"]);
            return query;
        }
        "WebStatsTableQuery" => {
            let breakdowns = ["Page", "InitialPage", "ExitPage", "Browser", "InitialUTMSource"];
            query["breakdownBy"] = json!(random.pick(&breakdowns));
            query["limit"] = json!(1 + random.below(9));
            query["includeBounceRate"] = json!(true);
            query["orderBy"] = json!([
                random.pick(&["Visitors", "Views", "BounceRate"]),
                random.pick(&["ASC", "DESC"])
            ]);
        }
        _ => {}
    }
    if random.one_in(2) {
        query["compareFilter"] = any_compare(random);
    }
    query
}

fn any_paths(random: &mut Random) -> Value {
    let mut filter = json!({ "stepLimit": 2 + random.below(5), "edgeLimit": 5 + random.below(60) });
    let points = ["/a", "/b", "buy", "Home", "$autocapture"];
    if random.one_in(3) {
        filter["startPoint"] = json!(random.pick(&points));
    }
    if random.one_in(3) {
        filter["endPoint"] = json!(random.pick(&points));
    }
    if random.one_in(3) {
        filter["includeEventTypes"] = json!(random.some(&["$pageview", "$screen", "custom_event"]));
    }
    if random.one_in(3) {
        filter["excludeEvents"] = json!([random.pick(&points)]);
    }
    if random.one_in(3) {
        filter["pathGroupings"] = json!([random.pick(&["/*", "/b/*", "*o*", "C*t"])]);
    }
    let query = json!({ "kind": "PathsQuery", "pathsFilter": filter });
    any_scope(random, query)
}
