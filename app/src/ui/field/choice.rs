//! Fields that are chosen in.

use leptos::prelude::*;

use super::{FieldFrame, Ties, initial, ticked};
use crate::ui::form::Sent;

/// Something to choose.
pub(crate) struct Choice {
    /// What is sent.
    pub(crate) value: String,
    /// What it is called.
    pub(crate) label: String,
    /// What it means. Lists have no room for it.
    pub(crate) hint: String,
    /// Why it cannot be chosen.
    pub(crate) disabled: Option<String>,
}

impl Choice {
    /// Something to choose.
    pub(crate) fn new(value: impl Into<String>, label: impl Into<String>) -> Self {
        Self { value: value.into(), label: label.into(), hint: String::new(), disabled: None }
    }

    /// The same with what it means.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }

    /// The same, but it cannot be chosen.
    pub(crate) fn disabled(self, why: impl Into<String>) -> Self {
        Self { disabled: Some(why.into()), ..self }
    }
}

/// A list to choose one from.
#[component]
pub(crate) fn Select(
    /// What became of the form.
    sent: Sent,
    /// Name and id.
    #[prop(into)]
    name: String,
    /// Label.
    #[prop(into)]
    label: String,
    /// What there is.
    choices: Vec<Choice>,
    /// What is chosen to begin with.
    #[prop(into, optional)]
    value: String,
    /// Hint.
    #[prop(into, optional)]
    hint: String,
    /// Whether choosing sends the form, where there are scripts.
    #[prop(optional)]
    autosubmit: bool,
) -> impl IntoView {
    let ties = Ties::new(name.clone(), hint, sent);
    let autofocus = sent.begins_at(&name, false);
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

/// A few things to choose one from, each with what it means.
#[component]
pub(crate) fn RadioCards(
    /// What became of the form.
    sent: Sent,
    /// Name of the fields, id of the group.
    #[prop(into)]
    name: String,
    /// What is chosen.
    #[prop(into)]
    legend: String,
    /// What there is.
    choices: Vec<Choice>,
    /// What is chosen to begin with.
    #[prop(into, optional)]
    value: String,
) -> impl IntoView {
    let ties = Ties::new(name.clone(), "", sent);
    let (described_by, autofocus) = (ties.described_by(), sent.begins_at(&name, false));
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

/// Something that is or is not; sends `on` when it is.
#[component]
pub(crate) fn Check(
    /// What became of the form.
    sent: Sent,
    /// Name and id.
    #[prop(into)]
    name: String,
    /// Label.
    #[prop(into)]
    label: String,
    /// Hint.
    #[prop(into, optional)]
    hint: String,
    /// Whether it is to begin with.
    #[prop(optional)]
    checked: bool,
    /// Why it cannot be changed; empty when it can.
    #[prop(into, optional)]
    disabled: String,
) -> impl IntoView {
    let blocked = !disabled.is_empty();
    let explained: Vec<String> =
        [hint, disabled].into_iter().filter(|text| !text.is_empty()).collect();
    let ties = Ties::new(name.clone(), explained.join(" "), sent);
    let autofocus = sent.begins_at(&name, false);
    let checked = ticked(sent, &name, checked);
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
