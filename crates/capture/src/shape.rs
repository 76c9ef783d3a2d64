//! From the text of a payload to its key and its events (ING-21, ING-22).
//!
//! What belongs here: telling the three shapes apart, cutting the text into
//! events without copying, finding and judging the project key.
//! What does not: whether an event is any good, and whether a project has the
//! key.

use std::borrow::Cow;
use std::fmt;

use chrono::{DateTime, Utc};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::decode::Payload;
use super::error::CaptureError;
use super::json::{self, Cursor, Limits};
use super::time;

/// Characters of a project key, at most (ING-22).
const TOKEN_LIMIT: usize = 64;

/// Blanks that JSON allows around values.
const BLANKS: [char; 4] = [' ', '\n', '\r', '\t'];

/// A request body taken apart. Borrows from the [`Payload`].
#[derive(Debug, Clone)]
pub struct Batch<'a> {
    /// The project key: well formed, blanks cut off, not yet looked up.
    pub token: Cow<'a, str>,
    /// Whether the sender marked the batch as an import of old events. Only the
    /// batch object has a place for it.
    pub historical_migration: bool,
    /// When the sender sent the request by its own clock: `sent_at` of the body,
    /// else `_` of query or form. `None` when absent or unreadable (ING-38).
    pub sent_at: Option<DateTime<Utc>>,
    /// The events in the order of the request; at least one.
    pub events: Events<'a>,
}

/// The events of a request, still as one text. They are taken apart one by one
/// while iterating: there is no limit on their number, and millions of `{}` must
/// not become gigabytes.
#[derive(Debug, Clone, Copy)]
pub struct Events<'a> {
    /// A JSON list of objects, or one object.
    text: &'a str,
    count: usize,
}

impl<'a> Events<'a> {
    /// How many there are; never 0.
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Takes them one by one, in the order of the request. Every call starts
    /// over.
    #[must_use]
    pub fn iter(&self) -> EventIter<'a> {
        let mut cursor = Cursor::new(self.text, Limits::NONE);
        let is_list = cursor.enter_list().is_ok();
        EventIter { cursor, is_list, left: self.count }
    }
}

impl<'a> IntoIterator for &Events<'a> {
    type Item = RawEvent<'a>;
    type IntoIter = EventIter<'a>;

    fn into_iter(self) -> EventIter<'a> {
        self.iter()
    }
}

/// The events of a request, one by one; from [`Events::iter`].
#[derive(Debug)]
pub struct EventIter<'a> {
    cursor: Cursor<'a>,
    is_list: bool,
    left: usize,
}

impl<'a> Iterator for EventIter<'a> {
    type Item = RawEvent<'a>;

    fn next(&mut self) -> Option<RawEvent<'a>> {
        self.left = self.left.checked_sub(1)?;
        if self.is_list && !self.cursor.at_element().ok()? {
            return None;
        }
        let raw = self.cursor.value().ok()?;
        // Cannot fail, as the text has been parsed before. If it did, an event
        // without fields would be dropped in plain sight.
        Some(RawEvent::parse(raw).unwrap_or(RawEvent::without_fields(raw)))
    }
}

/// One event as sent: its text, and its known fields as JSON text. Of a field
/// given twice, the last. `null` is still there as `null`.
///
/// Made by [`shape`] or [`RawEvent::parse`] only, so that the fields always
/// belong to the text.
#[derive(Debug, Clone, Copy)]
pub struct RawEvent<'a> {
    /// The whole object, without blanks around it.
    pub raw: &'a str,
    /// `event`: the name.
    pub event: Option<&'a RawValue>,
    /// `distinct_id`
    pub distinct_id: Option<&'a RawValue>,
    /// `$distinct_id`, an older spelling.
    pub dollar_distinct_id: Option<&'a RawValue>,
    /// `uuid`
    pub uuid: Option<&'a RawValue>,
    /// `properties`
    pub properties: Option<&'a RawValue>,
    /// `timestamp`
    pub timestamp: Option<&'a RawValue>,
    /// `offset`: milliseconds before the time of sending.
    pub offset: Option<&'a RawValue>,
    /// `$set` beside the properties.
    pub set: Option<&'a RawValue>,
    /// `$set_once` beside the properties.
    pub set_once: Option<&'a RawValue>,
    /// `$unset` beside the properties.
    pub unset: Option<&'a RawValue>,
    key: Keys<'a>,
}

/// The spellings of the project key at one level, first one first.
#[derive(Debug, Clone, Copy, Default)]
struct Keys<'a> {
    api_key: Option<&'a RawValue>,
    token: Option<&'a RawValue>,
    dollar_token: Option<&'a RawValue>,
}

impl<'a> RawEvent<'a> {
    /// Reads one event from its JSON text.
    ///
    /// # Errors
    /// [`CaptureError::InvalidPayload`] when the text is not a JSON object.
    pub fn parse(raw: &'a str) -> Result<Self, CaptureError> {
        let raw = raw.trim_matches(BLANKS);
        let mut parser = serde_json::Deserializer::from_str(raw);
        let event = parser.deserialize_map(EventVisitor { raw }).map_err(not_json)?;
        parser.end().map_err(not_json)?;
        Ok(event)
    }

