//! The frame around every page of a signed-in user: navigation at the side, behind a
//! button at the top on small screens; notices; search and the list of shortcuts in
//! dialogs over the page.

mod account_menu;
mod dialogs;
mod here;
pub(crate) mod links;
mod rail;
mod switcher;

use leptos::prelude::*;
use leptos_router::components::Outlet;
use leptos_router::hooks::{use_location, use_query_map};

use self::dialogs::Dialogs;
use self::here::Here;
use self::rail::Rail;
use crate::server_fns::account::{FailingNav, find_failing_exports, get_viewer};
use crate::ui::notice::Notice;

/// The logo, next to the product name.
#[component]
pub(crate) fn Mark() -> impl IntoView {
    view! {
        <svg class="mark" aria-hidden="true" focusable="false">
            <use href="/icons.svg#mark"></use>
        </svg>
    }
}

/// Navigation and the page.
#[component]
pub(crate) fn Frame() -> impl IntoView {
    if is_part() {
        return view! {
            <main id="main" tabindex="-1">
                <Outlet />
            </main>
        }
        .into_any();
    }
    let path = use_location().pathname.get_untracked();
    // If the viewer cannot be loaded, the page itself shows the error.
    let rail = Suspend::new(async move {
        let viewer = get_viewer().await.ok()?;
        let here = Here::of(&viewer.organizations, viewer.project, &path);
        let failing = match &here.organization {
            Some((id, _)) => find_failing_exports(id.clone()).await.unwrap_or_default(),
            None => FailingNav::default(),
        };
        Some(view! { <Rail viewer=viewer here=here path=path failing=failing /> })
    });
    view! {
        <div class="frame">
            <header class="rail">
                <a class="brand" href="/" aria-label="Weir, start"><Mark /> <span>"Weir"</span></a>
                {rail}
            </header>
            <main id="main" tabindex="-1">
                <Notice />
                <Outlet />
            </main>
        </div>
        <Dialogs />
    }
    .into_any()
}

/// Whether a script requests a part of a page, to insert it into another page.
fn is_part() -> bool {
    let asked = use_query_map().with_untracked(|query| query.get_str("part") == Some("1"));
    asked && use_location().pathname.get_untracked() == "/search"
}
