//! The aggregates of a group (QRY-56).
//!
//! Each is exact, and does not depend on the order of rows: what a thread found is merged
//! with what others found.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use weir_json::push_string;
use weir_query::{Aggregate, Value};
use weir_questions::evaluate::{ExactSum, Numeric, PropertyValue, percentile};

use super::value::{self, Owned, bytes, compare, is_shown_before, push_key};
use crate::error::{AnswerError, Result};

/// Most values of a list.
const LIST_MAX: usize = 1_000;
/// Bytes of a hash in a set, with its free places.
const HASH: usize = 40;
/// Bytes of a value in a list beside its own.
const ENTRY: usize = 64;

/// A hash that is its own hash.
#[derive(Debug, Default)]
pub(super) struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, number: u128) {
        self.0 = number as u64;
    }
}

pub(super) type Hashes = HashSet<u128, BuildHasherDefault<Same>>;

/// What was found of an aggregate.
#[derive(Debug)]
pub(super) enum State {
    Count(u64),
    /// Keyed hashes of 128 bits of the values: no two values of a project have the same.
    Uniq(Box<Hashes>),
    Sum(Box<Sum>),
    Avg(Box<Sum>),
    /// The smallest or the largest value, by the direction.
    Extreme(Ordering, Option<Owned>),
    Quantile(f64, Vec<f64>),
    /// The second value, and the first one of its row.
    ArgExtreme(Ordering, Option<(Owned, Owned)>),
    /// By their keys.
    List(BTreeMap<Vec<u8>, Owned>),
}

/// A sum of numbers.
#[derive(Debug, Default)]
pub(super) struct Sum {
    all: ExactSum,
    count: u64,
    whole: i128,
    has_fractions: bool,
}

impl Sum {
    fn add(&mut self, number: Numeric) {
        self.count += 1;
        match number {
            // All that have 64 bits.
            Numeric::Whole(number) if number.unsigned_abs() < 1 << 64 => {
                self.whole += number;
                let mut rest = number;
                while rest != 0 {
                    let part =
                        i64::try_from(rest).unwrap_or(if rest < 0 { i64::MIN } else { i64::MAX });
                    self.all.add_integer(part);
                    rest -= i128::from(part);
                }
            }
            Numeric::Whole(number) => {
                self.has_fractions = true;
                self.all.add(number as f64);
            }
            Numeric::Double(number) => {
                self.has_fractions = true;
                self.all.add(number);
            }
        }
    }

    fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.whole += other.whole;
        self.has_fractions |= other.has_fractions;
        self.all.merge(other.all);
    }

    /// A whole number if all were.
    fn sum(&self) -> Owned {
        match i64::try_from(self.whole) {
            _ if self.count == 0 => Value::Null,
            Ok(whole) if !self.has_fractions => Value::Integer(whole),
            _ => finite(self.all.value()),
        }
    }

    fn average(&self) -> Owned {
        match self.count {
            0 => Value::Null,
            count => finite(self.all.value() / count as f64),
        }
    }
}

fn finite(number: f64) -> Owned {
    if number.is_finite() { Value::Float(number) } else { Value::Null }
}

/// The number of a value: of a text only if it is a number of JSON (QRY-25).
fn number(value: &Value<'_>) -> Option<Numeric> {
    match value {
        Value::Integer(number) => Some(Numeric::Whole((*number).into())),
        Value::Float(number) => Numeric::of(*number),
        Value::Boolean(flag) => Some(Numeric::Whole((*flag).into())),
        Value::Text(text) | Value::Json(text) => PropertyValue::Text(text).number(),
        _ => None,
    }
}

