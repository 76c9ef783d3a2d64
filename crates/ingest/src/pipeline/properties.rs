//! The properties of a person or a group during processing: names, and the text of their
//! values.
//!
//! What belongs here: reading, writing and measuring them. What does not: the changes
//! that events ask for (`updates`, `groups`).

use std::borrow::Cow;
use std::collections::BTreeMap;

use weir_json::{Cursor, Key, Limits, ObjectWriter};

/// Bytes of memory that a property takes in addition to its text, as measured: its part
/// of a node, and what the allocator rounds up.
const MEMBER: usize = 100;

/// Names of properties and the text of their values. Keeps its size up to date, so that a
/// change of one property does not cost a pass over all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Properties {
    members: BTreeMap<String, Box<str>>,
    size: usize,
}

impl Properties {
    /// Reads the text of a JSON object. Other text has no members.
    pub(super) fn read(object: &str) -> Self {
        let mut properties = Self::default();
        for (name, value) in members(Some(object)) {
            properties.insert(&name, value);
        }
        properties
    }

    /// Writes a JSON object.
    pub(super) fn write(&self) -> String {
        let mut out = String::with_capacity(self.size + 2);
        let mut object = ObjectWriter::begin(&mut out);
        for (name, value) in &self.members {
            object.json(name, value);
        }
        object.end();
        out
    }

    /// Size of the JSON text in bytes, roughly.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Bytes in memory, roughly.
    pub(super) fn memory(&self) -> usize {
        self.size + self.members.len() * MEMBER
    }

    /// Bytes of one property in the JSON text, roughly. Zero if it is absent.
    pub(super) fn size_of(&self, name: &str) -> usize {
        self.get(name).map_or(0, |value| member_size(name, value))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.members.get(name).map(|value| &**value)
    }

    pub(super) fn insert(&mut self, name: &str, value: &str) {
        match self.members.get_mut(name) {
            Some(present) => {
                self.size = self.size - present.len() + value.len();
                *present = value.into();
            }
            None => {
                self.size += member_size(name, value);
                self.members.insert(name.to_owned(), value.into());
            }
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        if let Some(value) = self.members.remove(name) {
            self.size -= member_size(name, &value);
        }
    }

    /// Adds the properties that are missing here, unless both together are larger than
    /// `limit`: then nothing changes. Returns whether they fitted. Takes time in
    /// proportion to the smaller of both: a large person may be merged thousands of times.
    pub(super) fn complete(&mut self, mut other: Self, limit: usize) -> bool {
        let is_smaller = self.members.len() < other.members.len();
        let (fewer, more) = if is_smaller { (&*self, &other) } else { (&other, &*self) };
        let both = fewer.members.keys().filter(|name| more.members.contains_key(*name));
        let dropped: usize = both.map(|name| other.size_of(name)).sum();
        let size = self.size + other.size - dropped;
        if size > limit {
            return false;
        }
        if is_smaller {
            std::mem::swap(&mut self.members, &mut other.members);
            // The own values replace the others.
            self.members.extend(other.members);
        } else {
            for (name, value) in other.members {
                self.members.entry(name).or_insert(value);
            }
        }
        self.size = size;
        true
    }
}

/// Properties in which values are looked up.
pub(super) trait Lookup {
    /// The text of the value with this name.
    fn get(&self, name: &str) -> Option<&str>;
}

impl Lookup for Properties {
    fn get(&self, name: &str) -> Option<&str> {
        Self::get(self, name)
    }
}

/// The properties of a short text, without a copy of each. They are only looked up.
pub(super) struct Scanned<'a> {
    members: Vec<(Cow<'a, str>, &'a str)>,
    /// Whether each name is greater than the one before, as [`Properties::write`] writes
    /// them.
    is_sorted: bool,
}

impl<'a> Scanned<'a> {
    /// Reads the text of a JSON object. Other text has no members.
    pub(super) fn of(object: &'a str) -> Self {
        let mut members: Vec<(Cow<'a, str>, &'a str)> = Vec::new();
        let mut is_sorted = true;
        walk(object, |key, value| {
            let name = key.text();
            is_sorted &= members.last().is_none_or(|(last, _)| *last < name);
            members.push((name, value));
        });
        Self { members, is_sorted }
    }
}

impl Lookup for Scanned<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        let found = match self.is_sorted {
            true => self.members.binary_search_by(|(present, _)| present.as_ref().cmp(name)).ok(),
            // Of several members with the same name, the last one counts.
            false => self.members.iter().rposition(|(present, _)| present == name),
        };
        self.members.get(found?).map(|(_, value)| *value)
    }
}