    const fn without_fields(raw: &'a str) -> Self {
        Self {
            raw,
            event: None,
            distinct_id: None,
            dollar_distinct_id: None,
            uuid: None,
            properties: None,
            timestamp: None,
            offset: None,
            set: None,
            set_once: None,
            unset: None,
            key: Keys { api_key: None, token: None, dollar_token: None },
        }
    }

    /// The key that this event carries: at its top level, else as
    /// `properties.token`.
    fn token(&self) -> Result<Option<Cow<'a, str>>, CaptureError> {
        if let Some(token) = self.key.find()? {
            return Ok(Some(token));
        }
        let Some(properties) = self.properties else {
            return Ok(None);
        };
        let mut token = None;
        // A walk that breaks off means no object; the decision deals with that.
        let _ = Cursor::new(properties.get(), Limits::NONE).object(|key, cursor| {
            let value = cursor.value()?;
            if key.text() == "token" {
                token = Some(value);
            }
            Ok(())
        });
        // Anything but a text is a property of the sender that happens to have
        // the name.
        token.and_then(json::string).map(valid_token).transpose()
    }
}

impl<'a> Keys<'a> {
    fn find(self) -> Result<Option<Cow<'a, str>>, CaptureError> {
        let spellings = [self.api_key, self.token, self.dollar_token];
        let Some(value) = spellings.into_iter().flatten().find(|value| value.get() != "null")
        else {
            return Ok(None);
        };
        let text = json::string(value.get()).ok_or(CaptureError::InvalidApiKey)?;
        valid_token(text).map(Some)
    }
}

/// Takes a payload apart.
///
/// An array is a list of events; an object with `batch` is a batch, whatever the
/// path; any other object is one event. The key of the top level wins; without
/// one, all events that carry a key must carry the same.
///
/// # Errors
/// First everything about the body, then about the key (ING-24):
/// [`CaptureError::InvalidPayload`] when the text is not JSON, holds no event,
/// or holds something else where an event should be;
/// [`CaptureError::MissingApiKey`], [`CaptureError::InvalidApiKey`],
/// [`CaptureError::ConflictingApiKeys`].
pub fn shape(payload: &Payload) -> Result<Batch<'_>, CaptureError> {
    let text = payload.text().trim_matches(BLANKS);
    let (body, events) = if text.starts_with('[') {
        serde_json::from_str::<IgnoredAny>(text).map_err(not_json)?;
        (Body::default(), list_of_events(text)?)
    } else if text.starts_with('{') {
        let body: Body<'_> = serde_json::from_str(text).map_err(not_json)?;
        let events = match body.batch {
            None => Events { text, count: 1 },
            Some(list) if list.get().starts_with('[') => list_of_events(list.get())?,
            Some(_) => return Err(CaptureError::invalid("`batch` is not a list of events.")),
        };
        (body, events)
    } else if text.is_empty() {
        return Err(CaptureError::invalid("The payload is empty."));
    } else {
        return Err(CaptureError::invalid("The payload is neither a JSON object nor a list."));
    };

    let token = match body.key.find()? {
        Some(token) => token,
        None => shared_token(events)?.ok_or(CaptureError::MissingApiKey)?,
    };
    Ok(Batch {
        token,
        historical_migration: body.batch.is_some()
            && body.historical_migration.is_some_and(|value| value.get() == "true"),
        sent_at: body.sent_at.and_then(read_sent_at).or(payload.sent_at()),
        events,
    })
}

/// The text of a field unless it is absent or `null`.
pub(super) fn present(field: Option<&RawValue>) -> Option<&str> {
    field.map(RawValue::get).filter(|value| *value != "null")
}

/// Checks that a list, known to be JSON, holds objects only.
pub(super) fn list_of_events(text: &str) -> Result<Events<'_>, CaptureError> {
    let mut count = 0;
    let mut stranger = None;
    let walked = Cursor::new(text, Limits::NONE).list(|cursor| {
        if !cursor.at_object() {
            stranger = stranger.or(Some(count));
        }
        count += 1;
        cursor.range().map(drop)
    });
    match (walked, stranger) {
        (Ok(()), None) if count > 0 => Ok(Events { text, count }),
        (Ok(()), None) => Err(CaptureError::invalid("The request holds no event.")),
        (_, Some(index)) => {
            Err(CaptureError::invalid(format!("Item {index} is not an event object.")))
        }
        (Err(_), None) => Err(CaptureError::invalid("The list of events cannot be read.")),
    }
}