impl State {
    pub(super) fn new(aggregate: Aggregate) -> Self {
        match aggregate {
            Aggregate::Count => Self::Count(0),
            Aggregate::Uniq => Self::Uniq(Box::default()),
            Aggregate::Sum => Self::Sum(Box::default()),
            Aggregate::Avg => Self::Avg(Box::default()),
            // Any value is as good, so it is one that all threads agree about.
            Aggregate::Min | Aggregate::Any => Self::Extreme(Ordering::Less, None),
            Aggregate::Max => Self::Extreme(Ordering::Greater, None),
            Aggregate::Quantile(level) => Self::Quantile(level, Vec::new()),
            Aggregate::ArgMin => Self::ArgExtreme(Ordering::Less, None),
            Aggregate::ArgMax => Self::ArgExtreme(Ordering::Greater, None),
            Aggregate::GroupUniqArray => Self::List(BTreeMap::new()),
        }
    }

    /// Adds the arguments of a row. Returns the bytes by which it has grown.
    pub(super) fn add(
        &mut self,
        first: Option<Value<'_>>,
        second: Option<Value<'_>>,
    ) -> Result<usize> {
        let Some(first) = first else {
            // `count()` counts rows.
            if let Self::Count(count) = self {
                *count += 1;
            }
            return Ok(0);
        };
        if first.is_null() {
            return Ok(0);
        }
        match self {
            Self::Count(count) => *count += 1,
            Self::Uniq(hashes) => {
                let mut key = Vec::new();
                push_key(&mut key, &first);
                return Ok(if hashes.insert(hash(&key)) { HASH } else { 0 });
            }
            Self::Sum(sum) | Self::Avg(sum) => {
                let before = sum.all.bytes();
                if let Some(number) = number(&first) {
                    sum.add(number);
                }
                return Ok(sum.all.bytes() - before);
            }
            Self::Extreme(wanted, found) => {
                if found.as_ref().is_none_or(|found| is_better(&first, found, *wanted)) {
                    let more = bytes(&first);
                    *found = Some(first.into_owned());
                    return Ok(more);
                }
            }
            Self::Quantile(_, numbers) => {
                if let Some(number) = number(&first) {
                    numbers.push(number.value());
                    return Ok(2 * size_of::<f64>());
                }
            }
            Self::ArgExtreme(wanted, found) => {
                let Some(second) = second.filter(|second| !second.is_null()) else { return Ok(0) };
                let is_better = found.as_ref().is_none_or(|(by, value)| {
                    is_arg_better((&second, &first), (by, value), *wanted)
                });
                if is_better {
                    let more = bytes(&first) + bytes(&second);
                    *found = Some((second.into_owned(), first.into_owned()));
                    return Ok(more);
                }
            }
            Self::List(values) => return add_to_list(values, first),
        }
        Ok(0)
    }

    /// Adds what another thread found of the same aggregate. Returns the bytes by which it has
    /// grown.
    pub(super) fn merge(&mut self, other: Self) -> Result<usize> {
        match (self, other) {
            (Self::Count(count), Self::Count(more)) => *count += more,
            (Self::Uniq(hashes), Self::Uniq(more)) => {
                let before = hashes.len();
                hashes.extend(*more);
                return Ok((hashes.len() - before) * HASH);
            }
            (Self::Sum(sum), Self::Sum(more)) | (Self::Avg(sum), Self::Avg(more)) => {
                let before = sum.all.bytes();
                sum.merge(*more);
                return Ok(sum.all.bytes() - before);
            }
            (found @ Self::Extreme(..), Self::Extreme(_, Some(value))) => {
                return found.add(Some(value), None);
            }
            (Self::Quantile(_, numbers), Self::Quantile(_, mut more)) => {
                let bytes = more.len() * 2 * size_of::<f64>();
                numbers.append(&mut more);
                return Ok(bytes);
            }
            (found @ Self::ArgExtreme(..), Self::ArgExtreme(_, Some((by, value)))) => {
                return found.add(Some(value), Some(by));
            }
            (Self::List(values), Self::List(more)) => {
                let mut bytes = 0;
                for value in more.into_values() {
                    bytes += add_to_list(values, value)?;
                }
                return Ok(bytes);
            }
            _ => {}
        }
        Ok(0)
    }

