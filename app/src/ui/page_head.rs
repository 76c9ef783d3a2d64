//! The heading of a page, its title, and where the focus goes when a page takes
//! the place of another.

use leptos::html;
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_location;

/// The product's name in titles.
const PRODUCT: &str = "Weir";

/// Whether a link led here within this visit.
#[derive(Clone, Copy)]
struct Navigated(RwSignal<bool>);

/// Notices when another page is shown. Called once, within the router.
pub(crate) fn provide_navigated() {
    let navigated = Navigated(RwSignal::new(false));
    provide_context(navigated);
    let location = use_location();
    Effect::new(move |first: Option<()>| {
        location.pathname.track();
        location.search.track();
        if first.is_some() {
            navigated.0.set(true);
        }
    });
}

/// Whether a link led here within this visit, rather than the browser.
pub(crate) fn has_navigated() -> bool {
    use_context::<Navigated>().is_some_and(|navigated| navigated.0.get_untracked())
}

/// Heading and title of a page.
#[component]
pub(crate) fn PageHead(
    /// The heading.
    #[prop(into)]
    title: Signal<String>,
    /// The organization or project that the page is about, for the title.
    #[prop(into, optional)]
    within: Signal<String>,
    /// What stands beside the heading.
    #[prop(optional)]
    children: Option<Children>,
) -> impl IntoView {
    let heading = NodeRef::<html::H1>::new();
    Effect::new(move |_| {
        if has_navigated() {
            super::focus(heading);
        }
    });
    let full = move || match within.get() {
        place if place.is_empty() => format!("{} - {PRODUCT}", title.get()),
        place => format!("{} - {place} - {PRODUCT}", title.get()),
    };
    view! {
        <Title text=full />
        <header class="page-head">
            <h1 tabindex="-1" node_ref=heading>{move || title.get()}</h1>
            {children.map(|children| view! { <div class="page-actions">{children()}</div> })}
        </header>
    }
}
