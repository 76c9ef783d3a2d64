//! The persons and groups behind numbers.
//!
//! Numbers are those of the plain evaluation. An actor is behind a number if the same question
//! about the events of this actor alone has a number there.

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;
use serde_json::{Value, json};
use weir_answer::{AnswerError, Cancel, FunnelResults, MemoryPool, Run, actors, actors_times};
use weir_questions::Query;
use weir_questions::query::{ActorsQuery, Math, TrendsQuery};
use weir_questions::results::{
    ActorsResult, BreakdownValue, CompareLabel, FunnelStepResult, FunnelTrendResult, TrendsResult,
};

use crate::source::Layout;
use crate::world::{Random, World, case, case_of, different};
use crate::{Case, MEMORY, by_person, paths, trends};

fn read(query: &Value) -> ActorsQuery {
    match Query::read(query) {
        Ok(Query::Actors(query)) => query,
        other => panic!("{query}: {other:?}"),
    }
}

/// Numbers of a case, with those who may be behind them.
struct Numbers<'c> {
    case: &'c Case,
    /// By the type of groups: each actor with its id, and a case of its events alone.
    single: BTreeMap<Option<u8>, Vec<(String, Case)>>,
}

impl<'c> Numbers<'c> {
    fn new(case: &'c Case) -> Self {
        let all = |group_type: Option<u8>| {
            let events = case.world.counted();
            let actors = different(events.iter().filter_map(|event| event.actor(group_type)));
            let one = |actor: String| {
                let own =
                    events.iter().filter(|event| event.actor(group_type) == Some(actor.clone()));
                let arrivals: HashSet<u64> = own.map(|event| event.arrival).collect();
                let id = match group_type {
                    None => World::person_id(&actor).to_string(),
                    Some(_) => actor,
                };
                (id, with_events(case, &arrivals))
            };
            let mut all: Vec<(String, Case)> = actors.into_iter().map(one).collect();
            all.sort_by(|(a, _), (b, _)| a.cmp(b));
            all
        };
        let kinds = [None, Some(0)];
        Self { case, single: kinds.into_iter().map(|kind| (kind, all(kind))).collect() }
    }

    fn list(&self, source: &Value, select: &Value, limit: usize, offset: usize) -> ActorsResult {
        let query = read(&json!({ "kind": "ActorsQuery", "source": source, "select": select,
            "limit": limit, "offset": offset }));
        self.case.same(&source.to_string(), |rows, run| {
            actors(rows, run, &self.case.asked(), &query).unwrap()
        })
    }

    /// The ids of all who are behind a number, and how many of their events it counts.
    fn all(&self, source: &Value, has_count: bool) -> Vec<(String, u64)> {
        let select = if has_count { json!(["id", "event_count"]) } else { json!(["id"]) };
        let whole = self.list(source, &select, 1_000, 0);
        assert_eq!((whole.results.len() as u64, whole.has_more), (whole.actors_count, false));
        let size = whole.results.len() / 2 + 1;
        let mut pages = Vec::new();
        loop {
            let page = self.list(source, &select, size, pages.len());
            let has_more = page.has_more;
            assert_eq!(page.actors_count, whole.actors_count);
            pages.extend(page.results);
            if !has_more {
                break;
            }
        }
        assert_eq!(pages, whole.results);
        let row = |row: &Vec<Value>| {
            let events = row.get(1).map_or(0, |events| events.as_u64().unwrap());
            (row[0].as_str().unwrap().to_owned(), events)
        };
        whole.results.iter().map(row).collect()
    }

    /// Asserts who is behind a number, and how many if `count` says it.
    #[track_caller]
    fn check(
        &self,
        source: &Value,
        group_type: Option<u8>,
        count: Option<u64>,
        is_behind: Option<&dyn Fn(&Case) -> bool>,
    ) -> Vec<(String, u64)> {
        let found = self.all(source, source["source"]["kind"] == "TrendsQuery");
        if let Some(count) = count {
            assert_eq!(found.len() as u64, count, "{source}");
        }
        if let Some(is_behind) = is_behind {
            let single = self.single[&group_type].iter();
            let expected = single.filter(|(_, single)| is_behind(single));
            let expected: Vec<&str> = expected.map(|(id, _)| id.as_str()).collect();
            let ids: Vec<&str> = found.iter().map(|(id, _)| id.as_str()).collect();
            assert_eq!(ids, expected, "{source}");
        }
        found
    }
}

