//! Persons in the pipeline: what an event changes, and a cache of those seen
//! lately (ingestion 4.2, 4.3).
//!
//! Here is the seam for what comes next in the order of work (ingestion 4.1):
//! automatic properties are lifted into [`Changes::read`], merges change which
//! person a distinct id leads to in [`PersonCache::effect`].

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use weir_model::{PersonId, ProjectId};
use weir_store::events::PersonWrite;
use weir_store::persons::{self, Person};
use weir_store::{Error, Store};

use crate::capture::AcceptedEvent;

/// Persons kept in memory per consumer.
const CACHED: usize = 20_000;
/// Bytes of a person's properties beyond which changes are not taken
/// (ingestion 2.7).
const PROPERTIES_LIMIT: usize = 524_288;

type Properties = BTreeMap<String, Box<RawValue>>;

/// What an event says about its person.
#[derive(Debug, Default)]
pub(super) struct Changes<'a> {
    set: Option<&'a RawValue>,
    set_once: Option<&'a RawValue>,
    unset: Option<&'a RawValue>,
    /// `$process_person_profile: false`: no person is created or changed.
    pub(super) without_profile: bool,
}

impl<'a> Changes<'a> {
    /// Reads the properties; the last of equal keys wins, as everywhere.
    pub(super) fn read(properties: &'a str) -> Self {
        struct Keys<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Keys<'a> {
            type Value = Changes<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Changes<'a>, A::Error> {
                let mut changes = Changes::default();
                while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                    let value = map.next_value::<&'de RawValue>()?;
                    match key.as_ref() {
                        "$set" => changes.set = Some(value),
                        "$set_once" => changes.set_once = Some(value),
                        "$unset" => changes.unset = Some(value),
                        "$process_person_profile" => {
                            changes.without_profile = value.get() == "false";
                        }
                        _ => {}
                    }
                }
                Ok(changes)
            }
        }
        let mut json = serde_json::Deserializer::from_str(properties);
        json.deserialize_map(Keys(std::marker::PhantomData)).unwrap_or_default()
    }

    fn is_empty(&self) -> bool {
        self.set.is_none() && self.set_once.is_none() && self.unset.is_none()
    }

    /// Applies to a person's properties: `$set_once`, then `$set`, then `$unset`.
    fn apply(&self, properties: &mut Properties) -> bool {
        let mut changed = false;
        for (key, value) in object(self.set_once) {
            let missing = properties
                .get(&key)
                .is_none_or(|present| present.get() == "null" && value.get() != "null");
            if missing {
                properties.insert(key, value);
                changed = true;
            }
        }
        for (key, value) in object(self.set) {
            let same = properties.get(&key).is_some_and(|present| present.get() == value.get());
            if !same {
                properties.insert(key, value);
                changed = true;
            }
        }
        for key in names(self.unset) {
            changed |= properties.remove(&key).is_some();
        }
        changed
    }
}

fn object(raw: Option<&RawValue>) -> Properties {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

/// `$unset` names keys in a list, or as the keys of an object.
fn names(raw: Option<&RawValue>) -> Vec<String> {
    let Some(raw) = raw else { return Vec::new() };
    serde_json::from_str::<Vec<String>>(raw.get())
        .unwrap_or_else(|_| object(Some(raw)).into_keys().collect())
}

/// An event about a person.
#[derive(Debug)]
pub(super) struct Told<'a> {
    /// The person.
    pub(super) id: PersonId,
    /// The event.
    pub(super) event: &'a AcceptedEvent,
    /// When it arrived, microseconds.
    pub(super) received_at: i64,
    /// What it says about the person.
    pub(super) changes: Changes<'a>,
}

/// A person as the pipeline knows it.
#[derive(Debug, Clone)]
struct Known {
    distinct_ids: Vec<String>,
    properties: String,
    created_at: i64,
    is_identified: bool,
    version: i64,
}

impl From<Person> for Known {
    fn from(found: Person) -> Self {
        Self {
            distinct_ids: found.person.distinct_ids,
            properties: found.person.properties,
            created_at: found.person.created_at.micros(),
            is_identified: found.person.is_identified,
            version: found.version,
        }
    }
}

/// Persons seen lately. What is not in it is read from the store first.
#[derive(Debug, Default)]
pub(super) struct PersonCache {
    known: HashMap<(i64, PersonId), Option<Known>>,
}

/// The changed persons of a stretch.
#[derive(Debug, Default)]
pub(super) struct PersonChanges {
    writes: BTreeMap<PersonId, PersonWrite>,
    /// When events arrived whose changes were refused because of their size.
    pub(super) too_large: Vec<i64>,
}

impl PersonChanges {
    /// The records to write.
    pub(super) fn into_writes(self) -> Vec<PersonWrite> {
        self.writes.into_values().collect()
    }
}

