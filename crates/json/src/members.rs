//! The members of one object: finding, adding and removing them.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::{Cursor, Fault, Limits, ObjectWriter, push_string};

/// The members of an object in the order of its text: names decoded, values as JSON text.
/// Of a duplicate name, the last one counts.
#[derive(Debug, Clone, Default)]
pub struct Members<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'a> Members<'a> {
    /// Parses an object. It may have any depth.
    ///
    /// # Errors
    /// If the text is not an object, or a name has a single surrogate.
    pub fn parse(json: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// The members of an object; other values have none.
    pub fn of(json: &'a str) -> Self {
        Self::parse(json).unwrap_or_default()
    }

    /// The JSON text of a member.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value)
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

impl<'a> IntoIterator for Members<'a> {
    type Item = (Cow<'a, str>, &'a str);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Borrows from the text unless it has escapes.
        #[derive(serde::Deserialize)]
        struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::with_capacity(16);
                while let Some((Name(name), value)) = map.next_entry::<_, &RawValue>()? {
                    members.push((name, value.get()));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// The JSON text of the last member with this name.
pub fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    object.get(member_range(object, name)?)
}

/// The range of the value of the last member with this name.
pub fn member_range(object: &str, name: &str) -> Option<Range<usize>> {
    let mut found = None;
    let walked = Cursor::new(object, Limits::NONE).object(|key, cursor| {
        let range = cursor.range()?;
        if key.text() == name {
            found = Some(range);
        }
        Ok(())
    });
    walked.ok().and(found)
}

/// Appends a member to an object.
pub fn with_member(object: &str, key: &str, value: &str) -> String {
    let body = object.trim_end().strip_suffix('}').unwrap_or(object);
    let mut out = String::with_capacity(object.len() + key.len() + value.len() + 6);
    out.push_str(body);
    if !body.trim_end().ends_with('{') {
        out.push(',');
    }
    push_string(&mut out, key);
    out.push(':');
    out.push_str(value);
    out.push('}');
    out
}

/// Removes the members of this name; returns the object and the text of the last of them,
/// `null` if there is none.
///
/// # Errors
/// If the text is not an object.
pub fn take_member<'a>(object: &'a str, name: &str) -> Result<(String, &'a str), Fault> {
    let mut taken = "null";
    let others = retain(object, |key, value| {
        let is_other = key != name;
        if !is_other {
            taken = value;
        }
        is_other
    })?;
    Ok((others, taken))
}

/// Removes the members of these names.
///
/// # Errors
/// If the text is not an object.
pub fn without_members(object: &str, names: &[&str]) -> Result<String, Fault> {
    retain(object, |key, _| !names.contains(&key))
}

/// Keeps the members for which `keep` returns true. It gets the decoded name and the value.
fn retain<'a>(
    object: &'a str,
    mut keep: impl FnMut(&str, &'a str) -> bool,
) -> Result<String, Fault> {
    let mut out = String::with_capacity(object.len());
    let mut kept = ObjectWriter::begin(&mut out);
    Cursor::new(object, Limits::NONE).object(|key, cursor| {
        let value = cursor.value()?;
        if keep(&key.text(), value) {
            kept.sent(key, value);
        }
        Ok(())
    })?;
    kept.end();
    Ok(out)
}
