//! How many persons are new, come back, or stay away (QRY-18).

use super::{add_counts, bucket};
use crate::query::LifecycleStatus;

/// Counts persons by their status in each interval.
#[derive(Debug, Clone)]
pub struct Lifecycle {
    /// With an interval before the first one of the result.
    boundaries: Vec<i64>,
    /// By status, in the order of [`LifecycleStatus::ALL`].
    counts: [Vec<u64>; 4],
}

impl Lifecycle {
    /// For the intervals between these boundaries. `before` is the beginning of the interval
    /// before the first one: events since then say who was active before.
    pub fn new(before: i64, boundaries: &[i64]) -> Self {
        let intervals = boundaries.len().saturating_sub(1);
        let mut all = Vec::with_capacity(boundaries.len() + 1);
        all.push(before);
        all.extend_from_slice(boundaries);
        Self { boundaries: all, counts: std::array::from_fn(|_| vec![0; intervals]) }
    }

    /// Counts a person by the time when it was first seen, and the sorted times of its events
    /// since the interval before the first one.
    pub fn person(&mut self, first_seen: i64, times: impl IntoIterator<Item = i64>) {
        let Self { boundaries, counts } = self;
        statuses(boundaries, first_seen, times, |status, interval| {
            if let Some(count) = counts[index(status)].get_mut(interval) {
                *count += 1;
            }
        });
    }

    /// Calls a function with each status of such a person and the number of its interval: the
    /// person is one of those who are counted there.
    pub fn statuses(
        &self,
        first_seen: i64,
        times: impl IntoIterator<Item = i64>,
        see: impl FnMut(LifecycleStatus, usize),
    ) {
        statuses(&self.boundaries, first_seen, times, see);
    }

    /// Counts the persons of another lifecycle of the same intervals.
    pub fn merge(&mut self, other: Self) {
        for (counts, more) in self.counts.iter_mut().zip(&other.counts) {
            add_counts(counts, more);
        }
    }

    /// Persons with a status in each interval.
    pub fn counts(&self, status: LifecycleStatus) -> &[u64] {
        &self.counts[index(status)]
    }
}

/// The statuses of a person in the intervals after the first one of `boundaries`.
fn statuses(
    boundaries: &[i64],
    first_seen: i64,
    times: impl IntoIterator<Item = i64>,
    mut see: impl FnMut(LifecycleStatus, usize),
) {
    let intervals = boundaries.len().saturating_sub(2);
    let mut add = |status, interval: usize| {
        if let Some(at) = interval.checked_sub(1).filter(|at| *at < intervals) {
            see(status, at);
        }
    };
    let first = bucket(boundaries, first_seen);
    let mut last: Option<usize> = None;
    for time in times {
        let Some(interval) = bucket(boundaries, time) else { continue };
        if last == Some(interval) {
            continue;
        }
        // The intervals in between are one of absence and then none.
        if let Some(last) = last.filter(|last| last + 1 < interval) {
            add(LifecycleStatus::Dormant, last + 1);
        }
        let status = if first == Some(interval) {
            LifecycleStatus::New
        } else if last.is_some_and(|last| last + 1 == interval) {
            LifecycleStatus::Returning
        } else {
            LifecycleStatus::Resurrecting
        };
        add(status, interval);
        last = Some(interval);
    }
    if let Some(last) = last {
        add(LifecycleStatus::Dormant, last + 1);
    }
}

fn index(status: LifecycleStatus) -> usize {
    match status {
        LifecycleStatus::New => 0,
        LifecycleStatus::Returning => 1,
        LifecycleStatus::Resurrecting => 2,
        LifecycleStatus::Dormant => 3,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::evaluate::support::in_parts;

    fn counts(persons: &[(i64, &[i64])]) -> [Vec<u64>; 4] {
        let mut lifecycle = Lifecycle::new(0, &[10, 20, 30, 40]);
        for (first_seen, times) in persons {
            lifecycle.person(*first_seen, times.iter().copied());
        }
        let all = LifecycleStatus::ALL.iter().map(|status| lifecycle.counts(*status).to_vec());
        let all: Vec<_> = all.collect();
        all.try_into().unwrap()
    }

    #[test]
    fn a_person_has_one_status_in_an_interval() {
        for (first_seen, times, new, returning, resurrecting, dormant) in [
            (11, &[11, 12][..], [1, 0, 0], [0; 3], [0; 3], [0, 1, 0]),
            (11, &[11, 21, 31], [1, 0, 0], [0, 1, 1], [0; 3], [0; 3]),
            (11, &[11, 31], [1, 0, 0], [0; 3], [0, 0, 1], [0, 1, 0]),
            // Active before the first interval.
            (-9, &[5, 11], [0; 3], [1, 0, 0], [0; 3], [0, 1, 0]),
            (-9, &[5], [0; 3], [0; 3], [0; 3], [1, 0, 0]),
            (5, &[5, 25], [0; 3], [0; 3], [0, 1, 0], [1, 0, 1]),
            // Not active for long.
            (-9, &[25], [0; 3], [0; 3], [0, 1, 0], [0, 0, 1]),
            (31, &[31], [0, 0, 1], [0; 3], [0; 3], [0; 3]),
            (-9, &[-1, 40, 99], [0; 3], [0; 3], [0; 3], [0; 3]),
            (-9, &[], [0; 3], [0; 3], [0; 3], [0; 3]),
        ] {
            let expected = [new, returning, resurrecting, dormant].map(|counts| counts.to_vec());
            assert_eq!(counts(&[(first_seen, times)]), expected, "{first_seen} {times:?}");
        }
    }

    #[test]
    fn persons_add_up() {
        let found = counts(&[(11, &[11]), (11, &[11, 21]), (-9, &[1, 11])]);
        assert_eq!(found[0], [2, 0, 0]);
        assert_eq!(found[1], [1, 1, 0]);
        assert_eq!(found[3], [0, 2, 1]);
    }

    proptest! {
        #[test]
        fn counts_do_not_depend_on_order_and_parts(
            persons in prop::collection::vec(
                (-20..60_i64, prop::collection::btree_set(-20..60_i64, 0..8)),
                0..20,
            ),
            order in any::<u64>(),
        ) {
            let empty = Lifecycle::new(0, &[10, 20, 30, 40]);
            let mut one = empty.clone();
            let mut behind: [Vec<u64>; 4] = std::array::from_fn(|_| vec![0; 3]);
            for (first_seen, times) in &persons {
                one.person(*first_seen, times.iter().copied());
                // The numbers are those of the persons behind them.
                empty.statuses(*first_seen, times.iter().copied(), |status, interval| {
                    behind[index(status)][interval] += 1;
                });
            }
            let all = in_parts(
                &persons,
                order,
                &empty,
                |part, (first_seen, times)| part.person(*first_seen, times.iter().copied()),
                Lifecycle::merge,
            );
            prop_assert_eq!(&all.counts, &one.counts);
            prop_assert_eq!(&behind, &one.counts);
        }
    }
}
