//! Visitors of pages that store nothing in the browser (ING-65): the browser library sends
//! the same distinct id for all of them, with `$cookieless_mode`.
//!
//! What belongs here: the distinct id that they get instead, and which properties of their
//! events are not stored. What does not: the key of a visitor, which depends on a secret of
//! the day (the server).

use uuid::Uuid;
use weir_json::{self as json, Cursor, Fault, Limits, ObjectWriter};

/// The distinct id that the library sends for every such visitor.
pub(super) const SENTINEL: &str = "$posthog_cookieless";

/// Properties that tell visitors apart.
const TRACES: [&str; 2] = ["$ip", "$raw_user_agent"];

/// Properties with the id of a visitor.
const IDS: [&str; 3] = ["$anon_distinct_id", "alias", "distinct_id"];

/// The distinct id of the visitor with this key on the site `host`. The key is a secret, so
/// nothing about the visitor follows from the id.
pub(super) fn distinct_id(key: Uuid, host: &str) -> String {
    format!("cookieless_{}", Uuid::new_v5(&key, host.as_bytes()))
}

/// Whether a JSON value is [`SENTINEL`].
pub(super) fn is_sentinel(value: &str) -> bool {
    json::string_lossy(value).is_some_and(|text| text == SENTINEL)
}

/// The properties without [`TRACES`], and with `id` in place of [`SENTINEL`]. Without an id,
/// properties with the sentinel are removed.
///
/// # Errors
/// [`Fault::Malformed`] if the properties are not an object.
pub(super) fn without_traces(properties: &str, id: Option<&str>) -> Result<String, Fault> {
    let mut out = String::with_capacity(properties.len());
    let mut object = ObjectWriter::begin(&mut out);
    Cursor::new(properties, Limits::NONE).object(|key, cursor| {
        let (name, value) = (key.text(), cursor.value()?);
        if IDS.contains(&name.as_ref()) && is_sentinel(value) {
            if let Some(id) = id {
                object.text(&name, id);
            }
        } else if !TRACES.contains(&name.as_ref()) {
            object.json(&name, value);
        }
        Ok(())
    })?;
    object.end();
    Ok(out)
}

#[cfg(test)]
mod tests;
