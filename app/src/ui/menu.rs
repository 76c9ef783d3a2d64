//! A menu below its button: a native `details` element, which `behaviours::menu` closes
//! on Escape and when the focus leaves it.

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
