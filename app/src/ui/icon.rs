//! Glyphs of the sprite `public/icons.svg`.

use leptos::prelude::*;

/// A glyph beside a text that says the same, so assistive technology skips it.
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
