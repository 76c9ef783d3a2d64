//! `/api/projects/{id}/persons/`: the persons that events are about (API-47).

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use weir_model::Timestamp;
use weir_model::errors::FieldError;
use weir_model::ids::PersonId;
use weir_model::persons::{PersonQuery, PersonRef};
use weir_service::persons::Persons;
use weir_service::scan::ScanStep;
use weir_service::{Error as ServiceError, ProjectCtx, error, persons};

use super::scanned_list::{BatchRequest, ScanPage, ScannedList};
use super::stored_object;
use super::streamed::Streamed;
use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{Authorized, InProject, PathParams};
use crate::http::guards::PersonsRead;
use crate::http::pagination::Listing;

filters! {
    /// Filters for persons.
    PersonFilters {
        "after": Uuid, "Where the page before ended; from `next`.";
        "distinct_id": Text, "Only the person that this id leads to.";
        "search": Text, "Only persons with this in a distinct id, the name or the address, or with a property of this value, as `plan=pro`.";
    }
}

/// One page of persons.
#[derive(Debug, Serialize, ToSchema)]
pub struct PersonList {
    /// Link to the next page; null on the last one.
    pub next: Option<String>,
    /// Always `null`: pages lead forward only.
    pub previous: Option<String>,
    /// The persons of this page.
    pub results: Vec<PersonAnswer>,
}

/// A person as the API shows it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Person)]
pub struct PersonAnswer {
    /// Id of the person.
    pub id: PersonId,
    /// The same as `id`.
    pub uuid: PersonId,
    /// Display name.
    pub name: String,
    /// Distinct ids of the person, the main one first.
    pub distinct_ids: Vec<String>,
    /// Properties. Numbers are returned as they were sent.
    #[schema(value_type = Object)]
    pub properties: Box<RawValue>,
    /// When the person was first seen.
    pub created_at: Timestamp,
    /// Whether an event has identified the person.
    pub is_identified: bool,
}

/// The persons of a project.
pub async fn list_persons(
    auth: Authorized<PersonsRead, InProject>,
    State(app): State<App>,
    listing: Listing<PersonFilters>,
) -> ApiResult<Streamed<PersonList>> {
    let query = query(&listing)?;
    let (persons, after) = (app.services.persons.clone(), query.after);
    let user = auth.ctx.org.ctx.user();
    let list = PersonScan { persons, project: auth.ctx, query };
    let page = ScanPage::begin(list, listing, after, app.limits.scan_time);
    Streamed::of(&app, user, page).await
}

/// Reads the persons of a list step by step.
struct PersonScan {
    persons: Persons,
    project: ProjectCtx,
    /// Filter of the list.
    query: PersonQuery,
}

impl ScannedList for PersonScan {
    type Item = PersonAnswer;
    type At = PersonId;
    type Filters = PersonFilters;

    async fn step(
        &self,
        request: BatchRequest<PersonId>,
        within: Duration,
    ) -> ApiResult<ScanStep<PersonAnswer, PersonId>> {
        let BatchRequest { after, offset, limit } = request;
        let query = PersonQuery { after, offset, limit, ..self.query.clone() };
        let ScanStep { found, next } = self.persons.list(&self.project, &query, within).await?;
        let found: ApiResult<_> = found.into_iter().map(answer).collect();
        Ok(ScanStep { found: found?, next })
    }
}

/// One person.
pub async fn get_person(
    auth: Authorized<PersonsRead, InProject>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Json<PersonAnswer>> {
    let id: Option<PersonId> = path.get("person_id")?.parse().ok();
    let id = id.ok_or(ServiceError::NotFound(error::NOT_FOUND))?;
    Ok(Json(answer(app.services.persons.get(&auth.ctx, id).await?)?))
}

fn query(listing: &Listing<PersonFilters>) -> Result<PersonQuery, FieldError> {
    let text = |name: &str| listing.param(name).filter(|value| !value.is_empty());
    let page = listing.page();
    let after = text("after").map(|after| {
        after
            .parse()
            .map_err(|_| FieldError::new("after", "invalid_input", "Must be a valid UUID."))
    });
    Ok(PersonQuery {
        limit: page.limit,
        offset: page.offset,
        after: after.transpose()?,
        distinct_id: text("distinct_id").map(str::to_owned),
        search: text("search").map(str::to_owned),
    })
}

/// The person in the form that all answers use.
///
/// # Errors
/// When the stored properties are damaged.
pub(super) fn answer(person: PersonRef) -> ApiResult<PersonAnswer> {
    Ok(PersonAnswer {
        id: person.id,
        uuid: person.id,
        name: persons::display_name(&person),
        distinct_ids: person.distinct_ids,
        properties: stored_object(person.properties)?,
        created_at: person.created_at,
        is_identified: person.is_identified,
    })
}
