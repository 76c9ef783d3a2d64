//! Attempts, windows, exclusions, times, and a comparison with trying everything.

use proptest::prelude::*;

use super::*;
use crate::evaluate::support::{in_parts, shuffled};

const ALWAYS: Range<i64> = i64::MIN..i64::MAX;
const ALL: ExclusionRange = ExclusionRange { from_step: 0, to_step: 2 };

/// Events from letters with times: `A`, `B` and `C` are steps, `X` and `Y` exclusions, and `.`
/// is another event. `D` is both of the first steps.
fn events(text: &str) -> Vec<FunnelEvent> {
    let event = |word: &str| {
        let (letter, time) = word.split_at(1);
        let (steps, exclusions) = match letter {
            "A" => (1, 0),
            "B" => (2, 0),
            "C" => (4, 0),
            "D" => (3, 0),
            "X" => (0, 1),
            "Y" => (0, 2),
            _ => (0, 0),
        };
        FunnelEvent { time: time.parse().unwrap(), steps, exclusions }
    };
    text.split_whitespace().map(event).collect()
}

fn rules(order: FunnelOrder, exclusions: &[ExclusionRange]) -> FunnelRules {
    FunnelRules::new(3, order, 10, exclusions.to_vec())
}

fn times(order: FunnelOrder, text: &str) -> Vec<i64> {
    let outcome = rules(order, &[]).person(&events(text), &ALWAYS);
    assert!(!outcome.is_excluded, "{text}");
    outcome.times
}

#[test]
fn ordered_steps_follow_each_other_within_the_window() {
    for (text, expected) in [
        ("", &[][..]),
        (".1 B2", &[]),
        ("A1", &[1]),
        ("A1 C2", &[1]),
        ("A1 B2 C3", &[1, 2, 3]),
        ("A1 .2 B3 A4 C5", &[1, 3, 5]),
        ("B1 A2 C3 B4", &[2, 4]),
        // The window is from the first step to the last one.
        ("A1 B11", &[1, 11]),
        ("A1 B12", &[1]),
        ("A1 B6 C12", &[1, 6]),
        // A later attempt gets further.
        ("A1 A6 B12 C15", &[6, 12, 15]),
        ("A1 B2 A9 B15 C18", &[9, 15, 18]),
        // The attempt that got further first counts.
        ("A1 B2 A20 B25", &[1, 2]),
        ("A1 B2 B3 C4", &[1, 2, 4]),
        // An event is one step of an attempt.
        ("D1", &[1]),
        ("D1 D2 C3", &[1, 2, 3]),
        ("A-5 B-3 C0", &[-5, -3, 0]),
    ] {
        assert_eq!(times(FunnelOrder::Ordered, text), expected, "{text}");
    }
}

#[test]
fn events_of_the_same_time_follow_each_other() {
    for (text, expected) in [
        ("C1 B1 A1", &[1, 1, 1][..]),
        ("B1 A1 C2", &[1, 1, 2]),
        ("A1 A1 B2", &[1, 2]),
        // Each step is done as early as it can be.
        ("A1 B2 B3 C3", &[1, 2, 3]),
        ("D1 D1", &[1, 1]),
        ("D1 .1", &[1]),
        // The first one can be either step, the second one only the first.
        ("D1 A1", &[1, 1]),
        ("A1 D1", &[1, 1]),
    ] {
        assert_eq!(times(FunnelOrder::Ordered, text), expected, "{text}");
    }
}

#[test]
fn strict_steps_have_no_event_in_between() {
    for (text, expected) in [
        ("A1 B2 C3", &[1, 2, 3][..]),
        ("A1 .2 B3 C4", &[1]),
        ("A1 B2 .3 C4", &[1, 2]),
        ("A1 A2 B3 C4", &[2, 3, 4]),
        ("A1 B2 B3 C4", &[1, 2]),
        ("A1 C2 A3 B4 C5", &[3, 4, 5]),
        ("A1 B12", &[1]),
        // In the order of the input.
        ("A1 B1 C1", &[1, 1, 1]),
        ("B1 A1 C1", &[1]),
        ("A1 B1 B1 C1", &[1, 1]),
        ("D1 D2 C3", &[1, 2, 3]),
    ] {
        assert_eq!(times(FunnelOrder::Strict, text), expected, "{text}");
    }
}

