//! Set-up of the second factor: the QR code for the app, and a code as proof.

use leptos::prelude::*;

use crate::qr::{QrCode, otpauth};
use crate::server_fns::second_factor::{
    CancelSecondFactor, ConfirmSecondFactor, EnrolmentView, get_enrolment,
};
use crate::ui::copy::CopyValue;
use crate::ui::field::Field;
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::page::{PageHead, page};
use crate::ui::time::Time;

/// Longest code, with separators, in characters.
const CODE_MAX: usize = 11;

/// The set-up form, or a text that none was started.
#[component]
pub(crate) fn TwoStep() -> impl IntoView {
    page("Set up two-step sign-in", async {
        let content = match get_enrolment().await? {
            Some(enrolment) => view! { <SetUp enrolment=enrolment /> }.into_any(),
            None => nothing(),
        };
        Ok(view! {
            <PageHead title="Set up two-step sign-in" />
            {content}
        }
        .into_any())
    })
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
    let confirm = ServerAction::<ConfirmSecondFactor>::new();
    let cancel = ServerAction::<CancelSecondFactor>::new();
    let (result, cancelled) = (form_result(confirm), form_result(cancel));
    let EnrolmentView { secret, email, expires_at } = enrolment;
    let uri = otpauth(&secret, &email);
    view! {
        <section class="card two-step" aria-labelledby="scan">
            <h2 id="scan">"1. Scan the picture"</h2>
            <p>"Open an authenticator app on your phone, add an account, and point the camera here."</p>
            <QrCode text=uri label="QR code for an authenticator app" />
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
