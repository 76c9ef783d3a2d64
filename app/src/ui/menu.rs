//! Menus below their buttons: native `details` elements, which `behaviours::menu` closes on
//! Escape and when the focus leaves them.

use leptos::prelude::*;

use super::icon::Icon;

#[component]
pub(crate) fn Menu(
    /// Class of the menu.
    class: &'static str,
    /// The label of the button.
    label: AnyView,
    /// The content of the menu.
    children: Children,
) -> impl IntoView {
    view! {
        <details class=format!("menu {class}")>
            <summary>{label} <Icon name="chevron" /></summary>
            <div class="menu-body">{children()}</div>
        </details>
    }
}

/// The actions for one entry of a list. Actions that ask first open a `ConfirmDialog`, which
/// stands beside the menu.
#[component]
pub(crate) fn RowMenu(
    /// Name of the entry, for screen readers.
    #[prop(into)]
    of: String,
    /// The actions: links, forms with a button, and `OpenDialog`, one in each list item.
    children: Children,
) -> impl IntoView {
    view! {
        <details class="menu row-menu">
            <summary title="Actions">
                <span class="hidden">"Actions for " {of}</span>
                <Icon name="more" />
            </summary>
            <div class="menu-body"><ul>{children()}</ul></div>
        </details>
    }
    .into_any()
}
