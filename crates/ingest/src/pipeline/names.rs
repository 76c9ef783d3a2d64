//! New names of events and properties.
//!
//! There is one table for all consumers. Names come from outside, so the number of names
//! recorded per project is bounded, and so is the memory for all projects.
//!
//! What belongs here: finding new names. What does not: storing them (`weir-store`).

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};

use parking_lot::Mutex;
use quick_cache::Weighter;
use quick_cache::unsync::Cache;
use weir_model::definitions::{
    EventDefinition, NAMES_MAX, PropertyDefinition, PropertyKind, PropertyOwner,
};
use weir_model::{ProjectId, Timestamp};
use weir_store::{Error, Store, definitions};

use super::properties::members;
use super::special_properties::SpecialProperties;
use super::updates::Updates;
use crate::logged::EventView;

/// Number of projects to expect. The cache sizes its tables by it.
const PROJECTS: usize = 1_000;
/// Upper bound of bytes in memory. The least recently used projects are removed first.
const BYTES: u64 = 64 << 20;
/// Bytes that a project, and each of its names, takes in addition to the text.
const OVERHEAD: u64 = 100;
/// Shapes of events that are kept in memory per project.
const SHAPES: usize = 10_000;
/// Upper bound of bytes in a name. Longer names are not recorded.
const NAME: usize = 400;
/// Shortest time between two records of the last use of an event, in microseconds.
const SEEN_EVERY: i64 = 3_600_000_000;

#[derive(Debug, Default, Clone)]
struct ProjectNames {
    /// When the last use of each event was recorded.
    events: HashMap<String, i64>,
    properties: HashSet<(PropertyOwner, String)>,
    /// Shapes of events whose names are all known.
    shapes: HashSet<u64>,
    /// Bytes in memory, roughly.
    bytes: u64,
}

impl ProjectNames {
    /// Adds names that are in the store.
    fn extend(
        &mut self,
        events: impl IntoIterator<Item = EventDefinition>,
        properties: impl IntoIterator<Item = (PropertyOwner, String)>,
    ) {
        let taken = |name: &str| name.len() as u64 + OVERHEAD;
        for EventDefinition { name, last_at, .. } in events {
            let bytes = taken(&name);
            if self.events.insert(name, last_at.micros()).is_none() {
                self.bytes += bytes;
            }
        }
        for key in properties {
            let bytes = taken(&key.1);
            if self.properties.insert(key) {
                self.bytes += bytes;
            }
        }
    }
}

#[derive(Debug, Clone)]
struct Weight;

impl Weighter<ProjectId, ProjectNames> for Weight {
    fn weight(&self, _project: &ProjectId, names: &ProjectNames) -> u64 {
        names.bytes + OVERHEAD + (names.shapes.len() * size_of::<u64>()) as u64
    }
}

/// The names of projects as they are in the store.
pub(super) struct NamesCache {
    hashing: RandomState,
    projects: Mutex<Cache<ProjectId, ProjectNames, Weight>>,
}

impl Default for NamesCache {
    fn default() -> Self {
        Self::within(BYTES)
    }
}

/// An event and the properties whose names it uses.
pub(super) struct Named<'a> {
    pub(super) event: EventView<'a>,
    pub(super) special: &'a SpecialProperties<'a>,
    pub(super) updates: &'a Updates<'a>,
    /// Properties that processing adds to the event.
    pub(super) added: &'a [(String, String)],
}

/// The names that a batch adds to one project.
#[derive(Debug, Default)]
pub(super) struct NewNames {
    events: HashMap<String, EventDefinition>,
    properties: HashMap<(PropertyOwner, String), PropertyDefinition>,
    shapes: HashSet<u64>,
}

impl NamesCache {
    fn within(bytes: u64) -> Self {
        let projects = Mutex::new(Cache::with_weighter(PROJECTS, bytes, Weight));
        Self { hashing: RandomState::new(), projects }
    }

    /// The hash keys that shapes are computed with.
    pub(super) fn hashing(&self) -> &RandomState {
        &self.hashing
    }

    /// Reads the names of a project if they are not in memory.
    pub(super) async fn load(&self, store: &Store, project: ProjectId) -> Result<(), Error> {
        if self.projects.lock().contains_key(&project) {
            return Ok(());
        }
        let events = definitions::events(store, project).await?;
        let properties = definitions::properties(store, project).await?;
        let mut names = ProjectNames::default();
        names.extend(events, properties.into_iter().map(|seen| (seen.owner, seen.name)));
        let mut projects = self.projects.lock();
        // Another consumer may have read the names first, and added to them since.
        if !projects.contains_key(&project) {
            projects.insert(project, names);
        }
        Ok(())
    }

