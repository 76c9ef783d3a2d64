//! The uuid of an event, which identifies it within a project (ING-6, ING-32).
//!
//! What belongs here: parsing the uuid of the sender, and creating one if there is none.
//! What does not: deduplication (`weir-ingest`).

use uuid::{NoContext, Timestamp, Uuid};
use weir_json::{self as json, Limits};
use weir_model::outcomes::DropReason;

use super::shape::{RawEvent, present};

/// The namespace of uuids that are computed from the content of an event. It must never
/// change: a repeated request finds its events again by these uuids.
const CONTENT_NAMESPACE: Uuid = Uuid::from_u128(0x5e7c_9d0a_3f41_4b6e_9a27_c1d8_84f0_62b3);

/// The uuid of the sender, in any text form of the RFC; `None` if missing or empty.
pub(super) fn sent(event: &RawEvent<'_>) -> Result<Option<Uuid>, DropReason> {
    let Some(value) = present(event.uuid) else {
        return Ok(None);
    };
    let text = json::string_lossy(value).ok_or(DropReason::InvalidUuid)?;
    if text.is_empty() {
        return Ok(None);
    }
    Uuid::parse_str(&text).map(Some).map_err(|_| DropReason::InvalidUuid)
}

/// The content that identifies an event without uuid but with a time. All values are as
/// sent, not as computed: clock correction and address differ between the attempts of one
/// request.
pub(super) struct Content<'a> {
    /// The project of the event.
    pub(super) project: i64,
    /// Event name.
    pub(super) name: &'a str,
    /// Distinct id of the user.
    pub(super) distinct_id: &'a str,
    /// `timestamp` as JSON text.
    pub(super) sent_time: &'a str,
    /// Properties as JSON text, in any form.
    pub(super) properties: &'a str,
}

impl Content<'_> {
    /// The same uuid for the same content.
    pub(super) fn uuid(&self) -> Uuid {
        let Self { project, name, distinct_id, sent_time, .. } = self;
        // Fails only for text beyond the limits, which was dropped before.
        let properties = json::canonical(self.properties, Limits::EVENT);
        let properties = properties.as_deref().unwrap_or(self.properties);
        // No part can contain a NUL, so the separator is unambiguous.
        let content = format!("{project}\0{name}\0{distinct_id}\0{sent_time}\0{properties}");
        Uuid::new_v5(&CONTENT_NAMESPACE, content.as_bytes())
    }
}

/// A new uuid for an event without a time: two equal events may be different ones. Its
/// time part is the event time in microseconds, or 1970 if that is earlier.
pub(super) fn new(timestamp: i64) -> Uuid {
    let micros = u64::try_from(timestamp).unwrap_or(0);
    let nanos = u32::try_from(micros % 1_000_000 * 1000).unwrap_or(0);
    Uuid::new_v7(Timestamp::from_unix(NoContext, micros / 1_000_000, nanos))
}

#[cfg(test)]
mod tests;
