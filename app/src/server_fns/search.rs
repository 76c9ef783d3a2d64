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

/// How long persons are searched. The result says if that was not long enough.
#[cfg(feature = "ssr")]
const PERSONS_TIME: std::time::Duration = std::time::Duration::from_millis(200);

/// The maximum number of characters of a text. The rest is ignored.
#[cfg(feature = "ssr")]
const TEXT_CHARS: usize = 200;

/// Searches for objects whose names contain all words of the text, grouped by kind.
/// Without a text it returns all pages. Persons and events are those of the current
/// project.
#[server(prefix = "/_fn", endpoint = "search")]
pub(crate) async fn search(q: String) -> Result<Vec<FoundGroup>, UiError> {
    use weir_service::search::{Kind, SearchWords};

    let (services, ctx) = enter()?;
    let q: String = q.chars().take(TEXT_CHARS).collect();
    let wanted = SearchWords::new(&q);
    let me = services.users.me(&ctx).await.map_err(ui_error)?;
    let project = me.team.as_ref().map(|team| (team.id.0, team.name.clone()));
    let organization =
        me.organization.as_ref().map(|one| (one.row.id.to_string(), one.row.name.clone()));
    let mut groups = vec![pages(&wanted, organization.as_ref(), project.as_ref())];
    if let Some((id, name)) = project.filter(|_| !wanted.is_empty())
        // Nothing is found in a project that the user may not enter now.
        && let Ok(entered) = services.projects.enter(&ctx, &id.to_string()).await
    {
        let found = persons(&services, &entered, (id, name.as_str()), q.trim()).await?;
        groups.push(FoundGroup { title: "Persons".to_owned(), found });
        let found = events(&services, &entered, (id, name.as_str()), &wanted).await?;
        groups.push(FoundGroup { title: "Events".to_owned(), found });
    }
    let mut of_kind: Vec<(&str, Vec<Found>)> =
        ["Projects", "Organizations", "Members", "Exports", "Plugins"]
            .map(|t| (t, Vec::new()))
            .into();
    for hit in services.search.find(&ctx, &wanted).await.map_err(ui_error)? {
        let home = format!("/organizations/{}", hit.organization);
        let (kind, href): (usize, String) = match hit.kind {
            Kind::Project(id) => (0, format!("/projects/{id}")),
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

/// The first persons whose name, e-mail address or distinct id contains the text. If there
/// can be more, the last result leads to them.
#[cfg(feature = "ssr")]
async fn persons(
    services: &weir_service::Services,
    project: &weir_service::ProjectCtx,
    (id, within): (i64, &str),
    text: &str,
) -> Result<Vec<Found>, UiError> {
    use weir_model::persons::PersonQuery;
    use weir_service::persons::display_name;
    use weir_service::search::MOST;

    let query = PersonQuery {
        limit: MOST as u64,
        offset: 0,
        after: None,
        distinct_id: None,
        search: Some(text.to_owned()),
    };
    let step = services.persons.list(project, &query, PERSONS_TIME).await.map_err(ui_error)?;
    let root = format!("/projects/{id}/persons");
    let found = |name, href| Found { name, within: within.to_owned(), href };
    let mut persons: Vec<Found> = step
        .found
        .iter()
        .map(|person| found(display_name(person), format!("{root}/{}", person.id)))
        .collect();
    if step.next.is_some() {
        let all = format!("{root}?q={}", encode(text));
        persons.push(found(format!("All persons with \u{201c}{text}\u{201d}"), all));
    }
    Ok(persons)
}

/// The first events by name.
#[cfg(feature = "ssr")]
async fn events(
    services: &weir_service::Services,
    project: &weir_service::ProjectCtx,
    (id, within): (i64, &str),
    wanted: &weir_service::search::SearchWords,
) -> Result<Vec<Found>, UiError> {
    use weir_model::pagination::Page;
    use weir_service::search::MOST;

    let all = Page { limit: u64::MAX, offset: 0 };
    let seen = services.definitions.events(project, "", all).await.map_err(ui_error)?;
    let fitting = seen.results.into_iter().filter(|seen| wanted.fits(&seen.name)).take(MOST);
    let found = |seen: weir_model::definitions::EventDefinition| Found {
        href: format!("/projects/{id}/events?event={}", encode(&seen.name)),
        name: seen.name,
        within: within.to_owned(),
    };
    Ok(fitting.map(found).collect())
}

/// The pages whose names match. All pages without a text.
#[cfg(feature = "ssr")]
fn pages(
    wanted: &weir_service::search::SearchWords,
    organization: Option<&(String, String)>,
    project: Option<&(i64, String)>,
) -> FoundGroup {
    let fitting = crate::frame::links::all().filter(|entry| wanted.fits(entry.name));
    let found = fitting.filter_map(|entry| {
        let id = organization.map(|(id, _)| id.as_str());
        let href = entry.at(id, project.map(|(id, _)| *id))?;
        let within = if href.starts_with("/projects/") {
            project.map(|(_, name)| name.clone())
        } else if entry.is_of_organization() {
            organization.map(|(_, name)| name.clone())
        } else {
            None
        };
        Some(Found { name: entry.name.to_owned(), within: within.unwrap_or_default(), href })
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
