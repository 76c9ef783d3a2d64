//! To which values of a breakdown a person of a funnel or of retention belongs (QRY-15,
//! QRY-33).

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::funnel::{FunnelEvent, within};
use crate::query::{Attribution, AttributionKind};

/// Most different values of a step of a person: the person is computed for each of them.
pub const STEP_VALUES_MAX: usize = 1_000;

/// A step of a person has more different values than [`STEP_VALUES_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a step of a person has more than {STEP_VALUES_MAX} different values of the breakdown")]
pub struct TooManyValues;

/// Calls a function with each value that a person belongs to, and the events that count for
/// it. `values` has a number that stands for the value of each event, in the order of the
/// values; `None`: it has none. Events and values are sorted by time, and only those in the
/// range of the question count. Of several events of the same time, the smallest value is the
/// first and the last one.
///
/// # Errors
/// [`TooManyValues`] for [`AttributionKind::Step`].
pub fn by_value(
    attribution: Attribution,
    events: &[FunnelEvent],
    values: &[Option<u32>],
    range: &Range<i64>,
    mut see: impl FnMut(Option<u32>, &[FunnelEvent]),
) -> Result<(), TooManyValues> {
    let first = events.partition_point(|event| event.time < range.start);
    let events = within(events, range);
    let values = values.get(first..).unwrap_or_default();
    let pairs = || events.iter().zip(values.iter().copied());
    let of_step = |(event, value): (&FunnelEvent, Option<u32>)| {
        Some((event.time, value?)).filter(|_| event.steps != 0)
    };
    let steps = || pairs().filter_map(of_step);
    let value = |(_, value): (i64, u32)| value;
    match attribution.kind {
        AttributionKind::FirstTouch => see(steps().min().map(value), events),
        AttributionKind::LastTouch => {
            let last = steps().min_by_key(|(time, value)| (Reverse(*time), *value));
            see(last.map(value), events);
        }
        AttributionKind::AllEvents => {
            for (value, events) in grouped(events, values) {
                see(value, &events);
            }
        }
        AttributionKind::Step => {
            let bit = 1_u32.checked_shl(u32::try_from(attribution.step).unwrap_or(u32::MAX));
            let bit = bit.unwrap_or(0);
            let mut seen = Vec::new();
            let mut known = HashSet::new();
            for (_, value) in pairs().filter(|(event, _)| event.steps & bit != 0) {
                if known.insert(value) {
                    seen.push(value);
                }
                if seen.len() > STEP_VALUES_MAX {
                    return Err(TooManyValues);
                }
            }
            for wanted in seen {
                let without = |(event, value): (&FunnelEvent, Option<u32>)| FunnelEvent {
                    steps: if value == wanted { event.steps } else { event.steps & !bit },
                    ..*event
                };
                let events: Vec<FunnelEvent> = pairs().map(without).collect();
                see(wanted, &events);
            }
        }
    }
    Ok(())
}

