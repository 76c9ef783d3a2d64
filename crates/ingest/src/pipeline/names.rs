//! Which names of events and properties are new.
//!
//! One table for all consumers. Names come from outside: how many are noted of
//! a project is bounded.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};

use parking_lot::Mutex;
use weir_model::definitions::{
    EventDefinition, NAMES_MAX, PropertyDefinition, PropertyKind, PropertyOwner,
};
use weir_model::{ProjectId, Timestamp};
use weir_store::{Error, Store, definitions};

use super::facts::Facts;
use super::updates::{self, Updates};
use weir_capture::AcceptedEvent;

/// Projects whose names are remembered.
const PROJECTS: usize = 200;
/// Shapes of events that are remembered of a project.
const SHAPES: usize = 10_000;
/// Bytes of a name; longer ones are not noted.
const NAME: usize = 400;
/// That an event is still in use is noted at most so often, microseconds.
const SEEN_EVERY: i64 = 3_600_000_000;

/// The names of a project.
#[derive(Debug, Default, Clone)]
struct Known {
    /// When each event was noted last.
    events: HashMap<String, i64>,
    properties: HashSet<(PropertyOwner, String)>,
    /// Events whose names are all known look like this.
    shapes: HashSet<u64>,
}

/// The names of projects as they are in the store.
#[derive(Default)]
pub(super) struct NamesCache {
    hashing: RandomState,
    projects: Mutex<HashMap<ProjectId, Known>>,
}

/// What uses names.
pub(super) struct Named<'a> {
    pub(super) event: &'a AcceptedEvent,
    pub(super) facts: &'a Facts<'a>,
    pub(super) updates: &'a Updates<'a>,
    /// Properties that processing adds to the event.
    pub(super) added: &'a [(String, String)],
}

/// The names that a stretch adds in one project.
#[derive(Debug, Default)]
pub(super) struct NewNames {
    events: HashMap<String, EventDefinition>,
    properties: HashMap<(PropertyOwner, String), PropertyDefinition>,
    shapes: HashSet<u64>,
}

impl NamesCache {
    /// How events are told apart by their names.
    pub(super) fn hashing(&self) -> &RandomState {
        &self.hashing
    }

    /// Reads the names of a project if they are not known.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(super) async fn load(&self, store: &Store, project: ProjectId) -> Result<(), Error> {
        if self.projects.lock().contains_key(&project) {
            return Ok(());
        }
        let events = definitions::events(store, project).await?;
        let properties = definitions::properties(store, project).await?;
        let known = Known {
            events: events.into_iter().map(|seen| (seen.name, seen.last_at.micros())).collect(),
            properties: properties.into_iter().map(|seen| (seen.owner, seen.name)).collect(),
            shapes: HashSet::new(),
        };
        let mut projects = self.projects.lock();
        if projects.len() >= PROJECTS {
            projects.clear();
        }
        projects.entry(project).or_insert(known);
        Ok(())
    }

    /// Notes the names of an event that are new; gives whether there was room
    /// for all of them.
    pub(super) fn note(
        &self,
        project: ProjectId,
        new: &mut NewNames,
        named: Named<'_>,
        received_at: i64,
    ) -> bool {
        let shape = self.shape(&named);
        let Named { event, facts, updates, added } = named;
        let projects = self.projects.lock();
        // Pushed out meanwhile by other projects: the next stretch reads it again.
        let Some(known) = projects.get(&project) else { return true };
        let mut room = new.note_event(known, &event.event, received_at);
        if known.shapes.contains(&shape) || new.shapes.contains(&shape) {
            return room;
        }
        let of_group = updates::members(facts.group_set);
        let mut owned = |owner, members: &mut dyn Iterator<Item = (&str, &str)>| {
            for (name, value) in members {
                room &= new.note_property(known, owner, name, value, received_at);
            }
        };
        let of_event = updates::members(Some(&event.properties));
        let hidden = ["$set", "$set_once", "$unset", "$group_set"];
        let mut shown = of_event
            .iter()
            .map(|(name, value)| (name.as_ref(), *value))
            .filter(|(name, _)| !hidden.contains(name))
            .chain(added.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        owned(PropertyOwner::Event, &mut shown);
        owned(PropertyOwner::Person, &mut updates.named());
        owned(
            PropertyOwner::Group,
            &mut of_group.iter().map(|(name, value)| (name.as_ref(), *value)),
        );
        if room {
            new.shapes.insert(shape);
        }
        room
    }

    /// The same for events that use the same names for the same kinds of values.
    fn shape(&self, named: &Named<'_>) -> u64 {
        let Named { event: _, facts, updates, added } = named;
        let of_group = updates::members(facts.group_set);
        let of_person: Vec<_> = updates.named().map(named_kind).collect();
        let of_group: Vec<_> =
            of_group.iter().map(|(name, value)| named_kind((name.as_ref(), *value))).collect();
        let added: Vec<&str> = added.iter().map(|(name, _)| name.as_str()).collect();
        self.hashing.hash_one((facts.shape, of_person, of_group, added))
    }

    /// Takes over what was committed.
    pub(super) fn post(&self, project: ProjectId, new: NewNames) {
        let mut projects = self.projects.lock();
        // Pushed out meanwhile: a part of the names must not pass for all of them.
        let Some(known) = projects.get_mut(&project) else { return };
        known
            .events
            .extend(new.events.into_values().map(|seen| (seen.name, seen.last_at.micros())));
        known.properties.extend(new.properties.into_keys());
        if known.shapes.len() >= SHAPES {
            known.shapes.clear();
        }
        known.shapes.extend(new.shapes);
    }
}

impl NewNames {
    /// The records to write, in order of names.
    pub(super) fn definitions(&self) -> (Vec<EventDefinition>, Vec<PropertyDefinition>) {
        let mut events: Vec<_> = self.events.values().cloned().collect();
        events.sort_by(|a, b| a.name.cmp(&b.name));
        let mut properties: Vec<_> = self.properties.values().cloned().collect();
        properties.sort_by(|a, b| (a.owner, &a.name).cmp(&(b.owner, &b.name)));
        (events, properties)
    }

    fn note_event(&mut self, known: &Known, name: &str, at: i64) -> bool {
        if self.events.contains_key(name) {
            return true;
        }
        match known.events.get(name) {
            Some(last) if at < last.saturating_add(SEEN_EVERY) => return true,
            None if known.events.len() + self.events.len() >= NAMES_MAX => return false,
            Some(_) | None => {}
        }
        let at = Timestamp::from_micros(at);
        let seen = EventDefinition { name: name.to_owned(), first_at: at, last_at: at };
        self.events.insert(name.to_owned(), seen);
        true
    }

    fn note_property(
        &mut self,
        known: &Known,
        owner: PropertyOwner,
        name: &str,
        value: &str,
        at: i64,
    ) -> bool {
        if name.len() > NAME {
            return true;
        }
        // Of `null` the kind is not known yet.
        let Some(kind) = PropertyKind::of(value) else { return true };
        let key = (owner, name.to_owned());
        if known.properties.contains(&key) || self.properties.contains_key(&key) {
            return true;
        }
        if known.properties.len() + self.properties.len() >= NAMES_MAX {
            return false;
        }
        let first_at = Timestamp::from_micros(at);
        let seen = PropertyDefinition { owner, name: key.1.clone(), kind, first_at };
        self.properties.insert(key, seen);
        true
    }
}

fn named_kind<'a>((name, value): (&'a str, &str)) -> (&'a str, Option<PropertyKind>) {
    (name, PropertyKind::of(value))
}
