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
        || (in_query("next"), in_query("held"), !in_query("unsent").is_empty()),
        |(next, held, _)| get_again_view(after(&next, !held.is_empty())),
        |(next, held, unsent), AgainView { email, provider, has_passkey }| {
            if let Some((label, href)) = provider {
                return by_provider(email, label, href);
            }
            view! {
                <PageHead title=TITLE />
                <AgainForm email=email next=next.clone() held=held.clone() unsent=unsent />
                {has_passkey.then(|| view! { <PasskeyForm next=next held=held /> })}
            }
            .into_any()
        },
    );
    view! { <Entrance>{content}</Entrance> }.into_any()
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

/// A user who signed in through a provider confirms there.
fn by_provider(email: String, label: String, href: String) -> AnyView {
    view! {
        <PageHead title="Confirm that it is you" />
        <p class="lead">
            "This change can give others access. You signed in more than 15 minutes ago as "
            <strong>{email}</strong> ". Your change has not been made yet: send it again after you have confirmed."
        </p>
        <p><a class="button button-primary" href=href rel="external">{format!("Confirm with {label}")}</a></p>
    }
    .into_any()
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
    /// Whether a form was discarded because it carried a file, which cannot be kept.
    unsent: bool,
) -> impl IntoView {
    let action = form_action::<SignInAgain>();
    let result = form_result(action);
    let waits = !held.is_empty();
    let back = after(&next, waits);
    let note = match (waits, unsent) {
        (true, _) => Some("Your change has not been made yet. It is made as soon as you confirm."),
        (false, true) => Some(
            "Nothing was changed, and the file was not kept. Once you have confirmed, send it again.",
        ),
        (false, false) => None,
    };
    view! {
        {note.map(|note| view! { <Alert kind="note"><p>{note}</p></Alert> })}
        <p class="lead">
            "This change can give others access. You signed in more than 15 minutes ago as "
            <strong>{email.clone()}</strong> "."
        </p>
        <ActionForm action=action>
            <FormFailure result=result fields=&["password"] />
            <input type="hidden" name="next" value=next />
            <input type="hidden" name="held" value=held />
            <input type="hidden" autocomplete="username" value=email />
            <ReturnAddress />
            <PasswordField result=result autocomplete="current-password" autofocus=true />
            <Submit result=result label="Confirm" busy="Confirming..." />
        </ActionForm>
        <p><a href=back>"Go back"</a></p>
    }
}
