//! The line above a page: the button that opens the rail on small screens, the breadcrumb,
//! and the search.

use leptos::html;
use leptos::prelude::*;

use super::RAIL_ID;
use super::crumbs::{Breadcrumb, Crumb};
use crate::ui::icon::Icon;

#[component]
pub(super) fn TopLine(crumbs: Vec<Crumb>) -> impl IntoView {
    let opener = html::button()
        .r#type("button")
        .class("button button-quiet rail-opener")
        .attr("popovertarget", RAIL_ID)
        .child(view! { <Icon name="menu" /> <span class="hidden">"Menu"</span> });
    view! {
        <div class="top-line">
            {opener}
            <Breadcrumb crumbs=crumbs />
            <a class="top-search" href="/search" data-palette="" aria-keyshortcuts="Control+K Meta+K">
                <Icon name="search" />
                <span>"Search"</span>
                <kbd class="needs-scripts" aria-hidden="true">"Ctrl K"</kbd>
            </a>
        </div>
    }
    .into_any()
}
