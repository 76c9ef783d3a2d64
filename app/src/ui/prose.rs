//! Sentences with code in them.

use leptos::prelude::*;

/// The sentence, with text between backticks as code.
pub(crate) fn prose(sentence: &str) -> AnyView {
    sentence
        .split('`')
        .enumerate()
        .map(|(at, part)| {
            let part = part.to_owned();
            if at % 2 == 1 { view! { <code>{part}</code> }.into_any() } else { part.into_any() }
        })
        .collect_view()
        .into_any()
}
