//! Parsing the members of a JSON object, with each value as text.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::NotAnObject;

pub(super) type Members<'a> = Vec<(Cow<'a, str>, &'a str)>;

/// The members of an object in order, including those of the same name.
///
/// # Errors
/// If the text is not an object.
pub(super) fn members_of(text: &str) -> Result<Members<'_>, NotAnObject> {
    serde_json::from_str::<Read<'_>>(text).map(|read| read.0).map_err(|_| NotAnObject)
}

struct Read<'a>(Members<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for Read<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ReadMembers).map(Read)
    }
}

struct ReadMembers;

impl<'de> Visitor<'de> for ReadMembers {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::with_capacity(16);
        while let Some((Name(name), value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
            members.push((name, value.get()));
        }
        Ok(members)
    }
}

/// A name that is copied only if it contains escapes.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);
