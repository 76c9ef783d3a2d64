//! Values of rows: equality, order, bytes, and JSON (QRY-54, QRY-55).
//!
//! What belongs here: what questions in SQL do with values beside computing them. What does
//! not: expressions (`weir-query`).

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::{Number, Value as Json};
use weir_model::Timestamp;
use weir_query::{Kind, Value};
use weir_questions::evaluate::{Numeric, PropertyValue};

/// A value that borrows nothing.
pub(super) type Owned = Value<'static>;

/// From this magnitude on, a double does not have every whole number.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The value of a property. Numbers have their shortest text, so that they are the same in a
/// column and in JSON (QRY-25).
pub(super) fn of_property(value: PropertyValue<'_>) -> Value<'_> {
    match value {
        PropertyValue::Missing => Value::Null,
        PropertyValue::Text(text) => Value::Text(Cow::Borrowed(text)),
        value => value.text().map_or(Value::Null, Value::Json),
    }
}

/// The value of JSON inside of a property, or of a property of a person or group.
pub(super) fn of_json(json: &str) -> Value<'_> {
    match json.as_bytes().first() {
        Some(b'-' | b'0'..=b'9') => {
            let number = serde_json::from_str::<Number>(json).ok();
            let numeric = number.as_ref().and_then(Numeric::of_json);
            let text = numeric.map_or(Cow::Borrowed(json), |number| number.to_string().into());
            Value::Json(text)
        }
        _ => Value::of_json(json),
    }
}

/// The same value without a copy of its text.
pub(super) fn borrowed<'a>(value: &'a Value<'_>) -> Value<'a> {
    match value {
        Value::Null => Value::Null,
        Value::Text(text) => Value::Text(Cow::Borrowed(text)),
        Value::Json(json) => Value::Json(Cow::Borrowed(json)),
        Value::Integer(number) => Value::Integer(*number),
        Value::Float(number) => Value::Float(*number),
        Value::Boolean(flag) => Value::Boolean(*flag),
        Value::Timestamp(micros) => Value::Timestamp(*micros),
        Value::Date(days) => Value::Date(*days),
        Value::Uuid(uuid) => Value::Uuid(*uuid),
    }
}

/// The bytes of a value in memory.
pub(super) fn bytes(value: &Value<'_>) -> usize {
    let text = match value {
        Value::Text(text) | Value::Json(text) => text.len(),
        _ => 0,
    };
    size_of::<Owned>() + text
}

/// Roughly the bytes of a value in JSON.
pub(super) fn json_bytes(value: &Owned) -> usize {
    const UUID: usize = 39;
    const OTHER: usize = 29;
    match value {
        Value::Text(text) | Value::Json(text) => text.len() + 3,
        Value::Uuid(_) => UUID,
        _ => OTHER,
    }
}

/// The bytes of the values of a row in memory.
pub(super) fn row_bytes(row: &[Owned]) -> usize {
    size_of::<Vec<Owned>>() + row.iter().map(bytes).sum::<usize>()
}

/// Appends bytes that are equal for values that are one in GROUP BY, DISTINCT and IN: texts,
/// numbers, true and false by their text, and times, days and uuids as such (QRY-54).
pub(super) fn push_key(key: &mut Vec<u8>, value: &Value<'_>) {
    let mut push_text = |text: &str| {
        key.push(1);
        key.extend_from_slice(&text.len().to_le_bytes());
        key.extend_from_slice(text.as_bytes());
    };
    match value {
        Value::Null => key.push(0),
        Value::Text(text) | Value::Json(text) => push_text(text),
        // Zero has two signs.
        Value::Float(number) if *number == 0.0 => push_text("0"),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => {
            if let Some(text) = borrowed(value).into_text() {
                push_text(&text);
            }
        }
        Value::Timestamp(micros) => {
            key.push(2);
            key.extend_from_slice(&micros.to_le_bytes());
        }
        Value::Date(days) => {
            key.push(3);
            key.extend_from_slice(&days.to_le_bytes());
        }
        Value::Uuid(uuid) => {
            key.push(4);
            key.extend_from_slice(uuid.as_bytes());
        }
    }
}

/// Of two values that are one, the one that is shown: which of them came first depends on the
/// threads.
pub(super) fn is_shown_before(value: &Value<'_>, other: &Value<'_>) -> bool {
    let rank = |value: &Value<'_>| match value {
        Value::Text(_) => 0,
        Value::Json(_) => 1,
        Value::Integer(_) => 2,
        Value::Float(_) => 3,
        _ => 4,
    };
    rank(value) < rank(other)
}

