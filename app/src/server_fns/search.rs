//! Search for pages and objects by name.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use crate::context::{enter, ui_error};
use crate::error::UiError;
use crate::local_path::encode;

/// A group of results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FoundGroup {
    /// The kind of its results, such as Projects.
    pub(crate) title: String,
    /// The results.
    pub(crate) found: Vec<Found>,
}

/// One result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Found {
    /// The name of the page or object.
    pub(crate) name: String,
    /// Name of its organization or project. Can be empty.
    pub(crate) within: String,
    /// The address of its page.
    pub(crate) href: String,
}

/// Searches for objects whose names contain all words of the text, grouped by kind.
/// Without a text it returns all pages.
#[server(prefix = "/_fn", endpoint = "search")]
pub(crate) async fn search(q: String) -> Result<Vec<FoundGroup>, UiError> {
    use weir_service::search::{Kind, Wanted};

    let (services, ctx) = enter()?;
    let wanted = Wanted::new(&q);
    let me = services.users.me(&ctx).await.map_err(ui_error)?;
    let project = me.team.as_ref().map(|team| (team.id.0, team.name.clone()));
    let organization =
        me.organization.as_ref().map(|one| (one.row.id.to_string(), one.row.name.clone()));
    let mut groups = vec![pages(&wanted, organization.as_ref(), project.as_ref())];
    let mut of_kind: Vec<(&str, Vec<Found>)> =
        ["Projects", "Organizations", "Members", "Exports", "Plugins"]
            .map(|t| (t, Vec::new()))
            .into();
    for hit in services.search.find(&ctx, &wanted).await.map_err(ui_error)? {
        let home = format!("/organizations/{}", hit.organization);
        let (kind, href): (usize, String) = match hit.kind {
            Kind::Project(id) => (0, format!("/projects/{id}/live")),
            Kind::Organization => (1, home),
            Kind::Member => (2, format!("{home}/members?search={}", encode(address(&hit.name)))),
            Kind::Export(id) => (3, format!("{home}/exports/{id}")),
            Kind::Plugin(group, id) => (4, format!("{home}/plugins/{}/{id}", segment(group))),
        };
        let within = if kind == 1 { String::new() } else { hit.organization_name };
        of_kind[kind].1.push(Found { name: hit.name, within, href });
    }
    groups.extend(
        of_kind.into_iter().map(|(title, found)| FoundGroup { title: title.to_owned(), found }),
    );
    groups.retain(|group| !group.found.is_empty());
    Ok(groups)
}

/// The pages whose names match. All pages without a text.
#[cfg(feature = "ssr")]
fn pages(
    wanted: &weir_service::search::Wanted,
    organization: Option<&(String, String)>,
    project: Option<&(i64, String)>,
) -> FoundGroup {
    let fitting = crate::frame::links::all().filter(|goal| wanted.fits(goal.label));
    let found = fitting.filter_map(|goal| {
        let id = organization.map(|(id, _)| id.as_str());
        let href = goal.at(id, project.map(|(id, _)| *id))?;
        let within = if href.starts_with("/projects/") {
            project.map(|(_, name)| name.clone())
        } else if goal.is_of_organization() {
            organization.map(|(_, name)| name.clone())
        } else {
            None
        };
        Some(Found { name: goal.label.to_owned(), within: within.unwrap_or_default(), href })
    });
    FoundGroup { title: "Pages".to_owned(), found: found.collect() }
}

/// The e-mail address of a found member. It is in parentheses after the name.
fn address(name: &str) -> &str {
    let bracketed = name.rsplit_once(" (").and_then(|(_, rest)| rest.strip_suffix(')'));
    bracketed.unwrap_or(name)
}

/// The name of a plugin list in addresses.
fn segment(group: weir_model::plugins::Group) -> &'static str {
    use weir_model::plugins::Group;

    match group {
        Group::Destinations => "destinations",
        Group::FrontendApps => "frontend-apps",
        Group::ImportApps => "import-apps",
    }
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn members_are_found_by_their_address() {
        for (name, expected) in [
            ("Ada (ada@mail.example)", "ada@mail.example"),
            ("Ada (the first) Lovelace (a+l@mail.example)", "a+l@mail.example"),
            (" (ada@mail.example)", "ada@mail.example"),
            ("Ada", "Ada"),
        ] {
            assert_eq!(address(name), expected);
        }
    }
}
