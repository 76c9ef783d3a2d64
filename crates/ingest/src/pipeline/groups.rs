//! The groups of a batch and what its events do to them (ING-52, ING-53).
//!
//! What belongs here: group types, `$groups` on events, `$groupidentify`. What does not:
//! which of those events are dropped (`capture::decide`).

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use parking_lot::Mutex;
use weir_json::{self as json, Cursor, Limits};
use weir_model::ProjectId;
use weir_model::outcomes::Warning;
use weir_store::groups::{self, GroupWrite, Stored, TYPES, TypesWrite};
use weir_store::{ByteBudget, Error, Store};

use super::people::Cause;
use super::properties::{Properties, member_size, members, overhead};
use super::special_properties::SpecialProperties;
use super::updates;

/// Upper bound of characters in a type and in a key (ING-53).
const LONGEST: usize = 400;
/// Projects whose group types are kept in memory.
const PROJECTS: usize = 10_000;

/// The group types of projects as they are in the store: one table for all consumers.
/// Types are only ever added, so an older state is a prefix of the newer one. The store
/// refuses additions to an older state.
#[derive(Default)]
pub(super) struct TypesCache {
    names: Mutex<HashMap<ProjectId, Vec<String>>>,
}

impl TypesCache {
    async fn get(&self, store: &Store, project: ProjectId) -> Result<Vec<String>, Error> {
        if let Some(names) = self.names.lock().get(&project) {
            return Ok(names.clone());
        }
        let names = groups::types(store, project).await?;
        self.post(project, names.clone());
        Ok(names)
    }

    /// Puts types here that were read or committed.
    pub(super) fn post(&self, project: ProjectId, names: Vec<String>) {
        let mut all = self.names.lock();
        if all.len() >= PROJECTS {
            all.clear();
        }
        let present = all.entry(project).or_default();
        if present.len() <= names.len() {
            *present = names;
        }
    }

    pub(super) fn forget(&self, project: ProjectId) {
        self.names.lock().remove(&project);
    }
}

/// A group that the batch reads or changes.
#[derive(Debug)]
struct Group {
    properties: Properties,
    created_at: i64,
    stored: Option<i64>,
    is_changed: bool,
}

/// The groups of one project that the events of a batch name.
#[derive(Debug)]
pub(super) struct Groups {
    types: Vec<String>,
    /// Number of types in the store.
    stored_types: usize,
    groups: BTreeMap<(u8, String), Group>,
    /// Bytes of memory that properties of events have added.
    grown: usize,
}

/// A group that an event creates or changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identified {
    pub(super) kind: String,
    pub(super) key: String,
}

impl Identified {
    /// The group that a `$groupidentify` names. `None` without a valid type or key.
    pub(super) fn of(event: &str, special: &SpecialProperties<'_>) -> Option<Self> {
        if event != "$groupidentify" {
            return None;
        }
        let kind = text(special.group_type?)?;
        let key = text(special.group_key?)?;
        Some(Self { kind: kind.into_owned(), key: key.into_owned() })
    }
}

impl Groups {
    /// Reads the group types, and the groups that the events create or change. `None` if
    /// they are larger than `budget`.
    pub(super) async fn load(
        cache: &TypesCache,
        store: &Store,
        project: ProjectId,
        identified: &[Identified],
        budget: &mut ByteBudget,
    ) -> Result<Option<Self>, Error> {
        let types = cache.get(store, project).await?;
        let stored_types = types.len();
        let mut groups = Self { types, stored_types, groups: BTreeMap::new(), grown: 0 };
        let mut keys: Vec<(u8, &str)> = identified
            .iter()
            .filter_map(|group| Some((groups.known_index(&group.kind)?, group.key.as_str())))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let found = groups::by_keys(store, project, &keys, budget).await?;
        for found in &found {
            budget.take(overhead(&found.group.properties));
        }
        if budget.is_used_up() {
            return Ok(None);
        }
        for found in found {
            groups.put(found);
        }
        Ok(Some(groups))
    }

    fn put(&mut self, found: Stored) {
        let Stored { group, version } = found;
        let held = Group {
            properties: Properties::read(&group.properties),
            created_at: group.created_at.micros(),
            stored: Some(version),
            is_changed: false,
        };
        self.groups.insert((group.index, group.key), held);
    }

