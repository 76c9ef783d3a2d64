//! Paths.

use proptest::prelude::*;
use serde_json::json;
use weir_answer::{Found, paths};
use weir_model::Timestamp;
use weir_questions::Query;
use weir_questions::evaluate::{PathEvent, PathNames, PathRules, Paths};
use weir_questions::query::PathsQuery;
use weir_questions::results::{PathResult, ResolvedRange};
use weir_questions::time::Interval;

use crate::Case;
use crate::by_person::by_actor;
use crate::world::{Event, Random, any_dates, any_filters, case};

pub(crate) fn any_question(random: &mut Random) -> PathsQuery {
    let mut filter = json!({ "stepLimit": 2 + random.below(5), "edgeLimit": 1 + random.below(12) });
    if random.one_in(2) {
        let events = ["$pageview", "$screen", "custom_event"];
        filter["includeEventTypes"] = json!(random.some(&events));
    }
    if random.one_in(3) {
        filter["excludeEvents"] = json!(random.some(&["buy", "/a/", "Home", "/b*"]));
    }
    if random.one_in(3) {
        filter["pathGroupings"] = json!(random.some(&["/b*", "/*", "s*p"]));
    }
    if random.one_in(3) {
        filter["startPoint"] = json!(random.pick(&["/a", "buy", "nowhere"]));
    }
    if random.one_in(3) {
        filter["endPoint"] = json!(random.pick(&["sign up", "/", "Cart"]));
    }
    if random.one_in(4) {
        filter["minEdgeWeight"] = json!(2);
    }
    let mut query = json!({ "kind": "PathsQuery", "pathsFilter": filter,
        "dateRange": any_dates(random), "properties": any_filters(random) });
    if random.one_in(5) {
        query["aggregation_group_type_index"] = json!(0);
    }
    match Query::read(&query) {
        Ok(Query::Paths(query)) => query,
        other => panic!("{other:?}"),
    }
}

/// The name of an event as a step.
fn step(query: &PathsQuery, event: &Event) -> Option<String> {
    let [address, screen] = ["$current_url", "$screen_name"].map(|name| event.text(name));
    let names = PathNames::new(&query.filter);
    let name = names.name(&event.name, address.as_deref(), screen.as_deref());
    name.map(str::to_owned)
}

pub(crate) fn expected(case: &Case, query: &PathsQuery) -> Found<Vec<PathResult>> {
    let filter = &query.filter;
    let dates = &query.scope.dates;
    let range = case.calendar.range(dates, Interval::Day, case.now, case.world.earliest()).unwrap();
    let events = by_actor(case, &query.scope, query.scope.group_type);
    let ends = [&filter.start, &filter.end].map(|end| end.clone());
    let mut names: Vec<String> =
        events.values().flatten().filter_map(|event| step(query, event)).collect();
    names.extend(ends.iter().flatten().cloned());
    names.push("...".to_owned());
    names.sort();
    names.dedup();
    let number = |name: &String| u32::try_from(names.binary_search(name).unwrap()).unwrap();
    let [start, end] = ends.map(|end| end.as_ref().map(number));
    let gap = number(&"...".to_owned());
    let mut counted = Paths::new(PathRules { steps: filter.steps as usize, start, end, gap });
    for (_, mut events) in events {
        events.sort_by_key(|event| event.time);
        let own: Vec<PathEvent> = events
            .iter()
            .filter(|event| (range.begin()..range.end()).contains(&event.time))
            .filter_map(|event| {
                Some(PathEvent { time: event.time, name: number(&step(query, event)?) })
            })
            .collect();
        counted.person(&own).unwrap();
    }
    let most = filter.most.map_or(u64::MAX, u64::from);
    let edges = counted.edges(usize::MAX, u64::from(filter.least.unwrap_or(0))..=most);
    let limit = filter.edges as usize;
    let name = |number: u32| names[number as usize].as_str();
    Found {
        results: edges
            .iter()
            .take(limit)
            .map(|edge| PathResult::new(edge, name(edge.source), name(edge.target)))
            .collect(),
        has_more: Some(edges.len() > limit),
        range: ResolvedRange {
            date_from: Timestamp::from_micros(range.begin()),
            date_to: Timestamp::from_micros(range.end() - 1),
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn paths_are_those_of_all_events(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let case = case(&mut random, 200);
        for _ in 0..5 {
            let query = any_question(&mut random);
            case.assert_answers(&expected(&case, &query), |source, run, asked| {
                paths(source, run, asked, &query)
            });
        }
    }
}
