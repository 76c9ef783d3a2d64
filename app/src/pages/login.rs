//! The sign-in page. Where users may sign in through a provider, it asks for the address
//! first and leads on: to the password, or to the provider. Links lead to providers, because
//! the policy of pages forbids that a form leads to another site.

use leptos::prelude::*;
use server_fn::ServerFn as _;

use super::entrance::{Entrance, InsecureNote, KnownAddress};
use super::in_query;
use crate::form_names::KEPT;
use crate::local_path::encode;
use crate::server_fns::identity::{
    SAML_LABEL, SignIn, SignInStep, SignInView, get_sign_in_view, saml_href,
};
use crate::server_fns::passkeys::{BeginPasskeySignIn, SignInWithPasskey};
use crate::ui::alert::Alert;
use crate::ui::field::Field;
use crate::ui::form::{FormFailure, FormResult, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page};
use crate::ui::passkey::PasskeyAnswer;
use crate::ui::password::PasswordField;

const TITLE: &str = "Sign in";
/// Longest code or recovery code, with separators, in characters.
const CODE_MAX: usize = 40;

/// The sign-in form.
#[component]
pub(crate) fn Login() -> impl IntoView {
    let load = |inputs: Inputs| get_sign_in_view(inputs.next, inputs.email);
    let content = page(TITLE, read, load, draw);
    view! { <Entrance>{content}</Entrance> }.into_any()
}

/// The inputs of the page.
#[derive(Clone, PartialEq)]
struct Inputs {
    /// The page to continue with.
    next: String,
    /// The address that was entered.
    email: String,
    /// The code of a sign-in through a provider that failed.
    error_code: String,
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
        email: in_query("email").trim().to_owned(),
        error_code: in_query("error_code"),
        is_reset: in_query("reset") == "done",
        is_late: in_query("late") == "yes",
        unsent: !in_query("unsent").is_empty(),
    }
}