#[test]
fn unordered_steps_are_in_a_window() {
    for (text, expected) in [
        ("", &[][..]),
        ("C1 A2 B3", &[1, 2, 3]),
        ("C1 A6 B12", &[1, 6]),
        ("C1 A6 B12 C13", &[6, 12, 13]),
        ("A1 A2 A3", &[1]),
        // An event is one step, whichever lets most steps be done.
        ("D1 B2", &[1, 2]),
        ("D1 A2", &[1, 2]),
        ("A1 D2", &[1, 2]),
        ("D1 D2 C3", &[1, 2, 3]),
        ("D1 D2 D3", &[1, 2]),
    ] {
        assert_eq!(times(FunnelOrder::Unordered, text), expected, "{text}");
    }
}

#[test]
fn an_exclusion_between_its_steps_excludes_a_person() {
    let after_first = ExclusionRange { from_step: 0, to_step: 1 };
    let after_second = ExclusionRange { from_step: 1, to_step: 2 };
    for (ranges, text, expected) in [
        (&[ALL][..], "A1 B2 C3", 3),
        (&[ALL], "X0 A1 B2 C3 X4", 3),
        (&[ALL], "A1 X2 B3 C4", 0),
        (&[ALL], "A1 B2 X3 C4", 0),
        (&[ALL], "A1 X2", 0),
        (&[ALL], "A1 B2 X3", 0),
        // Beyond the window nothing is excluded.
        (&[ALL], "A1 X12", 1),
        // Another attempt gets as far without it.
        (&[ALL], "A1 X2 A3 B4 C5", 3),
        (&[ALL], "A1 X2 A3", 1),
        (&[ALL], "A1 A2 X3", 0),
        // Another attempt gets less far than the excluded one would.
        (&[ALL], "A1 X2 B3 A4 C5 B6", 0),
        (&[ALL], "A1 B2 X3 A4", 0),
        (&[after_first], "A1 X2 B3 C4", 0),
        (&[after_first], "A1 B2 X3 C4", 3),
        (&[after_second], "A1 X2 B3 C4", 3),
        (&[after_second], "A1 B2 X3 C4", 0),
        (&[after_second], "A1 B2 X3 B4 C5", 0),
        (&[after_first, after_second], "A1 Y2 B3 X4 C5", 3),
        (&[after_first, after_second], "A1 B2 Y3 C4", 0),
    ] {
        let outcome = rules(FunnelOrder::Ordered, ranges).person(&events(text), &ALWAYS);
        assert_eq!(outcome.steps(), expected, "{text}");
    }
    for (text, expected) in
        [("A1 B2 C3", 3), ("A1 X2 B3", 0), ("A1 B2 X3 A4 B5 C6", 3), ("A1 B2 .3 A4 B5 X6", 2)]
    {
        let outcome = rules(FunnelOrder::Strict, &[ALL]).person(&events(text), &ALWAYS);
        assert_eq!(outcome.steps(), expected, "{text}");
    }
    for (text, expected) in [
        ("C1 A2 B3", 3),
        ("X0 C1 A2 B3", 3),
        ("C1 X2 A3", 0),
        ("C1 X2", 0),
        ("C1 X12", 1),
        ("C1 X2 C3 A4 B5", 3),
        ("C1 X2 A13", 1),
    ] {
        let outcome = rules(FunnelOrder::Unordered, &[ALL]).person(&events(text), &ALWAYS);
        assert_eq!(outcome.steps(), expected, "{text}");
    }
}

#[test]
fn events_outside_of_the_range_do_not_count() {
    for order in FunnelOrder::ALL {
        let rules = rules(*order, &[ALL]);
        let events = events("A1 B2 C3 A14 B15 C16");
        for (range, expected) in [
            (0..20, &[1, 2, 3][..]),
            // The window would be open, but the range has ended.
            (0..3, &[1, 2]),
            (2..3, if *order == FunnelOrder::Unordered { &[2] } else { &[] }),
            (4..16, &[14, 15]),
            (14..17, &[14, 15, 16]),
            (17..20, &[]),
        ] {
            let found = rules.person(&events, &range).times;
            assert_eq!(found, expected, "{order:?} {range:?}");
        }
    }
    // Nor does an exclusion after the end.
    let outcome = rules(FunnelOrder::Ordered, &[ALL]).person(&events("A1 B2 X3"), &(0..3));
    assert_eq!(outcome.steps(), 2);
}

