//! Properties of the persons and groups of events, as they are now.
//!
//! They are read a batch of records at a time, and each once for a question, of which only the
//! properties are kept that the question names.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use weir_json::{Members, push_string};
use weir_query::GROUP_TYPES;

use super::plan::{Needed, NeededProperties};
use super::source::{RECORDS, RowSource};
use crate::error::Result;
use crate::run::{Reservation, Run};

/// Bytes of a record beside its text.
const ENTRY: usize = 96;

/// The properties of a record, as JSON. `None`: there is no record.
pub(super) type Properties = Option<Arc<str>>;

/// Records that were read.
#[derive(Debug)]
pub(super) struct Entities<'a> {
    of_person: Option<NeededProperties>,
    of_groups: [Option<NeededProperties>; GROUP_TYPES as usize],
    known: Mutex<KnownEntities<'a>>,
}

#[derive(Debug)]
struct KnownEntities<'a> {
    persons: HashMap<u32, Properties>,
    groups: HashMap<(u8, Box<str>), Properties>,
    bytes: usize,
    memory: Reservation<'a>,
}

impl<'a> Entities<'a> {
    pub(super) fn new(run: &Run<'a>, needed: &[&Needed]) -> Self {
        let mut of_person = None;
        let mut of_groups = <[Option<NeededProperties>; GROUP_TYPES as usize]>::default();
        for needed in needed {
            NeededProperties::join(&mut of_person, needed.of_person.as_ref());
            for (wanted, other) in of_groups.iter_mut().zip(&needed.of_groups) {
                NeededProperties::join(wanted, other.as_ref());
            }
        }
        let memory = run.memory.reservation();
        let known =
            KnownEntities { persons: HashMap::new(), groups: HashMap::new(), bytes: 0, memory };
        Self { of_person, of_groups, known: Mutex::new(known) }
    }

    fn known<T>(&self, see: impl FnOnce(&mut KnownEntities<'a>) -> T) -> T {
        see(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The properties of these persons, in the same order.
    pub(super) fn persons(
        &self,
        source: &dyn RowSource,
        persons: &[u32],
    ) -> Result<Vec<Properties>> {
        let mut missing: Vec<u32> = self.known(|known| {
            let is_new = |person: &u32| !known.persons.contains_key(person);
            persons.iter().copied().filter(is_new).collect()
        });
        missing.sort_unstable();
        missing.dedup();
        for part in missing.chunks(RECORDS) {
            let mut found: Vec<Properties> = vec![None; part.len()];
            source.person_properties(part, &mut |at, properties| {
                if let Some(place) = found.get_mut(at) {
                    *place = Some(kept(properties, self.of_person.as_ref()));
                }
            })?;
            self.known(|known| {
                part.iter().zip(found).try_for_each(|(person, properties)| {
                    known.grow(&properties, 0)?;
                    known.persons.insert(*person, properties);
                    Ok::<_, crate::AnswerError>(())
                })
            })?;
        }
        Ok(self.known(|known| {
            persons.iter().map(|person| known.persons.get(person).cloned().flatten()).collect()
        }))
    }

    /// The properties of the groups of a type with these keys, in the same order.
    pub(super) fn groups(
        &self,
        source: &dyn RowSource,
        index: u8,
        keys: &[Option<String>],
    ) -> Result<Vec<Properties>> {
        let wanted = self.of_groups.get(usize::from(index)).and_then(Option::as_ref);
        let mut missing: Vec<&str> = self.known(|known| {
            let is_new = |key: &&str| !known.groups.contains_key(&(index, (*key).into()));
            keys.iter().flatten().map(String::as_str).filter(is_new).collect()
        });
        missing.sort_unstable();
        missing.dedup();
        for part in missing.chunks(RECORDS) {
            let mut found: Vec<Properties> = vec![None; part.len()];
            source.group_properties(index, part, &mut |at, properties| {
                if let Some(place) = found.get_mut(at) {
                    *place = Some(kept(properties, wanted));
                }
            })?;
            self.known(|known| {
                part.iter().zip(found).try_for_each(|(key, properties)| {
                    known.grow(&properties, key.len())?;
                    known.groups.insert((index, (*key).into()), properties);
                    Ok::<_, crate::AnswerError>(())
                })
            })?;
        }
        let of_key = |known: &KnownEntities<'_>, key: &Option<String>| {
            known.groups.get(&(index, key.as_deref()?.into())).cloned().flatten()
        };
        Ok(self.known(|known| keys.iter().map(|key| of_key(known, key)).collect()))
    }
}

impl KnownEntities<'_> {
    fn grow(&mut self, properties: &Properties, key: usize) -> Result<()> {
        let text = properties.as_ref().map_or(0, |properties| properties.len());
        self.memory.hold_more(&mut self.bytes, ENTRY + key + text)
    }
}

/// The wanted members of an object.
fn kept(properties: &str, wanted: Option<&NeededProperties>) -> Arc<str> {
    let Some(NeededProperties::Named(names)) = wanted else { return properties.into() };
    let members = Members::of(properties);
    let mut text = String::from("{");
    for name in names {
        let Some(value) = members.get(name) else { continue };
        if text.len() > 1 {
            text.push(',');
        }
        push_string(&mut text, name);
        text.push(':');
        text.push_str(value);
    }
    text.push('}');
    text.into()
}
