//! Inspecting a log without opening it. Nothing is locked, repaired or written, so this
//! is safe while a service writes.
//!
//! What belongs here: the content of the files and their faults. What does not: repairing
//! (`recovery`), how a report is printed.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use weir_model::{ProjectId, Timestamp};
use weir_store::events::{Position, partition};

use super::frame::Header;
use super::quarantine::{QuarantinedRecord, ReadableRecord};
use super::recovery::walk;
use super::segment::Segment;
use super::{LogError, LogSettings, Offset, quarantine};
use crate::batch::Batch;

/// The content of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inspection {
    /// The segments, oldest first.
    pub segments: Vec<SegmentSeen>,
    /// The faults, in order of their offsets.
    pub broken: Vec<Broken>,
    /// Copies of records that could not be read, in order.
    pub quarantine: Vec<Quarantined>,
    /// Records that wait to be applied, by partition. Empty when no positions were given.
    pub waiting: Vec<Waiting>,
}

/// One segment file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentSeen {
    /// Path of the file.
    pub path: PathBuf,
    /// Size of the file in bytes. A file is allocated before it is used.
    pub size: u64,
    /// Offset of its first byte.
    pub begin: Offset,
    /// Offset after its last record.
    pub end: Offset,
    /// Number of sound records.
    pub records: u64,
    /// Events of these records that have to be stored.
    pub events: u64,
    /// Sound records with a payload that this program cannot read.
    pub unreadable: u64,
    /// When the first and the last request of the segment were received.
    pub received: Option<(Timestamp, Timestamp)>,
}

/// A range of the log without a sound record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken {
    /// Offset of its first byte.
    pub offset: Offset,
    /// Length of the range.
    pub bytes: u64,
    /// The kind of fault.
    pub fault: Fault,
}

/// The kind of a fault in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Sound records follow it, or a header that proves that it was acknowledged.
    Damaged,
    /// Nothing proves that it was acknowledged: an unfinished write, or damage of the last
    /// write. While a service runs, it can be a write in progress.
    Torn,
    /// No segment holds the range.
    Missing,
}

impl Fault {
    /// The name of the fault in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Damaged => "damaged",
            Self::Torn => "torn",
            Self::Missing => "missing",
        }
    }
}

/// A file in `quarantine`: a record that could not be read, or a damaged range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// Path of the file.
    pub path: PathBuf,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// The offset in the log that the copy is from. `None` if the file is not a copy from
    /// the log.
    pub offset: Option<Offset>,
    /// When the copy was made.
    pub at: Option<Timestamp>,
    /// The records whose header, at least, is readable. A replay restores those whose
    /// payload is readable too.
    pub records: Vec<RecordSeen>,
}

/// How much of the log a partition has not applied yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// Number of the partition.
    pub partition: u16,
    /// How far the partition is applied.
    pub position: Position,
    /// Readable events of the partition after that position.
    pub events: u64,
    /// Bytes of the log after that position, of all partitions.
    pub bytes: u64,
}

/// One sound record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSeen {
    /// Offset of its first byte.
    pub offset: Offset,
    /// The project of its events.
    pub project: ProjectId,
    /// Arrival number of its first event.
    pub first_arrival: u64,
    /// Events to store, as the header says.
    pub events: u32,
    /// Length of the payload.
    pub bytes: u32,
    /// The first byte of the payload, which names the encoding.
    pub form: Option<u8>,
    /// The content, or why this program cannot read it.
    pub content: Result<Content, String>,
}

/// What a record contains in addition to its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// When the request was received.
    pub received_at: Timestamp,
    /// Whether the request had `historical_migration`.
    pub historical: bool,
    /// Events of the request that are not stored.
    pub dropped: u64,
}

impl Inspection {
    /// The offsets at which the log begins and ends. `None` if there are no segments.
    pub fn bounds(&self) -> Option<(Offset, Offset)> {
        Some((self.segments.first()?.begin, self.segments.last()?.end))
    }
}

