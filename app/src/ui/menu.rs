//! A menu that opens below its button: a native disclosure, which
//! `behaviours::menu` closes on Escape and when something else is used.

use leptos::prelude::*;

use super::icon::Icon;

/// A menu.
#[component]
pub(crate) fn Menu(
    /// Class of the menu.
    class: &'static str,
    /// What the button says.
    label: AnyView,
    /// What the menu holds.
    children: Children,
) -> impl IntoView {
    view! {
        <details class=format!("menu {class}")>
            <summary>{label} <Icon name="chevron" /></summary>
            <div class="menu-body">{children()}</div>
        </details>
    }
}
