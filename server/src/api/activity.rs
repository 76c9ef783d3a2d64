//! `…/activity_log/` of an organization and of a project (management-api 11):
//! who changed what. There is nothing else to do with an entry but to read it.

use axum::Json;
use axum::extract::State;
use weir_model::activity::{Activity, ActivityQuery, Subject};
use weir_model::errors::FieldError;
use weir_model::pagination::Envelope;
use weir_model::validate;

use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{Authorized, InOrganization, InProject};
use crate::http::guards::ActivityLogRead;
use crate::http::pagination::Listing;

filters! {
    /// Which entries are wanted. A search looks at the newest ten thousand.
    ActivityFilters {
        "scope": OneOf(Subject::WORDS), "Only about this kind of thing.";
        "item_id": Text, "Only about the thing with this id.";
        "user": Uuid, "Only by this user.";
    }
}

/// What was changed in an organization, newest first.
pub async fn list_organization_activity(
    auth: Authorized<ActivityLogRead, InOrganization>,
    State(app): State<App>,
    listing: Listing<ActivityFilters>,
) -> ApiResult<Json<Envelope<Activity>>> {
    let query = query(&listing)?;
    let paged = app.services.activity.of_organization(&auth.ctx, &query, listing.page()).await?;
    Ok(Json(listing.envelope(paged)))
}

/// What was changed of a project, newest first.
pub async fn list_project_activity(
    auth: Authorized<ActivityLogRead, InProject>,
    State(app): State<App>,
    listing: Listing<ActivityFilters>,
) -> ApiResult<Json<Envelope<Activity>>> {
    let query = query(&listing)?;
    let paged = app.services.activity.of_project(&auth.ctx, &query, listing.page()).await?;
    Ok(Json(listing.envelope(paged)))
}

fn query(listing: &Listing<ActivityFilters>) -> Result<ActivityQuery, FieldError> {
    let scope = match listing.param("scope") {
        Some(word) if !Subject::WORDS.contains(&word) => {
            return Err(validate::invalid_choice("scope", &word));
        }
        known => known.map(str::to_owned),
    };
    let wrong = |_| FieldError::new("user", "invalid_input", "Must be a valid UUID.");
    Ok(ActivityQuery {
        scope,
        item_id: listing.param("item_id").map(str::to_owned),
        user: listing.param("user").map(str::parse).transpose().map_err(wrong)?,
        ..ActivityQuery::default()
    })
}
