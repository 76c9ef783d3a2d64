//! The web overview.

use std::collections::{BTreeMap, HashMap};
use std::iter;
use std::ops::Range;

use proptest::prelude::*;
use serde_json::{Value, json};
use weir_answer::{Found, web_overview, web_table, web_trends};
use weir_model::Timestamp;
use weir_questions::Query;
use weir_questions::evaluate::{
    SESSION_REACH, WebEvent, WebRules, WebSession, WebTotals, web_sessions, web_values,
};
use weir_questions::query::{
    CompareFilter, Filter, FilterGroup, Scope, SessionFilter, WebOverviewQuery, WebScope,
    WebTableQuery, WebTrendsQuery, WebView,
};
use weir_questions::results::{
    ResolvedRange, WebOverviewItem, WebRow, WebTableResult, WebTrendsItem,
};
use weir_questions::time::{DateText, Interval};

use crate::Case;
use crate::by_person::by_actor;
use crate::trends::passes;
use crate::world::{Event, Random, any_dates, any_filters, case};

fn any_question(random: &mut Random, kind: &str) -> Value {
    let mut filters = any_filters(random);
    if let Some(list) = filters.as_array_mut() {
        for _ in 0..random.below(3) {
            list.push(json!({
                "type": "session",
                "key": random.pick(&["$entry_pathname", "$end_pathname", "$entry_utm_source"]),
                "operator": random.pick(&["exact", "is_not", "is_set"]),
                "value": random.pick(&["/a", "/b", "news"]),
            }));
        }
    }
    let compare = json!({ "compare": random.one_in(2) });
    let dates = match random.one_in(4) {
        true => json!({ "date_from": "dStart" }),
        false => any_dates(random),
    };
    let mut query = json!({ "kind": kind, "dateRange": dates, "properties": filters,
        "filterTestAccounts": random.one_in(4) });
    match kind {
        "WebOverviewQuery" => query["compareFilter"] = compare,
        "WebStatsTableQuery" => {
            query["compareFilter"] = compare;
            let breakdowns = ["Page", "InitialPage", "ExitPage", "InitialUTMSource"];
            query["breakdownBy"] = json!(random.pick(&breakdowns));
            query["includeBounceRate"] = json!(random.one_in(2));
            query["limit"] = json!(1 + random.below(4));
        }
        _ => {
            query["interval"] = json!(random.pick(&["day", "week", "hour"]));
            query["metrics"] = json!(["UniqueUsers", "PageViews", "SessionDuration"]);
        }
    }
    query
}

/// The sessions of each person that begin in a range, with its events.
fn persons(
    case: &Case,
    scope: &WebScope,
    times: &Range<i64>,
) -> Vec<(Vec<WebSession>, Vec<Event>)> {
    let near = times.start - SESSION_REACH..times.end + SESSION_REACH;
    let bits = |view: WebView| {
        let of = scope.sessions.iter().enumerate();
        let of = of.filter(|(_, filter)| filter.property.view() == view);
        of.fold(0_u32, |bits, (at, _)| bits | 1 << at)
    };
    let rules = WebRules {
        times: times.clone(),
        of_first: bits(WebView::First),
        of_last: bits(WebView::Last),
    };
    let satisfies = |event: &Event, filter: &SessionFilter| {
        let filters = vec![Filter::Property(filter.of_view.clone())];
        passes(case, event, &FilterGroup { filters, ..FilterGroup::default() })
    };
    let mut found = Vec::new();
    for (_, mut events) in by_actor(case, &Scope::default(), None) {
        events.retain(|event| near.contains(&event.time));
        events.sort_by_key(|event| (event.time, event.arrival));
        let mut numbers: HashMap<String, u64> = HashMap::new();
        let mut number = |id: String| {
            let next = numbers.len() as u64;
            *numbers.entry(id).or_insert(next)
        };
        let of = |event: &Event| {
            let is_view = event.name == "$pageview";
            let is_counted = is_view
                && passes(case, event, &scope.views.properties)
                && (!scope.views.filter_test_accounts || passes(case, event, &case.internal));
            let filters = scope.sessions.iter().enumerate();
            let filters = filters.filter(|(_, filter)| satisfies(event, filter));
            WebEvent {
                time: event.time,
                session: event.text("$session_id").map(&mut number),
                is_view,
                is_counted,
                is_autocapture: event.name == "$autocapture",
                filters: filters.fold(0_u32, |bits, (at, _)| bits | 1 << at),
            }
        };
        let own: Vec<WebEvent> = events.iter().map(of).collect();
        found.push((web_sessions(&own, &rules), events));
    }
    found
}

