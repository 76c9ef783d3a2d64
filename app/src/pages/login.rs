//! The sign-in page.

use leptos::prelude::*;

use super::entrance::{Entrance, InsecureNote};
use super::in_query;
use crate::context::KEPT;
use crate::server_fns::identity::{SignIn, SignInView, get_sign_in_view};
use crate::ui::alert::Alert;
use crate::ui::field::Field;
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::page::{PageHead, page};
use crate::ui::password::PasswordField;

/// Longest code or recovery code, with separators, in characters.
const CODE_MAX: usize = 40;

/// The sign-in form.
#[component]
pub(crate) fn Login() -> impl IntoView {
    let next = in_query("next");
    let is_reset = in_query("reset") == "done";
    let is_late = in_query("late") == "yes";
    let unsent = !in_query("unsent").is_empty();
    let content = page("Sign in", async move {
        let sign_in = get_sign_in_view(next.clone()).await?;
        let content = if sign_in.is_set_up {
            view! { <LoginForm next=next sign_in=sign_in is_reset=is_reset is_late=is_late unsent=unsent /> }.into_any()
        } else {
            no_user_yet().into_any()
        };
        Ok(view! {
            <PageHead title="Sign in" />
            {content}
        }
        .into_any())
    });
    view! { <Entrance>{content}</Entrance> }.into_any()
}

fn no_user_yet() -> impl IntoView {
    view! {
        <Alert kind="note">
            <p>
                "This instance has no account yet. Open the link that Weir printed when it started, or print a new one:"
            </p>
        </Alert>
        <pre class="block"><code>"weir setup-link"</code></pre>
    }
}

#[component]
fn LoginForm(
    next: String,
    sign_in: SignInView,
    is_reset: bool,
    is_late: bool,
    unsent: bool,
) -> impl IntoView {
    let action = ServerAction::<SignIn>::new();
    let result = form_result(action);
    let ended = match (next.contains(&format!("{KEPT}=")), unsent) {
        (true, _) => Some(
            "Your session has ended, so nothing was changed. Sign in within 15 minutes: the form then shows what you entered.",
        ),
        (false, true) => Some(
            "Your session has ended. Nothing was changed, and the file or the text that you sent was not kept.",
        ),
        (false, false) => None,
    };
    view! {
        {ended.map(|ended| view! { <Alert kind="warning"><p>{ended}</p></Alert> })}
        {is_reset.then(|| view! {
            <Alert kind="note">
                <p>"Your password is changed. Sign in with the new one."</p>
            </Alert>
        })}
        {is_late.then(|| view! {
            <Alert kind="note">
                <p>"The code came too late: it has to be entered within ten minutes. Sign in again."</p>
            </Alert>
        })}
        {sign_in.insecure.then(|| view! { <InsecureNote /> })}
        <ActionForm action=action>
            <FormFailure result=result />
            <input type="hidden" name="next" value=next />
            <ReturnAddress />
            <Field result=result name="email" label="E-mail address" kind="email" autocomplete="username" max=254
                autofocus=true />
            <PasswordField result=result autocomplete="current-password" />
            {result.must_wait().then(|| view! {
                <Field result=result name="code" label="Code" autocomplete="one-time-code" max=CODE_MAX
                    hint="With two-step sign-in you need not wait: enter your password again, and a code or a recovery code."
                    required=false />
            })}
            <Submit result=result label="Sign in" busy="Signing in..." />
        </ActionForm>
        // Without mail, that page says who can help.
        <p><a href="/reset">"Forgot your password?"</a></p>
    }
}
