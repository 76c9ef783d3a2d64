//! The providers of single sign-on: the list, a form that adds or changes one, and why
//! sign-ins through them were refused.

use leptos::prelude::*;

use crate::server_fns::instance::{ProviderView, RefusedView, RemoveProvider, SaveProvider};
use crate::ui::confirm::{ConfirmButtons, ConfirmDialog, OpenDialog};
use crate::ui::copy::CopyValue;
use crate::ui::field::{SecretField, TextLine};
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, FormAction, form_action};
use crate::ui::menu::RowMenu;
use crate::ui::number::Count;
use crate::ui::sections::Section;
use crate::ui::table::{ACTIONS, Column, Table, TableRow, cell};
use crate::ui::time::Ago;

/// The section about providers.
#[component]
pub(super) fn Providers(
    providers: Vec<ProviderView>,
    /// Why sign-ins through them were refused.
    refused_sign_ins: Vec<RefusedView>,
    /// Where providers send browsers back to.
    callback_url: String,
) -> impl IntoView {
    let remove = form_action::<RemoveProvider>();
    let removed = form_result(remove);
    // A form that was refused shows its error.
    let is_open = form_result(form_action::<SaveProvider>()).shows_typed_values();
    let is_empty = providers.is_empty();
    let columns = vec![
        Column::text("Name"),
        Column::text("Shown as"),
        Column::text("Issuer"),
        Column::text("Client id"),
        Column::text(ACTIONS),
    ];
    let rows = providers.into_iter().map(|provider| row(provider, remove)).collect::<Vec<_>>();
    view! {
        <Section
            id="providers"
            title="Single sign-on"
            hint="Providers that all users of this instance can sign in through, by OpenID Connect. Organizations set up SAML themselves, on the pages of their domains."
        >
            <FormFailure result=removed />
            {match is_empty {
                true => view! { <p>"No provider yet."</p> }.into_any(),
                false => view! { <Table caption="Providers" columns=columns rows=rows /> }.into_any(),
            }}
            <details class="confirm" open=is_open>
                <summary class="button">"Add or change a provider"</summary>
                <div class="confirm-body"><SaveForm callback_url=callback_url /></div>
            </details>
            {(!refused_sign_ins.is_empty()).then(|| refusals(refused_sign_ins))}
            <p><a href="/help/single-sign-on">"Set up single sign-on step by step"</a></p>
        </Section>
    }
    .into_any()
}

fn refusals(refused_sign_ins: Vec<RefusedView>) -> AnyView {
    let columns = vec![
        Column::text("Reason"),
        Column::text("Provider"),
        Column::number("Times"),
        Column::text("Last"),
    ];
    let rows = refused_sign_ins.into_iter().map(|one| {
        let RefusedView { provider, reason, count, last_at } = one;
        TableRow::new(vec![
            cell(reason),
            cell(provider),
            cell(view! { <Count value=count /> }),
            cell(view! { <Ago iso=last_at /> }),
        ])
    });
    let rows = rows.collect::<Vec<_>>();
    view! {
        <h3>"Refused sign-ins"</h3>
        <p class="hint">"Why sign-ins were refused since the server started: for each provider the newest 20 reasons."</p>
        <Table caption="Refused sign-ins" columns=columns rows=rows />
    }
    .into_any()
}

#[component]
fn SaveForm(callback_url: String) -> impl IntoView {
    let save = form_action::<SaveProvider>();
    let result = form_result(save);
    view! {
        <p>"Register this redirect URI at the provider, with the name instead of NAME:"</p>
        <p><CopyValue text=callback_url what="redirect URI" /></p>
        <ActionForm action=save>
            <FormFailure result=result fields=&["name", "label", "issuer", "client_id", "client_secret"] />
            <ReturnAddress />
            <TextLine result=result name="name" label="Name" max=28 required=true
                hint="google-oauth2, github, gitlab, or a name of your choice for another issuer, such as okta. A name that is in the list changes that provider." />
            <TextLine result=result name="label" label="Shown as" max=100
                hint="What the button on the sign-in page says. Leave empty for the usual name." />
            <TextLine result=result name="issuer" label="Issuer" max=512
                hint="Leave empty for google-oauth2, github and gitlab, unless it is a server of your own." />
            <TextLine result=result name="client_id" label="Client id" max=512 required=true />
            <SecretField result=result name="client_secret" label="Client secret"
                hint="Leave empty to keep the stored one, if issuer and client id stay." />
            <Submit result=result label="Save provider" busy="Saving provider..." />
        </ActionForm>
    }
    .into_any()
}

fn row(provider: ProviderView, remove: FormAction<RemoveProvider>) -> TableRow {
    let ProviderView { name, label, issuer, client_id, is_fixed } = provider;
    let (of, dialog) = (name.clone(), format!("remove-{name}"));
    let action = if is_fixed {
        view! {
            <RowMenu of=of>
                <li class="menu-title">"It is in the settings of the server."</li>
            </RowMenu>
        }
        .into_any()
    } else {
        let title = format!("Remove the provider {name}?");
        let (opened, buttons) = (dialog.clone(), dialog.clone());
        view! {
            <RowMenu of=of.clone()>
                <OpenDialog id=opened label="Remove..." danger=true />
            </RowMenu>
            <ConfirmDialog id=dialog title=title>
                <ActionForm action=remove>
                    <p>"Users cannot sign in through it any more. Domains that require it require nothing until it is back."</p>
                    <input type="hidden" name="name" value=of />
                    <ReturnAddress />
                    <ConfirmButtons id=buttons verb="Remove provider" busy="Removing provider..." danger=true />
                </ActionForm>
            </ConfirmDialog>
        }
        .into_any()
    };
    let issuer = if issuer.is_empty() { "Usual".to_owned() } else { issuer };
    TableRow::new(vec![cell(name), cell(label), cell(issuer), cell(client_id), action])
}
