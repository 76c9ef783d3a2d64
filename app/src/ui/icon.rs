//! Icons of the sprite `public/icons.svg`.

use leptos::prelude::*;

/// An icon next to a text with the same meaning. Screen readers skip it.
#[component]
pub(crate) fn Icon(
    /// Id of the symbol.
    name: &'static str,
) -> impl IntoView {
    let href = format!("/icons.svg#{name}");
    view! {
        <svg class="icon" aria-hidden="true" focusable="false">
            <use href=href></use>
        </svg>
    }
}
