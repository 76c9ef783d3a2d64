//! Reading JSON text without building a tree, so that every number keeps its digits.
//!
//! What belongs here: finding a value by its path. What does not: converting a value
//! ([`Value`](super::Value)).

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object, in the order of its text.
#[derive(Debug, Clone, Default)]
pub struct Members<'a>(Vec<(Name<'a>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// The members of an object; other values have none.
    pub fn of(json: &'a str) -> Self {
        serde_json::from_str(json).unwrap_or_default()
    }

    /// The JSON text of a member. Of a duplicate name, the last one counts.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().rev().find(|(key, _)| key.0 == name).map(|(_, value)| value.get())
    }

    /// Number of members.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The JSON text at the end of a path; `None` for an empty path.
    pub fn at(&self, path: &[String]) -> Option<&'a str> {
        let (first, rest) = path.split_first()?;
        let first = self.get(first)?;
        rest.iter().try_fold(first, |json, name| Members::of(json).get(name))
    }
}

/// A step from a value to a nested one.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step<'a> {
    /// A member of an object.
    Name(Cow<'a, str>),
    /// An element of a list: from 1, or from -1 for the last one.
    Index(i64),
}

/// The JSON text at the end of the steps.
pub(super) fn find<'a>(json: &'a str, steps: &[Step<'_>]) -> Option<&'a str> {
    steps.iter().try_fold(json, |json, step| match step {
        Step::Name(name) => Members::of(json).get(name),
        Step::Index(index) => element(json, *index),
    })
}

fn element(json: &str, index: i64) -> Option<&str> {
    let elements: Vec<&RawValue> = serde_json::from_str(json).ok()?;
    let at = match usize::try_from(index) {
        Ok(from_start) => from_start.checked_sub(1)?,
        Err(_) => elements.len().checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?,
    };
    elements.get(at).map(|element| element.get())
}

/// The text of a JSON string; `None` if the value is not a string.
pub(super) fn string(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(json).ok().map(Cow::Owned)
}

/// A name that borrows from the text unless it has escapes.
#[derive(Debug, Clone)]
struct Name<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }

        deserializer.deserialize_str(Reader)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}
