//! Form fields for the settings of a plugin, generated from its `config_schema`. Settings
//! that are files have separate forms (`config`).

use leptos::prelude::*;
use serde_json::{Map, Value};

use crate::plugin_settings::{Kind, Part, Setting, field, shown, with_fields};
use crate::ui::field::{Check, Choice, SecretField, Select, TextArea, TextLine};
use crate::ui::form::{FormFailure, FormResult};
use crate::ui::prose::prose;

/// Longest value of a setting, in characters.
const LONGEST: usize = 65_536;

/// The fields. `values` are the stored values. `None`: the config is new, and its fields
/// have the defaults.
pub(super) fn setting_fields(
    result: FormResult,
    form: &[Part],
    values: Option<&Map<String, Value>>,
) -> AnyView {
    let mut places = with_fields(form);
    let fields: Vec<AnyView> = form
        .iter()
        .map(|part| match part {
            Part::Words(words) => view! { <p class="setting-words">{prose(words)}</p> }.into_any(),
            Part::Setting(setting) if setting.kind == Kind::File => file_words(setting),
            Part::Setting(_) => match places.next() {
                Some((at, setting)) => {
                    let present = values.map(|values| values.get(&setting.key));
                    one(result, at, setting, present)
                }
                None => ().into_any(),
            },
        })
        .collect();
    view! { <div class="settings">{fields}</div> }.into_any()
}

/// The names of the fields, to find errors that no field shows.
pub(super) fn names(form: &[Part]) -> Vec<String> {
    with_fields(form).map(|(at, setting)| field(at, setting)).collect()
}

/// The error of a form, unless one of its generated fields shows it.
pub(super) fn failure(result: FormResult, shown: &[String]) -> Option<AnyView> {
    let is_shown = shown.iter().any(|name| result.field_error(name).is_some());
    (result.failed() && !is_shown).then(|| view! { <FormFailure result=result /> }.into_any())
}

fn file_words(setting: &Setting) -> AnyView {
    let name = setting.name.clone();
    view! { <p class="hint">{name} " is a file: it is attached below, once the settings are saved."</p> }
        .into_any()
}

/// The field of one setting. `present` is the stored value of an existing config.
fn one(
    result: FormResult,
    at: usize,
    setting: &Setting,
    present: Option<Option<&Value>>,
) -> AnyView {
    let key = setting.key.clone();
    let name = field(at, setting);
    let label = match setting.required {
        true => setting.name.clone(),
        false => format!("{} (optional)", setting.name),
    };
    let hint = setting.hint.clone();
    let begins = match present {
        None => setting.default.clone(),
        Some(value) => value.map(shown).unwrap_or_default(),
    };
    let control = match &setting.kind {
        _ if setting.secret => secret(result, at, name, label, hint, present.flatten().is_some()),
        Kind::Choice(choices) => {
            let mut offered: Vec<Choice> = Vec::new();
            if begins.is_empty() || !setting.required {
                offered.push(Choice::new("", "Nothing chosen"));
            }
            offered.extend(choices.iter().map(|choice| Choice::new(choice.clone(), choice.clone())));
            view! { <Select result=result name=name label=label hint=hint choices=offered value=begins /> }
                .into_any()
        }
        Kind::Json => view! {
            <TextArea result=result name=name label=label hint=hint value=begins max=LONGEST code=true />
        }
        .into_any(),
        Kind::Number => view! {
            <TextLine result=result name=name label=label hint=hint value=begins kind="number" max=100 />
        }
        .into_any(),
        Kind::Text | Kind::File if begins.contains('\n') => view! {
            <TextArea result=result name=name label=label hint=hint value=begins max=LONGEST />
        }
        .into_any(),
        Kind::Text | Kind::File => view! {
            <TextLine result=result name=name label=label hint=hint value=begins max=LONGEST />
        }
        .into_any(),
    };
    view! {
        <input type="hidden" name=format!("settings[{at}][key]") value=key />
        {control}
    }
    .into_any()
}

/// The field of a secret. The stored value is never shown, and it stays if the field is
/// left empty.
fn secret(
    result: FormResult,
    at: usize,
    name: String,
    label: String,
    hint: String,
    is_set: bool,
) -> AnyView {
    // The time when the secret was set is unknown.
    let set = is_set.then(String::new);
    let clearing = is_set.then(|| {
        view! {
            <Check result=result name=format!("settings[{at}][clear]")
                label=format!("Remove the stored value of {label}") />
        }
    });
    let field = match set {
        Some(set) => {
            view! { <SecretField result=result name=name label=label hint=hint set=set /> }
                .into_any()
        }
        None => view! { <SecretField result=result name=name label=label hint=hint /> }.into_any(),
    };
    view! { {field} {clearing} }.into_any()
}
