//! Opening after a stop of any kind.
//!
//! The log ends at its last sound record. What follows is a torn tail: cut off,
//! for nothing in it was acknowledged. A break *before* sound records is damage:
//! it is copied aside, reported, and never passed over in silence
//! (DUR-5). When a later record says that it had been synced, it was
//! acknowledged; else only the write that was under way can be broken.

use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::frame::{ALIGN, HEADER, Header};
use super::segment::Segment;
use super::{LogError, aside};

/// What opening found and did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovery {
    /// Sound records found.
    pub records: u64,
    /// Bytes of the torn tail that were cut off.
    pub torn_bytes: u64,
    /// Broken stretches between sound records: offset and bytes.
    pub damaged: Vec<(u64, u64)>,
    /// What no segment holds, offset and bytes: a place between two segments that was not
    /// applied, or an end of the log that was applied.
    pub missing: Vec<(u64, u64)>,
}

/// What the bytes of a segment are, offsets from its first byte.
pub(super) struct Walked {
    /// After its last sound record; of a complete segment, after all that was
    /// written.
    pub(super) end: usize,
    /// What is broken before the end.
    pub(super) broken: Vec<Range<usize>>,
    /// Bytes behind the end up to the last one that is not zero: a torn tail.
    pub(super) torn: usize,
    /// Offset in the log up to which it was synced before the last sound record
    /// was written.
    synced: u64,
}

/// Looks at the bytes of one segment and changes nothing. Calls `each` with
/// header and payload of every sound record.
pub(super) fn walk(
    bytes: &[u8],
    base: u64,
    is_last: bool,
    each: &mut dyn FnMut(&Header, &[u8]),
) -> Walked {
    let last = written(bytes);
    // A record begins with a magic number, so none begins in the zeroed rest;
    // its own payload and padding may end with zeros.
    let written = last.next_multiple_of(ALIGN as usize);
    let mut at = 0_usize;
    let mut walked = Walked { end: 0, broken: Vec::new(), torn: 0, synced: 0 };
    let mut broken_from: Option<usize> = None;
    while at < written && at + HEADER <= bytes.len() {
        let Some((header, payload)) = sound(bytes, at, base) else {
            broken_from.get_or_insert(at);
            at += ALIGN as usize;
            continue;
        };
        walked.broken.extend(broken_from.take().map(|from| from..at));
        walked.synced = header.synced;
        each(&header, payload);
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

/// Scans one segment. Calls `each` for every sound record; gives the end. What is
/// broken before the offset `needed` is passed over: it was applied, or shown when the
/// records behind it were.
pub(super) fn scan(
    segment: &Segment,
    directory: &Path,
    is_last: bool,
    needed: u64,
    recovery: &mut Recovery,
    each: &mut dyn FnMut(&Header),
) -> Result<u64, LogError> {
    let bytes = segment.read_all()?;
    let walked = walk(&bytes, segment.base, is_last, &mut |header, _| {
        each(header);
        recovery.records += 1;
    });
    let is_needed = |place: &Range<usize>| segment.base + place.end as u64 > needed;
    for place in walked.broken.into_iter().filter(is_needed) {
        report(segment, directory, place, &bytes, walked.synced, recovery)?;
    }
    Ok(segment.base + walked.end as u64)
}

/// Tells of a broken stretch and keeps it aside. `synced`: up to where the log
/// was on stable storage before the last sound record was written. Behind it,
/// the break may also be a write that no client had an answer to.
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
    aside::keep(directory, offset, bytes.get(place).unwrap_or_default())?;
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

fn sound(bytes: &[u8], at: usize, base: u64) -> Option<(Header, &[u8])> {
    let header = Header::read(bytes.get(at..at + HEADER)?, base + at as u64)?;
    let from = at + HEADER;
    let payload = bytes.get(from..from + header.length as usize)?;
    (crc32c::crc32c(payload) == header.payload_crc).then_some((header, payload))
}

/// Zeroes what follows the last sound record, so that it can never be taken for
/// data later; gives how many bytes were not zero.
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

/// Bytes up to the last one that is not zero. Most of a segment is zero: looked
/// at in large steps from its end.
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
