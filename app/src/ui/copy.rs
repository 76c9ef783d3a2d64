//! Values to take along.

use std::time::Duration;

use leptos::prelude::*;

use super::icon::Icon;

/// A button that copies a text. Hidden without scripts: the text stands beside
/// it and can be selected.
#[component]
pub(crate) fn CopyButton(
    /// The text.
    #[prop(into)]
    text: Signal<String>,
    /// What it is, for people who do not see what the button stands beside.
    what: &'static str,
) -> impl IntoView {
    let copied = RwSignal::new(false);
    let copy = move |_| {
        // A refusal of the browser shows by the label that stays.
        let _ = window().navigator().clipboard().write_text(&text.get_untracked());
        copied.set(true);
        set_timeout(
            move || {
                let _ = copied.try_set(false);
            },
            Duration::from_secs(2),
        );
    };
    view! {
        <button type="button" class="button button-copy needs-scripts" on:click=copy>
            {move || if copied.get() {
                view! { <Icon name="check" /> }
            } else {
                view! { <Icon name="copy" /> }
            }}
            <span aria-live="polite">{move || if copied.get() { "Copied" } else { "Copy" }}</span>
            <span class="hidden">" "{what}</span>
        </button>
    }
}

/// A value in full with its button.
#[component]
pub(crate) fn CopyValue(
    /// The value.
    text: String,
    /// What it is.
    what: &'static str,
) -> impl IntoView {
    view! {
        <span class="copy-value">
            <code>{text.clone()}</code>
            <CopyButton text=text what=what />
        </span>
    }
}
