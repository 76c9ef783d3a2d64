//! Conditions on properties, as members write them in JSON:
//! `{"property": "plan", "operator": "is", "value": "free"}`.
//!
//! The operators and the optional `type` are those of the well-known filter plugin
//! (PLG-40), and `is_set` and `is_not_set`.

use regex::Regex;
use serde_json::Value;

use crate::config::{ConfigError, PATTERNS_MAX, pattern, shown};
use crate::event::Object;

/// Maximum conditions of a config.
const MAX: usize = 200;

/// A condition on the value of one property.
#[derive(Debug)]
pub(crate) struct Condition {
    path: String,
    test: Test,
    /// Negates the result.
    negated: bool,
}

#[derive(Debug)]
enum Test {
    Set,
    Is(Value),
    Contains(String),
    Matches(Regex),
    Above(f64),
    AtLeast(f64),
}

/// The result of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    True,
    False,
    /// The property is missing.
    Missing,
}

impl Condition {
    /// Parses a list of conditions, which may be empty.
    ///
    /// # Errors
    /// The first fault, at `key`.
    pub(crate) fn list(key: &'static str, sent: &Value) -> Result<Vec<Self>, ConfigError> {
        let Value::Array(items) = sent else {
            return Err(ConfigError::new(key, "Conditions must be a list of objects."));
        };
        if items.len() > MAX {
            return Err(ConfigError::new(key, format!("At most {MAX} conditions are possible.")));
        }
        let conditions = items.iter().enumerate();
        let conditions: Vec<_> = conditions
            .map(|(index, item)| Self::read(key, index + 1, item))
            .collect::<Result<_, _>>()?;
        let patterns = conditions.iter().filter(|one| matches!(one.test, Test::Matches(_))).count();
        if patterns > PATTERNS_MAX {
            let message = format!("At most {PATTERNS_MAX} patterns are possible.");
            return Err(ConfigError::new(key, message));
        }
        Ok(conditions)
    }

    fn read(key: &'static str, number: usize, sent: &Value) -> Result<Self, ConfigError> {
        let wrong = |text: &str| ConfigError::new(key, format!("Condition {number}: {text}"));
        let Value::Object(sent) = sent else { return Err(wrong("this must be an object.")) };
        for name in sent.keys() {
            if !["property", "operator", "type", "value"].contains(&name.as_str()) {
                return Err(wrong(&format!("{} means nothing here.", shown(name))));
            }
        }
        let text =
            |name: &str| sent.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let path = text("property").ok_or_else(|| wrong("there must be a \"property\"."))?;
        let operator = text("operator").ok_or_else(|| wrong("there must be an \"operator\"."))?;
        let value = sent.get("value").unwrap_or(&Value::Null);
        let kind = match sent.get("type") {
            None | Some(Value::Null) => None,
            Some(Value::String(kind)) if is_of(kind, value) => Some(kind.as_str()),
            Some(_) => {
                return Err(wrong("\"type\" must be string, number or boolean, as the value is."));
            }
        };
        let words: &[&str] = match kind {
            None => WORDS,
            Some("string") => &["is", "is_not", "contains", "not_contains", "regex", "not_regex"],
            Some("number") => &["gt", "lt", "gte", "lte", "eq", "neq"],
            Some(_) => &["is", "is_not"],
        };
        if !words.contains(&operator) && !["is_set", "is_not_set"].contains(&operator) {
            return Err(wrong(&format!("the operator must be one of {}.", words.join(", "))));
        }
        let as_text = || value.as_str().ok_or_else(|| wrong("the value must be a text."));
        let as_number = || number_of(value).ok_or_else(|| wrong("the value must be a number."));
        let (test, negated) = match operator {
            "is_set" => (Test::Set, false),
            "is_not_set" => (Test::Set, true),
            "is" | "eq" | "is_not" | "neq" => {
                if value.is_array() || value.is_object() {
                    return Err(wrong("the value must be a text, a number, true, false or null."));
                }
                (Test::Is(value.clone()), matches!(operator, "is_not" | "neq"))
            }
            "contains" | "not_contains" => {
                (Test::Contains(as_text()?.to_owned()), operator.starts_with("not"))
            }
            "regex" | "not_regex" => {
                (Test::Matches(pattern(key, as_text()?)?), operator.starts_with("not"))
            }
            "gt" => (Test::Above(as_number()?), false),
            "lte" => (Test::Above(as_number()?), true),
            "gte" => (Test::AtLeast(as_number()?), false),
            "lt" => (Test::AtLeast(as_number()?), true),
            _ => return Err(wrong(&format!("the operator must be one of {}.", WORDS.join(", ")))),
        };
        Ok(Self { path: path.to_owned(), test, negated })
    }

