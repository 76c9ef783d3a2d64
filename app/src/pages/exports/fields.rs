//! Form fields for the settings of a destination, generated from the list of settings in
//! `weir_model::exports::destinations`.

use leptos::prelude::*;
use weir_model::exports::destinations::{DestinationType, Kind, Need};

use super::words;
use crate::form_names::SECRET_MARK;
use crate::server_fns::exports::config::{FormSetting, Values, form_settings};
use crate::ui::field::{Check, Choice, SecretField, Select, TextArea, TextLine};
use crate::ui::form::FormResult;

/// Secrets that may be longer than this have a field of several lines, as keys do.
const ONE_LINE: usize = 1_000;

/// The initial values of the fields.
#[derive(Clone, Default)]
pub(super) struct Begin {
    /// Values by path. `None`: the defaults of a new destination.
    pub(super) values: Option<Values>,
    /// Paths of the secrets that are set.
    pub(super) set: Vec<String>,
}

/// Names and labels of the fields, for the summary of errors.
pub(super) fn labels(kind: &'static DestinationType) -> Vec<(String, String)> {
    let label = |setting: FormSetting| {
        let (label, _) = words::setting(kind.name, &setting.path);
        (setting.name(), label.to_owned())
    };
    form_settings(kind).into_iter().map(label).collect()
}

/// The settings of a destination for its connection, and the rarely used ones.
pub(super) struct Fields {
    pub(super) connection: AnyView,
    pub(super) advanced: AnyView,
    /// Names of the fields in `advanced`.
    pub(super) advanced_names: Vec<String>,
}

pub(super) fn fields(kind: &'static DestinationType, begin: &Begin, result: FormResult) -> Fields {
    let (connection, advanced): (Vec<FormSetting>, Vec<FormSetting>) =
        form_settings(kind).into_iter().partition(is_of_connection);
    let draw = |setting: &FormSetting| field(kind, setting, begin, result);
    Fields {
        connection: connection.iter().map(draw).collect_view().into_any(),
        advanced: advanced.iter().map(draw).collect_view().into_any(),
        advanced_names: advanced.iter().map(FormSetting::name).collect(),
    }
}

/// Whether the connection needs the setting, or can need it.
fn is_of_connection(setting: &FormSetting) -> bool {
    // The parts of a setting stay with it.
    let is_nested = setting.path.contains("__");
    let says_how = setting.path == "authentication_type";
    let field = setting.field;
    !is_nested && (setting.required || field.is_secret || field.is_address || says_how)
}

fn field(
    kind: &'static DestinationType,
    setting: &FormSetting,
    begin: &Begin,
    result: FormResult,
) -> AnyView {
    let (label, hint) = words::setting(kind.name, &setting.path);
    let (name, required) = (setting.name(), setting.required);
    if setting.field.is_secret {
        let is_set = begin.set.contains(&setting.path);
        return secret(setting, result, label, hint, is_set);
    }
    let value = value(setting, begin);
    match &setting.field.kind {
        Kind::Boolean => {
            view! { <Check result=result name=name label=label hint=hint checked=!value.is_empty() /> }
                .into_any()
        }
        Kind::Choice(choices) => {
            let mut offered = Vec::new();
            if setting.field.need == Need::Nullable {
                offered.push(Choice::new("", "None"));
            }
            offered.extend(choices.iter().map(|word| Choice::new(*word, *word)));
            view! {
                <Select result=result name=name label=label hint=hint choices=offered value=value />
            }
            .into_any()
        }
        Kind::Texts => {
            view! { <TextArea result=result name=name label=label hint=hint value=value rows=3 code=true /> }
                .into_any()
        }
        Kind::Integer { .. } => view! {
            <TextLine result=result name=name label=label hint=hint value=value kind="number"
                required=required />
        }
        .into_any(),
        Kind::Url => view! {
            <TextLine result=result name=name label=label hint=hint value=value kind="url" max=1000
                required=required />
        }
        .into_any(),
        Kind::Text { .. }
        | Kind::Identifier
        | Kind::Host
        | Kind::HostPart
        | Kind::Object(_)
        | Kind::TextOrObject(_) => view! {
            <TextLine result=result name=name label=label hint=hint value=value max=1000
                required=required />
        }
        .into_any(),
    }
}

/// The initial value of a field that is not a secret. Nested settings have no default in
/// the form: if all of them are empty, they are not used.
fn value(setting: &FormSetting, begin: &Begin) -> String {
    if let Some(values) = &begin.values {
        return values.get(&setting.path).cloned().unwrap_or_default();
    }
    match setting.field.need {
        Need::Default(json) if !setting.path.contains("__") => {
            match crate::json::read::<serde_json::Value>(json) {
                Ok(serde_json::Value::String(text)) => text,
                Ok(serde_json::Value::Bool(true)) => "on".to_owned(),
                Ok(serde_json::Value::Number(number)) => number.to_string(),
                _ => String::new(),
            }
        }
        Need::Required | Need::Nullable | Need::Default(_) => String::new(),
    }
}

/// The field of a secret. The value is never shown, and it stays if the field is left
/// empty.
fn secret(
    setting: &FormSetting,
    result: FormResult,
    label: &'static str,
    hint: &'static str,
    is_set: bool,
) -> AnyView {
    let (name, required) = (setting.name(), setting.required && !is_set);
    if !matches!(setting.field.kind, Kind::Text { max, .. } if max > ONE_LINE) {
        return match is_set {
            true => view! { <SecretField result=result name=name label=label hint=hint set="" /> }
                .into_any(),
            false => view! {
                <SecretField result=result name=name label=label hint=hint required=required />
            }
            .into_any(),
        };
    }
    let kept = if is_set { "One is set. Leave this empty to keep it." } else { "" };
    let hint = [hint, kept].join(" ").trim().to_owned();
    let mark = format!("{SECRET_MARK}{name}");
    view! {
        <TextArea result=result name=name label=label hint=hint rows=4 max=20_000 required=required
            code=true />
        <input type="hidden" name=mark />
    }
    .into_any()
}
