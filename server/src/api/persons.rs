//! `/api/projects/{id}/persons/`: the persons that events are about (API-47).

mod erasure;
mod export;

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use weir_model::Timestamp;
use weir_model::errors::FieldError;
use weir_model::ids::PersonId;
use weir_model::pagination::Page;
use weir_model::persons::{PersonOrder, PersonQuery, PersonRef};
use weir_service::persons::{PersonCounts, Persons, Ranking};
use weir_service::scan::ScanStep;
use weir_service::{Error as ServiceError, ProjectCtx, error, persons};

use super::scanned_list::{BatchRequest, ScanPage, ScannedList};
use super::stored_object;
use super::streamed::{Links, PagedReader, Streamed};
use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{Authorized, InProject, PathParams};
use crate::http::guards::PersonsRead;
use crate::http::pagination::Listing;

pub use self::erasure::{delete_person, get_person_erasure};
pub use self::export::{Exported, export_person};
pub(crate) use self::export::{LINES, lines, lines_response};

/// Persons of an ordered list that are read at a time.
const BATCH: u64 = 50;

filters! {
    /// Filters for persons.
    PersonFilters {
        "after": Uuid, "Where the page before ended; from `next`.";
        "distinct_id": Text, "Only the person that this id leads to.";
        "order": OneOf(&PersonOrder::NAMES), "The order by event counts, without other filters; `-` is for the largest or latest first. Persons without events are omitted, and at most the first 10,000 are listed. The order is up to some seconds old.";
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
    /// When the order was made; null in a list without `order`.
    pub ordered_at: Option<Timestamp>,
    /// Whether further persons are not listed in the order; null in a list without `order`.
    pub is_cut: Option<bool>,
    /// The persons of this page.
    pub results: Vec<CountedPersonAnswer>,
}

/// A person with the counts of its events.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CountedPerson)]
pub struct CountedPersonAnswer {
    /// The person.
    #[serde(flatten)]
    pub person: PersonAnswer,
    /// The counts.
    #[serde(flatten)]
    pub counts: CountsAnswer,
}

/// How many events there are, and when the first and the last happened.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = EventCounts)]
pub struct CountsAnswer {
    /// The number of stored events; null while events from before an update are counted.
    pub event_count: Option<u64>,
    /// Whether that is all of them. With very many distinct ids there are more.
    pub is_event_count_exact: bool,
    /// Time of the earliest event; null without events.
    pub first_seen: Option<Timestamp>,
    /// Time of the latest event; null without events.
    pub last_seen: Option<Timestamp>,
}

impl From<PersonCounts> for CountsAnswer {
    fn from(counts: PersonCounts) -> Self {
        let PersonCounts { events, first, last, is_complete } = counts;
        Self {
            event_count: Some(events),
            is_event_count_exact: is_complete,
            first_seen: first.map(Timestamp::from_micros),
            last_seen: last.map(Timestamp::from_micros),
        }
    }
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
    if let Some(order) = order(&listing, &query)? {
        let ranking = persons.ranking(&auth.ctx, order).await?;
        let page = OrderedPage::begin(persons, auth.ctx, listing, ranking);
        return Streamed::of(&app, user, page).await;
    }
    let list = PersonScan { persons, project: auth.ctx, query };
    let page = ScanPage::begin(list, listing, after, app.limits.scan_time);
    Streamed::of(&app, user, UsualPage(page)).await
}

/// Reads the persons of a list step by step.
struct PersonScan {
    persons: Persons,
    project: ProjectCtx,
    /// Filter of the list.
    query: PersonQuery,
}

impl ScannedList for PersonScan {
    type Item = CountedPersonAnswer;
    type At = PersonId;
    type Filters = PersonFilters;

    async fn step(
        &self,
        request: BatchRequest<PersonId>,
        within: Duration,
    ) -> ApiResult<ScanStep<CountedPersonAnswer, PersonId>> {
        let BatchRequest { after, offset, limit } = request;
        let query = PersonQuery { after, offset, limit, ..self.query.clone() };
        let ScanStep { found, next } = self.persons.list(&self.project, &query, within).await?;
        Ok(ScanStep { found: counted(&self.persons, &self.project, found).await?, next })
    }
}

/// Reads a page of persons in their usual order.
struct UsualPage(ScanPage<PersonScan>);

impl PagedReader for UsualPage {
    type Item = CountedPersonAnswer;
    type Links = PersonLinks;

    async fn next_batch(&mut self) -> ApiResult<Vec<CountedPersonAnswer>> {
        self.0.next_batch().await
    }

    fn links(&self) -> PersonLinks {
        PersonLinks { links: self.0.links(), ordered_at: None, is_cut: None }
    }

    fn may_end_early(&self) -> bool {
        self.0.may_end_early()
    }
}

/// Reads a page of persons in an order, some at a time.
struct OrderedPage {
    persons: Persons,
    project: ProjectCtx,
    listing: Listing<PersonFilters>,
    ranking: Arc<Ranking>,
    /// What is still to be read.
    rest: Page,
    links: PersonLinks,
}

/// The members of the list in addition to its results.
#[derive(Debug, Clone, Serialize)]
struct PersonLinks {
    #[serde(flatten)]
    links: Links,
    ordered_at: Option<Timestamp>,
    is_cut: Option<bool>,
}

impl OrderedPage {
    fn begin(
        persons: Persons,
        project: ProjectCtx,
        listing: Listing<PersonFilters>,
        ranking: Arc<Ranking>,
    ) -> Self {
        let rest = listing.page();
        let links = PersonLinks { links: Links::to(None), ordered_at: None, is_cut: None };
        Self { persons, project, listing, ranking, rest, links }
    }
}

impl PagedReader for OrderedPage {
    type Item = CountedPersonAnswer;
    type Links = PersonLinks;

    async fn next_batch(&mut self) -> ApiResult<Vec<CountedPersonAnswer>> {
        while self.rest.limit > 0 {
            let some = Page { limit: self.rest.limit.min(BATCH), ..self.rest };
            let ordered = self.persons.ordered(&self.project, &self.ranking, some).await?;
            self.rest.offset = some.offset.saturating_add(some.limit);
            self.rest.limit -= some.limit;
            let next = self.rest.offset.to_string();
            let next = ordered.has_next.then(|| self.listing.link(&[("offset", Some(next))]));
            self.links = PersonLinks {
                links: Links::to(next),
                ordered_at: Some(self.ranking.at),
                is_cut: Some(ordered.is_cut),
            };
            if !ordered.has_next {
                self.rest.limit = 0;
            }
            if !ordered.persons.is_empty() {
                return counted(&self.persons, &self.project, ordered.persons).await;
            }
        }
        Ok(Vec::new())
    }

    fn links(&self) -> PersonLinks {
        self.links.clone()
    }

    fn may_end_early(&self) -> bool {
        false
    }
}

/// Persons with their counts.
async fn counted(
    service: &Persons,
    project: &ProjectCtx,
    persons: Vec<PersonRef>,
) -> ApiResult<Vec<CountedPersonAnswer>> {
    let mut counts = service.counts(project, &persons).await?.map(Vec::into_iter);
    let with_counts = |person| {
        let counts = counts.as_mut().and_then(Iterator::next);
        let counts = counts.map_or_else(CountsAnswer::default, CountsAnswer::from);
        Ok(CountedPersonAnswer { person: answer(person)?, counts })
    };
    persons.into_iter().map(with_counts).collect()
}

/// One person.
pub async fn get_person(
    auth: Authorized<PersonsRead, InProject>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Json<CountedPersonAnswer>> {
    let id = person_id(&path)?;
    let persons = &app.services.persons;
    let found = persons.get(&auth.ctx, id).await?;
    let found = counted(persons, &auth.ctx, vec![found]).await?.into_iter().next();
    Ok(Json(found.ok_or(ServiceError::NotFound(error::NOT_FOUND))?))
}

/// The person of a path.
fn person_id(path: &PathParams) -> ApiResult<PersonId> {
    let id: Option<PersonId> = path.get("person_id")?.parse().ok();
    Ok(id.ok_or(ServiceError::NotFound(error::NOT_FOUND))?)
}

/// The order of the list, if it is to have one.
fn order(
    listing: &Listing<PersonFilters>,
    query: &PersonQuery,
) -> Result<Option<PersonOrder>, FieldError> {
    let Some(name) = listing.param("order").filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let invalid = |detail: &str| FieldError::new("order", "invalid_input", detail);
    if query.after.is_some() || query.distinct_id.is_some() || query.search.is_some() {
        return Err(invalid("Cannot be used with `after`, `distinct_id` or `search`."));
    }
    let order = PersonOrder::named(name);
    order.map(Some).ok_or_else(|| invalid("Must be one of the orders of the API document."))
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
