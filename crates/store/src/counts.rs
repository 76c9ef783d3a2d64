//! Event counts: how many events a person has, and the times of the first and the last, in
//! total and within each group.
//!
//! | table | key | holds |
//! |---|---|---|
//! | `event_count` | `[project, scope, id]` and a slot | counts of a distinct id, or the person that an id was merged into. Not a record (`entries`) |
//! | `event_count_cursor` | `[project, partition]` | how far events from before there were counts are counted (`earlier`) |
//!
//! Every stored event is counted once (ING-63). Counts belong to the first id of a distinct
//! id ([`first_id`](crate::persons::first_id)). So a merge changes none of them: those of a
//! person are the sum of its distinct ids.
//! They are written in the transaction that stores the events, and each partition has its
//! own slot, so partitions are never in conflict. Removed events have a slot too, which is
//! subtracted. First and last seen stay as they were.
//!
//! The counts of an erased person go away with the person ([`forget`]), and those within its
//! groups with its events ([`Subtracted`]).
//!
//! What belongs here: counts of a batch, and reading counts. What does not: which events
//! are stored (`events/apply`), removed (`events/segments/retention`) and erased
//! (`events/segments/erase`).

mod earlier;
mod entries;
mod ranking;
mod read;
mod results;

use std::borrow::Cow;
use std::collections::HashMap;

use uuid::{Uuid, uuid};
use weir_json::{self as json, Cursor, Limits};
use weir_model::{PersonId, ProjectId};

use crate::events::StoredEvent;
use crate::groups::TYPES;
use crate::persons;

pub use self::earlier::{Counting, Progress};
pub use self::ranking::{RANKED, Ranking, ranking};
pub use self::read::{MEMBERS, Member, Members, PersonCounts, members, of_persons};

pub(crate) use self::earlier::{Uncounted, is_complete, purge};
pub(crate) use self::entries::{CountWrites, Slot, Subtracted, forget, ranges};
#[cfg(test)]
pub(crate) use self::ranking::make as made;
pub(crate) use self::ranking::{Rankings, no_rankings};
pub(crate) use self::read::{MembersRead, first_seen, merged_into, merges, no_members};

/// Namespace of the scopes of groups. It must never change, because keys depend on it.
const NAMESPACE: Uuid = uuid!("0d3f1c52-7a64-4b0e-9f0d-2c8a6f3be971");

/// Counts of some events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    events: i64,
    /// Earliest event time, microseconds.
    first: i64,
    /// Latest event time, microseconds.
    last: i64,
    /// Whether one of the events has a person, or another person was merged into this one.
    has_person: bool,
}

impl Counts {
    const NONE: Self = Self { events: 0, first: i64::MAX, last: i64::MIN, has_person: false };

    #[must_use]
    fn with(self, other: Self) -> Self {
        Self {
            events: self.events.saturating_add(other.events),
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            has_person: self.has_person || other.has_person,
        }
    }

    /// The counts with those of a slot: removed events are subtracted.
    #[must_use]
    fn with_slot(self, slot: u8, counts: Self) -> Self {
        match slot == Slot::Removed.byte() {
            true => Self { events: self.events.saturating_sub(counts.events), ..self },
            false => self.with(counts),
        }
    }

    fn is_seen(self) -> bool {
        self.first <= self.last
    }
}

/// What is counted of an event.
#[derive(Debug, Clone, Copy)]
pub struct CountedEvent<'a> {
    /// The first id of its distinct id.
    pub first_id: PersonId,
    /// Event time, microseconds.
    pub time: i64,
    /// Whether the event has a person.
    pub has_person: bool,
    /// The values of `$group_0` to `$group_4` as JSON text.
    pub groups: [Option<&'a str>; TYPES],
}

/// The counts of a batch of events of one project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// By scope and first id.
    rows: HashMap<(Uuid, Uuid), Counts>,
}

impl EventCounts {
    /// Counts an event.
    pub fn add(&mut self, event: &CountedEvent<'_>) {
        self.add_to(entries::PERSONS, event.first_id, event.counts());
        self.add_to_groups(event);
    }

    fn add_to_groups(&mut self, event: &CountedEvent<'_>) {
        let (CountedEvent { first_id, groups, .. }, one) = (*event, event.counts());
        for (index, value) in groups.into_iter().enumerate() {
            if let Some(key) = value.and_then(group_key) {
                self.add_to(group_scope(index, &key), first_id, one);
            }
        }
    }

    /// Counts an event as it is stored.
    pub(crate) fn add_stored(&mut self, project: ProjectId, event: &StoredEvent) {
        self.add(&CountedEvent::of_stored(project, event));
    }

    /// Counts an event as it is stored, within its groups alone: the other counts of an
    /// erased person go away with the person.
    pub(crate) fn add_stored_to_groups(&mut self, project: ProjectId, event: &StoredEvent) {
        self.add_to_groups(&CountedEvent::of_stored(project, event));
    }

    /// Notes that there is a person with this id, although it may have no events.
    pub(crate) fn mark_person(&mut self, id: PersonId) {
        self.add_to(entries::PERSONS, id, Counts { has_person: true, ..Counts::NONE });
    }

    fn add_to(&mut self, scope: Uuid, first_id: PersonId, counts: Counts) {
        let present = self.rows.entry((scope, first_id.0)).or_insert(Counts::NONE);
        *present = present.with(counts);
    }
}

impl<'a> CountedEvent<'a> {
    fn counts(&self) -> Counts {
        Counts { events: 1, first: self.time, last: self.time, has_person: self.has_person }
    }

    /// What is counted of a stored event.
    fn of_stored(project: ProjectId, event: &'a StoredEvent) -> Self {
        let mut groups = [None; TYPES];
        let mut profile = None;
        let parsed = Cursor::new(&event.properties, Limits::NONE).object(|key, cursor| {
            let value = cursor.value()?;
            let name = key.text();
            if name == "$process_person_profile" {
                profile = Some(value);
            } else if let Some(group) = group_index(&name).and_then(|at| groups.get_mut(at)) {
                *group = Some(value);
            }
            Ok(())
        });
        debug_assert!(parsed.is_ok(), "properties that are no object");
        Self {
            first_id: persons::first_id(project, &event.distinct_id),
            time: event.timestamp,
            has_person: profile != Some("false"),
            groups,
        }
    }
}

/// The index of the group type that a property `$group_0` to `$group_4` is about.
pub fn group_index(property: &str) -> Option<usize> {
    match property.strip_prefix("$group_")?.as_bytes() {
        [digit @ b'0'..=b'4'] => Some(usize::from(digit - b'0')),
        _ => None,
    }
}

/// The key of a group from JSON text: a string that is not empty, or a number.
fn group_key(value: &str) -> Option<Cow<'_, str>> {
    let key = match value.as_bytes().first()? {
        b'"' => json::string_lossy(value)?,
        b'-' | b'0'..=b'9' => Cow::Borrowed(value),
        _ => return None,
    };
    (!key.is_empty()).then_some(key)
}

/// The scope of the events of a group.
fn group_scope(index: usize, key: &str) -> Uuid {
    Uuid::new_v5(&NAMESPACE, format!("{index}:{key}").as_bytes())
}

#[cfg(test)]
mod tests;
