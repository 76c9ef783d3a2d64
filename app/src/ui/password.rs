//! A password field with a button that shows the password (`behaviours::password`).

use leptos::prelude::*;

use super::field::{FieldFrame, Ties};
use super::form::FormResult;

/// A password field. Pasting and password managers work.
#[component]
pub(crate) fn PasswordField(
    result: FormResult,
    #[prop(default = "Password")] label: &'static str,
    #[prop(optional)] hint: &'static str,
    /// `new-password` or `current-password`.
    autocomplete: &'static str,
    /// Whether the field gets the focus when the page is loaded.
    #[prop(optional)]
    autofocus: bool,
) -> impl IntoView {
    let ties = Ties::new("password", hint, result);
    view! {
        <FieldFrame ties=ties.clone() label=label>
            <div class="with-button">
                <input
                    id="password"
                    name="password"
                    type="password"
                    required
                    maxlength="256"
                    autocomplete=autocomplete
                    autofocus=result.has_focus("password", autofocus)
                    spellcheck="false"
                    autocapitalize="off"
                    aria-describedby=ties.described_by()
                    aria-invalid=ties.invalid()
                />
                <button
                    type="button"
                    class="button needs-scripts"
                    aria-pressed="false"
                    aria-controls="password"
                    data-shows=""
                >
                    "Show"
                    <span class="hidden">" password"</span>
                </button>
            </div>
        </FieldFrame>
    }
}