    /// Records the new names of an event. Returns whether there was space for all of
    /// them.
    pub(super) fn note(
        &self,
        project: ProjectId,
        new: &mut NewNames,
        named: Named<'_>,
        received_at: i64,
    ) -> bool {
        let shape = self.shape(&named);
        let Named { event, special, updates, added } = named;
        let projects = self.projects.lock();
        // Other projects have displaced this one in the meantime. The next batch reads it
        // again.
        let Some(names) = projects.get(&project) else { return true };
        let mut room = new.note_event(names, event.event, received_at);
        if names.shapes.contains(&shape) || new.shapes.contains(&shape) {
            return room;
        }
        let of_group = members(special.group_set);
        let mut owned = |owner, members: &mut dyn Iterator<Item = (&str, &str)>| {
            for (name, value) in members {
                room &= new.note_property(names, owner, name, value, received_at);
            }
        };
        let of_event = members(Some(event.properties));
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

    /// A hash that is the same for events that use the same names with the same kinds of
    /// values.
    fn shape(&self, named: &Named<'_>) -> u64 {
        let Named { event: _, special, updates, added } = named;
        let of_group = members(special.group_set);
        let of_person: Vec<_> = updates.named().map(named_kind).collect();
        let of_group: Vec<_> =
            of_group.iter().map(|(name, value)| named_kind((name.as_ref(), *value))).collect();
        let added: Vec<&str> = added.iter().map(|(name, _)| name.as_str()).collect();
        self.hashing.hash_one((special.shape, of_person, of_group, added))
    }

    /// Adds the names that were committed.
    pub(super) fn post(&self, project: ProjectId, new: NewNames) {
        let mut projects = self.projects.lock();
        // Other projects have displaced this one in the meantime. An incomplete list must
        // not pass for the complete one.
        let Some(mut names) = projects.get_mut(&project) else { return };
        names.extend(new.events.into_values(), new.properties.into_keys());
        if names.shapes.len() >= SHAPES {
            names.shapes.clear();
        }
        names.shapes.extend(new.shapes);
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

    fn note_event(&mut self, names: &ProjectNames, name: &str, at: i64) -> bool {
        if self.events.contains_key(name) {
            return true;
        }
        match names.events.get(name) {
            Some(last) if at < last.saturating_add(SEEN_EVERY) => return true,
            None if names.events.len() + self.events.len() >= NAMES_MAX => return false,
            Some(_) | None => {}
        }
        let at = Timestamp::from_micros(at);
        let seen = EventDefinition { name: name.to_owned(), first_at: at, last_at: at };
        self.events.insert(name.to_owned(), seen);
        true
    }

    fn note_property(
        &mut self,
        names: &ProjectNames,
        owner: PropertyOwner,
        name: &str,
        value: &str,
        at: i64,
    ) -> bool {
        if name.len() > NAME {
            return true;
        }
        // A `null` does not show the kind of the property.
        let Some(kind) = PropertyKind::of(value) else { return true };
        let key = (owner, name.to_owned());
        if names.properties.contains(&key) || self.properties.contains_key(&key) {
            return true;
        }
        if names.properties.len() + self.properties.len() >= NAMES_MAX {
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

#[cfg(test)]
mod tests {
    use weir_store::{Location, Settings};

    use super::*;

    fn named(name: &str) -> NewNames {
        let at = Timestamp::EPOCH;
        let seen = EventDefinition { name: name.to_owned(), first_at: at, last_at: at };
        let mut new = NewNames::default();
        new.events.insert(name.to_owned(), seen);
        new
    }

    fn knows(cache: &NamesCache, project: ProjectId, name: &str) -> bool {
        let projects = cache.projects.lock();
        projects.get(&project).is_some_and(|names| names.events.contains_key(name))
    }

    #[tokio::test]
    async fn projects_that_are_used_stay_and_memory_is_bounded() {
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        let bytes = 20_000;
        let cache = NamesCache::within(bytes);
        let used = ProjectId(1);
        cache.load(&store, used).await.unwrap();
        cache.post(used, named("click"));
        for other in 2..300 {
            let other = ProjectId(other);
            cache.load(&store, other).await.unwrap();
            cache.post(other, named(&"x".repeat(300)));
            assert!(knows(&cache, used, "click"), "forgotten at {other}");
            let projects = cache.projects.lock();
            // The weight of the last addition counts with the next insertion.
            assert!(projects.weight() <= bytes + 1_000, "{} at {other}", projects.weight());
        }
        assert!(cache.projects.lock().len() > 20, "not all of the others went at once");
        // A project that is alone in the cache is counted immediately.
        cache.post(used, named("buy"));
        assert!(knows(&cache, used, "buy"));
    }
}
