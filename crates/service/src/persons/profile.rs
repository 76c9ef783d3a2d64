//! One person as a page shows it: how its distinct ids were joined, its newest events,
//! and what they show about its properties and groups.
//!
//! The store has no history of properties. Everything about their history comes from
//! the newest events.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
use uuid::Uuid;
use weir_model::events::EventQuery;
use weir_model::outcomes::Warning;
use weir_model::persons::PersonRef;
use weir_model::{PersonId, Timestamp};
use weir_store::events::{self, StoredEvent};
use weir_store::persons::{self as rows, PersonState, Stored};
use weir_store::{ByteBudget, warnings};

use super::Persons;
use crate::Result;
use crate::ctx::ProjectCtx;

/// The maximum number of distinct ids that are shown and whose events are read: the
/// main one, and those that joined last. With many ids few blocks of events could be
/// skipped.
const IDS: usize = 100;
/// How many events are searched for properties and groups.
const NEWEST: usize = 200;

/// A person and the facts around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The person with its properties.
    pub person: PersonRef,
    /// Its distinct ids and how they joined it, the main one first.
    pub ids: Vec<DistinctId>,
    /// How many distinct ids are not shown. Their events are not read.
    pub more_ids: usize,
    /// Which event set a property last, among the newest events.
    pub set_by: BTreeMap<String, SetBy>,
    /// Groups in its newest events: type and key.
    pub groups: BTreeSet<(String, String)>,
    /// How many of its newest events were read.
    pub looked_at: usize,
    /// Refused merges of this person among the stored samples.
    pub refused: Vec<RefusedMerge>,
}

/// A distinct id of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DistinctId {
    /// The distinct id, as senders wrote it.
    pub id: String,
    /// When it joined the person, and by which event; `None`: it belonged to this
    /// person from the beginning.
    pub joined: Option<(Timestamp, Uuid)>,
}

/// The event that set a property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetBy {
    /// Name of the event.
    pub event: String,
    /// The uuid of the event.
    pub uuid: Uuid,
    /// Its time.
    pub at: Timestamp,
}

/// A merge that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedMerge {
    /// When the event was received.
    pub at: Timestamp,
    /// The reason, as a sentence.
    pub why: &'static str,
    /// The distinct id of the event.
    pub distinct_id: String,
}

/// Events of a person, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    /// The events.
    pub events: Vec<StoredEvent>,
    /// Whether there are older ones.
    pub more: bool,
}

impl Persons {
    /// A person, also by the id of one that was merged into it.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`].
    pub async fn profile(&self, project: &ProjectCtx, id: PersonId) -> Result<Profile> {
        let person = self.get(project, id).await?;
        let shown = shown_ids(&person);
        let (store, home) = (&self.core.store, project.project);
        let firsts: Vec<PersonId> = shown.iter().map(|id| rows::first_id(home, id)).collect();
        // One of them is this person, and the others lead to it.
        let mut room = ByteBudget::ALL;
        let records = rows::by_ids(store, home, &firsts, &mut room).await?;
        let joined = |record: &Stored| match &record.state {
            PersonState::Merged(merged) => {
                Some((record.id, (Timestamp::from_micros(merged.at), merged.by)))
            }
            PersonState::Person(_) | PersonState::Erased => None,
        };
        let joined: HashMap<PersonId, (Timestamp, Uuid)> =
            records.iter().filter_map(joined).collect();
        let ids = shown
            .iter()
            .zip(&firsts)
            .map(|(id, first)| DistinctId { id: id.clone(), joined: joined.get(first).copied() });
        let ids = ids.collect();
        let newest = self.timeline(project, &person, NEWEST, None, None).await?.events;
        let refused = self.refused(project, &person).await?;
        let more_ids = person.distinct_ids.len().saturating_sub(shown.len());
        Ok(Profile {
            more_ids,
            ids,
            set_by: set_by(&newest),
            groups: groups(&newest),
            looked_at: newest.len(),
            refused,
            person,
        })
    }

