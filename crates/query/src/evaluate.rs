//! Evaluating a query for one event.
//!
//! Null propagates as in ClickHouse: the result of an operation on null is null, except
//! for functions that test for it. `AND` and `OR` use three-valued logic. `IN` ignores
//! nulls in its list. An event is exported only if the condition is true. A result without
//! a value (a text that is not a number, a division by zero, an integer beyond 64 bits, a
//! time after the year 9999, a text longer than [`TEXT_MAX`]) is null too, so no event
//! makes an export fail. No event can delay it for long either: the work for an event has
//! a [`WorkLimit`]. If the condition uses up the limit, the export skips and counts the
//! event.
//!
//! What belongs here: values of expressions. What does not: reading fields (`weir-export`
//! implements [`QueryInput`]), and writing the values.

mod calls;
pub(crate) mod kind;
pub(crate) mod number;
mod pattern;
mod text;
pub(crate) mod time;
mod work_limit;

use std::borrow::Cow;
use std::cmp::Ordering;

use super::fields::Field;
use super::tree::{Arithmetic, Comparison, Expression, Literal, Query, TimeUnit};
use super::value::Value;

pub use work_limit::{MAX_WORK, WorkLimit, WorkLimitReached};

/// Maximum bytes of the text result of a function: twice the maximum of an event.
pub const TEXT_MAX: usize = 2 << 20;

/// An event, or a row or group of a question, as expressions see it. The methods with a body
/// are for questions alone: exports are in UTC, and have neither groups nor a clock.
pub trait QueryInput {
    /// The value of a field.
    fn field(&self, field: Field) -> Value<'_>;

    /// A property by its path, of a field with properties; null if there is none.
    fn property(&self, field: Field, path: &[String]) -> Value<'_>;

    /// The remaining work for this event.
    fn work_limit(&self) -> &WorkLimit;

    /// A column of the table or of the select in FROM.
    fn column(&self, _at: usize) -> Value<'_> {
        Value::Null
    }

    /// A property by its path, of a column with JSON; null if there is none.
    fn column_property(&self, _at: usize, _path: &[String]) -> Value<'_> {
        Value::Null
    }

    /// The value of the group for an expression of GROUP BY.
    fn key(&self, _at: usize) -> Value<'_> {
        Value::Null
    }

    /// The result of an aggregate for the group.
    fn aggregate(&self, _at: usize) -> Value<'_> {
        Value::Null
    }

    /// Whether a set has this value, which is not null.
    fn set_has(&self, _set: usize, _value: &Value<'_>) -> Option<bool> {
        None
    }

    /// The current time, in microseconds since 1970: the same one for all rows.
    fn now(&self) -> Option<i64> {
        None
    }

    /// What clocks in the time zone show at this time, as microseconds since 1970 by them.
    fn local(&self, micros: i64) -> Option<i64> {
        Some(micros)
    }

    /// The time at which clocks in the time zone show this. A time that clocks skip becomes the
    /// time after the change; of a time that comes twice, it is the first one.
    fn instant(&self, local: i64) -> Option<i64> {
        Some(local)
    }

    /// The start of the unit of a time, in the time zone.
    fn start_of(&self, unit: TimeUnit, micros: i64) -> Option<i64> {
        time::start_of(unit, micros)
    }

    /// A time moved by units of the calendar, in the time zone.
    fn shifted(&self, micros: i64, count: i64, unit: TimeUnit) -> Option<i64> {
        time::shifted(micros, count, unit)
    }
}

impl Query {
    /// Whether the event satisfies the condition.
    ///
    /// # Errors
    /// When the work limit is used up before the condition is true.
    pub fn matches(&self, row: &dyn QueryInput) -> Result<bool, WorkLimitReached> {
        let Some(filter) = &self.filter else { return Ok(true) };
        match filter.evaluate(row).boolean() == Some(true) {
            true => Ok(true),
            false if row.work_limit().is_used_up() => Err(WorkLimitReached),
            false => Ok(false),
        }
    }
}

impl Expression {
    /// The value of the expression. If the work limit of the row is used up, computed values
    /// are null; values that are in the event or in the query are not affected.
    pub fn evaluate<'a>(&'a self, row: &'a dyn QueryInput) -> Value<'a> {
        let work_limit = row.work_limit();
        let is_computed = !matches!(
            self,
            Self::Field(_)
                | Self::Property(..)
                | Self::Literal(_)
                | Self::Column(_)
                | Self::ColumnProperty(..)
                | Self::Key(_)
                | Self::Aggregate(_)
        );
        if is_computed && work_limit.is_used_up() {
            return Value::Null;
        }
        let value = self.compute(row);
        // Every reader of a text reads all of it.
        work_limit.charge(1 + value.size());
        // A part of the computation may have been skipped.
        match is_computed && work_limit.is_used_up() {
            true => Value::Null,
            false => value,
        }
    }