    /// The result.
    pub(super) fn value(self) -> Owned {
        match self {
            Self::Count(count) => i64::try_from(count).map_or(Value::Null, Value::Integer),
            Self::Uniq(hashes) => i64::try_from(hashes.len()).map_or(Value::Null, Value::Integer),
            Self::Sum(sum) => sum.sum(),
            Self::Avg(sum) => sum.average(),
            Self::Extreme(_, found) => found.unwrap_or(Value::Null),
            Self::Quantile(level, mut numbers) => {
                percentile(&mut numbers, level).map_or(Value::Null, finite)
            }
            Self::ArgExtreme(_, found) => found.map_or(Value::Null, |(_, value)| value),
            Self::List(values) => {
                let mut values: Vec<Owned> = values.into_values().collect();
                values.sort_by(compare);
                let mut list = String::from("[");
                for (at, value) in values.into_iter().enumerate() {
                    if at > 0 {
                        list.push(',');
                    }
                    match value {
                        Value::Text(text) => push_string(&mut list, &text),
                        value => list.push_str(&value.into_json().unwrap_or_default()),
                    }
                }
                list.push(']');
                Value::Json(list.into())
            }
        }
    }
}

/// Whether a value replaces one. Of equal ones, which one is shown must not depend on threads.
fn is_better(value: &Value<'_>, found: &Value<'_>, wanted: Ordering) -> bool {
    match compare(value, found) {
        Ordering::Equal => is_shown_before(value, found),
        order => order == wanted,
    }
}

fn is_arg_better(
    (by, value): (&Value<'_>, &Value<'_>),
    (found_by, found): (&Value<'_>, &Value<'_>),
    wanted: Ordering,
) -> bool {
    match compare(by, found_by) {
        Ordering::Equal => is_better(value, found, Ordering::Less),
        order => order == wanted,
    }
}

fn add_to_list(values: &mut BTreeMap<Vec<u8>, Owned>, value: Value<'_>) -> Result<usize> {
    let mut key = Vec::new();
    push_key(&mut key, &value);
    if let Some(known) = values.get_mut(&key) {
        if is_shown_before(&value, known) {
            *known = value.into_owned();
        }
        return Ok(0);
    }
    if values.len() == LIST_MAX {
        let what = "values of groupUniqArray".to_owned();
        return Err(AnswerError::TooLarge { what, limit: LIST_MAX });
    }
    let more = key.len() + value::bytes(&value) + ENTRY;
    values.insert(key, value.into_owned());
    Ok(more)
}

