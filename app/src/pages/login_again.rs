//! Proving once more who one is, before something that matters.

use leptos::prelude::*;

use super::entrance::Entrance;
use super::in_query;
use crate::local_path;
use crate::server_fns::account::get_viewer;
use crate::server_fns::identity::SignInAgain;
use crate::ui::form::{Back, FormFailure, Submit, sent};
use crate::ui::page::{PageHead, page};
use crate::ui::password::PasswordField;

/// The sign-in of whoever is signed in already.
#[component]
pub(crate) fn LoginAgain() -> impl IntoView {
    let next = in_query("next");
    let content = page("Confirm your password", async move {
        let viewer = get_viewer().await?;
        Ok(view! {
            <PageHead title="Confirm your password" />
            <AgainForm email=viewer.email next=next />
        }
        .into_any())
    });
    view! { <Entrance>{content}</Entrance> }.into_any()
}

#[component]
fn AgainForm(email: String, next: String) -> impl IntoView {
    let action = ServerAction::<SignInAgain>::new();
    let sent = sent(action);
    let back = local_path::safe(&next).unwrap_or("/").to_owned();
    view! {
        <p class="lead">
            "What you are about to do can give others access. You signed in more than 15 minutes ago as "
            <strong>{email.clone()}</strong> "."
        </p>
        <ActionForm action=action>
            <FormFailure sent=sent fields=&["password"] />
            <input type="hidden" name="next" value=next />
            <input type="hidden" autocomplete="username" value=email />
            <Back />
            <PasswordField sent=sent autocomplete="current-password" autofocus=true />
            <Submit sent=sent label="Confirm" busy="Confirming..." />
        </ActionForm>
        <p><a href=back>"Go back"</a></p>
    }
}