/// Events by their value, in the order in which the values come.
pub fn grouped<E: Copy>(events: &[E], values: &[Option<u32>]) -> Vec<(Option<u32>, Vec<E>)> {
    let mut groups: Vec<(Option<u32>, Vec<E>)> = Vec::new();
    let mut numbers: HashMap<Option<u32>, usize> = HashMap::new();
    for (event, value) in events.iter().zip(values) {
        let number = *numbers.entry(*value).or_insert(groups.len());
        match groups.get_mut(number) {
            Some((_, events)) => events.push(*event),
            None => groups.push((*value, vec![*event])),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::FunnelRules;
    use crate::query::FunnelOrder;

    const ALWAYS: Range<i64> = i64::MIN..i64::MAX;

    /// Events from steps, times and values: `A1x` is the first step at 1 with the value `x`.
    fn events(text: &str) -> (Vec<FunnelEvent>, Vec<Option<u32>>) {
        let event = |word: &str| {
            let (letter, rest) = word.split_at(1);
            let digits = rest.trim_end_matches(|c: char| c.is_ascii_lowercase());
            let steps = match letter {
                "A" => 1,
                "B" => 2,
                "C" => 4,
                _ => 0,
            };
            let event = FunnelEvent { time: digits.parse().unwrap(), steps, exclusions: 0 };
            (event, rest[digits.len()..].bytes().next().map(u32::from))
        };
        text.split_whitespace().map(event).unzip()
    }

    /// The values with the number of steps that the person did.
    fn steps(kind: AttributionKind, step: usize, text: &str) -> Vec<(Option<char>, usize)> {
        let (events, values) = events(text);
        let rules = FunnelRules::new(3, FunnelOrder::Ordered, 100, Vec::new());
        let mut found = Vec::new();
        let attribution = Attribution { kind, step };
        by_value(attribution, &events, &values, &ALWAYS, |value, events| {
            let value = value.and_then(char::from_u32);
            found.push((value, rules.person(events, &ALWAYS).steps()));
        })
        .unwrap();
        found
    }

    #[test]
    fn a_person_belongs_to_the_value_of_its_attribution() {
        use AttributionKind::{AllEvents, FirstTouch, LastTouch, Step};
        let (x, y) = (Some('x'), Some('y'));
        for (kind, step, text, expected) in [
            // The first and the last value of a step, whether others lack one or not.
            (FirstTouch, 0, "A1x B2y C3", &[(x, 3)][..]),
            (FirstTouch, 0, "A1 B2y C3x", &[(y, 3)]),
            (FirstTouch, 0, ".0z A1 B2", &[(None, 2)]),
            (LastTouch, 0, "A1x B2y C3", &[(y, 3)]),
            (LastTouch, 0, "A1x .2y", &[(x, 1)]),
            // Of the same time.
            (FirstTouch, 0, "A1y A1x B2y", &[(x, 2)]),
            (LastTouch, 0, "A1y B2y B2x", &[(x, 2)]),
            // Each value with the steps that have it.
            (AllEvents, 0, "A1x B2y B3x C4x C5y", &[(x, 3), (y, 0)]),
            (AllEvents, 0, "A1x B2 A3 B4", &[(x, 1), (None, 2)]),
            // Each value of the step.
            (Step, 1, "A1x B2y B3x C4", &[(y, 3), (x, 3)]),
            (Step, 0, "A1x B2 A3y B4 C5", &[(x, 3), (y, 3)]),
            (Step, 2, "A1x B2x C3", &[(None, 3)]),
            // The step was not done.
            (Step, 2, "A1x B2x", &[]),
            (Step, 40, "A1x B2x", &[]),
        ] {
            assert_eq!(steps(kind, step, text), expected, "{kind:?} {step} {text}");
        }
    }

    #[test]
    fn a_person_comes_back_with_events_of_the_same_value() {
        use crate::evaluate::{RETURNING, Retention, RetentionEvent, TARGET};
        use crate::query::RetentionKind;
        let event = |(time, entities)| RetentionEvent { time, entities };
        let events =
            [(1, TARGET), (2, TARGET), (11, RETURNING), (21, RETURNING), (22, TARGET)].map(event);
        let values = [Some(1), None, Some(2), Some(1), Some(2)];
        let counts: Vec<_> = grouped(&events, &values)
            .into_iter()
            .map(|(value, events)| {
                let periods = &[0, 10, 20, 30];
                let mut retention = Retention::new(periods, RetentionKind::FirstTime, 3, false, 1);
                retention.person(&events);
                (value, retention.counts().to_vec())
            })
            .collect();
        let expected = [
            (Some(1), vec![vec![1, 0, 1], vec![0, 0], vec![0]]),
            (None, vec![vec![1, 0, 0], vec![0, 0], vec![0]]),
            (Some(2), vec![vec![0, 0, 0], vec![0, 0], vec![1]]),
        ];
        assert_eq!(counts, expected);
    }

    #[test]
    fn values_outside_of_the_range_do_not_count() {
        let (events, values) = events("A1x A5y B6 A9z");
        for (kind, expected) in
            [(AttributionKind::FirstTouch, Some('y')), (AttributionKind::LastTouch, Some('y'))]
        {
            let attribution = Attribution { kind, step: 0 };
            by_value(attribution, &events, &values, &(2..9), |value, events| {
                assert_eq!(value.and_then(char::from_u32), expected);
                assert_eq!(events.len(), 2);
            })
            .unwrap();
        }
    }

    #[test]
    fn the_values_of_a_step_are_bounded() {
        let count = u32::try_from(STEP_VALUES_MAX).unwrap();
        let event = |at: u32| FunnelEvent { time: i64::from(at), steps: 1, exclusions: 0 };
        let of = |count: u32| {
            let events: Vec<_> = (0..count).map(event).collect();
            let values: Vec<_> = (0..count).map(Some).collect();
            let attribution = Attribution { kind: AttributionKind::Step, step: 0 };
            let mut seen = 0;
            let result = by_value(attribution, &events, &values, &ALWAYS, |_, _| seen += 1);
            result.map(|()| seen)
        };
        assert_eq!(of(count), Ok(STEP_VALUES_MAX));
        assert_eq!(of(count + 1), Err(TooManyValues));
    }
}
