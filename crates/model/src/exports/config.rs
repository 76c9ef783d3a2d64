//! Checking the settings of a destination, and separating their secrets (EXP-1, EXP-2,
//! EXP-3).
//!
//! What belongs here: everything that follows from the list of
//! [`destinations`](super::destinations). A fault names the setting:
//! `destination__config__bucket_name`. What does not: sealing (`weir-service`).

use serde_json::{Map, Value};

use super::EVENT_NAMES_MAX;
use super::addresses::{HOST_MAX, host_fault, is_host_part, url_fault};
use super::destinations::{DestinationType, Field, Kind, LINE_CODECS, Need};
use crate::errors::FieldError;
use crate::validate;

/// Prefix of setting names in faults.
pub(super) const AT: &str = "destination__config";
/// Maximum event names in a list.
const TEXTS_MAX: usize = 1000;
/// Maximum characters of an event name.
const TEXT_MAX: usize = 400;
/// Characters of an unknown key that a fault repeats.
const KEY_SHOWN: usize = 64;
/// The message for a secret that must be sent again.
pub const SEND_AGAIN: &str =
    "The address or the user of the destination changed. Send this secret again.";

/// Completes the settings of a new destination: checks required settings and adds
/// defaults.
///
/// # Errors
/// The first fault, in the order of the settings of the type.
pub fn complete(
    kind: &DestinationType,
    sent: &Map<String, Value>,
) -> Result<Map<String, Value>, FieldError> {
    let config = apply(&all(kind), AT, None, sent)?;
    check(kind, &config)?;
    check_event_names(&Map::new(), &config)?;
    Ok(config)
}

/// Applies a change to stored settings. Missing settings keep their value, also within
/// nested settings.
///
/// # Errors
/// The first fault, or a secret that must be sent again because the address or the user
/// of the destination changed.
pub fn changed(
    kind: &DestinationType,
    before: &Map<String, Value>,
    sent: &Map<String, Value>,
) -> Result<Map<String, Value>, FieldError> {
    let config = apply(&all(kind), AT, Some(before), sent)?;
    check(kind, &config)?;
    check_event_names(before, &config)?;
    let mut moved = false;
    each(&all(kind), &mut |path, field| {
        moved |= field.is_address && at(before, path) != at(&config, path);
    });
    if moved {
        let mut missing = None;
        each(&all(kind), &mut |path, field| {
            let is_set = at(&config, path).is_some_and(|value| !value.is_null());
            if field.is_secret && is_set && at(sent, path).is_none() && missing.is_none() {
                missing = Some(format!("{AT}__{}", path.join("__")));
            }
        });
        if let Some(attr) = missing {
            return Err(FieldError::new(&attr, "required", SEND_AGAIN));
        }
    }
    Ok(config)
}

/// Separates settings into visible ones and secrets.
pub fn split_secrets(
    kind: &DestinationType,
    config: Map<String, Value>,
) -> (Map<String, Value>, Map<String, Value>) {
    split(&all(kind), config)
}

/// Joins visible settings and secrets again.
pub fn merged(mut shown: Map<String, Value>, secrets: Map<String, Value>) -> Map<String, Value> {
    for (name, value) in secrets {
        let joined = match (shown.remove(&name), value) {
            (Some(Value::Object(shown)), Value::Object(secrets)) => {
                Value::Object(merged(shown, secrets))
            }
            (_, value) => value,
        };
        shown.insert(name, joined);
    }
    shown
}

/// The names of changed secrets, such as `password`.
pub fn changed_secrets(
    kind: &DestinationType,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Vec<String> {
    let mut names = Vec::new();
    each(&all(kind), &mut |path, field| {
        let set = |config| at(config, path).filter(|value| !value.is_null());
        if field.is_secret && set(before) != set(after) {
            names.push(path.join("__"));
        }
    });
    names
}

fn all(kind: &DestinationType) -> Vec<&'static Field> {
    kind.all_fields().collect()
}

fn nested(kind: &Kind) -> Vec<&'static Field> {
    match kind {
        Kind::Object(fields) | Kind::TextOrObject(fields) => fields.iter().collect(),
        _ => Vec::new(),
    }
}

