//! The encoding of a block and its summary. No function here uses the database.

use std::borrow::Cow;
use std::io::Read as _;

use serde::{Deserialize, Serialize};
use surrealdb::types::{Bytes, SurrealValue};
use uuid::Uuid;
use weir_model::ProjectId;

use super::fingerprint;
use crate::Error;

/// A block is full at this many events. It has at most half as many more
/// ([`BlockBuilder::ends_within`]).
const FULL_EVENTS: u32 = 1_000;
/// A block is full at this many bytes before compression. It has at most as many more,
/// and one event.
const FULL_BYTES: usize = 1 << 20;
/// Distinct event names that a summary lists. A block with more lists none, and readers
/// always open it.
const NAMES: usize = 64;
/// Seconds. The summary of a block with a longer span lists the seconds in which it has
/// events: the spans of the blocks of an unsorted import all overlap.
pub(super) const WIDE: i64 = 3_600;
/// The fastest level. Events of one kind become eight times smaller than their text.
const COMPRESSION: i32 = 1;
/// Microseconds in a second.
pub(super) const SECOND: i64 = 1_000_000;
/// The largest size of a block after decompression: the largest single event and a nearly
/// full block, with a margin.
const LARGEST: usize = 64 << 20;

/// One event as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredEvent {
    /// Arrival number within the project.
    pub arrival: u64,
    /// Unique within the project.
    pub uuid: Uuid,
    /// Name of the event.
    pub event: String,
    /// Distinct id of the event.
    pub distinct_id: String,
    /// Event time, microseconds since 1970.
    pub timestamp: i64,
    /// When it was accepted, microseconds since 1970.
    pub received_at: i64,
    /// Properties as JSON object text.
    pub properties: String,
    /// Compact element chain, or empty.
    pub elements_chain: String,
    /// Whether it was sent with `historical_migration`.
    pub historical: bool,
    /// Codes of the warnings about what was altered.
    pub warnings: Vec<String>,
}

/// An event to be stored: the fields of [`StoredEvent`] in its order, so that it has the
/// same encoded form. Its texts are elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewEvent<'a> {
    /// Arrival number within the project.
    pub arrival: u64,
    /// Unique within the project.
    pub uuid: Uuid,
    /// Name of the event.
    pub event: &'a str,
    /// Distinct id of the event.
    pub distinct_id: &'a str,
    /// Event time, microseconds since 1970.
    pub timestamp: i64,
    /// When it was accepted, microseconds since 1970.
    pub received_at: i64,
    /// Properties as JSON object text.
    pub properties: &'a str,
    /// Compact element chain, or empty.
    pub elements_chain: &'a str,
    /// Whether it was sent with `historical_migration`.
    pub historical: bool,
    /// Codes of the warnings about what was altered.
    pub warnings: Cow<'a, [&'a str]>,
}

impl NewEvent<'_> {
    /// A copy with its own texts.
    pub fn to_stored(&self) -> StoredEvent {
        StoredEvent {
            arrival: self.arrival,
            uuid: self.uuid,
            event: self.event.to_owned(),
            distinct_id: self.distinct_id.to_owned(),
            timestamp: self.timestamp,
            received_at: self.received_at,
            properties: self.properties.to_owned(),
            elements_chain: self.elements_chain.to_owned(),
            historical: self.historical,
            warnings: self.warnings.iter().map(|code| (*code).to_owned()).collect(),
        }
    }
}

impl<'a> From<&'a StoredEvent> for NewEvent<'a> {
    fn from(event: &'a StoredEvent) -> Self {
        Self {
            arrival: event.arrival,
            uuid: event.uuid,
            event: &event.event,
            distinct_id: &event.distinct_id,
            timestamp: event.timestamp,
            received_at: event.received_at,
            properties: &event.properties,
            elements_chain: &event.elements_chain,
            historical: event.historical,
            warnings: event.warnings.iter().map(String::as_str).collect(),
        }
    }
}

/// First and last event time, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Earliest time, microseconds.
    pub from: i64,
    /// Latest time, microseconds.
    pub to: i64,
}

impl Span {
    /// The span extended to cover `time`.
    #[must_use]
    pub fn with(self, time: i64) -> Self {
        Self { from: self.from.min(time), to: self.to.max(time) }
    }
}

