//! Confirms an e-mail address: waits for the mail, and is the target of its link. The
//! page does not reveal whether the address belongs to a user.

use leptos::prelude::*;

use super::entrance::{Entrance, InsecureNote};
use super::{id_in_path, in_query};
use crate::server_fns::links::{AskConfirmation, ConfirmAddress, Link, check_confirmation};
use crate::ui::alert::Alert;
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page};

const TITLE: &str = "Confirm your address";

/// The target of the link in the mail. Without its token, it says that the mail was sent.
#[component]
pub(crate) fn ConfirmAddressPage() -> impl IntoView {
    let content = page(
        TITLE,
        || (id_in_path(), in_query("token")),
        |(id, token)| check_confirmation(id, token),
        |(id, token), link| draw(id, token, link),
    );
    view! { <Entrance>{content}</Entrance> }.into_any()
}

fn draw(id: String, token: String, link: Link) -> AnyView {
    let content = match link {
        Link::Works { email, insecure, must_confirm } => view! {
            <ConfirmForm id=id token=token email=email insecure=insecure must_confirm=must_confirm />
        }
        .into_any(),
        Link::Void(why) => view! {
            <Alert kind="warning">
                <p>{why}</p>
            </Alert>
            <AgainForm id=id />
        }
        .into_any(),
        Link::OnItsWay => view! {
            <p class="lead">
                "We sent you an e-mail with a link. Open the link to continue. It works for a day."
            </p>
            <p>"No mail? Check your spam folder, or send the mail again."</p>
            <AgainForm id=id />
        }
        .into_any(),
        Link::NoMail => view! {
            <Alert kind="note">
                <p>"This instance sends no mail, so there is nothing to confirm."</p>
            </Alert>
        }
        .into_any(),
    };
    view! {
        <PageHead title=TITLE />
        {content}
        <p><a href="/login">"Go to the sign-in"</a></p>
    }
    .into_any()
}

#[component]
fn ConfirmForm(
    id: String,
    token: String,
    email: String,
    insecure: bool,
    must_confirm: bool,
) -> impl IntoView {
    let action = form_action::<ConfirmAddress>();
    let result = form_result(action);
    view! {
        <p class="lead">"Is " <strong class="wrap">{email}</strong> " your address?"</p>
        {insecure.then(|| view! { <InsecureNote /> })}
        {must_confirm.then(|| view! { <PasswordNote /> })}
        <ActionForm action=action>
            <FormFailure result=result />
            <input type="hidden" name="id" value=id />
            <input type="hidden" name="token" value=token />
            <ReturnAddress />
            <Submit result=result label="Confirm address" busy="Confirming address..." />
        </ActionForm>
        <p class="hint">
            "If you did not enter it yourself, leave this page. Nothing changes then."
        </p>
    }
}

/// A warning for users who did not sign up themselves. They must read it before they
/// confirm.
#[component]
fn PasswordNote() -> impl IntoView {
    view! {
        <Alert kind="note">
            <p>
                "The account has a password already. If you did not choose it, another person knows it. Do not confirm here, but set a new password with "
                <a href="/reset">"Forgot your password?"</a> " That also confirms the address."
            </p>
        </Alert>
    }
}

/// Sends the mail again.
#[component]
fn AgainForm(id: String) -> impl IntoView {
    let action = form_action::<AskConfirmation>();
    let result = form_result(action);
    // Without the token, which is used up.
    let back = format!("/verify_email/{id}");
    view! {
        <ActionForm action=action>
            <FormFailure result=result />
            <input type="hidden" name="id" value=id />
            <input type="hidden" name="back" value=back />
            <Submit result=result label="Send the mail again" busy="Sending the mail..." saved="On its way" />
        </ActionForm>
    }
}
