//! Component gallery: every shared component in all of its states, with constant data. It
//! is for design, checks and screenshots. Developers see here the effect of a change.

mod charts;
mod fields;
mod lists;
mod messages;
mod states;
mod words;

use leptos::prelude::*;
use leptos_router::hooks::use_location;

use crate::server_fns::instance::enter_instance;
use crate::ui::page::{PageHead, page};

/// All components, one below the other, for staff.
#[component]
pub(crate) fn Gallery() -> impl IntoView {
    page(
        "Gallery",
        // The whole query, because the samples of lists read it.
        || use_location().search.get(),
        |_| enter_instance(),
        |_, ()| draw(),
    )
}

fn draw() -> AnyView {
    view! {
        <PageHead title="Gallery" />
        <p class="lead">
            "The components of all pages, with made-up data. Nothing here changes anything. "
            "Every installation has this page for its staff. Compare with this page when you report a layout bug."
        </p>
        <div class="gallery">
            {states::sections()}
            {lists::sections()}
            {fields::sections()}
            {messages::sections()}
            {words::sections()}
            {charts::sections()}
        </div>
    }
    .into_any()
}
