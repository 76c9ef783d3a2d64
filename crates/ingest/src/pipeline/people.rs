//! The persons of a batch and what its events do to them (ING-41, ING-44, ING-50).
//!
//! What belongs here: following merges, creating, changing and merging persons. What does
//! not: the changes that an event asks for (`updates`), the ids that it merges (`merge`).

use std::collections::HashMap;
use std::sync::Arc;

use uuid::Uuid;
use weir_model::outcomes::Warning;
use weir_model::{PersonId, ProjectId};
use weir_store::persons::{self, Merged, PersonState, PersonWrite, Stored};
use weir_store::{ByteBudget, Error, Store};

use super::cache::PersonCache;
use super::merge::{Merge, Refusal};
use super::properties::{Properties, overhead};
use super::updates::{self, Applied, Updates};

/// Upper bound of the distinct ids that a person lists, and of their bytes. Further ids
/// lead to the person too, but are not listed.
const LISTED: usize = 10_000;
const LISTED_BYTES: usize = 512 << 10;
/// A version below the first one, 0.
const NEVER: i64 = -1;

/// The event that causes a change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cause<'a> {
    pub(super) uuid: Uuid,
    pub(super) distinct_id: &'a str,
    /// Event time in microseconds.
    pub(super) timestamp: i64,
}

/// A person that the batch reads or changes.
#[derive(Debug, Clone)]
struct Person {
    distinct_ids: Vec<String>,
    properties: Held,
    created_at: i64,
    is_identified: bool,
}

/// Properties, which stay text until they are needed.
#[derive(Debug, Clone, Default)]
struct Held {
    text: Option<String>,
    /// Has no meaning while the text is there.
    read: Properties,
}

impl Held {
    fn read(&mut self) -> &mut Properties {
        if let Some(text) = self.text.take() {
            self.read = Properties::read(&text);
        }
        &mut self.read
    }

    fn into_read(mut self) -> Properties {
        std::mem::take(self.read())
    }

    fn into_text(self) -> String {
        self.text.unwrap_or_else(|| self.read.write())
    }
}

#[derive(Debug, Clone)]
enum State {
    Absent,
    Person(Person),
    Merged(Merged),
}

/// The present and the stored record of an id.
#[derive(Debug, Clone)]
struct PersonSlot {
    state: State,
    /// The stored version. `None` if the store has no record.
    stored: Option<i64>,
    /// The written version must also be above this one: the version of a survivor is
    /// above the version of the merged person.
    above: i64,
    is_changed: bool,
}

/// The persons of one project that the events of a batch concern.
#[derive(Debug, Default)]
pub(super) struct People {
    slots: HashMap<PersonId, PersonSlot>,
    /// Bytes of memory that properties of events have added.
    grown: usize,
}

impl People {
    /// Reads the persons of these ids, and the persons that they were merged into. `None`
    /// if they are larger than `budget`.
    pub(super) async fn load(
        cache: &PersonCache,
        store: &Store,
        project: ProjectId,
        ids: impl IntoIterator<Item = PersonId>,
        budget: &mut ByteBudget,
    ) -> Result<Option<Self>, Error> {
        let mut people = Self::default();
        let mut wanted: Vec<PersonId> = ids.into_iter().collect();
        while !wanted.is_empty() {
            wanted.sort_unstable();
            wanted.dedup();
            wanted.retain(|id| !people.slots.contains_key(id));
            for id in &wanted {
                people.slots.insert(*id, PersonSlot::empty());
            }
            let found = cache.get(store, project, &wanted, budget).await?;
            if budget.is_used_up() {
                return Ok(None);
            }
            wanted.clear();
            for record in found {
                match &record.state {
                    PersonState::Person(facts) => budget.take(overhead(&facts.properties)),
                    PersonState::Merged(merged) => wanted.push(merged.into),
                }
                people.slots.insert(record.id, PersonSlot::of(&record));
            }
            if budget.is_used_up() {
                return Ok(None);
            }
        }
        people.shorten();
        Ok(Some(people))
    }

    /// Makes pointers that lead to a person through other pointers lead there directly,
    /// so that chains do not stay long.
    fn shorten(&mut self) {
        let ids: Vec<PersonId> = self.slots.keys().copied().collect();
        for id in ids {
            let root = self.root(id);
            if let Some(PersonSlot { state: State::Merged(merged), is_changed, .. }) =
                self.slots.get_mut(&id)
                && merged.into != root
            {
                merged.into = root;
                *is_changed = true;
            }
        }
    }