/// Bytes of a member in the JSON text, roughly.
pub(super) fn member_size(name: &str, value: &str) -> usize {
    name.len() + value.len() + 4
}

/// Bytes of memory that the properties of this text take in addition to it, roughly.
pub(super) fn overhead(object: &str) -> usize {
    let mut count = 0;
    walk(object, |_, _| count += 1);
    count * MEMBER
}

/// The members of an object. Of several members with the same name, the last one counts.
pub(super) fn members(raw: Option<&str>) -> BTreeMap<Cow<'_, str>, &str> {
    let mut members = BTreeMap::new();
    walk(raw.unwrap_or_default(), |key, value| {
        members.insert(key.text(), value);
    });
    members
}

/// Calls `member` for every member of an object. Other text has none.
fn walk<'a>(object: &'a str, mut member: impl FnMut(Key<'a>, &'a str)) {
    if object.starts_with('{') {
        let walked = Cursor::new(object, Limits::NONE).object(|key, cursor| {
            member(key, cursor.value()?);
            Ok(())
        });
        // Capture has parsed the text around it.
        debug_assert!(walked.is_ok(), "an object that is none");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size, computed from the beginning.
    fn counted(properties: &Properties) -> usize {
        properties.members.iter().map(|(name, value)| member_size(name, value)).sum()
    }

    #[test]
    fn the_size_follows_every_change() {
        let mut properties = Properties::read(r#"{"a":1,"b":"two","a":[1,2]}"#);
        assert_eq!(properties.write(), r#"{"a":[1,2],"b":"two"}"#);
        for (name, value) in [("a", "1"), ("c", "null"), ("c", r#""long enough""#), ("ä", "{}")] {
            properties.insert(name, value);
            assert_eq!(properties.size(), counted(&properties), "{name}");
        }
        for name in ["b", "b", "nobody"] {
            properties.remove(name);
            assert_eq!(properties.size(), counted(&properties), "{name}");
        }
        assert_eq!((properties.size_of("c"), properties.size_of("b")), (5 + 13, 0));
        let text = properties.write();
        assert_eq!(Properties::read(&text), properties);
    }

    #[test]
    fn values_in_a_text_are_those_that_are_read() {
        let sent = r#"{"a":1,"b\u0063":"two","a":[1,2],"":null}"#;
        let read = Properties::read(sent);
        for text in [sent, &read.write()] {
            let scanned = Scanned::of(text);
            assert_eq!(scanned.is_sorted, text != sent);
            for name in ["a", "bc", "b", ""] {
                assert_eq!(scanned.get(name), read.get(name), "{name}");
            }
        }
        assert_eq!(Scanned::of("null").get("a"), None);
    }

    #[test]
    fn what_is_missing_is_taken_over_or_nothing() {
        let other = Properties::read(r#"{"a":1,"b":2}"#);
        let mut properties = Properties::read(r#"{"b":3,"c":4}"#);
        let (before, room) = (properties.clone(), properties.size() + other.size_of("a"));
        assert!(!properties.complete(other.clone(), room - 1));
        assert_eq!(properties, before);
        assert!(properties.complete(other, room));
        assert_eq!(properties.write(), r#"{"a":1,"b":3,"c":4}"#);
        assert_eq!(properties.size(), counted(&properties));
    }

    #[test]
    fn memory_counts_every_property() {
        let properties = Properties::read(r#"{"a":1,"b":{"c":2,"d":3}}"#);
        assert_eq!(properties.memory(), properties.size() + 2 * MEMBER);
        assert_eq!(overhead(&properties.write()), 2 * MEMBER);
        assert_eq!((overhead("{}"), overhead("null")), (0, 0));
    }

    proptest::proptest! {
        #[test]
        fn of_properties_in_both_the_own_ones_stay(
            own in proptest::collection::btree_map("[a-f]{1,2}", "[0-9]{1,3}", 0..20),
            other in proptest::collection::btree_map("[a-f]{1,2}", "[0-9]{1,3}", 0..20),
            limit in 0_usize..300,
        ) {
            let of = |members: &BTreeMap<String, String>| {
                let mut properties = Properties::default();
                members.iter().for_each(|(name, value)| properties.insert(name, value));
                properties
            };
            let mut expected = other.clone();
            expected.extend(own.clone());
            let expected = of(&expected);
            let mut properties = of(&own);
            let fits = properties.complete(of(&other), limit);
            assert_eq!(fits, expected.size() <= limit);
            assert_eq!(properties, if fits { expected } else { of(&own) });
            assert_eq!(properties.size(), counted(&properties));
        }
    }
}