/// The data with which a reader can skip a block.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct Summary {
    /// Arrival number of the last event.
    pub last: i64,
    /// Number of events in the block.
    pub count: i64,
    /// Size of the events before compression, bytes.
    pub bytes: i64,
    /// Earliest event time, microseconds.
    pub from_time: i64,
    /// Latest event time, microseconds.
    pub to_time: i64,
    /// Distinct event names; empty when there are too many to list.
    pub names: Vec<String>,
    /// Fingerprints of distinct ids: sorted, four bytes each.
    pub ids: Bytes,
    /// For a block with a long span: the seconds, counted from the earliest event, in
    /// which it has events. Sorted, four bytes each.
    pub seconds: Option<Bytes>,
    /// Whether events of the block were erased after it was sealed: others then are at lower
    /// indexes than their uuids say. `None`: no.
    pub erased: Option<bool>,
}

impl Summary {
    /// The latest time before `high` at which the block may hold an event; `None`: there
    /// is none. It is never earlier than the last such event, and less than a second
    /// later than it when the summary lists seconds.
    pub fn latest_before(&self, high: i64) -> Option<i64> {
        if self.from_time >= high {
            return None;
        }
        let latest = self.to_time.min(high.saturating_sub(1));
        let Some(seconds) = &self.seconds else { return Some(latest) };
        let (seconds, _) = seconds.as_chunks::<4>();
        let wanted = latest.saturating_sub(self.from_time).div_euclid(SECOND);
        let after = seconds.partition_point(|at| i64::from(u32::from_be_bytes(*at)) <= wanted);
        let at = i64::from(u32::from_be_bytes(*seconds.get(after.checked_sub(1)?)?));
        Some(latest.min(self.from_time.saturating_add(at * SECOND + SECOND - 1)))
    }

    /// The earliest time from `low` on at which the block may hold an event; `None`:
    /// there is none. It is never later than the first such event, and less than a second
    /// earlier than it when the summary lists seconds.
    pub fn earliest_from(&self, low: i64) -> Option<i64> {
        if self.to_time < low {
            return None;
        }
        let earliest = self.from_time.max(low);
        let Some(seconds) = &self.seconds else { return Some(earliest) };
        let (seconds, _) = seconds.as_chunks::<4>();
        let wanted = earliest.saturating_sub(self.from_time).div_euclid(SECOND);
        let before = seconds.partition_point(|at| i64::from(u32::from_be_bytes(*at)) < wanted);
        let at = i64::from(u32::from_be_bytes(*seconds.get(before)?));
        Some(earliest.max(self.from_time.saturating_add(at * SECOND)))
    }

    /// The summary without names and distinct ids, which are not needed any more.
    pub(super) fn times_only(self) -> Self {
        Self { names: Vec::new(), ids: Bytes::default(), ..self }
    }

    /// Whether the block may hold events of this name.
    pub fn may_name(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|n| n == name)
    }

    /// Whether the block may hold events of this distinct id.
    pub fn may_be_about(&self, project: ProjectId, distinct_id: &str) -> bool {
        let wanted = fingerprint(project, distinct_id).to_be_bytes();
        let (ids, _) = self.ids.as_chunks::<4>();
        ids.binary_search(&wanted).is_ok()
    }
}

/// A block that is being filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockBuilder {
    project: ProjectId,
    /// Arrival number of the first event, which is part of the id of the block.
    pub first: u64,
    last: u64,
    count: u32,
    raw: Vec<u8>,
    span: Span,
    names: Vec<String>,
    ids: Vec<u32>,
    times: Vec<i64>,
}