    /// All ids that were read.
    pub(super) fn ids(&self) -> impl Iterator<Item = PersonId> {
        self.slots.keys().copied()
    }

    /// Merges the persons of two distinct ids. The persons must be loaded.
    pub(super) fn join(
        &mut self,
        project: ProjectId,
        merge: &Merge,
        cause: &Cause<'_>,
    ) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let main = self.root(persons::first_id(project, &merge.main));
        let other = self.root(persons::first_id(project, &merge.other));
        let survivor = match (self.is_person(main), self.is_person(other)) {
            (false, false) => {
                self.create(main, &merge.main, cause);
                warnings.extend(self.add(main, other, &merge.other, cause));
                main
            }
            (true, false) => {
                warnings.extend(self.add(main, other, &merge.other, cause));
                main
            }
            (false, true) => {
                warnings.extend(self.add(other, main, &merge.main, cause));
                other
            }
            (true, true) if main == other => return warnings,
            (true, true) => {
                let refused = match merge.refusal {
                    Refusal::OtherIdentified => self.is_identified(other),
                    Refusal::BothIdentified => {
                        self.is_identified(other) && self.is_identified(main)
                    }
                    Refusal::Never => false,
                };
                if refused {
                    let own = self.root(persons::first_id(project, cause.distinct_id));
                    self.identify(own);
                    return vec![Warning::MergeRefused];
                }
                warnings.extend(self.unite(main, other, cause));
                main
            }
        };
        self.put_first(survivor, &merge.main);
        warnings
    }

    /// Applies the changes of an event to its person, and creates the person if there is
    /// none. The person must be loaded.
    pub(super) fn change(
        &mut self,
        project: ProjectId,
        cause: &Cause<'_>,
        updates: &Updates<'_>,
    ) -> Option<Warning> {
        let id = self.root(persons::first_id(project, cause.distinct_id));
        if !self.is_person(id) {
            self.create(id, cause.distinct_id, cause);
        }
        if updates.is_silent() {
            return None;
        }
        let (person, is_changed) = self.person_mut(id)?;
        // The earliest event is the first one, in any order of arrival.
        if cause.timestamp < person.created_at {
            person.created_at = cause.timestamp;
            *is_changed = true;
        }
        let properties = person.properties.read();
        let before = properties.memory();
        match updates.apply(properties) {
            Applied::Nothing => None,
            Applied::Changed => {
                *is_changed = true;
                self.grown += properties.memory().saturating_sub(before);
                None
            }
            Applied::TooLarge => Some(Warning::PersonTooLarge),
        }
    }

    /// Bytes of memory that properties of events have added since the last call.
    pub(super) fn take_grown(&mut self) -> usize {
        std::mem::take(&mut self.grown)
    }

    /// The records to write.
    pub(super) fn into_writes(self) -> Vec<PersonWrite> {
        let changed = self.slots.into_iter().filter(|(_, slot)| slot.is_changed);
        let mut writes: Vec<PersonWrite> =
            changed.filter_map(|(id, slot)| slot.into_write(id)).collect();
        // A fixed order, so that the same batch always writes the same bytes.
        writes.sort_by_key(|write| write.id);
        writes
    }

    /// The id of the person that an id leads to after all merges.
    fn root(&self, mut id: PersonId) -> PersonId {
        // At most as many steps as there are records, so that a stored cycle cannot loop
        // forever.
        for _ in 0..self.slots.len() {
            match self.slots.get(&id) {
                Some(PersonSlot { state: State::Merged(merged), .. }) => id = merged.into,
                Some(_) | None => break,
            }
        }
        id
    }

    fn is_person(&self, id: PersonId) -> bool {
        matches!(self.slots.get(&id), Some(PersonSlot { state: State::Person(_), .. }))
    }

    fn is_identified(&self, id: PersonId) -> bool {
        matches!(
            self.slots.get(&id),
            Some(PersonSlot { state: State::Person(Person { is_identified: true, .. }), .. })
        )
    }

    fn person_mut(&mut self, id: PersonId) -> Option<(&mut Person, &mut bool)> {
        let slot = self.slots.get_mut(&id)?;
        match &mut slot.state {
            State::Person(person) => Some((person, &mut slot.is_changed)),
            State::Absent | State::Merged(_) => None,
        }
    }

    fn create(&mut self, id: PersonId, distinct_id: &str, cause: &Cause<'_>) {
        let mut read = Properties::default();
        read.insert("$creator_event_uuid", &format!("\"{}\"", cause.uuid));
        let person = Person {
            distinct_ids: vec![distinct_id.to_owned()],
            properties: Held { text: None, read },
            created_at: cause.timestamp,
            is_identified: false,
        };
        let slot = self.slots.entry(id).or_insert_with(PersonSlot::empty);
        slot.state = State::Person(person);
        slot.is_changed = true;
    }

    /// Adds a distinct id without a person to a person. The person is identified then.
    fn add(
        &mut self,
        person: PersonId,
        absent: PersonId,
        distinct_id: &str,
        cause: &Cause<'_>,
    ) -> Option<Warning> {
        let mut warning = None;
        if let Some((person, is_changed)) = self.person_mut(person) {
            if !list(&mut person.distinct_ids, vec![distinct_id.to_owned()]) {
                warning = Some(Warning::TooManyDistinctIds);
            }
            person.created_at = person.created_at.min(cause.timestamp);
            person.is_identified = true;
            *is_changed = true;
        }
        self.point(absent, person, cause);
        warning
    }

    /// Makes a distinct id the main one, which is the first of the list.
    fn put_first(&mut self, id: PersonId, distinct_id: &str) {
        if let Some((person, is_changed)) = self.person_mut(id)
            && let Some(slot) = person.distinct_ids.iter().position(|held| held == distinct_id)
            && let Some(before) = person.distinct_ids.get_mut(..=slot)
            && slot > 0
        {
            before.rotate_right(1);
            *is_changed = true;
        }
    }

    fn identify(&mut self, id: PersonId) {
        if let Some((person, is_changed)) = self.person_mut(id)
            && !person.is_identified
        {
            person.is_identified = true;
            *is_changed = true;
        }
    }

    /// Merges `other` into `main`. Moves the properties, since the person may be large and
    /// merged into another one with every event.
    fn unite(&mut self, main: PersonId, other: PersonId, cause: &Cause<'_>) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if !self.is_person(other) {
            return warnings;
        }
        let Some(PersonSlot { state, stored, above, .. }) = self.slots.get_mut(&other) else {
            return warnings;
        };
        let gone_version = stored.unwrap_or(NEVER).max(*above);
        let gone = std::mem::replace(state, State::Absent);
        if let State::Person(gone) = gone
            && let Some(slot) = self.slots.get_mut(&main)
            && let State::Person(person) = &mut slot.state
        {
            let gone_properties = gone.properties.into_read();
            if !person.properties.read().complete(gone_properties, updates::LIMIT) {
                warnings.push(Warning::PersonTooLarge);
            }
            if !list(&mut person.distinct_ids, gone.distinct_ids) {
                warnings.push(Warning::TooManyDistinctIds);
            }
            person.created_at = person.created_at.min(gone.created_at);
            person.is_identified = true;
            slot.above = slot.above.max(gone_version);
            slot.is_changed = true;
        }
        self.point(other, main, cause);
        warnings
    }

    fn point(&mut self, from: PersonId, into: PersonId, cause: &Cause<'_>) {
        let slot = self.slots.entry(from).or_insert_with(PersonSlot::empty);
        slot.state = State::Merged(Merged { into, at: cause.timestamp, by: cause.uuid });
        slot.is_changed = true;
    }
}

