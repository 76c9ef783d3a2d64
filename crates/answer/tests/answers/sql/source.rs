//! A source that also has persons and groups.

use std::collections::HashMap;
use std::ops::ControlFlow;

use uuid::Uuid;
use weir_answer::{GroupRow, OpenPart, Part, PersonRow, RowSource, Source, SourceError};
use weir_segments::Bits;

use crate::source::TestSource;
use crate::world::{GROUPS, PROJECT, Person, World};

/// The events of a source, and the persons and groups of its world.
pub(super) struct TestRows<'a> {
    events: &'a TestSource,
    /// By the number of the distinct id that stands for the person.
    records: HashMap<u32, Person>,
    /// By the number of the distinct id.
    person_ids: HashMap<u32, Uuid>,
}

impl<'a> TestRows<'a> {
    pub(super) fn new(events: &'a TestSource, world: &World) -> Self {
        let number = |id: &str| {
            let mut found = Vec::new();
            events.ids(&[id.as_bytes()], &mut found).unwrap();
            found[0]
        };
        Self {
            events,
            records: world.records().into_iter().map(|(id, it)| (number(&id), it)).collect(),
            person_ids: world.persons.keys().map(|id| (number(id), World::person_id(id))).collect(),
        }
    }

    fn row<'p>(&self, number: u32, person: &'p Person) -> PersonRow<'p> {
        PersonRow {
            id: self.person_ids[&number],
            created_at: person.created_at,
            properties: &person.properties,
            is_identified: person.is_identified,
            distinct_ids: &person.distinct_ids,
        }
    }
}

impl Source for TestRows<'_> {
    fn parts(&self) -> &[Part] {
        self.events.parts()
    }

    fn open(&self, part: usize) -> Result<OpenPart, SourceError> {
        self.events.open(part)
    }

    fn ids(&self, distinct_ids: &[&[u8]], into: &mut Vec<u32>) -> Result<(), SourceError> {
        self.events.ids(distinct_ids, into)
    }

    fn persons(&self, ids: &[u32], into: &mut Vec<u32>) {
        self.events.persons(ids, into);
    }

    fn may_have_erased(&self, part: usize, arrivals: (u64, u64)) -> bool {
        self.events.may_have_erased(part, arrivals)
    }

    fn erased_rows(&self, part: usize, arrivals: &[u64], ids: &[u32], into: &mut Bits) {
        self.events.erased_rows(part, arrivals, ids, into);
    }

    fn first_seen(&self, see: &mut dyn FnMut(u32, i64)) -> Result<(), SourceError> {
        self.events.first_seen(see)
    }
}

impl RowSource for TestRows<'_> {
    fn project(&self) -> i64 {
        PROJECT
    }

    fn person_ids(&self, persons: &[u32], into: &mut Vec<Uuid>) {
        into.extend(persons.iter().map(|person| self.person_ids[person]));
    }

    fn person_properties(
        &self,
        persons: &[u32],
        see: &mut dyn FnMut(usize, &str),
    ) -> Result<(), SourceError> {
        assert!(persons.len() <= 1_000);
        for (at, person) in persons.iter().enumerate() {
            if let Some(record) = self.records.get(person) {
                see(at, &record.properties);
            }
        }
        Ok(())
    }

    fn group_properties(
        &self,
        index: u8,
        keys: &[&str],
        see: &mut dyn FnMut(usize, &str),
    ) -> Result<(), SourceError> {
        for (at, key) in keys.iter().enumerate() {
            let is_it = |group: &&(u8, &str, &str)| group.0 == index && group.1 == *key;
            if let Some((.., properties)) = GROUPS.iter().find(is_it) {
                see(at, properties);
            }
        }
        Ok(())
    }

    fn person_records(
        &self,
        persons: &[u32],
        see: &mut dyn FnMut(usize, PersonRow<'_>),
    ) -> Result<(), SourceError> {
        assert!(persons.len() <= 1_000);
        for (at, number) in persons.iter().enumerate() {
            if let Some(person) = self.records.get(number) {
                see(at, self.row(*number, person));
            }
        }
        Ok(())
    }

    fn group_records(
        &self,
        index: u8,
        keys: &[&str],
        see: &mut dyn FnMut(usize, GroupRow<'_>),
    ) -> Result<(), SourceError> {
        assert!(keys.len() <= 1_000);
        for (at, key) in keys.iter().enumerate() {
            if let Some(row) = groups().find(|row| row.index == index && row.key == *key) {
                see(at, row);
            }
        }
        Ok(())
    }

    fn each_person(
        &self,
        see: &mut dyn FnMut(PersonRow<'_>) -> ControlFlow<()>,
    ) -> Result<(), SourceError> {
        for (number, person) in &self.records {
            if see(self.row(*number, person)).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn each_group(
        &self,
        see: &mut dyn FnMut(GroupRow<'_>) -> ControlFlow<()>,
    ) -> Result<(), SourceError> {
        for row in groups() {
            if see(row).is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn groups() -> impl Iterator<Item = GroupRow<'static>> {
    let row = |(index, key, properties)| GroupRow { index, key, properties, created_at: 5_000_000 };
    GROUPS.into_iter().map(row)
}