/// The case with these events alone.
fn with_events(case: &Case, arrivals: &HashSet<u64>) -> Case {
    let world = &case.world;
    let events = world.events.iter().filter(|event| arrivals.contains(&event.arrival));
    Case {
        world: World {
            events: events.cloned().collect(),
            persons: world.persons.clone(),
            erased: world.erased.clone(),
            last: world.last,
        },
        calendar: case.calendar.clone(),
        internal: case.internal.clone(),
        now: case.now,
        sources: Vec::new(),
    }
}

fn node(kind: &str, query: &Query, members: Value) -> Value {
    let mut node = json!({ "kind": kind, "source": query });
    node.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    node
}

fn label(compare: Option<CompareLabel>) -> Value {
    json!(compare.map(CompareLabel::word))
}

/// Whether a time names one interval: an hour that comes twice is the first one.
fn is_unique(days: &[String], at: usize) -> bool {
    days.iter().filter(|day| **day == days[at]).count() == 1
}

/// Some numbers below another one.
fn some(random: &mut Random, below: usize) -> Vec<usize> {
    let few = (0..3).filter(|_| below > 0).map(|_| random.below(below));
    different(few.collect::<Vec<_>>())
}

fn is_other(value: Option<&BreakdownValue>) -> bool {
    value.is_some_and(BreakdownValue::is_other)
}

fn check_trends(numbers: &Numbers<'_>, random: &mut Random) {
    let mut query = trends::any_question(random);
    query.filter.formulas.clear();
    let mut wide = query.clone();
    if let Some(filter) = &mut wide.breakdown {
        filter.limit = 500;
    }
    let has_bins = query
        .breakdown
        .as_ref()
        .is_some_and(|filter| filter.breakdowns.iter().any(|breakdown| breakdown.bins.is_some()));
    let results = trends::expected(numbers.case, &query).results;
    for at in some(random, results.len()) {
        let result = &results[at];
        let total = query.filter.display.is_total();
        for day in some(random, if total { 1 } else { result.data.len() }) {
            if !total && !is_unique(&result.days, day) {
                continue;
            }
            check_trend(numbers, (&query, &wide), result, (!total).then_some(day), has_bins);
        }
    }
}

fn amount(result: &TrendsResult, day: Option<usize>) -> f64 {
    match day {
        Some(day) => result.data[day].value(),
        None => result.aggregated_value.unwrap().value(),
    }
}

fn check_trend(
    numbers: &Numbers<'_>,
    (query, wide): (&TrendsQuery, &TrendsQuery),
    result: &TrendsResult,
    day: Option<usize>,
    has_bins: bool,
) {
    let math = &query.series[result.order].math;
    let group_type = math.group_type().or(query.scope.group_type);
    let members = json!({ "series": result.order, "day": day.map(|day| &result.days[day]),
        "compare": label(result.compare_label), "breakdown": result.breakdown_value });
    let source = node("InsightActorsQuery", &Query::Trends(query.clone()), members);
    let number = amount(result, day);
    let is_count = matches!(math, Math::UniquePersons | Math::UniqueGroups(_));
    let is_previous = result.compare_label == Some(CompareLabel::Previous);
    // The events of one person have other ranges, and other values in a range that is compared.
    let is_alone = matches!(math, Math::Property(..))
        || has_bins
        || is_other(result.breakdown_value.as_ref())
        || (is_previous && query.breakdown.is_some());
    let is_behind = |single: &Case| {
        let found = trends::expected(single, wide).results.into_iter().find(|found| {
            (found.order, found.compare_label, &found.breakdown_value)
                == (result.order, result.compare_label, &result.breakdown_value)
        });
        found.is_some_and(|found| amount(&found, day) > 0.0)
    };
    let is_behind: &dyn Fn(&Case) -> bool = &is_behind;
    let count = is_count.then_some(number as u64);
    let found = numbers.check(&source, group_type, count, (!is_alone).then_some(is_behind));
    if *math == Math::Total && group_type.is_none() {
        let events: u64 = found.iter().map(|(_, events)| events).sum();
        assert_eq!(events, number as u64, "{source}");
    }
    assert!(found.iter().all(|(_, events)| *events > 0), "{source}");
}

fn steps_of(results: FunnelResults) -> Vec<Vec<FunnelStepResult>> {
    match results {
        FunnelResults::Steps(steps) => vec![steps],
        FunnelResults::Values(values) => values,
        FunnelResults::Times(_) | FunnelResults::Trends(_) => Vec::new(),
    }
}

