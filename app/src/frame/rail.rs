//! The rail: the current project, search, links to pages, the account menu.

use leptos::html;
use leptos::prelude::*;

use super::account_menu::AccountMenu;
use super::here::Here;
use super::links::{EXPORTS, Goal, RAIL};
use super::switcher::Switcher;
use crate::server_fns::account::Viewer;
use crate::ui::icon::Icon;
use crate::ui::menu::Menu;
use crate::ui::number::grouped;

/// Id of the element that the menu button opens on small screens.
const PAGES: &str = "rail-pages";

/// The content of the rail below the brand. The links are a popover, which the style
/// sheet shows as a part of the rail on wide screens.
#[component]
pub(super) fn Rail(
    viewer: Viewer,
    /// The organization and project of the page.
    here: Here,
    path: String,
    /// Number of failing exports of the organization.
    failing: u64,
) -> impl IntoView {
    let Viewer { name, email, organizations, staff, .. } = viewer;
    let project = here.project.as_ref().map(|(id, _)| *id);
    let label = label(&here);
    let groups = RAIL
        .into_iter()
        .map(|goals| {
            let links = goals
                .iter()
                .filter_map(|goal| {
                    let href = goal.href(&here)?;
                    let badge = if *goal == EXPORTS { failing } else { 0 };
                    Some(view! { <NavLink at=path.clone() href=href goal=*goal badge=badge /> })
                })
                .collect_view();
            view! { <div class="nav-group">{links}</div> }
        })
        .collect_view();
    let opener = html::button()
        .r#type("button")
        .class("button rail-opener")
        .attr("popovertarget", PAGES)
        .child("Menu");
    view! {
        <Menu class="switch" label=label>
            <Switcher organizations=organizations project=project />
        </Menu>
        <a class="rail-search" href="/search" data-palette="" aria-keyshortcuts="Control+K Meta+K">
            <Icon name="search" />
            <span>"Search"</span>
            <kbd class="needs-scripts" aria-hidden="true">"Ctrl K"</kbd>
        </a>
        {opener}
        <div class="rail-pages" id=PAGES popover="auto">
            <nav class="nav" aria-label="Main">{groups}</nav>
            <AccountMenu name=name email=email staff=staff at=path />
        </div>
    }
    .into_any()
}

/// The names of the current organization and project.
fn label(here: &Here) -> AnyView {
    let organization = here.organization.as_ref().map(|(_, name)| name.clone());
    let project = here.project.as_ref().map(|(_, name)| name.clone());
    view! {
        <span class="switch-label">
            <span class="switch-organization">{organization.unwrap_or_else(|| "No organization".to_owned())}</span>
            <span class="switch-project">{project.unwrap_or_else(|| "No project".to_owned())}</span>
        </span>
    }
    .into_any()
}

#[component]
fn NavLink(at: String, href: String, goal: Goal, badge: u64) -> impl IntoView {
    let current = current(&at, &href);
    let badge = (badge > 0).then(|| {
        let what = if badge == 1 { " failing export" } else { " failing exports" };
        view! { <span class="nav-badge">{grouped(badge)}<span class="hidden">{what}</span></span> }
    });
    view! {
        <a class="nav-link" href=href aria-current=current data-go=goal.letter>
            <Icon name=goal.icon />
            <span>{goal.label}</span>
            {badge}
        </a>
    }
    .into_any()
}

/// The value of `aria-current`: `page` for the page itself, `true` for a page below it.
pub(super) fn current(at: &str, href: &str) -> Option<&'static str> {
    let below = at.strip_prefix(href).is_some_and(|rest| rest.starts_with('/'));
    if at == href { Some("page") } else { below.then_some("true") }
}

#[cfg(test)]
mod tests {
    use super::current;

    #[test]
    fn pages_below_count() {
        assert_eq!(current("/projects/1/live", "/projects/1/live"), Some("page"));
        assert_eq!(current("/account/keys/new", "/account/keys"), Some("true"));
        assert_eq!(current("/projects/10/live", "/projects/1/live"), None);
    }
}
