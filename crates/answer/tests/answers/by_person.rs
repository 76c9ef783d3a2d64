//! Questions over the events of each person: funnels, retention, stickiness, lifecycle.

use std::collections::BTreeMap;
use std::ops::Range;

use proptest::prelude::*;
use serde_json::{Value, json};
use weir_answer::{
    AnswerError, Cancel, Found, FunnelResults, MemoryPool, Run, funnel, lifecycle, retention,
    stickiness,
};
use weir_model::Timestamp;
use weir_questions::Query;
use weir_questions::evaluate::{
    BreakdownRank, ExclusionRange, FunnelEvent, FunnelOutcome, FunnelRules, FunnelTotals,
    Lifecycle, RETURNING, Retention, RetentionEvent, Stickiness, TARGET, breakdown_text, by_value,
    histogram,
};
use weir_questions::query::{
    AttributionKind, BreakdownFilter, FunnelOrder, FunnelVisualization, FunnelsQuery,
    LifecycleQuery, LifecycleStatus, RetentionQuery, Scope, StickinessQuery,
};
use weir_questions::results::{
    Axis, BreakdownValue, CompareLabel, FunnelTrendResult, LifecycleResult, ResolvedRange,
    RetentionResult, StickinessResult, funnel_steps, retention as retention_results,
};

use crate::source::{Layout, first_seen};
use crate::trends::{is_of, passes};
use crate::world::{
    Event, NAMES, Random, any_breakdown, any_dates, any_event, any_filters, case, case_of,
};
use crate::{Case, MEMORY};

fn read(query: &Value) -> Query {
    Query::read(query).unwrap_or_else(|fault| panic!("{query}: {fault:?}"))
}

fn with_scope(random: &mut Random, mut query: Value) -> Value {
    query["dateRange"] = any_dates(random);
    query["properties"] = any_filters(random);
    query["filterTestAccounts"] = json!(random.one_in(4));
    query
}

fn any_series(random: &mut Random, least: usize, most: usize) -> Vec<Value> {
    let count = least + random.below(most - least + 1);
    let one = |random: &mut Random| {
        let mut series = json!({ "event": any_event(random) });
        if random.one_in(4) {
            series["properties"] = any_filters(random);
        }
        series
    };
    (0..count).map(|_| one(random)).collect()
}

/// The events that pass the filters of a question, by person or group.
pub(crate) fn by_actor(
    case: &Case,
    scope: &Scope,
    group_type: Option<u8>,
) -> BTreeMap<String, Vec<Event>> {
    let mut actors: BTreeMap<String, Vec<Event>> = BTreeMap::new();
    for event in case.world.counted() {
        let is_kept = passes(case, &event, &scope.properties)
            && (!scope.filter_test_accounts || passes(case, &event, &case.internal));
        if let Some(actor) = event.actor(group_type).filter(|_| is_kept) {
            actors.entry(actor).or_default().push(event);
        }
    }
    actors
}

type Key = Vec<Option<String>>;

fn key(filter: Option<&BreakdownFilter>, event: &Event) -> Key {
    let breakdowns = filter.map_or(&[][..], |filter| &filter.breakdowns);
    breakdowns.iter().map(|of| breakdown_text(of, event.property(&of.property))).collect()
}

/// The value of all others.
fn others_key() -> Key {
    vec![Some("all others".to_owned())]
}

