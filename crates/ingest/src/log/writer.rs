//! The single writer: takes all waiting batches, writes them with one call, syncs once
//! and answers all senders (group commit). It never retries a failed write or sync: the
//! failure poisons the log.
//!
//! What belongs here: groups, syncing and new segments. What does not: admitting batches
//! and reading records (`local`).

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};

use super::frame::Header;
use super::local::Shared;
use super::segment::Segment;
use super::{AppendError, Offset, Record};
use crate::batch::EncodedBatch;
use weir_model::ProjectId;

/// Upper bound of bytes that are written with one sync.
const GROUP: usize = 8 << 20;

/// What the writer is asked to do.
pub(super) enum Request {
    Append(Pending),
    /// Begin a new segment, unless the last one is empty. Answered with its offset.
    BeginSegment(oneshot::Sender<Result<Offset, AppendError>>),
}

/// One append that waits for the writer.
pub(super) struct Pending {
    pub(super) project: ProjectId,
    /// One record for each part.
    pub(super) parts: Vec<EncodedBatch>,
    /// Bytes of the payloads.
    pub(super) bytes: usize,
    pub(super) done: oneshot::Sender<Result<Offset, AppendError>>,
    /// Held until the append is answered. It bounds the waiting bytes.
    pub(super) _permit: OwnedSemaphorePermit,
}

pub(super) struct Writer {
    pub(super) directory: PathBuf,
    pub(super) segment_size: u64,
    pub(super) sync: fn(&File) -> std::io::Result<()>,
    pub(super) shared: Arc<Shared>,
    pub(super) poisoned: Arc<AtomicBool>,
    pub(super) end: watch::Sender<Offset>,
    pub(super) arrivals: HashMap<i64, u64>,
    pub(super) active: Segment,
    /// The offset of the next record.
    pub(super) next_offset: u64,
}

/// Why a group was not written.
enum Refusal {
    /// There is no space for another segment. Nothing was written.
    DiskFull,
    /// The disk failed.
    Broken(std::io::Error),
}

impl Writer {
    /// Runs until all senders are dropped.
    pub(super) fn run(mut self, mut queue: mpsc::UnboundedReceiver<Request>) {
        let _alarm =
            Alarm { poisoned: Arc::clone(&self.poisoned), shared: Arc::clone(&self.shared) };
        let mut buffer = Vec::with_capacity(1 << 20);
        let mut waiting = None;
        while let Some(request) = waiting.take().or_else(|| queue.blocking_recv()) {
            let first = match request {
                Request::Append(first) => first,
                Request::BeginSegment(done) => {
                    // The caller may have gone.
                    let _ = done.send(self.begin_segment());
                    continue;
                }
            };
            let mut size = first.bytes;
            let mut group = vec![first];
            while size < GROUP {
                match queue.try_recv() {
                    Ok(Request::Append(next)) => {
                        size += next.bytes;
                        group.push(next);
                    }
                    // After the group.
                    Ok(other) => {
                        waiting = Some(other);
                        break;
                    }
                    Err(_) => break,
                }
            }
            if self.poisoned.load(Ordering::Acquire) {
                answer(group, AppendError::Poisoned);
                continue;
            }
            self.write_group(group, &mut buffer);
        }
    }

    fn begin_segment(&mut self) -> Result<Offset, AppendError> {
        if self.poisoned.load(Ordering::Acquire) {
            return Err(AppendError::Poisoned);
        }
        if self.next_offset > self.active.base {
            match self.roll(0) {
                Ok(()) => {}
                Err(Refusal::DiskFull) => return Err(AppendError::DiskLow),
                Err(Refusal::Broken(error)) => {
                    self.poison(&error, Vec::new());
                    return Err(AppendError::Poisoned);
                }
            }
        }
        Ok(Offset(self.next_offset))
    }

    fn write_group(&mut self, group: Vec<Pending>, buffer: &mut Vec<u8>) {
        buffer.clear();
        let synced = self.next_offset;
        let mut records = Vec::with_capacity(group.len());
        // A group begins in a segment that has space for all of it, so that one sync
        // covers the group. An empty segment takes a group of any size.
        let needed = |p: &Pending| (p.bytes + p.parts.len() * 64) as u64;
        let needed: u64 = group.iter().map(needed).sum();
        let is_empty = self.next_offset == self.active.base;
        if !is_empty && self.next_offset + needed > self.active.base + self.segment_size {
            match self.roll(needed) {
                Ok(()) => {}
                Err(Refusal::DiskFull) => return answer(group, AppendError::DiskLow),
                Err(Refusal::Broken(error)) => return self.poison(&error, group),
            }
        }
        let start = self.next_offset;
        let mut offsets = Vec::with_capacity(group.len());
        for pending in &group {
            offsets.push(Offset(start + buffer.len() as u64));
            let next_arrival = self.arrivals.entry(pending.project.0).or_insert(1);
            for part in &pending.parts {
                let header = Header {
                    offset: start + buffer.len() as u64,
                    synced,
                    project: pending.project.0,
                    first_arrival: *next_arrival,
                    count: part.count,
                    length: u32::try_from(part.payload.len()).unwrap_or(u32::MAX),
                    payload_crc: part.payload_crc,
                    historical: Some(part.historical),
                };
                *next_arrival += u64::from(part.count);
                header.write(&part.payload, buffer);
                records.push(Arc::new(Record::with_batch(&header, part)));
            }
        }
        let written = self
            .active
            .file
            .write_all_at(buffer, start - self.active.base)
            .and_then(|()| (self.sync)(&self.active.file));
        if let Err(error) = written {
            return self.poison(&error, group);
        }
        self.next_offset = start + buffer.len() as u64;
        self.shared.publish(&records, self.next_offset);
        self.end.send_replace(Offset(self.next_offset));
        for (pending, offset) in group.into_iter().zip(offsets) {
            // The caller may have gone. The record stays.
            let _ = pending.done.send(Ok(offset));
        }
        if buffer.capacity() > 2 * GROUP {
            *buffer = Vec::with_capacity(1 << 20);
        }
    }

    /// Begins the next segment.
    fn roll(&mut self, needed: u64) -> Result<(), Refusal> {
        let size = self.segment_size.max(needed);
        match Segment::create(&self.directory, self.next_offset, size) {
            Ok(segment) => {
                self.active = segment.clone();
                self.shared.roll(self.next_offset, segment);
                Ok(())
            }
            Err(super::LogError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::StorageFull =>
            {
                Err(Refusal::DiskFull)
            }
            Err(super::LogError::Io { source, .. }) => Err(Refusal::Broken(source)),
            Err(error @ (super::LogError::Missing(_) | super::LogError::Unlinkable { .. })) => {
                Err(Refusal::Broken(std::io::Error::other(error)))
            }
        }
    }

    fn poison(&self, error: &std::io::Error, group: Vec<Pending>) {
        tracing::error!(%error, "ingest log: a write failed; nothing more is acknowledged");
        self.poisoned.store(true, Ordering::Release);
        self.shared.poisoned.notify_one();
        answer(group, AppendError::Poisoned);
    }
}

/// A writer that ends in a panic poisons the log.
struct Alarm {
    poisoned: Arc<AtomicBool>,
    shared: Arc<Shared>,
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.poisoned.store(true, Ordering::Release);
            self.shared.poisoned.notify_one();
        }
    }
}

fn answer(group: Vec<Pending>, error: AppendError) {
    for pending in group {
        let _ = pending.done.send(Err(error));
    }
}
