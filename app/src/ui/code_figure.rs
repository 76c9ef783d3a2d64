//! Code blocks with a caption: payloads, commands, codes.

use leptos::prelude::*;

use super::copy::CopyButton;

/// A text with a caption and a copy button.
#[component]
pub(crate) fn CodeFigure(
    caption: &'static str,
    /// Name of the content, for screen readers.
    what: &'static str,
    #[prop(into)] text: String,
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