    fn compute<'a>(&'a self, row: &'a dyn QueryInput) -> Value<'a> {
        match self {
            Self::Field(field) => row.field(*field),
            Self::Property(field, path) => row.property(*field, path),
            Self::Literal(literal) => literal_value(literal),
            Self::Call(function, arguments) => calls::call(*function, arguments, row),
            Self::And(items) => and_or(items, row, false),
            Self::Or(items) => and_or(items, row, true),
            Self::Not(inner) => boolean_or_null(inner.evaluate(row).boolean().map(|value| !value)),
            Self::Compare(comparison, left, right) => {
                let ordering = compare(&left.evaluate(row), &right.evaluate(row), row);
                boolean_or_null(ordering.map(|ordering| is_satisfied(*comparison, ordering)))
            }
            Self::In { value, among, is_negated } => {
                let value = value.evaluate(row);
                if value.is_null() {
                    return Value::Null;
                }
                let work_limit = row.work_limit();
                let found = among.iter().any(|other| {
                    work_limit.charge(value.size());
                    !work_limit.is_used_up() && equal(&value, &other.evaluate(row), row)
                });
                boolean_or_null(Some(found != *is_negated))
            }
            Self::Like { value, pattern, ignores_case, is_negated } => {
                let (value, pattern) = (value.evaluate(row), pattern.evaluate(row));
                let matches = match (text_of(value, row), text_of(pattern, row)) {
                    (Some(text), Some(pattern)) => {
                        pattern::matches(&text, &pattern, *ignores_case, row.work_limit())
                    }
                    _ => None,
                };
                boolean_or_null(matches.map(|matches| matches != *is_negated))
            }
            Self::Between { value, low, high, is_negated } => {
                let value = value.evaluate(row);
                let above = compare(&value, &low.evaluate(row), row).map(Ordering::is_ge);
                let below = compare(&value, &high.evaluate(row), row).map(Ordering::is_le);
                let between = match (above, below) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                };
                boolean_or_null(between.map(|between| between != *is_negated))
            }
            Self::IsNull { value, is_negated } => {
                Value::Boolean(value.evaluate(row).is_null() != *is_negated)
            }
            Self::Arithmetic(arithmetic, left, right) => {
                calculate(*arithmetic, &left.evaluate(row), &right.evaluate(row), row)
                    .unwrap_or(Value::Null)
            }
            Self::Negative(inner) => {
                calculate(Arithmetic::Subtract, &Value::Integer(0), &inner.evaluate(row), row)
                    .unwrap_or(Value::Null)
            }
            Self::Shift { time, count, unit } => {
                shifted(&time.evaluate(row), *count, *unit, row).unwrap_or(Value::Null)
            }
            Self::Column(at) => row.column(*at),
            Self::ColumnProperty(at, path) => row.column_property(*at, path),
            Self::Key(at) => row.key(*at),
            Self::Aggregate(at) => row.aggregate(*at),
            Self::InSet { value, set, is_negated } => {
                let value = value.evaluate(row);
                let found = if value.is_null() { None } else { row.set_has(*set, &value) };
                boolean_or_null(found.map(|found| found != *is_negated))
            }
        }
    }
}

fn literal_value(literal: &Literal) -> Value<'_> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Boolean(value) => Value::Boolean(*value),
        Literal::Integer(number) => Value::Integer(*number),
        Literal::Float(number) => Value::Float(*number),
        Literal::Text(text) => Value::Text(text.as_str().into()),
        Literal::RegularExpression(expression) => Value::Text(expression.text().into()),
    }
}

fn boolean_or_null(value: Option<bool>) -> Value<'static> {
    value.map_or(Value::Null, Value::Boolean)
}

/// `AND`, where `false` decides, or `OR`, where `true` does. Otherwise one null makes the
/// result null.
fn and_or<'a>(items: &'a [Expression], row: &'a dyn QueryInput, decisive: bool) -> Value<'a> {
    let mut no_null = true;
    for item in items {
        match item.evaluate(row).boolean() {
            Some(value) if value == decisive => return Value::Boolean(decisive),
            Some(_) => {}
            None => no_null = false,
        }
    }
    boolean_or_null(no_null.then_some(!decisive))
}

