//! `/api/projects/{id}/events/`: stored events, newest first, page by page
//! without a count (DECISIONS "Reading data back").

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;
use weir_model::errors::FieldError;
use weir_model::events::{Event, EventQuery};
use weir_model::time::Timestamp;

use super::persons::{self, PersonAnswer};
use super::stored_object;
use crate::app::App;
use crate::http::error::ApiResult;
use crate::http::extract::{Authorized, InProject};
use crate::http::guards::EventsRead;
use crate::http::pagination::Listing;

/// One page of events.
#[derive(Debug, Serialize)]
pub struct EventList {
    /// Link to the next, older page.
    pub next: Option<String>,
    /// The events of this page.
    pub results: Vec<EventAnswer>,
}

/// An event as the API shows it.
#[derive(Debug, Serialize)]
pub struct EventAnswer {
    /// Identity within the project.
    pub id: Uuid,
    /// The same.
    pub uuid: Uuid,
    /// Whom it is about.
    pub distinct_id: String,
    /// Name.
    pub event: String,
    /// Event time.
    pub timestamp: Timestamp,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// Properties, numbers as they were sent.
    pub properties: Box<RawValue>,
    /// The person, if there is one.
    pub person: Option<PersonAnswer>,
    /// Compact element chain of autocapture, or empty.
    pub elements_chain: String,
    /// Whether it was imported.
    pub historical: bool,
}

/// Stored events of a project.
pub async fn list_events(
    auth: Authorized<EventsRead, InProject>,
    State(app): State<App>,
    listing: Listing,
) -> ApiResult<Json<EventList>> {
    let page = app.services.events.list(&auth.ctx, query(&listing)?).await?;
    let next = page.events.last().filter(|_| page.more).map(|oldest| {
        listing.link(&[
            ("limit", Some(listing.page().limit.to_string())),
            ("before", Some(oldest.timestamp.to_string())),
            ("before_uuid", Some(oldest.uuid.to_string())),
        ])
    });
    let results = page.events.into_iter().map(answer).collect::<ApiResult<_>>()?;
    Ok(Json(EventList { next, results }))
}

fn query(listing: &Listing) -> Result<EventQuery, FieldError> {
    let text = |name: &str| listing.param(name).filter(|value| !value.is_empty());
    let before = time(text("before"), "before")?;
    Ok(EventQuery {
        limit: usize::try_from(listing.page().limit).unwrap_or(usize::MAX),
        after: time(text("after"), "after")?,
        before,
        // Says nothing without the time that it refines.
        before_uuid: uuid(text("before_uuid").filter(|_| before.is_some()), "before_uuid")?,
        event: text("event").map(str::to_owned),
        distinct_id: text("distinct_id").map(str::to_owned),
        uuid: uuid(text("uuid"), "uuid")?,
    })
}

fn time(text: Option<&str>, attr: &str) -> Result<Option<Timestamp>, FieldError> {
    const WRONG: &str = "Datetime has wrong format. Use one of these formats instead: \
         YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].";
    let Some(text) = text else { return Ok(None) };
    let parsed = Timestamp::parse_lenient(text).or_else(|| {
        // An unescaped `+` of an offset arrives as a blank.
        let (time, offset) = text.rsplit_once(' ')?;
        Timestamp::parse_lenient(&format!("{time}+{offset}"))
    });
    parsed.map(Some).ok_or_else(|| FieldError::new(attr, "invalid_input", WRONG))
}

fn uuid(text: Option<&str>, attr: &str) -> Result<Option<Uuid>, FieldError> {
    let Some(text) = text else { return Ok(None) };
    let wrong = || FieldError::new(attr, "invalid_input", "Must be a valid UUID.");
    text.parse().map(Some).map_err(|_| wrong())
}

fn answer(event: Event) -> ApiResult<EventAnswer> {
    Ok(EventAnswer {
        id: event.uuid,
        uuid: event.uuid,
        distinct_id: event.distinct_id,
        event: event.event,
        timestamp: event.timestamp,
        created_at: event.created_at,
        properties: stored_object(event.properties)?,
        person: event.person.map(persons::answer).transpose()?,
        elements_chain: event.elements_chain,
        historical: event.historical,
    })
}