    /// Checks the condition against these properties.
    pub(crate) fn of(&self, properties: &mut Object<'_>) -> Outcome {
        let value = properties.at(&self.path).and_then(|(holder, key)| simple(&holder.raw(key)?));
        let is = match (&self.test, value) {
            (Test::Set, value) => value.is_some_and(|value| !value.is_null()),
            (_, None) => return Outcome::Missing,
            (Test::Is(wanted), Some(value)) => is_same(wanted, &value),
            (Test::Contains(part), Some(value)) => {
                value.as_str().is_some_and(|text| text.contains(part))
            }
            (Test::Matches(pattern), Some(value)) => {
                value.as_str().is_some_and(|text| pattern.is_match(text))
            }
            // A value that is not a number is neither above nor below.
            (Test::Above(limit), Some(value)) => match number_of(&value) {
                Some(number) => number > *limit,
                None => self.negated,
            },
            (Test::AtLeast(limit), Some(value)) => match number_of(&value) {
                Some(number) => number >= *limit,
                None => self.negated,
            },
        };
        if is == self.negated { Outcome::False } else { Outcome::True }
    }
}

const WORDS: &[&str] = &[
    "is",
    "is_not",
    "contains",
    "not_contains",
    "regex",
    "not_regex",
    "gt",
    "lt",
    "gte",
    "lte",
    "eq",
    "neq",
    "is_set",
    "is_not_set",
];

/// The value of a JSON text. No test inspects lists and objects, which may be large: they
/// become empty.
fn simple(json: &str) -> Option<Value> {
    match json.as_bytes().first()? {
        b'{' => Some(Value::Object(serde_json::Map::new())),
        b'[' => Some(Value::Array(Vec::new())),
        _ => serde_json::from_str(json).ok(),
    }
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "string" => value.is_string(),
        "number" => number_of(value).is_some(),
        "boolean" => value.is_boolean(),
        _ => false,
    }
}

/// A number, or a text with a number.
fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
        _ => None,
    }
}

fn is_same(wanted: &Value, value: &Value) -> bool {
    match (wanted, value) {
        (Value::Number(wanted), Value::Number(value)) => {
            wanted == value || wanted.as_f64() == value.as_f64()
        }
        (wanted, value) => wanted == value,
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde_json::{Value, json};

    use super::{Condition, Outcome};
    use crate::event::Object;

    fn outcome(condition: Value, properties: &str) -> Outcome {
        let mut object = Object::read(Cow::Borrowed(properties)).unwrap();
        Condition::list("k", &json!([condition])).unwrap()[0].of(&mut object)
    }

    #[test]
    fn operators() {
        use Outcome::{False, Missing, True};
        let text = r#"{"t": "Grün", "n": 5, "digits": "5", "b": true, "o": {"x": [1]}, "null": null, "big": 12345678901234567890}"#;
        for (property, operator, value, expected) in [
            ("t", "is", json!("Grün"), True),
            ("t", "is", json!("grün"), False),
            ("t", "is_not", json!("grün"), True),
            ("n", "is", json!("5"), False),
            ("n", "eq", json!(5.0), True),
            ("n", "neq", json!(5), False),
            ("big", "eq", json!(12_345_678_901_234_567_890_u64), True),
            ("b", "is", json!(true), True),
            ("null", "is", json!(null), True),
            ("t", "contains", json!("rü"), True),
            ("n", "contains", json!("5"), False),
            ("n", "not_contains", json!("5"), True),
            ("t", "regex", json!("^G.+n$"), True),
            ("t", "not_regex", json!("^G"), False),
            ("n", "gt", json!(4), True),
            ("digits", "gte", json!("5"), True),
            ("n", "lt", json!(5), False),
            ("n", "lte", json!(5), True),
            ("t", "lt", json!(5), False),
            ("null", "lte", json!(5), False),
            ("o.x", "is_set", json!(null), True),
            ("null", "is_set", json!(null), False),
            ("missing", "is_not_set", json!(null), True),
            ("missing", "is_not", json!(1), Missing),
        ] {
            let condition = json!({"property": property, "operator": operator, "value": value});
            assert_eq!(outcome(condition.clone(), text), expected, "{condition}");
        }
    }

    #[test]
    fn faults_name_their_position() {
        for bad in [
            json!({}),
            json!([{"property": "a", "operator": "is", "value": 1}, 7]),
            json!([{"operator": "is", "value": 1}]),
            json!([{"property": "a", "value": 1}]),
            json!([{"property": "a", "operator": "like", "value": 1}]),
            json!([{"property": "a", "operator": "un_set", "value": 1}]),
            json!([{"property": "a", "operator": "gt", "value": "x"}]),
            json!([{"property": "a", "operator": "regex", "value": "("}]),
            json!([{"property": "a", "operator": "is", "value": []}]),
            json!([{"property": "a", "operator": "gt", "type": "string", "value": "x"}]),
            json!([{"property": "a", "operator": "is", "type": "boolean", "value": "x"}]),
            json!([{"property": "a", "operator": "is", "values": "x"}]),
        ] {
            assert_eq!(Condition::list("k", &bad).unwrap_err().key, "k", "{bad}");
        }
        let pattern = json!({"property": "a", "operator": "regex", "value": "x"});
        let many = vec![pattern; super::PATTERNS_MAX + 1];
        assert!(Condition::list("k", &json!(many)).unwrap_err().message.contains("patterns"));
        let second = json!([{"property": "a", "operator": "is", "value": 1}, {}]);
        assert!(Condition::list("k", &second).unwrap_err().message.contains("Condition 2"));
    }
}