#[test]
fn attempts_of_a_bucket_begin_in_it() {
    let rules = rules(FunnelOrder::Ordered, &[]);
    let events = events("A1 B2 A5 B7 C8 A12 B13 C14");
    let of = |range: Range<i64>, bucket: Range<i64>| {
        rules.person_of_bucket(&events, &range, &bucket).times
    };
    assert_eq!(of(0..20, 0..5), [1, 2, 8]);
    assert_eq!(of(0..20, 5..10), [5, 7, 8]);
    assert_eq!(of(0..20, 10..15), [12, 13, 14]);
    assert!(of(0..20, 15..20).is_empty());
    // They end in the range of the question.
    assert_eq!(of(0..8, 5..10), [5, 7]);
    assert_eq!(of(2..20, 0..5), [0; 0]);
    assert_eq!(of(0..20, i64::MIN..i64::MAX), [5, 7, 8]);
}

#[test]
fn totals_are_exact() {
    let second = 1_000_000;
    let outcome = |times: &[i64]| FunnelOutcome {
        times: times.iter().map(|time| time * second).collect(),
        is_excluded: false,
    };
    assert_eq!(outcome(&[0, 10, 30]).between(0, 2), Some(30 * second));
    assert_eq!(outcome(&[0, 10]).between(0, 2), None);
    let mut totals = FunnelTotals::new(3);
    for times in [&[0, 10, 30][..], &[5, 25], &[7, 37], &[9], &[]] {
        totals.add(&outcome(times));
    }
    totals.add(&FunnelOutcome { is_excluded: true, ..outcome(&[1, 2, 3]) });
    let step = |count, average, median| StepTotals { count, average, median };
    let expected =
        [step(4, None, None), step(3, Some(20.0), Some(20.0)), step(1, Some(20.0), Some(20.0))];
    assert_eq!(totals.steps(), expected);
    assert!(totals.bytes() >= 4 * 8);
}

#[test]
fn times_are_in_bins() {
    let seconds = |times: &[i64]| times.iter().map(|time| time * 1_000_000).collect::<Vec<_>>();
    let found = histogram(&seconds(&[10, 20, 30, 110]), Some(5));
    let bins = vec![(10, 2), (30, 1), (50, 0), (70, 0), (90, 0), (110, 1)];
    assert_eq!(found, Histogram { average: Some(42.5), bins });
    // One bin by the number of persons.
    let found = histogram(&seconds(&[7]), None);
    assert_eq!(found.bins, [(7, 1), (67, 0)]);
    let found = histogram(&seconds(&[0; 900]), None);
    assert_eq!(found.bins.len(), 11);
    assert_eq!(found.bins[0], (0, 900));
    assert_eq!(histogram(&[], None), Histogram { average: None, bins: Vec::new() });
    assert_eq!(histogram(&seconds(&[1, 2]), Some(u32::MAX)).bins.len(), 91);
}

/// The most steps that events can be, each event one step, by trying everything.
fn most(events: &[FunnelEvent], free: u32) -> usize {
    let Some((event, rest)) = events.split_first() else { return 0 };
    let mut best = most(rest, free);
    for step in 0..3 {
        if event.steps & free & (1 << step) != 0 {
            best = best.max(1 + most(rest, free & !(1 << step)));
        }
    }
    best
}

/// The most steps in order, from each event. Events of the same time are in any order.
fn most_in_order(events: &[FunnelEvent], step: usize, start: Option<i64>) -> usize {
    let mut best = 0;
    for (at, event) in events.iter().enumerate() {
        let is_late = start.is_some_and(|start| event.time - start > 10);
        if step < 3 && event.steps & (1 << step) != 0 && !is_late {
            let start = start.unwrap_or(event.time);
            let is_later = |other: &FunnelEvent| other.time >= event.time;
            let mut rest = events.to_vec();
            rest.remove(at);
            rest.retain(is_later);
            best = best.max(1 + most_in_order(&rest, step + 1, Some(start)));
        }
    }
    best
}

