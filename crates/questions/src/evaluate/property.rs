//! The value of a property of an event, person or group (QRY-25).
//!
//! What belongs here: what a value is as a text and as a number. What does not: finding it
//! (the engine).

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Number;

use crate::query::FilterValue;

/// Most bytes of a text that is read as a number.
const NUMBER_TEXT_MAX: usize = 40;
/// Whole numbers below this are kept exactly; they are much larger than 64 bits.
const WHOLE_MAX: f64 = 1e38;

/// The value of a property. Null and the absence of the property are the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PropertyValue<'a> {
    /// There is no value.
    Missing,
    /// A text.
    Text(&'a str),
    /// A number without a fraction, of up to 64 bits.
    Integer(i128),
    /// Another number.
    Double(f64),
    /// True or false.
    Boolean(bool),
    /// The JSON of a list or an object.
    Json(&'a str),
}

impl<'a> PropertyValue<'a> {
    /// Its text, with which it is compared and shown: a text itself, the shortest one of a
    /// number (`5`, `5.5`), `true` or `false`, or JSON. `None`: there is no value.
    pub fn text(self) -> Option<Cow<'a, str>> {
        Some(match self {
            Self::Missing => return None,
            Self::Text(text) | Self::Json(text) => Cow::Borrowed(text),
            Self::Integer(number) => Cow::Owned(number.to_string()),
            Self::Double(number) => Cow::Owned(Numeric::of(number)?.to_string()),
            Self::Boolean(flag) => Cow::Borrowed(if flag { "true" } else { "false" }),
        })
    }

    /// Its number. A text that is a number of JSON is one, as in clients that send all values
    /// as texts. `None`: it is no number, or no finite one.
    pub fn number(self) -> Option<Numeric> {
        match self {
            Self::Integer(number) => Some(Numeric::Whole(number)),
            Self::Double(number) => Numeric::of(number),
            Self::Text(text) => Numeric::of_text(text),
            Self::Missing | Self::Boolean(_) | Self::Json(_) => None,
        }
    }
}

/// A finite number. All whole numbers have one form, so that equal numbers are equal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Numeric {
    /// A whole number.
    Whole(i128),
    /// A number with a fraction, or one that is too large.
    Double(f64),
}

impl Numeric {
    /// The number of a double. `None`: it is not finite.
    pub fn of(number: f64) -> Option<Self> {
        let is_whole = number.fract() == 0.0 && number.abs() < WHOLE_MAX;
        match is_whole {
            true => Some(Self::Whole(number as i128)),
            false => number.is_finite().then_some(Self::Double(number)),
        }
    }

    /// The number of a number of JSON.
    pub fn of_json(number: &Number) -> Option<Self> {
        let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
        whole.map(Self::Whole).or_else(|| Self::of(number.as_f64()?))
    }

    /// The number of a value of a filter, also of a text.
    pub fn of_value(value: &FilterValue) -> Option<Self> {
        match value {
            FilterValue::Number(number) => Self::of_json(number),
            FilterValue::Text(text) => Self::of_text(text),
            FilterValue::Boolean(_) => None,
        }
    }

    fn of_text(text: &str) -> Option<Self> {
        // Most texts are no numbers, which their first byte says.
        let may_be = text.as_bytes().first().is_some_and(|b| b.is_ascii_digit() || *b == b'-');
        if !may_be || text.len() > NUMBER_TEXT_MAX {
            return None;
        }
        Self::of_json(&serde_json::from_str(text).ok()?)
    }

    /// The nearest double.
    pub fn value(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Double(number) => number,
        }
    }
}

/// The shortest text, which is read as the same number.
impl std::fmt::Display for Numeric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            // Of more digits than a double has, the shortest text has an exponent.
            Self::Whole(number) if number.unsigned_abs() < 1 << 64 => write!(f, "{number}"),
            Self::Whole(number) => write!(f, "{:?}", *number as f64),
            Self::Double(number) => write!(f, "{number:?}"),
        }
    }
}

impl Eq for Numeric {}

impl std::hash::Hash for Numeric {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        match self {
            Self::Whole(number) => number.hash(state),
            Self::Double(number) => number.to_bits().hash(state),
        }
    }
}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// By value, without rounding.
impl Ord for Numeric {
    fn cmp(&self, other: &Self) -> Ordering {
        match (*self, *other) {
            (Self::Whole(a), Self::Whole(b)) => a.cmp(&b),
            (Self::Double(a), Self::Double(b)) => a.total_cmp(&b),
            (Self::Whole(a), Self::Double(b)) => whole_and_double(a, b),
            (Self::Double(a), Self::Whole(b)) => whole_and_double(b, a).reverse(),
        }
    }
}

