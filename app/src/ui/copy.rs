//! Copy buttons. `behaviours::copy` handles their clicks.

use leptos::prelude::*;

use super::icon::Icon;

/// A button that copies the code in the nearest `data-copyable` ancestor. Without scripts
/// it is hidden, and users select the code.
#[component]
pub(crate) fn CopyButton(
    /// Name of the copied value, for screen readers.
    what: &'static str,
) -> impl IntoView {
    view! {
        <button type="button" class="button button-copy needs-scripts" data-copy="">
            <Icon name="copy" />
            <Icon name="check" />
            <span data-copy-label="" aria-live="polite">"Copy"</span>
            <span class="hidden">" "{what}</span>
        </button>
    }
}

/// A complete value with a copy button.
#[component]
pub(crate) fn CopyValue(
    text: String,
    /// Name of the value, for screen readers.
    what: &'static str,
) -> impl IntoView {
    view! {
        <span class="copy-value" data-copyable="">
            <code>{text}</code>
            <CopyButton what=what />
        </span>
    }
}
