//! Changes the password.

use leptos::prelude::*;

use crate::server_fns::security::ChangePassword;
use crate::ui::form::{FormFailure, FormResult, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::icon::Icon;
use crate::ui::password::PasswordField;
use crate::ui::sections::Section;

/// The section about the password.
#[component]
pub(crate) fn PasswordSection() -> impl IntoView {
    let change = form_action::<ChangePassword>();
    let result = form_result(change);
    view! {
        <Section
            id="change-password"
            title="Password"
            hint="Changing it ends your other sessions. API keys continue to work."
        >
            <ActionForm action=change>
                <FormFailure result=result fields=&["current_password", "password"] />
                <ReturnAddress />
                <CurrentPassword result=result />
                <PasswordField result=result label="New password" autocomplete="new-password"
                    hint="At least 12 characters. A few unrelated words are easy to remember and hard to guess." />
                <Submit result=result label="Change password" busy="Changing password..." saved="Password changed" />
            </ActionForm>
        </Section>
    }
}

/// The field for the current password. Its id differs because the page has another field
/// with the usual name.
#[component]
fn CurrentPassword(result: FormResult) -> impl IntoView {
    let fault = result.field_error("current_password");
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
                    autofocus=result.has_focus("current_password", false)
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
