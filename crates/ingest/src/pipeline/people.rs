//! The persons of a batch and what its events do to them (ING-41, ING-44, ING-50).
//!
//! What belongs here: following merges, creating, changing and merging persons. What does
//! not: the changes that an event asks for (`updates`), the ids that it merges (`merge`).

use std::collections::HashMap;
use std::sync::Arc;

use uuid::Uuid;
use weir_model::outcomes::Warning;
use weir_model::{PersonId, ProjectId};
use weir_store::persons::{self, LISTED, LISTED_BYTES, Merged, PersonState, PersonWrite, Stored};
use weir_store::{ByteBudget, Error, Store};

use super::cache::PersonCache;
use super::merge::{Merge, Refusal};
use super::planner::UncommittedWrites;
use super::properties::{Properties, Scanned};
use super::updates::{self, Applied, Updates};

/// Bytes of a person's properties up to which an event looks for its own in the text.
const SCANNED: usize = 4 << 10;
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

    /// Bytes in memory, roughly.
    fn memory(&self) -> usize {
        self.text.as_ref().map_or_else(|| self.read.memory(), String::len)
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
    /// A person as it is stored. Most events change nothing of their person, so it is
    /// neither copied nor read as a whole for them.
    Stored(Arc<Stored>),
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
        uncommitted: Option<&UncommittedWrites>,
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
            let found = cache.get(store, project, &wanted, uncommitted, budget).await?;
            if budget.is_used_up() {
                return Ok(None);
            }
            wanted.clear();
            for record in found {
                if let PersonState::Merged(merged) = &record.state {
                    wanted.push(merged.into);
                }
                people.slots.insert(record.id, PersonSlot::of(record));
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
    /// none. `first` is the person of its distinct id before merges, which must be loaded.
    pub(super) fn change(
        &mut self,
        first: PersonId,
        cause: &Cause<'_>,
        updates: &Updates<'_>,
    ) -> Option<Warning> {
        let id = self.root(first);
        if !self.is_person(id) {
            self.create(id, cause.distinct_id, cause);
        }
        if updates.is_silent() || self.is_up_to_date(id, cause, updates) {
            return None;
        }
        let (person, is_changed) = self.person_mut(id)?;
        // The earliest event is the first one, in any order of arrival.
        if cause.timestamp < person.created_at {
            person.created_at = cause.timestamp;
            *is_changed = true;
        }
        let before = person.properties.memory();
        let applied = updates.apply(person.properties.read());
        *is_changed |= applied == Applied::Changed;
        let grown = person.properties.memory().saturating_sub(before);
        self.grown += grown;
        (applied == Applied::TooLarge).then_some(Warning::PersonTooLarge)
    }

    /// Whether a stored person stays as it is, as far as that shows without reading all of
    /// its properties into a map.
    fn is_up_to_date(&self, id: PersonId, cause: &Cause<'_>, updates: &Updates<'_>) -> bool {
        let Some(PersonSlot { state: State::Stored(stored), .. }) = self.slots.get(&id) else {
            return false;
        };
        let PersonState::Person(facts) = &stored.state else { return false };
        // The map of a larger text is made once for all events of the batch.
        cause.timestamp >= facts.created_at
            && (updates.is_empty()
                || facts.properties.len() <= SCANNED
                    && !updates.is_worth_a_write(&Scanned::of(&facts.properties)))
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
        self.slots.get(&id).is_some_and(|slot| slot.state.is_person())
    }

    fn is_identified(&self, id: PersonId) -> bool {
        match self.slots.get(&id).map(|slot| &slot.state) {
            Some(State::Person(person)) => person.is_identified,
            Some(State::Stored(stored)) => match &stored.state {
                PersonState::Person(facts) => facts.is_identified,
                PersonState::Merged(_) | PersonState::Erased => false,
            },
            Some(State::Absent | State::Merged(_)) | None => false,
        }
    }

    fn person_mut(&mut self, id: PersonId) -> Option<(&mut Person, &mut bool)> {
        let slot = self.slots.get_mut(&id)?;
        slot.state.copy_stored();
        match &mut slot.state {
            State::Person(person) => Some((person, &mut slot.is_changed)),
            State::Absent | State::Stored(_) | State::Merged(_) => None,
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
        state.copy_stored();
        let gone = std::mem::replace(state, State::Absent);
        if let Some(slot) = self.slots.get_mut(&main) {
            slot.state.copy_stored();
        }
        if let State::Person(gone) = gone
            && let Some(slot) = self.slots.get_mut(&main)
            && let State::Person(person) = &mut slot.state
        {
            let before = person.properties.memory() + gone.properties.memory();
            let gone_properties = gone.properties.into_read();
            if !person.properties.read().complete(gone_properties, updates::LIMIT) {
                warnings.push(Warning::PersonTooLarge);
            }
            let grown = person.properties.memory().saturating_sub(before);
            self.grown += grown;
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

impl State {
    fn is_person(&self) -> bool {
        matches!(self, Self::Stored(_) | Self::Person(_))
    }

    /// Makes a copy of a stored person, to be changed.
    fn copy_stored(&mut self) {
        if let Self::Stored(stored) = self
            && let PersonState::Person(facts) = &stored.state
        {
            *self = Self::Person(Person {
                distinct_ids: facts.distinct_ids.clone(),
                properties: Held { text: Some(facts.properties.clone()), ..Held::default() },
                created_at: facts.created_at,
                is_identified: facts.is_identified,
            });
        }
    }
}

impl PersonSlot {
    fn empty() -> Self {
        Self { state: State::Absent, stored: None, above: NEVER, is_changed: false }
    }

    fn of(record: Arc<Stored>) -> Self {
        let version = record.version;
        let state = match &record.state {
            PersonState::Person(_) => State::Stored(record),
            PersonState::Merged(merged) => State::Merged(*merged),
            PersonState::Erased => State::Absent,
        };
        Self { state, stored: Some(version), above: NEVER, is_changed: false }
    }

    fn into_write(self, id: PersonId) -> Option<PersonWrite> {
        let state = match self.state {
            State::Absent => return None,
            // It has not changed.
            State::Stored(_) => return None,
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
            let first = persons::first_id(PROJECT, distinct_id);
            assert_eq!(people.change(first, &cause(distinct_id), &updates), None);
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
            PersonState::Merged(_) | PersonState::Erased => None,
        };
        people.into_writes().into_iter().filter_map(of).collect()
    }

    #[test]
    fn a_stored_person_is_written_only_if_it_changes() {
        let first = persons::first_id(PROJECT, "ada");
        let stored = |properties: &str| Stored {
            id: first,
            version: 4,
            state: PersonState::Person(persons::Facts {
                distinct_ids: vec!["ada".to_owned()],
                properties: properties.to_owned(),
                created_at: 0,
                is_identified: false,
            }),
        };
        let long = format!(r#"{{"$browser":"a","long":"{}","plan":1}}"#, "x".repeat(SCANNED));
        for before in [r#"{"$browser":"a","plan":1}"#, long.as_str()] {
            for (event, timestamp, is_written) in [
                ("{}", 0, false),
                (r#"{"$set":{"plan":1}}"#, 7, false),
                (r#"{"$set_once":{"plan":2},"$unset":["other"]}"#, 7, false),
                (r#"{"$set":{"$browser":"b"}}"#, 7, false),
                (r#"{"$set":{"plan":2}}"#, 7, true),
                (r#"{"$unset":["plan"]}"#, 7, true),
                ("{}", -1, true),
            ] {
                let mut people = People::default();
                people.slots.insert(first, PersonSlot::of(Arc::new(stored(before))));
                let special = SpecialProperties::read(event, &RandomState::new());
                let updates = Updates::of("click", &special, &[]);
                let cause = Cause { timestamp, ..cause("ada") };
                assert_eq!(people.change(first, &cause, &updates), None);
                let writes = people.into_writes();
                let versions: Vec<_> = writes.iter().map(|w| (w.expected, w.version)).collect();
                let expected = if is_written { vec![(Some(4), 5)] } else { vec![] };
                assert_eq!(versions, expected, "{event}");
            }
        }
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
