//! Opening after a stop of any kind.
//!
//! The log ends at its last sound record, or where a later sound header says that it was
//! synced. The bytes after it are a torn tail. They are cut off: they are the last write,
//! which may not have been acknowledged. A damaged range *before* that end is damage. It is copied
//! to `quarantine` and always reported (DUR-5). If a later header says that the range had
//! been synced, it was acknowledged. Otherwise only the write in progress can be broken.
//!
//! The proof must not go with the tail: if the log then ends with damage, an empty record
//! replaces each one that is cut off.
//!
//! A segment is allocated before it is used, and records do not fill it up. So if records
//! reach the end of a last segment that is shorter, the file was cut. Without records, a
//! crash may have interrupted its creation.
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
use crate::batch::Batch;

/// What opening the log found and repaired.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovery {
    /// Number of sound records.
    pub records: u64,
    /// Bytes of the torn tail that were cut off: a write that was not finished, or damage
    /// of the last write, acknowledged or not.
    pub torn_bytes: u64,
    /// Broken ranges before the end: offset and bytes.
    pub damaged: Vec<(u64, u64)>,
    /// Ranges that no segment holds, offset and bytes: a gap before or between segments
    /// that was not applied, an end of the log that was applied, or the rest of a last
    /// segment that was cut.
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
    /// Number of damaged ranges so far.
    damaged: u64,
    /// Bytes of these ranges.
    bytes: u64,
    /// By project: the number of its next event, and the damaged ranges before its last record.
    projects: HashMap<i64, (u64, u64)>,
}

impl ArrivalGaps {
    /// Begins at the offset `begin`. `next_arrivals` has the first arrival number of every
    /// project that the store has not seen.
    pub(super) fn new(begin: u64, next_arrivals: &HashMap<i64, u64>) -> Self {
        let projects = next_arrivals.iter().map(|(project, next)| (*project, (*next, 0)));
        Self { next: begin, damaged: 0, bytes: 0, projects: projects.collect() }
    }

    /// Takes the next record, and returns how many events of its project are lost before
    /// it. Damaged ranges before the offset `needed` do not count: their events were applied.
    fn add(&mut self, header: &Header, needed: u64) -> u64 {
        if self.next != header.offset && header.offset > needed {
            self.damaged += 1;
            self.bytes += header.offset.saturating_sub(self.next);
        }
        self.next = header.offset + header.span();
        let next_arrival = header.first_arrival + u64::from(header.count);
        let before = self.projects.insert(header.project, (next_arrival, self.damaged));
        match before.unwrap_or((1, 0)) {
            // The store does not know the numbers of events that it was not given, such as
            // those that a transformation dropped. But an event takes more than a byte.
            (expected, damaged) if damaged < self.damaged => {
                header.first_arrival.saturating_sub(expected).min(self.bytes)
            }
            _ => 0,
        }
    }
}

/// The parts of a segment, as offsets from its first byte.
pub(super) struct ScanResult {
    /// The end of its last sound record, or a later end that a sound header proves. In a
    /// complete segment, the end of all written bytes.
    pub(super) end: usize,
    /// Broken ranges before the end.
    pub(super) broken: Vec<Range<usize>>,
    /// Bytes after the end up to the last one that is not zero: a torn tail.
    pub(super) torn: usize,
    /// Bytes that a last segment lacks, if it was cut where records stood.
    pub(super) missing: u64,
    /// Offset in the log up to which it was synced before the last record with a sound
    /// header was written.
    synced: u64,
}

/// Reads the bytes of one segment and changes nothing. Calls `each` with header and
/// payload of every sound record, and with the header alone if the payload is damaged.
/// `last_size` is the size of the last segment, as it was allocated.
pub(super) fn walk(
    bytes: &[u8],
    base: u64,
    last_size: Option<u64>,
    each: &mut dyn FnMut(&Header, Option<&[u8]>),
) -> ScanResult {
    let last = written(bytes);
    // A record begins with a magic number, so none begins in the zeros at the end. The
    // last record's own payload and padding may end with zeros.
    let written = last.next_multiple_of(ALIGN as usize);
    let mut at = 0_usize;
    let mut result = ScanResult { end: 0, broken: Vec::new(), torn: 0, missing: 0, synced: 0 };
    let mut broken_from: Option<usize> = None;
    // The end of the last record with a sound header.
    let mut headed = 0;
    while at < written && at + HEADER <= bytes.len() {
        let found = record(bytes, at, base);
        if let Some((header, payload)) = &found {
            each(header, *payload);
            result.synced = result.synced.max(header.synced);
            headed = at.saturating_add(usize::try_from(header.span()).unwrap_or(usize::MAX));
        }
        let Some((header, Some(_))) = found else {
            broken_from.get_or_insert(at);
            at += ALIGN as usize;
            continue;
        };
        result.broken.extend(broken_from.take().map(|from| from..at));
        at += usize::try_from(header.span()).unwrap_or(usize::MAX);
        result.end = at;
    }
    if let Some(size) = last_size {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let mut proven = usize::try_from(result.synced.saturating_sub(base)).unwrap_or(usize::MAX);
        if !bytes.is_empty() && bytes.len() < size && headed.max(written) >= bytes.len() {
            // The record at the cut was whole, because the file was longer.
            proven = proven.max(if headed > bytes.len() { headed } else { 0 });
            result.missing = (size.max(headed) - bytes.len()) as u64;
        }
        if let Some(from) = broken_from.filter(|from| *from < proven) {
            result.broken.push(from..proven);
            result.end = proven;
        }
        result.torn = last.saturating_sub(result.end);
        return result;
    }
    // The next segment was begun when this one was complete and synced.
    result.synced = u64::MAX;
    if let Some(from) = broken_from {
        // The payload and the padding of the last record may end with zeros.
        result.end = written.max(headed.min(bytes.len()));
        result.broken.push(from..result.end);
    }
    result
}

