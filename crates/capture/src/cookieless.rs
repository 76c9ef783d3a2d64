//! Visitors of pages that store nothing in the browser (ING-65): the browser library sends
//! the same distinct id for all of them, with `$cookieless_mode`.
//!
//! What belongs here: the distinct id that they get instead, and which properties of their
//! events are neither stored nor shown. What does not: how the key of a visitor is made from
//! a secret of the day (the server).

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock};

use uuid::Uuid;
use weir_json::{self as json, Cursor, Fault, Limits, ObjectWriter};

/// The distinct id that the library sends for every such visitor.
pub(super) const SENTINEL: &str = "$posthog_cookieless";

/// The beginning of the distinct id of one visitor. A uuid follows.
const PREFIX: &str = "cookieless_";

/// Properties that tell visitors apart.
const TRACES: [&str; 2] = ["$ip", "$raw_user_agent"];

/// Properties with the id that an event merges.
const MERGED: [&str; 2] = ["$anon_distinct_id", "alias"];

/// Objects of properties of the person.
const UPDATES: [&str; 2] = ["$set", "$set_once"];

/// Computes a key when it is first needed.
type Compute = Box<dyn FnOnce() -> Uuid + Send>;

/// Where the distinct id of a visitor without cookies comes from.
#[derive(Clone, Default)]
pub enum CookielessKey {
    /// Nowhere: no visitor sent the request. The event is dropped.
    #[default]
    Missing,
    /// From the secret key of the visitor that sent the request, the same for a day. Most
    /// requests never need it.
    Visitor(Arc<LazyLock<Uuid, Compute>>),
    /// From the event itself: an earlier version accepted it with the id of all visitors, and
    /// the id stays.
    Accepted,
}

impl CookielessKey {
    /// The key of the visitor that sent a request.
    pub fn of_visitor(compute: impl FnOnce() -> Uuid + Send + 'static) -> Self {
        let compute: Compute = Box::new(compute);
        Self::Visitor(Arc::new(LazyLock::new(compute)))
    }

    /// For a new decision on an event that was accepted with this distinct id.
    pub fn of_accepted(distinct_id: &str) -> Self {
        if distinct_id == SENTINEL { Self::Accepted } else { Self::Missing }
    }

    /// The distinct id in place of [`SENTINEL`] on the site `host`. The key is a secret, so
    /// nothing about the visitor follows from the id.
    pub(super) fn distinct_id(&self, host: &str) -> Option<String> {
        match self {
            Self::Missing => None,
            Self::Visitor(key) => {
                let key = LazyLock::force(key);
                Some(format!("{PREFIX}{}", Uuid::new_v5(key, host.as_bytes())))
            }
            Self::Accepted => Some(SENTINEL.to_owned()),
        }
    }
}

/// Does not show the key.
impl fmt::Debug for CookielessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "Missing",
            Self::Visitor(_) => "Visitor",
            Self::Accepted => "Accepted",
        })
    }
}

/// Whether a distinct id stands for visitors without cookies: for all of them, or for those
/// with the same address and browser on one day. Such an id is no single person, so nothing
/// is merged with it.
pub fn is_cookieless_id(distinct_id: &str) -> bool {
    let uuid = distinct_id.strip_prefix(PREFIX);
    distinct_id == SENTINEL || uuid.is_some_and(|uuid| Uuid::parse_str(uuid).is_ok())
}

/// Whether a JSON value is [`SENTINEL`].
pub(super) fn is_sentinel(value: &str) -> bool {
    json::string_lossy(value).is_some_and(|text| text == SENTINEL)
}

/// Whether a text can name the mode or [`SENTINEL`]. What has no escapes is in the text
/// literally.
pub(super) fn may_concern(raw: &str) -> bool {
    raw.contains("cookieless") || raw.contains('\\')
}

/// The properties as they are stored: without [`TRACES`], and with `id` as `distinct_id` in
/// place of [`SENTINEL`]. Without an id, and where it is merged, [`SENTINEL`] is removed.
///
/// # Errors
/// [`Fault::Malformed`] if the properties are not an object.
pub(super) fn without_traces(properties: &str, id: Option<&str>) -> Result<String, Fault> {
    rewrite(properties, |name, value| {
        if name == "distinct_id" && is_sentinel(value) {
            Ok(id.map(|id| Cow::Owned(json::quoted(id))))
        } else if MERGED.contains(&name) && is_sentinel(value) {
            Ok(None)
        } else {
            within_updates(name, value)
        }
    })
}

/// The text of an event as it is shown: without [`TRACES`].
///
/// # Errors
/// [`Fault::Malformed`] if the event or its properties are not an object.
pub(super) fn shown(event: &str) -> Result<String, Fault> {
    rewrite(event, |name, value| match name {
        "properties" if value != "null" && !json::is_empty_list(value) => {
            rewrite(value, within_updates).map(|properties| Some(Cow::Owned(properties)))
        }
        _ => within_updates(name, value),
    })
}

/// The value of a member, without [`TRACES`] if it is one of [`UPDATES`].
fn within_updates<'a>(name: &str, value: &'a str) -> Result<Option<Cow<'a, str>>, Fault> {
    if !UPDATES.contains(&name) || !value.starts_with('{') {
        return Ok(Some(Cow::Borrowed(value)));
    }
    let update = rewrite(value, |_name, value| Ok(Some(Cow::Borrowed(value))))?;
    Ok(Some(Cow::Owned(update)))
}

/// The object without [`TRACES`], with the values that `value_of` returns for the other
/// members. It removes those with `None`.
fn rewrite<'a>(
    object: &'a str,
    value_of: impl Fn(&str, &'a str) -> Result<Option<Cow<'a, str>>, Fault>,
) -> Result<String, Fault> {
    let mut out = String::with_capacity(object.len());
    let mut members = ObjectWriter::begin(&mut out);
    Cursor::new(object, Limits::NONE).object(|key, cursor| {
        let (name, value) = (key.text(), cursor.value()?);
        if !TRACES.contains(&name.as_ref())
            && let Some(value) = value_of(&name, value)?
        {
            members.json(&name, &value);
        }
        Ok(())
    })?;
    members.end();
    Ok(out)
}

#[cfg(test)]
mod tests;
