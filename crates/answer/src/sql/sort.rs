//! The first rows of a result.
//!
//! What belongs here: keeping as many rows as a question asks for, in its order. What does
//! not: what the rows have, and groups.

use std::cmp::Ordering;

use super::value::{Owned, compare_for_order, row_bytes};
use crate::error::Result;
use crate::run::{Reservation, Run};

/// Rows beyond those that are kept, before they are sorted again.
const SPARE: usize = 1_024;

/// What decides between rows with equal values of ORDER BY, so that the order is always the
/// same: ascending.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tie {
    /// The negative time and arrival number of an event, so that the newest one is first, and
    /// the number of its part.
    Event(i64, i64, u64),
    /// Values, such as those of a group.
    Values(Vec<Owned>),
    /// The number of a row, in the order of what is read.
    Number(u64),
}

impl Tie {
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Event(a, b, c), Self::Event(d, e, f)) => (a, b, c).cmp(&(d, e, f)),
            (Self::Values(left), Self::Values(right)) => compare_rows(left, right),
            (Self::Number(left), Self::Number(right)) => left.cmp(right),
            _ => Ordering::Equal,
        }
    }
}

/// The order of rows of values.
pub(super) fn compare_rows(left: &[Owned], right: &[Owned]) -> Ordering {
    let values = left.iter().zip(right);
    values.map(|(a, b)| super::value::compare(a, b)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

/// A row with what it is sorted by.
#[derive(Debug)]
pub(super) struct Sorted<T> {
    pub(super) keys: Vec<Owned>,
    pub(super) tie: Tie,
    pub(super) row: T,
}

/// The first rows, by their keys.
#[derive(Debug)]
pub(super) struct Top<'a, T> {
    rows: Vec<Sorted<T>>,
    /// Most rows that are needed.
    most: usize,
    descending: Vec<bool>,
    /// Whether the row at `most` is the last one that is needed so far.
    has_last: bool,
    /// Bytes of the rows, and of one.
    bytes: usize,
    size: fn(&T) -> usize,
    memory: Reservation<'a>,
}

impl<'a, T> Top<'a, T> {
    /// `descending` has the directions of the keys.
    pub(super) fn new(
        run: &Run<'a>,
        most: usize,
        descending: Vec<bool>,
        size: fn(&T) -> usize,
    ) -> Self {
        let memory = run.memory.reservation();
        let has_last = most == 0;
        Self { rows: Vec::new(), most, descending, has_last, bytes: 0, size, memory }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn push(&mut self, row: Sorted<T>) -> Result<()> {
        self.bytes += self.size_of(&row);
        self.rows.push(row);
        if self.rows.len() >= self.most.saturating_mul(2).saturating_add(SPARE) {
            self.cut();
        }
        self.memory.hold(self.bytes)
    }

    fn size_of(&self, row: &Sorted<T>) -> usize {
        let tie = match &row.tie {
            Tie::Values(values) => row_bytes(values),
            _ => 0,
        };
        // A vector has room for more.
        2 * size_of::<Sorted<T>>() + row_bytes(&row.keys) + tie + (self.size)(&row.row)
    }

    /// Sorts the rows, and drops those that are not needed.
    pub(super) fn cut(&mut self) {
        let descending = &self.descending;
        self.rows.sort_unstable_by(|left, right| order(descending, left, right));
        self.has_last = self.rows.len() >= self.most;
        if self.rows.len() > self.most {
            self.rows.truncate(self.most);
            let bytes: usize = self.rows.iter().map(|row| self.size_of(row)).sum();
            self.bytes = bytes;
            self.memory.shrink(bytes);
        }
    }

    /// Whether a row would be dropped, because enough others come before it.
    pub(super) fn is_behind(&self, keys: &[Owned], tie: &Tie) -> bool {
        let Some(last) = self.most.checked_sub(1) else { return true };
        self.rows.get(last).filter(|_| self.has_last).is_some_and(|last| {
            let order = compare_keys(&self.descending, &last.keys, keys);
            order.then_with(|| last.tie.compare(tie)).is_lt()
        })
    }

    /// Adds the rows of another one.
    pub(super) fn merge(&mut self, other: Self) -> Result<()> {
        other.rows.into_iter().try_for_each(|row| self.push(row))
    }

    /// The rows in their order, and their memory.
    pub(super) fn into_rows(mut self) -> (Vec<Sorted<T>>, Reservation<'a>) {
        self.cut();
        (self.rows, self.memory)
    }
}

fn order<T>(descending: &[bool], left: &Sorted<T>, right: &Sorted<T>) -> Ordering {
    let keys = compare_keys(descending, &left.keys, &right.keys);
    keys.then_with(|| left.tie.compare(&right.tie))
}

fn compare_keys(descending: &[bool], left: &[Owned], right: &[Owned]) -> Ordering {
    let keys = left.iter().zip(right).zip(descending);
    keys.map(|((left, right), is_descending)| compare_for_order(left, right, *is_descending))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_query::Value;

    use super::*;
    use crate::error::AnswerError;
    use crate::run::{Cancel, MemoryPool};

    fn row(key: Option<i64>, tie: u64) -> Sorted<u64> {
        let key = key.map_or(Value::Null, Value::Integer);
        Sorted { keys: vec![key], tie: Tie::Number(tie), row: tie }
    }

    proptest! {
        #[test]
        fn the_first_rows_are_those_of_the_sorted_list(
            keys in prop::collection::vec(prop::option::of(-5..5_i64), 0..40),
            most in 0..50_usize,
            split in any::<prop::sample::Index>(),
            is_descending in any::<bool>(),
        ) {
            let (cancel, memory) = (Cancel::default(), MemoryPool::new(1 << 20));
            let run = Run { threads: 1, cancel: &cancel, memory: &memory };
            let rows: Vec<(Option<i64>, u64)> = keys.into_iter().zip(0..).collect();
            let mut expected = rows.clone();
            expected.sort_by_key(|(key, tie)| {
                let by = key.map(|key| if is_descending { -key } else { key });
                (key.is_none(), by, *tie)
            });
            let expected: Vec<u64> = expected.into_iter().map(|(_, tie)| tie).take(most).collect();
            let at = split.index(rows.len() + 1);
            let mut parts: Vec<Top<'_, u64>> = Vec::new();
            for part in [&rows[at..], &rows[..at]] {
                let mut top = Top::new(&run, most, vec![is_descending], |_| 0);
                for (key, tie) in part {
                    let row = row(*key, *tie);
                    if !top.is_behind(&row.keys, &row.tie) {
                        top.push(row).unwrap();
                    }
                    if tie % 3 == 0 {
                        top.cut();
                    }
                }
                parts.push(top);
            }
            let second = parts.pop().unwrap();
            let mut all = parts.pop().unwrap();
            all.merge(second).unwrap();
            let found: Vec<u64> = all.into_rows().0.into_iter().map(|row| row.row).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn rows_need_memory() {
        let (cancel, memory) = (Cancel::default(), MemoryPool::new(10_000));
        let run = Run { threads: 1, cancel: &cancel, memory: &memory };
        let mut top = Top::new(&run, 1_000, vec![false], |_| 1_000);
        let failed = (0..100).find_map(|at| top.push(row(Some(1), at)).err());
        assert!(matches!(failed, Some(AnswerError::Memory { limit: 10_000 })));
        drop(top);
        assert_eq!(memory.used(), 0);
    }
}
