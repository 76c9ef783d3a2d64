//! The rules of a plugin's `config_schema` for the values of its settings (PLG-2, PLG-13,
//! PLG-14).
//!
//! A `config_schema` is stored as it was sent, so it may contain anything. Parts that are
//! not understood have no effect. Values of keys that it does not name are stored as
//! sent, because plugins without a schema have settings too.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::SECRET;
use crate::errors::FieldError;
use crate::json::is_json;
use crate::plugins;
use crate::validate;

/// Prefix of setting names in faults.
const AT: &str = "config";
/// Maximum characters of a value that a fault repeats.
const SHOWN: usize = 64;

/// The type of the value of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind<'a> {
    Text,
    Choice(Vec<&'a str>),
    Json,
    Attachment,
    Any,
}

#[derive(Debug, Clone, PartialEq)]
struct Setting<'a> {
    key: &'a str,
    kind: Kind<'a>,
    is_secret: bool,
    is_required: bool,
    is_for_pages: bool,
    default: Option<&'a Value>,
    required_if: &'a [Value],
    visible_if: &'a [Value],
}

/// The settings of a plugin.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings<'a> {
    all: Vec<Setting<'a>>,
    /// Index of each setting by key: both the schema and the input may be long.
    places: HashMap<&'a str, usize>,
    /// Whether it marks settings that visited pages may read.
    marks_for_pages: bool,
}

impl<'a> Settings<'a> {
    /// The settings of this `config_schema`, in its order.
    pub fn of(schema: Option<&'a Map<String, Value>>) -> Self {
        let mut found: Vec<(f64, Setting<'a>)> = schema
            .into_iter()
            .flatten()
            .filter_map(|(key, item)| {
                let item = item.as_object()?;
                let order = item.get("order").and_then(Value::as_f64).unwrap_or(f64::MAX);
                Some((order, setting(key, item)))
            })
            .collect();
        found.sort_by(|(a, one), (b, other)| a.total_cmp(b).then(one.key.cmp(other.key)));
        let all: Vec<Setting<'a>> = found.into_iter().map(|(_, setting)| setting).collect();
        Self {
            places: all.iter().enumerate().map(|(at, setting)| (setting.key, at)).collect(),
            marks_for_pages: all.iter().any(|setting| setting.is_for_pages),
            all,
        }
    }

    fn get(&self, key: &str) -> Option<&Setting<'a>> {
        self.all.get(*self.places.get(key)?)
    }

    /// Whether the value of this setting is never returned.
    pub fn is_secret(&self, key: &str) -> bool {
        self.get(key).is_some_and(|setting| setting.is_secret)
    }

    /// Whether visited pages may read the value of this setting: the plugin names it, it
    /// is neither a secret nor a file, and if the plugin marks settings with `site`, this
    /// one is marked.
    pub fn is_for_pages(&self, key: &str) -> bool {
        self.get(key).is_some_and(|setting| {
            !setting.is_secret
                && setting.kind != Kind::Attachment
                && (setting.is_for_pages || !self.marks_for_pages)
        })
    }

    /// Whether this value is never returned. An empty value need not be hidden.
    pub fn hides(&self, key: &str, value: &Value) -> bool {
        self.is_secret(key) && !value.is_null() && !is_empty(value)
    }

    /// The secrets among stored values: values that were stored as secrets, and values of
    /// settings that the plugin has made secret since.
    pub fn secrets(
        &self,
        shown: &Map<String, Value>,
        secrets: &Map<String, Value>,
    ) -> Map<String, Value> {
        let hidden = shown.iter().filter(|(key, value)| self.hides(key, value));
        hidden.chain(secrets).map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Whether the plugin lists the valid values of this setting.
    pub fn is_choice(&self, key: &str) -> bool {
        let listed = |setting: &Setting<'_>| match &setting.kind {
            Kind::Choice(choices) => !choices.is_empty(),
            Kind::Text | Kind::Json | Kind::Attachment | Kind::Any => false,
        };
        self.get(key).is_some_and(listed)
    }

    /// Whether the value of this setting is a file.
    pub fn is_attachment(&self, key: &str) -> bool {
        self.get(key).is_some_and(|setting| setting.kind == Kind::Attachment)
    }

