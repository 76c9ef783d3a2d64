//! Set-up of the second factor: the QR code for the app, and a code as proof.

use leptos::prelude::*;

use crate::server_fns::second_factor::{
    CancelSecondFactor, ConfirmSecondFactor, EnrolmentView, QrView, get_enrolment,
};
use crate::ui::copy::CopyValue;
use crate::ui::field::Field;
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page_of_secrets};
use crate::ui::time::Time;

const TITLE: &str = "Set up two-step sign-in";
/// Longest code, with separators, in characters.
const CODE_MAX: usize = 11;

/// The set-up form, or a text that none was started.
#[component]
pub(crate) fn TwoStep() -> impl IntoView {
    page_of_secrets(
        TITLE,
        || (),
        |()| get_enrolment(),
        |(), enrolment| {
            let content = match enrolment {
                Some(enrolment) => view! { <SetUp enrolment=enrolment /> }.into_any(),
                None => nothing(),
            };
            view! {
                <PageHead title=TITLE />
                {content}
            }
            .into_any()
        },
    )
}

fn nothing() -> AnyView {
    view! {
        <div class="empty">
            <p>"No set-up is in progress: it was finished or cancelled, or took longer than ten minutes."</p>
            <p><a class="button button-primary" href="/account/security">"Go to security"</a></p>
        </div>
    }
    .into_any()
}

#[component]
fn SetUp(enrolment: EnrolmentView) -> impl IntoView {
    let confirm = form_action::<ConfirmSecondFactor>();
    let cancel = form_action::<CancelSecondFactor>();
    let (result, cancelled) = (form_result(confirm), form_result(cancel));
    let EnrolmentView { secret, qr, expires_at } = enrolment;
    view! {
        <section class="card two-step" aria-labelledby="scan">
            <h2 id="scan">"1. Scan the picture"</h2>
            <p>"Open an authenticator app on your phone, add an account, and point the camera here."</p>
            {qr.map(qr_code)}
            <p>"Without a camera, type this secret into the app instead. It counts time, in steps of 30 seconds."</p>
            <p class="reveal-value"><CopyValue text=secret what="secret" /></p>
        </section>
        <section class="card" aria-labelledby="prove">
            <h2 id="prove">"2. Enter the code that the app shows"</h2>
            <ActionForm action=confirm>
                <FormFailure result=result fields=&["code"] />
                <ReturnAddress />
                <Field result=result name="code" label="Code" autocomplete="one-time-code" inputmode="numeric"
                    max=CODE_MAX autofocus=true
                    hint="Six digits. If they are refused, check that the clock of the phone is right." />
                <p class="hint">
                    "Your other sessions end when it is on. This set-up expires at " <Time iso=expires_at /> "."
                </p>
                <Submit result=result label="Turn on two-step sign-in" busy="Turning on..." />
            </ActionForm>
            <ActionForm action=cancel>
                <FormFailure result=cancelled />
                <ReturnAddress />
                <div class="submit">
                    <button type="submit" class="button" data-busy="Cancelling...">"Cancel set-up"</button>
                </div>
            </ActionForm>
        </section>
    }
}

fn qr_code(qr: QrView) -> AnyView {
    let QrView { side, modules } = qr;
    let frame = format!("0 0 {side} {side}");
    view! {
        <svg class="qr" viewBox=frame role="img" aria-label="QR code for an authenticator app">
            <path d=modules></path>
        </svg>
    }
    .into_any()
}
