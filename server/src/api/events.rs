//! `/api/projects/{id}/events/`: stored events, newest first, in pages without a total
//! count. A page begins after an event or at an offset, and is sent while it is read.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;
use weir_model::PersonId;
use weir_model::errors::FieldError;
use weir_model::events::{Event, EventQuery};
use weir_model::time::Timestamp;
use weir_service::ProjectCtx;
use weir_service::events::{self, Cursor, Events};

use super::persons::{self, PersonAnswer};
use super::stored_object;
use super::streamed::{Next, PagedReader, Streamed};
use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{Authorized, InProject};
use crate::http::guards::EventsRead;
use crate::http::pagination::Listing;

/// Events in the first read.
const FIRST_BATCH: usize = 100;
/// Most events in one read.
const LARGEST_BATCH: usize = 500;
/// Target size of one read in bytes: events with their persons.
const BATCH_BYTES: usize = 1 << 20;

filters! {
    /// Filters for events.
    EventFilters, up to 10_000 {
        "after": Time, "Only events after this time.";
        "before": Time, "Only events before this time.";
        "before_uuid": Uuid, "Of the events at `before`, those that come before this one; from `next`.";
        "event": Text, "Only events of this name.";
        "distinct_id": Text, "Only events of the person that this id leads to.";
        "uuid": Uuid, "Only the event with this uuid.";
    }
}

/// One page of events.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventList {
    /// Link to the next, older page.
    pub next: Option<String>,
    /// The events of this page.
    pub results: Vec<EventAnswer>,
}

/// An event as the API shows it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
pub struct EventAnswer {
    /// The event's uuid, unique within the project.
    pub id: Uuid,
    /// The same as `id`.
    pub uuid: Uuid,
    /// The distinct id that the event was sent with.
    pub distinct_id: String,
    /// Name of the event.
    pub event: String,
    /// Time of the event.
    pub timestamp: Timestamp,
    /// When Weir accepted the event.
    pub created_at: Timestamp,
    /// Properties. Numbers are returned as they were sent.
    #[schema(value_type = Object)]
    pub properties: Box<RawValue>,
    /// The person of the event; null if there is none.
    #[serde(serialize_with = "shared")]
    #[schema(value_type = Option<PersonAnswer>)]
    pub person: Option<Arc<PersonAnswer>>,
    /// Compact element chain of autocapture; empty for other events.
    pub elements_chain: String,
    /// Whether the event was imported.
    pub historical: bool,
}

/// Stored events of a project, newest first.
pub async fn list_events(
    auth: Authorized<EventsRead, InProject>,
    State(app): State<App>,
    listing: Listing<EventFilters>,
) -> ApiResult<Streamed<EventList>> {
    let events = app.services.events.clone();
    let query = query(&listing)?;
    let page = listing.page();
    // A page at an offset is read from its first event on.
    let idle_time_left = app.limits.scan_time;
    let query = events.behind(&auth.ctx, query, page.offset, idle_time_left).await?;
    let user = auth.ctx.org.ctx.user();
    let reader = EventReader {
        events,
        project: auth.ctx,
        listing,
        query,
        left: usize::try_from(page.limit).unwrap_or(usize::MAX),
        batch: FIRST_BATCH,
        idle_time_left,
    };
    Streamed::of(&app, user, reader).await
}

/// The events of a page that are not read yet.
struct EventReader {
    events: Events,
    project: ProjectCtx,
    listing: Listing<EventFilters>,
    /// Query for the next events; `None` when there are no more.
    query: Option<EventQuery>,
    /// How many events the page may still have.
    left: usize,
    /// How many events are read at a time.
    batch: usize,
    /// How long reads that find nothing may still take. After that the page ends early
    /// with a link to the rest, or with an error as in `scanned_list`.
    idle_time_left: Duration,
}

impl PagedReader for EventReader {
    type Item = EventAnswer;
    type Links = Next;