/// The first values by the number of their persons, and the others together: what `count` says
/// of them if they are one value.
fn shown<T>(
    filter: &BreakdownFilter,
    values: BTreeMap<Key, T>,
    persons: impl Fn(&T) -> u64,
    count: impl FnOnce(&[Key]) -> T,
) -> (Vec<(BreakdownValue, T)>, bool) {
    let mut values: Vec<(Key, T)> = values.into_iter().collect();
    values.sort_by(|(a, a_total), (b, b_total)| {
        let a: Vec<Option<&str>> = a.iter().map(Option::as_deref).collect();
        let b: Vec<Option<&str>> = b.iter().map(Option::as_deref).collect();
        let rank = |total: &T| persons(total) as f64;
        BreakdownRank { total: rank(a_total), values: &a }
            .cmp(&BreakdownRank { total: rank(b_total), values: &b })
    });
    let has_more = values.len() > filter.limit;
    values.truncate(filter.limit);
    let first: Vec<Key> = values.iter().map(|(key, _)| key.clone()).collect();
    let mut shown: Vec<(BreakdownValue, T)> =
        values.into_iter().map(|(key, total)| (BreakdownValue::new(filter, &key), total)).collect();
    if has_more && !filter.hides_other {
        shown.push((BreakdownValue::other(filter), count(&first)));
    }
    (shown, has_more)
}

fn resolved(begin: i64, end: i64) -> ResolvedRange {
    ResolvedRange {
        date_from: Timestamp::from_micros(begin),
        date_to: Timestamp::from_micros(end - 1),
    }
}

pub(crate) fn any_funnel(random: &mut Random) -> FunnelsQuery {
    let series = any_series(random, 2, 4);
    let order = *random.pick(&["ordered", "strict", "unordered"]);
    let visualization = match order {
        "unordered" => *random.pick(&["steps", "time_to_convert"]),
        _ => *random.pick(&["steps", "time_to_convert", "trends"]),
    };
    let mut filter = json!({
        "funnelOrderType": order,
        "funnelVizType": visualization,
        "funnelWindowInterval": 1 + random.below(20),
        "funnelWindowIntervalUnit": random.pick(&["hour", "day", "minute"]),
    });
    if random.one_in(3) {
        let last = series.len() - 1;
        filter["exclusions"] = json!([{ "kind": "EventsNode", "event": random.pick(&NAMES),
            "funnelFromStep": 0, "funnelToStep": last }]);
    }
    if random.one_in(3) {
        filter["funnelFromStep"] = json!(0);
        filter["funnelToStep"] = json!(1);
    }
    let mut query = json!({ "kind": "FunnelsQuery", "series": series,
        "interval": random.pick(&["day", "week"]) });
    if visualization != "time_to_convert" && random.one_in(2) {
        query["breakdownFilter"] = any_breakdown(random);
        let kinds = ["first_touch", "last_touch", "all_events", "step"];
        let kind = kinds[random.below(if order == "unordered" { 3 } else { 4 })];
        filter["breakdownAttributionType"] = json!(kind);
        if kind == "step" {
            filter["breakdownAttributionValue"] = json!(1);
        }
    }
    if random.one_in(6) {
        query["aggregation_group_type_index"] = json!(0);
    }
    query["funnelsFilter"] = filter;
    match read(&with_scope(random, query)) {
        Query::Funnels(query) => query,
        other => panic!("{other:?}"),
    }
}

struct FunnelValue {
    totals: FunnelTotals,
    intervals: Vec<(u64, u64)>,
    began: u64,
}