fn is_satisfied(comparison: Comparison, ordering: Ordering) -> bool {
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
fn equal(left: &Value<'_>, right: &Value<'_>, row: &dyn QueryInput) -> bool {
    compare(left, right, row) == Some(Ordering::Equal)
}

/// The value as microseconds since 1970. A date, and a text without an offset, is what clocks
/// in the time zone show (QRY-53).
fn instant_of(value: &Value<'_>, row: &dyn QueryInput) -> Option<i64> {
    match value {
        Value::Date(days) => row.instant(time::of_day(*days)),
        Value::Text(text) => match time::read_local(text)? {
            (local, false) => row.instant(local),
            (micros, true) => Some(micros),
        },
        value => value.timestamp(),
    }
}

impl Value<'_> {
    /// The value as microseconds since 1970, as it is compared with a time. A date, and a text
    /// without an offset, is what clocks in the time zone of the row show (QRY-53).
    pub fn instant(&self, row: &dyn QueryInput) -> Option<i64> {
        instant_of(self, row)
    }
}

/// The value as text. A time is what clocks in the time zone show.
fn text_of<'a>(value: Value<'a>, row: &dyn QueryInput) -> Option<Cow<'a, str>> {
    match value {
        Value::Timestamp(micros) => time::text(row.local(micros)?).map(Cow::Owned),
        value => value.into_text(),
    }
}

/// The order of two values; `None`: they cannot be compared.
///
/// The more specific kind decides: a text is compared with a time as a time, and with a
/// number as a number. A property that is not a text is compared with a text as text.
fn compare(left: &Value<'_>, right: &Value<'_>, row: &dyn QueryInput) -> Option<Ordering> {
    use Value::{Boolean, Date, Json, Null, Text, Timestamp, Uuid};
    match (left, right) {
        (Null, _) | (_, Null) => None,
        (Text(left) | Json(left), Text(right)) | (Text(left), Json(right)) => Some(left.cmp(right)),
        (Date(left), Date(right)) => Some(left.cmp(right)),
        (Timestamp(_) | Date(_), _) | (_, Timestamp(_) | Date(_)) => {
            Some(instant_of(left, row)?.cmp(&instant_of(right, row)?))
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
fn calculate(
    arithmetic: Arithmetic,
    left: &Value<'_>,
    right: &Value<'_>,
    row: &dyn QueryInput,
) -> Option<Value<'static>> {
    use Value::{Date, Timestamp};
    let minus_one = number::Number::Integer(-1);
    let negated = || {
        number::calculate(Arithmetic::Multiply, right.number()?, minus_one)
            .and_then(|value| value.number())
    };
    match (arithmetic, left, right) {
        // Days have the same length by the calendar, whatever clocks do.
        (Arithmetic::Subtract, Date(_), Date(_)) => {
            let micros = left.timestamp()?.checked_sub(right.timestamp()?)?;
            Some(Value::Float(time::float_seconds(micros)))
        }
        (Arithmetic::Subtract, Timestamp(_) | Date(_), Timestamp(_) | Date(_)) => {
            let micros = instant_of(left, row)?.checked_sub(instant_of(right, row)?)?;
            Some(Value::Float(time::float_seconds(micros)))
        }
        (Arithmetic::Add, Timestamp(at), by) | (Arithmetic::Add, by, Timestamp(at)) => {
            time::plus_seconds(*at, by.number()?).map(Timestamp)
        }
        (Arithmetic::Subtract, Timestamp(at), _) => {
            time::plus_seconds(*at, negated()?).map(Timestamp)
        }
        (Arithmetic::Add, Date(day), by) | (Arithmetic::Add, by, Date(day)) => {
            time::plus_days(*day, by.number()?).map(Date)
        }
        (Arithmetic::Subtract, Date(day), _) => time::plus_days(*day, negated()?).map(Date),
        _ => number::calculate(arithmetic, left.number()?, right.number()?),
    }
}

/// A time or a date moved by units of the calendar. A date that is moved by days or longer
/// units stays a date, which has no time zone.
fn shifted(
    value: &Value<'_>,
    count: i64,
    unit: TimeUnit,
    row: &dyn QueryInput,
) -> Option<Value<'static>> {
    use TimeUnit::{Hour, Minute, Second};
    match value {
        Value::Date(day) if !matches!(unit, Second | Minute | Hour) => {
            time::day(time::shifted(time::of_day(*day), count, unit)?).map(Value::Date)
        }
        value => row.shifted(instant_of(value, row)?, count, unit).map(Value::Timestamp),
    }
}

#[cfg(test)]
mod tests;
