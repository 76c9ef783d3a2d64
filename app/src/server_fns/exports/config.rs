//! Converts the settings of a destination between a form and the JSON of the API.
//!
//! A form is flat: a nested setting has both names, joined with two underscores, as
//! errors of the API name it. A field is sent as `config[name]`, a secret as
//! `secrets[name]`. By that prefix the server knows which values it must not keep.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use weir_model::exports::SentConfig;
use weir_model::exports::destinations::{DestinationType, Field, Kind, Need};

use crate::error::UiError;

/// Prefix of the field names in errors about settings.
const AT: &str = "destination__config__";

/// Values by path of the setting.
pub(crate) type Values = BTreeMap<String, String>;

#[derive(Debug, Clone)]
pub(crate) struct FormSetting {
    /// Its names from the outermost to the innermost, joined with two underscores.
    pub(crate) path: String,
    /// The definition of the setting.
    pub(crate) field: &'static Field,
    /// Whether it is required. Settings inside an optional setting are not.
    pub(crate) required: bool,
}

impl FormSetting {
    /// The name of its form field.
    pub(crate) fn name(&self) -> String {
        match self.field.is_secret {
            true => format!("secrets[{}]", self.path),
            false => format!("config[{}]", self.path),
        }
    }
}

/// The settings of a form, in their order.
pub(crate) fn form_settings(kind: &'static DestinationType) -> Vec<FormSetting> {
    let mut all = Vec::new();
    for field in kind.all_fields() {
        walk(field, "", true, &mut all);
    }
    all
}

fn walk(field: &'static Field, within: &str, required: bool, all: &mut Vec<FormSetting>) {
    let path = join(within, field.name);
    let required = required && field.need == Need::Required;
    match &field.kind {
        Kind::Object(inner) => inner.iter().for_each(|field| walk(field, &path, required, all)),
        Kind::TextOrObject(inner) => {
            all.push(FormSetting { path: path.clone(), field, required: false });
            inner.iter().for_each(|field| walk(field, &path, false, all));
        }
        _ => all.push(FormSetting { path, field, required }),
    }
}

fn join(within: &str, name: &str) -> String {
    if within.is_empty() { name.to_owned() } else { format!("{within}__{name}") }
}

/// The settings that a form sent. Empty secrets are omitted, which keeps the stored ones.
pub(crate) fn sent(
    kind: &'static DestinationType,
    config: &Values,
    secrets: &Values,
) -> SentConfig {
    let form = Form { config, secrets };
    let all = kind.all_fields();
    let read =
        |field: &'static Field| form.value(field, "").map(|value| (field.name.to_owned(), value));
    SentConfig(all.filter_map(read).collect())
}

struct Form<'a> {
    config: &'a Values,
    secrets: &'a Values,
}