pub(crate) fn expected_funnel(case: &Case, query: &FunnelsQuery) -> Found<FunnelResults> {
    let filter = &query.filter;
    let dates = &query.scope.dates;
    let range =
        case.calendar.range(dates, query.interval, case.now, case.world.earliest()).unwrap();
    let is_trend = filter.visualization == FunnelVisualization::Trends;
    let (mut times, mut intervals, mut axis) =
        (range.begin()..range.end(), Vec::new(), Axis::default());
    if is_trend {
        let buckets = case.calendar.buckets(&range).unwrap();
        times = buckets.begin()..buckets.end();
        intervals = buckets.boundaries().windows(2).map(|pair| pair[0]..pair[1]).collect();
        axis = Axis::from(&buckets);
    }
    let exclusions = filter.exclusions.iter().map(|exclusion| ExclusionRange {
        from_step: exclusion.from_step,
        to_step: exclusion.to_step,
    });
    let steps = query.series.len();
    let rules = FunnelRules::new(steps, filter.order, filter.window.micros(), exclusions.collect());
    let empty = || FunnelValue {
        totals: FunnelTotals::new(steps),
        intervals: vec![(0, 0); intervals.len()],
        began: 0,
    };
    // A person may belong to several values.
    let kinds = [AttributionKind::AllEvents, AttributionKind::Step];
    let is_divided = kinds.contains(&filter.attribution.kind);
    // The totals by value, of which all but the first ones are one.
    let count = |first: Option<&[Key]>| {
        let mut values: BTreeMap<Key, FunnelValue> = BTreeMap::new();
        let mut all_times = Vec::new();
        let is_other = |key: &Key| first.is_some_and(|first| !first.contains(key));
        let mut add = |key: Key, interval: usize, outcome: &FunnelOutcome| {
            if outcome.steps() == 0 {
                return;
            }
            let key = if is_other(&key) { others_key() } else { key };
            let value = values.entry(key).or_insert_with(empty);
            all_times.extend(outcome.between(filter.from_step, filter.to_step));
            if is_trend {
                let did = |step: usize| u64::from(outcome.steps() > step);
                value.intervals[interval].0 += did(filter.from_step);
                value.intervals[interval].1 += did(filter.to_step);
                value.began += did(filter.from_step);
            } else {
                value.totals.add(outcome);
                value.began += 1;
            }
        };
        let outcomes = |events: &[FunnelEvent]| -> Vec<(usize, FunnelOutcome)> {
            if !is_trend {
                return vec![(0, rules.person(events, &times))];
            }
            let of = |(at, interval): (usize, &Range<i64>)| {
                (at, rules.person_of_bucket(events, &times, interval))
            };
            intervals.iter().enumerate().map(of).collect()
        };
        for (_, events) in by_actor(case, &query.scope, query.scope.group_type) {
            let mut own: Vec<(i64, u64, u64, Key)> = Vec::new();
            for event in events.iter().filter(|event| times.contains(&event.time)) {
                let nodes = query.series.iter().chain(filter.exclusions.iter().map(|of| &of.event));
                let nodes = nodes.enumerate().filter(|(_, node)| is_of(case, event, node));
                let mask = nodes.fold(0_u64, |mask, (at, _)| mask | 1 << at);
                if mask != 0 || filter.order == FunnelOrder::Strict {
                    let arrival =
                        if filter.order == FunnelOrder::Strict { event.arrival } else { 0 };
                    let key = key(query.breakdown.as_ref(), event);
                    let key = if is_divided && is_other(&key) { others_key() } else { key };
                    own.push((event.time, arrival, mask, key));
                }
            }
            own.sort();
            let event = |(time, _, mask, _): &(i64, u64, u64, Key)| FunnelEvent {
                time: *time,
                steps: (mask & ((1 << steps) - 1)) as u32,
                exclusions: (mask >> steps) as u32,
            };
            let funnel: Vec<FunnelEvent> = own.iter().map(event).collect();
            if query.breakdown.is_none() {
                for (interval, outcome) in outcomes(&funnel) {
                    add(Vec::new(), interval, &outcome);
                }
                continue;
            }
            // The values in their order; one without any text is none.
            let mut keys: Vec<Key> = own.iter().map(|(.., key)| key.clone()).collect();
            keys.sort();
            keys.dedup();
            let value = |(.., key): &(i64, u64, u64, Key)| {
                let number = u32::try_from(keys.binary_search(key).unwrap()).unwrap();
                key.iter().any(Option::is_some).then_some(number)
            };
            let values: Vec<Option<u32>> = own.iter().map(value).collect();
            by_value(filter.attribution, &funnel, &values, &times, |value, events| {
                let none = || vec![None; query.breakdown.as_ref().unwrap().breakdowns.len()];
                let key = value.map_or_else(none, |value| keys[value as usize].clone());
                for (interval, outcome) in outcomes(events) {
                    add(key.clone(), interval, &outcome);
                }
            })
            .unwrap();
        }
        (values, all_times)
    };
    let (mut values, all_times) = count(None);
    let (values, has_more) = match &query.breakdown {
        None => {
            let all = values.remove(&Vec::new()).unwrap_or_else(empty);
            (vec![(None, all)], None)
        }
        Some(filter) => {
            let filter = &filter.of_funnels();
            let (values, has_more) = shown(
                filter,
                values,
                |of| of.began,
                |first| count(Some(first)).0.remove(&others_key()).unwrap_or_else(empty),
            );
            let values = values.into_iter().map(|(value, of)| (Some(value), of)).collect();
            (values, Some(has_more))
        }
    };
    let trend = |(value, of): &(Option<BreakdownValue>, FunnelValue)| {
        FunnelTrendResult::new(&axis, &of.intervals, value.as_ref())
    };
    let shown_steps = |(value, of): &(Option<BreakdownValue>, FunnelValue)| {
        funnel_steps(&query.series, filter.order, &of.totals.steps(), value.as_ref())
    };
    let results = match filter.visualization {
        FunnelVisualization::TimeToConvert => {
            FunnelResults::Times(histogram(&all_times, filter.bins).into())
        }
        FunnelVisualization::Trends => FunnelResults::Trends(values.iter().map(trend).collect()),
        FunnelVisualization::Steps if query.breakdown.is_none() => {
            FunnelResults::Steps(shown_steps(&values[0]))
        }
        FunnelVisualization::Steps => {
            FunnelResults::Values(values.iter().map(shown_steps).collect())
        }
    };
    Found { results, has_more, range: resolved(times.start, times.end) }
}

