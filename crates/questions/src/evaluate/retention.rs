//! How many persons come back (QRY-15, QRY-16).

use super::{add_counts, bucket};
use crate::query::RetentionKind;

/// The bit of events with which persons begin.
pub const TARGET: u8 = 1;
/// The bit of events with which persons come back.
pub const RETURNING: u8 = 2;

/// An event of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionEvent {
    /// Its time.
    pub time: i64,
    /// [`TARGET`], [`RETURNING`], both or none.
    pub entities: u8,
}

/// Counts persons by the period in which they begin, and the periods in which they come
/// back.
#[derive(Debug, Clone)]
pub struct Retention {
    boundaries: Vec<i64>,
    kind: RetentionKind,
    total: usize,
    is_cumulative: bool,
    occurrences: u32,
    /// For each period of beginning: persons by the number of periods after it.
    counts: Vec<Vec<u64>>,
}

impl Retention {
    /// For the periods between these boundaries, of which a person is followed for `total`.
    /// At least `occurrences` returning events in a period count as coming back.
    pub fn new(
        boundaries: &[i64],
        kind: RetentionKind,
        total: usize,
        is_cumulative: bool,
        occurrences: u32,
    ) -> Self {
        let periods = boundaries.len().saturating_sub(1);
        // Periods after the last one have not come.
        let counts = (0..periods).map(|at| vec![0; total.min(periods - at)]).collect();
        Self {
            boundaries: boundaries.to_vec(),
            kind,
            total,
            is_cumulative,
            occurrences: occurrences.max(1),
            counts,
        }
    }

    /// Counts a person by its sorted events. For [`RetentionKind::FirstTime`] these are all of
    /// its events, or those of the periods and the first target event ever.
    pub fn person(&mut self, events: &[RetentionEvent]) {
        // `begins` borrows the rest.
        let mut all = std::mem::take(&mut self.counts);
        let is_cumulative = self.is_cumulative;
        self.begins(events, |begin, after| {
            let Some(counts) = all.get_mut(begin) else { return };
            if is_cumulative {
                let furthest = after.last().copied().unwrap_or(0);
                counts.iter_mut().take(furthest + 1).for_each(|count| *count += 1);
                return;
            }
            for at in std::iter::once(&0).chain(after) {
                if let Some(count) = counts.get_mut(*at) {
                    *count += 1;
                }
            }
        });
        self.counts = all;
    }

    /// Calls a function with each period in which such a person begins, and the numbers of
    /// the periods after it in which it comes back, of those that are followed.
    pub fn begins(&self, events: &[RetentionEvent], mut see: impl FnMut(usize, &[usize])) {
        let mut begins: Vec<usize> = Vec::new();
        let mut returns: Vec<(usize, u32)> = Vec::new();
        let mut is_first = true;
        for event in events {
            let period = bucket(&self.boundaries, event.time);
            if event.entities & TARGET != 0 {
                let counts = self.kind == RetentionKind::Recurring || is_first;
                is_first = false;
                if let Some(period) = period.filter(|_| counts)
                    && begins.last() != Some(&period)
                {
                    begins.push(period);
                }
            }
            if event.entities & RETURNING != 0
                && let Some(period) = period
            {
                match returns.last_mut() {
                    Some((same, events)) if *same == period => *events = events.saturating_add(1),
                    _ => returns.push((period, 1)),
                }
            }
        }
        returns.retain(|(_, events)| *events >= self.occurrences);
        let periods = self.boundaries.len().saturating_sub(1);
        let mut after = Vec::new();
        for begin in begins {
            let followed = self.total.min(periods - begin);
            let later = returns.partition_point(|(period, _)| *period <= begin);
            let numbers = returns.iter().skip(later).map(|(period, _)| period - begin);
            after.clear();
            after.extend(numbers.take_while(|number| *number < followed));
            see(begin, &after);
        }
    }

    /// Whether a person who comes back in these periods after the one in which it begins counts
    /// for one of them.
    pub fn counts_for(&self, after: &[usize], number: usize) -> bool {
        number == 0
            || match self.is_cumulative {
                true => after.last().is_some_and(|furthest| number <= *furthest),
                false => after.contains(&number),
            }
    }

    /// Counts the persons of another retention of the same periods.
    pub fn merge(&mut self, other: Self) {
        for (counts, more) in self.counts.iter_mut().zip(&other.counts) {
            add_counts(counts, more);
        }
    }

    /// The bytes that its counts take in memory.
    pub fn bytes(&self) -> usize {
        self.counts.iter().map(|counts| counts.capacity() * size_of::<u64>()).sum()
    }