fn rates_of(results: FunnelResults) -> Vec<FunnelTrendResult> {
    match results {
        FunnelResults::Trends(trends) => trends,
        _ => Vec::new(),
    }
}

/// The persons of a step, or those who did all steps before it and not it.
fn step_count(steps: &[FunnelStepResult], at: usize, is_dropped: bool) -> u64 {
    match is_dropped {
        true => steps[at - 1].count - steps[at].count,
        false => steps[at].count,
    }
}

fn check_funnel(numbers: &Numbers<'_>, random: &mut Random) {
    let query = by_person::any_funnel(random);
    let mut wide = query.clone();
    if let Some(filter) = &mut wide.breakdown {
        filter.limit = 500;
    }
    let group_type = query.scope.group_type;
    let source = |members| node("FunnelsActorsQuery", &Query::Funnels(query.clone()), members);
    let results = || by_person::expected_funnel(numbers.case, &query).results;
    for steps in steps_of(results()) {
        let value = steps[0].breakdown_value.clone();
        for (at, is_dropped) in [(0, false), (1, false), (1, true), (steps.len() - 1, true)] {
            let number = i64::try_from(at + 1).unwrap() * if is_dropped { -1 } else { 1 };
            let source = source(json!({ "funnelStep": number, "funnelStepBreakdown": value }));
            let is_behind = |single: &Case| {
                let found = steps_of(by_person::expected_funnel(single, &wide).results);
                let found = found.into_iter().find(|of| of[0].breakdown_value == value);
                found.is_some_and(|steps| step_count(&steps, at, is_dropped) > 0)
            };
            let is_behind: &dyn Fn(&Case) -> bool = &is_behind;
            let is_behind = (!is_other(value.as_ref())).then_some(is_behind);
            numbers.check(&source, group_type, Some(step_count(&steps, at, is_dropped)), is_behind);
        }
    }
    for result in rates_of(results()) {
        let value = &result.breakdown_value;
        for day in some(random, result.days.len()) {
            let list = |is_dropped: bool| {
                let source = source(json!({ "funnelTrendsEntrancePeriodStart": result.days[day],
                    "funnelTrendsDropOff": is_dropped, "funnelStepBreakdown": value }));
                let is_behind = |single: &Case| {
                    let found = rates_of(by_person::expected_funnel(single, &wide).results);
                    let found = found.into_iter().find(|of| of.breakdown_value == *value);
                    found.is_some_and(|found| found.data[day].value() > 0.0)
                };
                let is_behind: &dyn Fn(&Case) -> bool = &is_behind;
                let is_checked = !is_dropped && !is_other(value.as_ref());
                numbers.check(&source, group_type, None, is_checked.then_some(is_behind)).len()
            };
            let (converted, dropped) = (list(false), list(true));
            let rate = match converted + dropped {
                0 => 0.0,
                began => (converted as f64 * 100.0 / began as f64 * 100.0).round() / 100.0,
            };
            assert_eq!(result.data[day].value(), rate, "{}", source(json!({})));
        }
    }
}

fn check_retention(numbers: &Numbers<'_>, random: &mut Random) {
    let query = by_person::any_retention(random);
    let mut wide = query.clone();
    if let Some(filter) = &mut wide.breakdown {
        filter.limit = 500;
    }
    let results = by_person::expected_retention(numbers.case, &query).results;
    for at in some(random, results.len()) {
        let (result, value) = (&results[at], &results[at].breakdown_value);
        let is_of = |of: &&weir_questions::results::RetentionResult| of.breakdown_value == *value;
        let period = results[..at].iter().filter(is_of).count();
        for after in some(random, result.values.len()) {
            let members = json!({ "interval": period, "appearance": after, "breakdown": value });
            let source = node("InsightActorsQuery", &Query::Retention(query.clone()), members);
            let is_behind = |single: &Case| {
                let found = by_person::expected_retention(single, &wide).results;
                let mut found = found.iter().filter(is_of);
                found.nth(period).is_some_and(|found| found.values[after].count > 0)
            };
            let is_behind: &dyn Fn(&Case) -> bool = &is_behind;
            let is_behind = (!is_other(value.as_ref())).then_some(is_behind);
            let count = Some(result.values[after].count);
            numbers.check(&source, query.scope.group_type, count, is_behind);
        }
    }
}