/// A keyed hash. The key is random, so that a sender cannot make two values with the same.
fn hash(key: &[u8]) -> u128 {
    use std::hash::{BuildHasher as _, RandomState};
    use std::sync::OnceLock;
    static SEED: OnceLock<u64> = OnceLock::new();
    let seed = SEED.get_or_init(|| RandomState::new().hash_one(0));
    twox_hash::XxHash3_128::oneshot_with_seed(*seed, key)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(aggregate: Aggregate, rows: &[(Owned, Owned)]) -> Owned {
        let mut state = State::new(aggregate);
        for (first, second) in rows {
            state.add(Some(first.clone()), Some(second.clone())).unwrap();
        }
        state.value()
    }

    fn column(values: &[Owned]) -> Vec<(Owned, Owned)> {
        values.iter().map(|value| (value.clone(), Value::Null)).collect()
    }

    fn text(text: &'static str) -> Owned {
        Value::Text(text.into())
    }

    #[test]
    fn aggregates_ignore_null() {
        let values = column(&[
            Value::Null,
            Value::Integer(2),
            Value::Float(0.5),
            Value::Json("2".into()),
            text("x"),
        ]);
        for (aggregate, expected, empty) in [
            (Aggregate::Count, Value::Integer(4), Value::Integer(0)),
            (Aggregate::Uniq, Value::Integer(3), Value::Integer(0)),
            (Aggregate::Sum, Value::Float(4.5), Value::Null),
            (Aggregate::Avg, Value::Float(1.5), Value::Null),
            (Aggregate::Min, Value::Float(0.5), Value::Null),
            (Aggregate::Max, text("x"), Value::Null),
            (Aggregate::Any, Value::Float(0.5), Value::Null),
            (Aggregate::Quantile(0.5), Value::Float(2.0), Value::Null),
            (
                Aggregate::GroupUniqArray,
                Value::Json("[0.5,2,\"x\"]".into()),
                Value::Json("[]".into()),
            ),
        ] {
            assert_eq!(of(aggregate, &values), expected, "{aggregate:?}");
            assert_eq!(of(aggregate, &column(&[Value::Null])), empty, "{aggregate:?}");
        }
        let rows = [
            (text("a"), Value::Integer(2)),
            (text("b"), Value::Integer(1)),
            (text("c"), Value::Null),
            (Value::Null, Value::Integer(0)),
            (text("B"), Value::Integer(1)),
        ];
        assert_eq!(of(Aggregate::ArgMin, &rows), text("B"));
        assert_eq!(of(Aggregate::ArgMax, &rows), text("a"));
        let mut count = State::new(Aggregate::Count);
        count.add(None, None).unwrap();
        assert_eq!(count.value(), Value::Integer(1));
    }

    #[test]
    fn sums_are_exact() {
        let large = |number: i64| Value::Integer(number);
        assert_eq!(
            of(Aggregate::Sum, &column(&[large(i64::MAX), large(-1), large(-i64::MAX + 3)])),
            Value::Integer(2)
        );
        let wide = Value::Json("18446744073709551615".into());
        assert_eq!(
            of(
                Aggregate::Sum,
                &column(&[wide.clone(), Value::Integer(i64::MIN), Value::Integer(i64::MIN)])
            ),
            Value::Integer(-1)
        );
        assert_eq!(
            of(Aggregate::Sum, &column(&[wide])),
            Value::Float(18_446_744_073_709_551_616.0)
        );
        let tenths = vec![Value::Float(0.1); 10];
        assert_eq!(of(Aggregate::Sum, &column(&tenths)), Value::Float(1.0));
    }

    #[test]
    fn a_list_has_a_bound() {
        let mut list = State::new(Aggregate::GroupUniqArray);
        for number in 0..LIST_MAX as i64 * 2 {
            let added = list.add(Some(Value::Integer(number / 2)), None);
            assert!(added.is_ok(), "{number}");
        }
        let added = list.add(Some(Value::Integer(-1)), None);
        assert!(matches!(added, Err(AnswerError::TooLarge { limit: LIST_MAX, .. })));
    }

    fn values() -> impl Strategy<Value = Owned> {
        prop_oneof![
            Just(Value::Null),
            (-3..4_i64).prop_map(Value::Integer),
            (-30..40_i32).prop_map(|tenth| Value::Float(f64::from(tenth) / 10.0)),
            (-3..4_i64).prop_map(|number| Value::Json(number.to_string().into())),
            "[a-b1]{0,2}".prop_map(|text| Value::Text(text.into())),
        ]
    }

    proptest! {
        #[test]
        fn aggregates_do_not_depend_on_order_and_threads(
            rows in prop::collection::vec((values(), values()), 0..30),
            at in any::<prop::sample::Index>(),
            turned in any::<prop::sample::Index>(),
        ) {
            for aggregate in Aggregate::ALL {
                let expected = of(aggregate, &rows);
                let mut other = rows.clone();
                if !other.is_empty() {
                    other.rotate_left(turned.index(rows.len()));
                }
                let (left, right) = other.split_at(at.index(other.len() + 1));
                let mut states = [left, right].map(|part| {
                    let mut state = State::new(aggregate);
                    for (first, second) in part {
                        state.add(Some(first.clone()), Some(second.clone())).unwrap();
                    }
                    Some(state)
                });
                let mut all = states[0].take().unwrap();
                all.merge(states[1].take().unwrap()).unwrap();
                prop_assert_eq!(all.value(), expected, "{:?}", aggregate);
            }
        }
    }
}
