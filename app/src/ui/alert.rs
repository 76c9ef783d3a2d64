//! Messages in place: what failed and what to do, and notes.

use leptos::prelude::*;

use super::icon::Icon;
use crate::error::UiError;

/// A message about something that needs attention.
#[component]
pub(crate) fn Alert(
    /// `error`, `warning` or `note`.
    kind: &'static str,
    /// Whether the page begins here.
    #[prop(optional)]
    autofocus: bool,
    /// The message.
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

/// An error in words, with its code and the id that the log knows it by.
#[component]
pub(crate) fn ErrorAlert(
    /// The error.
    error: UiError,
    /// Whether the page begins here.
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
