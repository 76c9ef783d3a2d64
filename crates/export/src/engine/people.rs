//! The persons of events, read in batches and kept for a while.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use weir_model::ProjectId;
use weir_store::events::StoredEvent;
use weir_store::{Result, Store, persons};

use crate::rows::{Person, Record};

/// Bytes of persons that are kept: twice so many at most.
const KEPT: usize = 16 << 20;
/// Bytes that an entry takes beside its person.
const ENTRY: usize = 160;

/// The persons of a project's events.
pub(super) struct People {
    store: Store,
    project: ProjectId,
    /// By distinct id; none: nobody.
    known: HashMap<String, Option<Arc<Person>>>,
    /// What was known before it became too much. Whoever is asked for again comes
    /// back.
    older: HashMap<String, Option<Arc<Person>>>,
    bytes: usize,
}

impl People {
    pub(super) fn new(store: Store, project: ProjectId) -> Self {
        Self { store, project, known: HashMap::new(), older: HashMap::new(), bytes: 0 }
    }

    /// The events with their persons, as they are now.
    pub(super) async fn join(&mut self, events: Vec<StoredEvent>) -> Result<Vec<Record>> {
        let mut asked: HashSet<&str> = HashSet::new();
        let mut found: HashMap<String, Option<Arc<Person>>> = HashMap::new();
        for event in &events {
            let id = event.distinct_id.as_str();
            if self.known.contains_key(id) || found.contains_key(id) || asked.contains(id) {
                continue;
            }
            match self.older.remove(id) {
                Some(person) => {
                    found.insert(id.to_owned(), person);
                }
                None => {
                    asked.insert(id);
                }
            }
        }
        let ids: Vec<_> =
            asked.iter().map(|id| (*id, persons::first_id(self.project, id))).collect();
        let wanted = ids.iter().map(|(_, id)| *id);
        let mut people = persons::resolve(&self.store, self.project, wanted).await?;
        // Distinct ids of one person share it.
        let mut shared: HashMap<_, Arc<Person>> = HashMap::new();
        for (distinct_id, id) in ids {
            let person = people.remove(&id).map(|person| {
                let made = || {
                    let properties = person.properties.clone();
                    Arc::new(Person { id: person.id, properties })
                };
                Arc::clone(shared.entry(person.id).or_insert_with(made))
            });
            found.insert(distinct_id.to_owned(), person);
        }
        for (id, person) in found {
            let size = person.as_ref().map_or(0, |person| person.properties.len());
            self.bytes += ENTRY + id.len() + size;
            self.known.insert(id, person);
        }
        let record = |event: StoredEvent| {
            let person = self.known.get(&event.distinct_id).cloned().flatten();
            Record { event, person }
        };
        let records = events.into_iter().map(record).collect();
        if self.bytes > KEPT {
            self.older = std::mem::take(&mut self.known);
            self.bytes = 0;
        }
        Ok(records)
    }
}
