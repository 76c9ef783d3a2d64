//! The rail: the current project, search, links to pages, the account menu.

use leptos::html;
use leptos::prelude::*;

use super::account_menu::AccountMenu;
use super::here::Here;
use super::links::{EXPORTS, Goal, RAIL};
use super::switcher::Switcher;
use crate::server_fns::account::{FailingLine, FailingNav, Viewer};
use crate::ui::icon::Icon;
use crate::ui::menu::Menu;
use crate::ui::number::grouped;
use crate::ui::time::to_the_minute;

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
    /// The failing exports of the organization.
    failing: FailingNav,
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
                    let failing =
                        if *goal == EXPORTS { failing.clone() } else { FailingNav::default() };
                    Some(view! { <NavLink at=path.clone() href=href goal=*goal failing=failing /> })
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
fn NavLink(
    at: String,
    href: String,
    goal: Goal,
    /// Failing exports behind the link.
    failing: FailingNav,
) -> impl IntoView {
    let current = current(&at, &href);
    let badge = failing.count;
    let title = (badge > 0).then(|| reasons(&failing));
    let badge = (badge > 0).then(|| {
        let what = if badge == 1 { " failing export" } else { " failing exports" };
        view! { <span class="nav-badge">{grouped(badge)}<span class="hidden">{what}</span></span> }
    });
    view! {
        <a class="nav-link" href=href aria-current=current data-go=goal.letter title=title>
            <Icon name=goal.icon />
            <span>{goal.label}</span>
            {badge}
        </a>
    }
    .into_any()
}

/// Since when exports fail and why, one export per line.
fn reasons(failing: &FailingNav) -> String {
    let line = |export: &FailingLine| {
        let FailingLine { name, since, next_try, error } = export;
        let next =
            next_try.as_deref().map(|next| format!(", next try {}", to_the_minute(next, false)));
        let error = error.as_deref().map(|error| format!(". {error}"));
        let since = to_the_minute(since, false);
        format!(
            "{name}: Failing since {since}{}{}",
            next.unwrap_or_default(),
            error.unwrap_or_default()
        )
    };
    let mut lines: Vec<String> = failing.first.iter().map(line).collect();
    let more = failing.count.saturating_sub(lines.len() as u64);
    if more > 0 {
        lines.push(format!("{} more", grouped(more)));
    }
    lines.join("\n")
}

/// The value of `aria-current`: `page` for the page itself, `true` for a page below it.
pub(super) fn current(at: &str, href: &str) -> Option<&'static str> {
    let below = at.strip_prefix(href).is_some_and(|rest| rest.starts_with('/'));
    if at == href { Some("page") } else { below.then_some("true") }
}

#[cfg(test)]
mod tests {
    use super::{FailingLine, FailingNav, current, reasons};

    #[test]
    fn a_failing_export_has_its_time_its_next_try_and_its_reason() {
        let retried = FailingLine {
            name: "Warehouse".to_owned(),
            since: "2026-08-21T14:05:09Z".to_owned(),
            next_try: Some("2026-08-21T15:00:00Z".to_owned()),
            error: Some("TimedOut: No answer.".to_owned()),
        };
        let failed =
            FailingLine { name: "Lake".to_owned(), next_try: None, error: None, ..retried.clone() };
        let failing = FailingNav { count: 4, first: vec![retried, failed] };
        let expected = [
            "Warehouse: Failing since 2026-08-21 14:05 UTC, next try 2026-08-21 15:00 UTC. \
             TimedOut: No answer.",
            "Lake: Failing since 2026-08-21 14:05 UTC",
            "2 more",
        ];
        assert_eq!(reasons(&failing), expected.join("\n"));
    }

    #[test]
    fn pages_below_count() {
        assert_eq!(current("/projects/1/live", "/projects/1/live"), Some("page"));
        assert_eq!(current("/account/keys/new", "/account/keys"), Some("true"));
        assert_eq!(current("/projects/10/live", "/projects/1/live"), None);
    }
}