    /// Creates or changes the group that an event names.
    pub(super) fn identify(
        &mut self,
        group: &Identified,
        set: Option<&str>,
        cause: &Cause<'_>,
    ) -> Option<Warning> {
        let Some(index) = self.index(&group.kind) else { return Some(Warning::TooManyGroupTypes) };
        let held = self.groups.entry((index, group.key.clone())).or_insert_with(|| Group {
            properties: Properties::default(),
            created_at: cause.timestamp,
            stored: None,
            is_changed: true,
        });
        if cause.timestamp < held.created_at {
            held.created_at = cause.timestamp;
            held.is_changed = true;
        }
        let members = members(set);
        let replaced: usize = members.keys().map(|name| held.properties.size_of(name)).sum();
        let added: usize = members.iter().map(|(name, value)| member_size(name, value)).sum();
        if held.properties.size() - replaced + added > updates::LIMIT {
            return Some(Warning::GroupTooLarge);
        }
        let before = held.properties.memory();
        for (name, value) in members {
            if held.properties.get(&name) != Some(value) {
                held.properties.insert(&name, value);
                held.is_changed = true;
            }
        }
        self.grown += held.properties.memory().saturating_sub(before);
        None
    }

    /// Bytes of memory that properties of events have added since the last call.
    pub(super) fn take_grown(&mut self) -> usize {
        std::mem::take(&mut self.grown)
    }

    /// The members that `$groups` adds to an event, `$group_0` to `$group_4`.
    pub(super) fn members(&mut self, raw: &str) -> (Vec<(String, String)>, Option<Warning>) {
        if !raw.starts_with('{') {
            let is_odd = raw != "null" && !json::is_empty_list(raw);
            return (Vec::new(), is_odd.then_some(Warning::InvalidGroups));
        }
        let mut added: Vec<(String, String)> = Vec::new();
        let mut warning = None;
        // In the order of the text: the first use of a type gives it its index.
        let walked = Cursor::new(raw, Limits::NONE).object(|kind, cursor| {
            let (kind, key) = (kind.text(), text(cursor.value()?));
            let Some(key) = key.filter(|_| is_name(&kind)) else {
                warning = Some(Warning::InvalidGroups);
                return Ok(());
            };
            match self.index(&kind) {
                Some(index) => {
                    let value = json::quoted(&key);
                    let name = format!("$group_{index}");
                    added.retain(|(present, _)| *present != name);
                    added.push((name, value));
                }
                None => warning = Some(Warning::TooManyGroupTypes),
            }
            Ok(())
        });
        debug_assert!(walked.is_ok(), "an object that is none");
        (added, warning)
    }

    fn known_index(&self, kind: &str) -> Option<u8> {
        let place = self.types.iter().position(|name| name == kind)?;
        u8::try_from(place).ok()
    }

    /// The index of a group type. A new type gets the next index.
    fn index(&mut self, kind: &str) -> Option<u8> {
        if let Some(index) = self.known_index(kind) {
            return Some(index);
        }
        if self.types.len() >= TYPES {
            return None;
        }
        self.types.push(kind.to_owned());
        self.known_index(kind)
    }

    /// The records to write.
    pub(super) fn into_writes(self) -> (Vec<GroupWrite>, Option<TypesWrite>) {
        let changed = self.groups.into_iter().filter(|(_, group)| group.is_changed);
        let groups = changed
            .map(|((index, key), group)| GroupWrite {
                index,
                key,
                properties: group.properties.write(),
                created_at: group.created_at,
                expected: group.stored,
                version: group.stored.map_or(0, |version| version + 1),
            })
            .collect();
        let is_longer = self.types.len() > self.stored_types;
        let types =
            is_longer.then_some(TypesWrite { names: self.types, expected: self.stored_types });
        (groups, types)
    }
}

/// A name or key as text. `None` if it is empty or not a valid value.
fn text(value: &str) -> Option<Cow<'_, str>> {
    if value == "null" {
        return None;
    }
    let text = match json::string_lossy(value) {
        Some(text) => text,
        None => Cow::Owned(json::canonical(value, Limits::EVENT).ok()?),
    };
    is_name(&text).then_some(text)
}

fn is_name(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().nth(LONGEST).is_none()
}
