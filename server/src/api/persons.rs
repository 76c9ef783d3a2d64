//! `/api/projects/{id}/persons/`: whom events are about (DECISIONS "Reading
//! data back").

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
use weir_service::{Error as ServiceError, ProjectCtx, error, persons};

use super::stored_object;
use super::streamed::{Links, Pieces, Streamed};
use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{Authorized, InProject, PathParams};
use crate::http::guards::PersonsRead;
use crate::http::pagination::Listing;

/// Persons that are read at a time.
const PIECE: u64 = 250;

filters! {
    /// Which persons are wanted.
    PersonFilters {
        "after": Uuid, "Where the page before ended; from `next`.";
        "distinct_id": Text, "Only the person that this id leads to.";
        "search": Text, "Only persons with this in a distinct id, the name or the address, or with a property of this value, as `plan=pro`.";
    }
}

/// One page of persons.
#[derive(Debug, Serialize, ToSchema)]
pub struct PersonList {
    /// Link to the next page.
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
    /// Id.
    pub id: PersonId,
    /// The same.
    pub uuid: PersonId,
    /// What to call it.
    pub name: String,
    /// Distinct ids that lead to it, the main one first.
    pub distinct_ids: Vec<String>,
    /// Properties, numbers as they were sent.
    #[schema(value_type = Object)]
    pub properties: Box<RawValue>,
    /// When it was first seen.
    pub created_at: Timestamp,
    /// Whether an identifying event named it.
    pub is_identified: bool,
}

/// Persons of a project.
pub async fn list_persons(
    auth: Authorized<PersonsRead, InProject>,
    State(app): State<App>,
    listing: Listing<PersonFilters>,
) -> ApiResult<Streamed<PersonList>> {
    let query = query(&listing)?;
    let persons = app.services.persons.clone();
    let pieces = PersonPieces {
        persons,
        project: auth.ctx,
        listing,
        left: query.limit,
        query,
        is_done: false,
    };
    Streamed::of(&app, pieces).await
}

/// The persons of a page that are not read yet.
struct PersonPieces {
    persons: Persons,
    project: ProjectCtx,
    listing: Listing<PersonFilters>,
    /// For those that come next.
    query: PersonQuery,
    /// How many the page may still have.
    left: u64,
    /// Whether there are no more persons at all.
    is_done: bool,
}

impl Pieces for PersonPieces {
    type Item = PersonAnswer;
    type Links = Links;

    async fn next(&mut self) -> ApiResult<Vec<PersonAnswer>> {
        // What looks at many persons finds few in some steps.
        while self.left > 0 && !self.is_done {
            let query = PersonQuery { limit: self.left.min(PIECE), ..self.query.clone() };
            let page = self.persons.list(&self.project, &query).await?;
            self.left = self.left.saturating_sub(page.persons.len() as u64);
            match page.next {
                Some((next, rest)) => {
                    (self.query.after, self.query.offset) = (Some(next), rest);
                }
                None => self.is_done = true,
            }
            if !page.persons.is_empty() {
                return page.persons.into_iter().map(answer).collect();
            }
        }
        Ok(Vec::new())
    }

    fn links(&self) -> Links {
        let next = self.query.after.filter(|_| !self.is_done);
        Links::to(next.map(|next| {
            self.listing.link(&[
                ("limit", Some(self.listing.page().limit.to_string())),
                ("offset", None),
                ("after", Some(next.to_string())),
            ])
        }))
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

/// The person as all answers show it.
///
/// # Errors
/// When its properties are damaged.
pub(super) fn answer(person: PersonRef) -> ApiResult<PersonAnswer> {
    Ok(PersonAnswer {
        id: person.id,
        uuid: person.id,
        name: persons::name(&person),
        distinct_ids: person.distinct_ids,
        properties: stored_object(person.properties)?,
        created_at: person.created_at,
        is_identified: person.is_identified,
    })
}
