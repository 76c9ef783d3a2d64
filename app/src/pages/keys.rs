//! Personal API keys: the list, revoking, replacing.

use leptos::prelude::*;

use crate::server_fns::keys::{KeyView, RevokeKey, RollKey, list_keys};
use crate::ui::form::{Back, FormFailure, sent};
use crate::ui::icon::Icon;
use crate::ui::page::{PageHead, page};
use crate::ui::time::Time;

/// The list.
#[component]
pub(crate) fn Keys() -> impl IntoView {
    let revoke = ServerAction::<RevokeKey>::new();
    let roll = ServerAction::<RollKey>::new();
    let (revoked, rolled) = (sent(revoke), sent(roll));
    page("API keys", async move {
        let found = list_keys().await?;
        let content = if found.is_empty() {
            nothing()
        } else {
            let rows = found.into_iter().map(|key| entry(key, revoke, roll));
            view! { <ul class="plain">{rows.collect_view()}</ul> }.into_any()
        };
        Ok(view! {
            <PageHead title="API keys">
                <a class="button button-primary" href="/account/keys/new">
                    <Icon name="plus" />
                    "New key"
                </a>
            </PageHead>
            <p class="lead">
                "Keys let scripts use the management API as you. To send events, use the project key instead."
            </p>
            <FormFailure sent=revoked />
            <FormFailure sent=rolled />
            {content}
        }
        .into_any())
    })
}

fn nothing() -> AnyView {
    view! {
        <div class="empty">
            <h2>"No key yet"</h2>
            <p>"A key lets a script read or change organizations, projects and events through the API."</p>
            <p><a class="button button-primary" href="/account/keys/new">"Create a key"</a></p>
        </div>
    }
    .into_any()
}

fn entry(key: KeyView, revoke: ServerAction<RevokeKey>, roll: ServerAction<RollKey>) -> AnyView {
    let scopes = key
        .scopes
        .into_iter()
        .map(|scope| {
            let text = if scope == "*" { "everything".to_owned() } else { scope };
            view! { <li class="chip">{text}</li> }
        })
        .collect_view();
    let expires = match (key.expires_at, key.expired) {
        (Some(iso), true) => {
            view! { <span class="fault-text">"Expired "</span><Time iso=iso /> }.into_any()
        }
        (Some(iso), false) => view! { <Time iso=iso /> }.into_any(),
        (None, _) => "Never".into_any(),
    };
    let used = match key.last_used_at {
        Some(iso) => view! { <Time iso=iso /> }.into_any(),
        None => "Never".into_any(),
    };
    let (label, same_label) = (key.label.clone(), key.label.clone());
    let (id, same_id) = (key.id.clone(), key.id);
    view! {
        <li class="card key">
            <div class="key-head">
                <h2>{key.label}</h2>
                <code class="faint">{key.mask}</code>
            </div>
            <ul class="chips" aria-label="Scopes">{scopes}</ul>
            <dl class="facts facts-row">
                <div><dt>"Created"</dt><dd><Time iso=key.created_at /></dd></div>
                <div><dt>"Last used"</dt><dd>{used}</dd></div>
                <div><dt>"Expires"</dt><dd>{expires}</dd></div>
            </dl>
            <div class="key-actions">
                <details class="confirm">
                    <summary class="button">"Replace value"<span class="hidden">" of " {label}</span></summary>
                    <ActionForm action=roll>
                        <p>"The key gets a new value, shown once. The old value stops working at once."</p>
                        <input type="hidden" name="id" value=id />
                        <Back />
                        <button type="submit" class="button button-primary" data-busy="Replacing value...">
                            "Replace value"
                        </button>
                    </ActionForm>
                </details>
                <details class="confirm">
                    <summary class="button">"Revoke"<span class="hidden">" " {same_label}</span></summary>
                    <ActionForm action=revoke>
                        <p>"Scripts that use this key stop working at once. This cannot be undone."</p>
                        <input type="hidden" name="id" value=same_id />
                        <Back />
                        <button type="submit" class="button button-danger" data-busy="Revoking key...">
                            "Revoke key"
                        </button>
                    </ActionForm>
                </details>
            </div>
        </li>
    }
    .into_any()
}
