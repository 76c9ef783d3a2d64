//! Values to take along. `behaviours::copy` makes the button work.

use leptos::prelude::*;

use super::icon::Icon;

/// A button that copies the code within the nearest `data-copyable` around it.
/// Hidden without scripts: the code can be selected.
#[component]
pub(crate) fn CopyButton(
    /// What it copies, for people who do not see what the button stands beside.
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

/// A value in full with its button.
#[cfg(feature = "ssr")]
#[component]
pub(crate) fn CopyValue(
    /// The value.
    text: String,
    /// What it is.
    what: &'static str,
) -> impl IntoView {
    view! {
        <span class="copy-value" data-copyable="">
            <code>{text}</code>
            <CopyButton what=what />
        </span>
    }
}