/// The end of a segment, and what is written there.
pub(super) struct Scanned {
    pub(super) end: u64,
    /// Bytes of the records that replace those that are cut off.
    pub(super) replacements: Vec<u8>,
}

/// Scans one segment, calls `each` for every sound record and returns the end. Damaged ranges
/// before the offset `needed` are not reported: they were applied, or reported when the
/// records after them were applied. `gaps` goes from segment to segment.
pub(super) fn scan(
    segment: &Segment,
    directory: &Path,
    last_size: Option<u64>,
    needed: u64,
    recovery: &mut Recovery,
    gaps: &mut ArrivalGaps,
    each: &mut dyn FnMut(&Header),
) -> Result<Scanned, LogError> {
    let bytes = segment.read_all()?;
    // Headers of the damaged records after the last sound one.
    let mut tail = Vec::new();
    let result = walk(&bytes, segment.base, last_size, &mut |header, payload| {
        tail.push(*header);
        if payload.is_none() {
            return;
        }
        tail.drain(..).for_each(|header| note_lost(&header, needed, recovery, gaps));
        each(header);
        recovery.records += 1;
    });
    let ends_broken = result.broken.last().is_some_and(|range| range.end == result.end);
    let is_needed = |range: &Range<usize>| segment.base + range.end as u64 > needed;
    for range in result.broken.into_iter().filter(is_needed) {
        report(segment, directory, range, &bytes, result.synced, recovery)?;
    }
    let end = segment.base + result.end as u64;
    let kept = tail.iter().filter(|header| last_size.is_none() || header.offset < end);
    kept.for_each(|header| note_lost(header, needed, recovery, gaps));
    let mut replacements = Vec::new();
    if last_size.is_some() {
        let found = recovery.lost.len();
        replacements = replace(end, &tail, |header| note_lost(header, needed, recovery, gaps));
        // A torn write after sound records only is cut off without a trace.
        if !ends_broken && recovery.lost.len() == found {
            replacements.clear();
        }
    }
    if result.missing > 0 {
        let offset = segment.base + bytes.len() as u64;
        recovery.missing.push((offset, result.missing));
        let (bytes, path) = (result.missing, segment.path.display());
        tracing::error!(
            offset, bytes, segment = %path,
            "ingest log: the last segment is shorter than it was"
        );
    }
    Ok(Scanned { end, replacements })
}

/// Notes how many events are lost before a record.
fn note_lost(header: &Header, needed: u64, recovery: &mut Recovery, gaps: &mut ArrivalGaps) {
    let lost = gaps.add(header, needed);
    if lost > 0 {
        let project = header.project;
        tracing::error!(project, events = lost, "ingest log: events of a project are lost");
        recovery.lost.insert(header.offset, lost);
    }
}

/// Empty records for those of `tail` from `end` on, and `each` for their headers. They have
/// the same project and arrival number, so a reader counts there what is lost before. If
/// the last segment was cut within a record, one empty record follows it.
fn replace(end: u64, tail: &[Header], mut each: impl FnMut(&Header)) -> Vec<u8> {
    #[expect(clippy::disallowed_methods, reason = "no request and no service has made them")]
    let empty = Batch::new(chrono::Utc::now().timestamp_micros(), false).into_encoded();
    let mut bytes = Vec::new();
    let mut add = |project, first_arrival| {
        let header = Header {
            offset: end + bytes.len() as u64,
            synced: end,
            project,
            first_arrival,
            count: 0,
            length: u32::try_from(empty.payload.len()).unwrap_or(u32::MAX),
            payload_crc: empty.payload_crc,
            // It takes the place of a record of either kind.
            historical: None,
        };
        each(&header);
        header.write(&empty.payload, &mut bytes);
    };
    match tail.last() {
        Some(last) if last.offset < end => {
            add(last.project, last.first_arrival + u64::from(last.count));
        }
        _ => {
            let cut = tail.iter().filter(|header| header.offset >= end);
            cut.for_each(|header| add(header.project, header.first_arrival));
        }
    }
    bytes
}

/// Reports a broken range and copies it to `quarantine`. `synced` is the offset up to
/// which the log was on stable storage before the last record was written. A damaged range
/// after that offset may also be a write that was never acknowledged.
fn report(
    segment: &Segment,
    directory: &Path,
    range: Range<usize>,
    bytes: &[u8],
    synced: u64,
    recovery: &mut Recovery,
) -> Result<(), LogError> {
    let offset = segment.base + range.start as u64;
    let length = range.len() as u64;
    let present = range.start..range.end.min(bytes.len());
    quarantine::keep(directory, offset, bytes.get(present).unwrap_or_default())?;
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

/// Zeroes the bytes after the end, so that they are never mistaken for data later, and
/// writes the records that replace others. Returns how many bytes were not zero.
pub(super) fn cut_tail(segment: &Segment, scanned: &Scanned, size: u64) -> Result<u64, LogError> {
    let Scanned { end, replacements } = scanned;
    let end = *end;
    let failed = |source| LogError::Io { action: "repair", path: segment.path.clone(), source };
    let length = segment.end.saturating_sub(end);
    let tail = segment.read_at(end, usize::try_from(length).unwrap_or(usize::MAX))?;
    let torn = written(&tail);
    let mut content = replacements.clone();
    content.resize(torn.max(replacements.len()), 0);
    if !content.is_empty() {
        segment.file.write_all_at(&content, end - segment.base).map_err(failed)?;
    }
    if segment.end - segment.base < size {
        segment
            .file
            .set_len(size.max(end - segment.base + replacements.len() as u64))
            .map_err(failed)?;
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
