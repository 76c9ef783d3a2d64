//! The frame around every page of a signed-in user: navigation at the side, behind a
//! button at the top on small screens; a line with breadcrumb and search above the page;
//! notices; search and the list of shortcuts in dialogs over the page.

mod account_menu;
mod crumbs;
mod dialogs;
pub(crate) mod links;
mod nav_target;
mod rail;
mod switcher;
mod top_line;

use leptos::prelude::*;
use leptos_router::components::Outlet;
use leptos_router::hooks::{use_location, use_query_map};

use self::crumbs::{crumbs, object_of};
use self::dialogs::Dialogs;
use self::nav_target::{NavTarget, PathIds};
use self::rail::Rail;
use self::top_line::TopLine;
use crate::server_fns::account::{NavFailures, Viewer, find_failing, get_viewer};
use crate::server_fns::object_names::find_object_name;
use crate::ui::form_action::{FormActions, FrameChanges};
use crate::ui::notice::Notice;
use crate::ui::page_data::{LoadResult, PageData};

/// Id of the rail, which the menu button opens on small screens.
const RAIL_ID: &str = "rail";

/// The logo, next to the product name.
#[component]
pub(crate) fn Logo() -> impl IntoView {
    view! {
        <svg class="mark" aria-hidden="true" focusable="false">
            <use href="/icons.svg#mark"></use>
        </svg>
    }
}

/// The link to the home page.
#[component]
fn Brand() -> impl IntoView {
    view! { <a class="brand" href="/" aria-label="Weir, start"><Logo /> <span>"Weir"</span></a> }
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
    FormActions::provide_for_frame();
    let path = use_location().pathname;
    // A changed number reloads the navigation.
    let changes = FrameChanges::provide();
    #[cfg(not(feature = "ssr"))]
    crate::client::navigation::follow_frame(changes);
    // Pages of one organization share the data.
    let ids = Memo::new(move |_| path.with(|path| PathIds::of(path)));
    // The frame can be gone when the page has changed.
    let inputs = move || (ids.try_get().unwrap_or_default(), changes.get());
    let loaded = Resource::new(inputs, move |(ids, _)| load_navigation(ids));
    let object = Memo::new(move |_| path.with(|path| object_of(path).to_owned()));
    let inputs = move || (object.try_get().unwrap_or_default(), changes.get());
    let named = Resource::new(inputs, move |(object, _)| load_name(object));
    let frame_head = move || {
        Suspend::new(async move {
            let loaded = loaded.await.get::<(Viewer, NavFailures)>();
            let Some((viewer, failing)) = loaded else {
                // The page itself shows the error.
                return view! { <div class="rail"><Brand /></div> }.into_any();
            };
            #[cfg(not(feature = "ssr"))]
            crate::page_facts::apply_preferences(&viewer);
            let named = named.await.get::<(String, Option<String>)>();
            let (object, name) = named.unwrap_or_default();
            let path = path.get();
            let target = NavTarget::of(&viewer.organizations, viewer.project, &path);
            // The name can be that of the page before.
            let name = name.filter(|_| object == object_of(&path));
            let crumbs = crumbs(&target, &path, name.as_deref());
            view! {
                <Rail viewer=viewer target=target path=path failing=failing />
                <TopLine crumbs=crumbs />
            }
            .into_any()
        })
    };
    view! {
        <div class="frame">
            <header class="frame-head"><Transition>{frame_head}</Transition></header>
            <main id="main" tabindex="-1">
                <Notice />
                <Outlet />
            </main>
        </div>
        <Dialogs />
    }
    .into_any()
}

/// The viewer, and what fails in the organization and project of the page.
async fn load_navigation(ids: PathIds) -> LoadResult {
    let viewer = match get_viewer().await {
        Ok(viewer) => viewer,
        Err(error) => return LoadResult(Err(error)),
    };
    let target = NavTarget::for_ids(&viewer.organizations, viewer.project, &ids);
    let failing = match target.organization {
        Some((id, _)) => {
            let project = target.project.map(|(id, _)| id);
            find_failing(id, project).await.unwrap_or_default()
        }
        None => NavFailures::default(),
    };
    LoadResult(Ok(PageData::of((viewer, failing))))
}

/// The address of an object, and its name.
async fn load_name(object: String) -> LoadResult {
    let name = if object.is_empty() {
        None
    } else {
        find_object_name(object.clone()).await.unwrap_or_default()
    };
    LoadResult(Ok(PageData::of((object, name))))
}

/// Whether a script requests a part of a page, to insert it into another page.
fn is_part() -> bool {
    let wants_part = use_query_map().with_untracked(|query| query.get_str("part") == Some("1"));
    wants_part && use_location().pathname.get_untracked() == "/search"
}