/// Adds distinct ids to the list of a person. Returns `false` if some of them did not
/// fit.
fn list(listed: &mut Vec<String>, more: Vec<String>) -> bool {
    let mut bytes: usize = listed.iter().map(String::len).sum();
    for id in more {
        bytes += id.len();
        if listed.len() >= LISTED || bytes > LISTED_BYTES {
            return false;
        }
        listed.push(id);
    }
    true
}

impl PersonSlot {
    fn empty() -> Self {
        Self { state: State::Absent, stored: None, above: NEVER, is_changed: false }
    }

    fn of(record: &Arc<Stored>) -> Self {
        let state = match &record.state {
            PersonState::Person(facts) => State::Person(Person {
                distinct_ids: facts.distinct_ids.clone(),
                properties: Held { text: Some(facts.properties.clone()), ..Held::default() },
                created_at: facts.created_at,
                is_identified: facts.is_identified,
            }),
            PersonState::Merged(merged) => State::Merged(*merged),
        };
        Self { state, stored: Some(record.version), above: NEVER, is_changed: false }
    }

    fn into_write(self, id: PersonId) -> Option<PersonWrite> {
        let state = match self.state {
            State::Absent => return None,
            State::Merged(merged) => PersonState::Merged(merged),
            State::Person(person) => PersonState::Person(persons::Facts {
                distinct_ids: person.distinct_ids,
                properties: person.properties.into_text(),
                created_at: person.created_at,
                is_identified: person.is_identified,
            }),
        };
        let version = self.stored.unwrap_or(NEVER).max(self.above) + 1;
        Some(PersonWrite { id, state, expected: self.stored, version })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::hash::RandomState;
    use std::time::{Duration, Instant};

    use super::super::special_properties::SpecialProperties;
    use super::*;

    const PROJECT: ProjectId = ProjectId(1);

    fn cause(distinct_id: &str) -> Cause<'_> {
        Cause { uuid: Uuid::nil(), distinct_id, timestamp: 0 }
    }

