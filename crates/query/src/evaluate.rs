//! Evaluating a query for one event.
//!
//! Null propagates as in ClickHouse: the result of an operation on null is null, except
//! for functions that test for it. `AND` and `OR` use three-valued logic. An event is
//! exported only if the condition is true. A result without a value (a text that is not a
//! number, a division by zero, an integer beyond 64 bits, a time after the year 9999, a
//! text longer than [`TEXT_MAX`]) is null too, so no event can fail an export. No event
//! can delay it for long either: the work for an event has a [`Budget`].
//!
//! What belongs here: values of expressions. What does not: reading fields (`weir-export`
//! implements [`Row`]), and writing the values.

mod budget;
mod calls;
mod kind;
pub(crate) mod number;
mod pattern;
mod text;
pub(crate) mod time;

use std::cmp::Ordering;

use super::fields::Field;
use super::tree::{Arithmetic, Comparison, Expression, Literal, Query};
use super::value::Value;

pub use budget::{Budget, WORK_MAX};

/// Maximum bytes of the text result of a function: twice the maximum of an event.
pub const TEXT_MAX: usize = 2 << 20;

/// An event as expressions see it.
pub trait Row {
    /// The value of a field.
    fn field(&self, field: Field) -> Value<'_>;

    /// A property by its path, of a field with properties; null if there is none.
    fn property(&self, field: Field, path: &[String]) -> Value<'_>;

    /// The remaining budget for this event.
    fn budget(&self) -> &Budget;
}

impl Query {
    /// Whether the event satisfies the condition.
    pub fn matches(&self, row: &dyn Row) -> bool {
        match &self.filter {
            None => true,
            Some(filter) => filter.evaluate(row).boolean() == Some(true),
        }
    }
}

impl Expression {
    /// The value of the expression. If the budget of the row is used up, computed values
    /// are null; values that are in the event or in the query are not affected.
    pub fn evaluate<'a>(&'a self, row: &'a dyn Row) -> Value<'a> {
        let budget = row.budget();
        let is_made = !matches!(self, Self::Field(_) | Self::Property(..) | Self::Literal(_));
        if is_made && budget.is_used_up() {
            return Value::Null;
        }
        let value = self.computed(row);
        // Every reader of a text reads all of it.
        budget.charge(1 + value.size());
        // A part of the computation may have been skipped.
        match is_made && budget.is_used_up() {
            true => Value::Null,
            false => value,
        }
    }

    fn computed<'a>(&'a self, row: &'a dyn Row) -> Value<'a> {
        match self {
            Self::Field(field) => row.field(*field),
            Self::Property(field, path) => row.property(*field, path),
            Self::Literal(literal) => of_literal(literal),
            Self::Call(function, arguments) => calls::call(*function, arguments, row),
            Self::And(items) => all(items, row, false),
            Self::Or(items) => all(items, row, true),
            Self::Not(inner) => truth(inner.evaluate(row).boolean().map(|value| !value)),
            Self::Compare(comparison, left, right) => {
                let ordering = compare(&left.evaluate(row), &right.evaluate(row));
                truth(ordering.map(|ordering| holds(*comparison, ordering)))
            }
            Self::In { value, among, is_negated } => {
                let value = value.evaluate(row);
                if value.is_null() {
                    return Value::Null;
                }
                let budget = row.budget();
                let found = among.iter().any(|other| {
                    budget.charge(value.size());
                    !budget.is_used_up() && equal(&value, &other.evaluate(row))
                });
                truth(Some(found != *is_negated))
            }
            Self::Like { value, pattern, ignores_case, is_negated } => {
                let (value, pattern) = (value.evaluate(row), pattern.evaluate(row));
                let fits = match (value.into_text(), pattern.into_text()) {
                    (Some(text), Some(pattern)) => {
                        pattern::fits(&text, &pattern, *ignores_case, row.budget())
                    }
                    _ => None,
                };
                truth(fits.map(|fits| fits != *is_negated))
            }
            Self::Between { value, least, most, is_negated } => {
                let value = value.evaluate(row);
                let above = compare(&value, &least.evaluate(row)).map(Ordering::is_ge);
                let below = compare(&value, &most.evaluate(row)).map(Ordering::is_le);
                let between = match (above, below) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                };
                truth(between.map(|between| between != *is_negated))
            }
            Self::IsNull { value, is_negated } => {
                Value::Boolean(value.evaluate(row).is_null() != *is_negated)
            }
            Self::Arithmetic(arithmetic, left, right) => {
                work_out(*arithmetic, &left.evaluate(row), &right.evaluate(row))
                    .unwrap_or(Value::Null)
            }
            Self::Negative(inner) => {
                work_out(Arithmetic::Subtract, &Value::Integer(0), &inner.evaluate(row))
                    .unwrap_or(Value::Null)
            }
        }
    }
}

