//! Trends.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};
use weir_answer::{AnswerError, Cancel, Found, MemoryPool, Run, trends};
use weir_model::Timestamp;
use weir_questions::Query;
use weir_questions::evaluate::{
    BreakdownRank, ExactSum, Matcher, NumberRanges, Numeric, breakdown_text, percentile,
};
use weir_questions::query::{
    Breakdown, Display, EventsNode, Filter, FilterGroup, Logic, Math, PropertyMath, TrendsQuery,
};
use weir_questions::results::{
    Amount, Axis, BreakdownValue, CompareLabel, ResolvedRange, TrendsResult, with_formula,
};

use crate::source::Layout;
use crate::world::{
    Event, Random, any_breakdown, any_dates, any_event, any_filters, case, case_of, different,
};
use crate::{Case, MEMORY};

fn any_math(random: &mut Random) -> Value {
    let maths = ["sum", "avg", "min", "max", "median", "p90", "p99"];
    match random.below(5) {
        0 => json!({ "math": "dau" }),
        1 => json!({ "math": "unique_session" }),
        2 => json!({ "math": "unique_group", "math_group_type_index": 0 }),
        3 => json!({ "math": random.pick(&maths), "math_property": "price" }),
        _ => json!({ "math": "total" }),
    }
}

pub(crate) fn any_question(random: &mut Random) -> TrendsQuery {
    let series = (0..=random.below(3)).map(|_| {
        let mut series = any_math(random);
        series["event"] = json!(any_event(random));
        if random.one_in(3) {
            series["properties"] = any_filters(random);
        }
        series
    });
    let series: Vec<Value> = series.collect();
    let display = ["ActionsLineGraph", "ActionsLineGraphCumulative", "BoldNumber", "ActionsTable"];
    let mut filter = json!({ "display": random.pick(&display) });
    if random.one_in(4) {
        filter["formulaNodes"] = match series.len() {
            1 => json!([{ "formula": "A * 2" }]),
            _ => json!([{ "formula": "A / B" }, { "formula": "A + B", "custom_name": "all" }]),
        };
    }
    let mut query = json!({
        "kind": "TrendsQuery",
        "dateRange": any_dates(random),
        "interval": random.pick(&["day", "hour", "week", "month"]),
        "series": series,
        "trendsFilter": filter,
        "properties": any_filters(random),
        "filterTestAccounts": random.one_in(4),
    });
    if random.one_in(6) {
        query["aggregation_group_type_index"] = json!(0);
    }
    if random.one_in(2) {
        query["breakdownFilter"] = match random.one_in(4) {
            true => json!({ "breakdowns": [{ "property": random.pick(&["price", "count"]),
                "histogram_bin_count": 1 + random.below(4) }, { "property": "plan" }] }),
            false => any_breakdown(random),
        };
    }
    if random.one_in(3) {
        query["compareFilter"] = match random.one_in(2) {
            true => json!({ "compare": true }),
            false => json!({ "compare": true, "compare_to": "-1m" }),
        };
    }
    match Query::read(&query) {
        Ok(Query::Trends(query)) => query,
        other => panic!("{other:?}"),
    }
}

/// Whether an event passes filters.
pub(crate) fn passes(case: &Case, event: &Event, group: &FilterGroup) -> bool {
    let mut filters = group.filters.iter().map(|filter| match filter {
        Filter::Group(group) => passes(case, event, group),
        Filter::Property(filter) => {
            let matcher = Matcher::new(filter, &case.calendar, case.now).unwrap();
            matcher.matches(event.property(&filter.key))
        }
    });
    match group.logic {
        _ if group.filters.is_empty() => true,
        Logic::And => filters.all(|passes| passes),
        Logic::Or => filters.any(|passes| passes),
    }
}

pub(crate) fn is_of(case: &Case, event: &Event, node: &EventsNode) -> bool {
    node.event.as_ref().is_none_or(|name| *name == event.name)
        && passes(case, event, &node.properties)
}

/// The number of some events.
fn number(query: &TrendsQuery, node: &EventsNode, events: &[&Event]) -> f64 {
    let different = |actor: &dyn Fn(&Event) -> Option<String>| {
        let actors: HashSet<String> = events.iter().filter_map(|event| actor(event)).collect();
        actors.len() as f64
    };
    match &node.math {
        Math::Total => events.len() as f64,
        Math::UniquePersons => different(&|event| event.actor(query.scope.group_type)),
        Math::UniqueGroups(at) => different(&|event| event.actor(Some(*at))),
        Math::UniqueSessions => different(&|event| event.text("$session_id")),
        Math::Property(math, name) => {
            let numbers = events.iter().filter_map(|event| event.property(name).number());
            let mut values: Vec<f64> = numbers.clone().map(Numeric::value).collect();
            if let Some(fraction) = math.percentile() {
                return percentile(&mut values, fraction).unwrap_or(0.0);
            }
            let mut sum = ExactSum::default();
            numbers.for_each(|number| match number {
                Numeric::Whole(whole) if i64::try_from(whole).is_ok() => {
                    sum.add_integer(i64::try_from(whole).unwrap());
                }
                number => sum.add(number.value()),
            });
            match math {
                _ if values.is_empty() => 0.0,
                PropertyMath::Sum => sum.value(),
                PropertyMath::Average => sum.value() / values.len() as f64,
                PropertyMath::Minimum => values.iter().copied().fold(f64::INFINITY, f64::min),
                _ => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            }
        }
    }
}

