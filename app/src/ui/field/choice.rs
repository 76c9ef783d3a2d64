//! Fields with a choice.

use leptos::prelude::*;

use super::{FieldFrame, Ties, explained, initial, ticked};
use crate::ui::form::FormResult;

/// An option.
pub(crate) struct Choice {
    /// The value that is sent.
    pub(crate) value: String,
    /// The visible label.
    pub(crate) label: String,
    /// An explanation. Lists do not show it.
    pub(crate) hint: String,
    /// Why the option is disabled.
    pub(crate) disabled: Option<String>,
}

impl Choice {
    /// An option without an explanation.
    pub(crate) fn new(value: impl Into<String>, label: impl Into<String>) -> Self {
        Self { value: value.into(), label: label.into(), hint: String::new(), disabled: None }
    }

    /// The option with an explanation.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }

    /// The option, disabled.
    pub(crate) fn disabled(self, why: impl Into<String>) -> Self {
        Self { disabled: Some(why.into()), ..self }
    }
}

/// The options of words with labels.
pub(crate) fn choices(all: &[(&'static str, &'static str)]) -> Vec<Choice> {
    all.iter().map(|(word, label)| Choice::new(*word, *label)).collect()
}

/// A drop-down list.
#[component]
pub(crate) fn Select(
    result: FormResult,
    #[prop(into)] name: String,
    #[prop(into)] label: String,
    choices: Vec<Choice>,
    #[prop(into, optional)] value: String,
    #[prop(into, optional)] hint: String,
    /// Whether a choice submits the form, where scripts run.
    #[prop(optional)]
    autosubmit: bool,
) -> impl IntoView {
    let ties = Ties::new(name.clone(), hint, result);
    let autofocus = result.has_focus(&name, false);
    let chosen = initial(&name, value);
    let options = choices.into_iter().map(|choice| option(choice, &chosen)).collect_view();
    view! {
        <FieldFrame ties=ties.clone() label=label>
            <select
                id=name.clone()
                name=name
                autofocus=autofocus
                aria-describedby=ties.described_by()
                aria-invalid=ties.invalid()
                data-autosubmit=autosubmit.then_some("")
            >
                {options}
            </select>
        </FieldFrame>
    }
}

fn option(choice: Choice, chosen: &str) -> AnyView {
    let Choice { value, label, disabled, .. } = choice;
    let selected = value == chosen;
    let text = match &disabled {
        Some(why) => format!("{label} ({why})"),
        None => label,
    };
    view! { <option value=value selected=selected disabled=disabled.is_some()>{text}</option> }
        .into_any()
}

/// A few options, each with its explanation.
#[component]
pub(crate) fn RadioCards(
    result: FormResult,
    /// Name of the fields and id of the group.
    #[prop(into)]
    name: String,
    #[prop(into)] legend: String,
    choices: Vec<Choice>,
    #[prop(into, optional)] value: String,
) -> impl IntoView {
    let ties = Ties::new(name.clone(), "", result);
    let (described_by, autofocus) = (ties.described_by(), result.has_focus(&name, false));
    let chosen = initial(&name, value);
    let cards = choices.into_iter().map(|choice| card(choice, &name, &chosen)).collect_view();
    view! {
        <fieldset
            class="choices"
            id=name
            tabindex="-1"
            autofocus=autofocus
            aria-describedby=described_by
        >
            <legend>{legend}</legend>
            <div class="choice-cards">{cards}</div>
            {ties.below()}
        </fieldset>
    }
    .into_any()
}

fn card(choice: Choice, name: &str, chosen: &str) -> AnyView {
    let Choice { value, label, hint, disabled } = choice;
    let checked = value == chosen;
    let blocked = disabled.is_some();
    let explained = [Some(hint), disabled].into_iter().flatten().filter(|text| !text.is_empty());
    let explained = explained.map(|text| view! { <span class="hint">{text}</span> }).collect_view();
    view! {
        <label class="choice choice-card">
            <input type="radio" name=name.to_owned() value=value checked=checked disabled=blocked />
            <span>{label}{explained}</span>
        </label>
    }
    .into_any()
}

/// A box. It sends `on` when it is ticked.
#[component]
pub(crate) fn Check(
    result: FormResult,
    #[prop(into)] name: String,
    #[prop(into)] label: String,
    #[prop(into, optional)] hint: String,
    /// Whether it is initially ticked.
    #[prop(optional)]
    checked: bool,
    /// Why it cannot be changed. Empty if it can.
    #[prop(into, optional)]
    disabled: String,
) -> impl IntoView {
    let blocked = !disabled.is_empty();
    let ties = Ties::new(name.clone(), explained(hint, &disabled), result);
    let autofocus = result.has_focus(&name, false);
    let checked = ticked(result, &name, checked);
    view! {
        <div class="field field-check">
            <label class="choice">
                <input
                    type="checkbox"
                    id=name.clone()
                    name=name
                    value="on"
                    checked=checked
                    disabled=blocked
                    autofocus=autofocus
                    aria-describedby=ties.described_by()
                    aria-invalid=ties.invalid()
                />
                <span>{label}</span>
            </label>
            {ties.below()}
        </div>
    }
    .into_any()
}
