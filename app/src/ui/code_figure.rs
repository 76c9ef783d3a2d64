//! Texts for machines under a caption: payloads, commands, codes.

use leptos::prelude::*;

use super::copy::CopyButton;

/// A text under a caption, with a button that copies it.
#[component]
pub(crate) fn CodeFigure(
    /// What stands above.
    caption: &'static str,
    /// What is copied.
    what: &'static str,
    /// The text.
    #[prop(into)]
    text: String,
) -> impl IntoView {
    view! {
        <figure class="code" data-copyable="">
            <figcaption>
                <span>{caption}</span>
                <CopyButton what=what />
            </figcaption>
            <pre tabindex="0"><code>{text}</code></pre>
        </figure>
    }
    .into_any()
}