    /// The values of a new config: the values that were sent, and defaults for missing
    /// ones.
    ///
    /// # Errors
    /// The first fault, at `config__<key>`.
    pub fn complete(&self, sent: &Map<String, Value>) -> Result<Map<String, Value>, FieldError> {
        let mut sent = sent.clone();
        for setting in &self.all {
            if let Some(default) = setting.default
                && !sent.contains_key(setting.key)
            {
                sent.insert(setting.key.to_owned(), default.clone());
            }
        }
        self.changed(&Map::new(), &sent)
    }

    /// The values after a change. The values that were sent replace all others. A secret
    /// keeps its value if it is missing, null, or the placeholder. `secrets` are the
    /// current ones.
    ///
    /// # Errors
    /// The first fault, at `config__<key>`.
    pub fn changed(
        &self,
        secrets: &Map<String, Value>,
        sent: &Map<String, Value>,
    ) -> Result<Map<String, Value>, FieldError> {
        let mut values = plugins::object(AT, sent.clone())?;
        let is_hidden = |key: &str| self.is_secret(key) || secrets.contains_key(key);
        // Null and the placeholder do not change a secret; an empty text clears it.
        values.retain(|key, value| {
            !(is_hidden(key) && (value.is_null() || value == SECRET || is_empty(value)))
        });
        for setting in &self.all {
            if let Some(value) = values.remove(setting.key)
                && setting.kind != Kind::Attachment
            {
                values.insert(setting.key.to_owned(), read(setting, value)?);
            }
        }
        for (key, value) in secrets {
            let was_cleared = sent.get(key).is_some_and(is_empty);
            if !was_cleared && !values.contains_key(key) {
                values.insert(key.clone(), value.clone());
            }
        }
        // Kept secrets count for the limit too.
        plugins::object(AT, values)
    }

    /// Separates the values into visible ones and secrets. A stored secret stays a
    /// secret, even if the schema changes.
    pub fn apart(
        &self,
        before: &Map<String, Value>,
        values: Map<String, Value>,
    ) -> (Map<String, Value>, Map<String, Value>) {
        let (secrets, shown) = values
            .into_iter()
            .partition(|(key, value)| self.hides(key, value) || before.contains_key(key));
        (shown, secrets)
    }

    /// Refuses values without a required one. `attached` are the keys of attachments.
    ///
    /// # Errors
    /// `required` at `config__<key>`.
    pub fn require(
        &self,
        values: &Map<String, Value>,
        attached: &[&str],
    ) -> Result<(), FieldError> {
        let is_set = |key: &str| {
            attached.contains(&key)
                || values.get(key).is_some_and(|value| !value.is_null() && !is_empty(value))
        };
        let holds = |condition: &Value| {
            let Some([Value::String(key), wanted @ ..]) = condition.as_array().map(Vec::as_slice)
            else {
                return false;
            };
            match wanted {
                [] => is_set(key),
                wanted => values.get(key).is_some_and(|value| wanted.contains(value)),
            }
        };
        for setting in &self.all {
            let is_required = setting.is_required || setting.required_if.iter().any(holds);
            let is_visible = setting.visible_if.iter().all(holds);
            if is_required && is_visible && !is_set(setting.key) {
                let attr = format!("{AT}__{}", setting.key);
                return Err(FieldError::new(&attr, "required", "This field is required."));
            }
        }
        Ok(())
    }
}

fn setting<'a>(key: &'a str, item: &'a Map<String, Value>) -> Setting<'a> {
    let is = |name: &str| item.get(name).and_then(Value::as_bool).unwrap_or(false);
    let list = |name: &str| item.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let kind = match item.get("type").and_then(Value::as_str) {
        Some("string") => Kind::Text,
        Some("json") => Kind::Json,
        Some("attachment") => Kind::Attachment,
        Some("choice") => Kind::Choice(list("choices").iter().filter_map(Value::as_str).collect()),
        Some(_) | None => Kind::Any,
    };
    Setting {
        key,
        is_secret: is("secret"),
        is_required: is("required"),
        is_for_pages: is("site"),
        default: item
            .get("default")
            .filter(|default| !default.is_null() && !is_empty(default) && kind != Kind::Attachment),
        required_if: list("required_if"),
        visible_if: list("visible_if"),
        kind,
    }
}