/// The range of a question, and the one that it is compared with.
fn ranges(case: &Case, scope: &WebScope, compare: Option<CompareFilter>) -> Vec<Range<i64>> {
    let dates = &scope.views.dates;
    let range = case.calendar.range(dates, Interval::Day, case.now, case.world.earliest()).unwrap();
    // Today has the same hours of the day before.
    let is_today = dates.date_from == DateText::parse("dStart");
    let interval = if is_today { Interval::Hour } else { Interval::Day };
    let so_far = case.calendar.range(dates, interval, case.now, case.world.earliest()).unwrap();
    let previous = compare.map(|compare| case.calendar.previous(dates, &so_far, &compare).unwrap());
    let ranges = iter::once(range).chain(previous);
    ranges.map(|range| range.begin()..range.end()).collect()
}

fn resolved(times: &Range<i64>) -> ResolvedRange {
    ResolvedRange {
        date_from: Timestamp::from_micros(times.start),
        date_to: Timestamp::from_micros(times.end - 1),
    }
}

fn expected_overview(case: &Case, query: &WebOverviewQuery) -> Found<Vec<WebOverviewItem>> {
    let ranges = ranges(case, &query.scope, query.compare);
    let totals = |times: &Range<i64>| {
        let mut all = WebTotals::default();
        for (sessions, _) in persons(case, &query.scope, times) {
            all.merge(&WebTotals::of_person(&sessions));
        }
        all
    };
    let totals: Vec<WebTotals> = ranges.iter().map(totals).collect();
    Found {
        results: WebOverviewItem::all(&totals[0], totals.get(1)),
        has_more: None,
        range: resolved(&ranges[0]),
    }
}

fn expected_trends(case: &Case, query: &WebTrendsQuery) -> Found<Vec<WebTrendsItem>> {
    let dates = &query.scope.views.dates;
    let range =
        case.calendar.range(dates, query.interval, case.now, case.world.earliest()).unwrap();
    let buckets = case.calendar.buckets(&range).unwrap();
    let times = buckets.begin()..buckets.end();
    let mut totals = vec![WebTotals::default(); buckets.len()];
    for (sessions, _) in persons(case, &query.scope, &times) {
        for (at, totals) in totals.iter_mut().enumerate() {
            let own = sessions.iter().filter(|session| buckets.index(session.start) == Some(at));
            totals.merge(&WebTotals::of_person(&own.cloned().collect::<Vec<_>>()));
        }
    }
    let items = buckets.days().iter().zip(&totals);
    let items = items.map(|(day, totals)| WebTrendsItem::new(day, &query.metrics, totals));
    Found { results: items.collect(), has_more: None, range: resolved(&times) }
}

fn expected_table(case: &Case, query: &WebTableQuery) -> Found<WebTableResult> {
    let ranges = ranges(case, &query.scope, query.compare);
    let breakdown = query.breakdown;
    let mut values: BTreeMap<Option<String>, Vec<WebTotals>> = BTreeMap::new();
    for (range, times) in ranges.iter().enumerate() {
        for (sessions, events) in persons(case, &query.scope, times) {
            let texts: Vec<Option<String>> =
                events.iter().map(|event| event.text(breakdown.property())).collect();
            let text = |at: usize| texts[at].as_deref();
            let of_bounces = breakdown.view_of_bounces();
            for (value, totals) in web_values(&sessions, breakdown.view(), of_bounces, text) {
                let new = || vec![WebTotals::default(); ranges.len()];
                values.entry(value.map(str::to_owned)).or_insert_with(new)[range].merge(&totals);
            }
        }
    }
    let row = |(value, totals): (Option<String>, Vec<WebTotals>)| WebRow {
        value,
        current: totals[0],
        previous: totals.get(1).copied(),
    };
    let results = WebTableResult::new(query, values.into_iter().map(row).collect());
    Found { has_more: Some(results.has_more), results, range: resolved(&ranges[0]) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn sites_are_those_of_all_events(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let case = case(&mut random, 200);
        for kind in ["WebOverviewQuery", "WebTrendsQuery", "WebStatsTableQuery"].repeat(2) {
            match Query::read(&any_question(&mut random, kind)) {
                Ok(Query::WebOverview(query)) => {
                    case.assert_answers(&expected_overview(&case, &query), |source, run, asked| {
                        web_overview(source, run, asked, &query)
                    });
                }
                Ok(Query::WebTrends(query)) => {
                    case.assert_answers(&expected_trends(&case, &query), |source, run, asked| {
                        web_trends(source, run, asked, &query)
                    });
                }
                Ok(Query::WebTable(query)) => {
                    case.assert_answers(&expected_table(&case, &query), |source, run, asked| {
                        web_table(source, run, asked, &query)
                    });
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
