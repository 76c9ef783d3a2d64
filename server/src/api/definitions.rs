//! `/api/projects/{id}/event_definitions/` and `…/property_definitions/`: the event and
//! property names in use (API-48).

use std::collections::HashSet;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use weir_model::definitions::{
    EventColumn, EventDefinition, EventOrder, PropertyDefinition, PropertyKind, PropertyOwner,
};
use weir_model::errors::FieldError;
use weir_model::pagination::{Envelope, Paged};
use weir_model::{Timestamp, validate};
use weir_service::definitions::{EventFilter, ListedProperty, PropertyFilter};

use super::insights::{FLAGS, flag};
use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{Authorized, InProject};
use crate::http::guards::{EventDefinitionsRead, PropertyDefinitionsRead};
use crate::http::pagination::Listing;

/// Most event names of a question for the properties that their events have.
const EVENT_NAMES_MAX: usize = 20;

filters! {
    /// Filters for event names.
    EventDefinitionFilters {
        "search": Text, "Only names that contain this.";
        "event_type": OneOf(&["event", "event_custom", "event_posthog"]), "Only names that do not begin with `$`, or only those that do; `event`: both.";
        "names": Text, "Only these names, with commas or given several times.";
        "ordering": Text, "`name`, `created_at` or `last_seen_at`, with `-` before it if the largest comes first. Of several words, the first one that is known counts.";
    }
}

filters! {
    /// Filters for property names.
    PropertyDefinitionFilters {
        "search": Text, "Only names that contain this.";
        "type": OneOf(&["event", "person", "group"]), "Only properties of these.";
        "properties": Text, "Only these names, with commas or given several times.";
        "excluded_properties": Text, "No names of this list, which is JSON.";
        "is_numerical": OneOf(FLAGS), "Only properties with this value of `is_numerical`.";
        "is_feature_flag": OneOf(FLAGS), "Only names that begin with `$feature/`, or only others.";
        "event_names": Text, "Event names, a list of JSON with at most 20 texts: sets `is_seen_on_filtered_events`.";
        "filter_by_event_names": OneOf(FLAGS), "Whether properties of events whose `is_seen_on_filtered_events` is false are skipped.";
    }
}

/// An event name of a project.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EventDefinition)]
pub struct EventDefinitionAnswer {
    /// The name, as it was sent.
    pub name: String,
    /// When the event was first seen.
    pub created_at: Timestamp,
    /// When the event was last seen, to the hour.
    pub last_seen_at: Timestamp,
}

/// A property name of a project.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PropertyDefinition)]
pub struct PropertyDefinitionAnswer {
    /// The name, as it was sent.
    pub name: String,
    /// The kind of object with the property: `event`, `person` or `group`.
    #[serde(rename = "type")]
    pub owner: &'static str,
    /// The type of the first value: `String`, `Numeric`, `Boolean`, `DateTime`, `Array`
    /// or `Object`.
    pub property_type: &'static str,
    /// Whether the type is `Numeric`.
    pub is_numerical: bool,
    /// Whether one of the newest events with a name of `event_names` has the property; null
    /// without `event_names`, and for properties of persons and groups.
    pub is_seen_on_filtered_events: Option<bool>,
    /// When the property was first seen.
    pub created_at: Timestamp,
}

impl From<EventDefinition> for EventDefinitionAnswer {
    fn from(seen: EventDefinition) -> Self {
        Self { name: seen.name, created_at: seen.first_at, last_seen_at: seen.last_at }
    }
}

impl From<PropertyDefinition> for PropertyDefinitionAnswer {
    fn from(seen: PropertyDefinition) -> Self {
        Self {
            name: seen.name,
            owner: seen.owner.text(),
            property_type: seen.kind.text(),
            is_numerical: seen.kind == PropertyKind::Number,
            is_seen_on_filtered_events: None,
            created_at: seen.first_at,
        }
    }
}

impl From<ListedProperty> for PropertyDefinitionAnswer {
    fn from(listed: ListedProperty) -> Self {
        let ListedProperty { definition, is_seen } = listed;
        Self { is_seen_on_filtered_events: is_seen, ..Self::from(definition) }
    }
}