impl Form<'_> {
    /// The value of a setting. `None`: it is omitted.
    fn value(&self, field: &'static Field, within: &str) -> Option<Value> {
        let path = join(within, field.name);
        if field.is_secret {
            let typed = self.secrets.get(&path).filter(|text| !text.is_empty());
            return typed.map(|text| secret(text));
        }
        let text = self.config.get(&path).map_or("", String::as_str).trim();
        match &field.kind {
            // Browsers do not send unticked boxes.
            Kind::Boolean => Some(Value::from(self.config.contains_key(&path))),
            Kind::Texts => {
                let names = text.lines().map(str::trim).filter(|name| !name.is_empty());
                let names: Vec<Value> = names.map(Value::from).collect();
                Some(if names.is_empty() { Value::Null } else { Value::from(names) })
            }
            Kind::Object(inner) => match (self.has_any(inner, &path), field.need) {
                (true, _) => Some(self.object(inner, &path)),
                (false, Need::Nullable) => Some(Value::Null),
                (false, Need::Required | Need::Default(_)) => None,
            },
            Kind::TextOrObject(inner) => match text {
                "" if self.has_any(inner, &path) => Some(self.object(inner, &path)),
                "" => None,
                text => Some(Value::from(text)),
            },
            Kind::Text { .. }
            | Kind::Identifier
            | Kind::Url
            | Kind::Host
            | Kind::HostPart
            | Kind::Integer { .. }
            | Kind::Choice(_) => Some(match (text, field.need) {
                ("", Need::Nullable) => Value::Null,
                ("", Need::Default(_)) if !may_be_empty(&field.kind) => Value::Null,
                (text, _) => Value::from(text),
            }),
        }
    }

    fn object(&self, fields: &'static [Field], within: &str) -> Value {
        let read = |field: &'static Field| {
            self.value(field, within).map(|value| (field.name.to_owned(), value))
        };
        Value::Object(fields.iter().filter_map(read).collect())
    }

    /// Whether one of these settings has a value.
    fn has_any(&self, fields: &'static [Field], within: &str) -> bool {
        fields.iter().any(|field| {
            let path = join(within, field.name);
            let values = if field.is_secret { self.secrets } else { self.config };
            let inner = match &field.kind {
                Kind::Object(inner) | Kind::TextOrObject(inner) => *inner,
                _ => &[],
            };
            values.get(&path).is_some_and(|text| !text.trim().is_empty())
                || self.has_any(inner, &path)
        })
    }
}

/// Whether the setting accepts an empty text.
pub(crate) fn may_be_empty(kind: &Kind) -> bool {
    matches!(kind, Kind::Text { may_be_empty: true, .. })
}

/// Normalizes a secret: browsers change line ends, and a key copied from a JSON file has
/// escaped line ends.
fn secret(text: &str) -> Value {
    let text = text.replace("\r\n", "\n");
    let is_key_of_json = text.trim_start().starts_with("-----BEGIN");
    Value::from(if is_key_of_json { text.replace("\\n", "\n") } else { text })
}

/// The texts that a form shows, by path, without secrets.
pub(crate) fn shown(kind: &'static DestinationType, config: &Map<String, Value>) -> Values {
    let at = |path: &str| {
        let mut names = path.split("__");
        let outer = config.get(names.next()?)?;
        names.try_fold(outer, |value, name| value.as_object()?.get(name))
    };
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(true) => Some("on".to_owned()),
        Value::Array(items) => {
            let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            Some(items.join("\n"))
        }
        Value::Bool(false) | Value::Null | Value::Object(_) => None,
    };
    let of =
        |setting: FormSetting| at(&setting.path).and_then(text).map(|text| (setting.path, text));
    form_settings(kind)
        .into_iter()
        .filter(|setting| !setting.field.is_secret)
        .filter_map(of)
        .collect()
}

