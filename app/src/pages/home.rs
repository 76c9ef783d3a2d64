//! Where a visit begins: leads to the project looked at last.

use leptos::prelude::*;

use crate::server_fns::account::find_home;
use crate::ui::page_head::PageHead;
use crate::ui::panel::Panel;

/// Leads on.
#[component]
pub(crate) fn Home() -> impl IntoView {
    let data = Resource::new(|| (), |()| find_home());
    view! {
        <main id="main" class="alone" tabindex="-1">
            <PageHead title=Signal::stored("Welcome back".to_owned()) />
            <Panel data=data view=|()| view! { <a href="/organizations">"Go on"</a> }.into_any() />
        </main>
    }
    .into_any()
}
