//! Shows a new value of a key exactly once.

use leptos::prelude::*;

use crate::server_fns::keys::{Revealed, reveal_key};
use crate::ui::alert::Alert;
use crate::ui::code_figure::CodeFigure;
use crate::ui::copy::CopyValue;
use crate::ui::page::{PageHead, page_of_secrets};

const TITLE: &str = "Your new key";

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
    view! {
        <section class="card section reveal">
            <Alert kind="warning">
                <p>"Store it now. It is shown only once, because Weir stores only a hash of it."</p>
            </Alert>
            <p class="reveal-value"><CopyValue text=value what="key" /></p>
            <CodeFigure caption="Try it" what="command" text=try_it />
            <p><a class="button button-primary" href="/account/keys">"I have stored it"</a></p>
        </section>
    }
    .into_any()
}

fn gone(keys: Vec<(String, String)>) -> AnyView {
    let links = keys.into_iter().map(|(id, label)| {
        view! {
            <li><a href=format!("/account/keys/{id}#rotate")>"Rotate " {label}</a></li>
        }
    });
    view! {
        <div class="empty">
            <p>"There is no value to show: it was shown before, or none was created."</p>
            <p>"If you did not store it, rotate the key: it gets a new value."</p>
            <ul class="links">{links.collect_view()}</ul>
            <p><a class="button button-primary" href="/account/keys">"Go to API keys"</a></p>
        </div>
    }
    .into_any()
}
