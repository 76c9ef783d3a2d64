//! The breadcrumb: from the organization to the page. Most steps have their names from the
//! address and the navigation; the name of an object is loaded.

use leptos::prelude::*;

use super::links::{beside_rail, in_rail};
use super::nav_target::NavTarget;
use crate::local_path::decode_part;

/// Pages that `links` does not name: the end of the path, see [`NavTarget::path_end`], and the
/// name. `*` is any part. The first entry that fits counts. If its last part is any, it is the
/// page of an object, and the name is that of an object without one.
const NAMES: [(&str, &str); 43] = [
    ("/insights/new", "New insight"),
    ("/insights/persons", "Persons behind a number"),
    ("/insights/*", "Insight"),
    ("/insights/*/dashboards", "Dashboards"),
    ("/insights/*/alerts", "Alerts"),
    ("/insights/*/subscriptions", "Subscriptions"),
    ("/dashboards/new", "New dashboard"),
    ("/dashboards/*", "Dashboard"),
    ("/dashboards/*/subscriptions", "Subscriptions"),
    ("/dashboards/*/settings", "Settings"),
    ("/dashboards/*/sharing", "Sharing"),
    ("/dashboards/*/sharing/link", "Your new share link"),
    ("/definitions/*", "Event definition"),
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
    ("/plugins/*/add", "Add"),
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

/// Objects whose name is the last part of their address.
const NAMED_BY_ADDRESS: [&str; 2] = ["/definitions/*", "/groups/*"];

/// Where the name of a step comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The kind of the page.
    Kind,
    /// The last part of the address.
    Address,
    /// The object of the page.
    Object,
}

/// A step of the breadcrumb.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Crumb {
    name: String,
    href: String,
}

/// The address of the object in the address of a page, if its name has to be loaded. Empty
/// without one.
pub(super) fn object_of(path: &str) -> &str {
    let within = ["/projects/", "/organizations/"].into_iter().find_map(|begin| {
        let rest = path.strip_prefix(begin)?;
        Some(begin.len() + rest.find('/').unwrap_or(rest.len()))
    });
    let base = within.unwrap_or(0);
    let rest = &path[base..];
    let is_object =
        |end: &usize| name_of(&rest[..*end]).is_some_and(|(_, from)| from == Source::Object);
    ends(rest).find(is_object).map_or("", |end| &path[..base + end])
}

/// The ends of the steps in the end of an address.
fn ends(rest: &str) -> impl Iterator<Item = usize> {
    rest.match_indices('/').map(|(at, _)| at).skip(1).chain([rest.len()])
}

/// The steps to a page. The last one is the page itself. `object` is the name of the object of
/// the address, see [`object_of`].
pub(super) fn crumbs(target: &NavTarget, path: &str, object: Option<&str>) -> Vec<Crumb> {
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
    for end in ends(rest) {
        let step = &rest[..end];
        if let Some((kind, from)) = name_of(step) {
            let name = match from {
                Source::Kind => kind.to_owned(),
                Source::Address => decode_part(step.rsplit('/').next().unwrap_or(kind)),
                Source::Object => object.unwrap_or(kind).to_owned(),
            };
            found.push(Crumb { name, href: path[..base + end].to_owned() });
        }
    }
    if found.is_empty() {
        // Of an object that does not exist, or that the user has no access to.
        found.push(Crumb { name: "Not found".to_owned(), href: path.to_owned() });
    }
    found
}

