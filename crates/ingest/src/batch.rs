//! What the log carries: the events of one request for one project, after
//! [`decide`](weir_capture::decide).
//!
//! The first byte of the encoded form names the encoding, so that a later program can
//! read records of an earlier one.
//!
//! What belongs here: the type, its encoding and its size. What does not: how records are
//! written (`log`), and the rules that decide on an event (`weir-capture`).

use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use weir_model::outcomes::DropReason;

use weir_capture::{AcceptedEvent, DroppedEvent};

use crate::logged::{EncodedForm, LoggedBatch};

/// Encoding 1: postcard.
const PLAIN: u8 = 1;
/// Encoding 2: postcard, compressed with zstd.
const COMPRESSED: u8 = 2;
/// Prefix: the network of the sender in 8 bytes. One of the other encodings follows.
const WITH_NETWORK: u8 = 3;
/// Smaller batches are not worth compressing.
const COMPRESS_FROM: usize = 4 << 10;
/// The zstd level. It costs less time than the saved bytes would.
const COMPRESSION: i32 = 1;
/// Upper bound in bytes of a decompressed batch: a full request with everything that is
/// added to it.
const MAX_DECODED: usize = 128 << 20;

/// The events of one request for one project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// When the request was received, in microseconds since 1970 UTC.
    pub received_at: i64,
    /// Whether the request had `historical_migration`.
    pub historical: bool,
    /// Events to store, in order.
    pub accepted: Vec<AcceptedEvent>,
    /// Events that are not stored, with the reason. They are counted and shown.
    pub dropped: Vec<DroppedEvent>,
    /// How many more events were dropped than `dropped` lists, by reason.
    pub further_drops: Vec<(DropReason, u64)>,
    /// The network that the request came from, see [`network`]. All requests of a network
    /// share the allowance for expensive events. `None` if the events did not come with a
    /// request.
    #[serde(skip)]
    pub network: Option<u64>,
}

/// A number for the network of an address: the first 24 bits of IPv4, 48 of IPv6. The
/// network cannot be computed from the number. The number is a different one after a
/// restart.
pub fn network(address: IpAddr) -> u64 {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEY.hash_one(match address.to_canonical() {
        IpAddr::V4(address) => (4, u64::from(address.to_bits() >> 8)),
        IpAddr::V6(address) => (6, (address.to_bits() >> 80) as u64),
    })
}

/// An encoded batch, ready for the log. The caller encodes it once.
#[derive(Debug, Clone)]
pub struct EncodedBatch {
    /// The decoded batch for its first readers. With `None`, the first reader decodes it.
    pub(crate) batch: Option<Arc<LoggedBatch>>,
    pub(crate) payload: Bytes,
    pub(crate) payload_crc: u32,
    /// How many arrival numbers the batch takes.
    pub(crate) count: u32,
    pub(crate) historical: bool,
    is_empty: bool,
    /// Bytes of memory that the decoded batch takes.
    pub(crate) decoded: usize,
}

impl EncodedBatch {
    /// Whether nothing of the request has to be kept.
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// The batch without its decoded form. The parts of a large request wait for each
    /// other, and only their encoded form stays in memory.
    #[must_use]
    pub fn without_decoded(self) -> Self {
        Self { batch: None, ..self }
    }

    /// Bytes of memory that it takes, roughly.
    pub fn memory(&self) -> usize {
        self.payload.len() + self.batch.as_ref().map_or(0, |_| self.decoded)
    }
}

/// Dropped events of one batch that are kept with their content; further ones are only
/// counted. Capture divides a large request into batches with fewer dropped events than
/// this, so the limit applies only to other callers.
const MAX_LISTED_DROPS: usize = 10_000;
/// The first dropped events of a batch keep their whole sample.
const FULL_SAMPLES: usize = 1_000;
/// Later ones keep this many bytes of their sample.
const SHORT_SAMPLE_BYTES: usize = 256;

/// The bytes are not a batch in a known encoding.
#[derive(Debug, Clone, thiserror::Error)]
#[error("unreadable record: {0}")]
pub struct BatchError(String);

impl BatchError {
    /// The payload differs from what was written.
    pub(crate) fn damaged() -> Self {
        Self("its payload is damaged".to_owned())
    }
}

impl Batch {
    /// A batch without events.
    pub fn new(received_at: i64, historical: bool) -> Self {
        Self {
            received_at,
            historical,
            accepted: Vec::new(),
            dropped: Vec::new(),
            further_drops: Vec::new(),
            network: None,
        }
    }

    /// Whether nothing of the request has to be kept.
    pub fn is_empty(&self) -> bool {
        self.accepted.is_empty() && self.dropped.is_empty()
    }

