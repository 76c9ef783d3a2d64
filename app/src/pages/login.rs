//! The sign-in page.

use leptos::prelude::*;

use super::entrance::{Entrance, InsecureNote};
use super::in_query;
use crate::form_names::KEPT;
use crate::server_fns::identity::{SignIn, SignInView, get_sign_in_view};
use crate::ui::alert::Alert;
use crate::ui::field::Field;
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page};
use crate::ui::password::PasswordField;

const TITLE: &str = "Sign in";
/// Longest code or recovery code, with separators, in characters.
const CODE_MAX: usize = 40;

/// The sign-in form.
#[component]
pub(crate) fn Login() -> impl IntoView {
    let content = page(TITLE, read, |inputs| get_sign_in_view(inputs.next), draw);
    view! { <Entrance>{content}</Entrance> }.into_any()
}

/// The inputs of the page.
#[derive(Clone, PartialEq)]
struct Inputs {
    /// The page to continue with.
    next: String,
    /// Whether the password was just reset.
    is_reset: bool,
    /// Whether the code of the second step came too late.
    is_late: bool,
    /// Whether a form was discarded that cannot be kept.
    unsent: bool,
}

fn read() -> Inputs {
    Inputs {
        next: in_query("next"),
        is_reset: in_query("reset") == "done",
        is_late: in_query("late") == "yes",
        unsent: !in_query("unsent").is_empty(),
    }
}

fn draw(inputs: Inputs, sign_in: SignInView) -> AnyView {
    let content = if sign_in.is_set_up {
        view! { <LoginForm inputs=inputs sign_in=sign_in /> }.into_any()
    } else {
        no_user_yet().into_any()
    };
    view! {
        <PageHead title=TITLE />
        {content}
    }
    .into_any()
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
fn LoginForm(inputs: Inputs, sign_in: SignInView) -> impl IntoView {
    let Inputs { next, is_reset, is_late, unsent } = inputs;
    let action = form_action::<SignIn>();
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