/// Forms send an empty text for a missing value.
fn is_empty(value: &Value) -> bool {
    value.as_str() == Some("")
}

fn read(setting: &Setting<'_>, value: Value) -> Result<Value, FieldError> {
    if value.is_null() || is_empty(&value) {
        return Ok(value);
    }
    let attr = format!("{AT}__{}", setting.key);
    let wrong = |detail: &str| FieldError::new(&attr, "invalid_input", detail);
    let text = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(wrong("Not a valid string.")),
    };
    match &setting.kind {
        Kind::Text => Ok(Value::String(text(&value)?)),
        Kind::Choice(choices) => {
            let chosen = text(&value)?;
            if choices.is_empty() || choices.contains(&chosen.as_str()) {
                return Ok(Value::String(chosen));
            }
            // A secret must not be repeated in a fault.
            let shown = if setting.is_secret { SECRET } else { &chosen };
            let shown: String = shown.chars().take(SHOWN).collect();
            Err(validate::invalid_choice(&attr, &shown))
        }
        Kind::Json => match &value {
            Value::String(text) if !is_json(text) => Err(wrong("Value must be valid JSON.")),
            _ => Ok(value),
        },
        Kind::Attachment | Kind::Any => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::Settings;

    fn map(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            other => panic!("no object: {other}"),
        }
    }

    fn schema() -> Map<String, Value> {
        map(json!({
            "_text_0": {"markdown": "# Read this", "order": 0},
            "host": {"type": "string", "required": true, "default": "example.com", "order": 1},
            "token": {"type": "string", "secret": true, "required": true, "order": 2},
            "mode": {"type": "choice", "choices": ["a", "b"], "order": 3},
            "rules": {"type": "json", "order": 4},
            "keys": {"type": "attachment", "order": 5, "required_if": [["mode", "b"]]},
            "depth": {"type": "string", "required": true, "visible_if": [["rules"]], "order": 6},
            "odd": 7,
        }))
    }

    fn fault<T: std::fmt::Debug>(
        outcome: Result<T, crate::errors::FieldError>,
    ) -> (String, String) {
        let fault = outcome.unwrap_err();
        (fault.attr.unwrap(), fault.code)
    }

    #[test]
    fn pages_get_what_is_meant_for_them() {
        let shown = |schema: Value| {
            let schema = map(schema);
            let settings = Settings::of(Some(&schema));
            ["host", "token", "keys", "own"].map(|key| settings.is_for_pages(key))
        };
        assert_eq!(shown(Value::Object(schema())), [true, false, false, false]);
        let marked = |host: bool, token: bool| {
            json!({
                "host": {"type": "string", "site": host}, "own": {"type": "string"},
                "token": {"type": "string", "secret": true, "site": token},
            })
        };
        assert_eq!(shown(marked(true, true)), [true, false, false, false]);
        assert_eq!(shown(marked(false, false)), [true, false, false, true]);
    }

    #[test]
    fn a_new_config_gets_defaults() {
        let schema = schema();
        let settings = Settings::of(Some(&schema));
        let complete = |sent| Value::Object(settings.complete(&map(sent)).unwrap());
        assert_eq!(complete(json!({})), json!({"host": "example.com"}));
        assert_eq!(
            complete(json!({"host": null, "own": [1], "depth": 3, "keys": {"saved": true}})),
            json!({"host": null, "own": [1], "depth": "3"})
        );
        assert_eq!(
            Value::Object(Settings::of(None).complete(&map(json!({"a": 1}))).unwrap()),
            json!({"a": 1})
        );
    }

    #[test]
    fn values_are_what_the_setting_says() {
        let schema = schema();
        let settings = Settings::of(Some(&schema));
        for (sent, attr, code) in [
            (json!({"host": true}), "config__host", "invalid_input"),
            (json!({"host": ["x"]}), "config__host", "invalid_input"),
            (json!({"mode": "c"}), "config__mode", "invalid_choice"),
            (json!({"rules": "{"}), "config__rules", "invalid_input"),
            // The first in the order of the schema.
            (json!({"rules": "{", "mode": "c"}), "config__mode", "invalid_choice"),
            (json!({"x": "x".repeat(70_000)}), "config", "max_length"),
        ] {
            let expected = (attr.to_owned(), code.to_owned());
            assert_eq!(fault(settings.complete(&map(sent.clone()))), expected, "{sent}");
        }
        for sent in [json!({"mode": "b"}), json!({"mode": ""}), json!({"rules": {"a": 1}})] {
            settings.complete(&map(sent)).unwrap();
        }
    }

    #[test]
    fn secrets_keep_until_they_are_cleared_or_replaced() {
        let schema = schema();
        let settings = Settings::of(Some(&schema));
        let secrets = map(json!({"token": "t", "was_secret": "w"}));
        for (sent, expected) in [
            (json!({}), json!({"token": "t", "was_secret": "w"})),
            (
                json!({"token": null, "host": "h"}),
                json!({"token": "t", "was_secret": "w", "host": "h"}),
            ),
            (
                json!({"token": "(secret)", "was_secret": "(secret)"}),
                json!({"token": "t", "was_secret": "w"}),
            ),
            (json!({"token": ""}), json!({"was_secret": "w"})),
            (json!({"token": "new", "was_secret": ""}), json!({"token": "new"})),
        ] {
            let changed = settings.changed(&secrets, &map(sent.clone())).unwrap();
            assert_eq!(Value::Object(changed), expected, "{sent}");
        }
        let values = map(json!({"token": "t", "was_secret": "w", "host": "h"}));
        let (shown, hidden) = settings.apart(&secrets, values);
        assert_eq!(Value::Object(shown), json!({"host": "h"}));
        assert_eq!(hidden, secrets);
    }

    #[test]
    fn what_becomes_a_secret_is_one_unless_it_is_nothing() {
        let schema = schema();
        let settings = Settings::of(Some(&schema));
        let old = map(json!({"was_secret": "w"}));
        let of = |shown: Value| Value::Object(settings.secrets(&map(shown), &old));
        assert_eq!(
            of(json!({"token": "t", "host": "h"})),
            json!({"token": "t", "was_secret": "w"})
        );
        for nothing in [json!({"token": null}), json!({"token": ""})] {
            assert_eq!(of(nothing.clone()), json!({"was_secret": "w"}));
            let (shown, hidden) = settings.apart(&old, map(nothing.clone()));
            assert_eq!((Value::Object(shown), hidden.len()), (nothing, 0));
        }
    }

    #[test]
    fn secrets_that_keep_count_towards_the_size() {
        let schema = schema();
        let settings = Settings::of(Some(&schema));
        let secrets = map(json!({"token": "t".repeat(40_000)}));
        let sent = map(json!({"own": "x".repeat(40_000)}));
        let expected = ("config".to_owned(), "max_length".to_owned());
        assert_eq!(fault(settings.changed(&secrets, &sent)), expected);
        let cleared = map(json!({"own": "x".repeat(40_000), "token": ""}));
        settings.changed(&secrets, &cleared).unwrap();
    }

    #[test]
    fn what_must_be_there() {
        let schema = schema();
        let settings = Settings::of(Some(&schema));
        let require = |values, attached: &[&str]| settings.require(&map(values), attached);
        let whole = json!({"host": "h", "token": "t"});
        assert_eq!(require(whole.clone(), &[]), Ok(()));
        for (values, attr) in [
            (json!({"host": "", "token": "t"}), "config__host"),
            (json!({"host": "h", "token": null}), "config__token"),
            (json!({"host": "h", "token": "t", "mode": "b"}), "config__keys"),
            (json!({"host": "h", "token": "t", "rules": "[]"}), "config__depth"),
        ] {
            let expected = (attr.to_owned(), "required".to_owned());
            assert_eq!(fault(require(values.clone(), &[])), expected, "{values}");
        }
        assert_eq!(require(json!({"host": "h", "token": "t", "mode": "b"}), &["keys"]), Ok(()));
    }
}