/// The order of values: numbers, false and true, times, uuids, texts by their bytes, and null
/// (QRY-54). Values that differ are never equal.
pub(super) fn compare(left: &Value<'_>, right: &Value<'_>) -> Ordering {
    let (left, right) = (Rank::of(left), Rank::of(right));
    left.class().cmp(&right.class()).then_with(|| match (left, right) {
        (Rank::Number(a, a_text), Rank::Number(b, b_text)) => {
            a.cmp(&b).then_with(|| a_text.cmp(&b_text))
        }
        (Rank::Boolean(a), Rank::Boolean(b)) => a.cmp(&b),
        (Rank::Time(a), Rank::Time(b)) => a.cmp(&b),
        (Rank::Uuid(a), Rank::Uuid(b)) => a.cmp(&b),
        (Rank::Text(a), Rank::Text(b)) => a.cmp(b),
        _ => Ordering::Equal,
    })
}

/// The order of values in ORDER BY: null is last in both directions.
pub(super) fn compare_for_order(
    left: &Value<'_>,
    right: &Value<'_>,
    is_descending: bool,
) -> Ordering {
    match is_descending && !left.is_null() && !right.is_null() {
        true => compare(right, left),
        false => compare(left, right),
    }
}

enum Rank<'a> {
    Number(Numeric, Option<&'a str>),
    Boolean(bool),
    Time((i64, u8)),
    Uuid(uuid::Uuid),
    Text(&'a str),
    Null,
}

impl<'a> Rank<'a> {
    fn of(value: &'a Value<'_>) -> Self {
        const DAY: i64 = 86_400_000_000;
        match value {
            Value::Null => Self::Null,
            Value::Text(text) => Self::Text(text),
            Value::Json(json) => match json.as_bytes().first() {
                Some(b'-' | b'0'..=b'9') => {
                    let number = serde_json::from_str::<Number>(json).ok();
                    let numeric = number.as_ref().and_then(Numeric::of_json);
                    numeric.map_or(Self::Text(json), |number| Self::Number(number, Some(json)))
                }
                _ if json == "true" => Self::Boolean(true),
                _ if json == "false" => Self::Boolean(false),
                _ => Self::Text(json),
            },
            Value::Integer(number) => Self::Number(Numeric::Whole((*number).into()), None),
            Value::Float(number) => {
                Numeric::of(*number).map_or(Self::Null, |number| Self::Number(number, None))
            }
            Value::Boolean(flag) => Self::Boolean(*flag),
            Value::Timestamp(micros) => Self::Time((*micros, 0)),
            Value::Date(days) => Self::Time((i64::from(*days).saturating_mul(DAY), 1)),
            Value::Uuid(uuid) => Self::Uuid(*uuid),
        }
    }

    fn class(&self) -> u8 {
        match self {
            Self::Number(..) => 0,
            Self::Boolean(_) => 1,
            Self::Time(_) => 2,
            Self::Uuid(_) => 3,
            Self::Text(_) => 4,
            Self::Null => 5,
        }
    }
}

/// A value of a column of this type as JSON (QRY-55).
pub(super) fn json(value: &Value<'_>, kind: Kind) -> Json {
    match (value, kind) {
        (Value::Null, _) => Json::Null,
        (Value::Integer(number), _) if kind != Kind::Text => Json::from(*number),
        (Value::Float(number), _) if kind != Kind::Text => {
            match number.fract() == 0.0 && number.abs() <= EXACT {
                true => Json::from(*number as i64),
                false => Number::from_f64(*number).map_or(Json::Null, Json::Number),
            }
        }
        (Value::Boolean(flag), _) if kind != Kind::Text => Json::Bool(*flag),
        (Value::Timestamp(micros), _) => Json::String(Timestamp::from_micros(*micros).to_string()),
        (Value::Json(json), Kind::Json) if json.starts_with('[') => {
            serde_json::from_str(json).unwrap_or(Json::Null)
        }
        (value, _) => {
            borrowed(value).into_text().map_or(Json::Null, |text| Json::String(text.into_owned()))
        }
    }
}

/// The name of a type, as clients know it.
pub fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Json => "String",
        Kind::Integer => "Int64",
        Kind::Float => "Float64",
        Kind::Boolean => "Bool",
        Kind::Timestamp => "DateTime64(6, 'UTC')",
        Kind::Uuid => "UUID",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    fn key(value: &Value<'_>) -> Vec<u8> {
        let mut key = Vec::new();
        push_key(&mut key, value);
        key
    }

    fn text(text: &str) -> Value<'_> {
        Value::Text(text.into())
    }

    #[test]
    fn values_with_the_same_text_are_one() {
        let one = [text("5"), Value::Json("5".into()), Value::Integer(5), Value::Float(5.0)];
        assert!(one.iter().all(|value| key(value) == key(&one[0])));
        assert_eq!(key(&Value::Float(-0.0)), key(&Value::Integer(0)));
        assert_eq!(key(&Value::Boolean(true)), key(&Value::Json("true".into())));
        let others =
            [text("5.0"), text(""), Value::Null, Value::Timestamp(5), Value::Date(5), text("\0")];
        for (at, value) in others.iter().enumerate() {
            assert!(others[at + 1..].iter().all(|other| key(other) != key(value)), "{value:?}");
            assert_ne!(key(value), key(&one[0]));
        }
        assert!(is_shown_before(&one[0], &one[1]) && !is_shown_before(&one[1], &one[1]));
    }

    #[test]
    fn values_have_one_order() {
        let sorted = [
            Value::Integer(-3),
            Value::Float(2.5),
            Value::Json("3".into()),
            Value::Integer(i64::MAX),
            Value::Json("18446744073709551615".into()),
            Value::Json("1e300".into()),
            Value::Boolean(false),
            Value::Json("true".into()),
            Value::Timestamp(-1),
            Value::Date(1),
            Value::Uuid(Uuid::from_u128(1)),
            text(""),
            text("10"),
            text("9"),
            Value::Json("[1]".into()),
            text("a"),
            Value::Null,
        ];
        for (at, left) in sorted.iter().enumerate() {
            for (other, right) in sorted.iter().enumerate() {
                assert_eq!(compare(left, right), at.cmp(&other), "{left:?} {right:?}");
                let has_null = left.is_null() || right.is_null();
                let expected = if has_null { at.cmp(&other) } else { other.cmp(&at) };
                assert_eq!(compare_for_order(left, right, true), expected, "{left:?} {right:?}");
            }
        }
    }

    #[test]
    fn values_of_a_column_have_its_type() {
        for (value, kind, expected) in [
            (Value::Null, Kind::Text, "null"),
            (Value::Json("5".into()), Kind::Text, "\"5\""),
            (Value::Integer(5), Kind::Text, "\"5\""),
            (Value::Boolean(true), Kind::Text, "\"true\""),
            (Value::Integer(i64::MAX), Kind::Integer, "9223372036854775807"),
            (Value::Float(5.0), Kind::Float, "5"),
            (Value::Float(0.1), Kind::Float, "0.1"),
            (Value::Float(1e300), Kind::Float, "1e+300"),
            (Value::Boolean(false), Kind::Boolean, "false"),
            (Value::Timestamp(0), Kind::Timestamp, "\"1970-01-01T00:00:00Z\""),
            (Value::Date(1), Kind::Timestamp, "\"1970-01-02\""),
            (Value::Uuid(Uuid::nil()), Kind::Uuid, "\"00000000-0000-0000-0000-000000000000\""),
            (Value::Json("{\"a\":1}".into()), Kind::Json, r#""{\"a\":1}""#),
            (Value::Json("[1,\"a\"]".into()), Kind::Json, "[1,\"a\"]"),
            (Value::Json("[1,\"a\"]".into()), Kind::Text, r#""[1,\"a\"]""#),
        ] {
            assert_eq!(json(&value, kind).to_string(), expected, "{value:?}");
        }
    }

    #[test]
    fn numbers_of_properties_have_their_shortest_text() {
        for (found, expected) in [
            (of_json("5.0"), Value::Json("5".into())),
            (of_json("1e3"), Value::Json("1000".into())),
            (of_json("-0"), Value::Json("0".into())),
            (of_json("18446744073709551615"), Value::Json("18446744073709551615".into())),
            (of_json("\"5.0\""), text("5.0")),
            (of_json("null"), Value::Null),
            (of_json("[5.0]"), Value::Json("[5.0]".into())),
            (of_property(PropertyValue::Double(5.0)), Value::Json("5".into())),
            (of_property(PropertyValue::Boolean(true)), Value::Json("true".into())),
            (of_property(PropertyValue::Missing), Value::Null),
        ] {
            assert_eq!(found, expected);
        }
    }

    fn values() -> impl Strategy<Value = Owned> {
        prop_oneof![
            Just(Value::Null),
            "[0-9a.-]{0,3}".prop_map(|text| Value::Text(text.into())),
            "-?[0-9]{1,2}(\\.[0-9])?".prop_map(|number| of_json(&number).into_owned()),
            (-9..9_i64).prop_map(Value::Integer),
            (-18..18_i32).prop_map(|half| Value::Float(f64::from(half) / 2.0)),
            any::<bool>().prop_map(Value::Boolean),
        ]
    }

    proptest! {
        #[test]
        fn the_order_is_total(a in values(), b in values(), c in values()) {
            prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            if compare(&a, &b).is_le() && compare(&b, &c).is_le() {
                prop_assert!(compare(&a, &c).is_le());
            }
        }
    }
}