/// The event names of a project, in alphabetical order unless `ordering` says another one.
pub async fn list_event_definitions(
    auth: Authorized<EventDefinitionsRead, InProject>,
    State(app): State<App>,
    listing: Listing<EventDefinitionFilters>,
) -> ApiResult<Json<Envelope<EventDefinitionAnswer>>> {
    let filter = EventFilter {
        search: listing.param("search").unwrap_or_default(),
        names: listing.words("names").collect(),
        is_of_library: is_of_library(listing.param("event_type").unwrap_or_default())?,
    };
    let order = listing.words("ordering").find_map(order).unwrap_or_default();
    let definitions = &app.services.definitions;
    let found = definitions.filtered_events(&auth.ctx, &filter, order, listing.page()).await?;
    let results = found.results.into_iter().map(EventDefinitionAnswer::from).collect();
    Ok(Json(listing.envelope(Paged { count: found.count, results })))
}

/// The property names of a project, in alphabetical order. With `event_names`, the newest
/// 50 events of each of these names say which properties they have, as far as they are read
/// within a second.
pub async fn list_property_definitions(
    auth: Authorized<PropertyDefinitionsRead, InProject>,
    State(app): State<App>,
    listing: Listing<PropertyDefinitionFilters>,
) -> ApiResult<Json<Envelope<PropertyDefinitionAnswer>>> {
    let text = |name: &str| listing.param(name).filter(|text| !text.is_empty());
    let owner = text("type").map(|word| {
        word.parse::<PropertyOwner>().map_err(|_| validate::invalid_choice("type", &word))
    });
    let is = |name: &str| text(name).map(|word| flag(name, word)).transpose();
    let seen_in = json_texts(text("event_names"), "event_names")?;
    validate::list_length("event_names", seen_in.len(), EVENT_NAMES_MAX)?;
    let excluded = json_texts(text("excluded_properties"), "excluded_properties")?;
    let filter = PropertyFilter {
        owner: owner.transpose()?,
        search: listing.param("search").unwrap_or_default(),
        names: listing.words("properties").collect(),
        excluded: HashSet::from_iter(excluded),
        is_numerical: is("is_numerical")?,
        is_feature_flag: is("is_feature_flag")?,
        seen_in,
        is_seen_only: is("filter_by_event_names")?.unwrap_or(false),
    };
    let definitions = &app.services.definitions;
    let found = definitions.filtered_properties(&auth.ctx, &filter, listing.page()).await?;
    let results = found.results.into_iter().map(PropertyDefinitionAnswer::from).collect();
    Ok(Json(listing.envelope(Paged { count: found.count, results })))
}

/// Whether only names that begin with `$` are listed, or only others. Names of actions,
/// which `all` and `action_event` ask for too, do not exist.
fn is_of_library(event_type: &str) -> Result<Option<bool>, FieldError> {
    match event_type {
        "" | "event" | "all" | "action_event" => Ok(None),
        "event_custom" => Ok(Some(false)),
        "event_posthog" => Ok(Some(true)),
        _ => Err(validate::invalid_choice("event_type", &event_type)),
    }
}

/// The order with this name.
fn order(word: &str) -> Option<EventOrder> {
    let (column, is_descending) = match word.strip_prefix('-') {
        Some(column) => (column, true),
        None => (word, false),
    };
    let by = match column {
        "name" => EventColumn::Name,
        "created_at" => EventColumn::FirstSeen,
        "last_seen_at" => EventColumn::LastSeen,
        _ => return None,
    };
    Some(EventOrder { by, is_descending })
}

/// The texts of a list that is JSON.
fn json_texts(list: Option<&str>, attr: &str) -> Result<Vec<String>, FieldError> {
    let Some(list) = list else { return Ok(Vec::new()) };
    let wrong = |_| FieldError::new(attr, "invalid_input", "Must be a JSON list of texts.");
    serde_json::from_str(list).map_err(wrong)
}
