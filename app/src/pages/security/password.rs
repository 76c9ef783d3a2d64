//! Changes the password.

use leptos::prelude::*;

use crate::server_fns::security::ChangePassword;
use crate::ui::form::{Back, FormFailure, Sent, Submit, sent};
use crate::ui::icon::Icon;
use crate::ui::password::PasswordField;
use crate::ui::sections::Section;

/// The section about the password.
#[component]
pub(crate) fn PasswordSection() -> impl IntoView {
    let change = ServerAction::<ChangePassword>::new();
    let sent = sent(change);
    view! {
        <Section
            id="change-password"
            title="Password"
            hint="Changing it ends your other sessions. API keys continue to work."
        >
            <ActionForm action=change>
                <FormFailure sent=sent fields=&["current_password", "password"] />
                <Back />
                <CurrentPassword sent=sent />
                <PasswordField sent=sent label="New password" autocomplete="new-password"
                    hint="At least 12 characters. A few unusual words are easy to remember and hard to guess." />
                <Submit sent=sent label="Change password" busy="Changing password..." saved="Password changed" />
            </ActionForm>
        </Section>
    }
}

/// The field for the current password. Its id differs because the page has another field
/// with the usual name.
#[component]
fn CurrentPassword(sent: Sent) -> impl IntoView {
    let fault = sent.fault("current_password");
    let described_by = fault.as_ref().map(|_| "current_password-fault");
    let invalid = fault.as_ref().map(|_| "true");
    view! {
        <div class="field">
            <label for="current_password">"Current password"</label>
            <div class="with-button">
                <input
                    id="current_password"
                    name="current_password"
                    type="password"
                    required
                    maxlength="256"
                    autocomplete="current-password"
                    autofocus=sent.begins_at("current_password", false)
                    spellcheck="false"
                    autocapitalize="off"
                    aria-describedby=described_by
                    aria-invalid=invalid
                />
                <button
                    type="button"
                    class="button needs-scripts"
                    aria-pressed="false"
                    aria-controls="current_password"
                    data-shows=""
                >
                    "Show"
                    <span class="hidden">" current password"</span>
                </button>
            </div>
            {fault.map(|fault| view! {
                <p class="fault" id="current_password-fault">
                    <Icon name="alert" />
                    {fault}
                </p>
            })}
        </div>
    }
}