/// The name of the kind of a page, and where the name of the step comes from.
fn name_of(rest: &str) -> Option<(&'static str, Source)> {
    if let Some(entry) = beside_rail().find(|entry| entry.is_at(rest)) {
        return Some((entry.name, Source::Kind));
    }
    let (end, name) = NAMES.into_iter().find(|(end, _)| fits(end, rest))?;
    let from = if NAMED_BY_ADDRESS.contains(&end) {
        Source::Address
    } else if end.ends_with("/*") {
        Source::Object
    } else {
        Source::Kind
    };
    Some((name, from))
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
    use super::{crumbs, object_of};
    use crate::server_fns::account::OrganizationNav;

    fn at(path: &str, object: Option<&str>) -> Vec<(String, String)> {
        let organization = OrganizationNav {
            id: "o".to_owned(),
            name: "Upstream Works".to_owned(),
            projects: vec![(1, "Mill race".to_owned())],
        };
        let found = crumbs(&NavTarget::of(&[organization], None, path), path, object);
        found.into_iter().map(|crumb| (crumb.name, crumb.href)).collect()
    }

    #[test]
    fn steps_lead_from_the_organization_to_the_page() {
        for (path, expected) in [
            ("/projects/1", "Upstream Works, Mill race, Overview"),
            ("/projects/1/persons", "Upstream Works, Mill race, Persons"),
            ("/projects/1/persons/7", "Upstream Works, Mill race, Persons, Person"),
            ("/projects/1/groups/team/a", "Upstream Works, Mill race, Groups, team, Group"),
            (
                "/projects/1/definitions/a%2Fb%20c",
                "Upstream Works, Mill race, Event definitions, a/b c",
            ),
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
            let names: Vec<String> = at(path, None).into_iter().map(|(name, _)| name).collect();
            assert_eq!(names.join(", "), expected, "{path}");
        }
        let hrefs: Vec<String> =
            at("/organizations/o/exports/e/logs", None).into_iter().map(|(_, href)| href).collect();
        let root = "/organizations/o";
        let expected = ["", "/exports", "/exports/e", "/exports/e/logs"];
        assert_eq!(hrefs, expected.map(|end| format!("{root}{end}")));
    }

    #[test]
    fn an_object_has_its_own_name() {
        for (path, object, expected) in [
            ("/projects/1/persons/7", "/projects/1/persons/7", "Persons, It"),
            ("/projects/1/groups/a/b", "/projects/1/groups/a/b", "Groups, a, It"),
            ("/projects/1/plugins/3", "/projects/1/plugins/3", "Plugins, It"),
            ("/organizations/o/exports/e/logs", "/organizations/o/exports/e", "Exports, It, Logs"),
            (
                "/organizations/o/plugins/import-apps/3/source",
                "/organizations/o/plugins/import-apps/3",
                "Plugins, Import apps, It, Source",
            ),
            ("/account/keys/7", "/account/keys/7", "Account, API keys, It"),
            ("/help/sign-in", "/help/sign-in", "Help, It"),
            ("/projects/1/insights/abcdefgh", "/projects/1/insights/abcdefgh", "Insights, It"),
            ("/projects/1/insights/new", "", "Insights, New insight"),
            ("/projects/1/insights/persons", "", "Insights, Persons behind a number"),
            (
                "/projects/1/dashboards/3/sharing",
                "/projects/1/dashboards/3",
                "Insights, Dashboards, It, Sharing",
            ),
            ("/projects/1/transformations/new", "", "Transformations, Add transformation"),
            ("/projects/1/groups/a", "", "Groups, a"),
            ("/organizations/o/plugins/destinations", "", "Plugins, Destinations"),
            ("/organizations/new", "", "Organizations, New organization"),
        ] {
            assert_eq!(object_of(path), object, "{path}");
            let names = at(path, Some("It")).into_iter().map(|(name, _)| name);
            let all = names.collect::<Vec<_>>().join(", ");
            assert!(all.ends_with(expected), "{path}: {all}");
        }
    }

    #[test]
    fn every_page_in_the_frame_is_the_last_step_of_its_breadcrumb() {
        let framed = include_str!("../app.rs").split("<ParentRoute").nth(1).unwrap();
        let routes = framed.split("path!(\"").skip(2).filter_map(|text| text.split('"').next());
        for route in routes {
            let id = if route.starts_with("/projects") { "1" } else { "o" };
            let path = route.replacen(":id", id, 1).replace(':', "some-");
            let last = at(&path, None).pop().map(|(_, href)| href);
            assert_eq!(last.as_deref(), Some(path.as_str()), "{route}");
        }
    }
}
