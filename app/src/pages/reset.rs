//! Password reset: requesting the mail, and the target of its link. The page does not
//! reveal whether the address belongs to a user.

use leptos::prelude::*;

use super::entrance::{Entrance, KnownAddress};
use super::{id_in_path, in_query};
use crate::server_fns::links::{AskReset, Link, ResetPassword, can_reset, check_reset};
use crate::ui::alert::Alert;
use crate::ui::field::Field;
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page};
use crate::ui::password::PasswordField;

const FORGOT: &str = "Forgot your password?";
const SET: &str = "Set a new password";

/// The form that requests the mail.
#[component]
pub(crate) fn ForgotPassword() -> impl IntoView {
    let content = page(
        FORGOT,
        || in_query("sent") == "yes",
        |_| can_reset(),
        |is_sent, can_reset| {
            let content = match can_reset {
                true if is_sent => on_its_way(),
                true => view! { <AskForm /> }.into_any(),
                false => no_mail(),
            };
            view! {
                <PageHead title=FORGOT />
                {content}
                <p><a href="/login">"Go to the sign-in"</a></p>
            }
            .into_any()
        },
    );
    view! { <Entrance>{content}</Entrance> }.into_any()
}

fn on_its_way() -> AnyView {
    view! {
        <Alert kind="note">
            <p>
                "If there is an account with this address, an e-mail with a link is on its way to it. The link works for a day."
            </p>
        </Alert>
        <p>"No mail? Check your spam folder, or " <a href="/reset">"try another address"</a> "."</p>
    }
    .into_any()
}

fn no_mail() -> AnyView {
    view! {
        <Alert kind="note">
            <p>"This instance sends no mail, so it cannot send you a link. Ask the operator of the instance."</p>
        </Alert>
    }
    .into_any()
}

#[component]
fn AskForm() -> impl IntoView {
    let action = form_action::<AskReset>();
    let result = form_result(action);
    view! {
        <p class="lead">"We mail you a link for setting a new password."</p>
        <ActionForm action=action>
            <FormFailure result=result fields=&["email"] />
            <ReturnAddress />
            <Field result=result name="email" label="E-mail address" kind="email" autocomplete="username" max=254
                autofocus=true />
            <Submit result=result label="Send the link" busy="Sending the link..." />
        </ActionForm>
    }
}

/// The target of the link in the mail.
#[component]
pub(crate) fn NewPassword() -> impl IntoView {
    let content = page(
        SET,
        || (id_in_path(), in_query("token")),
        |(id, token)| check_reset(id, token),
        |(id, token), link| {
            let content = match link {
                Link::Works { email, .. } => {
                    view! { <SetForm id=id token=token email=email /> }.into_any()
                }
                Link::Void(why) => void(why),
                Link::OnItsWay => void("This link is not complete. Ask for a new one.".to_owned()),
                Link::NoMail => no_mail(),
            };
            view! {
                <PageHead title=SET />
                {content}
            }
            .into_any()
        },
    );
    view! { <Entrance>{content}</Entrance> }.into_any()
}

fn void(why: String) -> AnyView {
    view! {
        <Alert kind="warning">
            <p>{why}</p>
        </Alert>
        <p><a class="button button-primary" href="/reset">"Ask for a new link"</a></p>
    }
    .into_any()
}

#[component]
fn SetForm(id: String, token: String, email: String) -> impl IntoView {
    let action = form_action::<ResetPassword>();
    let result = form_result(action);
    view! {
        <ActionForm action=action>
            <FormFailure result=result fields=&["password"] />
            <input type="hidden" name="id" value=id />
            <input type="hidden" name="token" value=token />
            <ReturnAddress />
            // The link identifies the user.
            <KnownAddress email=email />
            <PasswordField result=result label="New password" autocomplete="new-password" autofocus=true
                hint="At least 12 characters. A few unrelated words are easy to remember." />
            <p class="hint">"Every session of your account ends. API keys continue to work."</p>
            <Submit result=result label="Set the password" busy="Setting the password..." />
        </ActionForm>
    }
}
