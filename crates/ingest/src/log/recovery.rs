//! Opening after a stop of any kind.
//!
//! The log ends at its last sound record. The bytes after it are a torn tail. They are
//! cut off: nothing in them was acknowledged. A break *before* sound records is damage.
//! It is copied to `quarantine` and always reported (DUR-5). If a later record says that
//! the break had been synced, it was acknowledged. Otherwise only the write in progress
//! can be broken.
//!
//! Events of a destroyed record are known by their numbers: the arrival numbers of a
//! project have no gaps ([`ArrivalGaps`]).
//!
//! What belongs here: scanning segments and repairing them. What does not: inspecting
//! without changes (`inspect`), the copies (`quarantine`).

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::frame::{ALIGN, HEADER, Header};
use super::segment::Segment;
use super::{LogError, quarantine};

/// What opening the log found and repaired.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovery {
    /// Number of sound records.
    pub records: u64,
    /// Bytes of the torn tail that were cut off.
    pub torn_bytes: u64,
    /// Broken ranges between sound records: offset and bytes.
    pub damaged: Vec<(u64, u64)>,
    /// Ranges that no segment holds, offset and bytes: a gap before or between segments
    /// that was not applied, or an end of the log that was applied.
    pub missing: Vec<(u64, u64)>,
    /// Number of events that no record has any more, by the offset of the next record of
    /// their project.
    pub lost: BTreeMap<u64, u64>,
}

/// Finds lost events by the gaps that they leave in the arrival numbers of their project.
#[derive(Debug)]
pub(super) struct ArrivalGaps {
    /// Where the next record begins if nothing is broken.
    next: u64,
    /// Number of breaks so far.
    breaks: u64,
    /// Bytes of these breaks.
    bytes: u64,
    /// By project: the number of its next event, and the breaks before its last record.
    projects: HashMap<i64, (u64, u64)>,
}

impl ArrivalGaps {
    /// Begins at the offset `begin`. `next_arrivals` has the first arrival number of every
    /// project that the store has not seen.
    pub(super) fn new(begin: u64, next_arrivals: &HashMap<i64, u64>) -> Self {
        let projects = next_arrivals.iter().map(|(project, next)| (*project, (*next, 0)));
        Self { next: begin, breaks: 0, bytes: 0, projects: projects.collect() }
    }

    /// Takes the next record, and returns how many events of its project are lost before
    /// it. Breaks before the offset `needed` do not count: their events were applied.
    fn note(&mut self, header: &Header, needed: u64) -> u64 {
        if self.next != header.offset && header.offset > needed {
            self.breaks += 1;
            self.bytes += header.offset.saturating_sub(self.next);
        }
        self.next = header.offset + header.span();
        let next_arrival = header.first_arrival + u64::from(header.count);
        let before = self.projects.insert(header.project, (next_arrival, self.breaks));
        match before.unwrap_or((1, 0)) {
            // The store does not know the numbers of events that it was not given, such as
            // those that a transformation dropped. But an event takes more than a byte.
            (expected, breaks) if breaks < self.breaks => {
                header.first_arrival.saturating_sub(expected).min(self.bytes)
            }
            _ => 0,
        }
    }
}

/// The parts of a segment, as offsets from its first byte.
pub(super) struct Walked {
    /// The end of its last sound record. In a complete segment, the end of all written
    /// bytes.
    pub(super) end: usize,
    /// Broken ranges before the end.
    pub(super) broken: Vec<Range<usize>>,
    /// Bytes after the end up to the last one that is not zero: a torn tail.
    pub(super) torn: usize,
    /// Offset in the log up to which it was synced before the last sound record
    /// was written.
    synced: u64,
}

/// Reads the bytes of one segment and changes nothing. Calls `each` with header and
/// payload of every sound record, and with the header alone if the payload is damaged.
pub(super) fn walk(
    bytes: &[u8],
    base: u64,
    is_last: bool,
    each: &mut dyn FnMut(&Header, Option<&[u8]>),
) -> Walked {
    let last = written(bytes);
    // A record begins with a magic number, so none begins in the zeros at the end. The
    // last record's own payload and padding may end with zeros.
    let written = last.next_multiple_of(ALIGN as usize);
    let mut at = 0_usize;
    let mut walked = Walked { end: 0, broken: Vec::new(), torn: 0, synced: 0 };
    let mut broken_from: Option<usize> = None;
    while at < written && at + HEADER <= bytes.len() {
        let found = record(bytes, at, base);
        if let Some((header, payload)) = &found {
            each(header, *payload);
        }
        let Some((header, Some(_))) = found else {
            broken_from.get_or_insert(at);
            at += ALIGN as usize;
            continue;
        };
        walked.broken.extend(broken_from.take().map(|from| from..at));
        walked.synced = header.synced;
        at += usize::try_from(header.span()).unwrap_or(usize::MAX);
        walked.end = at;
    }
    if is_last {
        walked.torn = last.saturating_sub(walked.end);
        return walked;
    }
    // The next segment was begun when this one was complete and synced.
    walked.synced = u64::MAX;
    if let Some(from) = broken_from {
        walked.broken.push(from..written);
        walked.end = written;
    }
    walked
}