type Key = Vec<Option<String>>;

/// A range with its intervals.
struct TestRange {
    intervals: Vec<std::ops::Range<i64>>,
    axis: Axis,
    resolved: ResolvedRange,
}

fn ranges(case: &Case, query: &TrendsQuery) -> Vec<TestRange> {
    let dates = &query.scope.dates;
    let range =
        case.calendar.range(dates, query.interval, case.now, case.world.earliest()).unwrap();
    let previous =
        query.compare.map(|compare| case.calendar.previous(dates, &range, &compare).unwrap());
    let test_range = |range: weir_questions::time::TimeRange| {
        let (begin, end, intervals, axis);
        if query.filter.display.is_total() {
            (begin, end) = (range.begin(), range.end());
            intervals = std::iter::once(begin..end).collect();
            axis = Axis::default();
        } else {
            let buckets = case.calendar.buckets(&range).unwrap();
            (begin, end) = (buckets.begin(), buckets.end());
            intervals = (0..buckets.len()).map(|at| buckets.span(at).unwrap()).collect();
            axis = Axis::from(&buckets);
        }
        let resolved = ResolvedRange {
            date_from: Timestamp::from_micros(begin),
            date_to: Timestamp::from_micros(end - 1),
        };
        TestRange { intervals, axis, resolved }
    };
    std::iter::once(range).chain(previous).map(test_range).collect()
}

