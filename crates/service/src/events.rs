//! Stored events, read back (DECISIONS "Reading data back").

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use weir_model::PersonId;
use weir_model::events::{Event, EventQuery};
use weir_model::live::LiveRow;
use weir_model::persons::PersonRef;
use weir_model::{ProjectId, Timestamp};
pub use weir_store::events::StoredEvent as Stored;
use weir_store::events::StoredEvent;
use weir_store::warnings::{Counted, Skipped};
use weir_store::{events, live, persons, traffic, warnings};

use crate::ctx::ProjectCtx;
use crate::{Core, Result};

/// Bytes of properties, of events and their persons, after which a page ends
/// early: one large person may stand beside each of its events.
const PAGE_BYTES: usize = 16 << 20;
/// Events whose persons are read at a time.
const TOGETHER: usize = 50;

/// Reads of stored events.
#[derive(Clone)]
pub struct Events {
    core: Arc<Core>,
}

/// One page of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPage {
    /// The events, newest event time first.
    pub events: Vec<Event>,
    /// Whether there are older ones.
    pub more: bool,
}

impl Events {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// A page of events with their persons: shorter than asked for where these
    /// are large.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list(&self, project: &ProjectCtx, query: EventQuery) -> Result<EventPage> {
        let id = project.project;
        let (found, more) = events::page(&self.core.store, id, &query).await?;
        let mut page = EventPage { events: Vec::with_capacity(found.len()), more };
        let mut people: HashMap<PersonId, Option<Arc<PersonRef>>> = HashMap::new();
        let (mut found, mut bytes) = (found.into_iter().peekable(), 0);
        while found.peek().is_some() {
            let together: Vec<StoredEvent> = found.by_ref().take(TOGETHER).collect();
            self.read_persons(id, &together, &mut people).await?;
            for event in together {
                if bytes > PAGE_BYTES {
                    // The next page goes on behind the last one here.
                    page.more = true;
                    return Ok(page);
                }
                let person = persons::first_id(id, &event.distinct_id);
                let person = people.get(&person).cloned().flatten();
                bytes += event.properties.len() + person.as_ref().map_or(0, |p| p.size());
                page.events.push(shown(event, person));
            }
        }
        Ok(page)
    }

    /// What was skipped or altered in a project, counted by reason.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn warnings(&self, project: &ProjectCtx) -> Result<Vec<Counted>> {
        Ok(warnings::counts(&self.core.store, project.project).await?)
    }

    /// Samples of what was skipped, newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn samples(&self, project: &ProjectCtx) -> Result<Vec<Skipped>> {
        Ok(warnings::samples(&self.core.store, project.project).await?)
    }

    /// The latest of everything that reached a project, stored or not, and of the
    /// requests that were refused with its key, newest first: where the live list begins, and fills its gaps from.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn live_rows(&self, project: &ProjectCtx, limit: usize) -> Result<Vec<LiveRow>> {
        let id = project.project;
        let stored = events::arrivals(&self.core.store, id, None, limit).await?;
        let skipped = warnings::samples(&self.core.store, id).await?;
        let refused = traffic::refused(&self.core.store, id).await?;
        let mut rows: Vec<LiveRow> = skipped.into_iter().map(live::dropped).collect();
        rows.extend(refused.into_iter().map(live::rejected));
        rows.extend(stored.events.iter().map(|event| live::accepted(id, event)));
        rows.sort_by_key(|row| std::cmp::Reverse(row.received_at));
        rows.truncate(limit);
        Ok(rows)
    }

    /// Adds the persons of these events; `None`: there is none.
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