fn of_literal(literal: &Literal) -> Value<'_> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Boolean(value) => Value::Boolean(*value),
        Literal::Integer(number) => Value::Integer(*number),
        Literal::Float(number) => Value::Float(*number),
        Literal::Text(text) => Value::Text(text.as_str().into()),
    }
}

fn truth(value: Option<bool>) -> Value<'static> {
    value.map_or(Value::Null, Value::Boolean)
}

/// `AND`, where `false` decides, or `OR`, where `true` does. Otherwise one null makes the
/// result null.
fn all<'a>(items: &'a [Expression], row: &'a dyn Row, decisive: bool) -> Value<'a> {
    let mut knows_all = true;
    for item in items {
        match item.evaluate(row).boolean() {
            Some(value) if value == decisive => return Value::Boolean(decisive),
            Some(_) => {}
            None => knows_all = false,
        }
    }
    truth(knows_all.then_some(!decisive))
}

fn holds(comparison: Comparison, ordering: Ordering) -> bool {
    match comparison {
        Comparison::Equal => ordering.is_eq(),
        Comparison::NotEqual => ordering.is_ne(),
        Comparison::Less => ordering.is_lt(),
        Comparison::LessOrEqual => ordering.is_le(),
        Comparison::Greater => ordering.is_gt(),
        Comparison::GreaterOrEqual => ordering.is_ge(),
    }
}

/// Whether two values are equal.
fn equal(left: &Value<'_>, right: &Value<'_>) -> bool {
    compare(left, right) == Some(Ordering::Equal)
}

/// The order of two values; `None`: they cannot be compared.
///
/// The more specific kind decides: a text is compared with a time as a time, and with a
/// number as a number. A property that is not a text is compared with a text as text.
fn compare(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    use Value::{Boolean, Date, Json, Null, Text, Timestamp, Uuid};
    match (left, right) {
        (Null, _) | (_, Null) => None,
        (Text(left) | Json(left), Text(right)) | (Text(left), Json(right)) => Some(left.cmp(right)),
        (Timestamp(_) | Date(_), _) | (_, Timestamp(_) | Date(_)) => {
            Some(left.timestamp()?.cmp(&right.timestamp()?))
        }
        (Uuid(_), _) | (_, Uuid(_)) => Some(left.uuid()?.cmp(&right.uuid()?)),
        (Boolean(left), Text(_)) => Some(left.cmp(&right.boolean()?)),
        (Text(_), Boolean(right)) => Some(left.boolean()?.cmp(right)),
        (Json(left_text), Json(right_text)) => match (left.number(), right.number()) {
            (Some(left), Some(right)) => Some(left.compare(right)),
            _ => Some(left_text.cmp(right_text)),
        },
        _ => Some(left.number()?.compare(right.number()?)),
    }
}

/// Arithmetic of numbers; a time plus seconds, a date plus days; the difference of two
/// times in seconds.
fn work_out(arithmetic: Arithmetic, left: &Value<'_>, right: &Value<'_>) -> Option<Value<'static>> {
    use Value::{Date, Timestamp};
    let minus_one = number::Number::Integer(-1);
    let opposite = || {
        number::work_out(Arithmetic::Multiply, right.number()?, minus_one)
            .and_then(|value| value.number())
    };
    match (arithmetic, left, right) {
        (Arithmetic::Subtract, Timestamp(_) | Date(_), Timestamp(_) | Date(_)) => {
            let micros = left.timestamp()?.checked_sub(right.timestamp()?)?;
            Some(Value::Float(time::float_seconds(micros)))
        }
        (Arithmetic::Add, Timestamp(at), by) | (Arithmetic::Add, by, Timestamp(at)) => {
            time::plus_seconds(*at, by.number()?).map(Timestamp)
        }
        (Arithmetic::Subtract, Timestamp(at), _) => {
            time::plus_seconds(*at, opposite()?).map(Timestamp)
        }
        (Arithmetic::Add, Date(day), by) | (Arithmetic::Add, by, Date(day)) => {
            time::plus_days(*day, by.number()?).map(Date)
        }
        (Arithmetic::Subtract, Date(day), _) => time::plus_days(*day, opposite()?).map(Date),
        _ => number::work_out(arithmetic, left.number()?, right.number()?),
    }
}

#[cfg(test)]
mod tests;