    /// Adds an event that is not stored.
    pub fn push_dropped(&mut self, mut event: DroppedEvent) {
        if self.dropped.len() < MAX_LISTED_DROPS {
            if self.dropped.len() >= FULL_SAMPLES {
                event.sample.truncate(event.sample.floor_char_boundary(SHORT_SAMPLE_BYTES));
                event.sample.shrink_to_fit();
            }
            self.dropped.push(event);
            return;
        }
        match self.further_drops.iter_mut().find(|(reason, _)| *reason == event.reason) {
            Some((_, count)) => *count += 1,
            None => self.further_drops.push((event.reason, 1)),
        }
    }

    /// Bytes of memory that the batch takes, roughly.
    pub fn memory(&self) -> usize {
        let accepted = self.accepted.iter().map(size_of_accepted);
        let dropped = self.dropped.iter().map(size_of_dropped);
        size_of::<Self>() + accepted.sum::<usize>() + dropped.sum::<usize>()
    }

    /// Encodes the batch. Encoding a large batch takes noticeable time.
    pub fn into_encoded(self) -> EncodedBatch {
        let (payload, count) = self.encode(self.memory());
        let batch = LoggedBatch::of(&self);
        EncodedBatch {
            payload_crc: crc32c::crc32c(&payload),
            payload: payload.into(),
            count,
            historical: self.historical,
            is_empty: self.is_empty(),
            decoded: batch.memory(),
            batch: Some(Arc::new(batch)),
        }
    }

    /// The encoded form, and how many arrival numbers the batch takes. `decoded` is the
    /// number of bytes of the decoded batch; a compressed batch is smaller.
    fn encode(&self, decoded: usize) -> (Vec<u8>, u32) {
        let count = u32::try_from(self.accepted.len()).unwrap_or(u32::MAX);
        let mut head = Vec::with_capacity(size_of::<u64>() + 1);
        if let Some(network) = self.network {
            head.push(WITH_NETWORK);
            head.extend_from_slice(&network.to_le_bytes());
        }
        let mut plain = Vec::with_capacity(decoded + head.len());
        plain.extend_from_slice(&head);
        plain.push(PLAIN);
        // Encoding plain data into memory cannot fail.
        let plain = postcard::to_extend(self, plain).unwrap_or_default();
        if plain.len() >= COMPRESS_FROM
            && let Some(body) = plain.get(head.len() + 1..)
            && let Ok(small) = zstd::bulk::compress(body, COMPRESSION)
            && small.len() < body.len()
        {
            let mut bytes = Vec::with_capacity(head.len() + small.len() + 1);
            bytes.extend_from_slice(&head);
            bytes.push(COMPRESSED);
            bytes.extend_from_slice(&small);
            return (bytes, count);
        }
        (plain, count)
    }

    /// Reads an encoded batch.
    ///
    /// # Errors
    /// When the bytes are in no known encoding.
    pub fn decode(bytes: &[u8]) -> Result<Self, BatchError> {
        let (network, bytes) = split_network(bytes)?;
        let batch: Self = with_plain(bytes, |plain| postcard::from_bytes(plain))?;
        Ok(Self { network, ..batch })
    }
}

impl LoggedBatch {
    /// Reads an encoded batch.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, BatchError> {
        let (network, bytes) = split_network(bytes)?;
        let mut batch = with_plain(bytes, |plain| {
            postcard::from_bytes::<EncodedForm<'_>>(plain).map(Self::decoded)
        })?;
        batch.network = network;
        Ok(batch)
    }

    /// Bytes of memory that the batch of this encoded form takes, roughly. It is not
    /// decoded for that.
    pub(crate) fn memory_of_encoded(bytes: &[u8], events: u32) -> usize {
        let body = split_network(bytes).map_or(bytes, |(_, body)| body);
        let texts = match body.split_first() {
            Some((&COMPRESSED, body)) => plain_size(body).min(MAX_DECODED),
            _ => body.len(),
        };
        Self::memory_of(events as usize, texts)
    }
}

/// The network, and what follows it.
fn split_network(bytes: &[u8]) -> Result<(Option<u64>, &[u8]), BatchError> {
    match bytes.split_first() {
        Some((&WITH_NETWORK, rest)) => {
            let (network, rest) = rest
                .split_first_chunk()
                .ok_or_else(|| BatchError("its network is cut off".to_owned()))?;
            Ok((Some(u64::from_le_bytes(*network)), rest))
        }
        _ => Ok((None, bytes)),
    }
}