impl PersonCache {
    /// Reads the persons that are not known yet.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(super) async fn load(
        &mut self,
        store: &Store,
        project: ProjectId,
        ids: impl Iterator<Item = PersonId>,
    ) -> Result<(), Error> {
        if self.known.len() > CACHED {
            self.known.clear();
        }
        let mut missing: Vec<PersonId> =
            ids.filter(|id| !self.known.contains_key(&(project.0, *id))).collect();
        missing.sort_unstable();
        missing.dedup();
        let found = persons::by_ids(store, project, &missing).await?;
        for id in missing {
            self.known.insert((project.0, id), None);
        }
        for person in found {
            self.known.insert((project.0, person.person.id), Some(person.into()));
        }
        Ok(())
    }

    /// Forgets everything: after a failed write, what is stored counts.
    pub(super) fn clear(&mut self) {
        self.known.clear();
    }

    /// What an event changes. The person must have been loaded.
    pub(super) fn effect(
        &mut self,
        project: ProjectId,
        told: &Told<'_>,
        writes: &mut PersonChanges,
    ) {
        let Told { id, event, received_at, changes } = told;
        let id = *id;
        let known = self.known.entry((project.0, id)).or_insert(None);
        let before = known.as_ref().map(|k| k.version);
        let (next, effect) = match known.take() {
            Some(person) => changed(person, changes),
            None => created(event, changes),
        };
        if effect.too_large {
            writes.too_large.push(*received_at);
        }
        if effect.changed {
            let expected = writes.writes.get(&id).map_or(before, |write| write.expected);
            writes.writes.insert(
                id,
                PersonWrite {
                    id,
                    distinct_ids: next.distinct_ids.clone(),
                    properties: next.properties.clone(),
                    created_at: next.created_at,
                    is_identified: next.is_identified,
                    expected,
                    version: next.version,
                },
            );
        }
        *known = Some(next);
    }
}

/// What an event did to its person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Effect {
    changed: bool,
    /// What it asked for was not done because of the size.
    too_large: bool,
}

fn created(event: &AcceptedEvent, changes: &Changes<'_>) -> (Known, Effect) {
    let with_creator = |mut properties: Properties| {
        if let Ok(value) = RawValue::from_string(format!("\"{}\"", event.uuid)) {
            properties.insert("$creator_event_uuid".to_owned(), value);
        }
        text(&properties)
    };
    let mut properties = Properties::new();
    changes.apply(&mut properties);
    let mut properties = with_creator(properties);
    let too_large = properties.len() > PROPERTIES_LIMIT;
    if too_large {
        properties = with_creator(Properties::new());
    }
    let person = Known {
        distinct_ids: vec![event.distinct_id.clone()],
        properties,
        created_at: event.timestamp,
        is_identified: false,
        version: 0,
    };
    (person, Effect { changed: true, too_large })
}

fn changed(mut person: Known, changes: &Changes<'_>) -> (Known, Effect) {
    if changes.is_empty() {
        return (person, Effect::default());
    }
    let mut properties: Properties = serde_json::from_str(&person.properties).unwrap_or_default();
    if !changes.apply(&mut properties) {
        return (person, Effect::default());
    }
    let after = text(&properties);
    if after.len() > PROPERTIES_LIMIT {
        return (person, Effect { changed: false, too_large: true });
    }
    person.properties = after;
    person.version += 1;
    (person, Effect { changed: true, too_large: false })
}

fn text(properties: &Properties) -> String {
    // Raw values under text keys always serialise.
    serde_json::to_string(properties).unwrap_or_else(|_| "{}".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(before: &str, event: &str) -> String {
        let mut properties: Properties = serde_json::from_str(before).unwrap_or_default();
        Changes::read(event).apply(&mut properties);
        text(&properties)
    }

    #[test]
    fn properties_change_in_order() {
        let cases = [
            ("{}", r#"{"$set":{"a":1}}"#, r#"{"a":1}"#),
            (r#"{"a":1}"#, r#"{"$set_once":{"a":2,"b":3}}"#, r#"{"a":1,"b":3}"#),
            (r#"{"a":null}"#, r#"{"$set_once":{"a":2}}"#, r#"{"a":2}"#),
            (r#"{"a":null}"#, r#"{"$set_once":{"a":null}}"#, r#"{"a":null}"#),
            ("{}", r#"{"$set_once":{"a":1},"$set":{"a":2},"$unset":["b"]}"#, r#"{"a":2}"#),
            (r#"{"a":1,"b":2}"#, r#"{"$unset":["a"]}"#, r#"{"b":2}"#),
            (r#"{"a":1,"b":2}"#, r#"{"$unset":{"b":""}}"#, r#"{"a":1}"#),
            (r#"{"a":1}"#, r#"{"$set":"text","$unset":7}"#, r#"{"a":1}"#),
            (
                "{}",
                r#"{"$set":{"n":12345678901234567890.123}}"#,
                r#"{"n":12345678901234567890.123}"#,
            ),
        ];
        for (before, event, after) in cases {
            assert_eq!(applied(before, event), after, "{before} {event}");
        }
    }

    #[test]
    fn only_the_boolean_switches_the_profile_off() {
        for (text, without) in [
            (r#"{"$process_person_profile":false}"#, true),
            (r#"{"$process_person_profile":true}"#, false),
            (r#"{"$process_person_profile":"false"}"#, false),
            (r#"{"$process_person_profile":0}"#, false),
            ("{}", false),
        ] {
            assert_eq!(Changes::read(text).without_profile, without, "{text}");
        }
    }
}
