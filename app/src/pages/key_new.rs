//! Creates a personal API key: label, scopes, limits, expiry.

use leptos::prelude::*;
use weir_model::keys::LABEL_MAX;
use weir_model::scopes::ScopeObject;

use super::key_form::{Held, Presets, ReachFields, ScopeGrid};
use crate::days::day;
use crate::key_words::{Access, access, sentence};
use crate::server_fns::key_forms::{CreateKey, Expiry, KeyOffer, get_key_offer};
use crate::ui::field::{Field, Ties, initial};
use crate::ui::form::{FormFailure, FormResult, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::icon::Icon;
use crate::ui::page::{PageHead, page};

const TITLE: &str = "New API key";
/// Default lifetime of a key, in days.
const DEFAULT_DAYS: u16 = 90;
/// The initial preset.
const DEFAULT_PRESET: &str = "read";

#[component]
pub(crate) fn KeyNew() -> impl IntoView {
    page(TITLE, || (), |()| get_key_offer(), |(), offer| draw(offer))
}

fn draw(offer: KeyOffer) -> AnyView {
    view! {
        <PageHead title=TITLE />
        <section class="card section" data-dirty-guard=""><KeyForm offer=offer /></section>
        <p class="hint">
            "Keys are created only here: the API refuses to create a key with another key, so that a leaked key cannot create more."
        </p>
        <p><a href="/account/keys">"Back to API keys"</a></p>
    }
    .into_any()
}

#[component]
fn KeyForm(offer: KeyOffer) -> impl IntoView {
    let create = form_action::<CreateKey>();
    let result = form_result(create);
    let said = said(&offer.expiries);
    let (expiries, today) = (offer.expiries.clone(), offer.today.clone());
    view! {
        <ActionForm action=create>
            <FormFailure result=result fields=&["label", "scopes", "reach", "last_day"] />
            <ReturnAddress />
            <Field result=result name="label" label="Label" max=LABEL_MAX autofocus=true
                hint="What the key is for, such as the script that uses it." />
            <Presets result=result preset=DEFAULT_PRESET />
            <ScopeGrid />
            <ReachFields result=result offer=offer held=Held::default() />
            <Expires result=result expiries=expiries today=today />
            <p class="sentence needs-scripts" role="status" data-sentence="">{said}</p>
            <Submit result=result label="Create key" busy="Creating key..." />
        </ActionForm>
    }
}

/// The sentence for the initial values of the form.
fn said(expiries: &[Expiry]) -> String {
    let days = initial("days", DEFAULT_DAYS.to_string());
    let until = if days == "date" {
        day(&initial("last_day", String::new()))
    } else {
        let chosen = expiries.iter().find(|expiry| expiry.days.to_string() == days);
        chosen.and_then(|expiry| expiry.until.clone())
    };
    sentence(&initial("preset", DEFAULT_PRESET.to_owned()), &chosen(), until.as_deref())
}

/// The chosen access to each kind of object in a form that failed.
fn chosen() -> Vec<Access> {
    ScopeObject::OFFERED
        .iter()
        .enumerate()
        .map(|(at, _)| access(&initial(&format!("scopes[{at}]"), String::new())))
        .collect()
}

/// The expiry. The style sheet shows the field for a date when that option is chosen.
#[component]
fn Expires(result: FormResult, expiries: Vec<Expiry>, today: String) -> impl IntoView {
    let days = initial("days", DEFAULT_DAYS.to_string());
    let on_date = days == "date";
    let fault = result.field_error("last_day");
    let ties = Ties::new("last_day", "It works to the end of this day, UTC.", result);
    let options = expiries.into_iter().map(|expiry| option(expiry, &days)).collect_view();
    view! {
        <div class="field">
            <label for="days">"Expires"</label>
            <select id="days" name="days">
                {options}
                <option value="date" selected=on_date>"On a day of your choice"</option>
            </select>
        </div>
        <div class="field key-last-day">
            <label for="last_day">"Last day"</label>
            <input
                id="last_day"
                name="last_day"
                type="date"
                min=today
                value=initial("last_day", String::new())
                autofocus=result.has_focus("last_day", false)
                aria-describedby=ties.described_by()
                aria-invalid=ties.invalid()
            />
            <p class="hint" id="last_day-hint">"It works to the end of this day, UTC."</p>
            {fault.map(|fault| view! {
                <p class="fault" id="last_day-fault"><Icon name="alert" />{fault}</p>
            })}
        </div>
    }
    .into_any()
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