/// Reads the plain form with `read`.
fn with_plain<T>(
    bytes: &[u8],
    read: impl FnOnce(&[u8]) -> postcard::Result<T>,
) -> Result<T, BatchError> {
    let wrong = |error: &dyn std::fmt::Display| BatchError(error.to_string());
    match bytes.split_first() {
        Some((&PLAIN, body)) => read(body).map_err(|e| wrong(&e)),
        Some((&COMPRESSED, body)) => {
            let size = plain_size(body).min(MAX_DECODED);
            let plain = zstd::bulk::decompress(body, size).map_err(|e| wrong(&e))?;
            read(&plain).map_err(|e| wrong(&e))
        }
        Some((encoding, _)) => Err(BatchError(format!("encoding {encoding} is not known"))),
        None => Err(BatchError("it is empty".to_owned())),
    }
}

/// Bytes of a compressed form before compression, as it says itself.
fn plain_size(body: &[u8]) -> usize {
    let size = zstd::zstd_safe::get_frame_content_size(body).ok().flatten();
    size.and_then(|size| usize::try_from(size).ok()).unwrap_or(MAX_DECODED)
}

/// Bytes of memory that an event takes, roughly.
pub fn size_of_accepted(event: &AcceptedEvent) -> usize {
    size_of::<AcceptedEvent>()
        + event.event.len()
        + event.distinct_id.len()
        + event.properties.len()
        + event.elements_chain.len()
}

/// Bytes of memory that a dropped event takes, roughly.
pub(crate) fn size_of_dropped(event: &DroppedEvent) -> usize {
    let texts = [&event.event, &event.distinct_id];
    size_of::<DroppedEvent>()
        + event.sample.len()
        + texts.into_iter().flatten().map(String::len).sum::<usize>()
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
        for _ in 0..3 * MAX_LISTED_DROPS {
            flood.push_dropped(DroppedEvent {
                reason: DropReason::MissingEventName,
                event: None,
                distinct_id: None,
                uuid: None,
                sample: "{}".to_owned(),
            });
        }
        assert_eq!(flood.dropped.len(), MAX_LISTED_DROPS);
        assert_eq!(
            flood.further_drops,
            [(DropReason::MissingEventName, 2 * MAX_LISTED_DROPS as u64)]
        );
    }

    #[test]
    fn later_dropped_events_of_a_batch_keep_a_short_sample() {
        let mut flood = Batch::new(0, false);
        for _ in 0..FULL_SAMPLES + 2 {
            flood.push_dropped(DroppedEvent {
                reason: DropReason::MissingEventName,
                event: None,
                distinct_id: None,
                uuid: None,
                // Two bytes each, so that the limit is within a character.
                sample: format!("a{}", "é".repeat(2_000)),
            });
        }
        let lengths: Vec<usize> = flood.dropped.iter().map(|event| event.sample.len()).collect();
        assert_eq!(lengths[..FULL_SAMPLES], [4_001; FULL_SAMPLES]);
        assert_eq!(lengths[FULL_SAMPLES..], [SHORT_SAMPLE_BYTES - 1; 2]);
    }

    #[test]
    fn the_network_of_the_sender_goes_along() {
        for count in [1, 500] {
            let batch = Batch { network: Some(u64::MAX - 7), ..batch("user-1", count) };
            let (bytes, _) = batch.encode(batch.memory());
            assert_eq!(Batch::decode(&bytes).unwrap(), batch);
            for end in 0..9 {
                assert!(Batch::decode(&bytes[..end]).is_err());
            }
        }
        let of = |address: &str| network(address.parse().unwrap());
        assert_eq!(of("192.0.2.1"), of("192.0.2.254"));
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.9"));
        assert_ne!(of("192.0.2.1"), of("192.0.3.1"));
        assert_eq!(of("2001:db8:1::1"), of("2001:db8:1:ffff::2"));
        assert_ne!(of("2001:db8:1::1"), of("2001:db8:2::1"));
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
            let (bytes, arrivals) = batch.encode(batch.memory());
            assert_eq!(arrivals, count);
            assert_eq!(bytes[0], if count == 1 { PLAIN } else { COMPRESSED });
            assert_eq!(Batch::decode(&bytes).unwrap(), batch);
            let logged = LoggedBatch::decode(&bytes).unwrap();
            assert_eq!(logged, LoggedBatch::of(&batch));
            assert!(LoggedBatch::memory_of_encoded(&bytes, count) >= logged.memory() / 2);
            let cut = &bytes[..bytes.len() - 1];
            assert!(Batch::decode(cut).is_err() && LoggedBatch::decode(cut).is_err());
        }
        for unknown in [&[] as &[u8], &[9, 1, 2]] {
            assert!(Batch::decode(unknown).is_err() && LoggedBatch::decode(unknown).is_err());
        }
    }
}
