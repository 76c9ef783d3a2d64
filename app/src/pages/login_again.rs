//! Confirms the identity of a signed-in user before a sensitive action.

use leptos::prelude::*;
use server_fn::ServerFn as _;

use super::entrance::Entrance;
use super::in_query;
use crate::form_names::KEPT;
use crate::local_path;
use crate::server_fns::identity::{AgainView, SignInAgain, get_again_view};
use crate::server_fns::passkeys::{BeginPasskeyConfirmation, SignInAgainWithPasskey};
use crate::ui::alert::Alert;
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page};
use crate::ui::passkey::PasskeyAnswer;
use crate::ui::password::PasswordField;

const TITLE: &str = "Confirm your password";

/// The sign-in form of a user who is already signed in.
#[component]
pub(crate) fn LoginAgain() -> impl IntoView {
    let content = page(
        TITLE,
        || {
            let unsent = !in_query("unsent").is_empty();
            (in_query("next"), in_query("held"), unsent, in_query("error_code"))
        },
        |(next, held, ..)| get_again_view(after(&next, !held.is_empty())),
        |(next, held, unsent, code), view| draw(next, held, unsent, &code, view),
    );
    view! { <Entrance>{content}</Entrance> }.into_any()
}

/// The ways that the user has, that of the session first.
fn draw(next: String, held: String, unsent: bool, code: &str, again: AgainView) -> AnyView {
    let AgainView { email, provider, has_password, has_passkey, by_operator } = again;
    let by_password = has_password && provider.is_none();
    let title = if by_password { TITLE } else { "Confirm that it is you" };
    let has_own_way = has_password || has_passkey;
    let asks_operator = by_operator || (provider.is_none() && !has_own_way);
    let note = match (held.is_empty(), unsent) {
        (false, _) if has_own_way && provider.is_none() => {
            Some("Your change has not been made yet. It is made as soon as you confirm.")
        }
        (false, _) => {
            Some("Your change has not been made yet: send it again after you have confirmed.")
        }
        (true, true) => Some(
            "Nothing was changed, and the file was not kept. Once you have confirmed, send it again.",
        ),
        (true, false) => None,
    };
    let back = after(&next, !held.is_empty());
    let who = email.clone();
    view! {
        <PageHead title=title />
        {failure(code).map(|why| view! { <Alert kind="warning"><p>{why}</p></Alert> })}
        {note.map(|note| view! { <Alert kind="note"><p>{note}</p></Alert> })}
        <p class="lead">
            "This change can give others access. You signed in more than 15 minutes ago as "
            <strong>{who}</strong> "."
        </p>
        {provider.map(|(label, href)| view! {
            <p><a class="button button-primary" href=href rel="external">{format!("Confirm with {label}")}</a></p>
        })}
        {has_password.then(|| view! {
            <AgainForm email=email.clone() next=next.clone() held=held.clone() />
        })}
        {has_passkey.then(|| view! { <PasskeyForm next=next held=held /> })}
        {asks_operator.then(|| by_link(email))}
        <p><a href=back>"Go back"</a></p>
    }
    .into_any()
}

/// Why a provider did not confirm.
fn failure(code: &str) -> Option<&'static str> {
    match code {
        "" => None,
        "sign_in_not_recent" => Some(
            "Nothing is confirmed: the provider did not ask you to sign in again. Sign out there and confirm once more, or confirm in another way.",
        ),
        "sso_not_available" => {
            Some("Nothing is confirmed: this way of signing in cannot be used now.")
        }
        "sso_too_many" => Some(
            "Nothing is confirmed: too many sign-ins came from your network. Wait a minute, then try again.",
        ),
        _ => Some(
            "Nothing is confirmed: the sign-in was refused. Try again, or ask an administrator of your organization.",
        ),
    }
}

/// What the operator can do for the user.
fn by_link(email: String) -> AnyView {
    view! {
        <p>"A new link of the operator confirms too. The operator prints one on the host:"</p>
        <pre class="block"><code>{format!("weir user sign-in-link --email {email}")}</code></pre>
    }
    .into_any()
}

/// The page to continue with. It shows what a waiting form has entered.
fn after(next: &str, waits: bool) -> String {
    let next = local_path::safe(next).unwrap_or("/").to_owned();
    if !waits {
        return next;
    }
    let sign = if next.contains('?') { '&' } else { '?' };
    format!("{next}{sign}{KEPT}=1")
}

#[component]
fn PasskeyForm(
    next: String,
    /// Name of the form that waits, if there is one.
    held: String,
) -> impl IntoView {
    let action = form_action::<SignInAgainWithPasskey>();
    let result = form_result(action);
    view! {
        <ActionForm action=action>
            <FormFailure result=result />
            <input type="hidden" name="next" value=next />
            <input type="hidden" name="held" value=held />
            <ReturnAddress />
            <PasskeyAnswer begin=BeginPasskeyConfirmation::PATH />
            <div class="submit">
                <button type="submit" class="button" data-busy="Confirming...">"Confirm with a passkey"</button>
            </div>
        </ActionForm>
    }
}

#[component]
fn AgainForm(
    email: String,
    /// The page to continue with.
    next: String,
    /// Name of the form that waits, if there is one.
    held: String,
) -> impl IntoView {
    let action = form_action::<SignInAgain>();
    let result = form_result(action);
    view! {
        <ActionForm action=action>
            <FormFailure result=result fields=&["password"] />
            <input type="hidden" name="next" value=next />
            <input type="hidden" name="held" value=held />
            <input type="hidden" autocomplete="username" value=email />
            <ReturnAddress />
            <PasswordField result=result autocomplete="current-password" autofocus=true />
            <Submit result=result label="Confirm" busy="Confirming..." />
        </ActionForm>
    }
}
