//! The page for unknown addresses.

use leptos::prelude::*;

use crate::frame::Logo;
use crate::ui::page::PageHead;

/// The text for a page that does not exist, or that the user has no access to.
#[component]
pub(crate) fn NotFound() -> impl IntoView {
    #[cfg(feature = "ssr")]
    crate::context::set_not_found();
    view! {
        <main id="main" class="alone" tabindex="-1">
            <p class="brand"><Logo /> "Weir"</p>
            <PageHead title="Page not found" />
            <p>"There is nothing at this address, or you may not see it."</p>
            <p><a class="button" href="/">"Go to the home page"</a></p>
        </main>
    }
    .into_any()
}
