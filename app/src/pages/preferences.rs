//! Preferences of the user: theme, time zone, number format, table rows, keyboard shortcuts.

use futures::future::try_join;
use leptos::prelude::*;
use serde_json::json;
use weir_model::preferences::{NumberFormat, Preferences, TableRows};

use super::account_nav::AccountNav;
use super::project_settings::ZONES;
use crate::edits::TICKED;
use crate::error::UiError;
use crate::server_fns::account::{ChooseTheme, get_viewer};
use crate::server_fns::preferences::{SetPreferences, get_preferences, zone_fields};
use crate::theme::Theme;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::field::{Check, Choice, Field, RadioCards};
use crate::ui::form::{FormFailure, ReturnAddress, ShownValues, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page};
use crate::ui::sections::Section;

const TITLE: &str = "Preferences";

#[component]
pub(crate) fn PreferencesPage() -> impl IntoView {
    page(TITLE, || (), |()| load(), |(), (theme, chosen)| draw(theme, chosen))
}

async fn load() -> Result<(Theme, Preferences), UiError> {
    let (viewer, chosen) = try_join(get_viewer(), get_preferences()).await?;
    Ok((viewer.theme, chosen))
}

fn draw(theme: Theme, chosen: Preferences) -> AnyView {
    view! {
        <PageHead title=TITLE within="Account" />
        <AccountNav />
        <p class="lead">
            "Preferences are stored with your account. They apply here immediately, and in your other browsers from the next page on. The theme applies in another browser after you sign in there again."
        </p>
        <Section id="appearance" title="Appearance">
            <ThemeForm theme=theme />
        </Section>
        <Section id="formats" title="Times, numbers, tables and keys">
            <FormatForm chosen=chosen />
        </Section>
    }
    .into_any()
}

#[component]
fn ThemeForm(theme: Theme) -> impl IntoView {
    let choose = form_action::<ChooseTheme>();
    let result = form_result(choose);
    let choices: Vec<Choice> =
        Theme::ALL.into_iter().map(|theme| Choice::new(theme.word(), theme.label())).collect();
    let call = ApiCall::new("PATCH", "/api/users/@me/".to_owned(), "user:write");
    let call = call.with(json!({"theme_mode": "{theme}"}));
    view! {
        <ActionForm action=choose>
            <FormFailure result=result fields=&["theme"] />
            <ReturnAddress />
            <RadioCards result=result name="theme" legend="Theme" choices=choices value=theme.word() />
            <Submit result=result label="Save theme" busy="Saving theme..." saved="Saved" />
            <ApiRequest call=call />
        </ActionForm>
    }
    .into_any()
}

#[component]
fn FormatForm(chosen: Preferences) -> impl IntoView {
    let set = form_action::<SetPreferences>();
    let result = form_result(set);
    let (zone, named) = zone_fields(&chosen);
    let named = named.to_owned();
    let shows = [
        ("zone", zone),
        ("named", named.as_str()),
        ("numbers", chosen.numbers.word()),
        ("rows", chosen.rows.word()),
        ("shortcuts", if chosen.shortcuts { TICKED } else { "" }),
    ];
    let shows = shows.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let zones = vec![
        Choice::new("browser", "Time zone of the browser")
            .hint("Without scripts times are in UTC."),
        Choice::new("utc", "UTC"),
        Choice::new("named", "Another time zone").hint("Enter its name below."),
    ];
    let numbers: Vec<Choice> = NumberFormat::ALL
        .into_iter()
        .map(|form| Choice::new(form.word(), form.example()))
        .collect();
    let rows = TableRows::ALL.into_iter().map(|rows| match rows {
        TableRows::Comfortable => Choice::new(rows.word(), "Comfortable"),
        TableRows::Compact => Choice::new(rows.word(), "Compact"),
    });
    let rows: Vec<Choice> = rows.collect();
    let known = ZONES.into_iter().map(|zone| view! { <option value=zone></option> }).collect_view();
    view! {
        <ActionForm action=set>
            <FormFailure result=result fields=&["named", "numbers", "rows"] />
            <ShownValues result=result values=shows />
            <ReturnAddress />
            <RadioCards result=result name="zone" legend="Time zone" choices=zones value=zone />
            <Field result=result name="named" label="Name of the time zone" max=64 value=named list="zones" required=false
                hint="IANA name, such as Europe/Berlin." />
            <datalist id="zones">{known}</datalist>
            <RadioCards result=result name="numbers" legend="Numbers" choices=numbers value=chosen.numbers.word() />
            <RadioCards result=result name="rows" legend="Table rows" choices=rows value=chosen.rows.word() />
            <Check
                result=result
                name="shortcuts"
                label="Single-key shortcuts"
                hint="Such as u for times in UTC and ? for the list of keys. Ctrl K always searches."
                checked=chosen.shortcuts
            />
            <Submit result=result label="Save preferences" busy="Saving preferences..." saved="Saved" />
        </ActionForm>
    }
    .into_any()
}
