//! The state of the second factor, and turning it on and off.

use leptos::prelude::*;
use server_fn::ServerFn as _;

use crate::server_fns::passkeys::{BeginPasskeyConfirmation, RenewRecoveryCodesWithPasskey};
use crate::server_fns::second_factor::{
    BeginSecondFactor, DisableSecondFactor, FactorView, RenewRecoveryCodes,
};
use crate::ui::alert::Alert;
use crate::ui::field::Field;
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::passkey::PasskeyAnswer;
use crate::ui::sections::Section;
use crate::ui::status::{Status, Tone};
use crate::ui::time::Time;

/// Fewer remaining recovery codes than this cause a warning.
const FEW: usize = 3;
/// Longest code or recovery code, in characters.
const CODE_MAX: usize = 40;
/// Explains which codes are accepted.
const CODE_HINT: &str = "Six digits from your app, or a recovery code.";

/// The section about the second factor.
#[component]
pub(crate) fn TwoStepSection(
    /// The state of the second factor.
    factor: FactorView,
    /// Whether the user has passkeys, which are a second factor too.
    has_passkeys: bool,
) -> impl IntoView {
    let FactorView { since, has_app, codes_left, .. } = factor;
    let content = match since {
        Some(since) => {
            view! { <On since=since has_app=has_app has_passkeys=has_passkeys codes_left=codes_left /> }
                .into_any()
        }
        None => view! { <Off /> }.into_any(),
    };
    view! {
        <Section
            id="two-step"
            title="Two-step sign-in"
            hint="Sign-in asks for a code from your phone or a passkey after the password, so that the password alone is not enough."
        >
            {content}
        </Section>
    }
}

#[component]
fn Off() -> impl IntoView {
    view! {
        <p><Status tone=Tone::Quiet label="Off" /></p>
        <BeginForm label="Set up two-step sign-in" />
    }
}

#[component]
fn BeginForm(label: &'static str) -> impl IntoView {
    let begin = form_action::<BeginSecondFactor>();
    let result = form_result(begin);
    view! {
        <ActionForm action=begin>
            <FormFailure result=result />
            <ReturnAddress />
            <Submit result=result label=label busy="Setting up..." />
        </ActionForm>
    }
}

#[component]
fn On(since: String, has_app: bool, has_passkeys: bool, codes_left: usize) -> impl IntoView {
    view! {
        <p><Status tone=Tone::Good label="On" /> " since " <Time iso=since /></p>
        <p>{left(codes_left)}</p>
        {(codes_left < FEW).then(|| view! {
            <Alert kind="warning">
                <p>"Create new recovery codes before you need one: without them a lost phone or passkey locks you out."</p>
            </Alert>
        })}
        <div class="security-actions">
            <RenewForm has_passkeys=has_passkeys />
            {match has_app {
                true => view! { <DisableForm has_passkeys=has_passkeys /> }.into_any(),
                false => view! { <BeginForm label="Add an authenticator app" /> }.into_any(),
            }}
        </div>
    }
}

fn left(codes: usize) -> String {
    match codes {
        0 => "No recovery code is left.".to_owned(),
        1 => "One recovery code is left.".to_owned(),
        more => format!("{more} recovery codes are left."),
    }
}

#[component]
fn RenewForm(has_passkeys: bool) -> impl IntoView {
    let renew = form_action::<RenewRecoveryCodes>();
    let result = form_result(renew);
    let passkey = has_passkeys.then(|| view! { <RenewWithPasskey /> });
    // An invalid code is reported at its field.
    let failed = result.field_error("code").is_some();
    view! {
        <FormFailure result=result fields=&["code"] />
        <details class="confirm" open=failed>
            <summary class="button">"Create new recovery codes"</summary>
            <div class="confirm-body">
                <ActionForm action=renew>
                    <p>"You get ten new codes, which are shown once. The current codes stop working immediately."</p>
                    <ReturnAddress />
                    <Field result=result name="code" label="Code" hint=CODE_HINT autocomplete="one-time-code"
                        max=CODE_MAX />
                    <Submit result=result label="Create new codes" busy="Creating codes..." />
                </ActionForm>
                {passkey}
            </div>
        </details>
    }
}

#[component]
fn RenewWithPasskey() -> impl IntoView {
    let renew = form_action::<RenewRecoveryCodesWithPasskey>();
    let result = form_result(renew);
    view! {
        <ActionForm action=renew>
            <FormFailure result=result />
            <ReturnAddress />
            <PasskeyAnswer begin=BeginPasskeyConfirmation::PATH />
            <div class="submit">
                <button type="submit" class="button" data-busy="Creating codes...">"Create new codes with a passkey"</button>
            </div>
        </ActionForm>
    }
}

#[component]
fn DisableForm(has_passkeys: bool) -> impl IntoView {
    let disable = form_action::<DisableSecondFactor>();
    let result = form_result(disable);
    let failed = result.field_error("last_code").is_some();
    let (open, what, label, busy) = match has_passkeys {
        true => (
            "Remove the authenticator app",
            "From then on sign-in asks for a passkey or a recovery code after the password. Your other sessions end.",
            "Remove",
            "Removing...",
        ),
        false => (
            "Turn off two-step sign-in",
            "From then on the password alone signs you in. Your other sessions end, and your recovery codes stop working.",
            "Turn off",
            "Turning off...",
        ),
    };
    view! {
        <FormFailure result=result fields=&["last_code"] />
        <details class="confirm" open=failed>
            <summary class="button">{open}</summary>
            <div class="confirm-body">
                <ActionForm action=disable>
                    <p>{what}</p>
                    <ReturnAddress />
                    <Field result=result name="last_code" label="Code" hint=CODE_HINT autocomplete="one-time-code"
                        max=CODE_MAX />
                    <div class="submit">
                        <button type="submit" class="button button-danger" data-busy=busy>{label}</button>
                    </div>
                </ActionForm>
            </div>
        </details>
    }
}
