//! Converts the settings of plugins between a `config_schema`, form fields and the values
//! of a config.
//!
//! What belongs here: the field of a setting, and the conversion of entered text. What
//! does not: which values are allowed (`weir_model::plugin_configs`).

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use weir_model::json::{VALUES, parse};

/// The kind of field of a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// Free text.
    Text,
    Number,
    /// One of these options.
    Choice(Vec<String>),
    /// JSON text.
    Json,
    /// An uploaded file.
    File,
}

impl Kind {
    /// The name of the kind, for users.
    pub(crate) const fn words(&self) -> &'static str {
        match self {
            Self::Text => "Text",
            Self::Number => "Number",
            Self::Choice(_) => "Choice",
            Self::Json => "JSON",
            Self::File => "File",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setting {
    /// The key in the config.
    pub(crate) key: String,
    /// The label.
    pub(crate) name: String,
    /// A hint, including the conditions under which the setting is required.
    pub(crate) hint: String,
    /// The kind of field.
    pub(crate) kind: Kind,
    /// Whether the value is secret and never shown again.
    pub(crate) secret: bool,
    /// Whether an enabled config must have a value.
    pub(crate) required: bool,
    /// The default of a new config.
    pub(crate) default: String,
}

/// A part of the form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Part {
    /// Text between the settings.
    Words(String),
    Setting(Setting),
}

/// The form for a `config_schema`, in its order.
pub(crate) fn parts(schema: Option<&Map<String, Value>>) -> Vec<Part> {
    let mut found: Vec<(f64, &String, Part)> = schema
        .into_iter()
        .flatten()
        .filter_map(|(key, item)| {
            let item = item.as_object()?;
            let order = item.get("order").and_then(Value::as_f64).unwrap_or(f64::MAX);
            Some((order, key, part(key, item)?))
        })
        .collect();
    found.sort_by(|(a, one, _), (b, other, _)| a.total_cmp(b).then(one.cmp(other)));
    found.into_iter().map(|(_, _, part)| part).collect()
}

/// The settings of a form.
pub(crate) fn settings(parts: &[Part]) -> impl Iterator<Item = &Setting> {
    parts.iter().filter_map(|part| match part {
        Part::Setting(setting) => Some(setting),
        Part::Words(_) => None,
    })
}

fn part(key: &str, item: &Map<String, Value>) -> Option<Part> {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    let is = |name: &str| item.get(name).and_then(Value::as_bool).unwrap_or(false);
    let kind = match text("type") {
        "" => return words(text("markdown")),
        "choice" => {
            let choices = item.get("choices").and_then(Value::as_array);
            let choices = choices.into_iter().flatten().filter_map(Value::as_str);
            Kind::Choice(choices.map(str::to_owned).collect())
        }
        "json" => Kind::Json,
        "attachment" => Kind::File,
        "number" | "integer" => Kind::Number,
        _ => Kind::Text,
    };
    let name = if text("name").is_empty() { key } else { text("name") };
    let hint = [text("hint").to_owned(), conditions(item)];
    let hint: Vec<String> = hint.into_iter().filter(|part| !part.is_empty()).collect();
    Some(Part::Setting(Setting {
        key: key.to_owned(),
        name: name.to_owned(),
        hint: hint.join(" "),
        kind,
        secret: is("secret"),
        required: is("required"),
        default: item.get("default").map(shown).unwrap_or_default(),
    }))
}

fn words(markdown: &str) -> Option<Part> {
    let text = markdown.trim().trim_start_matches('#').trim();
    (!text.is_empty()).then(|| Part::Words(text.to_owned()))
}

/// The conditions under which an optional setting is required.
fn conditions(item: &Map<String, Value>) -> String {
    let conditions = item.get("required_if").and_then(Value::as_array).into_iter().flatten();
    let sentences = conditions.filter_map(|condition| {
        let [Value::String(key), wanted @ ..] = condition.as_array()?.as_slice() else {
            return None;
        };
        let wanted: Vec<String> = wanted.iter().map(shown).collect();
        Some(match wanted.is_empty() {
            true => format!("Needed where {key} is set."),
            false => format!("Needed where {key} is {}.", wanted.join(" or ")),
        })
    });
    sentences.collect::<Vec<String>>().join(" ")
}

/// The text of a value in a field: a string as it is, other values as JSON.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}

/// The field name of the setting at this index. Files are excluded.
pub(crate) fn field(at: usize, setting: &Setting) -> String {
    let part = if setting.secret { "secret" } else { "value" };
    format!("settings[{at}][{part}]")
}

/// The settings with a field in the form. Files have separate forms.
pub(crate) fn with_fields(parts: &[Part]) -> impl Iterator<Item = (usize, &Setting)> {
    settings(parts).filter(|setting| setting.kind != Kind::File).enumerate()
}

/// Names and values of the fields, without secrets.
pub(crate) fn form_values(parts: &[Part], present: &Map<String, Value>) -> Vec<(String, String)> {
    let value = |(at, setting): (usize, &Setting)| {
        let value = present.get(&setting.key).map(shown).unwrap_or_default();
        (!setting.secret).then(|| (field(at, setting), value))
    };
    with_fields(parts).filter_map(value).collect()
}

/// A setting as a form sends it. `Debug` prints only the key, because the value can be a
/// secret.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SentSetting {
    /// The key of the setting.
    pub(crate) key: String,
    /// The entered value.
    #[serde(default)]
    pub(crate) value: String,
    /// The entered secret. Empty: the stored secret stays.
    #[serde(default)]
    pub(crate) secret: String,
    /// `on`: the stored secret is removed.
    #[serde(default)]
    pub(crate) clear: String,
}