/// Inspects the log in `directory`, and calls `each` for every sound record in order. A
/// directory that does not exist is an empty log.
///
/// `positions` says how far each partition is applied. It is empty if that is not known.
///
/// # Errors
/// When the files cannot be read.
pub fn inspect(
    directory: &Path,
    positions: &[Position],
    mut each: impl FnMut(&RecordSeen),
) -> Result<Inspection, LogError> {
    let mut found = Inspection { waiting: waiting(positions), ..Inspection::default() };
    if !directory.exists() {
        return Ok(found);
    }
    let mut options = File::options();
    options.read(true);
    let segments = Segment::list(directory)?;
    let last = segments.last().map(|(base, _)| *base);
    let needed = positions.iter().map(|position| position.offset).min();
    for (base, path) in segments {
        let segment = match Segment::open(base, path, &options) {
            Ok(segment) => segment,
            // A running service removes segments that it no longer needs.
            Err(LogError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let end = found.segments.last().map(|before| before.end.0).or(needed);
        if let Some(end) = end.filter(|end| *end < base) {
            found.note(end, base - end, Fault::Missing);
        }
        found.look_into(&segment, Some(base) == last, &mut each)?;
    }
    let end = found.bounds().map_or(0, |(_, end)| end.0);
    for waiting in &mut found.waiting {
        waiting.bytes = end.saturating_sub(waiting.position.offset);
    }
    found.quarantine =
        quarantine::list(directory)?.into_iter().map(quarantined).collect::<Result<_, _>>()?;
    Ok(found)
}

impl Inspection {
    fn note(&mut self, offset: u64, bytes: u64, fault: Fault) {
        self.broken.push(Broken { offset: Offset(offset), bytes, fault });
    }

    fn look_into(
        &mut self,
        segment: &Segment,
        is_last: bool,
        each: &mut impl FnMut(&RecordSeen),
    ) -> Result<(), LogError> {
        let base = segment.base;
        let mut seen = SegmentSeen {
            path: segment.path.clone(),
            size: segment.end - base,
            begin: Offset(base),
            end: Offset(base),
            records: 0,
            events: 0,
            unreadable: 0,
            received: None,
        };
        let waiting = &mut self.waiting;
        let last_size = is_last.then_some(LogSettings::default().segment_size);
        let result = walk(&segment.read_all()?, base, last_size, &mut |header, payload| {
            let Some(payload) = payload else { return };
            let batch = Batch::decode(payload);
            let record = record(header, payload, batch.as_ref());
            seen.add(&record);
            if let Ok(batch) = &batch {
                waiting.iter_mut().for_each(|waiting| waiting.add(header, batch));
            }
            each(&record);
        });
        for range in result.broken {
            self.note(base + range.start as u64, range.len() as u64, Fault::Damaged);
        }
        seen.end = Offset(base + result.end as u64);
        if result.torn > 0 {
            self.note(seen.end.0, result.torn as u64, Fault::Torn);
        }
        if result.missing > 0 {
            self.note(base + seen.size, result.missing, Fault::Missing);
        }
        self.segments.push(seen);
        Ok(())
    }
}

impl SegmentSeen {
    fn add(&mut self, record: &RecordSeen) {
        self.records += 1;
        self.events += u64::from(record.events);
        match &record.content {
            Ok(content) => {
                let at = content.received_at;
                // Concurrent requests are written in any order.
                self.received = Some(match self.received {
                    Some((first, last)) => (first.min(at), last.max(at)),
                    None => (at, at),
                });
            }
            Err(_) => self.unreadable += 1,
        }
    }
}

impl Waiting {
    fn add(&mut self, header: &Header, batch: &Batch) {
        if header.offset + header.span() <= self.position.offset {
            return;
        }
        let project = ProjectId(header.project);
        for (index, event) in (0..).zip(&batch.accepted) {
            let position = Position { offset: header.offset, index };
            let own = partition(project, &event.distinct_id, batch.historical);
            if position >= self.position && own == self.partition {
                self.events += 1;
            }
        }
    }
}

fn waiting(positions: &[Position]) -> Vec<Waiting> {
    let of = |(partition, position): (u16, &Position)| Waiting {
        partition,
        position: *position,
        events: 0,
        bytes: 0,
    };
    (0..).zip(positions).map(of).collect()
}

fn record<E: ToString>(header: &Header, payload: &[u8], batch: Result<&Batch, E>) -> RecordSeen {
    RecordSeen {
        offset: Offset(header.offset),
        project: ProjectId(header.project),
        first_arrival: header.first_arrival,
        events: header.count,
        bytes: header.length,
        form: payload.first().copied(),
        content: batch.map_err(|error| error.to_string()).map(|batch| Content {
            received_at: Timestamp::from_micros(batch.received_at),
            historical: batch.historical,
            dropped: batch.dropped.len() as u64
                + batch.further_drops.iter().map(|(_, count)| count).sum::<u64>(),
        }),
    }
}

/// Reads one copy. A copy that was removed in the meantime has no records.
fn quarantined(file: QuarantinedRecord) -> Result<Quarantined, LogError> {
    let kept = match file.read() {
        Ok(kept) => kept,
        Err(LogError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let seen = |ReadableRecord { header, payload }: &ReadableRecord| match payload {
        Some(payload) => record(header, payload, Batch::decode(payload).as_ref()),
        None => record(header, &[], Err("its payload is damaged")),
    };
    let at = file.meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    Ok(Quarantined {
        bytes: file.meta.len(),
        offset: file.offset.map(Offset),
        at: at.and_then(|at| i64::try_from(at.as_micros()).ok()).map(Timestamp::from_micros),
        records: kept.iter().map(seen).collect(),
        path: file.path,
    })
}

#[cfg(test)]
mod tests;