impl BlockBuilder {
    /// A block that begins with `event`.
    ///
    /// # Errors
    /// When the event cannot be encoded.
    pub fn begin<'a>(project: ProjectId, event: impl Into<NewEvent<'a>>) -> Result<Self, Error> {
        let event = event.into();
        let mut block = Self {
            project,
            first: event.arrival,
            last: event.arrival,
            count: 0,
            raw: Vec::new(),
            span: Span { from: event.timestamp, to: event.timestamp },
            names: Vec::new(),
            ids: Vec::new(),
            times: Vec::new(),
        };
        block.push(event)?;
        Ok(block)
    }

    /// A decoded block, to be filled further.
    ///
    /// # Errors
    /// When the bytes are not a block.
    pub fn reopen(project: ProjectId, first: u64, data: &[u8]) -> Result<Self, Error> {
        let block = Self::remainder(project, first, &decode(data)?)?;
        block.ok_or_else(|| broken("an empty block".to_owned()))
    }

    /// Adds an event and returns its index within the block.
    ///
    /// # Errors
    /// When the event cannot be encoded.
    pub fn push<'a>(&mut self, event: impl Into<NewEvent<'a>>) -> Result<u32, Error> {
        let event = event.into();
        // The length comes first, so that events can be added without rewriting others.
        let at = self.raw.len();
        self.raw.extend_from_slice(&[0; 4]);
        self.raw = postcard::to_extend(&event, std::mem::take(&mut self.raw))
            .map_err(|e| broken(e.to_string()))?;
        let length = u32::try_from(self.raw.len() - at - 4).unwrap_or(u32::MAX);
        if let Some(block_ref) = self.raw.get_mut(at..at + 4) {
            block_ref.copy_from_slice(&length.to_le_bytes());
        }
        self.last = event.arrival;
        self.span = self.span.with(event.timestamp);
        if self.names.len() <= NAMES && !self.names.iter().any(|name| name == event.event) {
            self.names.push(event.event.to_owned());
        }
        self.ids.push(fingerprint(self.project, event.distinct_id));
        self.times.push(event.timestamp);
        self.count += 1;
        Ok(self.count - 1)
    }

    /// Whether the block takes no further events.
    pub fn is_full(&self) -> bool {
        self.count >= FULL_EVENTS || self.raw.len() >= FULL_BYTES
    }

    /// Whether a batch that adds `more` events begins with another block: this one is full,
    /// or at least half full and smaller than the batch. Adding events to a block writes
    /// all of it again.
    pub fn ends_before(&self, more: usize) -> bool {
        let is_half_full = self.count >= FULL_EVENTS / 2 || self.raw.len() >= FULL_BYTES / 2;
        self.is_full() || is_half_full && more >= self.count as usize
    }

    /// Whether a batch that has added to this block begins another one for `more` events.
    /// A few events at its end are added to a full block. In a block of their own they would
    /// be written again by the next batch.
    pub fn ends_within(&self, more: usize) -> bool {
        let is_few = more < self.count as usize / 2 && self.raw.len() < 2 * FULL_BYTES;
        self.is_full() && !is_few
    }

    /// Number of events in the block so far.
    pub fn count(&self) -> u64 {
        self.count.into()
    }

    /// Bytes of the events so far, before compression.
    pub fn bytes(&self) -> usize {
        self.raw.len()
    }

    /// The events from the byte `begin` on, before compression. An event must begin there.
    pub(super) fn encoded_from(&self, begin: usize) -> Option<&[u8]> {
        self.raw.get(begin..)
    }

    /// Earliest and latest event time.
    pub fn span(&self) -> Span {
        self.span
    }

    /// The compressed events and the summary.
    ///
    /// # Errors
    /// When the bytes cannot be compressed.
    pub fn finish(&self) -> Result<(Vec<u8>, Summary), Error> {
        let data =
            zstd::bulk::compress(&self.raw, COMPRESSION).map_err(|e| broken(e.to_string()))?;
        Ok((data, self.summary()))
    }

    /// A block of these events with the id `first`, also if its first event was erased.
    /// `None`: there are no events.
    pub(super) fn remainder(
        project: ProjectId,
        first: u64,
        kept: &[StoredEvent],
    ) -> Result<Option<Self>, Error> {
        let Some((head, rest)) = kept.split_first() else { return Ok(None) };
        let mut block = Self::begin(project, head)?;
        block.first = first;
        for event in rest {
            block.push(event)?;
        }
        Ok(Some(block))
    }

    pub(super) fn summary(&self) -> Summary {
        let mut ids = self.ids.clone();
        ids.sort_unstable();
        ids.dedup();
        let ids: Vec<u8> = ids.iter().flat_map(|id| id.to_be_bytes()).collect();
        let int = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        Summary {
            last: int(self.last),
            count: self.count.into(),
            bytes: int(self.raw.len() as u64),
            from_time: self.span.from,
            to_time: self.span.to,
            names: if self.names.len() > NAMES { Vec::new() } else { self.names.clone() },
            ids: Bytes::from(ids),
            seconds: self.seconds().map(Bytes::from),
            erased: None,
        }
    }

    fn seconds(&self) -> Option<Vec<u8>> {
        let Span { from, to } = self.span;
        if to.saturating_sub(from) <= WIDE * SECOND {
            return None;
        }
        let second = |time: &i64| u32::try_from(time.saturating_sub(from).div_euclid(SECOND)).ok();
        // `None` when a second does not fit into 32 bits: the block spans more than a
        // century.
        let mut seconds: Vec<u32> = self.times.iter().map(second).collect::<Option<_>>()?;
        seconds.sort_unstable();
        seconds.dedup();
        Some(seconds.iter().flat_map(|second| second.to_be_bytes()).collect())
    }
}

