//! From the text of a payload to its project key and its events (ING-21, ING-22).
//!
//! What belongs here: recognizing the three shapes, splitting the text into events
//! without copying, finding and validating the project key. What does not: deciding on
//! events (`decide`), and whether a project has the key (the server).

use std::borrow::Cow;
use std::fmt;

use chrono::{DateTime, Utc};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use weir_json::{self as json, Cursor, Limits};

use super::decode::Payload;
use super::error::CaptureError;
use super::time;

/// Maximum characters of a project key (ING-22).
const TOKEN_LIMIT: usize = 64;

/// Whitespace that JSON allows around values.
const BLANKS: [char; 4] = [' ', '\n', '\r', '\t'];

/// A parsed request body. Borrows from the [`Payload`].
#[derive(Debug, Clone)]
pub struct Batch<'a> {
    /// The project key: well-formed and trimmed. Whether it exists is not checked.
    pub token: Cow<'a, str>,
    /// Whether the sender marked the batch as an import of old events. Only a batch
    /// object can have this mark.
    pub historical_migration: bool,
    /// Time of sending by the sender's clock: `sent_at` of the body, otherwise `_` of the
    /// query or form. `None` if missing or unreadable (ING-38).
    pub sent_at: Option<DateTime<Utc>>,
    /// The events in the order of the request; at least one.
    pub events: Events<'a>,
}

/// The events of a request, as one text. They are parsed one by one while iterating:
/// their number is not limited, and millions of `{}` must not take gigabytes.
#[derive(Debug, Clone, Copy)]
pub struct Events<'a> {
    /// A JSON list of objects, or one object.
    text: &'a str,
    count: usize,
}

impl<'a> Events<'a> {
    /// Number of events; never 0.
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Iterates over the events in the order of the request. Every call starts at the
    /// first one.
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

/// An iterator over the events of a request, from [`Events::iter`].
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
        // Cannot fail, because the text was parsed before. If it did, an event without
        // fields would be dropped with a visible reason.
        Some(RawEvent::parse(raw).unwrap_or(RawEvent::without_fields(raw)))
    }
}

/// One event as sent: its text, and its known fields as JSON text. If a field is given
/// twice, the last one counts. `null` is kept as `null`.
///
/// Only [`shape`] and [`RawEvent::parse`] create it, so that the fields always belong to
/// the text.
#[derive(Debug, Clone, Copy)]
pub struct RawEvent<'a> {
    /// The whole object, without whitespace around it.
    pub raw: &'a str,
    /// `event`: the name.
    pub event: Option<&'a RawValue>,
    /// `distinct_id`
    pub distinct_id: Option<&'a RawValue>,
    /// `$distinct_id`, an older name.
    pub dollar_distinct_id: Option<&'a RawValue>,
    /// `uuid`
    pub uuid: Option<&'a RawValue>,
    /// `properties`
    pub properties: Option<&'a RawValue>,
    /// `timestamp`
    pub timestamp: Option<&'a RawValue>,
    /// `offset`: the milliseconds from the event until it was sent.
    pub offset: Option<&'a RawValue>,
    /// `$set` of the top level.
    pub set: Option<&'a RawValue>,
    /// `$set_once` of the top level.
    pub set_once: Option<&'a RawValue>,
    /// `$unset` of the top level.
    pub unset: Option<&'a RawValue>,
    key: Keys<'a>,
}

/// The names of the project key at one level, in order of precedence.
#[derive(Debug, Clone, Copy, Default)]
struct Keys<'a> {
    api_key: Option<&'a RawValue>,
    token: Option<&'a RawValue>,
    dollar_token: Option<&'a RawValue>,
}

impl<'a> RawEvent<'a> {
    /// Parses one event from its JSON text.
    ///
    /// # Errors
    /// [`CaptureError::InvalidPayload`] if the text is not a JSON object.
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

    /// The key of this event: at its top level, otherwise `properties.token`.
    fn token(&self) -> Result<Option<Cow<'a, str>>, CaptureError> {
        if let Some(token) = self.key.find()? {
            return Ok(Some(token));
        }
        let Some(properties) = self.properties else {
            return Ok(None);
        };
        let mut token = None;
        // If the walk fails, the properties are not an object; the decision handles that.
        let _ = Cursor::new(properties.get(), Limits::NONE).object(|key, cursor| {
            let value = cursor.value()?;
            if key.text() == "token" {
                token = Some(value);
            }
            Ok(())
        });
        // A value that is not a text is an unrelated property of the sender with the same
        // name.
        token.and_then(json::string_lossy).map(valid_token).transpose()
    }
}

impl<'a> Keys<'a> {
    fn find(self) -> Result<Option<Cow<'a, str>>, CaptureError> {
        let spellings = [self.api_key, self.token, self.dollar_token];
        let Some(value) = spellings.into_iter().flatten().find(|value| value.get() != "null")
        else {
            return Ok(None);
        };
        let text = json::string_lossy(value.get()).ok_or(CaptureError::InvalidApiKey)?;
        valid_token(text).map(Some)
    }
}

/// Parses a payload.
///
/// An array is a list of events; an object with `batch` is a batch, on every path; any
/// other object is one event. The key of the top level takes precedence. Without it, all
/// events with a key must have the same one.
///
/// # Errors
/// First faults of the body, then faults of the key (ING-24):
/// [`CaptureError::InvalidPayload`] if the text is not JSON, contains no event, or
/// contains something other than an event; [`CaptureError::MissingApiKey`],
/// [`CaptureError::InvalidApiKey`], [`CaptureError::ConflictingApiKeys`].
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

/// The text of a field, unless it is missing or `null`.
pub(super) fn present(field: Option<&RawValue>) -> Option<&str> {
    field.map(RawValue::get).filter(|value| *value != "null")
}

/// Checks that a list, which is valid JSON, contains only objects.
pub(super) fn list_of_events(text: &str) -> Result<Events<'_>, CaptureError> {
    let mut count = 0;
    let mut outsider = None;
    let walked = Cursor::new(text, Limits::NONE).list(|cursor| {
        if !cursor.at_object() {
            outsider = outsider.or(Some(count));
        }
        count += 1;
        cursor.range().map(drop)
    });
    match (walked, outsider) {
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

/// Whether a text has the form of a project key (ING-22). It does not check that a
/// project has the key.
pub fn is_project_key(text: &str) -> bool {
    // `phx_` begins a personal API key, which must never work as a project key.
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
    let text = json::string_lossy(value.get())?;
    DateTime::from_timestamp_micros(time::parse_date(&text)?)
}

/// The message of the parser contains the position and the fault, and never repeats the
/// payload.
fn not_json(error: serde_json::Error) -> CaptureError {
    CaptureError::invalid(format!("The payload is not valid JSON: {error}."))
}

/// The top level of a payload, without the fields of an event.
#[derive(Default)]
struct Body<'a> {
    batch: Option<&'a RawValue>,
    historical_migration: Option<&'a RawValue>,
    sent_at: Option<&'a RawValue>,
    key: Keys<'a>,
}

/// The names with a meaning; the same list for the top level and for events.
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
        // As bytes: a name with a single surrogate is not a valid `str`, but must not
        // fail the request.
        deserializer.deserialize_bytes(NameVisitor)
    }
}

/// Written by hand, because derived code refuses a duplicate name, where the last one
/// must count.
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
