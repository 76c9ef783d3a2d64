//! In how many intervals persons are active (QRY-17).

use super::{add_counts, bucket};
use crate::query::StickinessCriteria;

/// Counts persons by the number of intervals in which they are active.
#[derive(Debug, Clone)]
pub struct Stickiness {
    boundaries: Vec<i64>,
    criteria: StickinessCriteria,
    /// Persons with one, two, … intervals.
    counts: Vec<u64>,
}

impl Stickiness {
    /// For the intervals between these boundaries.
    pub fn new(boundaries: &[i64], criteria: StickinessCriteria) -> Self {
        let intervals = boundaries.len().saturating_sub(1);
        Self { boundaries: boundaries.to_vec(), criteria, counts: vec![0; intervals] }
    }

    /// Counts a person by the sorted times of its events.
    pub fn person(&mut self, times: impl IntoIterator<Item = i64>) {
        let active = self.active(times);
        if let Some(count) = active.checked_sub(1).and_then(|at| self.counts.get_mut(at)) {
            *count += 1;
        }
    }

    /// In how many intervals such a person is active. One that is never active is not counted.
    pub fn active(&self, times: impl IntoIterator<Item = i64>) -> usize {
        let mut active = 0_usize;
        let mut last: Option<(usize, u32)> = None;
        let at = |time| bucket(&self.boundaries, time);
        for interval in times.into_iter().filter_map(at) {
            last = match last {
                Some((same, events)) if same == interval => Some((same, events.saturating_add(1))),
                ended => {
                    active += usize::from(self.is_active(ended));
                    Some((interval, 1))
                }
            };
        }
        active + usize::from(self.is_active(last))
    }

    /// Counts the persons of another stickiness of the same intervals.
    pub fn merge(&mut self, other: Self) {
        add_counts(&mut self.counts, &other.counts);
    }

    fn is_active(&self, interval: Option<(usize, u32)>) -> bool {
        interval.is_some_and(|(_, events)| self.criteria.is_satisfied(events))
    }

    /// Persons by their number of active intervals: with one, with two, and so on. With
    /// `is_cumulative`, a person also counts for all smaller numbers.
    pub fn counts(&self, is_cumulative: bool) -> Vec<u64> {
        let mut counts = self.counts.clone();
        if is_cumulative {
            let mut sum = 0;
            for count in counts.iter_mut().rev() {
                sum += *count;
                *count = sum;
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::evaluate::support::in_parts;
    use crate::query::StickinessOperator;

    fn counts(criteria: StickinessCriteria, persons: &[&[i64]]) -> Stickiness {
        let mut stickiness = Stickiness::new(&[0, 10, 20, 30], criteria);
        for times in persons {
            stickiness.person(times.iter().copied());
        }
        stickiness
    }

    #[test]
    fn persons_count_by_their_intervals() {
        let persons: [&[i64]; 6] =
            [&[1, 2, 3], &[1, 11], &[1, 11, 21, 22], &[25], &[-5, 30, 99], &[]];
        let found = counts(StickinessCriteria::default(), &persons);
        assert_eq!(found.counts(false), [2, 1, 1]);
        assert_eq!(found.counts(true), [4, 2, 1]);
    }

    #[test]
    fn a_criterion_says_when_a_person_is_active() {
        for (operator, value, expected) in [
            (StickinessOperator::GreaterOrEqual, 2, [1, 1, 0]),
            (StickinessOperator::LessOrEqual, 1, [1, 0, 0]),
            (StickinessOperator::Exact, 2, [2, 0, 0]),
            (StickinessOperator::Exact, 0, [0, 0, 0]),
        ] {
            let criteria = StickinessCriteria { operator, value };
            let found = counts(criteria, &[&[1, 2, 11, 12, 13], &[1, 21, 22]]);
            assert_eq!(found.counts(false), expected, "{operator:?} {value}");
        }
    }

    #[test]
    fn without_intervals_nothing_counts() {
        let mut stickiness = Stickiness::new(&[], StickinessCriteria::default());
        stickiness.person([1, 2]);
        assert!(stickiness.counts(true).is_empty());
    }

    proptest! {
        #[test]
        fn counts_do_not_depend_on_order_and_parts(
            persons in prop::collection::vec(
                prop::collection::vec(-10..40_i64, 0..8),
                0..20,
            ),
            order in any::<u64>(),
        ) {
            let persons: Vec<Vec<i64>> = persons
                .into_iter()
                .map(|mut times| {
                    times.sort_unstable();
                    times
                })
                .collect();
            let criteria = StickinessCriteria { value: 2, ..StickinessCriteria::default() };
            let empty = Stickiness::new(&[0, 10, 20, 30], criteria);
            let mut one = empty.clone();
            persons.iter().for_each(|times| one.person(times.iter().copied()));
            let all = in_parts(
                &persons,
                order,
                &empty,
                |part, times| part.person(times.iter().copied()),
                Stickiness::merge,
            );
            prop_assert_eq!(&all.counts, &one.counts);
            let active = |times: &&Vec<i64>| empty.active(times.iter().copied()) == 2;
            prop_assert_eq!(persons.iter().filter(active).count() as u64, one.counts[1]);
        }
    }
}