/// The events of a block, in order of arrival.
pub(super) fn decode(data: &[u8]) -> Result<Vec<StoredEvent>, Error> {
    // The data says how large it becomes. Otherwise there would have to be room for the
    // largest block.
    let size = zstd::zstd_safe::get_frame_content_size(data).ok().flatten();
    let size = size.and_then(|size| usize::try_from(size).ok()).unwrap_or(LARGEST).min(LARGEST);
    let raw = zstd::bulk::decompress(data, size).map_err(|e| broken(e.to_string()))?;
    decode_plain(&raw)
}

/// Events as they are in a block before compression.
pub(super) fn decode_plain(raw: &[u8]) -> Result<Vec<StoredEvent>, Error> {
    let mut rest = raw;
    let mut events = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let (body, after) =
            after.split_at_checked(length).ok_or_else(|| broken("a cut event".to_owned()))?;
        events.push(postcard::from_bytes(body).map_err(|e| broken(e.to_string()))?);
        rest = after;
    }
    Ok(events)
}

/// One event of a block, by its index. The events behind it are not decompressed.
pub(super) fn decode_one(data: &[u8], index: u32) -> Result<Option<StoredEvent>, Error> {
    let wrong = |error: std::io::Error| broken(error.to_string());
    let mut raw = zstd::stream::read::Decoder::with_buffer(data).map_err(wrong)?;
    let mut read = |bytes: usize, into: &mut Vec<u8>| {
        into.clear();
        raw.by_ref().take(bytes as u64).read_to_end(into).map_err(wrong)
    };
    let (mut length, mut body) = (Vec::new(), Vec::new());
    for _ in 0..=index {
        if read(4, &mut length)? == 0 {
            return Ok(None);
        }
        let length = <[u8; 4]>::try_from(length.as_slice()).map(u32::from_le_bytes);
        let length = length.map_or(LARGEST, |length| length as usize);
        if length >= LARGEST || read(length, &mut body)? < length {
            return Err(broken("a cut event".to_owned()));
        }
    }
    postcard::from_bytes(&body).map(Some).map_err(|e| broken(e.to_string()))
}

fn broken(detail: String) -> Error {
    Error::Shape { statement: "event block", detail }
}

#[cfg(test)]
pub(super) mod tests {

    use super::*;