/// The totals and the histogram of persons.
fn answers(outcomes: &[FunnelOutcome]) -> (Vec<StepTotals>, Histogram) {
    let mut totals = FunnelTotals::new(3);
    outcomes.iter().for_each(|outcome| totals.add(outcome));
    let times: Vec<i64> = outcomes.iter().filter_map(|outcome| outcome.between(0, 2)).collect();
    (totals.steps(), histogram(&times, None))
}

proptest! {
    #[test]
    fn totals_do_not_depend_on_order_and_parts(
        persons in prop::collection::vec(
            (prop::collection::vec(0..2_000_000_000_000_i64, 0..4), any::<bool>()),
            0..40,
        ),
        order in any::<u64>(),
    ) {
        let outcomes: Vec<FunnelOutcome> = persons
            .into_iter()
            .map(|(mut times, is_excluded)| {
                times.sort_unstable();
                FunnelOutcome { times, is_excluded }
            })
            .collect();
        let one = answers(&outcomes);
        let other: Vec<FunnelOutcome> =
            shuffled(&outcomes, order).into_iter().map(|(_, outcome)| outcome).collect();
        prop_assert_eq!(&answers(&other), &one);
        let empty = FunnelTotals::new(3);
        let all = in_parts(&outcomes, order, &empty, FunnelTotals::add, FunnelTotals::merge);
        prop_assert_eq!(all.steps(), one.0);
    }

    #[test]
    fn no_way_of_choosing_events_gets_further(
        parts in prop::collection::vec((0..6_i64, 0..8_u32), 0..9),
    ) {
        let mut time = 0;
        let mut events = Vec::new();
        for (gap, steps) in parts {
            time += gap;
            events.push(FunnelEvent { time, steps, exclusions: 0 });
        }
        let found = rules(FunnelOrder::Ordered, &[]).person(&events, &ALWAYS);
        prop_assert_eq!(found.times.len(), most_in_order(&events, 0, None));
        let found = rules(FunnelOrder::Unordered, &[]).person(&events, &ALWAYS);
        let windows = (0..events.len()).map(|at| {
            let inside = events[at..].iter().take_while(|e| e.time - events[at].time <= 10);
            most(&inside.copied().collect::<Vec<_>>(), 7)
        });
        prop_assert_eq!(found.times.len(), windows.max().unwrap_or(0));
        if let (Some(first), Some(last)) = (found.times.first(), found.times.last()) {
            prop_assert!(last - first <= 10);
        }
    }

    #[test]
    fn the_order_of_events_of_the_same_time_does_not_matter(
        parts in prop::collection::vec((0..3_i64, 0..8_u32, 0..6_u32), 0..12),
        order in any::<u64>(),
    ) {
        let mut time = 0;
        let mut events = Vec::new();
        for (gap, steps, exclusions) in parts {
            time += gap;
            // Few events are exclusions.
            events.push(FunnelEvent { time, steps, exclusions: u32::from(exclusions == 0) });
        }
        let mut other: Vec<_> =
            shuffled(&events, order).into_iter().map(|(_, event)| event).collect();
        other.sort_by_key(|event| event.time);
        for order in [FunnelOrder::Ordered, FunnelOrder::Unordered] {
            for exclusions in [&[][..], &[ALL]] {
                let rules = rules(order, exclusions);
                prop_assert_eq!(
                    rules.person(&events, &ALWAYS),
                    rules.person(&other, &ALWAYS),
                    "{:?} {:?} {:?}", order, events, other
                );
            }
        }
    }

    #[test]
    fn any_events_have_an_outcome(
        events in prop::collection::vec((any::<i64>(), any::<u32>(), any::<u32>()), 0..20),
        steps in 0..40_usize,
        window in any::<i64>(),
        range in (0..40_usize, 0..40_usize),
    ) {
        let mut events: Vec<_> = events
            .into_iter()
            .map(|(time, steps, exclusions)| FunnelEvent { time, steps, exclusions })
            .collect();
        events.sort_by_key(|event| event.time);
        for order in FunnelOrder::ALL {
            let exclusion = ExclusionRange { from_step: range.0, to_step: range.1 };
            let rules = FunnelRules::new(steps, *order, window, vec![exclusion]);
            prop_assert!(rules.person(&events, &ALWAYS).times.len() <= steps.max(1));
        }
    }
}