fn draw(inputs: Inputs, sign_in: SignInView) -> AnyView {
    let content = match (sign_in.is_set_up, sign_in.step.clone()) {
        (false, _) => no_user_yet().into_any(),
        (true, SignInStep::Address) => address_step(inputs, sign_in),
        (true, SignInStep::Password { email, has_saml }) => {
            view! { <LoginForm inputs=inputs sign_in=sign_in email=email has_saml=has_saml /> }
                .into_any()
        }
        (true, SignInStep::Provider { email, label, href }) => {
            provider_step(inputs, sign_in, email, label, href)
        }
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

/// The first step: the address, and the providers that anyone can use.
fn address_step(inputs: Inputs, sign_in: SignInView) -> AnyView {
    let result = FormResult::sample(None);
    let next = inputs.next.clone();
    let providers = sign_in.providers.iter().map(|(label, href)| {
        let (label, href) = (format!("Continue with {label}"), href.clone());
        view! { <li><a class="button" href=href rel="external">{label}</a></li> }
    });
    let providers = providers.collect_view();
    let are_some = !sign_in.providers.is_empty();
    view! {
        {notes(&inputs, sign_in.insecure)}
        <form method="get" action="/login">
            <input type="hidden" name="next" value=next />
            <Field result=result name="email" label="E-mail address" kind="email" autocomplete="username" max=254
                autofocus=true />
            <Submit result=result label="Continue" busy="Continuing..." />
        </form>
        {are_some.then(|| view! { <ul class="plain" aria-label="Providers">{providers}</ul> })}
        {passkey_form(inputs.next.clone(), sign_in.takes_passkeys)}
    }
    .into_any()
}

/// The way in without address and password.
fn passkey_form(next: String, takes_passkeys: bool) -> Option<AnyView> {
    takes_passkeys.then(|| view! { <PasskeyForm next=next /> }.into_any())
}

#[component]
fn PasskeyForm(next: String) -> impl IntoView {
    let action = form_action::<SignInWithPasskey>();
    let result = form_result(action);
    view! {
        <ActionForm action=action>
            <FormFailure result=result />
            <input type="hidden" name="next" value=next />
            <ReturnAddress />
            <PasskeyAnswer begin=BeginPasskeySignIn::PATH />
            <div class="submit">
                <button type="submit" class="button" data-busy="Signing in...">"Sign in with a passkey"</button>
            </div>
        </ActionForm>
    }
}

/// The second step of an address whose domain requires a provider.
fn provider_step(
    inputs: Inputs,
    sign_in: SignInView,
    email: String,
    label: String,
    href: String,
) -> AnyView {
    let other = other_address(&inputs.next);
    view! {
        {notes(&inputs, sign_in.insecure)}
        <KnownAddress email=email />
        <p>"Your organization signs you in through " <strong>{label.clone()}</strong> "."</p>
        <p><a class="button button-primary" href=href rel="external" autofocus=true>{format!("Continue with {label}")}</a></p>
        <p><a href=other>"Use another address"</a></p>
    }
    .into_any()
}

fn other_address(next: &str) -> String {
    format!("/login?next={}", encode(next))
}

/// What the visitor learns about a sign-in through a provider that failed.
fn failure(code: &str) -> AnyView {
    let why = match code {
        "jit_not_enabled" => {
            "There is no account with this address. Ask an administrator of your organization for an invite."
        }
        "no_new_organizations" => {
            "There is no account with this address. Ask a member of an organization for an invite."
        }
        "organization_full" => {
            "Your organization has as many members as the operator of this site allows. Ask an administrator of your organization."
        }
        "sso_not_available" => "This way of signing in cannot be used now.",
        "sso_too_many" => {
            "Too many sign-ins came from your network. Wait a minute, then try again."
        }
        _ => "Try again, or ask an administrator of your organization.",
    };
    view! { <Alert kind="warning"><p><strong>"Sign-in failed. "</strong>{why}</p></Alert> }
        .into_any()
}

/// What the visitor should know first.
fn notes(inputs: &Inputs, insecure: bool) -> AnyView {
    let Inputs { next, error_code, is_reset, is_late, unsent, .. } = inputs.clone();
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
        {(!error_code.is_empty()).then(|| failure(&error_code))}
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
        {insecure.then(|| view! { <InsecureNote /> })}
    }
    .into_any()
}

/// The form for a password.
#[component]
fn LoginForm(
    inputs: Inputs,
    sign_in: SignInView,
    /// The address of the first step; empty if there is none.
    email: String,
    /// Whether the domain of the address has a SAML provider too.
    has_saml: bool,
) -> impl IntoView {
    let action = form_action::<SignIn>();
    let result = form_result(action);
    let next = inputs.next.clone();
    let passkey = passkey_form(next.clone(), sign_in.takes_passkeys);
    let is_known = !email.is_empty();
    let other = is_known.then(|| other_address(&next));
    let saml = has_saml.then(|| saml_href(&email, &next));
    let address = if is_known {
        view! {
            <input type="hidden" name="email" value=email.clone() />
            <KnownAddress email=email />
        }
        .into_any()
    } else {
        view! {
            <Field result=result name="email" label="E-mail address" kind="email" autocomplete="username" max=254
                autofocus=true />
        }
        .into_any()
    };
    view! {
        {notes(&inputs, sign_in.insecure)}
        <ActionForm action=action>
            <FormFailure result=result />
            <input type="hidden" name="next" value=next />
            <ReturnAddress />
            {address}
            <PasswordField result=result autocomplete="current-password" autofocus=is_known />
            {result.must_wait().then(|| view! {
                <Field result=result name="code" label="Code" autocomplete="one-time-code" max=CODE_MAX
                    hint="With two-step sign-in you need not wait: enter your password again, and a code or a recovery code."
                    required=false />
            })}
            <Submit result=result label="Sign in" busy="Signing in..." />
        </ActionForm>
        {passkey}
        // Without mail, that page says who can help.
        <p><a href="/reset">"Forgot your password?"</a></p>
        {saml.map(|href| view! {
            <p><a class="button" href=href rel="external">{format!("Continue with {SAML_LABEL}")}</a></p>
        })}
        {other.map(|href| view! { <p><a href=href>"Use another address"</a></p> })}
    }
}
