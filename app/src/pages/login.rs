//! Signing in.

use leptos::prelude::*;

use super::entrance::{Entrance, InsecureNote};
use super::in_query;
use crate::server_fns::identity::{Door, SignIn, open_door};
use crate::ui::alert::Alert;
use crate::ui::field::Field;
use crate::ui::form::{Back, FormFailure, Submit, sent};
use crate::ui::page_head::PageHead;
use crate::ui::panel::Panel;
use crate::ui::password::PasswordField;

/// The sign-in.
#[component]
pub(crate) fn Login() -> impl IntoView {
    let next = in_query("next");
    let data = Resource::new(move || next.get(), open_door);
    view! {
        <Entrance>
            <PageHead title=Signal::stored("Sign in".to_owned()) />
            <Panel data=data view=move |door: Door| {
                if door.is_set_up {
                    view! { <LoginForm next=next.get_untracked() insecure=door.insecure /> }.into_any()
                } else {
                    view! {
                        <Alert kind="note">
                            <p>
                                "Nobody has an account yet. Open the link that Weir printed when it started, or print a new one:"
                            </p>
                        </Alert>
                        <pre class="block"><code>"weir setup-link"</code></pre>
                    }
                    .into_any()
                }
            } />
        </Entrance>
    }
    .into_any()
}

#[component]
fn LoginForm(next: String, insecure: bool) -> impl IntoView {
    let action = ServerAction::<SignIn>::new();
    let sent = sent(action);
    view! {
        {insecure.then(|| view! { <InsecureNote /> })}
        <ActionForm action=action>
            <FormFailure sent=sent />
            <input type="hidden" name="next" value=next />
            <Back />
            <Field sent=sent name="email" label="E-mail address" kind="email" autocomplete="username" max=254
                autofocus=true />
            <PasswordField sent=sent autocomplete="current-password" />
            <Submit sent=sent label="Sign in" busy="Signing in..." />
        </ActionForm>
    }
}
