//! `DELETE /api/projects/{id}/persons/{id}/` and `…/erasure/`: erasing a person (API-59).

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;
use weir_model::Timestamp;
use weir_model::erasures::Erasure;
use weir_model::errors::FieldError;
use weir_model::ids::{PersonId, UserId};

use super::person_id;
use crate::api::Accepted;
use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{Authorized, InProject, PathParams};
use crate::http::guards::{PersonsRead, PersonsWrite};
use crate::http::pagination::Params;

const DELETE_EVENTS: &str = "delete_events";
const TRUE: &str = "true";

filters! {
    /// How a person is deleted.
    ErasureFilters {
        "delete_events": OneOf(&["true", "false"]), "Whether the events of the person are deleted too; `false` if it is missing.";
    }
}

/// The erasure of a person.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Erasure)]
pub struct ErasureAnswer {
    /// Id of the erasure.
    pub id: Uuid,
    /// The deleted person. Later events of its distinct ids may make a person with the same
    /// id.
    pub person: PersonId,
    /// Whether the events of the person are deleted too.
    pub delete_events: bool,
    /// `pending`: files have data that is not shown any more. `clearing`: older files are
    /// being removed. `failed`: the last attempt failed, and is repeated. `done`: no file of
    /// the data directory has data of the person.
    pub state: String,
    /// When it was requested.
    pub requested_at: Timestamp,
    /// The user who requested it.
    pub requested_by: UserId,
    /// The number of distinct ids of the person.
    pub distinct_ids: u64,
    /// The number of files of events that may still have events of the person.
    pub segments_left: u64,
    /// The number of events that were removed.
    pub events_removed: u64,
    /// The number of dropped and altered events of which only time and reason are kept.
    pub samples_removed: u64,
    /// When the last stored event was removed; null: some are left.
    pub stored_at: Option<Timestamp>,
    /// When the last byte was removed; null: some are left.
    pub done_at: Option<Timestamp>,
    /// Why the last attempt failed; null: it did not.
    pub failure: Option<String>,
}

/// The last erasure of a person.
#[derive(Debug, Serialize, ToSchema)]
pub struct LastErasure {
    /// The erasure; null: the person was never deleted.
    pub erasure: Option<ErasureAnswer>,
}

impl From<Erasure> for ErasureAnswer {
    fn from(erasure: Erasure) -> Self {
        Self {
            id: erasure.id,
            person: erasure.person,
            delete_events: erasure.deletes_events,
            state: erasure.state().text().to_owned(),
            requested_at: erasure.requested_at,
            requested_by: erasure.requested_by,
            distinct_ids: erasure.distinct_ids,
            segments_left: erasure.segments_left,
            events_removed: erasure.events,
            samples_removed: erasure.samples,
            stored_at: erasure.stored_at,
            done_at: erasure.done_at,
            failure: erasure.failure,
        }
    }
}

/// Delete a person, with or without its events. Nothing of it is shown any more when this is
/// answered; its data is removed in the background. Repeated, it answers with the same
/// erasure.
pub async fn delete_person(
    auth: Authorized<PersonsWrite, InProject>,
    State(app): State<App>,
    path: PathParams,
    params: Params<ErasureFilters>,
) -> ApiResult<Accepted<ErasureAnswer>> {
    let id = person_id(&path)?;
    let deletes_events = match params.param(DELETE_EVENTS) {
        None | Some("" | "false") => false,
        Some(TRUE) => true,
        Some(_) => {
            let detail = "Must be `true` or `false`.";
            return Err(FieldError::new(DELETE_EVENTS, "invalid_input", detail).into());
        }
    };
    let erasure = app.services.persons.erase(&auth.ctx, id, deletes_events).await?;
    Ok(Accepted(erasure.into()))
}

/// How far the last deletion of a person is.
pub async fn get_person_erasure(
    auth: Authorized<PersonsRead, InProject>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Json<LastErasure>> {
    let id = person_id(&path)?;
    let erasure = app.services.persons.erasure(&auth.ctx, id).await?;
    Ok(Json(LastErasure { erasure: erasure.map(ErasureAnswer::from) }))
}