fn shared_token(events: Events<'_>) -> Result<Option<Cow<'_, str>>, CaptureError> {
    let mut shared: Option<Cow<'_, str>> = None;
    for event in &events {
        match (event.token()?, &shared) {
            (Some(token), None) => shared = Some(token),
            (Some(token), Some(first)) if token != *first => {
                return Err(CaptureError::ConflictingApiKeys);
            }
            _ => {}
        }
    }
    Ok(shared)
}

/// Whether a text has the form of a project key (ING-22). No project has
/// to have it.
#[must_use]
pub fn is_project_key(text: &str) -> bool {
    // `phx_` starts a personal key, which must never work as a project key.
    !text.is_empty()
        && text.len() <= TOKEN_LIMIT
        && text.is_ascii()
        && !text.contains('\0')
        && !text.starts_with("phx_")
}

pub(super) fn valid_token(token: Cow<'_, str>) -> Result<Cow<'_, str>, CaptureError> {
    let token = match token {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    };
    if is_project_key(&token) { Ok(token) } else { Err(CaptureError::InvalidApiKey) }
}

fn read_sent_at(value: &RawValue) -> Option<DateTime<Utc>> {
    let text = json::string(value.get())?;
    DateTime::from_timestamp_micros(time::parse_iso(&text)?)
}

/// The parser names place and fault, and never repeats the payload.
fn not_json(error: serde_json::Error) -> CaptureError {
    CaptureError::invalid(format!("The payload is not valid JSON: {error}."))
}

/// What the top level of a payload says, apart from the fields of an event.
#[derive(Default)]
struct Body<'a> {
    batch: Option<&'a RawValue>,
    historical_migration: Option<&'a RawValue>,
    sent_at: Option<&'a RawValue>,
    key: Keys<'a>,
}

/// The names that mean something; the same list serves top level and events.
enum Field {
    ApiKey,
    Token,
    DollarToken,
    Batch,
    HistoricalMigration,
    SentAt,
    Event,
    DistinctId,
    DollarDistinctId,
    Uuid,
    Properties,
    Timestamp,
    Offset,
    Set,
    SetOnce,
    Unset,
    Unknown,
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl Visitor<'_> for NameVisitor {
            type Value = Field;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_bytes<E>(self, name: &[u8]) -> Result<Field, E> {
                Ok(match name {
                    b"api_key" => Field::ApiKey,
                    b"token" => Field::Token,
                    b"$token" => Field::DollarToken,
                    b"batch" => Field::Batch,
                    b"historical_migration" => Field::HistoricalMigration,
                    b"sent_at" => Field::SentAt,
                    b"event" => Field::Event,
                    b"distinct_id" => Field::DistinctId,
                    b"$distinct_id" => Field::DollarDistinctId,
                    b"uuid" => Field::Uuid,
                    b"properties" => Field::Properties,
                    b"timestamp" => Field::Timestamp,
                    b"offset" => Field::Offset,
                    b"$set" => Field::Set,
                    b"$set_once" => Field::SetOnce,
                    b"$unset" => Field::Unset,
                    _ => Field::Unknown,
                })
            }
        }
        // As bytes: a name with half of a surrogate pair is no `str`, but must
        // not fail the request either.
        deserializer.deserialize_bytes(NameVisitor)
    }
}

/// Hand-written because derived code refuses a name given twice, where the last
/// one has to win.
struct EventVisitor<'a> {
    raw: &'a str,
}

impl<'de> Visitor<'de> for EventVisitor<'de> {
    type Value = RawEvent<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<RawEvent<'de>, M::Error> {
        let mut event = RawEvent::without_fields(self.raw);
        while let Some(field) = map.next_key()? {
            let slot = match field {
                Field::ApiKey => &mut event.key.api_key,
                Field::Token => &mut event.key.token,
                Field::DollarToken => &mut event.key.dollar_token,
                Field::Event => &mut event.event,
                Field::DistinctId => &mut event.distinct_id,
                Field::DollarDistinctId => &mut event.dollar_distinct_id,
                Field::Uuid => &mut event.uuid,
                Field::Properties => &mut event.properties,
                Field::Timestamp => &mut event.timestamp,
                Field::Offset => &mut event.offset,
                Field::Set => &mut event.set,
                Field::SetOnce => &mut event.set_once,
                Field::Unset => &mut event.unset,
                Field::Batch | Field::HistoricalMigration | Field::SentAt | Field::Unknown => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            *slot = Some(map.next_value()?);
        }
        Ok(event)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Body<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BodyVisitor;
        impl<'de> Visitor<'de> for BodyVisitor {
            type Value = Body<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Body<'de>, M::Error> {
                let mut body = Body::default();
                while let Some(field) = map.next_key()? {
                    let slot = match field {
                        Field::ApiKey => &mut body.key.api_key,
                        Field::Token => &mut body.key.token,
                        Field::DollarToken => &mut body.key.dollar_token,
                        Field::HistoricalMigration => &mut body.historical_migration,
                        Field::SentAt => &mut body.sent_at,
                        Field::Batch => &mut body.batch,
                        Field::Event
                        | Field::DistinctId
                        | Field::DollarDistinctId
                        | Field::Uuid
                        | Field::Properties
                        | Field::Timestamp
                        | Field::Offset
                        | Field::Set
                        | Field::SetOnce
                        | Field::Unset
                        | Field::Unknown => {
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    *slot = Some(map.next_value()?);
                }
                Ok(body)
            }
        }
        deserializer.deserialize_map(BodyVisitor)
    }
}

#[cfg(test)]
mod tests;
