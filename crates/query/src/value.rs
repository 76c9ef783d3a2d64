//! Values of expressions, and conversions between kinds of values.
//!
//! A conversion that fails returns `None`, which becomes null: an export never fails
//! because of a value.

use std::borrow::Cow;

use uuid::Uuid;
use weir_json::quoted;

use super::evaluate::number::{self, Number};
use super::evaluate::time;

/// A value that an expression comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// Text.
    Text(Cow<'a, str>),
    /// JSON as text: a property that is not a text, with the original digits.
    Json(Cow<'a, str>),
    /// A number without a fraction that fits 64 bits.
    Integer(i64),
    /// A floating-point number; always finite.
    Float(f64),
    /// True or false.
    Boolean(bool),
    /// Microseconds since 1970, UTC.
    Timestamp(i64),
    /// A day: days since 1970.
    Date(i32),
    /// A uuid.
    Uuid(Uuid),
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Text.
    Text,
    /// JSON as text.
    Json,
    /// A 64-bit integer.
    Integer,
    /// A number.
    Float,
    /// True or false.
    Boolean,
    /// Microseconds since 1970, UTC. A date becomes the start of the day.
    Timestamp,
    /// A uuid.
    Uuid,
}

impl<'a> Value<'a> {
    /// The value of a property: its text if it is a string, otherwise its JSON.
    pub fn of_json(json: &'a str) -> Self {
        match json {
            "null" => Self::Null,
            json => weir_json::string(json).map_or(Self::Json(Cow::Borrowed(json)), Self::Text),
        }
    }

    /// A copy that borrows nothing.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Self::Null => Value::Null,
            Self::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Self::Json(json) => Value::Json(Cow::Owned(json.into_owned())),
            Self::Integer(number) => Value::Integer(number),
            Self::Float(number) => Value::Float(number),
            Self::Boolean(value) => Value::Boolean(value),
            Self::Timestamp(micros) => Value::Timestamp(micros),
            Self::Date(days) => Value::Date(days),
            Self::Uuid(uuid) => Value::Uuid(uuid),
        }
    }

    /// Bytes of its text.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Text(text) | Self::Json(text) => text.len(),
            _ => 0,
        }
    }

    /// Whether it is null.
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The value as text.
    pub fn into_text(self) -> Option<Cow<'a, str>> {
        Some(match self {
            Self::Null => return None,
            Self::Text(text) | Self::Json(text) => text,
            Self::Integer(number) => Cow::Owned(number.to_string()),
            Self::Float(number) => Cow::Owned(number::text(number)),
            Self::Boolean(true) => Cow::Borrowed("true"),
            Self::Boolean(false) => Cow::Borrowed("false"),
            Self::Timestamp(micros) => Cow::Owned(time::text(micros)?),
            Self::Date(days) => Cow::Owned(time::day_text(days)?),
            Self::Uuid(uuid) => Cow::Owned(uuid.to_string()),
        })
    }

    /// The value as JSON.
    pub fn into_json(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Json(json) => Some(json),
            Self::Integer(_) | Self::Float(_) | Self::Boolean(_) => self.into_text(),
            other => Some(Cow::Owned(quoted(&other.into_text()?))),
        }
    }

    /// The value as an integer: decimals are truncated, a time is in seconds since 1970.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Self::Text(text) => text.trim().parse().ok(),
            Self::Timestamp(_) | Self::Date(_) => self.timestamp().map(time::seconds),
            other => other.number()?.integer(),
        }
    }

    /// The value as a number; a time is in seconds since 1970.
    pub fn float(&self) -> Option<f64> {
        match self {
            Self::Timestamp(micros) => Some(time::float_seconds(*micros)),
            Self::Date(_) => Some(time::float_seconds(self.timestamp()?)),
            other => Some(other.number()?.float()),
        }
    }

    /// The value as true or false: a number is true unless it is 0.
    pub fn boolean(&self) -> Option<bool> {
        match self {
            Self::Boolean(value) => Some(*value),
            Self::Text(text) => word(text.trim()),
            Self::Json(json) if json == "true" => Some(true),
            Self::Json(json) if json == "false" => Some(false),
            Self::Integer(_) | Self::Float(_) | Self::Json(_) => Some(!self.number()?.is_zero()),
            _ => None,
        }
    }

    /// The value as microseconds since 1970: a text with a time, or a number of seconds.
    pub fn timestamp(&self) -> Option<i64> {
        match self {
            Self::Timestamp(micros) => Some(*micros),
            Self::Date(days) => Some(time::of_day(*days)),
            Self::Text(text) => time::read(text),
            Self::Integer(_) | Self::Float(_) | Self::Json(_) => time::of_seconds(self.number()?),
            _ => None,
        }
    }

    /// The value as a uuid.
    pub fn uuid(&self) -> Option<Uuid> {
        match self {
            Self::Uuid(uuid) => Some(*uuid),
            Self::Text(text) => Uuid::try_parse(text.trim()).ok(),
            _ => None,
        }
    }

    /// The value as a number for arithmetic.
    pub(super) fn number(&self) -> Option<Number> {
        match self {
            Self::Integer(number) => Some(Number::Integer(i128::from(*number))),
            Self::Float(number) => Number::of_float(*number),
            Self::Boolean(value) => Some(Number::Integer(i128::from(*value))),
            Self::Text(text) => Number::read(text.trim()),
            Self::Json(json) => match &**json {
                "true" => Some(Number::Integer(1)),
                "false" => Some(Number::Integer(0)),
                json => Number::read(json),
            },
            Self::Null | Self::Timestamp(_) | Self::Date(_) | Self::Uuid(_) => None,
        }
    }
}

/// Parses the words for true and false.
fn word(text: &str) -> Option<bool> {
    let is_one_of = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(text));
    if is_one_of(&["true", "t", "yes", "y", "on", "1"]) {
        Some(true)
    } else if is_one_of(&["false", "f", "no", "n", "off", "0"]) {
        Some(false)
    } else {
        None
    }
}
