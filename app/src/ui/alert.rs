//! Messages within a page: errors with advice, and notes.

use leptos::prelude::*;

use super::icon::Icon;
use crate::error::UiError;

/// A message that needs the user's attention.
#[component]
pub(crate) fn Alert(
    /// `error`, `warning` or `note`.
    kind: &'static str,
    /// Whether the message gets the focus when the page is loaded.
    #[prop(optional)]
    autofocus: bool,
    children: Children,
) -> impl IntoView {
    let (class, icon) = match kind {
        "error" => ("alert alert-error", "alert"),
        "warning" => ("alert alert-warning", "alert"),
        _ => ("alert alert-note", "info"),
    };
    view! {
        <div
            class=class
            role=(kind == "error").then_some("alert")
            tabindex=autofocus.then_some("-1")
            autofocus=autofocus
        >
            <Icon name=icon />
            <div class="alert-body">{children()}</div>
        </div>
    }
}

/// An error with its text, its code, and the request id for a search in the log.
#[component]
pub(crate) fn ErrorAlert(
    error: UiError,
    /// Whether the message gets the focus when the page is loaded.
    #[prop(optional)]
    autofocus: bool,
) -> impl IntoView {
    let request_id = error.request_id().filter(|id| !id.is_empty()).map(|id| {
        view! { ", request " <code>{id.to_owned()}</code> }
    });
    let code = error.code().map(|code| {
        view! { <p class="faint">"Code " <code>{code}</code> {request_id}</p> }
    });
    view! {
        <Alert kind="error" autofocus=autofocus>
            <p>{error.sentence()}</p>
            {code}
        </Alert>
    }
    .into_any()
}
