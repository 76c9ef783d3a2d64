//! The page for unknown addresses.

use leptos::prelude::*;

use crate::frame::Logo;
use crate::ui::page::{NOT_FOUND, PageHead};

/// The text for a page that does not exist, or that the user has no access to.
#[component]
pub(crate) fn NotFound() -> impl IntoView {
    #[cfg(feature = "ssr")]
    crate::context::set_not_found();
    view! {
        <main id="main" class="alone" tabindex="-1">
            <p class="brand"><Logo /> "Weir"</p>
            <PageHead title=NOT_FOUND />
            <p>"There is nothing at this address, or you have no access to it."</p>
            <p><a class="button" href="/">"Go to the home page"</a></p>
        </main>
    }
    .into_any()
}
