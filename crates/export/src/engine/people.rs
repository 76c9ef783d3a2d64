//! The persons of events, read in batches and cached.
//!
//! What belongs here: the persons of exported events. What does not: exports of persons
//! (`persons`).

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use weir_model::ProjectId;
use weir_store::events::StoredEvent;
use weir_store::{Result, Store, persons};

use crate::rows::{EventWithPerson, Person};

/// Bytes of persons after which a new generation of the cache begins. Each of the two
/// generations has at most twice this number: the persons of one lookup come on top.
const KEPT: usize = 8 << 20;
/// Distinct ids whose persons are read at a time. Each person may have a megabyte, and
/// eight runs may be active.
const PERSONS_PER_READ: usize = 8;
/// Bytes of persons after which a batch of events ends. A person that comes again counts
/// again, because each row contains it.
const JOINED: usize = 4 << 20;
/// Bytes that an entry takes in addition to its person.
const ENTRY: usize = 160;

/// The cached persons of a project's events.
pub(super) struct People {
    store: Store,
    project: ProjectId,
    /// By distinct id. `None`: the distinct id has no person.
    known: HashMap<String, Option<Arc<Person>>>,
    /// The previous generation of `known`. An entry that is used again moves back.
    older: HashMap<String, Option<Arc<Person>>>,
    bytes: usize,
}

impl People {
    pub(super) fn new(store: Store, project: ProjectId) -> Self {
        Self { store, project, known: HashMap::new(), older: HashMap::new(), bytes: 0 }
    }

    /// The next events with their present persons: at least one event, and as many as
    /// have persons that fit into memory.
    pub(super) async fn join(
        &mut self,
        events: &mut VecDeque<StoredEvent>,
    ) -> Result<Vec<EventWithPerson>> {
        let (mut records, mut bytes) = (Vec::new(), 0);
        while bytes < JOINED {
            let Some(event) = events.front() else { break };
            if !self.known.contains_key(&event.distinct_id) {
                self.look_up(events).await?;
            }
            let Some(event) = events.pop_front() else { break };
            let person = self.known.get(&event.distinct_id).cloned().flatten();
            bytes += size_of(person.as_ref());
            records.push(EventWithPerson { event, person });
        }
        Ok(records)
    }

    /// Reads the persons of the next events, or of some of them.
    async fn look_up(&mut self, events: &VecDeque<StoredEvent>) -> Result<()> {
        if self.bytes > KEPT {
            self.older = std::mem::take(&mut self.known);
            self.bytes = 0;
        }
        let mut requested: HashSet<&str> = HashSet::new();
        for event in events {
            if requested.len() >= PERSONS_PER_READ || self.bytes > KEPT {
                break;
            }
            let id = event.distinct_id.as_str();
            if self.known.contains_key(id) {
                continue;
            }
            match self.older.remove_entry(id) {
                Some((id, person)) => self.keep(id, person),
                None => {
                    requested.insert(id);
                }
            }
        }
        let ids: Vec<_> =
            requested.iter().map(|id| (*id, persons::first_id(self.project, id))).collect();
        let wanted = ids.iter().map(|(_, id)| *id);
        let mut people = persons::resolve(&self.store, self.project, wanted).await?;
        // Distinct ids of one person point to the same copy.
        let mut shared: HashMap<_, Arc<Person>> = HashMap::new();
        for (distinct_id, id) in ids {
            let person = people.remove(&id).map(|person| {
                let made = || {
                    let properties = person.properties.clone();
                    Arc::new(Person { id: person.id, properties })
                };
                Arc::clone(shared.entry(person.id).or_insert_with(made))
            });
            self.keep(distinct_id.to_owned(), person);
        }
        Ok(())
    }

    fn keep(&mut self, id: String, person: Option<Arc<Person>>) {
        self.bytes += ENTRY + id.len() + size_of(person.as_ref());
        self.known.insert(id, person);
    }
}

fn size_of(person: Option<&Arc<Person>>) -> usize {
    person.map_or(0, |person| person.properties.len())
}
