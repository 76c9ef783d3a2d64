//! The uuid of an event, which is its identity within a project (ING-6, ING-32).
//!
//! What belongs here: reading the sender's uuid, and making one where there is
//! none.
//! What does not: whether the uuid is stored already.

use uuid::{NoContext, Timestamp, Uuid};
use weir_model::outcomes::DropReason;

use super::json;
use super::shape::{RawEvent, present};

/// Of uuids that follow from the content of an event. Must never change: a
/// repeated request finds its events again by it.
const CONTENT_NAMESPACE: Uuid = Uuid::from_u128(0x5e7c_9d0a_3f41_4b6e_9a27_c1d8_84f0_62b3);

/// The uuid that the sender gave, in any text form of the RFC; `None` when absent
/// or empty.
pub(super) fn sent(event: &RawEvent<'_>) -> Result<Option<Uuid>, DropReason> {
    let Some(value) = present(event.uuid) else {
        return Ok(None);
    };
    let text = json::string(value).ok_or(DropReason::InvalidUuid)?;
    if text.is_empty() {
        return Ok(None);
    }
    Uuid::parse_str(&text).map(Some).map_err(|_| DropReason::InvalidUuid)
}

/// What tells two events without uuid apart, if each carries a time of its own.
/// All as sent, not as computed: clock correction and address differ between the
/// tries of one request.
pub(super) struct Content<'a> {
    /// The project that the event goes to.
    pub(super) project: i64,
    /// Event name.
    pub(super) name: &'a str,
    /// Whom it is about.
    pub(super) distinct_id: &'a str,
    /// `timestamp` as JSON text.
    pub(super) sent_time: &'a str,
    /// Properties as JSON text, in any spelling.
    pub(super) properties: &'a str,
}

impl Content<'_> {
    /// The same uuid for the same content.
    pub(super) fn uuid(&self) -> Uuid {
        let Self { project, name, distinct_id, sent_time, .. } = self;
        // Fails on text beyond the limits only, which has been dropped before.
        let properties = json::canonical(self.properties);
        let properties = properties.as_deref().unwrap_or(self.properties);
        // No part can hold a NUL, so the parts cannot run into each other.
        let content = format!("{project}\0{name}\0{distinct_id}\0{sent_time}\0{properties}");
        Uuid::new_v5(&CONTENT_NAMESPACE, content.as_bytes())
    }
}

/// A new uuid, for an event without a time of its own: two equal ones may well
/// be two. Its time part is the event time in microseconds, or 1970 when before.
pub(super) fn new(timestamp: i64) -> Uuid {
    let micros = u64::try_from(timestamp).unwrap_or(0);
    let nanos = u32::try_from(micros % 1_000_000 * 1000).unwrap_or(0);
    Uuid::new_v7(Timestamp::from_unix(NoContext, micros / 1_000_000, nanos))
}

#[cfg(test)]
mod tests;
