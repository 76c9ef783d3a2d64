//! The rail: the current project, links to pages, the account menu.

use leptos::prelude::*;

use super::account_menu::AccountMenu;
use super::links::{EXPORTS, INSIGHTS, NavEntry, PLUGINS, RAIL, TRANSFORMATIONS};
use super::nav_target::NavTarget;
use super::switcher::Switcher;
use super::{Brand, RAIL_ID};
use crate::server_fns::account::{FailingLine, NavFailures, Viewer};
use crate::ui::icon::Icon;
use crate::ui::menu::Menu;
use crate::ui::number::grouped;
use crate::ui::time::to_the_minute;

/// The rail. It is a popover, which the style sheet always shows on wide screens.
#[component]
pub(super) fn Rail(
    viewer: Viewer,
    /// The organization and project of the page.
    target: NavTarget,
    path: String,
    /// What fails in the organization and project.
    failing: NavFailures,
) -> impl IntoView {
    let Viewer { name, email, organizations, staff, .. } = viewer;
    let groups = RAIL
        .into_iter()
        .enumerate()
        .map(|(at, group)| {
            let links = group
                .entries
                .iter()
                .filter_map(|entry| link(*entry, &target, &path, badge(*entry, &failing)))
                .collect_view();
            let id = format!("nav-{at}");
            let title = id.clone();
            view! {
                <div class="nav-group" role="group" aria-labelledby=title>
                    <p class="nav-title" id=id>{group.title}</p>
                    {links}
                </div>
            }
        })
        .collect_view();
    view! {
        <div class="rail" id=RAIL_ID popover="auto">
            <Brand />
            <Menu class="switch" label=label(&target)>
                <Switcher organizations=organizations target=target />
            </Menu>
            <nav class="nav" aria-label="Main">{groups}</nav>
            <AccountMenu name=name email=email staff=staff at=path />
        </div>
    }
    .into_any()
}

/// The names of the current organization and project.
fn label(target: &NavTarget) -> AnyView {
    let organization = target.organization.as_ref().map(|(_, name)| name.clone());
    let project = target.project.as_ref().map(|(_, name)| name.clone());
    view! {
        <span class="switch-label">
            <span class="switch-organization">{organization.unwrap_or_else(|| "No organization".to_owned())}</span>
            <span class="switch-project">{project.unwrap_or_else(|| "No project".to_owned())}</span>
        </span>
    }
    .into_any()
}

/// A red count beside a link.
struct Badge {
    count: u64,
    /// What is counted: one of them, and several.
    what: (&'static str, &'static str),
    /// The title of the link.
    title: String,
}

/// The badge of a page behind which something fails.
fn badge(entry: NavEntry, failing: &NavFailures) -> Option<Badge> {
    let of_configs = || "Failed in the last 24 hours".to_owned();
    let (count, what, title) = if entry == EXPORTS {
        (failing.exports, ("failing export", "failing exports"), reasons(failing))
    } else if entry == TRANSFORMATIONS {
        let what = ("failing transformation", "failing transformations");
        (failing.transformations, what, of_configs())
    } else if entry == PLUGINS {
        let what = ("failing destination or app", "failing destinations or apps");
        (failing.plugins, what, of_configs())
    } else if entry == INSIGHTS {
        let first = failing.first_alerts.iter().map(|name| format!("{name} fires")).collect();
        let what = ("firing alert", "firing alerts");
        (failing.alerts, what, with_more(first, failing.alerts))
    } else {
        return None;
    };
    (count > 0).then_some(Badge { count, what, title })
}

/// A link to a page.
fn link(entry: NavEntry, target: &NavTarget, path: &str, badge: Option<Badge>) -> Option<AnyView> {
    let href = entry.href(target)?;
    let current = entry.current(target, path);
    let title = badge.as_ref().map(|badge| badge.title.clone());
    let badge = badge.map(|Badge { count, what: (one, several), .. }| {
        let what = format!(" {}", if count == 1 { one } else { several });
        view! { <span class="nav-badge">{grouped(count)}<span class="hidden">{what}</span></span> }
    });
    Some(
        view! {
            <a class="nav-link" href=href aria-current=current data-go=entry.letter title=title>
                <Icon name=entry.icon />
                <span>{entry.label}</span>
                {badge}
            </a>
        }
        .into_any(),
    )
}

/// Since when exports fail and why, one export per line.
fn reasons(failing: &NavFailures) -> String {
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
    with_more(failing.first.iter().map(line).collect(), failing.exports)
}

/// The lines of the first, and how many more there are of so many in total.
fn with_more(mut lines: Vec<String>, total: u64) -> String {
    let more = total.saturating_sub(lines.len() as u64);
    if more > 0 {
        lines.push(format!("{} more", grouped(more)));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{
        EXPORTS, FailingLine, INSIGHTS, NavFailures, PLUGINS, TRANSFORMATIONS, badge, reasons,
    };

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
        let first = vec![retried, failed];
        let failing = NavFailures { exports: 4, first, ..NavFailures::default() };
        let expected = [
            "Warehouse: Failing since 2026-08-21 14:05 UTC, next try 2026-08-21 15:00 UTC. \
             TimedOut: No answer.",
            "Lake: Failing since 2026-08-21 14:05 UTC",
            "2 more",
        ];
        assert_eq!(reasons(&failing), expected.join("\n"));
    }

    #[test]
    fn what_fails_is_counted_beside_its_own_page() {
        let (first, first_alerts) = (Vec::new(), vec!["Payments".to_owned()]);
        let failing = NavFailures {
            exports: 1,
            transformations: 2,
            plugins: 3,
            alerts: 4,
            first,
            first_alerts,
        };
        for (entry, count) in [(EXPORTS, 1), (TRANSFORMATIONS, 2), (PLUGINS, 3), (INSIGHTS, 4)] {
            let shown = badge(entry, &failing).map(|badge| badge.count);
            assert_eq!(shown, Some(count), "{}", entry.label);
            assert!(badge(entry, &NavFailures::default()).is_none(), "{}", entry.label);
        }
        let title = badge(INSIGHTS, &failing).map(|badge| badge.title);
        assert_eq!(title.as_deref(), Some("Payments fires\n3 more"));
    }
}
