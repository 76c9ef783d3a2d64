//! A menu that opens below its button: a native disclosure, which scripts close
//! when the focus leaves it, on Escape, and when another page is shown.

use leptos::ev::{FocusEvent, KeyboardEvent};
use leptos::html;
use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast as _;
use leptos_router::hooks::use_location;
use web_sys::Node;

use super::icon::Icon;

/// A menu.
#[component]
pub(crate) fn Menu(
    /// Class of the menu.
    class: &'static str,
    /// What the button says.
    #[prop(into)]
    label: ViewFn,
    /// What the menu holds.
    children: Children,
) -> impl IntoView {
    let details = NodeRef::<html::Details>::new();
    let location = use_location();
    let close = move || {
        if let Some(details) = details.get_untracked() {
            details.set_open(false);
        }
    };
    Effect::new(move |_| {
        location.pathname.track();
        close();
    });
    let on_leave = move |event: FocusEvent| {
        let goes_to = event.related_target().and_then(|target| target.dyn_into::<Node>().ok());
        let stays = details
            .get_untracked()
            .is_some_and(|details| goes_to.is_some_and(|node| details.contains(Some(&node))));
        if !stays && event.related_target().is_some() {
            close();
        }
    };
    let on_key = move |event: KeyboardEvent| {
        if event.key() == "Escape" {
            close();
            if let Some(summary) = details
                .get_untracked()
                .and_then(|details| details.query_selector("summary").ok().flatten())
                .and_then(|summary| summary.dyn_into::<web_sys::HtmlElement>().ok())
            {
                let _ = summary.focus();
            }
        }
    };
    view! {
        <details
            class=format!("menu {class}")
            node_ref=details
            on:focusout=on_leave
            on:keydown=on_key
        >
            <summary>{label.run()} <Icon name="chevron" /></summary>
            <div class="menu-body">{children()}</div>
        </details>
    }
}
