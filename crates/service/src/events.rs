//! Reading stored events (API-46, API-49).

mod columns;
mod counts;
mod rows;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use self::columns::{frequent_properties, property_values};
pub use self::counts::{CountSteps, RowCounts};
pub use self::rows::RowPage;
use uuid::Uuid;
use weir_model::PersonId;
use weir_model::events::{Event, EventQuery};
use weir_model::live::SAMPLE_LIMIT;
use weir_model::persons::PersonRef;
use weir_model::warnings::AffectedQuery;
use weir_model::{ProjectId, Timestamp};
use weir_store::events::Begin;
use weir_store::events::StoredEvent;
pub use weir_store::events::{Cursor, StoredEvent as Stored};
use weir_store::warnings::{AffectedPage, Counted};
use weir_store::{events, persons, warnings};

use crate::ctx::ProjectCtx;
use crate::error::Error;
use crate::scan::offset_too_large_with_hint;
use crate::{Core, Result};

/// Bytes of properties, of events and their persons, after which a page ends early:
/// each event can bring the same large person, and many requests read pages at the same
/// time.
const PAGE_BYTES: usize = 1 << 20;
/// How many events get their persons in the first read: each person can have a
/// megabyte.
const FIRST_TOGETHER: usize = 2;
/// The maximum number of events per read, while events and persons are small.
const EVENTS_PER_READ: usize = 32;

/// The service for reading stored events.
#[derive(Clone)]
pub struct Events {
    core: Arc<Core>,
}

/// One page of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPage {
    /// The events, newest event time first.
    pub events: Vec<Event>,
    /// The cursor of older events.
    pub next: Option<Cursor>,
}

impl Events {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// A page of events with their persons. It is shorter than requested where these
    /// are large, and where matches are so rare that `within` is over first.
    pub async fn list(
        &self,
        project: &ProjectCtx,
        query: &EventQuery,
        within: Duration,
    ) -> Result<EventPage> {
        let id = project.project;
        let until = Instant::now().checked_add(within);
        let (found, next) = events::page_until(&self.core.store, id, query, until).await?;
        let mut page = EventPage { events: Vec::with_capacity(found.len()), next };
        let mut people: HashMap<PersonId, Option<Arc<PersonRef>>> = HashMap::new();
        let (mut found, mut bytes, mut last) = (found.into_iter().peekable(), 0, None);
        let mut concurrently = FIRST_TOGETHER;
        while found.peek().is_some() {
            let together: Vec<StoredEvent> = found.by_ref().take(concurrently).collect();
            self.read_persons(id, &together, &mut people).await?;
            for event in together {
                if bytes > PAGE_BYTES {
                    // The next page continues after the last event of this one.
                    page.next = last;
                    return Ok(page);
                }
                let person = persons::first_id(id, &event.distinct_id);
                let person = people.get(&person).cloned().flatten();
                bytes += event.properties.len() + person.as_ref().map_or(0, |p| p.size());
                last = Some(Cursor::behind(&event));
                page.events.push(shown(event, person));
            }
            let are_small = bytes < PAGE_BYTES / 8;
            concurrently =
                if are_small { (concurrently * 4).min(EVENTS_PER_READ) } else { FIRST_TOGETHER };
        }
        Ok(page)
    }

    /// The query for the events after the first `offset` events of another query.
    /// Searches no longer than `within`; `None`: there are none.
    ///
    /// # Errors
    /// [`Error::Invalid`] when it takes too long to find; when the store cannot be read.
    pub async fn behind(
        &self,
        project: &ProjectCtx,
        query: EventQuery,
        offset: u64,
        within: Duration,
    ) -> Result<Option<EventQuery>> {
        if offset == 0 {
            return Ok(Some(query));
        }
        let store = &self.core.store;
        match events::skip(store, project.project, &query, offset, within).await? {
            Begin::Behind { time, uuid } => Ok(Some(EventQuery {
                before: Some(Timestamp::from_micros(time)),
                before_uuid: Some(uuid),
                ..query
            })),
            Begin::Beyond => Ok(None),
            Begin::TooLong => Err(offset_too_large()),
        }
    }

    /// Skipped and altered events of a project, counted by reason.
    pub async fn warnings(&self, project: &ProjectCtx) -> Result<Vec<Counted>> {
        Ok(warnings::counts(&self.core.store, project.project).await?)
    }

    /// Dropped and altered events, newest first. The payload of an altered event is its
    /// stored properties, cut when long.
    pub async fn affected(
        &self,
        project: &ProjectCtx,
        query: &AffectedQuery,
    ) -> Result<AffectedPage> {
        let (store, id) = (&self.core.store, project.project);
        let mut page = warnings::page(store, id, query).await?;
        let stored = page.found.iter().filter(|(_, event)| event.is_stored);
        let uuids: Vec<Uuid> = stored.filter_map(|(_, event)| event.uuid).collect();
        let mut payloads: HashMap<Uuid, String> = HashMap::new();
        events::see_each(store, id, &uuids, |event| {
            let end = event.properties.floor_char_boundary(SAMPLE_LIMIT);
            let payload = event.properties.get(..end).unwrap_or_default();
            payloads.insert(event.uuid, payload.to_owned());
        })
        .await?;
        for (_, event) in page.found.iter_mut().filter(|(_, event)| event.is_stored) {
            let payload = event.uuid.and_then(|uuid| payloads.remove(&uuid));
            event.payload = payload.unwrap_or_default();
        }
        Ok(page)
    }

    /// Reads the persons of these events; `None`: there is no person.
    async fn read_persons(
        &self,
        project: ProjectId,
        events: &[StoredEvent],
        people: &mut HashMap<PersonId, Option<Arc<PersonRef>>>,
    ) -> Result<()> {
        let ids = events.iter().map(|e| persons::first_id(project, &e.distinct_id));
        let new: HashSet<PersonId> = ids.filter(|id| !people.contains_key(id)).collect();
        let mut found = persons::resolve(&self.core.store, project, new.iter().copied()).await?;
        people.extend(new.into_iter().map(|id| (id, found.remove(&id))));
        Ok(())
    }
}

/// The error when the events at an offset cannot be found in time.
pub fn offset_too_large() -> Error {
    offset_too_large_with_hint(", or ask for a shorter time with `after` and `before`")
}

fn shown(event: StoredEvent, person: Option<Arc<PersonRef>>) -> Event {
    Event {
        uuid: event.uuid,
        arrival: event.arrival,
        event: event.event,
        distinct_id: event.distinct_id,
        timestamp: Timestamp::from_micros(event.timestamp),
        created_at: Timestamp::from_micros(event.received_at),
        properties: event.properties,
        elements_chain: event.elements_chain,
        historical: event.historical,
        person,
    }
}