/// Scans one segment, calls `each` for every sound record and returns the end. Breaks
/// before the offset `needed` are not reported: they were applied, or reported when the
/// records after them were applied. `gaps` goes from segment to segment.
pub(super) fn scan(
    segment: &Segment,
    directory: &Path,
    is_last: bool,
    needed: u64,
    recovery: &mut Recovery,
    gaps: &mut ArrivalGaps,
    each: &mut dyn FnMut(&Header),
) -> Result<u64, LogError> {
    let bytes = segment.read_all()?;
    let walked = walk(&bytes, segment.base, is_last, &mut |header, payload| {
        let lost = gaps.note(header, needed);
        if lost > 0 {
            let project = header.project;
            tracing::error!(project, events = lost, "ingest log: events of a project are lost");
            recovery.lost.insert(header.offset, lost);
        }
        if payload.is_some() {
            each(header);
            recovery.records += 1;
        }
    });
    let is_needed = |place: &Range<usize>| segment.base + place.end as u64 > needed;
    for place in walked.broken.into_iter().filter(is_needed) {
        report(segment, directory, place, &bytes, walked.synced, recovery)?;
    }
    Ok(segment.base + walked.end as u64)
}

/// Reports a broken range and copies it to `quarantine`. `synced` is the offset up to
/// which the log was on stable storage before the last sound record was written. A break
/// after that offset may also be a write that was never acknowledged.
fn report(
    segment: &Segment,
    directory: &Path,
    place: Range<usize>,
    bytes: &[u8],
    synced: u64,
    recovery: &mut Recovery,
) -> Result<(), LogError> {
    let offset = segment.base + place.start as u64;
    let length = place.len() as u64;
    quarantine::keep(directory, offset, bytes.get(place).unwrap_or_default())?;
    recovery.damaged.push((offset, length));
    let path = segment.path.display();
    if offset < synced {
        tracing::error!(
            offset, bytes = length, segment = %path,
            "ingest log: acknowledged records are damaged; a copy is in `quarantine`"
        );
    } else {
        tracing::warn!(
            offset, bytes = length, segment = %path,
            "ingest log: records of the last write are damaged; a copy is in `quarantine`"
        );
    }
    Ok(())
}

/// The record at `at`, if its header is sound: the header, and the payload if that is
/// sound too.
fn record(bytes: &[u8], at: usize, base: u64) -> Option<(Header, Option<&[u8]>)> {
    let header = Header::read(bytes.get(at..at + HEADER)?, base + at as u64)?;
    let from = at + HEADER;
    let payload = bytes.get(from..from + header.length as usize);
    Some((header, payload.filter(|payload| crc32c::crc32c(payload) == header.payload_crc)))
}

/// Zeroes the bytes after the last sound record, so that they are never mistaken for data
/// later. Returns how many of them were not zero.
pub(super) fn cut_tail(segment: &Segment, end: u64, size: u64) -> Result<u64, LogError> {
    let failed = |source| LogError::Io { action: "repair", path: segment.path.clone(), source };
    let tail = segment.read_at(end, usize::try_from(segment.end - end).unwrap_or(usize::MAX))?;
    let torn = written(&tail);
    if torn > 0 {
        segment.file.write_all_at(&vec![0; torn], end - segment.base).map_err(failed)?;
    }
    if segment.end - segment.base < size {
        segment.file.set_len(size).map_err(failed)?;
    }
    segment.file.sync_all().map_err(failed)?;
    Ok(torn as u64)
}

/// Bytes up to the last one that is not zero. Most of a segment is zero, so it is
/// searched in large steps from its end.
fn written(bytes: &[u8]) -> usize {
    const STEP: usize = 4096;
    let mut end = bytes.len();
    for step in bytes.rchunks(STEP) {
        if step != [0; STEP].get(..step.len()).unwrap_or_default() {
            let last = step.iter().rposition(|byte| *byte != 0);
            return end - step.len() + last.map_or(0, |last| last + 1);
        }
        end -= step.len();
    }
    0
}