fn check_stickiness(numbers: &Numbers<'_>, random: &mut Random) {
    let query = by_person::any_stickiness(random);
    let results = by_person::expected_stickiness(numbers.case, &query).results;
    for at in some(random, results.len()) {
        let result = &results[at];
        for day in some(random, result.data.len()) {
            let members = json!({ "day": day + 1, "series": result.action.order,
                "compare": label(result.compare_label) });
            let source = node("InsightActorsQuery", &Query::Stickiness(query.clone()), members);
            let is_behind = |single: &Case| {
                by_person::expected_stickiness(single, &query).results[at].data[day] > 0
            };
            let series = &query.series[result.action.order];
            let group_type = query.scope.group_type.or(series.math.group_type());
            numbers.check(&source, group_type, Some(result.data[day]), Some(&is_behind));
        }
    }
}

fn check_lifecycle(numbers: &Numbers<'_>, random: &mut Random) {
    let query = by_person::any_lifecycle(random);
    let results = by_person::expected_lifecycle(numbers.case, &query).results;
    for (at, result) in results.iter().enumerate() {
        for day in some(random, result.data.len()) {
            if !is_unique(&result.days, day) {
                continue;
            }
            let members = json!({ "day": result.days[day], "status": result.status });
            let source = node("InsightActorsQuery", &Query::Lifecycle(query.clone()), members);
            let is_behind = |single: &Case| {
                by_person::expected_lifecycle(single, &query).results[at].data[day].value() != 0.0
            };
            let count = result.data[day].value().abs() as u64;
            numbers.check(&source, None, Some(count), Some(&is_behind));
        }
    }
}