/// A whole number beside one that has a fraction or is larger than all whole ones.
fn whole_and_double(whole: i128, double: f64) -> Ordering {
    if double.abs() >= WHOLE_MAX {
        return if double > 0.0 { Ordering::Less } else { Ordering::Greater };
    }
    // It is above its floor.
    match whole <= double.floor() as i128 {
        true => Ordering::Less,
        false => Ordering::Greater,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_have_one_text() {
        for (value, text) in [
            (PropertyValue::Missing, None),
            (PropertyValue::Text("5.0"), Some("5.0")),
            (PropertyValue::Text(""), Some("")),
            (PropertyValue::Integer(i128::from(u64::MAX)), Some("18446744073709551615")),
            (PropertyValue::Double(5.0), Some("5")),
            (PropertyValue::Double(5.5), Some("5.5")),
            (PropertyValue::Double(-0.0), Some("0")),
            (PropertyValue::Double(1e16), Some("10000000000000000")),
            (PropertyValue::Double(1e30), Some("1e30")),
            (PropertyValue::Double(1e300), Some("1e300")),
            (PropertyValue::Double(1e-7), Some("1e-7")),
            (PropertyValue::Double(f64::NAN), None),
            (PropertyValue::Boolean(true), Some("true")),
            (PropertyValue::Json("[1]"), Some("[1]")),
        ] {
            assert_eq!(value.text().as_deref(), text, "{value:?}");
        }
    }

    #[test]
    fn texts_that_are_numbers_are_numbers() {
        for (value, number) in [
            (PropertyValue::Text("5"), Some(Numeric::Whole(5))),
            (PropertyValue::Text("5.0"), Some(Numeric::Whole(5))),
            (PropertyValue::Text("-5.5"), Some(Numeric::Double(-5.5))),
            (PropertyValue::Text("1e3"), Some(Numeric::Whole(1000))),
            (PropertyValue::Text("9007199254740993"), Some(Numeric::Whole(9_007_199_254_740_993))),
            (PropertyValue::Text(""), None),
            (PropertyValue::Text(" 5"), None),
            (PropertyValue::Text("0x10"), None),
            (PropertyValue::Text("05"), None),
            (PropertyValue::Text("5 apples"), None),
            (PropertyValue::Text("1e999"), None),
            (PropertyValue::Text("Infinity"), None),
            (PropertyValue::Text(&"1".repeat(41)), None),
            (PropertyValue::Boolean(true), None),
            (PropertyValue::Json("[5]"), None),
            (PropertyValue::Missing, None),
        ] {
            assert_eq!(value.number(), number, "{value:?}");
        }
    }

    #[test]
    fn numbers_are_compared_without_rounding() {
        let numbers = [
            Numeric::Double(-1e300),
            Numeric::Whole(i128::from(i64::MIN)),
            Numeric::Double(-0.5),
            Numeric::Whole(0),
            Numeric::Double(0.5),
            Numeric::Whole(9_007_199_254_740_992),
            Numeric::Whole(9_007_199_254_740_993),
            Numeric::Whole(i128::from(u64::MAX)),
            Numeric::Double(1e300),
        ];
        assert!(numbers.is_sorted());
        for pair in numbers.windows(2) {
            assert_eq!(pair[1].cmp(&pair[0]), Ordering::Greater, "{pair:?}");
        }
    }

    proptest! {
        #[test]
        fn a_number_is_read_from_its_text(number in any::<f64>()) {
            if let Some(number) = Numeric::of(number) {
                let text = number.to_string();
                prop_assert_eq!(Numeric::of_text(&text), Some(number), "{}", text);
            }
        }

        #[test]
        fn numbers_are_ordered_as_their_doubles(a in any::<f64>(), b in -1e4..1e4_f64) {
            for (a, b) in [(a, b), (b.floor(), b), (b, b * 2.0)] {
                if let (Some(first), Some(second)) = (Numeric::of(a), Numeric::of(b)) {
                    prop_assert_eq!(Some(first.cmp(&second)), a.partial_cmp(&b));
                }
            }
        }
    }
}
