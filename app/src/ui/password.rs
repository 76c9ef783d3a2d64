//! A password field with a button that shows what is typed.

use leptos::prelude::*;

use super::field::{FieldFrame, Ties};
use super::form::Sent;

/// A password. Pasting and password managers are welcome.
#[component]
pub(crate) fn PasswordField(
    /// What became of the form.
    sent: Sent,
    /// Hint.
    #[prop(optional)]
    hint: &'static str,
    /// `new-password` or `current-password`.
    autocomplete: &'static str,
    /// Whether the page begins here.
    #[prop(optional)]
    autofocus: bool,
) -> impl IntoView {
    let ties = Ties::new("password", hint, sent);
    let input = NodeRef::new();
    ties.focus_when_at_fault(input);
    let shown = RwSignal::new(false);
    view! {
        <FieldFrame ties=ties label="Password" hint=hint>
            <div class="with-button">
                <input
                    node_ref=input
                    id="password"
                    name="password"
                    type=move || if shown.get() { "text" } else { "password" }
                    required
                    maxlength="256"
                    autocomplete=autocomplete
                    autofocus=autofocus
                    spellcheck="false"
                    autocapitalize="off"
                    aria-describedby=move || ties.described_by()
                    aria-invalid=move || ties.invalid()
                />
                <button
                    type="button"
                    class="button needs-scripts"
                    aria-pressed=move || shown.get().to_string()
                    aria-controls="password"
                    on:click=move |_| shown.update(|shown| *shown = !*shown)
                >
                    "Show"
                    <span class="hidden">" password"</span>
                </button>
            </div>
        </FieldFrame>
    }
}
