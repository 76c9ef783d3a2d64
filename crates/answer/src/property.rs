//! The values of a property in the rows of a batch (QRY-25).
//!
//! What belongs here: values as codes and numbers. What does not: which column or JSON they
//! are read from (`batch`).

use std::collections::HashMap;

use weir_json::{Cursor, Limits};
use weir_questions::evaluate::PropertyValue;
use weir_segments::{Bits, Codes, NONE};

/// From this magnitude on, a double does not have every whole number.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A value that borrows nothing. There is none for null.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(Box<str>),
    Integer(i128),
    Double(f64),
    Boolean(bool),
    Json(Box<str>),
}

impl Value {
    /// The value of valid JSON. `None`: null.
    pub(crate) fn of_json(json: &str) -> Option<Self> {
        match json.as_bytes() {
            b"null" => None,
            b"true" => Some(Self::Boolean(true)),
            b"false" => Some(Self::Boolean(false)),
            [b'"', ..] => {
                Some(Self::Text(weir_json::string_lossy(json).unwrap_or_default().into()))
            }
            [b'-' | b'0'..=b'9', ..] => Some(Self::of_number(json)),
            _ => Some(Self::Json(json.into())),
        }
    }

    fn of_number(json: &str) -> Self {
        const RANGE: std::ops::RangeInclusive<i128> = i64::MIN as i128..=u64::MAX as i128;
        match json.parse::<i128>() {
            Ok(whole) if RANGE.contains(&whole) => Self::Integer(whole),
            // Text that is no number would not have been stored.
            _ => Self::Double(json.parse().unwrap_or(f64::NAN)),
        }
    }

    pub(crate) fn as_property(&self) -> PropertyValue<'_> {
        match self {
            Self::Text(text) => PropertyValue::Text(text),
            Self::Integer(number) => PropertyValue::Integer(*number),
            Self::Double(number) => PropertyValue::Double(*number),
            Self::Boolean(flag) => PropertyValue::Boolean(*flag),
            Self::Json(json) => PropertyValue::Json(json),
        }
    }

    fn bytes(&self) -> usize {
        let text = match self {
            Self::Text(text) | Self::Json(text) => text.len(),
            _ => 0,
        };
        size_of::<Self>() + text
    }
}

/// The values of a property in the rows of a batch.
#[derive(Debug)]
pub(crate) enum PropertyColumn {
    /// For each row, the index of its value, or [`NONE`].
    Codes { codes: Vec<u32>, values: Vec<Value> },
    /// Numbers of which each double is exact.
    Numbers { values: Vec<f64>, valid: Bits },
}

impl PropertyColumn {
    /// Of a typed column with texts.
    pub(crate) fn of_texts(texts: Codes) -> Self {
        let value = |text: &_| Value::Text(String::from_utf8_lossy(text).into());
        let values = texts.values.iter().map(|bytes| value(&bytes[..])).collect();
        Self::Codes { codes: texts.codes, values }
    }

    /// Of a typed column with true and false.
    pub(crate) fn of_booleans(rows: usize, set: &Bits, valid: &Bits) -> Self {
        let mut codes = vec![NONE; rows];
        for row in valid.ones() {
            if let Some(code) = codes.get_mut(row) {
                *code = u32::from(set.get(row));
            }
        }
        Self::Codes { codes, values: vec![Value::Boolean(false), Value::Boolean(true)] }
    }

    /// The bytes that its values take.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Codes { codes, values } => {
                size_of_val(&codes[..]) + values.iter().map(Value::bytes).sum::<usize>()
            }
            Self::Numbers { values, .. } => size_of_val(&values[..]),
        }
    }

    /// The value of a row. Rows that were not asked for have none.
    pub(crate) fn value(&self, row: usize) -> PropertyValue<'_> {
        match self {
            Self::Codes { codes, values } => codes
                .get(row)
                .and_then(|code| values.get(*code as usize))
                .map_or(PropertyValue::Missing, Value::as_property),
            Self::Numbers { values, valid } if valid.get(row) => values
                .get(row)
                .map_or(PropertyValue::Missing, |number| PropertyValue::Double(*number)),
            Self::Numbers { .. } => PropertyValue::Missing,
        }
    }

    /// Whether a number may have lost digits in its double.
    pub(crate) fn is_inexact(&self, row: usize) -> bool {
        match self {
            Self::Codes { .. } => false,
            Self::Numbers { values, valid } => {
                valid.get(row) && values.get(row).is_some_and(|number| number.abs() >= EXACT)
            }
        }
    }

    /// Whether a row has no value.
    pub(crate) fn is_missing(&self, row: usize) -> bool {
        match self {
            Self::Codes { codes, .. } => codes.get(row).is_none_or(|code| *code == NONE),
            Self::Numbers { valid, .. } => !valid.get(row),
        }
    }

    /// Codes of numbers, so that other values can be beside them.
    fn into_codes(self) -> (Vec<u32>, Vec<Value>) {
        match self {
            Self::Codes { codes, values } => (codes, values),
            Self::Numbers { values: numbers, valid } => {
                let mut codes = vec![NONE; numbers.len()];
                let mut values = Vec::new();
                let mut known: HashMap<u64, u32> = HashMap::new();
                for row in valid.ones() {
                    let (Some(code), Some(number)) = (codes.get_mut(row), numbers.get(row)) else {
                        continue;
                    };
                    *code = *known.entry(number.to_bits()).or_insert_with(|| {
                        values.push(Value::Double(*number));
                        index(values.len() - 1)
                    });
                }
                (codes, values)
            }
        }
    }
}

fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(NONE)
}

/// Values of a property that are read from JSON.
#[derive(Debug)]
pub(crate) struct JsonColumn<'a> {
    pub(crate) name: &'a str,
    /// The rows whose value is read.
    pub(crate) rows: Bits,
    codes: Vec<u32>,
    values: Vec<Value>,
    /// Codes by the JSON of the values.
    known: HashMap<Box<str>, u32>,
    bytes: usize,
}

impl<'a> JsonColumn<'a> {
    /// For some rows of a batch. `before` has the values of the others.
    pub(crate) fn new(
        name: &'a str,
        size: usize,
        rows: Bits,
        before: Option<PropertyColumn>,
    ) -> Self {
        let (mut codes, values) = before.map_or_else(Default::default, PropertyColumn::into_codes);
        codes.resize(size, NONE);
        Self { name, rows, codes, values, known: HashMap::new(), bytes: 0 }
    }

    fn set(&mut self, row: u32, json: &str) {
        let code = match self.known.get(json) {
            Some(code) => *code,
            None => {
                let code = match Value::of_json(json) {
                    None => NONE,
                    Some(value) => {
                        self.bytes += json.len() + value.bytes();
                        self.values.push(value);
                        index(self.values.len() - 1)
                    }
                };
                self.known.insert(json.into(), code);
                code
            }
        };
        if let Some(place) = self.codes.get_mut(row as usize) {
            *place = code;
        }
    }

    /// The bytes of its values.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn finish(self) -> PropertyColumn {
        PropertyColumn::Codes { codes: self.codes, values: self.values }
    }
}

/// Notes the values of properties in a row. Of equal names, the last one counts.
pub(crate) fn see_json(columns: &mut [JsonColumn<'_>], row: u32, properties: &str) {
    let is_wanted = |column: &JsonColumn<'_>| column.rows.get(row as usize);
    if !columns.iter().any(is_wanted) {
        return;
    }
    // Stored text was checked, so that this walk does not end early.
    let _ = Cursor::new(properties, Limits::NONE).object(|key, cursor| {
        let value = cursor.value()?;
        let name = key.text();
        for column in columns.iter_mut().filter(|column| is_wanted(column)) {
            if column.name == name {
                column.set(row, value);
            }
        }
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Option<Value> {
        Value::of_json(json)
    }

    #[test]
    fn values_of_json_keep_their_digits() {
        assert_eq!(value("null"), None);
        assert_eq!(value("true"), Some(Value::Boolean(true)));
        assert_eq!(value("-0"), Some(Value::Integer(0)));
        assert_eq!(value("18446744073709551615"), Some(Value::Integer(u64::MAX.into())));
        assert_eq!(
            value("18446744073709551616"),
            Some(Value::Double(18_446_744_073_709_551_616.0))
        );
        assert_eq!(value("9007199254740993"), Some(Value::Integer(9_007_199_254_740_993)));
        assert_eq!(value("0.1"), Some(Value::Double(0.1)));
        assert_eq!(value("1e3"), Some(Value::Double(1_000.0)));
        assert_eq!(value(r#""a\u00e9\"""#), Some(Value::Text("aé\"".into())));
        assert_eq!(value(r#"[1, "a"]"#), Some(Value::Json(r#"[1, "a"]"#.into())));
    }

    #[test]
    fn of_equal_names_the_last_one_counts() {
        let mut rows = Bits::default();
        rows.fill(2);
        let column = |name| JsonColumn::new(name, 2, rows.clone(), None);
        let mut columns = [column("a"), column("é")];
        see_json(&mut columns, 0, r#"{"a":1,"b":{"a":3},"a":"2"}"#);
        see_json(&mut columns, 1, r#"{"a":1,"a":null,"\u00e9":[2]}"#);
        let [a, e] = columns.map(JsonColumn::finish);
        assert_eq!(a.value(0), PropertyValue::Text("2"));
        assert_eq!(a.value(1), PropertyValue::Missing);
        assert!(e.is_missing(0) && a.is_missing(1));
        assert_eq!(e.value(1), PropertyValue::Json("[2]"));
    }

    #[test]
    fn numbers_become_codes_beside_other_values() {
        let mut valid = Bits::default();
        valid.reset(3);
        valid.set(0);
        valid.set(2);
        let numbers = PropertyColumn::Numbers { values: vec![1e16, 0.0, 1e16], valid };
        assert!(numbers.is_inexact(0) && !numbers.is_inexact(1));
        let mut rows = Bits::default();
        rows.reset(3);
        rows.set(2);
        let mut columns = [JsonColumn::new("a", 3, rows, Some(numbers))];
        (0..3).for_each(|row| see_json(&mut columns, row, r#"{"a":10000000000000001}"#));
        let [column] = columns.map(JsonColumn::finish);
        assert_eq!(column.value(0), PropertyValue::Double(1e16));
        assert_eq!(column.value(1), PropertyValue::Missing);
        assert_eq!(column.value(2), PropertyValue::Integer(10_000_000_000_000_001));
    }
}
