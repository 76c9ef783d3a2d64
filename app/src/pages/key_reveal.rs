//! Shows a new value of a key exactly once.

use leptos::prelude::*;

use crate::server_fns::keys::{Revealed, reveal_key};
use crate::ui::code_figure::CodeFigure;
use crate::ui::page::{PageHead, page_of_secrets};
use crate::ui::reveal::{not_revealed, revealed};

const TITLE: &str = "Your new key";
/// The page of all keys.
const KEYS: &str = "/account/keys";

/// The value, or a text that it was already shown.
#[component]
pub(crate) fn KeyReveal() -> impl IntoView {
    page_of_secrets(
        TITLE,
        || (),
        |()| reveal_key(),
        |(), Revealed { value, host, keys }| {
            let content = match value {
                Some(value) => shown(value, &host),
                None => gone(keys),
            };
            view! {
                <PageHead title=TITLE />
                {content}
            }
            .into_any()
        },
    )
}

fn shown(value: String, host: &str) -> AnyView {
    // This endpoint works for every key, independent of scopes and limits.
    let try_it = format!(
        "curl -sS {host}/api/personal_api_keys/@current/ \\\n  -H 'Authorization: Bearer {value}'"
    );
    let try_it = view! { <CodeFigure caption="Try it" what="command" text=try_it /> }.into_any();
    revealed(value, "key", try_it, KEYS.to_owned())
}

fn gone(keys: Vec<(String, String)>) -> AnyView {
    let links = keys.into_iter().map(|(id, label)| {
        view! {
            <li><a href=format!("/account/keys/{id}#rotate")>"Rotate " {label}</a></li>
        }
    });
    let without = view! {
        <p>"If you did not store it, rotate the key: it gets a new value."</p>
        <ul class="links">{links.collect_view()}</ul>
    };
    not_revealed("value", without.into_any(), KEYS.to_owned(), "Go to API keys")
}
