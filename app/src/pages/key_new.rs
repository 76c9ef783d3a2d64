//! A new personal API key: what it is for, what it may do, how long.

use leptos::prelude::*;
use weir_model::keys::LABEL_MAX;
use weir_model::scopes::{Scope, ScopeObject};

use crate::key_words::{Choice, choice, sentence, things};
use crate::server_fns::keys::{CreateKey, Expiry, get_key_offer};
use crate::ui::field::{Field, initial};
use crate::ui::form::{Back, FormFailure, Sent, Submit, sent};
use crate::ui::icon::Icon;
use crate::ui::page::{PageHead, page};

/// Days that a key works unless something else is chosen.
const DEFAULT_DAYS: u16 = 90;
/// Presets: word, label, explanation.
const PRESETS: [(&str, &str, &str); 3] = [
    ("read", "Read-only", "Reads everything you can see, changes nothing."),
    ("custom", "Custom", "Choose for each kind of thing."),
    ("all", "Everything", "Whatever you may do, now and later."),
];

/// The form.
#[component]
pub(crate) fn KeyNew() -> impl IntoView {
    page("New API key", async {
        let offer = get_key_offer().await?;
        Ok(view! {
            <PageHead title="New API key" />
            <section class="card"><KeyForm offer=offer /></section>
            <p><a href="/account/keys">"Back to API keys"</a></p>
        }
        .into_any())
    })
}

#[component]
fn KeyForm(offer: Vec<Expiry>) -> impl IntoView {
    let create = ServerAction::<CreateKey>::new();
    let sent = sent(create);
    let days = initial("days", DEFAULT_DAYS.to_string());
    let until = offer.iter().find(|expiry| expiry.days.to_string() == days);
    let until = until.and_then(|expiry| expiry.until.clone());
    let sentence = sentence(&initial("preset", "read".to_owned()), &chosen(), until.as_deref());
    let options = offer.into_iter().map(|expiry| option(expiry, &days)).collect_view();
    view! {
        <ActionForm action=create>
            <FormFailure sent=sent fields=&["label", "scopes"] />
            <Back />
            <Field sent=sent name="label" label="Label" max=LABEL_MAX autofocus=true
                hint="What the key is for, such as the script that uses it." />
            <Presets sent=sent />
            <ScopeGrid />
            <div class="field">
                <label for="days">"Expires"</label>
                <select id="days" name="days">{options}</select>
            </div>
            <p class="sentence needs-scripts" role="status" data-sentence="">{sentence}</p>
            <Submit sent=sent label="Create key" busy="Creating key..." />
        </ActionForm>
    }
}

#[component]
fn Presets(sent: Sent) -> impl IntoView {
    let preset = initial("preset", "read".to_owned());
    let choices = PRESETS
        .into_iter()
        .map(|(word, label, explanation)| {
            view! {
                <label class="choice">
                    <input type="radio" name="preset" value=word checked=preset == word />
                    <span>{label}<span class="hint">{explanation}</span></span>
                </label>
            }
        })
        .collect_view();
    let fault = sent.fault("scopes");
    let described_by = fault.as_ref().map(|_| "scopes-fault");
    view! {
        <fieldset
            class="choices"
            id="scopes"
            tabindex="-1"
            autofocus=sent.begins_at("scopes", false)
            aria-describedby=described_by
        >
            <legend>"What it may do"</legend>
            {choices}
            {fault.map(|fault| view! {
                <p class="fault" id="scopes-fault"><Icon name="alert" />{fault}</p>
            })}
        </fieldset>
    }
}

fn option(expiry: Expiry, days: &str) -> impl IntoView + use<> {
    let text = match (&expiry.until, expiry.days) {
        (Some(until), days) => format!("In {days} days, on {until}"),
        (None, _) => "Never".to_owned(),
    };
    let value = expiry.days.to_string();
    let selected = value == days;
    view! { <option value=value selected=selected data-until=expiry.until>{text}</option> }
}

/// What was chosen for each kind of thing when the form was sent.
fn chosen() -> Vec<Choice> {
    ScopeObject::OFFERED
        .iter()
        .enumerate()
        .map(|(at, _)| choice(&initial(&format!("scopes[{at}]"), String::new())))
        .collect()
}

/// One line per kind of thing. Shown by the style sheet when "custom" is chosen,
/// so that it works without scripts.
#[component]
fn ScopeGrid() -> impl IntoView {
    let lines = ScopeObject::OFFERED
        .iter()
        .enumerate()
        .map(|(at, object)| {
            let name = format!("scopes[{at}]");
            let chosen = initial(&name, String::new());
            let radios = [
                ("None", String::new()),
                ("Read", Scope::read(*object).to_string()),
                ("Write", Scope::write(*object).to_string()),
            ]
            .into_iter()
            .map(|(label, value)| {
                let checked = value == chosen;
                view! {
                    <label class="choice">
                        <input type="radio" name=name.clone() value=value checked=checked />
                        {label}
                    </label>
                }
            })
            .collect_view();
            view! {
                <fieldset class="scope">
                    <legend>{things(*object)}</legend>
                    {radios}
                </fieldset>
            }
        })
        .collect_view();
    view! {
        <div class="scope-grid">
            {lines}
            <p class="hint">"Write includes read."</p>
        </div>
    }
    .into_any()
}
