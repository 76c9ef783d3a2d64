//! Reading the values of a config.
//!
//! Values come from a form, so texts are trimmed, an empty text counts as missing, and a
//! list may be a text with commas. A missing value gets the default of its item.

use std::borrow::Cow;

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use crate::entry::Item;

/// Maximum entries of a list.
const LIST_MAX: usize = 1000;
/// Maximum characters of a config that a fault repeats.
const SHOWN: usize = 64;
/// Maximum bytes of a compiled pattern, and of its matching state.
const PATTERN_MAX: usize = 256 << 10;
/// Maximum patterns of a config.
pub(crate) const PATTERNS_MAX: usize = 16;

/// Why a config is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct ConfigError {
    /// The invalid setting.
    pub key: &'static str,
    /// The reason, in one sentence. It never repeats a secret.
    pub message: String,
}

impl ConfigError {
    pub(crate) fn new(key: &'static str, message: impl Into<String>) -> Self {
        Self { key, message: message.into() }
    }
}

/// The values of a config, and the settings of the plugin.
#[derive(Debug, Clone, Copy)]
pub struct Config<'a> {
    values: &'a Map<String, Value>,
    items: &'a [Item],
}

impl<'a> Config<'a> {
    /// Creates a config from its values.
    pub const fn new(values: &'a Map<String, Value>, items: &'a [Item]) -> Self {
        Self { values, items }
    }

    fn value(&self, key: &str) -> Option<Cow<'a, Value>> {
        let is_set = |value: &&Value| !value.is_null() && value.as_str() != Some("");
        match self.values.get(key) {
            Some(value) => Some(Cow::Borrowed(value)).filter(|_| is_set(&value)),
            None => {
                let item = self.items.iter().find(|item| item.key == key)?;
                (!item.default.is_empty()).then(|| Cow::Owned(Value::from(item.default)))
            }
        }
    }

    /// A text; a number is converted to a text.
    pub(crate) fn text(&self, key: &'static str) -> Result<Option<String>, ConfigError> {
        let text = match self.value(key).as_deref() {
            None => return Ok(None),
            Some(Value::String(text)) => text.trim().to_owned(),
            Some(Value::Number(number)) => number.to_string(),
            Some(_) => return Err(ConfigError::new(key, "This must be a text.")),
        };
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    /// A required text.
    pub(crate) fn needed(&self, key: &'static str) -> Result<String, ConfigError> {
        self.text(key)?.ok_or_else(|| ConfigError::new(key, "This must not be empty."))
    }

    /// A boolean; a missing value is false.
    pub(crate) fn yes(&self, key: &'static str) -> Result<bool, ConfigError> {
        match self.value(key).as_deref() {
            None => Ok(false),
            Some(Value::Bool(yes)) => Ok(*yes),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("yes") => Ok(true),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("no") => Ok(false),
            Some(_) => Err(ConfigError::new(key, "This must be \"Yes\" or \"No\".")),
        }
    }

    /// A list of texts, or a text with commas.
    pub(crate) fn list(&self, key: &'static str) -> Result<Vec<String>, ConfigError> {
        let wrong = || ConfigError::new(key, "This must be names separated by commas.");
        let mut list: Vec<String> = match self.value(key).as_deref() {
            None => Vec::new(),
            Some(Value::String(text)) => text.split(',').map(str::to_owned).collect(),
            Some(Value::Array(values)) => values
                .iter()
                .map(|value| value.as_str().map(str::to_owned).ok_or_else(wrong))
                .collect::<Result<_, _>>()?,
            Some(_) => return Err(wrong()),
        };
        for text in &mut list {
            *text = text.trim().to_owned();
        }
        list.retain(|text| !text.is_empty());
        if list.len() > LIST_MAX {
            return Err(ConfigError::new(key, format!("At most {LIST_MAX} names are possible.")));
        }
        Ok(list)
    }

    /// A list of at least one text.
    pub(crate) fn needed_list(&self, key: &'static str) -> Result<Vec<String>, ConfigError> {
        let list = self.list(key)?;
        if list.is_empty() {
            return Err(ConfigError::new(key, "This must name at least one."));
        }
        Ok(list)
    }

    /// A JSON value, or its text.
    pub(crate) fn json(&self, key: &'static str) -> Result<Option<Value>, ConfigError> {
        match self.value(key).map(Cow::into_owned) {
            Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
            Some(Value::String(text)) => serde_json::from_str(&text).map(Some).map_err(|fault| {
                let (line, column) = (fault.line(), fault.column());
                let message = format!("This is no JSON: line {line}, column {column}.");
                ConfigError::new(key, message)
            }),
            value => Ok(value),
        }
    }

    /// A required number from `min` to `max`.
    pub(crate) fn number(&self, key: &'static str, min: f64, max: f64) -> Result<f64, ConfigError> {
        self.needed(key)?
            .parse()
            .ok()
            .filter(|number| (min..=max).contains(number))
            .ok_or_else(|| ConfigError::new(key, format!("This must be from {min} to {max}.")))
    }
}