pub(crate) fn expected(case: &Case, query: &TrendsQuery) -> Found<Vec<TrendsResult>> {
    let ranges = ranges(case, query);
    let events = case.world.counted();
    let kept = |event: &&Event| {
        passes(case, event, &query.scope.properties)
            && (!query.scope.filter_test_accounts || passes(case, event, &case.internal))
    };
    let events: Vec<&Event> = events.iter().filter(kept).collect();
    let within = |test_range: &TestRange, event: &Event| {
        test_range.intervals.iter().any(|interval| interval.contains(&event.time))
    };
    let breakdowns = query.breakdown.as_ref().map_or(&[][..], |filter| &filter.breakdowns);
    // Numbers are divided from the smallest to the largest one in the range of the question.
    let bins = breakdowns.iter().map(|of| {
        let count = of.bins?;
        let is_counted = |event: &&&Event| {
            within(&ranges[0], event) && query.series.iter().any(|node| is_of(case, event, node))
        };
        let numbers = events.iter().filter(is_counted);
        let numbers = numbers.filter_map(|event| event.property(&of.property).number());
        let numbers: Vec<f64> = numbers.map(Numeric::value).collect();
        let least = numbers.iter().copied().reduce(f64::min)?;
        Some(NumberRanges::new(least, numbers.iter().copied().reduce(f64::max)?, count))
    });
    let bins: Vec<Option<NumberRanges>> = bins.collect();
    let key = |event: &Event| -> Key {
        let text = |(of, bins): (&Breakdown, &Option<NumberRanges>)| {
            let value = event.property(&of.property);
            match of.bins {
                Some(_) => bins.as_ref().and_then(|bins| bins.text(bins.index(value)?)),
                None => breakdown_text(of, value),
            }
        };
        breakdowns.iter().zip(&bins).map(text).collect()
    };
    let of_series: Vec<Vec<&Event>> = query
        .series
        .iter()
        .map(|node| events.iter().copied().filter(|event| is_of(case, event, node)).collect())
        .collect();
    let limit = query.breakdown.as_ref().map_or(1, |filter| filter.limit);
    let mut chosen: Vec<Vec<Key>> = Vec::new();
    let mut has_more = false;
    for (node, events) in query.series.iter().zip(&of_series) {
        let current: Vec<&Event> =
            events.iter().copied().filter(|event| within(&ranges[0], event)).collect();
        let mut by_key: HashMap<Key, Vec<&Event>> = HashMap::new();
        current.iter().for_each(|event| by_key.entry(key(event)).or_default().push(event));
        let mut totals: Vec<(Key, f64)> =
            by_key.into_iter().map(|(key, events)| (key, number(query, node, &events))).collect();
        totals.sort_by(|(a, a_total), (b, b_total)| {
            let texts = |key: &Key| -> Vec<Option<String>> { key.clone() };
            let (a, b) = (texts(a), texts(b));
            let a: Vec<Option<&str>> = a.iter().map(Option::as_deref).collect();
            let b: Vec<Option<&str>> = b.iter().map(Option::as_deref).collect();
            BreakdownRank { total: *a_total, values: &a }
                .cmp(&BreakdownRank { total: *b_total, values: &b })
        });
        has_more |= totals.len() > limit;
        chosen.push(totals.into_iter().take(limit).map(|(key, _)| key).collect());
    }
    if query.breakdown.is_none() {
        chosen = vec![vec![Vec::new()]; query.series.len()];
    }
    if !query.filter.formulas.is_empty() {
        let all = different(chosen.iter().flatten().cloned());
        chosen = vec![all; query.series.len()];
        has_more = of_series.iter().zip(&chosen).any(|(events, chosen)| {
            events.iter().any(|event| within(&ranges[0], event) && !chosen.contains(&key(event)))
        });
    }
    // `None`: all other values.
    let result = |range: usize, at: usize, value: Option<&Key>| -> TrendsResult {
        let node = &query.series[at];
        let is_in = |event: &&&Event| match value {
            Some(value) => key(event) == *value,
            None => !chosen[at].contains(&key(event)),
        };
        let own: Vec<&Event> = of_series[at].iter().filter(is_in).copied().collect();
        let mut before = 0.0;
        let data = ranges[range].intervals.iter().map(|interval| {
            let begin = match query.counts_once(node) {
                // The actors since the beginning, without those before.
                true => ranges[range].intervals[0].start,
                false => interval.start,
            };
            let times = begin..interval.end;
            let events: Vec<&Event> =
                own.iter().copied().filter(|event| times.contains(&event.time)).collect();
            let all = number(query, node, &events);
            let more = all - before;
            before = if query.counts_once(node) { all } else { 0.0 };
            Amount::new(more)
        });
        let data: Vec<Amount> = data.collect();
        let mut result = match query.filter.display.is_total() {
            true => TrendsResult::total(node, at, data[0]),
            false => TrendsResult::over_time(node, at, &ranges[range].axis, data),
        };
        if query.filter.display == Display::Cumulative {
            result = result.cumulative();
        }
        if query.compare.is_some() {
            let labels = [CompareLabel::Current, CompareLabel::Previous];
            result = result.compared(labels[range]);
        }
        if let Some(filter) = &query.breakdown {
            let value = match value {
                Some(key) => BreakdownValue::new(filter, key),
                None => BreakdownValue::other(filter),
            };
            result = result.broken_down(value, query.series.len() == 1);
        }
        result
    };
    let has_other = |range: usize, at: usize| {
        query.breakdown.as_ref().is_some_and(|filter| !filter.hides_other)
            && of_series[at]
                .iter()
                .any(|event| within(&ranges[range], event) && !chosen[at].contains(&key(event)))
    };
    let mut results = Vec::new();
    if query.filter.formulas.is_empty() {
        for range in 0..ranges.len() {
            for (at, values) in chosen.iter().enumerate() {
                results.extend(values.iter().map(|value| result(range, at, Some(value))));
                if has_other(range, at) {
                    results.push(result(range, at, None));
                }
            }
        }
    }
    let is_cumulative = query.filter.display == Display::Cumulative;
    for (number, formula) in query.filter.formulas.iter().enumerate() {
        for range in 0..ranges.len() {
            let series = 0..query.series.len();
            let mut values: Vec<Option<&Key>> = chosen[0].iter().map(Some).collect();
            if series.clone().any(|at| has_other(range, at)) {
                values.push(None);
            }
            for value in values {
                let all: Vec<TrendsResult> =
                    series.clone().map(|at| result(range, at, value)).collect();
                let all: Vec<Option<&TrendsResult>> = all.iter().map(Some).collect();
                results.push(with_formula(formula, number, is_cumulative, &all).unwrap());
            }
        }
    }
    Found {
        results,
        has_more: query.breakdown.as_ref().map(|_| has_more),
        range: ranges[0].resolved.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn trends_are_those_of_all_events(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let case = case(&mut random, 120);
        for _ in 0..6 {
            let query = any_question(&mut random);
            let expected = expected(&case, &query);
            case.assert_answers(&expected, |source, run, asked| {
                trends(source, run, asked, &query)
            });
        }
    }
}

fn read(query: &Value) -> TrendsQuery {
    match Query::read(query) {
        Ok(Query::Trends(query)) => query,
        other => panic!("{other:?}"),
    }
}

#[test]
fn many_values_are_counted_in_two_scans() {
    let mut random = Random::new(3);
    let case = case_of(&mut random, 300, 6_000, &[(Layout::Blocks, 2)]);
    let query = read(&json!({ "kind": "TrendsQuery", "interval": "hour",
        "dateRange": { "date_from": "-20d" },
        "series": [{ "event": null, "math": "dau" }, { "event": "buy", "math": "sum",
            "math_property": "price" }],
        "compareFilter": { "compare": true },
        "breakdownFilter": { "breakdowns": [{ "property": "uuid" }, { "property": "plan" }],
            "breakdown_limit": 6 } }));
    let expected = expected(&case, &query);
    let (source, threads) = &case.sources[0];
    let answer = |memory: usize| {
        let (cancel, memory) = (Cancel::default(), MemoryPool::new(memory));
        let run = Run { threads: *threads, cancel: &cancel, memory: &memory };
        let found = trends(source, &run, &case.asked(), &query);
        assert_eq!(memory.used(), 0);
        found
    };
    assert!(answer(MEMORY).unwrap() == expected);
    // All numbers of one series take more.
    let intervals = expected.results[0].data.len();
    let all = 2 * intervals * 6_000 * 8;
    assert!(answer(all / 4).unwrap() == expected);
    assert!(matches!(answer(100_000), Err(AnswerError::Memory { .. })));
}

#[test]
fn many_persons_are_counted_in_passes() {
    let mut random = Random::new(8);
    let case = case_of(&mut random, 1_500, 30_000, &[(Layout::Blocks, 2)]);
    let (source, threads) = &case.sources[0];
    for display in ["ActionsLineGraph", "ActionsLineGraphCumulative"] {
        let query = read(&json!({ "kind": "TrendsQuery", "interval": "hour",
            "dateRange": { "date_from": "-20d" }, "trendsFilter": { "display": display },
            "series": [{ "event": null, "math": "dau" }, { "event": "buy" }] }));
        let expected = expected(&case, &query);
        let answer = |memory: usize| {
            let (cancel, memory) = (Cancel::default(), MemoryPool::new(memory));
            let run = Run { threads: *threads, cancel: &cancel, memory: &memory };
            trends(source, &run, &case.asked(), &query)
        };
        assert!(answer(MEMORY).unwrap() == expected);
        // Less than a bit of each person in each hour takes.
        assert!(answer(250_000).unwrap() == expected, "{display}");
    }
}

#[test]
fn a_question_ends_early() {
    let mut random = Random::new(4);
    let case = case_of(&mut random, 30, 300, &[(Layout::Mixed, 3)]);
    let query = read(&json!({ "kind": "TrendsQuery", "series": [{ "event": null }] }));
    let (source, threads) = &case.sources[0];
    let memory = MemoryPool::new(MEMORY);
    let answer = |cancel: &Cancel| {
        let run = Run { threads: *threads, cancel, memory: &memory };
        trends(source, &run, &case.asked(), &query)
    };
    assert!(answer(&Cancel::at(Instant::now() + Duration::from_secs(600))).is_ok());
    assert!(matches!(answer(&Cancel::at(Instant::now())), Err(AnswerError::TooLong)));
    let cancel = Cancel::default();
    cancel.cancel();
    assert!(matches!(answer(&cancel), Err(AnswerError::Cancelled)));
}

#[test]
fn what_cannot_be_answered_is_refused() {
    let mut random = Random::new(6);
    let case = case_of(&mut random, 3, 30, &[(Layout::Blocks, 1)]);
    let (cancel, memory) = (Cancel::default(), MemoryPool::new(MEMORY));
    let run = Run { threads: 1, cancel: &cancel, memory: &memory };
    let answer = |query: Value| {
        let mut query = query;
        query["kind"] = json!("TrendsQuery");
        if query.get("series").is_none() {
            query["series"] = json!([{ "event": null }]);
        }
        trends(&case.sources[0].0, &run, &case.asked(), &read(&query)).unwrap_err()
    };
    let field = |query: Value| match answer(query) {
        AnswerError::Field(fault) => fault.attr.unwrap(),
        error => panic!("{error}"),
    };
    let person = json!([{ "key": "plan", "type": "person", "value": "pro" }]);
    assert_eq!(field(json!({ "properties": person })), "properties");
    let series = json!([{ "event": null }, { "event": "buy", "properties": person }]);
    assert_eq!(field(json!({ "series": series })), "series__1__properties");
    let breakdown = json!({ "breakdown": "plan", "breakdown_type": "person" });
    assert_eq!(field(json!({ "breakdownFilter": breakdown })), "breakdownFilter");
    let dates = json!({ "date_from": "-2d", "date_to": "-9d" });
    assert_eq!(field(json!({ "dateRange": dates })), "dateRange__date_to");
}
