//! JSON in input and output of the API: a field that keeps its text, and the maximum
//! depth.
//!
//! What does not belong here: reading and changing JSON text (`weir-json`).

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

/// Whether more than [`DEPTH`] objects and lists are nested in a JSON text.
pub fn is_too_deep(text: &[u8]) -> bool {
    weir_json::is_deeper_than(text, DEPTH)
}

#[cfg(test)]
mod tests {
    use super::JsonText;

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
        assert!(!super::is_too_deep(nested(64).as_bytes()));
        assert!(super::is_too_deep(nested(65).as_bytes()));
        assert!(!super::is_too_deep(br#"{"a":"[[[[\"[["}"#));
    }
}