/// Moves an error to the field of the setting that it names.
pub(crate) fn at_field(kind: &'static DestinationType, error: UiError) -> UiError {
    let UiError::Field(mut fault) = error else { return error };
    let path = fault.attr.as_deref().and_then(|attr| attr.strip_prefix(AT));
    if let Some(path) = path {
        let settings = form_settings(kind);
        // An error about a group of settings is shown at the first one.
        let within = format!("{path}__");
        let found = settings
            .iter()
            .find(|setting| setting.path == path)
            .or_else(|| settings.iter().find(|setting| setting.path.starts_with(&within)));
        if let Some(found) = found {
            fault.attr = Some(found.name());
        }
    }
    UiError::Field(fault)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use weir_model::exports::config;

    use super::*;

    fn values(pairs: &[(&str, &str)]) -> Values {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn kind(name: &str) -> &'static DestinationType {
        DestinationType::of(name).unwrap()
    }

    #[test]
    fn a_form_becomes_the_config_of_the_api() {
        let typed = values(&[
            ("bucket_name", " events "),
            ("region", "eu-west-1"),
            ("prefix", "weir"),
            ("compression", ""),
            ("max_file_size_mb", "64"),
            ("include_events", "paid\r\n\r\n signed up \r\n"),
        ]);
        let half = values(&[("aws_access_key_id", "AK"), ("aws_secret_access_key", "")]);
        let kept = sent(kind("S3"), &typed, &half);
        assert_eq!(kept.0.get("aws_secret_access_key"), None, "left out: it stays");
        let secrets = values(&[("aws_access_key_id", "AK"), ("aws_secret_access_key", "SK")]);
        let sent = sent(kind("S3"), &typed, &secrets);
        let whole = config::complete(kind("S3"), &sent.0).unwrap();
        assert_eq!(whole["bucket_name"], "events");
        assert_eq!(whole["compression"], Value::Null);
        assert_eq!(whole["file_format"], "JSONLines");
        assert_eq!(whole["max_file_size_mb"], 64);
        assert_eq!(whole["use_virtual_style_addressing"], false);
        assert_eq!(whole["include_events"], json!(["paid", "signed up"]));
        let (again, _) = config::split_secrets(kind("S3"), whole);
        let again = shown(kind("S3"), &again);
        assert_eq!(again["include_events"], "paid\nsigned up");
        assert_eq!(again["max_file_size_mb"], "64");
        assert!(!again.contains_key("aws_access_key_id"));
    }

    #[test]
    fn nested_settings_are_flat_in_the_form() {
        let redshift = kind("Redshift");
        let typed = values(&[
            ("host", "h"),
            ("database", "d"),
            ("mode", "COPY"),
            ("copy_inputs__s3_bucket", "b"),
            ("copy_inputs__region_name", "eu-west-1"),
        ]);
        let secrets = values(&[
            ("user", "u"),
            ("password", " p "),
            ("copy_inputs__authorization__aws_access_key_id", "A"),
            ("copy_inputs__authorization__aws_secret_access_key", "B"),
            ("copy_inputs__bucket_credentials__aws_access_key_id", "C"),
            ("copy_inputs__bucket_credentials__aws_secret_access_key", "D"),
        ]);
        let whole = config::complete(redshift, &sent(redshift, &typed, &secrets).0).unwrap();
        assert_eq!(whole["password"], " p ");
        assert_eq!(whole["copy_inputs"]["s3_key_prefix"], "/");
        assert_eq!(whole["copy_inputs"]["authorization"]["aws_access_key_id"], "A");
        let without = sent(redshift, &values(&[("host", "h")]), &Values::new());
        assert_eq!(without.0["copy_inputs"], Value::Null);

        let fault = UiError::field(
            "destination__config__copy_inputs__bucket_credentials",
            "required",
            "This field is required.",
        );
        let name = "secrets[copy_inputs__bucket_credentials__aws_access_key_id]";
        assert_eq!(at_field(redshift, fault).attr(), Some(name));
        let fault = UiError::field("destination__config__host", "blank", "x");
        assert_eq!(at_field(redshift, fault).attr(), Some("config[host]"));
        let fault = UiError::field("name", "blank", "x");
        assert_eq!(at_field(redshift, fault).attr(), Some("name"));
    }

    #[test]
    fn keys_from_json_regain_their_line_breaks() {
        let keys = values(&[("private_key", "-----BEGIN KEY-----\\nabc\\n-----END KEY-----\r\n")]);
        let sent = sent(kind("BigQuery"), &Values::new(), &keys);
        assert_eq!(sent.0["private_key"], "-----BEGIN KEY-----\nabc\n-----END KEY-----\n");
    }

    #[test]
    fn every_kind_has_fields_for_all_of_its_settings() {
        for kind in weir_model::exports::destinations::ALL {
            let settings = form_settings(kind);
            assert!(settings.len() >= kind.fields.len(), "{}", kind.name);
            assert!(settings.iter().all(|setting| !matches!(setting.field.kind, Kind::Object(_))));
        }
    }
}
