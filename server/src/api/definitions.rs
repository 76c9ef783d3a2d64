//! `/api/projects/{id}/event_definitions/` and `…/property_definitions/`: the event and
//! property names in use (API-48).

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use weir_model::Timestamp;
use weir_model::definitions::{EventDefinition, PropertyDefinition, PropertyKind, PropertyOwner};
use weir_model::errors::FieldError;
use weir_model::pagination::{Envelope, Paged};

use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{Authorized, InProject};
use crate::http::guards::{EventDefinitionsRead, PropertyDefinitionsRead};
use crate::http::pagination::Listing;

filters! {
    /// Filters for event names.
    EventDefinitionFilters {
        "search": Text, "Only names that contain this.";
    }
}

filters! {
    /// Filters for property names.
    PropertyDefinitionFilters {
        "search": Text, "Only names that contain this.";
        "type": OneOf(&["event", "person", "group"]), "Only properties of these.";
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
            created_at: seen.first_at,
        }
    }
}

/// The event names of a project, in alphabetical order. `search` filters them.
pub async fn list_event_definitions(
    auth: Authorized<EventDefinitionsRead, InProject>,
    State(app): State<App>,
    listing: Listing<EventDefinitionFilters>,
) -> ApiResult<Json<Envelope<EventDefinitionAnswer>>> {
    let search = listing.param("search").unwrap_or_default();
    let found = app.services.definitions.events(&auth.ctx, search, listing.page()).await?;
    let results = found.results.into_iter().map(EventDefinitionAnswer::from).collect();
    Ok(Json(listing.envelope(Paged { count: found.count, results })))
}

/// The property names of a project, in alphabetical order. `search` and `type` filter
/// them.
pub async fn list_property_definitions(
    auth: Authorized<PropertyDefinitionsRead, InProject>,
    State(app): State<App>,
    listing: Listing<PropertyDefinitionFilters>,
) -> ApiResult<Json<Envelope<PropertyDefinitionAnswer>>> {
    let search = listing.param("search").unwrap_or_default();
    let owner = listing.param("type").filter(|owner| !owner.is_empty()).map(|owner| {
        owner.parse::<PropertyOwner>().map_err(|_| {
            let detail = format!("\"{owner}\" is not a valid choice.");
            FieldError::new("type", "invalid_choice", detail)
        })
    });
    let owner = owner.transpose()?;
    let definitions = &app.services.definitions;
    let found = definitions.properties(&auth.ctx, owner, search, listing.page()).await?;
    let results = found.results.into_iter().map(PropertyDefinitionAnswer::from).collect();
    Ok(Json(listing.envelope(Paged { count: found.count, results })))
}