pub(crate) fn any_retention(random: &mut Random) -> RetentionQuery {
    let entity = |random: &mut Random| {
        let mut entity = json!({ "id": any_event(random), "type": "events" });
        if random.one_in(4) {
            entity["properties"] = any_filters(random);
        }
        entity
    };
    let (target, returning) = (entity(random), entity(random));
    let mut query = json!({ "kind": "RetentionQuery", "retentionFilter": {
        "retentionType": random.pick(&["retention_first_time", "retention_recurring"]),
        "totalIntervals": 2 + random.below(8),
        "period": random.pick(&["Day", "Week", "Hour"]),
        "targetEntity": target,
        "returningEntity": returning,
        "cumulative": random.one_in(3),
        "minimumOccurrences": 1 + random.below(2),
    } });
    if random.one_in(2) {
        query["breakdownFilter"] = any_breakdown(random);
    }
    if random.one_in(6) {
        query["aggregation_group_type_index"] = json!(0);
    }
    let mut query = with_scope(random, query);
    if random.one_in(2) {
        query["dateRange"] = json!({});
    }
    match read(&query) {
        Query::Retention(query) => query,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn expected_retention(
    case: &Case,
    query: &RetentionQuery,
) -> Found<Vec<RetentionResult>> {
    let filter = &query.filter;
    let periods = case
        .calendar
        .periods(&query.scope.dates, filter.period, filter.total, case.now, case.world.earliest())
        .unwrap();
    let times = periods.begin()..periods.end();
    let boundaries = periods.boundaries();
    let empty = || {
        let total = filter.total as usize;
        Retention::new(boundaries, filter.kind, total, filter.is_cumulative, filter.occurrences)
    };
    // The counts by value, of which all but the first ones are one.
    let count = |first: Option<&[Key]>| {
        let mut values: BTreeMap<Key, (Retention, u64)> = BTreeMap::new();
        for (_, mut events) in by_actor(case, &query.scope, query.scope.group_type) {
            events.sort_by_key(|event| (event.time, event.arrival));
            let entities = |event: &Event| {
                let is = |entity: &weir_questions::query::RetentionEntity| {
                    entity.event.as_ref().is_none_or(|name| *name == event.name)
                        && passes(case, event, &entity.properties)
                };
                u8::from(is(&filter.target)) * TARGET + u8::from(is(&filter.returning)) * RETURNING
            };
            let key = |event: &Event| {
                let key = key(query.breakdown.as_ref(), event);
                let is_other = first.is_some_and(|first| !first.contains(&key));
                if is_other { others_key() } else { key }
            };
            // All of them, also before the range; none after it.
            let own: Vec<(RetentionEvent, Key)> = events
                .iter()
                .filter(|event| event.time < times.end)
                .map(|event| {
                    let entities = entities(event);
                    (RetentionEvent { time: event.time, entities }, key(event))
                })
                .collect();
            let mut keys: Vec<Key> = own.iter().map(|(_, key)| key.clone()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let events = own.iter().filter(|(_, other)| *other == key);
                let events: Vec<RetentionEvent> = events.map(|(event, _)| *event).collect();
                let mut counted = empty();
                counted.person(&events);
                if counted.counts().iter().any(|counts| counts.first() > Some(&0)) {
                    let (all, began) = values.entry(key).or_insert_with(|| (empty(), 0));
                    all.merge(counted);
                    *began += 1;
                }
            }
        }
        values
    };
    let mut values = count(None);
    let (results, has_more) = match &query.breakdown {
        None => {
            let all = values.remove(&Vec::new()).map_or_else(empty, |(all, _)| all);
            (retention_results(filter.period, boundaries, all.counts(), None), None)
        }
        Some(breakdown) => {
            let (values, has_more) = shown(
                breakdown,
                values,
                |of| of.1,
                |first| count(Some(first)).remove(&others_key()).unwrap_or_else(|| (empty(), 0)),
            );
            let results = values.iter().flat_map(|(value, (of, _))| {
                retention_results(filter.period, boundaries, of.counts(), Some(value))
            });
            (results.collect(), Some(has_more))
        }
    };
    Found { results, has_more, range: resolved(times.start, times.end) }
}

pub(crate) fn any_stickiness(random: &mut Random) -> StickinessQuery {
    let mut series = any_series(random, 1, 3);
    for series in &mut series {
        if random.one_in(3) {
            series["math"] = json!("unique_group");
            series["math_group_type_index"] = json!(0);
        }
    }
    let mut query = json!({
        "kind": "StickinessQuery",
        "series": series,
        "interval": random.pick(&["day", "week", "hour"]),
        "stickinessFilter": {
            "stickinessCriteria": { "operator": random.pick(&["gte", "lte", "exact"]),
                "value": 1 + random.below(2) },
            "computedAs": random.pick(&["cumulative", "non_cumulative"]),
        },
    });
    if random.one_in(2) {
        query["compareFilter"] = json!({ "compare": true });
    }
    match read(&with_scope(random, query)) {
        Query::Stickiness(query) => query,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn expected_stickiness(
    case: &Case,
    query: &StickinessQuery,
) -> Found<Vec<StickinessResult>> {
    let dates = &query.scope.dates;
    let range =
        case.calendar.range(dates, query.interval, case.now, case.world.earliest()).unwrap();
    let mut ranges = vec![range];
    if let Some(compare) = &query.compare {
        ranges.push(case.calendar.previous(dates, &range, compare).unwrap());
    }
    let mut results = Vec::new();
    let mut range = None;
    for (number, of) in ranges.iter().enumerate() {
        let buckets = case.calendar.buckets(of).unwrap();
        range.get_or_insert(resolved(buckets.begin(), buckets.end()));
        for (at, series) in query.series.iter().enumerate() {
            let mut counted = Stickiness::new(buckets.boundaries(), query.filter.criteria);
            let group_type = query.scope.group_type.or(series.math.group_type());
            for (_, mut events) in by_actor(case, &query.scope, group_type) {
                events.sort_by_key(|event| event.time);
                let own = events.iter().filter(|event| {
                    is_of(case, event, series)
                        && (buckets.begin()..buckets.end()).contains(&event.time)
                });
                counted.person(own.map(|event| event.time));
            }
            let is_cumulative = query.filter.is_cumulative;
            let (counts, data) = (counted.counts(false), counted.counts(is_cumulative));
            let result =
                StickinessResult::new(series, at, query.interval, &counts, data, is_cumulative);
            let labels = [CompareLabel::Current, CompareLabel::Previous];
            results.push(match query.compare {
                Some(_) => result.compared(labels[number]),
                None => result,
            });
        }
    }
    Found { results, has_more: None, range: range.unwrap() }
}

pub(crate) fn any_lifecycle(random: &mut Random) -> LifecycleQuery {
    let query = json!({ "kind": "LifecycleQuery", "series": any_series(random, 1, 1),
        "interval": random.pick(&["day", "week", "hour", "month"]) });
    match read(&with_scope(random, query)) {
        Query::Lifecycle(query) => query,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn expected_lifecycle(
    case: &Case,
    query: &LifecycleQuery,
) -> Found<Vec<LifecycleResult>> {
    let dates = &query.scope.dates;
    let range =
        case.calendar.range(dates, query.interval, case.now, case.world.earliest()).unwrap();
    let buckets = case.calendar.buckets(&range).unwrap();
    let first = buckets.boundaries()[0];
    let before = case.calendar.interval_before(&buckets).unwrap();
    let seen = first_seen(&case.world);
    let mut counted = Lifecycle::new(before, buckets.boundaries());
    for (person, mut events) in by_actor(case, &query.scope, None) {
        events.sort_by_key(|event| event.time);
        let own = events.iter().filter(|event| {
            let is_in = (before..first).contains(&event.time)
                || (buckets.begin()..buckets.end()).contains(&event.time);
            is_in && is_of(case, event, &query.series[0])
        });
        counted.person(seen[&person], own.map(|event| event.time));
    }
    let axis = Axis::from(&buckets);
    let result = |status: &LifecycleStatus| {
        LifecycleResult::new(&query.series[0], &axis, *status, counted.counts(*status))
    };
    let results = LifecycleStatus::ALL.iter().map(result).collect();
    Found { results, has_more: None, range: resolved(buckets.begin(), buckets.end()) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn persons_are_those_of_all_events(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let case = case(&mut random, 150);
        for _ in 0..4 {
            let query = any_funnel(&mut random);
            case.assert_answers(&expected_funnel(&case, &query), |source, run, asked| {
                funnel(source, run, asked, &query)
            });
            let query = any_retention(&mut random);
            case.assert_answers(&expected_retention(&case, &query), |source, run, asked| {
                retention(source, run, asked, &query)
            });
            let query = any_stickiness(&mut random);
            case.assert_answers(&expected_stickiness(&case, &query), |source, run, asked| {
                stickiness(source, run, asked, &query)
            });
            let query = any_lifecycle(&mut random);
            case.assert_answers(&expected_lifecycle(&case, &query), |source, run, asked| {
                lifecycle(source, run, asked, &query)
            });
        }
    }
}

#[test]
fn passes_give_the_same_answer_in_less_memory() {
    let mut random = Random::new(5);
    let case = case_of(&mut random, 1_500, 60_000, &[(Layout::Blocks, 1)]);
    let query = json!({ "kind": "FunnelsQuery", "dateRange": { "date_from": "-60d" },
        "series": [{ "event": null }, { "event": "buy" }, { "event": "sign up" }] });
    let Query::Funnels(query) = read(&query) else { panic!() };
    let expected = expected_funnel(&case, &query);
    let (source, _) = &case.sources[0];
    let answer = |memory: usize, threads: usize| {
        let (cancel, memory) = (Cancel::default(), MemoryPool::new(memory));
        let run = Run { threads, cancel: &cancel, memory: &memory };
        let found = funnel(source, &run, &case.asked(), &query);
        assert_eq!(memory.used(), 0);
        found
    };
    assert_eq!(answer(MEMORY, 1).unwrap(), expected);
    // A third of what the events of all persons take.
    assert_eq!(answer(60_000 * 16 / 3, 1).unwrap(), expected);
    assert_eq!(answer(60_000 * 16 / 2, 3).unwrap(), expected);
    assert!(matches!(answer(10_000, 1), Err(AnswerError::Memory { .. })));
}
