//! Stored events, read back (DECISIONS "Reading data back").

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use weir_model::PersonId;
use weir_model::events::{Event, EventQuery};
use weir_model::live::LiveRow;
use weir_model::persons::PersonRef;
use weir_model::{ProjectId, Timestamp};
use weir_store::events::StoredEvent;
use weir_store::warnings::{Counted, Skipped};
use weir_store::{events, live, persons, warnings};

use crate::ctx::ProjectCtx;
use crate::{Core, Result};

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

    /// A page of events with their persons.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list(&self, project: &ProjectCtx, query: EventQuery) -> Result<EventPage> {
        let id = project.project;
        let (found, more) = events::page(&self.core.store, id, &query).await?;
        let people = self.persons_of(id, &found).await?;
        let events = found
            .into_iter()
            .map(|event| {
                let person = persons::first_id(id, &event.distinct_id);
                shown(event, people.get(&person).cloned())
            })
            .collect();
        Ok(EventPage { events, more })
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

    /// The latest of everything that reached a project, stored or not, newest
    /// first: where the live list begins, and fills its gaps from.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn live_rows(&self, project: &ProjectCtx, limit: usize) -> Result<Vec<LiveRow>> {
        let id = project.project;
        let stored = events::arrivals(&self.core.store, id, None, limit).await?;
        let skipped = warnings::samples(&self.core.store, id).await?;
        let mut rows: Vec<LiveRow> = skipped.into_iter().map(live::dropped).collect();
        rows.extend(stored.events.iter().map(|event| live::accepted(id, event)));
        rows.sort_by_key(|row| std::cmp::Reverse(row.received_at));
        rows.truncate(limit);
        Ok(rows)
    }

    async fn persons_of(
        &self,
        project: ProjectId,
        events: &[StoredEvent],
    ) -> Result<HashMap<PersonId, PersonRef>> {
        let ids: HashSet<PersonId> =
            events.iter().map(|e| persons::first_id(project, &e.distinct_id)).collect();
        Ok(persons::resolve(&self.core.store, project, ids).await?)
    }
}

fn shown(event: StoredEvent, person: Option<PersonRef>) -> Event {
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
