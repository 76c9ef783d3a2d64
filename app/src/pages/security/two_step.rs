//! The state of the second factor, and turning it on and off.

use leptos::prelude::*;

use crate::server_fns::second_factor::{
    BeginSecondFactor, DisableSecondFactor, FactorView, RenewRecoveryCodes,
};
use crate::ui::alert::Alert;
use crate::ui::field::Field;
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
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
) -> impl IntoView {
    let content = match factor.since {
        Some(since) => view! { <On since=since codes_left=factor.codes_left /> }.into_any(),
        None => view! { <Off /> }.into_any(),
    };
    view! {
        <Section
            id="two-step"
            title="Two-step sign-in"
            hint="Sign-in asks for a code from your phone after the password, so that the password alone is not enough."
        >
            {content}
        </Section>
    }
}

#[component]
fn Off() -> impl IntoView {
    let begin = form_action::<BeginSecondFactor>();
    let result = form_result(begin);
    view! {
        <p><Status tone=Tone::Quiet label="Off" /></p>
        <ActionForm action=begin>
            <FormFailure result=result />
            <ReturnAddress />
            <Submit result=result label="Set up two-step sign-in" busy="Setting up..." />
        </ActionForm>
    }
}

#[component]
fn On(since: String, codes_left: usize) -> impl IntoView {
    view! {
        <p><Status tone=Tone::Good label="On" /> " since " <Time iso=since /></p>
        <p>{left(codes_left)}</p>
        {(codes_left < FEW).then(|| view! {
            <Alert kind="warning">
                <p>"Create new recovery codes before you need one: without them a lost phone locks you out."</p>
            </Alert>
        })}
        <div class="security-actions">
            <RenewForm />
            <DisableForm />
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
fn RenewForm() -> impl IntoView {
    let renew = form_action::<RenewRecoveryCodes>();
    let result = form_result(renew);
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
            </div>
        </details>
    }
}

#[component]
fn DisableForm() -> impl IntoView {
    let disable = form_action::<DisableSecondFactor>();
    let result = form_result(disable);
    let failed = result.field_error("last_code").is_some();
    view! {
        <FormFailure result=result fields=&["last_code"] />
        <details class="confirm" open=failed>
            <summary class="button">"Turn off two-step sign-in"</summary>
            <div class="confirm-body">
                <ActionForm action=disable>
                    <p>
                        "From then on the password alone signs you in. Your other sessions end, and your recovery codes stop working."
                    </p>
                    <ReturnAddress />
                    <Field result=result name="last_code" label="Code" hint=CODE_HINT autocomplete="one-time-code"
                        max=CODE_MAX />
                    <div class="submit">
                        <button type="submit" class="button button-danger" data-busy="Turning off...">
                            "Turn off"
                        </button>
                    </div>
                </ActionForm>
            </div>
        </details>
    }
}
