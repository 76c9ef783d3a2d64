//! The user's own account: name, e-mail address, sign-out.

use leptos::prelude::*;
use serde_json::json;

use super::account_nav::AccountNav;
use crate::server_fns::account::{ChangeAddress, OwnProfile, RenameAccount, get_profile};
use crate::server_fns::identity::SignOut;
use crate::server_fns::links::AskConfirmation;
use crate::ui::alert::Alert;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::field::Field;
use crate::ui::form::{FormFailure, ReturnAddress, ShownValues, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page};
use crate::ui::sections::Section;

const TITLE: &str = "Account";

#[component]
pub(crate) fn Account() -> impl IntoView {
    page(TITLE, || (), |()| get_profile(), |(), profile| draw(profile))
}

fn draw(profile: OwnProfile) -> AnyView {
    let sign_out = form_action::<SignOut>();
    let OwnProfile { id, first_name, last_name, email, pending, sends_mail } = profile;
    let address = match pending {
        Some(pending) => view! { <Pending id=id email=email.clone() pending=pending /> }.into_any(),
        None => view! { <AddressForm sends_mail=sends_mail /> }.into_any(),
    };
    view! {
        <PageHead title=TITLE />
        <AccountNav />
        <Section id="you" title="Your name">
            <NameForm first_name=first_name last_name=last_name />
        </Section>
        <Section id="address" title="E-mail address">
            <dl class="facts">
                <dt>"Current address"</dt>
                <dd class="wrap">{email}</dd>
            </dl>
            {address}
        </Section>
        <Section id="session" title="Session"
            hint="Signing out ends the session of this browser. API keys continue to work.">
            <ActionForm action=sign_out>
                <div class="submit">
                    <button type="submit" class="button" data-busy="Signing out...">"Sign out"</button>
                </div>
            </ActionForm>
        </Section>
    }
    .into_any()
}

#[component]
fn NameForm(first_name: String, last_name: String) -> impl IntoView {
    let rename = form_action::<RenameAccount>();
    let result = form_result(rename);
    let call = ApiCall {
        method: "PATCH",
        path: "/api/users/@me/".to_owned(),
        scope: "user:write",
        // Placeholders for the form fields.
        body: Some(json!({"first_name": "{first_name}", "last_name": "{last_name}"})),
    };
    let shown_values = vec![
        ("first_name".to_owned(), first_name.clone()),
        ("last_name".to_owned(), last_name.clone()),
    ];
    view! {
        <ActionForm action=rename>
            <FormFailure result=result fields=&["first_name", "last_name"] />
            <ShownValues result=result values=shown_values />
            <ReturnAddress />
            <Field result=result name="first_name" label="First name" autocomplete="given-name" max=150
                value=first_name />
            <Field result=result name="last_name" label="Last name" autocomplete="family-name" max=150
                value=last_name required=false />
            <Submit result=result label="Save name" busy="Saving name..." saved="Saved" />
            <ApiRequest call=call />
        </ActionForm>
    }
}

/// A new address that is not confirmed yet.
#[component]
fn Pending(id: String, email: String, pending: String) -> impl IntoView {
    let again = form_action::<AskConfirmation>();
    let cancel_change = form_action::<ChangeAddress>();
    let (sent_again, kept) = (form_result(again), form_result(cancel_change));
    let current = email.clone();
    view! {
        <Alert kind="note">
            <p>
                "A mail with a link is on its way to " <strong class="wrap">{pending}</strong>
                ". Until you open it you sign in with " <strong class="wrap">{current}</strong>
                ". An address that another account has gets no mail."
            </p>
        </Alert>
        <ActionForm action=again>
            <FormFailure result=sent_again />
            <input type="hidden" name="id" value=id />
            <ReturnAddress />
            <Submit result=sent_again label="Send the mail again" busy="Sending the mail..." saved="On its way" />
        </ActionForm>
        <ActionForm action=cancel_change>
            <FormFailure result=kept />
            <input type="hidden" name="email" value=email />
            <ReturnAddress />
            <div class="submit">
                <button type="submit" class="button" data-busy="Keeping the address...">
                    "Keep the current address"
                </button>
            </div>
        </ActionForm>
    }
}

#[component]
fn AddressForm(sends_mail: bool) -> impl IntoView {
    let change = form_action::<ChangeAddress>();
    let result = form_result(change);
    let hint = match sends_mail {
        true => "We mail a link to it. Until you open the link, the current address stays.",
        false => "You sign in with it immediately. No mail is sent.",
    };
    view! {
        <ActionForm action=change>
            <FormFailure result=result fields=&["email"] />
            <ReturnAddress />
            <Field result=result name="email" label="New e-mail address" kind="email" autocomplete="email" max=254
                hint=hint />
            <Submit result=result label="Change address" busy="Changing address..." saved="Saved" />
        </ActionForm>
    }
}