fn check_paths(numbers: &Numbers<'_>, random: &mut Random) {
    let query = paths::any_question(random);
    let mut wide = query.clone();
    (wide.filter.edges, wide.filter.least) = (1_000, None);
    let results = paths::expected(numbers.case, &query).results;
    for at in some(random, results.len()) {
        let result = &results[at];
        let mut source = node("InsightActorsQuery", &Query::Paths(query.clone()), json!({}));
        let is_behind = |single: &Case| {
            let edges = paths::expected(single, &wide).results;
            edges
                .iter()
                .any(|edge| (&edge.source, &edge.target) == (&result.source, &result.target))
        };
        source["source"]["pathsFilter"]["pathStartKey"] = json!(result.source);
        source["source"]["pathsFilter"]["pathEndKey"] = json!(result.target);
        let group_type = query.scope.group_type;
        let found = numbers.check(&source, group_type, None, Some(&is_behind));
        assert!(found.len() as u64 <= result.value, "{source}");
        // All who came to a step, or ended with it.
        source["source"]["pathsFilter"]["pathStartKey"] = Value::Null;
        let came = numbers.all(&source, false);
        assert!(found.iter().all(|one| came.contains(one)), "{source}");
        source["source"]["pathsFilter"]["pathEndKey"] = Value::Null;
        source["source"]["pathsFilter"]["pathDropoffKey"] = json!(result.target);
        let ended = numbers.all(&source, false);
        assert!(ended.iter().all(|one| came.contains(one)), "{source}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn every_number_is_that_of_its_persons(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let case = case(&mut random, 120);
        let numbers = Numbers::new(&case);
        for _ in 0..3 {
            check_trends(&numbers, &mut random);
            check_funnel(&numbers, &mut random);
            check_retention(&numbers, &mut random);
            check_stickiness(&numbers, &mut random);
            check_lifecycle(&numbers, &mut random);
            check_paths(&numbers, &mut random);
        }
    }
}

fn trend(members: Value) -> Value {
    let mut node = json!({ "kind": "InsightActorsQuery", "source": { "kind": "TrendsQuery",
        "series": [{ "event": null }], "dateRange": { "date_from": "-60d" } } });
    node.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    node
}

#[test]
fn rows_have_the_records_of_persons_in_the_order_of_the_question() {
    let mut random = Random::new(11);
    let layouts = [(Layout::Blocks, 1), (Layout::Segments, 2)];
    let case = case_of(&mut random, 12, 400, &layouts);
    let numbers = Numbers::new(&case);
    let records = case.world.records();
    let all = numbers.list(&trend(json!({})), &json!(["person", "event_count"]), 100, 0);
    let persons = different(case.world.counted().into_iter().map(|event| event.person));
    assert_eq!(all.results.len(), persons.len());
    let mut missing = 0;
    for person in persons {
        let id = json!(World::person_id(&person).to_string());
        let row = all.results.iter().find(|row| row[0]["id"] == id).unwrap();
        if let Some(record) = records.get(&person) {
            assert_eq!(row[0]["distinct_ids"], json!(record.distinct_ids));
            assert_eq!(row[0]["is_identified"], json!(record.is_identified));
            let properties: Value = serde_json::from_str(&record.properties).unwrap();
            assert_eq!(row[0]["properties"], properties);
        } else {
            missing += 1;
            // The first one of those with events.
            let events = case.world.counted_events().into_iter();
            let own = events.filter(|(_, of)| *of == person).map(|(event, _)| &event.distinct_id);
            assert_eq!(row[0]["distinct_ids"], json!([own.min().unwrap()]));
            assert_eq!(row[0]["created_at"], Value::Null);
        }
    }
    assert_eq!(all.missing_actors_count, missing);
    for (order, column) in [("event_count DESC", "event_count"), ("created_at", "created_at")] {
        let query = read(&json!({ "kind": "ActorsQuery", "source": trend(json!({})),
            "select": [column, "id"], "orderBy": [order] }));
        let found = case.same(order, |rows, run| actors(rows, run, &case.asked(), &query).unwrap());
        let keys = |row: &Vec<Value>| {
            let key = match &row[0] {
                Value::Number(number) => -number.as_i64().unwrap(),
                // It is before all others.
                Value::Null => i64::MIN,
                time => weir_model::Timestamp::parse(time.as_str().unwrap()).unwrap().micros(),
            };
            (key, row[1].as_str().unwrap().to_owned())
        };
        let keys: Vec<(i64, String)> = found.results.iter().map(keys).collect();
        assert!(keys.is_sorted(), "{keys:?}");
    }
    let groups = trend(json!({ "source": { "kind": "TrendsQuery", "series": [
        { "math": "unique_group", "math_group_type_index": 0 }],
        "dateRange": { "date_from": "-60d" } } }));
    let found = numbers.list(&groups, &json!(["group", "created_at"]), 100, 0);
    let keys: Vec<&Value> = found.results.iter().map(|row| &row[0]["group_key"]).collect();
    assert_eq!(keys, ["3", "acme", "corp"]);
    assert_eq!(found.results[0][0]["group_properties"], json!({ "size": 2.5 }));
    assert_eq!((&found.results[2][1], found.missing_actors_count), (&Value::Null, 1));
}

#[test]
fn a_number_that_is_not_there_is_refused_and_memory_is_bounded() {
    let mut random = Random::new(7);
    let case = case_of(&mut random, 900, 4_000, &[(Layout::Blocks, 1)]);
    let ask = |query: &ActorsQuery, memory: usize| {
        case.same("", |rows, _| {
            let (cancel, memory) = (Cancel::default(), MemoryPool::new(memory));
            let run = Run { threads: 1, cancel: &cancel, memory: &memory };
            let found = actors(rows, &run, &case.asked(), query);
            assert_eq!(memory.used(), 0);
            match found {
                Ok(found) => Ok(found.actors_count),
                Err(AnswerError::Field(fault)) => Err(fault.attr.unwrap()),
                Err(AnswerError::Memory { .. }) => Err("memory".to_owned()),
                Err(error) => panic!("{error}"),
            }
        })
    };
    let list = |source: Value| read(&json!({ "kind": "ActorsQuery", "source": source }));
    for (source, attr) in [
        (trend(json!({ "day": "2020-01-01" })), "source__day"),
        (
            json!({ "kind": "InsightActorsQuery", "source": { "kind": "RetentionQuery",
                "retentionFilter": {} }, "interval": 500 }),
            "source__interval",
        ),
        (
            json!({ "kind": "FunnelsActorsQuery", "source": { "kind": "FunnelsQuery",
                "series": [{}, {}], "funnelsFilter": { "funnelVizType": "trends" } },
                "funnelTrendsEntrancePeriodStart": "2031-01-01" }),
            "source__funnelTrendsEntrancePeriodStart",
        ),
        (
            trend(json!({ "source": { "kind": "TrendsQuery", "series": [{}],
                "properties": [{ "key": "tier", "type": "person", "operator": "is_set" }] } })),
            "source__source__properties",
        ),
    ] {
        assert_eq!(ask(&list(source), MEMORY), Err(attr.to_owned()));
    }
    let query = list(trend(json!({})));
    let count = ask(&query, MEMORY).unwrap();
    assert!(count > 300, "{count}");
    assert_eq!(ask(&query, 2_000), Err("memory".to_owned()));
    assert!(!actors_times(&case.asked(), &query).unwrap().is_empty());
}
