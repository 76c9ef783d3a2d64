//! The second step of the sign-in: a passkey, a code, or a recovery code.

use leptos::prelude::*;
use server_fn::ServerFn as _;

use super::entrance::Entrance;
use super::in_query;
use crate::server_fns::passkeys::{BeginPasskeyStep, EndSignInWithPasskey};
use crate::server_fns::second_factor::{
    EndSignIn, EndSignInRecovering, SecondStep, get_second_step,
};
use crate::ui::alert::Alert;
use crate::ui::field::Field;
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page};
use crate::ui::passkey::PasskeyAnswer;

const TITLE: &str = "Enter your code";
/// After this many wrong codes, the page suggests that the clock can be wrong.
const MANY: u64 = 2;
/// Longest code, with separators, in characters.
const CODE_MAX: usize = 11;
/// Longest recovery code, with separators, in characters.
const RECOVERY_MAX: usize = 40;

/// The form for the code.
#[component]
pub(crate) fn LoginCode() -> impl IntoView {
    let content = page(
        TITLE,
        || in_query("next"),
        get_second_step,
        |next, step| {
            let SecondStep { failures, has_app, has_passkey } = step;
            // Without an app the passkey is all that is asked for.
            let title = if has_app { TITLE } else { "Use your passkey" };
            view! {
                <PageHead title=title />
                {has_passkey.then(|| view! { <PasskeyForm next=next.clone() is_only=!has_app /> })}
                {(!has_app && !has_passkey).then(|| view! {
                    <p class="lead">
                        "Your password is right. Your passkey does not work at this address: open Weir at its host name, or use a recovery code."
                    </p>
                })}
                {has_app.then(|| view! { <CodeForm next=next.clone() failures=failures /> })}
                <RecoveryForm next=next />
                <p><a href="/login">"Back to the sign-in"</a></p>
            }
            .into_any()
        },
    );
    view! { <Entrance>{content}</Entrance> }.into_any()
}

#[component]
fn PasskeyForm(
    next: String,
    /// Whether there is no authenticator app.
    is_only: bool,
) -> impl IntoView {
    let action = form_action::<EndSignInWithPasskey>();
    let result = form_result(action);
    let class = if is_only { "button button-primary" } else { "button" };
    view! {
        {is_only.then(|| view! { <p class="lead">"Your password is right. Confirm with your passkey."</p> })}
        <ActionForm action=action>
            <FormFailure result=result />
            <input type="hidden" name="next" value=next />
            <ReturnAddress />
            <PasskeyAnswer begin=BeginPasskeyStep::PATH />
            <div class="submit">
                <button type="submit" class=class data-busy="Signing in...">"Use a passkey"</button>
            </div>
        </ActionForm>
    }
}

#[component]
fn CodeForm(next: String, failures: u64) -> impl IntoView {
    let action = form_action::<EndSignIn>();
    let result = form_result(action);
    view! {
        <p class="lead">"Your password is right. Open your authenticator app: it shows a code for Weir."</p>
        {(failures >= MANY).then(|| view! {
            <Alert kind="note">
                <p>
                    "Codes depend on the time. If they are refused repeatedly, let the phone set its clock automatically, or use a recovery code."
                </p>
            </Alert>
        })}
        <ActionForm action=action>
            <FormFailure result=result fields=&["code"] />
            <input type="hidden" name="next" value=next />
            <ReturnAddress />
            <div data-submits-code="">
                <Field result=result name="code" label="Code" hint="Six digits. A code works once."
                    autocomplete="one-time-code" inputmode="numeric" max=CODE_MAX autofocus=true />
                <p class="hidden" role="status" data-code-status=""></p>
            </div>
            <Submit result=result label="Sign in" busy="Signing in..." />
        </ActionForm>
    }
}

#[component]
fn RecoveryForm(next: String) -> impl IntoView {
    let action = form_action::<EndSignInRecovering>();
    let result = form_result(action);
    let failed = result.field_error("recovery_code").is_some();
    view! {
        <FormFailure result=result fields=&["recovery_code"] />
        <details class="confirm" open=failed>
            <summary class="button">"Use a recovery code"</summary>
            <div class="confirm-body">
                <ActionForm action=action>
                    <input type="hidden" name="next" value=next />
                    <ReturnAddress />
                    <Field result=result name="recovery_code" label="Recovery code" max=RECOVERY_MAX
                        hint="One of the ten that you stored when you turned two-step sign-in on." />
                    <Submit result=result label="Use recovery code" busy="Signing in..." />
                </ActionForm>
            </div>
        </details>
    }
}
