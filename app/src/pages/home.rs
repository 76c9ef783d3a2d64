//! The start address: redirects to the project that the user visited last.

use leptos::prelude::*;

use crate::server_fns::account::find_home;
use crate::ui::page::{PageHead, page};

/// Redirects.
#[component]
pub(crate) fn Home() -> impl IntoView {
    let content = page(
        "Welcome back",
        || (),
        |()| find_home(),
        |(), ()| {
            view! {
                <PageHead title="Welcome back" />
                <p><a href="/organizations">"Continue"</a></p>
            }
            .into_any()
        },
    );
    view! { <main id="main" class="alone" tabindex="-1">{content}</main> }.into_any()
}
