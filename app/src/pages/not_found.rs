//! What is shown where nothing is.

use leptos::prelude::*;

use crate::ui::page_head::PageHead;

/// A page that does not exist, or not for this person.
#[component]
pub(crate) fn NotFound() -> impl IntoView {
    status::not_found();
    view! {
        <main id="main" class="alone" tabindex="-1">
            <PageHead title=Signal::stored("Nothing here".to_owned()) />
            <p>"There is nothing at this address, or it is not for you."</p>
            <p><a href="/">"Go to the start"</a></p>
        </main>
    }
    .into_any()
}

#[cfg(feature = "ssr")]
mod status {
    pub(super) fn not_found() {
        crate::context::set_not_found();
    }
}

#[cfg(not(feature = "ssr"))]
mod status {
    pub(super) fn not_found() {}
}
