//! Looking at a log without opening it: nothing is locked, repaired or written,
//! so that it can be done while a service writes.
//!
//! What belongs here: what the files hold and what is wrong with them. What does
//! not: repairing (`recovery`), how a report looks.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use weir_model::{ProjectId, Timestamp};
use weir_store::events::{Position, partition};

use super::aside::{Aside, Kept};
use super::frame::Header;
use super::recovery::walk;
use super::segment::Segment;
use super::{LogError, Offset, aside};
use crate::batch::Batch;

/// What a log holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inspection {
    /// Segments, the oldest first.
    pub segments: Vec<SegmentSeen>,
    /// What is wrong, in order.
    pub broken: Vec<Broken>,
    /// Copies of what could not be read, in order.
    pub quarantine: Vec<SetAside>,
    /// What waits to be applied, by partition; empty when no positions were given.
    pub waiting: Vec<Waiting>,
}

/// One segment file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentSeen {
    /// The file.
    pub path: PathBuf,
    /// Bytes of the file; it is allocated before it is used.
    pub size: u64,
    /// Offset of its first byte.
    pub begin: Offset,
    /// Offset behind its last record.
    pub end: Offset,
    /// Sound records.
    pub records: u64,
    /// Events of these records that are to be stored.
    pub events: u64,
    /// Sound records whose content this program cannot read.
    pub unreadable: u64,
    /// When the first and the last request in it reached us.
    pub received: Option<(Timestamp, Timestamp)>,
}

/// A place where no sound record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken {
    /// Where it begins.
    pub offset: Offset,
    /// How many bytes it takes.
    pub bytes: u64,
    /// What happened there.
    pub fault: Fault,
}

/// What happened to a place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Sound records come after it.
    Damaged,
    /// Nothing sound comes after it: a write that was not finished, which nobody
    /// was told of. While a service runs, one that is under way.
    Torn,
    /// No segment holds it.
    Missing,
}

impl Fault {
    /// One word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Damaged => "damaged",
            Self::Torn => "torn",
            Self::Missing => "missing",
        }
    }
}

/// A file in `quarantine`: a record that could not be read, or a damaged stretch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// The file.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// The place in the log that it is from; `None`: not a copy from the log.
    pub offset: Option<Offset>,
    /// When it was set aside.
    pub at: Option<Timestamp>,
    /// The records of which at least the header can be read. Where the content
    /// can be read too, a replay brings it back.
    pub records: Vec<RecordSeen>,
}

/// How much a partition has still to apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// The partition.
    pub partition: u16,
    /// How far it is.
    pub position: Position,
    /// Its events behind that which can be read.
    pub events: u64,
    /// Bytes of the log behind it, of all partitions.
    pub bytes: u64,
}

/// One sound record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSeen {
    /// Where it begins.
    pub offset: Offset,
    /// The project.
    pub project: ProjectId,
    /// Arrival number of its first event.
    pub first_arrival: u64,
    /// Events in it that are to be stored, as its header says.
    pub events: u32,
    /// Bytes of its payload.
    pub bytes: u32,
    /// The first byte of the payload, which says how to read the rest.
    pub form: Option<u8>,
    /// What is in it, or why this program cannot read it.
    pub content: Result<Content, String>,
}

/// What a record says beside its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// When the request reached us.
    pub received_at: Timestamp,
    /// Whether it came with `historical_migration`.
    pub historical: bool,
    /// Events of the request that are not stored.
    pub dropped: u64,
}

impl Inspection {
    /// Where the log begins and ends; `None`: there are no segments.
    #[must_use]
    pub fn bounds(&self) -> Option<(Offset, Offset)> {
        Some((self.segments.first()?.begin, self.segments.last()?.end))
    }
}

/// Looks at the log in `directory`, and calls `each` for every sound record in
/// order. A directory that does not exist is an empty log.
///
/// `positions`: how far each partition is applied; empty: not known.
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
    let places = Segment::places(directory)?;
    let last = places.last().map(|(base, _)| *base);
    for (base, path) in places {
        let segment = match Segment::open(base, path, &options) {
            Ok(segment) => segment,
            // A service that runs removes what it no longer needs.
            Err(LogError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let end = found.segments.last().map(|before| before.end.0);
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
        aside::list(directory)?.into_iter().map(set_aside).collect::<Result<_, _>>()?;
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
        let walked = walk(&segment.read_all()?, base, is_last, &mut |header, payload| {
            let batch = Batch::decode(payload);
            let record = record(header, payload, batch.as_ref());
            seen.add(&record);
            if let Ok(batch) = &batch {
                waiting.iter_mut().for_each(|waiting| waiting.add(header, batch));
            }
            each(&record);
        });
        for place in walked.broken {
            self.note(base + place.start as u64, place.len() as u64, Fault::Damaged);
        }
        seen.end = Offset(base + walked.end as u64);
        if walked.torn > 0 {
            self.note(seen.end.0, walked.torn as u64, Fault::Torn);
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
                // The requests of a moment are written in any order.
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
            let place = Position { offset: header.offset, index };
            let own = partition(project, &event.distinct_id, batch.historical);
            if place >= self.position && own == self.partition {
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
                + batch.dropped_further.iter().map(|(_, count)| count).sum::<u64>(),
        }),
    }
}

/// A copy. One that was removed meanwhile has nothing in it.
fn set_aside(file: Aside) -> Result<SetAside, LogError> {
    let kept = match file.read() {
        Ok(kept) => kept,
        Err(LogError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let seen = |Kept { header, payload }: &Kept| match payload {
        Some(payload) => record(header, payload, Batch::decode(payload).as_ref()),
        None => record(header, &[], Err("its payload is damaged")),
    };
    let at = file.meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    Ok(SetAside {
        bytes: file.meta.len(),
        offset: file.offset.map(Offset),
        at: at.and_then(|at| i64::try_from(at.as_micros()).ok()).map(Timestamp::from_micros),
        records: kept.iter().map(seen).collect(),
        path: file.path,
    })
}

#[cfg(test)]
mod tests;