/// Visits every setting with its path, including nested ones.
fn each(fields: &[&'static Field], look: &mut dyn FnMut(&[&'static str], &'static Field)) {
    fn walk(
        fields: &[&'static Field],
        path: &mut Vec<&'static str>,
        look: &mut dyn FnMut(&[&'static str], &'static Field),
    ) {
        for field in fields {
            path.push(field.name);
            look(path, field);
            walk(&nested(&field.kind), path, look);
            path.pop();
        }
    }
    walk(fields, &mut Vec::new(), look);
}

/// Visits every setting of a type with its path.
pub(super) fn each_with(
    kind: &DestinationType,
    mut look: impl FnMut(&[&'static str], &'static Field),
) {
    each(&all(kind), &mut look);
}

pub(super) fn at<'a>(config: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Value> {
    let (last, outer) = path.split_last()?;
    let mut config = config;
    for name in outer {
        config = config.get(*name)?.as_object()?;
    }
    config.get(*last)
}

fn split(
    fields: &[&'static Field],
    config: Map<String, Value>,
) -> (Map<String, Value>, Map<String, Value>) {
    let (mut shown, mut secrets) = (Map::new(), Map::new());
    for (name, value) in config {
        let field = fields.iter().find(|field| field.name == name);
        match (field, value) {
            (Some(field), value) if field.is_secret => {
                secrets.insert(name, value);
            }
            (Some(field), Value::Object(inner)) => {
                let (inner, hidden) = split(&nested(&field.kind), inner);
                if !hidden.is_empty() {
                    secrets.insert(name.clone(), Value::Object(hidden));
                }
                shown.insert(name, Value::Object(inner));
            }
            (_, value) => {
                shown.insert(name, value);
            }
        }
    }
    (shown, secrets)
}

/// Applies the settings `sent` to `before`. Without `before` they must be complete.
fn apply(
    fields: &[&'static Field],
    within: &str,
    before: Option<&Map<String, Value>>,
    sent: &Map<String, Value>,
) -> Result<Map<String, Value>, FieldError> {
    let mut config = Map::new();
    for field in fields {
        let attr = format!("{within}__{}", field.name);
        let stored = before.and_then(|before| before.get(field.name));
        let value = match (sent.get(field.name), stored) {
            (Some(Value::Null), _) => {
                absent(field, || FieldError::new(&attr, "null", "This field may not be null."))?
            }
            (Some(value), stored) => read(field, &attr, stored, value)?,
            (None, Some(stored)) => stored.clone(),
            // Older data may lack a setting that was added later.
            (None, None) if before.is_some() && field.need == Need::Required => continue,
            (None, None) => {
                absent(field, || FieldError::new(&attr, "required", "This field is required."))?
            }
        };
        config.insert(field.name.to_owned(), value);
    }
    if let Some(unknown) = sent.keys().find(|name| fields.iter().all(|field| field.name != *name)) {
        let shown: String = unknown.chars().take(KEY_SHOWN).collect();
        let detail = "This destination has no such setting.";
        return Err(FieldError::new(&format!("{within}__{shown}"), "invalid_input", detail));
    }
    Ok(config)
}

/// The value of a missing setting.
fn absent(field: &Field, fault: impl FnOnce() -> FieldError) -> Result<Value, FieldError> {
    match field.need {
        Need::Required => Err(fault()),
        Need::Nullable => Ok(Value::Null),
        // Every default is valid JSON: a test parses all of them.
        Need::Default(json) => Ok(serde_json::from_str(json).unwrap_or(Value::Null)),
    }
}

fn read(
    field: &Field,
    attr: &str,
    before: Option<&Value>,
    value: &Value,
) -> Result<Value, FieldError> {
    let wrong = |detail: &str| FieldError::new(attr, "invalid_input", detail);
    let text = || value.as_str().ok_or_else(|| wrong("Not a valid string."));
    let object = |fields: &'static [Field], value: &Map<String, Value>| {
        let fields: Vec<&'static Field> = fields.iter().collect();
        let before = before.and_then(Value::as_object);
        apply(&fields, attr, before, value).map(Value::Object)
    };
    match &field.kind {
        Kind::Text { max, may_be_empty } => {
            let given = text()?;
            let checked = match may_be_empty {
                true => validate::optional_text(attr, given, *max)?,
                false => validate::text(attr, given, *max)?,
            };
            // Leading and trailing blanks are part of a password.
            Ok(Value::from(if field.is_secret { given.to_owned() } else { checked }))
        }
        Kind::Identifier => {
            let given = validate::text(attr, text()?, 63)?;
            if !is_identifier(&given) {
                return Err(wrong("Use letters, digits and underscores, and begin with no digit."));
            }
            Ok(Value::from(given))
        }
        Kind::Url => {
            let given = validate::text(attr, text()?, 1000)?;
            url_fault(&given).map_or(Ok(Value::from(given)), |fault| Err(wrong(fault)))
        }
        Kind::Host => {
            let given = validate::text(attr, text()?, HOST_MAX)?;
            host_fault(&given).map_or(Ok(Value::from(given)), |fault| Err(wrong(fault)))
        }
        Kind::HostPart => {
            let given = validate::text(attr, text()?, HOST_MAX)?;
            if !is_host_part(&given) {
                return Err(wrong("Use letters, digits, `-`, `.` and `_`."));
            }
            Ok(Value::from(given))
        }
        Kind::Integer { min, max } => {
            let number = match value {
                Value::Number(number) => number.as_i64(),
                Value::String(text) => text.trim().parse().ok(),
                _ => None,
            };
            let number = number.ok_or_else(|| wrong("A valid integer is required."))?;
            validate::within(attr, number, *min, *max)?;
            Ok(Value::from(number))
        }
        Kind::Boolean => match value {
            Value::Bool(value) => Some(*value),
            Value::String(text) if text.trim().eq_ignore_ascii_case("true") => Some(true),
            Value::String(text) if text.trim().eq_ignore_ascii_case("false") => Some(false),
            _ => None,
        }
        .map(Value::from)
        .ok_or_else(|| wrong("Must be a valid boolean.")),
        Kind::Choice(words) => {
            let given = text()?;
            match words.contains(&given) {
                true => Ok(Value::from(given)),
                false => Err(validate::invalid_choice(attr, &shortened(given))),
            }
        }
        Kind::Texts => {
            let items = value
                .as_array()
                .ok_or_else(|| FieldError::new(attr, "not_a_list", "Expected a list of items."))?;
            let texts: Option<Vec<String>> =
                items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
            let texts = texts.ok_or_else(|| wrong("Not a list of valid strings."))?;
            Ok(Value::from(validate::texts(attr, &texts, TEXTS_MAX, TEXT_MAX)?))
        }
        Kind::Object(fields) => match value {
            Value::Object(value) => object(fields, value),
            _ => Err(wrong("Expected an object.")),
        },
        Kind::TextOrObject(fields) => match value {
            Value::Object(value) => object(fields, value),
            Value::String(given) => Ok(Value::from(validate::text(attr, given, 1000)?)),
            _ => Err(wrong("Expected a string or an object.")),
        },
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(KEY_SHOWN).collect()
}

/// Whether the name can be quoted in every SQL dialect (SEC-30).
fn is_identifier(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.chars().all(fits) && !text.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether a path stays below its base directory, judged by its text.
fn is_below(path: &str) -> bool {
    let is_name = |part: &str| !matches!(part, "" | "." | "..");
    path.trim_end_matches('/').split('/').all(is_name) && !path.contains(char::is_control)
}

/// Checks rules between settings.
fn check(kind: &DestinationType, config: &Map<String, Value>) -> Result<(), FieldError> {
    let text = |name: &str| config.get(name).and_then(Value::as_str);
    let missing = |name: &str, why: &str| {
        Err(FieldError::new(&format!("{AT}__{name}"), "required", why.to_owned()))
    };
    if let Some(codec) = text("compression")
        && text("file_format") == Some("JSONLines")
        && !LINE_CODECS.contains(&codec)
    {
        let attr = format!("{AT}__compression");
        let detail = format!("JSONLines files cannot be compressed with {codec}.");
        return Err(FieldError::new(&attr, "invalid_choice", detail));
    }
    match kind.name {
        "S3" => match (text("aws_access_key_id"), text("aws_secret_access_key")) {
            (Some(id), _) if !id.bytes().all(|byte| byte.is_ascii_graphic()) => {
                let attr = format!("{AT}__aws_access_key_id");
                Err(FieldError::new(&attr, "invalid_input", "This is no access key."))
            }
            (Some(_), None) => missing("aws_secret_access_key", "The access key has no secret."),
            (None, Some(_)) => missing("aws_access_key_id", "The secret has no access key."),
            _ => Ok(()),
        },
        "LocalDirectory" => match text("path").is_none_or(is_below) {
            true => Ok(()),
            false => {
                let detail = "Enter a path below the directory for exports: no / first, no `..`.";
                Err(FieldError::new(&format!("{AT}__path"), "invalid_input", detail))
            }
        },
        "Snowflake" => match (text("authentication_type"), text("password"), text("private_key")) {
            (Some("password"), None, _) => missing("password", "Password authentication needs it."),
            (Some("keypair"), _, None) => {
                missing("private_key", "Key pair authentication needs it.")
            }
            _ => Ok(()),
        },
        "Redshift" if text("mode") == Some("COPY") => match config.get("copy_inputs") {
            Some(Value::Object(_)) => Ok(()),
            _ => missing("copy_inputs", "The mode COPY needs it."),
        },
        _ => Ok(()),
    }
}

/// Checks how long the names of events are together, at the longer list. Lists that were
/// stored before there was a limit stay valid until one of them changes.
fn check_event_names(
    before: &Map<String, Value>,
    config: &Map<String, Value>,
) -> Result<(), FieldError> {
    const LISTS: [&str; 2] = ["include_events", "exclude_events"];
    let length = |list: &str| -> usize {
        let names = config.get(list).and_then(Value::as_array).into_iter().flatten();
        names.filter_map(Value::as_str).map(str::len).sum()
    };
    let [included, excluded] = LISTS.map(length);
    let is_new = LISTS.into_iter().any(|list| before.get(list) != config.get(list));
    if included + excluded <= EVENT_NAMES_MAX || !is_new {
        return Ok(());
    }
    let [include, exclude] = LISTS;
    let attr = if included >= excluded { include } else { exclude };
    let detail = format!(
        "The names in {include} and {exclude} may have at most {EVENT_NAMES_MAX} bytes together."
    );
    Err(FieldError::new(&format!("{AT}__{attr}"), "max_length", detail))
}

#[cfg(test)]
mod tests;
