//! The breadcrumb: from the organization to the page. It needs only the address and the
//! names of the navigation, so an object has the name of its kind. Its own name is the
//! heading of its page.

use leptos::prelude::*;

use super::links::{beside_rail, in_rail};
use super::nav_target::NavTarget;

/// Pages that `links` does not name: the end of the path, see [`NavTarget::path_end`], and the
/// name. `*` is any part. The first entry that fits counts.
const NAMES: [(&str, &str); 30] = [
    ("/persons/*", "Person"),
    ("/groups/*", "Group type"),
    ("/groups/*/*", "Group"),
    ("/health/events", "Dropped and altered events"),
    ("/transformations/new", "Add transformation"),
    ("/transformations/try", "Try transformations"),
    ("/transformations/*", "Transformation"),
    ("/exports/new", "New export"),
    ("/exports/*", "Export"),
    ("/exports/*/backfill", "Backfill"),
    ("/exports/*/settings", "Settings"),
    ("/exports/*/logs", "Logs"),
    ("/plugins/new", "Add plugin"),
    ("/plugins/*", "Plugin settings"),
    ("/plugins/*/add", "Add plugin"),
    ("/plugins/*/*", "Plugin"),
    ("/plugins/*/*/source", "Source"),
    ("/domains/*", "Domain"),
    ("/domains/*/token", "Your new SCIM token"),
    ("/account/keys/new", "New API key"),
    ("/account/keys/reveal", "Your new key"),
    ("/account/keys/*", "API key"),
    ("/account/security/two-step", "Set up two-step sign-in"),
    ("/account/security/codes", "Recovery codes"),
    ("/help/*", "Page of the guide"),
    ("/instance", "Instance"),
    ("/instance/organizations", "Organizations of this instance"),
    ("/instance/organizations/*", "Limits of an organization"),
    ("/search", "Search"),
    ("/gallery", "Gallery"),
];

/// A step of the breadcrumb.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Crumb {
    name: String,
    href: String,
}

/// The steps to a page. The last one is the page itself.
pub(super) fn crumbs(target: &NavTarget, path: &str) -> Vec<Crumb> {
    let mut found = Vec::new();
    let rest = target.path_end(path);
    if rest.is_some() {
        if let Some((id, name)) = &target.organization {
            found.push(Crumb { name: name.clone(), href: format!("/organizations/{id}") });
        }
        if let Some((id, name)) = target.project.as_ref().filter(|_| path.starts_with("/projects/"))
        {
            found.push(Crumb { name: name.clone(), href: format!("/projects/{id}") });
        }
        let entry = in_rail().find(|entry| entry.current(target, path).is_some());
        if let Some((entry, href)) = entry.and_then(|entry| Some((entry, entry.href(target)?))) {
            found.push(Crumb { name: entry.label.to_owned(), href });
        }
    }
    let rest = rest.unwrap_or(path);
    let base = path.len() - rest.len();
    let ends = rest.match_indices('/').map(|(at, _)| at).skip(1);
    for end in ends.chain([rest.len()]) {
        if let Some(name) = name_of(&rest[..end]) {
            let href = path[..base + end].to_owned();
            found.push(Crumb { name: name.to_owned(), href });
        }
    }
    if found.is_empty() {
        // Of an object that does not exist, or that the user has no access to.
        found.push(Crumb { name: "Not found".to_owned(), href: path.to_owned() });
    }
    found
}

fn name_of(rest: &str) -> Option<&'static str> {
    let in_links = beside_rail().find(|entry| entry.is_at(rest)).map(|entry| entry.name);
    in_links.or_else(|| NAMES.iter().find(|(end, _)| fits(end, rest)).map(|(_, name)| *name))
}

fn fits(end: &str, rest: &str) -> bool {
    let mut parts = rest.split('/');
    let all = end.split('/').all(|wanted| {
        let given = parts.next();
        given == Some(wanted) || wanted == "*" && given.is_some()
    });
    all && parts.next().is_none()
}

/// The steps as links, and the page itself as text.
#[component]
pub(super) fn Breadcrumb(crumbs: Vec<Crumb>) -> impl IntoView {
    let last = crumbs.len().saturating_sub(1);
    let steps = crumbs
        .into_iter()
        .enumerate()
        .map(|(at, Crumb { name, href })| {
            // Long names are cut.
            let whole = name.clone();
            let step = if at == last {
                view! { <span aria-current="page" title=whole>{name}</span> }.into_any()
            } else {
                view! { <a href=href title=whole>{name}</a> }.into_any()
            };
            view! { <li>{step}</li> }
        })
        .collect_view();
    view! {
        <nav class="crumbs" aria-label="Breadcrumb">
            <ol>{steps}</ol>
        </nav>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::super::nav_target::NavTarget;
    use super::crumbs;
    use crate::server_fns::account::OrganizationNav;

    fn at(path: &str) -> Vec<(String, String)> {
        let organization = OrganizationNav {
            id: "o".to_owned(),
            name: "Upstream Works".to_owned(),
            projects: vec![(1, "Mill race".to_owned())],
        };
        let found = crumbs(&NavTarget::of(&[organization], None, path), path);
        found.into_iter().map(|crumb| (crumb.name, crumb.href)).collect()
    }

    #[test]
    fn steps_lead_from_the_organization_to_the_page() {
        for (path, expected) in [
            ("/projects/1", "Upstream Works, Mill race, Overview"),
            ("/projects/1/persons", "Upstream Works, Mill race, Persons"),
            ("/projects/1/persons/7", "Upstream Works, Mill race, Persons, Person"),
            ("/projects/1/groups/team/a", "Upstream Works, Mill race, Groups, Group type, Group"),
            ("/projects/1/plugins/3", "Upstream Works, Mill race, Plugins, Plugin settings"),
            ("/organizations/o", "Upstream Works, Settings"),
            ("/organizations/o/invites", "Upstream Works, Settings, Invites"),
            ("/organizations/o/exports/e/logs", "Upstream Works, Exports, Export, Logs"),
            (
                "/organizations/o/plugins/import-apps/3/source",
                "Upstream Works, Plugins, Import apps, Plugin, Source",
            ),
            ("/organizations/new", "Organizations, New organization"),
            ("/account/keys/new", "Account, API keys, New API key"),
            ("/projects/9/persons/7", "Not found"),
        ] {
            let names: Vec<String> = at(path).into_iter().map(|(name, _)| name).collect();
            assert_eq!(names.join(", "), expected, "{path}");
        }
        let hrefs: Vec<String> =
            at("/organizations/o/exports/e/logs").into_iter().map(|(_, href)| href).collect();
        let root = "/organizations/o";
        let expected = ["", "/exports", "/exports/e", "/exports/e/logs"];
        assert_eq!(hrefs, expected.map(|end| format!("{root}{end}")));
    }

    #[test]
    fn every_page_in_the_frame_is_the_last_step_of_its_breadcrumb() {
        let framed = include_str!("../app.rs").split("<ParentRoute").nth(1).unwrap();
        let routes = framed.split("path!(\"").skip(2).filter_map(|text| text.split('"').next());
        for route in routes {
            let id = if route.starts_with("/projects") { "1" } else { "o" };
            let path = route.replacen(":id", id, 1).replace(':', "some-");
            let last = at(&path).pop().map(|(_, href)| href);
            assert_eq!(last.as_deref(), Some(path.as_str()), "{route}");
        }
    }
}
