//! Capture protocol V1, `/i/v1/analytics/events`, which client libraries use if configured
//! (ING-26): the key is in a header, and there is an answer for every event.
//!
//! ```text
//! headers -Headers::read-> Headers
//! body -decompress-> Payload -shape-> Batch -decide-> Decision, Results
//! ```
//!
//! What belongs here: the differences from the other paths. Data from headers or from
//! next to the properties is copied into the properties; then
//! [`capture::decide`](super::decide()) decides on the event. Two differences remain:
//! values that are too long or unreadable drop the event instead of being corrected, and
//! every event must have a unique uuid. What does not: HTTP beyond the texts of headers,
//! and finding the project of the key (the server).

mod fault;
mod headers;
mod results;

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use bytes::Bytes;
use uuid::Uuid;
use weir_json::{self as json, Cursor, Limits, ObjectWriter};
use weir_model::outcomes::{DropReason, Warning};

use super::decide::{Context, Decision, EVENT_LIMIT, decide as decide_common, dropped};
use super::decode::{BODY_LIMIT, Payload, is_gzip};
use super::shape::{Events, RawEvent, list_of_events, present};
use super::{decompress, identity, properties, time};

pub use fault::Fault;
pub use headers::{Encoding, Headers, Library};
pub use results::Results;

/// The property that an option for visitors without cookies becomes.
const COOKIELESS_MODE: &str = "$cookieless_mode";

/// A parsed request body. Borrows from the [`Payload`].
#[derive(Debug, Clone)]
pub struct Batch<'a> {
    /// Whether the sender marked the batch as an import of old events.
    pub historical_migration: bool,
    /// The events in the order of the request, at least one, each with a unique uuid.
    pub events: Events<'a>,
}

/// Decompresses a body to its text.
///
/// # Errors
/// [`Fault::EmptyBody`], [`Fault::Undecodable`], and
/// [`PayloadTooLarge`](super::CaptureError::PayloadTooLarge) above [`BODY_LIMIT`] before
/// or after decompression. Decompression stops at the limit.
pub fn decompress(encoding: Encoding, body: Bytes) -> Result<Payload, Fault> {
    if body.is_empty() {
        return Err(Fault::EmptyBody);
    }
    if body.len() > BODY_LIMIT {
        return Err(Fault::too_large());
    }
    let decompressed = match encoding {
        // Browsers do not let a page set the header for the encoding.
        Encoding::Identity if is_gzip(&body) => decompress::gzip(&body, BODY_LIMIT),
        Encoding::Identity => Ok(Vec::from(body)),
        Encoding::Gzip => decompress::gzip(&body, BODY_LIMIT),
        Encoding::Deflate => decompress::zlib(&body, BODY_LIMIT),
        Encoding::Brotli => decompress::brotli(&body, BODY_LIMIT),
        Encoding::Zstd => decompress::zstd(&body, BODY_LIMIT),
    };
    let bytes = decompressed.map_err(|fault| match fault {
        decompress::Fault::TooLarge => Fault::too_large(),
        decompress::Fault::Malformed => Fault::Undecodable,
    })?;
    String::from_utf8(bytes).map(Payload::from_text).map_err(|_| Fault::Undecodable)
}

