//! The settings of plugins between a `config_schema`, the fields of a form and the
//! values of a config.
//!
//! What belongs here: which field a setting has, and what is made of what was
//! entered. What does not: what a value may be (`weir_model::plugin_configs`).

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What is entered for a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// A text.
    Text,
    /// A number.
    Number,
    /// One of these.
    Choice(Vec<String>),
    /// JSON.
    Json,
    /// A file.
    File,
}

impl Kind {
    /// The kind in words.
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

/// A setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setting {
    /// Its key in the config.
    pub(crate) key: String,
    /// What people read.
    pub(crate) name: String,
    /// Help, and when it is needed.
    pub(crate) hint: String,
    /// What is entered.
    pub(crate) kind: Kind,
    /// Whether it is never shown again.
    pub(crate) secret: bool,
    /// Whether a config that is enabled must have it.
    pub(crate) required: bool,
    /// What a new config has.
    pub(crate) default: String,
}

/// A part of the form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Part {
    /// Words for whoever fills it in.
    Words(String),
    /// A setting.
    Setting(Setting),
}

/// The form that a `config_schema` describes, in its order.
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

/// The settings among the parts of a form.
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

/// When a setting is needed although it need not always be there.
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

/// A value as a field shows it: a text as it is, anything else as JSON.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}

/// The name of the field of the setting at this place, without files.
pub(crate) fn field(at: usize, setting: &Setting) -> String {
    let part = if setting.secret { "secret" } else { "value" };
    format!("settings[{at}][{part}]")
}

/// The settings that have a field in the form: files have forms of their own.
pub(crate) fn with_fields(parts: &[Part]) -> impl Iterator<Item = (usize, &Setting)> {
    settings(parts).filter(|setting| setting.kind != Kind::File).enumerate()
}

/// What the fields of the settings show, without secrets: names and values.
pub(crate) fn form_values(parts: &[Part], present: &Map<String, Value>) -> Vec<(String, String)> {
    let value = |(at, setting): (usize, &Setting)| {
        let value = present.get(&setting.key).map(shown).unwrap_or_default();
        (!setting.secret).then(|| (field(at, setting), value))
    };
    with_fields(parts).filter_map(value).collect()
}

/// A setting as a form sends it. Cannot be printed: it may be a secret.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SentSetting {
    /// Its key.
    pub(crate) key: String,
    /// What was entered.
    #[serde(default)]
    pub(crate) value: String,
    /// What was entered for a secret; nothing: it stays.
    #[serde(default)]
    pub(crate) secret: String,
    /// `on`: the stored secret is to go.
    #[serde(default)]
    pub(crate) clear: String,
}

impl fmt::Debug for SentSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SentSetting").field("key", &self.key).finish_non_exhaustive()
    }
}

/// The values of a config after a form was sent. What the form has no field for
/// stays as it is; a secret stays unless it was replaced or cleared.
pub(crate) fn values(
    parts: &[Part],
    sent: &[SentSetting],
    present: Map<String, Value>,
) -> Map<String, Value> {
    let mut values = present;
    for setting in settings(parts) {
        let found = sent.iter().find(|one| one.key == setting.key);
        match (&setting.kind, found) {
            // Files are not values.
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

/// What was entered, as a value. JSON stays the text that plugins of old expect,
/// unless it was something else before.
fn read(setting: &Setting, text: &str, present: Option<&Value>) -> Value {
    // Forms send lines as mails do.
    let text = text.replace("\r\n", "\n");
    let is_value = |value: &&Value| !value.is_string() && !value.is_null();
    let parsed = || serde_json::from_str::<Value>(&text).ok();
    let read = match setting.kind {
        Kind::Number => parsed().filter(Value::is_number),
        Kind::Json if present.filter(is_value).is_some() => parsed(),
        Kind::Text | Kind::Choice(_) | Kind::Json | Kind::File => None,
    };
    read.unwrap_or(Value::String(text))
}

/// The field of a fault that names a setting as the API does.
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
    fn what_was_entered_becomes_values() {
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
        // What cannot be read is left to the service, which says what is wrong.
        assert_eq!(read(&[sent("rules", "{")])["rules"], "{");
        assert_eq!(read(&[sent("depth", "deep")])["depth"], "deep");
        let json = values(&form, &[sent("rules", "{}")], Map::new());
        assert_eq!(json["rules"], "{}");
    }
}
