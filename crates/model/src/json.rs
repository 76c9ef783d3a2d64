//! JSON in input and output of the API: a field that keeps its text, and parsing input
//! within bounds.
//!
//! What does not belong here: reading and changing JSON text (`weir-json`).

use std::fmt;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON text that is returned unchanged: numbers keep all digits.
#[derive(Debug, Clone)]
pub struct JsonText(Box<RawValue>);

impl JsonText {
    /// The text, if it is valid JSON.
    pub fn read(text: String) -> Option<Self> {
        RawValue::from_string(text).ok().map(Self)
    }

    /// The text.
    pub fn text(&self) -> &str {
        self.0.get()
    }
}

/// Compares texts: equal values with other digits or spaces are not equal.
impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// Goes through a value, because the text is not available within other types.
impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Value::deserialize(deserializer)?.to_string();
        RawValue::from_string(text).map(Self).map_err(serde::de::Error::custom)
    }
}

/// Maximum depth of nested objects and lists in input of the API. It is half of what can
/// be parsed, because the data around a value, such as an audit entry, adds levels.
pub const DEPTH: usize = 64;

/// Most values in a JSON text in input of the API, at all levels. A value takes at most
/// a hundred times its text in memory, so the bytes of a text are no bound. The largest
/// real inputs are exports with two lists of a thousand names, and sample events.
pub const VALUES: usize = 8_000;

/// Bytes that an object takes in memory, beyond those of a value: the nodes of its map.
const OBJECT_BYTES: usize = 640;
/// Bytes that a value takes in memory as the item of a list or the member of an object,
/// beyond the text of strings and names: its entry and the free entries beside it. A list
/// begins with four entries and doubles them.
const VALUE_BYTES: usize = 128;

/// Why a JSON text was not parsed.
#[derive(Debug)]
pub enum Unparsed {
    /// More than [`DEPTH`] objects and lists are nested.
    TooDeep,
    /// It has more than this many values.
    TooManyValues(usize),
    /// It is not JSON.
    Malformed(serde_json::Error),
}

impl Unparsed {
    /// The fault as a sentence of its own.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::TooDeep => format!("More than {DEPTH} nested objects and lists."),
            Self::TooManyValues(most) => format!("More than {most} values."),
            Self::Malformed(error) => error.to_string(),
        }
    }
}

/// The fault as the end of a sentence.
impl fmt::Display for Unparsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooDeep => write!(f, "more than {DEPTH} nested objects and lists"),
            Self::TooManyValues(most) => write!(f, "more than {most} values"),
            Self::Malformed(error) => error.fmt(f),
        }
    }
}

/// Parses a JSON text with at most [`DEPTH`] nested objects and lists, and at most this
/// many values.
///
/// # Errors
/// Why it was not parsed.
pub fn parse(text: impl AsRef<[u8]>, most: usize) -> Result<Value, Unparsed> {
    let text = text.as_ref();
    measure(text, most)?;
    serde_json::from_slice(text).map_err(Unparsed::Malformed)
}

/// The bytes that the values of a JSON text will take in memory, beyond the bytes of the
/// text. It allocates nothing, so it can be called before memory is reserved.
///
/// # Errors
/// The text exceeds a bound of [`parse`]. Whether it is JSON is not checked.
pub fn measure(text: &[u8], most: usize) -> Result<usize, Unparsed> {
    let weight = weir_json::weigh(text);
    if weight.depth > DEPTH {
        return Err(Unparsed::TooDeep);
    }
    if weight.values > most {
        return Err(Unparsed::TooManyValues(most));
    }
    Ok(size(weight.objects, weight.values))
}

/// The bytes that this many values, among them so many objects, take in memory, beyond
/// the text of strings and names.
#[must_use]
pub const fn size(objects: usize, values: usize) -> usize {
    objects * OBJECT_BYTES + values * VALUE_BYTES
}

/// Whether a text is JSON that parsers of values accept: they stop at 128 levels. No
/// value is built.
pub(crate) fn is_json(text: &str) -> bool {
    !weir_json::is_deeper_than(text.as_bytes(), 127)
        && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// The string in a member of a JSON object, without building its other values. `None` if
/// the text is not JSON.
#[must_use]
pub fn string_member(text: &[u8], name: &str) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    let value = weir_json::member(text, name)?;
    weir_json::string(value).map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::{DEPTH, JsonText, Unparsed, VALUES, measure, parse, size, string_member};

    #[test]
    fn a_text_is_answered_as_it_is() {
        let text = r#"{"n":12345678901234567890123,"x":1.0}"#;
        let read = JsonText::read(text.to_owned()).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        assert_eq!(serde_json::to_value(&read).unwrap()["x"], 1.0);
        assert!(JsonText::read("{".to_owned()).is_none());
        let back: JsonText = serde_json::from_str("{\"a\": [1]}").unwrap();
        assert_eq!(back.text(), "{\"a\":[1]}");
    }

    #[test]
    fn depth_is_limited() {
        let nested =
            |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
        assert!(parse(nested(DEPTH), VALUES).is_ok());
        assert!(matches!(parse(nested(DEPTH + 1), VALUES), Err(Unparsed::TooDeep)));
        assert!(parse(r#"{"a":"[[[[\"[["}"#, VALUES).is_ok());
    }

    #[test]
    fn the_number_of_values_is_limited() {
        // A list of so many objects, each with one number.
        let list = |objects: usize| format!("[{}0]", r#"{"":0},"#.repeat(objects));
        assert!(parse(list(49), 100).is_ok());
        let refused = parse(list(50), 100).unwrap_err();
        assert_eq!(refused.to_string(), "more than 100 values");
        // Also when a fault follows, at which the parser would stop.
        let broken = format!("[{}{}", r#"{"":0},"#.repeat(50), ":".repeat(200));
        assert!(matches!(parse(broken, 100), Err(Unparsed::TooManyValues(100))));
        assert!(matches!(parse("{", 100), Err(Unparsed::Malformed(_))));
    }

    #[test]
    fn values_are_measured_by_what_they_take() {
        let map: usize = 11 * (size_of::<String>() + size_of::<serde_json::Value>());
        assert!(size(1, 0) >= map + 16, "a node of a map has room for eleven members");
        assert!(size(0, 1) >= 4 * size_of::<serde_json::Value>());
        assert_eq!(measure(br#"[{"":0},{"a":["b"]}]"#, 10).unwrap(), size(2, 6));
        assert!(measure(b"::::[", 10).is_ok(), "only bounds are checked");
    }

    #[test]
    fn one_string_is_read_without_the_others() {
        let read = |text: &str| string_member(text.as_bytes(), "key");
        assert_eq!(read(r#"{"a":[{"key":"x"}],"key":"p\u00e4"}"#).as_deref(), Some("pä"));
        assert_eq!(read(r#"{"key":"a","k\u0065y":"b"}"#).as_deref(), Some("b"));
        for text in [r#"{"key":7}"#, r#"["key","a"]"#, r#"{"key":"a""#, r#"{"key":"a"} x"#, "{}"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(string_member(b"{\"key\":\"a\",\"b\":\"\xff\"}", "key"), None);
    }
}