impl fmt::Debug for SentSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SentSetting").field("key", &self.key).finish_non_exhaustive()
    }
}

/// The values of a config after a form was sent. Settings without a field stay. Secrets
/// stay unless they were replaced or removed.
pub(crate) fn values(
    parts: &[Part],
    sent: &[SentSetting],
    present: Map<String, Value>,
) -> Map<String, Value> {
    let mut values = present;
    for setting in settings(parts) {
        let found = sent.iter().find(|one| one.key == setting.key);
        match (&setting.kind, found) {
            // Files are not stored as values.
            (Kind::File, _) => drop(values.remove(&setting.key)),
            (_, None) => {}
            (_, Some(one)) if setting.secret && one.secret.is_empty() => {
                values.remove(&setting.key);
                if one.clear == "on" {
                    values.insert(setting.key.clone(), Value::from(""));
                }
            }
            (_, Some(one)) => {
                let text = if setting.secret { &one.secret } else { &one.value };
                let value = read(setting, text, values.get(&setting.key));
                values.insert(setting.key.clone(), value);
            }
        }
    }
    values
}

/// Converts the entered text to a value. JSON stays a string, as older plugins expect,
/// unless the stored value is not a string.
fn read(setting: &Setting, text: &str, present: Option<&Value>) -> Value {
    // Forms send CRLF line ends.
    let text = text.replace("\r\n", "\n");
    let is_value = |value: &&Value| !value.is_string() && !value.is_null();
    let parsed = || parse(&text, VALUES).ok();
    let read = match setting.kind {
        Kind::Number => parsed().filter(Value::is_number),
        Kind::Json if present.filter(is_value).is_some() => parsed(),
        Kind::Text | Kind::Choice(_) | Kind::Json | Kind::File => None,
    };
    read.unwrap_or(Value::String(text))
}

/// The field for an error that names a setting as the API does.
pub(crate) fn field_at(parts: &[Part], attr: &str) -> Option<String> {
    let key = attr.strip_prefix("config__")?;
    let (at, setting) = with_fields(parts).find(|(_, setting)| setting.key == key)?;
    Some(field(at, setting))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form() -> Vec<Part> {
        let schema = json!({
            "token": {"type": "string", "secret": true, "order": 2},
            "note": {"markdown": "# Read this", "order": 0},
            "mode": {"type": "choice", "choices": ["a", "b"], "default": "a", "order": 1},
            "rules": {"type": "json", "order": 3, "required_if": [["mode", "b"]]},
            "table": {"type": "attachment", "order": 4},
            "depth": {"type": "number", "order": 5, "name": "Depth"},
            "odd": 7,
        });
        parts(schema.as_object())
    }

    fn sent(key: &str, value: &str) -> SentSetting {
        SentSetting { key: key.to_owned(), value: value.to_owned(), ..SentSetting::default() }
    }

    #[test]
    fn a_schema_becomes_a_form_in_its_order() {
        let form = form();
        assert_eq!(form[0], Part::Words("Read this".to_owned()));
        let keys: Vec<&str> = settings(&form).map(|setting| setting.key.as_str()).collect();
        assert_eq!(keys, ["mode", "token", "rules", "table", "depth"]);
        let fields: Vec<String> = with_fields(&form).map(|(at, one)| field(at, one)).collect();
        assert_eq!(
            fields,
            [
                "settings[0][value]",
                "settings[1][secret]",
                "settings[2][value]",
                "settings[3][value]"
            ]
        );
        assert_eq!(field_at(&form, "config__depth").as_deref(), Some("settings[3][value]"));
        assert_eq!(field_at(&form, "config__table"), None);
        let rules = settings(&form).find(|setting| setting.key == "rules").unwrap();
        assert_eq!(rules.hint, "Needed where mode is b.");
    }

    #[test]
    fn input_becomes_values() {
        let form = form();
        let present = json!({
            "own": 1, "token": "(secret)", "rules": {"a": 1}, "table": {"saved": true},
        });
        let present = present.as_object().unwrap().clone();
        let read = |sent: &[SentSetting]| Value::Object(values(&form, sent, present.clone()));
        let entered =
            [sent("mode", "b"), sent("token", ""), sent("rules", "[1]"), sent("depth", "2")];
        assert_eq!(read(&entered), json!({"own": 1, "mode": "b", "rules": [1], "depth": 2}));
        let clear = SentSetting { clear: "on".to_owned(), ..sent("token", "") };
        assert_eq!(read(&[clear])["token"], "");
        let new = SentSetting { secret: "s".to_owned(), ..sent("token", "") };
        assert_eq!(read(&[new])["token"], "s");
        // Invalid JSON is passed to the service, which reports the error.
        assert_eq!(read(&[sent("rules", "{")])["rules"], "{");
        assert_eq!(read(&[sent("depth", "deep")])["depth"], "deep");
        let json = values(&form, &[sent("rules", "{}")], Map::new());
        assert_eq!(json["rules"], "{}");
    }
}