    async fn next_batch(&mut self) -> ApiResult<Vec<EventAnswer>> {
        let page = loop {
            let Some(query) = self.query.as_mut().filter(|_| self.left > 0) else {
                return Ok(Vec::new());
            };
            query.limit = self.left.min(self.batch);
            let began = Instant::now();
            let page = self.events.list(&self.project, query, self.idle_time_left).await?;
            match page.next {
                Some(Cursor { before, uuid }) => {
                    query.before = Some(Timestamp::from_micros(before));
                    query.before_uuid = uuid;
                }
                None => self.query = None,
            }
            if !page.events.is_empty() {
                break page;
            }
            self.idle_time_left = self.idle_time_left.saturating_sub(began.elapsed());
            if self.idle_time_left.is_zero() && self.query.is_some() && self.listing.is_by_offset()
            {
                return Err(events::offset_too_large().into());
            }
            if self.idle_time_left.is_zero() {
                return Ok(Vec::new());
            }
        };
        self.left -= page.events.len().min(self.left);
        let size = |event: &Event| {
            event.properties.len() + event.person.as_ref().map_or(0, |person| person.size())
        };
        let bytes: usize = page.events.iter().map(size).sum();
        let each = bytes / page.events.len().max(1);
        self.batch = (BATCH_BYTES / each.max(1)).clamp(1, LARGEST_BATCH);
        let mut people = HashMap::new();
        page.events.into_iter().map(|event| answer(event, &mut people)).collect()
    }

    fn links(&self) -> Next {
        let next = self.query.as_ref().map(|query| {
            self.listing.link(&[
                ("limit", Some(self.listing.page().limit.to_string())),
                ("offset", None),
                ("before", query.before.map(|before| before.to_string())),
                ("before_uuid", query.before_uuid.map(|uuid| uuid.to_string())),
            ])
        });
        Next { next }
    }

    fn may_end_early(&self) -> bool {
        !self.listing.is_by_offset()
    }
}

fn query(listing: &Listing<EventFilters>) -> Result<EventQuery, FieldError> {
    let text = |name: &str| listing.param(name).filter(|value| !value.is_empty());
    let before = time(text("before"), "before")?;
    Ok(EventQuery {
        limit: 0,
        after: time(text("after"), "after")?,
        before,
        // It refines `before` and has no meaning without it.
        before_uuid: uuid(text("before_uuid"), "before_uuid")?.filter(|_| before.is_some()),
        event: text("event").map(str::to_owned),
        distinct_id: text("distinct_id").map(str::to_owned),
        any_of: Vec::new(),
        uuid: uuid(text("uuid"), "uuid")?,
    })
}

/// A time in a query.
pub(super) fn time(text: Option<&str>, attr: &str) -> Result<Option<Timestamp>, FieldError> {
    const WRONG: &str = "Datetime has wrong format. Use one of these formats instead: \
         YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].";
    let Some(text) = text else { return Ok(None) };
    let parsed = Timestamp::parse_lenient(text).or_else(|| {
        // An unescaped `+` of an offset arrives as a space.
        let (time, offset) = text.rsplit_once(' ')?;
        Timestamp::parse_lenient(&format!("{time}+{offset}"))
    });
    parsed.map(Some).ok_or_else(|| FieldError::new(attr, "invalid_input", WRONG))
}

/// A UUID in a query.
pub(super) fn uuid(text: Option<&str>, attr: &str) -> Result<Option<Uuid>, FieldError> {
    let Some(text) = text else { return Ok(None) };
    let wrong = || FieldError::new(attr, "invalid_input", "Must be a valid UUID.");
    text.parse().map(Some).map_err(|_| wrong())
}

/// `people` holds the persons that were converted before. A person can be large and
/// belong to every event of the page.
fn answer(
    event: Event,
    people: &mut HashMap<PersonId, Arc<PersonAnswer>>,
) -> ApiResult<EventAnswer> {
    let person = match event.person {
        None => None,
        Some(person) => Some(match people.entry(person.id) {
            Entry::Occupied(shown) => Arc::clone(shown.get()),
            Entry::Vacant(new) => {
                let shown = persons::answer(Arc::unwrap_or_clone(person))?;
                Arc::clone(new.insert(Arc::new(shown)))
            }
        }),
    };
    Ok(EventAnswer {
        id: event.uuid,
        uuid: event.uuid,
        distinct_id: event.distinct_id,
        event: event.event,
        timestamp: event.timestamp,
        created_at: event.created_at,
        properties: stored_object(event.properties)?,
        person,
        elements_chain: event.elements_chain,
        historical: event.historical,
    })
}

fn shared<S: Serializer>(
    person: &Option<Arc<PersonAnswer>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    person.as_deref().serialize(serializer)
}
