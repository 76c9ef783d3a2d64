//! A new personal API key: what it is for, what it may do, how long.

use leptos::prelude::*;
use weir_model::keys::LABEL_MAX;
use weir_model::scopes::{Scope, ScopeObject};

use crate::server_fns::keys::{CreateKey, Expiry, get_key_offer};
use crate::ui::field::{Field, initial};
use crate::ui::form::{Back, FormFailure, Submit, sent};
use crate::ui::icon::Icon;
use crate::ui::page_head::PageHead;
use crate::ui::panel::Panel;

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
    let data = Resource::new(|| (), |()| get_key_offer());
    view! {
        <PageHead title=Signal::stored("New API key".to_owned()) />
        <Panel data=data lines=12 view=|offer| view! { <KeyForm offer=offer /> }.into_any() />
        <p><a href="/account/keys">"Back to API keys"</a></p>
    }
    .into_any()
}

#[component]
fn KeyForm(offer: Vec<Expiry>) -> impl IntoView {
    let create = ServerAction::<CreateKey>::new();
    let sent = sent(create);
    let preset = RwSignal::new(initial("preset", "read".to_owned()));
    let days = RwSignal::new(DEFAULT_DAYS);
    let chosen = RwSignal::new(vec![Choice::None; ScopeObject::OFFERED.len()]);
    let offer = StoredValue::new(offer);
    let sentence = move || {
        let until = offer.with_value(|offer| {
            offer.iter().find(|expiry| expiry.days == days.get()).and_then(|e| e.until.clone())
        });
        sentence(&preset.get(), &chosen.get(), until.as_deref())
    };
    let scopes_fault = move || {
        sent.failure.with(|failure| {
            failure.as_ref().and_then(|error| error.at("scopes")).map(str::to_owned)
        })
    };
    view! {
        <section class="card">
            <ActionForm action=create>
                <FormFailure sent=sent fields=&["label", "scopes"] />
                <Back />
                <Field sent=sent name="label" label="Label" max=LABEL_MAX autofocus=true
                    hint="What the key is for, such as the script that uses it." />
                <fieldset class="choices" id="scopes" tabindex="-1">
                    <legend>"What it may do"</legend>
                    {PRESETS.into_iter().map(|(word, label, explanation)| view! {
                        <label class="choice">
                            <input
                                type="radio" name="preset" value=word
                                checked=preset.get_untracked() == word
                                on:change=move |_| preset.set(word.to_owned())
                            />
                            <span>{label}<span class="hint">{explanation}</span></span>
                        </label>
                    }).collect_view()}
                    {move || scopes_fault().map(|fault| view! {
                        <p class="fault" role="alert"><Icon name="alert" />{fault}</p>
                    })}
                </fieldset>
                <ScopeGrid chosen=chosen />
                <div class="field">
                    <label for="days">"Expires"</label>
                    <select
                        id="days" name="days"
                        on:change=move |event| days.set(event_target_value(&event).parse().unwrap_or(0))
                    >
                        {offer.with_value(|offer| offer.iter().map(option).collect_view())}
                    </select>
                </div>
                <p class="sentence needs-scripts" role="status">{sentence}</p>
                <Submit sent=sent label="Create key" busy="Creating key..." />
            </ActionForm>
        </section>
    }
}

fn option(expiry: &Expiry) -> impl IntoView + use<> {
    let text = match (&expiry.until, expiry.days) {
        (Some(until), days) => format!("In {days} days, on {until}"),
        (None, _) => "Never".to_owned(),
    };
    let selected = expiry.days == DEFAULT_DAYS;
    view! { <option value=expiry.days.to_string() selected=selected>{text}</option> }
}

/// What is chosen for one kind of thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    None,
    Read,
    Write,
}

/// One line per kind of thing. Shown by the style sheet when "custom" is chosen,
/// so that it works without scripts.
#[component]
fn ScopeGrid(chosen: RwSignal<Vec<Choice>>) -> impl IntoView {
    let lines = ScopeObject::OFFERED
        .iter()
        .enumerate()
        .map(|(at, object)| {
            let name = format!("scopes[{at}]");
            let options = [
                (Choice::None, "None", String::new()),
                (Choice::Read, "Read", Scope::read(*object).to_string()),
                (Choice::Write, "Write", Scope::write(*object).to_string()),
            ];
            let set = move |choice: Choice| {
                chosen.update(|chosen| {
                    if let Some(slot) = chosen.get_mut(at) {
                        *slot = choice;
                    }
                });
            };
            let radios = options
                .into_iter()
                .map(|(choice, label, value)| {
                    view! {
                        <label class="choice">
                            <input
                                type="radio" name=name.clone() value=value
                                checked=choice == Choice::None
                                on:change=move |_| set(choice)
                            />
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

/// What people call it.
fn things(object: ScopeObject) -> String {
    let word = object.text();
    match word.strip_suffix('y') {
        Some(stem) => format!("{}ies", capital(stem)),
        None => format!("{}s", capital(word)),
    }
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).map(|c| if c == '_' { ' ' } else { c }).collect()
}

/// What the key will be able to do, in one sentence.
fn sentence(preset: &str, chosen: &[Choice], until: Option<&str>) -> String {
    let what = match preset {
        "all" => "Can do everything you may do".to_owned(),
        "read" => "Can read everything you can see".to_owned(),
        _ => {
            let part = |wanted: Choice, verb: &str| {
                let names: Vec<String> = chosen
                    .iter()
                    .zip(ScopeObject::OFFERED)
                    .filter(|(choice, _)| **choice == wanted)
                    .map(|(_, object)| things(*object).to_lowercase())
                    .collect();
                (!names.is_empty()).then(|| format!("{verb} {}", list(&names)))
            };
            let parts: Vec<String> = [part(Choice::Read, "read"), part(Choice::Write, "write")]
                .into_iter()
                .flatten()
                .collect();
            if parts.is_empty() {
                return "Choose at least one thing that the key may do.".to_owned();
            }
            format!("Can {}", parts.join(" and "))
        }
    };
    match until {
        Some(until) => format!("{what} until {until}."),
        None => format!("{what}, for ever."),
    }
}

fn list(names: &[String]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use weir_model::scopes::ScopeObject;

    use super::{Choice, sentence, things};

    #[test]
    fn sentences() {
        let none = vec![Choice::None; ScopeObject::OFFERED.len()];
        let mut some = none.clone();
        some[0] = Choice::Read;
        some[1] = Choice::Write;
        some[2] = Choice::Read;
        assert_eq!(
            sentence("custom", &some, Some("18 Feb 2027")),
            "Can read organizations and events and write projects until 18 Feb 2027."
        );
        assert_eq!(sentence("read", &none, None), "Can read everything you can see, for ever.");
        assert!(sentence("custom", &none, None).starts_with("Choose"));
    }

    #[test]
    fn names_of_things() {
        assert_eq!(things(ScopeObject::Query), "Queries");
        assert_eq!(things(ScopeObject::OrganizationMember), "Organization members");
    }
}