    /// Persons with these distinct ids and properties.
    fn people(persons: &[(String, String)]) -> People {
        let mut people = People::default();
        for (distinct_id, properties) in persons {
            let set = format!(r#"{{"$set":{properties}}}"#);
            let special = SpecialProperties::read(&set, &RandomState::new());
            let updates = Updates::of("$set", &special, &[]);
            assert_eq!(people.change(PROJECT, &cause(distinct_id), &updates), None);
        }
        people
    }

    fn merge(people: &mut People, main: &str, other: &str) -> Vec<Warning> {
        let (main, other) = (main.to_owned(), other.to_owned());
        let merge = Merge { main, other, refusal: Refusal::Never, is_cut: false };
        people.join(PROJECT, &merge, &cause(&merge.main))
    }

    /// The properties of all persons, but for those that their creation sets.
    fn properties(people: People) -> BTreeMap<String, String> {
        let of = |write: PersonWrite| match write.state {
            PersonState::Person(facts) => {
                let mut properties = Properties::read(&facts.properties);
                properties.remove("$creator_event_uuid");
                Some((facts.distinct_ids.join(","), properties.write()))
            }
            PersonState::Merged(_) => None,
        };
        people.into_writes().into_iter().filter_map(of).collect()
    }

    #[test]
    fn the_surviving_person_keeps_its_values() {
        let small = ("a".to_owned(), r#"{"n":1,"x":"a"}"#.to_owned());
        let large = ("b".to_owned(), r#"{"k":0,"l":0,"m":0,"n":2}"#.to_owned());
        for (main, other, expected) in [
            ("a", "b", r#"{"k":0,"l":0,"m":0,"n":1,"x":"a"}"#),
            ("b", "a", r#"{"k":0,"l":0,"m":0,"n":2,"x":"a"}"#),
        ] {
            let mut people = people(&[small.clone(), large.clone()]);
            assert_eq!(merge(&mut people, main, other), []);
            let ids = format!("{main},{other}");
            assert_eq!(properties(people), [(ids, expected.to_owned())].into());
        }
    }

    #[test]
    fn properties_that_do_not_fit_together_stay_as_they_are() {
        let half = "x".repeat(updates::LIMIT / 2);
        let persons = ["a", "b"].map(|id| (id.to_owned(), format!(r#"{{"{id}":"{half}"}}"#)));
        let mut people = people(&persons);
        assert_eq!(merge(&mut people, "a", "b"), [Warning::PersonTooLarge]);
        assert_eq!(properties(people), [("a,b".to_owned(), persons[0].1.clone())].into());
    }

    /// Every merge passes the properties on to another person. A thousand times as many
    /// may take a few times as long.
    #[test]
    fn merges_take_time_in_proportion_to_the_smaller_person() {
        const MERGES: usize = 300;
        let time = |count: usize| {
            let names: Vec<String> = (0..count).map(|n| format!(r#""p{n}":1"#)).collect();
            let empty = (1..=MERGES).map(|n| (n.to_string(), "{}".to_owned()));
            let first = ("0".to_owned(), format!("{{{}}}", names.join(",")));
            let persons: Vec<(String, String)> = std::iter::once(first).chain(empty).collect();
            let runs = (0..3).map(|_| {
                let mut people = people(&persons);
                let began = Instant::now();
                for n in 1..=MERGES {
                    assert_eq!(merge(&mut people, &n.to_string(), &(n - 1).to_string()), []);
                }
                let took = began.elapsed();
                let (ids, properties) = properties(people).pop_first().unwrap();
                assert_eq!(ids.split(',').count(), MERGES + 1);
                assert_eq!(super::super::properties::members(Some(&properties)).len(), count);
                took
            });
            runs.min().unwrap_or(Duration::ZERO)
        };
        let (few, many) = (time(20), time(20_000));
        assert!(many < few * 20, "{few:?} {many:?}");
    }
}