/// Parses a payload.
///
/// # Errors
/// Faults of the whole batch: not a JSON object with a list of events, an unreadable
/// `created_at`, and an event with a missing, invalid or duplicate uuid.
pub fn shape(payload: &Payload) -> Result<Batch<'_>, Fault> {
    let text = payload.text().trim();
    serde_json::from_str::<serde::de::IgnoredAny>(text)
        .map_err(|error| Fault::Unreadable(format!("The payload is not valid JSON: {error}.")))?;
    let mut created_at = None;
    let mut batch = None;
    let mut historical_migration = false;
    Cursor::new(text, Limits::NONE)
        .object(|key, cursor| {
            let value = cursor.value()?;
            match key.text().as_ref() {
                "created_at" => created_at = Some(value),
                "batch" => batch = Some(value),
                "historical_migration" => historical_migration = value == "true",
                _ => {}
            }
            Ok(())
        })
        .map_err(|_| Fault::Unreadable("The payload is not a JSON object.".to_owned()))?;

    let created_at = created_at.and_then(json::string_lossy);
    if created_at.is_none_or(|text| time::parse_date(&text).is_none()) {
        return Err(Fault::InvalidCreatedAt);
    }
    let list = batch.filter(|list| list.starts_with('['));
    let list = list.ok_or_else(|| Fault::Unreadable("`batch` is not a list.".to_owned()))?;
    if Cursor::new(list, Limits::NONE).list(|_| Err(json::Fault::Malformed)).is_ok() {
        return Err(Fault::EmptyBatch);
    }
    let events =
        list_of_events(list).map_err(|error| Fault::Unreadable(error.detail().into_owned()))?;
    check_uuids(events)?;
    Ok(Batch { historical_migration, events })
}

/// Results are identified by uuid, so every event needs a unique one.
fn check_uuids(events: Events<'_>) -> Result<(), Fault> {
    let mut seen: HashSet<Uuid> = HashSet::with_capacity(events.len());
    for (index, event) in events.iter().enumerate() {
        match identity::sent(&event) {
            Ok(Some(uuid)) if seen.insert(uuid) => {}
            Ok(Some(uuid)) => return Err(Fault::DuplicateUuid(uuid)),
            Ok(None) => return Err(Fault::MissingUuid(index)),
            Err(_) => return Err(Fault::InvalidUuid(index)),
        }
    }
    Ok(())
}

/// Decides on one event: like [`capture::decide`](super::decide()), after `library` and the
/// options were added to its properties.
pub fn decide(event: &RawEvent<'_>, library: Option<Library<'_>>, context: &Context) -> Decision {
    let beside = OuterFields::read(event.raw);
    let drop =
        |reason| Decision::Drop(dropped(event, reason, context.engage, beside.is_cookieless()));
    if event.raw.len() > EVENT_LIMIT {
        return drop(DropReason::EventTooLarge);
    }
    let text = beside.put_into_properties(event, library);
    let Ok(common) = RawEvent::parse(&text) else {
        return drop(DropReason::InvalidProperties);
    };
    match decide_common(&common, context) {
        Decision::Accept(mut accepted) => {
            if let Some(reason) = not_mended(event, &accepted.warnings) {
                return drop(reason);
            }
            if beside.is_odd {
                accepted.warnings.push(Warning::InvalidOption);
            }
            Decision::Accept(accepted)
        }
        // The drop shows the event with its options where they were sent.
        Decision::Drop(common) => drop(common.reason),
    }
}

/// The drop of an event beyond a limit of its organization, like
/// [`capture::drop_over_limit`](super::drop_over_limit()).
pub fn drop_over_limit(
    event: &RawEvent<'_>,
    reason: DropReason,
    library: Option<Library<'_>>,
    context: &Context,
) -> Decision {
    match decide(event, library, context) {
        Decision::Accept(_) => {
            let is_cookieless = OuterFields::read(event.raw).is_cookieless();
            Decision::Drop(dropped(event, reason, context.engage, is_cookieless))
        }
        own => own,
    }
}

/// The other paths truncate values and replace an unreadable time by the time of receipt.
/// This protocol can report the fault to the sender instead.
fn not_mended(event: &RawEvent<'_>, warnings: &[Warning]) -> Option<DropReason> {
    if present(event.timestamp).is_none() {
        return Some(DropReason::InvalidEventTimestamp);
    }
    warnings.iter().find_map(|warning| match warning {
        Warning::EventNameCut => Some(DropReason::EventNameTooLong),
        Warning::DistinctIdCut => Some(DropReason::DistinctIdTooLarge),
        Warning::InvalidTimestamp => Some(DropReason::InvalidEventTimestamp),
        _ => None,
    })
}

