//! Code blocks: snippets to copy, and sources with line numbers.

use leptos::prelude::*;

use super::copy::CopyButton;

/// A text with a copy button.
#[component]
pub(crate) fn Code(
    #[prop(into)] text: String,
    /// Name of the content, for screen readers.
    what: &'static str,
) -> impl IntoView {
    view! {
        <div class="snippet" data-copyable="">
            <pre tabindex="0"><code>{text}</code></pre>
            <CopyButton what=what />
        </div>
    }
    .into_any()
}

/// A source text with line numbers, which are links to the lines.
#[component]
pub(crate) fn Source(#[prop(into)] text: String) -> impl IntoView {
    let lines = text
        .lines()
        .zip(1_u32..)
        .map(|(line, number)| {
            let id = format!("L{number}");
            view! {
                <li id=id>
                    <a href=format!("#L{number}") aria-label=format!("Line {number}")>{number.to_string()}</a>
                    <code>{line.to_owned()}</code>
                </li>
            }
        })
        .collect_view();
    view! {
        <div class="source" role="region" aria-label="Source" tabindex="0">
            <ol>{lines}</ol>
        </div>
    }
    .into_any()
}