    /// Events of a person's shown distinct ids before a cursor in its timeline; with a
    /// name, only events of that name.
    pub async fn timeline(
        &self,
        project: &ProjectCtx,
        person: &PersonRef,
        limit: usize,
        name: Option<String>,
        before: Option<(Timestamp, Uuid)>,
    ) -> Result<Timeline> {
        let query = EventQuery {
            limit,
            event: name,
            any_of: shown_ids(person),
            before: before.map(|(time, _)| time),
            before_uuid: before.map(|(_, uuid)| uuid),
            ..EventQuery::default()
        };
        if query.any_of.is_empty() {
            return Ok(Timeline { events: Vec::new(), more: false });
        }
        let (events, more) = events::page(&self.core.store, project.project, &query).await?;
        Ok(Timeline { events, more })
    }

    /// Refused merges of this person among the stored samples.
    async fn refused(&self, project: &ProjectCtx, person: &PersonRef) -> Result<Vec<RefusedMerge>> {
        const REFUSALS: [Warning; 2] = [Warning::MergeRefused, Warning::MergeIdIllegal];
        let counted = warnings::counts(&self.core.store, project.project).await?;
        let mut refused = Vec::new();
        for warning in REFUSALS {
            let of_code = counted.iter().filter(|counted| counted.code == warning.code());
            for sample in of_code.flat_map(|counted| &counted.samples) {
                let Some(distinct_id) = &sample.distinct_id else { continue };
                if person.distinct_ids.contains(distinct_id) {
                    refused.push(RefusedMerge {
                        at: sample.received_at,
                        why: warning.sentence(),
                        distinct_id: distinct_id.clone(),
                    });
                }
            }
        }
        Ok(refused)
    }
}

/// The main distinct id, and those that joined last.
fn shown_ids(person: &PersonRef) -> Vec<String> {
    let mut ids = person.distinct_ids.iter();
    let main = ids.next();
    main.into_iter().chain(ids.rev()).take(IDS).cloned().collect()
}

/// Which event set a property last. Events come newest first, and a value that was set
/// once stays.
fn set_by(newest: &[StoredEvent]) -> BTreeMap<String, SetBy> {
    let mut found: BTreeMap<String, SetBy> = BTreeMap::new();
    let mut once: BTreeMap<String, SetBy> = BTreeMap::new();
    for event in newest {
        let properties: Value = serde_json::from_str(&event.properties).unwrap_or_default();
        let by = || SetBy {
            event: event.event.clone(),
            uuid: event.uuid,
            at: Timestamp::from_micros(event.timestamp),
        };
        for name in names(properties.get("$set")) {
            found.entry(name).or_insert_with(by);
        }
        for name in names(properties.get("$set_once")) {
            // The oldest event set it.
            once.insert(name, by());
        }
    }
    for (name, by) in once {
        found.entry(name).or_insert(by);
    }
    found
}

fn names(object: Option<&Value>) -> Vec<String> {
    object.and_then(Value::as_object).into_iter().flat_map(|set| set.keys().cloned()).collect()
}

fn groups(newest: &[StoredEvent]) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for event in newest {
        let properties: Value = serde_json::from_str(&event.properties).unwrap_or_default();
        let named = properties.get("$groups").and_then(Value::as_object);
        for (kind, key) in named.into_iter().flatten() {
            let key = match key {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                _ => continue,
            };
            found.insert((kind.clone(), key));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u128, properties: &str) -> StoredEvent {
        StoredEvent {
            arrival: 1,
            uuid: Uuid::from_u128(number),
            event: format!("event {number}"),
            distinct_id: "ada".to_owned(),
            timestamp: 0,
            received_at: 0,
            properties: properties.to_owned(),
            elements_chain: String::new(),
            historical: false,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn the_newest_event_sets_and_the_oldest_sets_once() {
        let newest = [
            event(3, r#"{"$set":{"plan":"pro"},"$set_once":{"first":"c"}}"#),
            event(2, r#"{"$set":{"plan":"free","name":"Ada"},"$groups":{"company":"acme"}}"#),
            event(1, r#"{"$set_once":{"first":"a","name":"x"},"$groups":{"team":7,"odd":null}}"#),
        ];
        let found: Vec<(String, String)> =
            set_by(&newest).into_iter().map(|(name, by)| (name, by.event)).collect();
        let expected = [("first", "event 1"), ("name", "event 2"), ("plan", "event 3")];
        assert_eq!(found, expected.map(|(name, by)| (name.to_owned(), by.to_owned())));
        let expected = [("company", "acme"), ("team", "7")];
        let expected = expected.map(|(kind, key)| (kind.to_owned(), key.to_owned()));
        assert_eq!(groups(&newest), BTreeSet::from(expected));
    }
}