/// The fields of an event next to its properties.
#[derive(Default)]
struct OuterFields {
    /// The range of the properties in the text of the event.
    properties: Option<Range<usize>>,
    /// Members to add to the properties, with their JSON.
    members: Vec<(&'static str, String)>,
    /// Whether a field has the wrong type.
    is_odd: bool,
}

impl OuterFields {
    fn read(raw: &str) -> Self {
        let mut beside = Self::default();
        // The text was parsed before, so the walk cannot fail.
        let _ = Cursor::new(raw, Limits::NONE).object(|key, cursor| {
            let range = cursor.range()?;
            let value = raw.get(range.clone()).unwrap_or("null");
            match key.text().as_ref() {
                "properties" => beside.properties = Some(range),
                "session_id" => beside.add("$session_id", value, text_option),
                "window_id" => beside.add("$window_id", value, text_option),
                "options" => beside.read_options(value),
                _ => {}
            }
            Ok(())
        });
        beside
    }

    fn read_options(&mut self, options: &str) {
        let walked = Cursor::new(options, Limits::NONE).object(|key, cursor| {
            let value = cursor.value()?;
            match key.text().as_ref() {
                "process_person_profile" => self.add("$process_person_profile", value, switch),
                "disable_skew_correction" => self.add("$ignore_sent_at", value, switch),
                "cookieless_mode" => self.add(COOKIELESS_MODE, value, switch),
                "product_tour_id" => self.add("$product_tour_id", value, text_option),
                _ => {}
            }
            Ok(())
        });
        self.is_odd |= walked.is_err() && options != "null" && !json::is_empty_list(options);
    }

    /// Adds a member unless its value is `null`; `read` converts it to JSON.
    fn add(&mut self, name: &'static str, value: &str, read: fn(&str) -> Option<Cow<'_, str>>) {
        if value == "null" {
            return;
        }
        match read(value) {
            Some(json) => self.members.push((name, json.into_owned())),
            None => self.is_odd = true,
        }
    }

    /// Whether an option says that a visitor without cookies sent the event.
    fn is_cookieless(&self) -> bool {
        self.members.iter().any(|(name, json)| *name == COOKIELESS_MODE && json == "true")
    }

    /// The event with all fields in its properties. They replace properties of the same
    /// name.
    fn put_into_properties<'a>(
        &self,
        event: &RawEvent<'a>,
        library: Option<Library<'_>>,
    ) -> Cow<'a, str> {
        if self.members.is_empty() && library.is_none() {
            return Cow::Borrowed(event.raw);
        }
        let mut added = String::new();
        let mut object = ObjectWriter::begin(&mut added);
        for (name, json) in &self.members {
            object.json(name, json);
        }
        if let Some(library) = library {
            object.text("$lib", library.name);
            object.text("$lib_version", library.version);
        }
        object.end();
        let Some(range) = &self.properties else {
            return Cow::Owned(json::with_member(event.raw, "properties", &added));
        };
        let sent = event.raw.get(range.clone()).unwrap_or("null");
        let is_nothing = sent == "null" || json::is_empty_list(sent);
        let united = if is_nothing { Some(added) } else { properties::overlay(sent, &added) };
        match united {
            Some(united) => {
                let mut text = event.raw.to_owned();
                text.replace_range(range.clone(), &united);
                Cow::Owned(text)
            }
            // Not an object: the decision handles that.
            None => Cow::Borrowed(event.raw),
        }
    }
}

/// A text, or a number as text.
fn text_option(value: &str) -> Option<Cow<'_, str>> {
    match value.as_bytes().first()? {
        b'"' => Some(Cow::Borrowed(value)),
        b'-' | b'0'..=b'9' => Some(Cow::Owned(format!("\"{value}\""))),
        _ => None,
    }
}

/// True or false, also in the forms of senders that only have texts or numbers.
fn switch(value: &str) -> Option<Cow<'_, str>> {
    let word =
        json::string_lossy(value).unwrap_or(Cow::Borrowed(value)).trim().to_ascii_lowercase();
    match word.as_str() {
        "true" | "1" => Some(Cow::Borrowed("true")),
        "false" | "0" => Some(Cow::Borrowed("false")),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