    /// For each period: the persons who begin in it, and how many of them come back in the
    /// periods after it.
    pub fn counts(&self) -> &[Vec<u64>] {
        &self.counts
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::evaluate::support::in_parts;

    const BOTH: u8 = TARGET | RETURNING;

    fn retention(kind: RetentionKind, is_cumulative: bool, occurrences: u32) -> Retention {
        Retention::new(&[0, 10, 20, 30, 40], kind, 3, is_cumulative, occurrences)
    }

    fn events(events: &[(i64, u8)]) -> Vec<RetentionEvent> {
        events
            .iter()
            .map(|(time, entities)| RetentionEvent { time: *time, entities: *entities })
            .collect()
    }

    fn counts(mut retention: Retention, persons: &[&[(i64, u8)]]) -> Vec<Vec<u64>> {
        for person in persons {
            retention.person(&events(person));
        }
        retention.counts().to_vec()
    }

    #[test]
    fn a_person_begins_in_each_period_with_its_target() {
        let recurring = retention(RetentionKind::Recurring, false, 1);
        let found = counts(recurring, &[&[(1, BOTH), (5, BOTH), (12, BOTH), (31, BOTH)]]);
        assert_eq!(found, [vec![1, 1, 0], vec![1, 0, 1], vec![0, 0], vec![1]]);
    }

    #[test]
    fn a_person_begins_once_with_its_first_target() {
        let first = || retention(RetentionKind::FirstTime, false, 1);
        let found = counts(first(), &[&[(1, BOTH), (12, BOTH), (21, BOTH)]]);
        assert_eq!(found, [vec![1, 1, 1], vec![0, 0, 0], vec![0, 0], vec![0]]);
        // The first target was before the periods.
        let found = counts(first(), &[&[(-5, TARGET), (1, BOTH), (12, BOTH)]]);
        assert_eq!(found, [vec![0, 0, 0], vec![0, 0, 0], vec![0, 0], vec![0]]);
    }

    #[test]
    fn coming_back_is_another_event_in_a_later_period() {
        let recurring = retention(RetentionKind::Recurring, false, 1);
        let persons: [&[(i64, u8)]; 3] = [
            &[(1, TARGET), (2, RETURNING), (15, RETURNING), (16, RETURNING)],
            &[(1, RETURNING), (12, TARGET), (22, RETURNING)],
            &[(1, TARGET), (12, 0), (-3, RETURNING), (99, BOTH)],
        ];
        let found = counts(recurring, &persons);
        assert_eq!(found, [vec![2, 1, 0], vec![1, 1, 0], vec![0, 0], vec![0]]);
    }

    #[test]
    fn few_returning_events_are_no_return() {
        let twice = retention(RetentionKind::Recurring, false, 2);
        let found =
            counts(twice, &[&[(1, TARGET), (11, RETURNING), (21, RETURNING), (22, RETURNING)]]);
        assert_eq!(found[0], [1, 0, 1]);
    }

    #[test]
    fn a_later_return_counts_for_the_periods_before_it() {
        let cumulative = retention(RetentionKind::Recurring, true, 1);
        let found = counts(cumulative, &[&[(1, TARGET), (21, RETURNING)], &[(1, TARGET)]]);
        assert_eq!(found[0], [2, 1, 1]);
    }

    #[test]
    fn without_periods_nothing_counts() {
        let mut empty = Retention::new(&[], RetentionKind::Recurring, 8, false, 1);
        empty.person(&events(&[(1, BOTH)]));
        assert!(empty.counts().is_empty());
    }

    proptest! {
        #[test]
        fn counts_do_not_depend_on_order_and_parts(
            persons in prop::collection::vec(
                prop::collection::vec((-10..50_i64, 0..4_u8), 0..8),
                0..20,
            ),
            order in any::<u64>(),
            is_cumulative in any::<bool>(),
            is_recurring in any::<bool>(),
        ) {
            let persons: Vec<Vec<RetentionEvent>> = persons
                .into_iter()
                .map(|mut person| {
                    person.sort_unstable();
                    events(&person)
                })
                .collect();
            let kind = match is_recurring {
                true => RetentionKind::Recurring,
                false => RetentionKind::FirstTime,
            };
            let empty = retention(kind, is_cumulative, 1);
            let mut one = empty.clone();
            persons.iter().for_each(|person| one.person(person));
            let all = in_parts(
                &persons,
                order,
                &empty,
                |part, person| part.person(person),
                Retention::merge,
            );
            prop_assert_eq!(all.counts(), one.counts());
            // The numbers are those of the persons behind them.
            let mut counts: Vec<Vec<u64>> =
                one.counts().iter().map(|counts| vec![0; counts.len()]).collect();
            for person in &persons {
                empty.begins(person, |begin, after| {
                    for (number, count) in counts[begin].iter_mut().enumerate() {
                        *count += u64::from(empty.counts_for(after, number));
                    }
                });
            }
            prop_assert_eq!(one.counts(), &counts[..]);
        }
    }
}
