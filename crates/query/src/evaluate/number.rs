//! Numbers: integers are exact, with intermediate results beyond 64 bits; others are
//! floating point. Results out of range are not numbers.

use std::cmp::Ordering;

use crate::tree::Arithmetic;
use crate::value::Value;

/// A number for arithmetic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Integer(i128),
    /// A floating-point number; always finite.
    Float(f64),
}

/// Floats beyond this limit are not converted to `i128`, whose maximum is 1.701e38.
const BEYOND_WHOLE: f64 = 1.7e38;

impl Number {
    /// Parses a number.
    pub(crate) fn read(text: &str) -> Option<Self> {
        // Words such as `inf` and `nan` are not numbers here.
        if !text.bytes().next_back()?.is_ascii_digit() && !text.ends_with('.') {
            return None;
        }
        match text.parse() {
            Ok(number) => Some(Self::Integer(number)),
            Err(_) => Self::of_float(text.parse().ok()?),
        }
    }

    pub(crate) fn of_float(number: f64) -> Option<Self> {
        number.is_finite().then_some(Self::Float(number))
    }

    pub(crate) fn float(self) -> f64 {
        match self {
            Self::Integer(number) => number as f64,
            Self::Float(number) => number,
        }
    }

    /// The integer part; `None` if it needs more than 64 bits.
    pub(crate) fn integer(self) -> Option<i64> {
        match self {
            Self::Integer(number) => i64::try_from(number).ok(),
            Self::Float(number) => i64::try_from(whole(number)?).ok(),
        }
    }

    pub(crate) fn is_zero(self) -> bool {
        match self {
            Self::Integer(number) => number == 0,
            Self::Float(number) => number == 0.0,
        }
    }

    /// As a value; `None` if it needs more than 64 bits.
    fn value(self) -> Option<Value<'static>> {
        match self {
            Self::Integer(number) => i64::try_from(number).ok().map(Value::Integer),
            Self::Float(number) => number.is_finite().then_some(Value::Float(number)),
        }
    }

    /// Compares two numbers exactly.
    pub(crate) fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(left), Self::Integer(right)) => left.cmp(&right),
            (Self::Float(left), Self::Float(right)) => {
                left.partial_cmp(&right).unwrap_or(Ordering::Equal)
            }
            (Self::Integer(left), Self::Float(right)) => integer_with_float(left, right),
            (Self::Float(left), Self::Integer(right)) => integer_with_float(right, left).reverse(),
        }
    }
}

fn integer_with_float(integer: i128, float: f64) -> Ordering {
    match whole(float) {
        None if float > 0.0 => Ordering::Less,
        None => Ordering::Greater,
        Some(part) => integer
            .cmp(&part)
            .then_with(|| 0.0_f64.partial_cmp(&(float - float.trunc())).unwrap_or(Ordering::Equal)),
    }
}

/// The integer part of a number.
fn whole(number: f64) -> Option<i128> {
    (number.abs() < BEYOND_WHOLE).then(|| number.trunc() as i128)
}

/// The result for two numbers; `None` if there is none, or if it needs more than 64 bits.
pub(crate) fn calculate(
    arithmetic: Arithmetic,
    left: Number,
    right: Number,
) -> Option<Value<'static>> {
    if arithmetic == Arithmetic::Divide {
        if right.is_zero() {
            return None;
        }
        return Number::Float(left.float() / right.float()).value();
    }
    if let (Number::Integer(left), Number::Integer(right)) = (left, right) {
        let result = match arithmetic {
            Arithmetic::Add => left.checked_add(right),
            Arithmetic::Subtract => left.checked_sub(right),
            Arithmetic::Multiply => left.checked_mul(right),
            Arithmetic::Divide | Arithmetic::Remainder => left.checked_rem(right),
        };
        return Number::Integer(result?).value();
    }
    let (left, right) = (left.float(), right.float());
    let result = match arithmetic {
        Arithmetic::Add => left + right,
        Arithmetic::Subtract => left - right,
        Arithmetic::Multiply => left * right,
        Arithmetic::Divide => left / right,
        Arithmetic::Remainder => left % right,
    };
    Number::Float(result).value()
}

/// A number rounded to a number of decimals, as ClickHouse does: halves to the even neighbour.
pub(crate) fn rounded(number: Number, decimals: i64) -> Option<Value<'static>> {
    let decimals = i32::try_from(decimals).ok().filter(|decimals| (0..=15).contains(decimals))?;
    with_float(number, |float| {
        let scaled = float * 10_f64.powi(decimals);
        // A number that is too large to be scaled has no decimals.
        if scaled.is_finite() { scaled.round_ties_even() / 10_f64.powi(decimals) } else { float }
    })
}

/// The same integer, or a change of another number.
pub(crate) fn with_float(
    number: Number,
    change: impl FnOnce(f64) -> f64,
) -> Option<Value<'static>> {
    match number {
        Number::Integer(_) => number.value(),
        Number::Float(float) => Number::Float(change(float)).value(),
    }
}

/// A number without its sign.
pub(crate) fn without_sign(number: Number) -> Option<Value<'static>> {
    match number {
        Number::Integer(number) => Number::Integer(number.checked_abs()?).value(),
        Number::Float(number) => Number::Float(number.abs()).value(),
    }
}

/// The shortest text that is parsed as the same number.
pub(crate) fn text(number: f64) -> String {
    let size = number.abs();
    if size == 0.0 || (1e-5..1e21).contains(&size) {
        format!("{number}")
    } else {
        format!("{number:e}")
    }
}