    pub(in crate::events) fn event(arrival: u64, distinct_id: &str) -> StoredEvent {
        StoredEvent {
            arrival,
            uuid: Uuid::from_u128(u128::from(arrival)),
            event: format!("event {}", arrival % 3),
            distinct_id: distinct_id.to_owned(),
            timestamp: i64::try_from(arrival).unwrap() * 1_000_000,
            received_at: 7,
            properties: format!(r#"{{"n":{arrival}}}"#),
            elements_chain: String::new(),
            historical: false,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn blocks_read_back_and_can_be_filled_further() {
        let project = ProjectId(1);
        let events: Vec<_> = (1..=5).map(|n| event(n, &format!("user-{n}"))).collect();
        let mut block = BlockBuilder::begin(project, &events[0]).unwrap();
        block.push(&events[1]).unwrap();
        let (data, _) = block.finish().unwrap();
        let mut again = BlockBuilder::reopen(project, 1, &data).unwrap();
        assert_eq!(again, block);
        for (index, event) in events.iter().enumerate().skip(2) {
            assert_eq!(again.push(event).unwrap() as usize, index);
        }
        let (data, summary) = again.finish().unwrap();
        assert_eq!(decode(&data).unwrap(), events);
        for (index, event) in (0..).zip(&events) {
            assert_eq!(decode_one(&data, index).unwrap().as_ref(), Some(event));
        }
        assert_eq!(decode_one(&data, 5).unwrap(), None);
        assert_eq!((summary.last, summary.count), (5, 5));
        assert_eq!((summary.from_time, summary.to_time), (1_000_000, 5_000_000));
        assert!(summary.may_name("event 1") && !summary.may_name("event 9"));
        assert!(summary.may_be_about(project, "user-3"));
        assert!(!summary.may_be_about(project, "user-9"));
    }

    #[test]
    fn an_event_with_texts_elsewhere_has_the_same_form() {
        let warnings = vec!["clamped_future".to_owned(), "distinct_id_cut".to_owned()];
        let chain = "a:nth-child=\"1\"".to_owned();
        let stored = StoredEvent { warnings, elements_chain: chain, ..event(3, "ädä") };
        let new = NewEvent::from(&stored);
        assert_eq!(new.to_stored(), stored);
        let form = postcard::to_allocvec(&stored).unwrap();
        assert_eq!(postcard::to_allocvec(&new).unwrap(), form);
        let mut block = BlockBuilder::begin(ProjectId(1), &event(1, "a")).unwrap();
        let begin = block.bytes();
        block.push(new).unwrap();
        assert_eq!(decode_plain(block.encoded_from(begin).unwrap()).unwrap(), [stored]);
    }

    #[test]
    fn wide_blocks_list_the_seconds_with_events() {
        let project = ProjectId(1);
        let block = |times: &[i64]| {
            let of = |at: &i64| StoredEvent { timestamp: *at, ..event(1, "a") };
            let mut block = BlockBuilder::begin(project, &of(&times[0])).unwrap();
            for at in &times[1..] {
                block.push(&of(at)).unwrap();
            }
            block.finish().unwrap().1
        };
        let day = 86_400 * SECOND;
        let wide = block(&[5, 10 * day + 7, 3 * day, 3 * day + 2, 20 * day]);
        for (high, latest) in [
            (5, None),
            (6, Some(5)),
            (day, Some(SECOND + 4)),
            // Any time within the second is possible.
            (3 * day + 1, Some(3 * day)),
            (4 * day, Some(3 * day + 4)),
            (10 * day, Some(3 * day + 4)),
            (i64::MAX, Some(20 * day)),
        ] {
            assert_eq!(wide.latest_before(high), latest, "{high}");
        }
        for (low, earliest) in [
            (i64::MIN, Some(5)),
            (6, Some(6)),
            (day, Some(3 * day + 5 - SECOND)),
            // Any time within the second is possible.
            (3 * day + 2, Some(3 * day + 2)),
            (3 * day + 9, Some(10 * day + 5)),
            (4 * day, Some(10 * day + 5)),
            (20 * day + 1, None),
        ] {
            assert_eq!(wide.earliest_from(low), earliest, "{low}");
        }
        let narrow = block(&[0, WIDE * SECOND]);
        assert!(narrow.seconds.is_none());
        assert_eq!(narrow.latest_before(70), Some(69));
        let longest = block(&[0, 200 * 365 * day]);
        assert!(longest.seconds.is_none());
        assert_eq!(longest.latest_before(i64::MAX), Some(200 * 365 * day));
    }

    #[test]
    fn damage_is_an_error() {
        let block = BlockBuilder::begin(ProjectId(1), &event(1, "a")).unwrap();
        let (data, _) = block.finish().unwrap();
        assert!(decode(&data[..data.len() - 3]).is_err());
        assert!(decode(b"nonsense").is_err());
        assert!(decode_one(&data[..data.len() - 3], 0).is_err());
        assert!(decode_one(b"nonsense", 0).is_err());
    }
}
