//! Groups of a project.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use super::persons::{CountsView, TimelineEvent};
#[cfg(feature = "ssr")]
use crate::context::{enter_project, ui_error};
use crate::error::UiError;

/// The sentences in place of members that are not known.
#[cfg(feature = "ssr")]
const UNCOUNTED: &str = "Not shown yet: the events from before the update are being counted.";
#[cfg(feature = "ssr")]
const BEING_READ: &str =
    "Not shown yet: the members are being read. Load the page again in a moment.";

/// A group in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GroupRow {
    pub(crate) group_type: String,
    pub(crate) key: String,
    /// The name in its properties.
    pub(crate) name: Option<String>,
    /// Number of properties.
    pub(crate) properties: usize,
    /// Time when it was first seen.
    pub(crate) first_seen: String,
}

/// A page of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GroupList {
    /// All types of the project.
    pub(crate) types: Vec<String>,
    pub(crate) groups: Vec<GroupRow>,
    /// Whether more groups can exist.
    pub(crate) has_next_page: bool,
    /// Cursor to continue the search, after many groups were read and few matched.
    pub(crate) search_cursor: Option<String>,
}

/// A group in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GroupView {
    /// The name in its properties, else the key.
    pub(crate) name: String,
    /// Properties: name and JSON text.
    pub(crate) properties: Vec<(String, String)>,
    /// Time of its creation. `None`: events name the group, but no event created it.
    pub(crate) first_seen: Option<String>,
    /// Persons with events of the group, or why they are not shown.
    pub(crate) members: Result<MemberList, String>,
    /// Recent events.
    pub(crate) events: Vec<TimelineEvent>,
    /// Whether the group has further events. `None`: the project has more events than are
    /// searched.
    pub(crate) more: Option<bool>,
}

/// Persons with events of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemberList {
    /// Their number.
    pub(crate) count: u64,
    /// Whether that is all of them.
    pub(crate) is_exact: bool,
    /// A page of them, those with most events first: id, name, counts within the group.
    pub(crate) members: Vec<(String, String, CountsView)>,
}

/// Lists groups, of one type or of all, whose key or properties contain a text.
#[server(prefix = "/_fn", endpoint = "list_groups")]
pub(crate) async fn list_groups(
    project: i64,
    // Name of the group type. Empty: all types.
    #[server(default)] group_type: String,
    #[server(default)] search: String,
    limit: u32,
    offset: u32,
    // Cursor of the previous page.
    #[server(default)] after: String,
) -> Result<GroupList, UiError> {
    use weir_model::groups::GroupQuery;
    use weir_service::Error;
    use weir_service::scan::{SCAN_TIME, offset_too_large};

    let (services, project) = enter_project(project).await?;
    let types = services.groups.types(&project).await.map_err(ui_error)?;
    if !group_type.is_empty() && !types.contains(&group_type) {
        return Err(ui_error(Error::NotFound("Not found.")));
    }
    let limit = u64::from(limit.clamp(1, 1000));
    let after = after.parse().ok();
    let query = GroupQuery {
        limit,
        offset: if after.is_some() { 0 } else { u64::from(offset) },
        after,
        group_type: Some(group_type).filter(|group_type| !group_type.is_empty()),
        search: crate::filters::text(&search),
    };
    let step = services.groups.list(&project, &query, SCAN_TIME).await.map_err(ui_error)?;
    if step.next.is_some_and(|(_, offset)| offset > 0) {
        return Err(ui_error(offset_too_large()));
    }
    let is_full = step.found.len() as u64 >= limit;
    let next = step.next.map(|(place, _)| place.to_string());
    let groups = step.found.into_iter().map(|(group_type, group)| {
        let properties = read(&group.properties);
        GroupRow {
            group_type,
            name: name(&properties),
            properties: properties.len(),
            first_seen: group.created_at.to_string(),
            key: group.key,
        }
    });
    Ok(GroupList {
        types,
        groups: groups.collect(),
        has_next_page: next.is_some() && is_full && after.is_none(),
        search_cursor: next.filter(|_| !is_full || after.is_some()),
    })
}

/// Returns a group with data from recent events. Also works for a group that only events
/// name.
#[server(prefix = "/_fn", endpoint = "get_group")]
pub(crate) async fn get_group(
    project: i64,
    group_type: String,
    key: String,
    // The page of the members.
    limit: u32,
    offset: u32,
) -> Result<GroupView, UiError> {
    use weir_model::pagination::Page;
    use weir_service::Error;

    let (services, project) = enter_project(project).await?;
    let index = services.groups.index(&project, &group_type).await.map_err(ui_error)?;
    let found = match services.groups.get(&project, &group_type, &key).await {
        Ok(group) => Some(group),
        Err(Error::NotFound(_)) => None,
        Err(error) => return Err(ui_error(error)),
    };
    let first_seen = found.as_ref().map(|group| group.created_at.to_string());
    let activity = services.groups.activity(&project, index, &key).await.map_err(ui_error)?;
    // None of the events names the group.
    if first_seen.is_none() && activity.events.is_empty() && activity.more == Some(false) {
        return Err(ui_error(Error::NotFound("Not found.")));
    }
    let properties = found.map(|group| read(&group.properties)).unwrap_or_default();
    let page = Page { limit: u64::from(limit.clamp(1, 1000)), offset: u64::from(offset) };
    let members = match services.groups.members(&project, index, &key, page).await {
        Ok(Some(found)) => Ok(MemberList {
            count: found.count as u64,
            is_exact: found.is_complete,
            members: found
                .members
                .into_iter()
                .map(|one| (one.id.to_string(), one.name, CountsView::from(one.counts)))
                .collect(),
        }),
        Ok(None) => Err(UNCOUNTED.to_owned()),
        Err(Error::Unavailable(_)) => Err(BEING_READ.to_owned()),
        Err(error) => return Err(ui_error(error)),
    };
    Ok(GroupView {
        name: name(&properties).unwrap_or(key),
        properties,
        first_seen,
        members,
        events: activity.events.into_iter().map(TimelineEvent::from).collect(),
        more: activity.more,
    })
}

/// Properties sorted by name. Numbers keep the digits that were sent.
fn read(properties: &str) -> Vec<(String, String)> {
    use std::collections::BTreeMap;

    use serde_json::value::RawValue;

    let read: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(properties).unwrap_or_default();
    read.into_iter().map(|(name, value)| (name, crate::ui::json::written(value.get()))).collect()
}

/// The name in the properties of a group.
pub(super) fn name_in(properties: &str) -> Option<String> {
    name(&read(properties))
}

fn name(properties: &[(String, String)]) -> Option<String> {
    let (_, json) = properties.iter().find(|(name, _)| name == "name")?;
    serde_json::from_str::<String>(json).ok().filter(|name| !name.trim().is_empty())
}
