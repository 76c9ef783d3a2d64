//! Merges `$set`, `$set_once` and `$unset` of an event's top level into its properties
//! (ING-33), as text: all other bytes stay as sent.
//!
//! What belongs here: this merge, and merging objects in general. What does not: the type
//! of these fields among the properties (`decide` warns of a wrong one), and their meaning
//! for a person (`weir-ingest`).

use std::borrow::Cow;
use std::collections::HashSet;

use weir_json::{self as json, Cursor, Fault, Limits, ObjectWriter};
use weir_model::outcomes::Warning;

use super::shape::{RawEvent, present};

/// The properties with the three fields of the top level merged in. Usually there is
/// nothing to merge, and then nothing is copied.
pub(super) fn merge_top_level<'a>(
    event: &RawEvent<'_>,
    properties: &'a str,
    warnings: &mut Vec<Warning>,
) -> Cow<'a, str> {
    let fields = [
        ("$set", event.set, Union::Objects),
        ("$set_once", event.set_once, Union::Objects),
        ("$unset", event.unset, Union::Names),
    ];
    let mut merged = Cow::Borrowed(properties);
    for (name, field, union) in fields {
        let Some(top) = present(field) else { continue };
        if !union.takes(top) {
            // PHP writes an empty object as an empty list.
            if !json::is_empty_list(top) && !warnings.contains(&Warning::InvalidPersonUpdate) {
                warnings.push(Warning::InvalidPersonUpdate);
            }
            continue;
        }
        merged = Cow::Owned(match json::member_range(&merged, name) {
            None => json::with_member(&merged, name, top),
            Some(range) => {
                let inner = merged.get(range.clone()).unwrap_or_default();
                let value = if union.takes(inner) { union.of(inner, top) } else { None };
                let mut text = merged.clone().into_owned();
                text.replace_range(range, value.as_deref().unwrap_or(top));
                text
            }
        });
    }
    merged
}

/// The members of both objects; those of `over` replace those of `object`. `None` if one of
/// both is not an object.
pub(super) fn overlay(object: &str, over: &str) -> Option<String> {
    unite_objects(object, over).ok()
}

/// How two values of a field are merged.
#[derive(Clone, Copy)]
enum Union {
    /// Objects: the members of both. The top level takes precedence.
    Objects,
    /// Names, as a list or as the keys of an object: a list of the names of both.
    Names,
}

impl Union {
    /// Whether the value has a type that can be merged.
    fn takes(self, value: &str) -> bool {
        match self {
            Self::Objects => value.starts_with('{'),
            Self::Names => value.starts_with(['{', '[']),
        }
    }

    fn of(self, inner: &str, top: &str) -> Option<String> {
        match self {
            Self::Objects => unite_objects(inner, top),
            Self::Names => unite_names(inner, top),
        }
        .ok()
    }
}

fn unite_objects(inner: &str, top: &str) -> Result<String, Fault> {
    let mut members = Vec::new();
    let mut taken = HashSet::new();
    Cursor::new(top, Limits::NONE).object(|key, cursor| {
        taken.insert(key.text());
        members.push((key.text(), cursor.value()?));
        Ok(())
    })?;
    let mut out = String::with_capacity(inner.len() + top.len());
    let mut object = ObjectWriter::begin(&mut out);
    Cursor::new(inner, Limits::NONE).object(|key, cursor| {
        let value = cursor.value()?;
        if !taken.contains(&key.text()) {
            object.json(&key.text(), value);
        }
        Ok(())
    })?;
    for (name, value) in members {
        object.json(&name, value);
    }
    object.end();
    Ok(out)
}

fn unite_names(inner: &str, top: &str) -> Result<String, Fault> {
    let mut names = Vec::new();
    for source in [inner, top] {
        let mut cursor = Cursor::new(source, Limits::NONE);
        if cursor.at_object() {
            cursor.object(|key, cursor| {
                names.push(Cow::Owned(json::quoted(&key.text())));
                cursor.range().map(drop)
            })?;
        } else {
            cursor.list(|cursor| {
                names.push(Cow::Borrowed(cursor.value()?));
                Ok(())
            })?;
        }
    }
    let mut seen = HashSet::new();
    names.retain(|name: &Cow<'_, str>| seen.insert(name.clone()));
    Ok(format!("[{}]", names.join(",")))
}

#[cfg(test)]
mod tests;
