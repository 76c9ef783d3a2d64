//! Event definitions of a project: the event names in use.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use crate::context::{enter_project, ui_error};
use crate::error::UiError;

/// An event name as pages show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EventNameView {
    pub(crate) name: String,
    /// Time when it was first seen.
    pub(crate) first_seen: String,
    /// Time when it was last seen, to the hour.
    pub(crate) last_seen: String,
    /// Number of stored events of the last 30 days, as far as they are counted by name.
    pub(crate) events: u64,
}

#[cfg(feature = "ssr")]
impl From<weir_service::definitions::EventName> for EventNameView {
    fn from(seen: weir_service::definitions::EventName) -> Self {
        Self {
            name: seen.name,
            first_seen: seen.first_at.to_string(),
            last_seen: seen.last_at.to_string(),
            events: seen.events,
        }
    }
}

/// A page of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EventDefinitionList {
    /// Number of names that match the search.
    pub(crate) total: u64,
    pub(crate) names: Vec<EventNameView>,
    /// Number of events that are not counted by name. If there are any, the counts of the
    /// names can be too small.
    pub(crate) others: u64,
    /// Whether further names are not stored.
    pub(crate) is_full: bool,
}

/// An event name with the properties of its newest events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EventDefinitionView {
    pub(crate) seen: EventNameView,
    /// Number of events that are not counted by name.
    pub(crate) others: u64,
    /// Number of newest events that were read.
    pub(crate) read: u64,
    /// Whether reading ended before an event was found.
    pub(crate) is_early: bool,
    /// Whether these events have further properties.
    pub(crate) is_cut: bool,
    pub(crate) properties: Vec<SampledPropertyView>,
}

/// A property of the newest events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SampledPropertyView {
    pub(crate) name: String,
    /// The kinds of its values in words.
    pub(crate) kinds: String,
    /// A value: JSON text. Long texts are truncated.
    pub(crate) sample: String,
    /// How many of the events that were read have it.
    pub(crate) events: u64,
}

/// Lists event names that contain a text.
#[server(prefix = "/_fn", endpoint = "list_event_definitions")]
pub(crate) async fn list_event_definitions(
    project: i64,
    #[server(default)] search: String,
    // The order of `EventOrder::named`.
    #[server(default)] order: String,
    limit: u32,
    offset: u32,
) -> Result<EventDefinitionList, UiError> {
    use weir_model::definitions::EventOrder;
    use weir_model::pagination::Page;

    let (services, project) = enter_project(project).await?;
    let page = Page { limit: limit.clamp(1, 1000).into(), offset: offset.into() };
    let (search, order) = (search.trim(), EventOrder::named(&order));
    let found = services.definitions.names(&project, search, order, page).await;
    let found = found.map_err(ui_error)?;
    Ok(EventDefinitionList {
        total: found.page.count,
        names: found.page.results.into_iter().map(EventNameView::from).collect(),
        others: found.others,
        is_full: found.is_full,
    })
}

/// Returns an event name with the properties of its newest events.
#[server(prefix = "/_fn", endpoint = "get_event_definition")]
pub(crate) async fn get_event_definition(
    project: i64,
    event: String,
) -> Result<EventDefinitionView, UiError> {
    use weir_service::definitions::SampledProperty;

    let (services, project) = enter_project(project).await?;
    let found = services.definitions.event(&project, &event).await.map_err(ui_error)?;
    let property = |property: SampledProperty| SampledPropertyView {
        name: property.name,
        kinds: words(&property.kinds),
        sample: crate::ui::json::written(&property.sample),
        events: property.events,
    };
    Ok(EventDefinitionView {
        seen: found.seen.into(),
        others: found.others,
        read: found.read,
        is_early: found.is_early,
        is_cut: found.is_cut,
        properties: found.properties.into_iter().map(property).collect(),
    })
}

/// The kinds of values in words.
#[cfg(feature = "ssr")]
fn words(kinds: &[weir_model::definitions::PropertyKind]) -> String {
    use weir_model::definitions::PropertyKind;

    if kinds.is_empty() {
        return "No value".to_owned();
    }
    let word = |kind: &PropertyKind| match kind {
        PropertyKind::Text => "Text",
        PropertyKind::Number => "Number",
        PropertyKind::Boolean => "Yes or no",
        PropertyKind::Time => "Date or time",
        PropertyKind::List => "List",
        PropertyKind::Object => "Object",
    };
    kinds.iter().map(word).collect::<Vec<_>>().join(", ")
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use weir_model::definitions::PropertyKind;

    use super::words;

    #[test]
    fn kinds_are_named_in_words() {
        assert_eq!(words(&[PropertyKind::Number, PropertyKind::Text]), "Number, Text");
        assert_eq!(words(&[]), "No value");
    }
}
