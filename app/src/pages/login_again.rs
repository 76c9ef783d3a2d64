//! Confirms the identity of a signed-in user before a sensitive action.

use leptos::prelude::*;

use super::entrance::Entrance;
use super::in_query;
use crate::form_names::KEPT;
use crate::local_path;
use crate::server_fns::account::get_viewer;
use crate::server_fns::identity::SignInAgain;
use crate::ui::alert::Alert;
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page};
use crate::ui::password::PasswordField;

const TITLE: &str = "Confirm your password";

/// The sign-in form of a user who is already signed in.
#[component]
pub(crate) fn LoginAgain() -> impl IntoView {
    let content = page(
        TITLE,
        || (in_query("next"), in_query("held"), !in_query("unsent").is_empty()),
        |_| async { Ok(get_viewer().await?.email) },
        |(next, held, unsent), email| {
            view! {
                <PageHead title=TITLE />
                <AgainForm email=email next=next held=held unsent=unsent />
            }
            .into_any()
        },
    );
    view! { <Entrance>{content}</Entrance> }.into_any()
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
    let mut back = local_path::safe(&next).unwrap_or("/").to_owned();
    let waits = !held.is_empty();
    if waits {
        let sign = if back.contains('?') { '&' } else { '?' };
        back = format!("{back}{sign}{KEPT}=1");
    }
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
