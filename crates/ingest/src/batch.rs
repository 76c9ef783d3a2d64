//! What the log carries: the events of one request for one project, after
//! [`decide`](weir_capture::decide).
//!
//! The first byte of the encoded form says how to read the rest, so that a
//! later program can read what an earlier one wrote.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use weir_model::outcomes::DropReason;

use weir_capture::{AcceptedEvent, DroppedEvent};

/// Form 1: postcard.
const PLAIN: u8 = 1;
/// Form 2: postcard, compressed with zstd.
const COMPRESSED: u8 = 2;
/// Smaller batches are not worth compressing.
const COMPRESS_FROM: usize = 4 << 10;
/// Fast enough to cost less than the bytes it saves.
const COMPRESSION: i32 = 1;
/// Bytes of a decompressed batch: a full request with all that is added to it.
const LARGEST: usize = 128 << 20;

/// The events of one request for one project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// When the request reached us, microseconds since 1970 UTC.
    pub received_at: i64,
    /// Whether it came with `historical_migration`.
    pub historical: bool,
    /// Events to be stored, in order.
    pub accepted: Vec<AcceptedEvent>,
    /// Events that are not stored, with the reason: they are counted and shown.
    pub dropped: Vec<DroppedEvent>,
    /// How many more were dropped than are listed, by reason.
    pub dropped_further: Vec<(DropReason, u64)>,
}

/// A batch as the log takes it: encoded once, by whoever made it.
#[derive(Debug, Clone)]
pub struct Sealed {
    pub(crate) batch: Arc<Batch>,
    pub(crate) payload: Bytes,
    pub(crate) payload_crc: u32,
    /// How many arrival numbers it takes.
    pub(crate) count: u32,
}

impl Sealed {
    /// Whether nothing of the request is to be kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }
}

/// Dropped events of one request that are kept with their content. A hostile
/// request can hold millions: the rest is only counted.
const LISTED: usize = 1_000;

/// The bytes are no batch of a known form.
#[derive(Debug, thiserror::Error)]
#[error("unreadable record: {0}")]
pub struct BatchError(String);

impl Batch {
    /// A batch without events.
    #[must_use]
    pub fn new(received_at: i64, historical: bool) -> Self {
        Self {
            received_at,
            historical,
            accepted: Vec::new(),
            dropped: Vec::new(),
            dropped_further: Vec::new(),
        }
    }

    /// Whether nothing of the request is to be kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.accepted.is_empty() && self.dropped.is_empty()
    }

    /// Adds an event that is not stored.
    pub fn push_dropped(&mut self, event: DroppedEvent) {
        if self.dropped.len() < LISTED {
            self.dropped.push(event);
            return;
        }
        match self.dropped_further.iter_mut().find(|(reason, _)| *reason == event.reason) {
            Some((_, count)) => *count += 1,
            None => self.dropped_further.push((event.reason, 1)),
        }
    }

    /// Bytes that the batch takes in memory, roughly.
    #[must_use]
    pub fn memory(&self) -> usize {
        let accepted = self.accepted.iter().map(|event| {
            size_of::<AcceptedEvent>()
                + event.event.len()
                + event.distinct_id.len()
                + event.properties.len()
                + event.elements_chain.len()
        });
        let dropped = self.dropped.iter().map(|event| {
            let texts = [&event.event, &event.distinct_id];
            size_of::<DroppedEvent>()
                + event.sample.len()
                + texts.into_iter().flatten().map(String::len).sum::<usize>()
        });
        size_of::<Self>() + accepted.sum::<usize>() + dropped.sum::<usize>()
    }

    /// Encodes the batch: a large one takes a while.
    #[must_use]
    pub fn seal(self) -> Sealed {
        let (payload, count) = self.encode();
        Sealed {
            payload_crc: crc32c::crc32c(&payload),
            payload: payload.into(),
            count,
            batch: Arc::new(self),
        }
    }

    /// The encoded form, and how many arrival numbers the batch takes.
    fn encode(&self) -> (Vec<u8>, u32) {
        let count = u32::try_from(self.accepted.len()).unwrap_or(u32::MAX);
        // Encoding plain data into memory cannot fail.
        let plain = postcard::to_extend(self, vec![PLAIN]).unwrap_or_default();
        if plain.len() >= COMPRESS_FROM
            && let Some(body) = plain.get(1..)
            && let Ok(small) = zstd::bulk::compress(body, COMPRESSION)
            && small.len() < body.len()
        {
            let mut bytes = Vec::with_capacity(small.len() + 1);
            bytes.push(COMPRESSED);
            bytes.extend_from_slice(&small);
            return (bytes, count);
        }
        (plain, count)
    }

    /// Reads an encoded batch.
    ///
    /// # Errors
    /// When the bytes are of no known form.
    pub fn decode(bytes: &[u8]) -> Result<Self, BatchError> {
        let wrong = |error: &dyn std::fmt::Display| BatchError(error.to_string());
        match bytes.split_first() {
            Some((&PLAIN, body)) => postcard::from_bytes(body).map_err(|e| wrong(&e)),
            Some((&COMPRESSED, body)) => {
                let plain = zstd::bulk::decompress(body, LARGEST).map_err(|e| wrong(&e))?;
                postcard::from_bytes(&plain).map_err(|e| wrong(&e))
            }
            Some((form, _)) => Err(BatchError(format!("form {form} is not known"))),
            None => Err(BatchError("it is empty".to_owned())),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use uuid::Uuid;
    use weir_model::outcomes::Warning;

    use super::*;

    /// A batch of `count` events about one distinct id.
    pub(crate) fn batch(distinct_id: &str, count: u32) -> Batch {
        let accepted = (0..count)
            .map(|n| AcceptedEvent {
                uuid: Uuid::new_v4(),
                event: format!("event {n}"),
                distinct_id: distinct_id.to_owned(),
                timestamp: 1_780_000_000_000_000 + i64::from(n),
                properties: format!(r#"{{"n":{n},"text":"{}"}}"#, "x".repeat(100)),
                elements_chain: String::new(),
                warnings: Vec::new(),
            })
            .collect();
        Batch { accepted, ..Batch::new(1_780_000_000_000_000, false) }
    }

    #[test]
    fn a_flood_of_dropped_events_is_counted_not_kept() {
        let mut flood = Batch::new(0, false);
        for _ in 0..3 * LISTED {
            flood.push_dropped(DroppedEvent {
                reason: DropReason::MissingEventName,
                event: None,
                distinct_id: None,
                uuid: None,
                sample: "{}".to_owned(),
            });
        }
        assert_eq!(flood.dropped.len(), LISTED);
        assert_eq!(flood.dropped_further, [(DropReason::MissingEventName, 2 * LISTED as u64)]);
    }

    #[test]
    fn both_forms_read_back() {
        for count in [1, 500] {
            let mut batch = batch("user-1", count);
            batch.accepted[0].warnings.push(Warning::ALL[0]);
            batch.dropped.push(DroppedEvent {
                reason: DropReason::ALL[0],
                event: None,
                distinct_id: Some("a".to_owned()),
                uuid: None,
                sample: "{}".to_owned(),
            });
            let (bytes, arrivals) = batch.encode();
            assert_eq!(arrivals, count);
            assert_eq!(bytes[0], if count == 1 { PLAIN } else { COMPRESSED });
            assert_eq!(Batch::decode(&bytes).unwrap(), batch);
            assert!(Batch::decode(&bytes[..bytes.len() - 1]).is_err());
        }
        assert!(Batch::decode(&[]).is_err());
        assert!(Batch::decode(&[9, 1, 2]).is_err());
    }
}
