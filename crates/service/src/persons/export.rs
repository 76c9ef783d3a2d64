//! Exporting a person: its properties, distinct ids and events (API-60).
//!
//! What belongs here: reading events of any number of distinct ids, some at a time. What does
//! not: the form of the export (`weir-server`).

use std::sync::Arc;

use weir_model::events::EventQuery;
use weir_model::persons::PersonRef;
use weir_model::{PersonId, Timestamp};
use weir_store::events::{self, Cursor, StoredEvent};

use super::Persons;
use crate::ctx::ProjectCtx;
use crate::{Core, Result};

/// Distinct ids whose events are read together.
const IDS: usize = 100;
/// Events that are read at a time.
const EVENTS: usize = 500;

/// The export of a person, as far as it is read.
pub struct PersonExport {
    core: Arc<Core>,
    project: ProjectCtx,
    person: PersonRef,
    /// The number of the first distinct id whose events are read now.
    ids: usize,
    /// Where the next page of them begins. `None`: at the newest event.
    cursor: Option<Cursor>,
}

impl Persons {
    /// Begins the export of a person, also by the id of one that was merged into it.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound).
    pub async fn export(&self, project: &ProjectCtx, person: PersonId) -> Result<PersonExport> {
        let found = self.get(project, person).await?;
        Ok(PersonExport {
            core: Arc::clone(&self.core),
            project: project.clone(),
            person: found,
            ids: 0,
            cursor: None,
        })
    }
}

impl PersonExport {
    /// The person whose data is exported.
    pub fn person(&self) -> &PersonRef {
        &self.person
    }

    /// The next events: those of some distinct ids after each other, the newest first. An
    /// empty vector: there are no more. A page has about a megabyte at most, or one event.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn next(&mut self) -> Result<Vec<StoredEvent>> {
        loop {
            let ids = self.person.distinct_ids.get(self.ids..).unwrap_or_default();
            let any_of: Vec<String> = ids.iter().take(IDS).cloned().collect();
            if any_of.is_empty() {
                return Ok(Vec::new());
            }
            let query = EventQuery {
                limit: EVENTS,
                any_of,
                before: self.cursor.map(|cursor| Timestamp::from_micros(cursor.before)),
                before_uuid: self.cursor.and_then(|cursor| cursor.uuid),
                ..EventQuery::default()
            };
            let project = self.project.project;
            let (found, next) = events::page_until(&self.core.store, project, &query, None).await?;
            self.cursor = next;
            if next.is_none() {
                self.ids += IDS;
            }
            if !found.is_empty() {
                return Ok(found);
            }
        }
    }
}