/// The part of a config that a fault repeats.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("\"{}…\"", text.get(..end).unwrap_or_default()),
        None => format!("\"{text}\""),
    }
}

/// Compiles a pattern that a member entered. Matching takes time in proportion to the
/// text, for every pattern.
pub(crate) fn pattern(key: &'static str, text: &str) -> Result<Regex, ConfigError> {
    let mut builder = RegexBuilder::new(text);
    builder.size_limit(PATTERN_MAX).dfa_size_limit(PATTERN_MAX).build().map_err(|fault| {
        let reason = match fault {
            regex::Error::CompiledTooBig(_) => "it is too large",
            _ => "look-around and back-references are not possible",
        };
        let shown = shown(text);
        ConfigError::new(key, format!("{shown} cannot be used as a pattern ({reason})."))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::{Config, pattern};
    use crate::entry::Item;

    fn map(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_forms_send_is_understood() {
        let values = map(json!({
            "a": " x ", "yes": "yes", "list": " a, b ,,c", "array": ["a", " "], "json": "[1]",
            "number": "12.5", "empty": "", "null": null, "object": {"a": 1},
        }));
        let items = [Item::text("default", "", "").or("d"), Item::text("empty", "", "").or("d")];
        let config = Config::new(&values, &items);
        assert_eq!(config.text("a").unwrap().as_deref(), Some("x"));
        assert!(config.yes("yes").unwrap());
        assert!(!config.yes("missing").unwrap());
        assert_eq!(config.list("list").unwrap(), ["a", "b", "c"]);
        assert_eq!(config.list("array").unwrap(), ["a"]);
        assert_eq!(config.json("json").unwrap(), Some(json!([1])));
        assert_eq!(config.json("object").unwrap(), Some(json!({"a": 1})));
        assert_eq!(config.number("number", 0.0, 100.0).unwrap(), 12.5);
        assert_eq!(config.text("default").unwrap().as_deref(), Some("d"));
        // An empty field is not replaced by the default.
        assert_eq!(config.text("empty").unwrap(), None);
        assert_eq!(config.text("null").unwrap(), None);
    }

    #[test]
    fn faults_name_their_key() {
        let values = map(json!({"a": [1], "json": "[1,\n", "number": "NaN", "blank": " "}));
        let config = Config::new(&values, &[]);
        assert_eq!(config.text("a").unwrap_err().key, "a");
        assert_eq!(config.list("a").unwrap_err().key, "a");
        assert_eq!(config.yes("a").unwrap_err().key, "a");
        assert!(config.json("json").unwrap_err().message.contains("line 2"));
        assert_eq!(config.number("number", 0.0, 1.0).unwrap_err().key, "number");
        assert_eq!(config.needed("blank").unwrap_err().key, "blank");
        assert_eq!(config.needed_list("blank").unwrap_err().key, "blank");
        assert_eq!(pattern("a", "(").unwrap_err().key, "a");
        let long = pattern("a", &format!("({}", "ü".repeat(10_000))).unwrap_err().message;
        assert!(long.len() < 300 && long.contains('…'), "{long}");
        assert!(pattern("a", "(((a{999}){999}){999})").unwrap_err().message.contains("too large"));
    }
}
