//! The persons and the activity of a group in the latest events of a project. The store
//! has no order of events by group, so older events are not searched.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use weir_model::groups::Group;
use weir_model::persons::PersonRef;
use weir_model::{PersonId, ProjectId};
use weir_store::events::{self, StoredEvent};
use weir_store::persons;

use super::Groups;
use crate::Result;
use crate::ctx::ProjectCtx;
use crate::persons::display_name;

/// How many of the latest events are searched.
const SEARCHED_EVENTS: usize = 2_000;
/// The maximum number of events that are shown.
const EVENTS: usize = 50;
/// The maximum number of persons that are shown.
const PERSONS: usize = 50;

/// The persons and the latest events of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupActivity {
    /// Persons with events of the group, those with most events first; `None`: not all
    /// events were searched, so the persons and their numbers are not known.
    pub persons: Option<GroupPersons>,
    /// Events of the group, the last to arrive first, at most 50.
    pub events: Vec<StoredEvent>,
    /// Whether the group has further events; `None`: not all events were searched.
    pub more: Option<bool>,
}

/// The persons with events of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupPersons {
    /// Their number.
    pub count: usize,
    /// Those with most events, at most 50.
    pub first: Vec<GroupPerson>,
}

/// A person with events of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupPerson {
    /// The person.
    pub id: PersonId,
    /// Its display name.
    pub name: String,
    /// How many of the group's events are from this person.
    pub events: u64,
}

impl Groups {
    /// Searches the latest events of the project for a group.
    pub async fn activity(&self, project: &ProjectCtx, group: &Group) -> Result<GroupActivity> {
        let (store, project_id) = (&self.core.store, project.project);
        let page = events::arrivals(store, project_id, None, SEARCHED_EVENTS).await?;
        let property = format!("$group_{}", group.index);
        let mut found: Vec<StoredEvent> = page
            .events
            .into_iter()
            .filter(|event| is_about(event, &property, &group.key))
            .collect();
        let persons = match page.more {
            true => None,
            false => Some(self.persons(project_id, &found).await?),
        };
        let is_cut = found.len() > EVENTS;
        found.truncate(EVENTS);
        Ok(GroupActivity { persons, events: found, more: (is_cut || !page.more).then_some(is_cut) })
    }

    async fn persons(&self, project: ProjectId, events: &[StoredEvent]) -> Result<GroupPersons> {
        let mut by_id: BTreeMap<PersonId, u64> = BTreeMap::new();
        for event in events {
            *by_id.entry(persons::first_id(project, &event.distinct_id)).or_default() += 1;
        }
        let ids: Vec<PersonId> = by_id.keys().copied().collect();
        let needed = |person: PersonRef| Some((person.id, display_name(&person)));
        let found = persons::resolve_as(&self.core.store, project, ids, needed).await?;
        let mut persons: HashMap<PersonId, GroupPerson> = HashMap::new();
        for (first, person) in found {
            let count = by_id.get(&first).copied().unwrap_or(0);
            let (id, name) = &*person;
            let new = || GroupPerson { id: *id, name: name.clone(), events: 0 };
            let person = persons.entry(*id).or_insert_with(new);
            person.events += count;
        }
        let mut persons: Vec<GroupPerson> = persons.into_values().collect();
        persons.sort_by(|a, b| b.events.cmp(&a.events).then_with(|| a.id.cmp(&b.id)));
        let count = persons.len();
        persons.truncate(PERSONS);
        Ok(GroupPersons { count, first: persons })
    }
}

/// Whether an event is about the group with this key. Most events are not, and are
/// skipped without being parsed.
fn is_about(event: &StoredEvent, property: &str, key: &str) -> bool {
    if !event.properties.contains(property) {
        return false;
    }
    let properties: Value = serde_json::from_str(&event.properties).unwrap_or_default();
    match properties.get(property) {
        Some(Value::String(text)) => text == key,
        Some(Value::Number(number)) => number.to_string() == key,
        Some(_) | None => false,
    }
}
