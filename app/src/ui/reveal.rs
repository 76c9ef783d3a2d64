//! Values that are shown once: keys, tokens and links.

use leptos::prelude::*;

use super::alert::Alert;
use super::copy::CopyValue;

/// A new value, with what it is for. The button leads back.
pub(crate) fn revealed(
    value: String,
    what: &'static str,
    used_for: AnyView,
    back: String,
) -> AnyView {
    view! {
        <section class="card section reveal">
            <Alert kind="warning">
                <p>"Store it now. It is shown only once, because Weir stores only a hash of it."</p>
            </Alert>
            <p class="reveal-value"><CopyValue text=value what=what /></p>
            {used_for}
            <p><a class="button button-primary" href=back>"I have stored it"</a></p>
        </section>
    }
    .into_any()
}

/// Instead of a value that was shown already: what to do without it, and a button back.
pub(crate) fn not_revealed(
    what: &'static str,
    without: AnyView,
    back: String,
    label: &'static str,
) -> AnyView {
    view! {
        <div class="empty">
            <p>{format!("There is no {what} to show: it was shown before, or none was created.")}</p>
            {without}
            <p><a class="button button-primary" href=back>{label}</a></p>
        </div>
    }
    .into_any()
}
