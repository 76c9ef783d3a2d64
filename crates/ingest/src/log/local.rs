//! The log in segment files on this machine.
//!
//! What belongs here: opening, appending, reading, and removing old segments. What does
//! not: the bytes of a record (`frame`), single files (`segment`), writing (`writer`),
//! repairs (`recovery`).

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use weir_model::ProjectId;
use weir_store::disk::DiskState;
use weir_store::events::Position;

use super::cache::Cache;
use super::frame::{ALIGN, HEADER, Header};
use super::recovery::{ArrivalGaps, Recovery, cut_tail, scan};
use super::segment::Segment;
use super::writer::{Pending, Request, Writer};
use super::{AppendError, Appended, IngestLog, LogError, Offset, Record, quarantine};
use crate::batch::EncodedBatch;
use crate::logged::LoggedBatch;

/// Unit in bytes of the semaphore that bounds the batches that wait for the writer.
const PENDING_UNIT: usize = 1024;

/// Limits of the log.
#[derive(Debug, Clone)]
pub struct LogSettings {
    /// Bytes of one segment.
    pub segment_size: u64,
    /// Bytes that may wait for the writer. Beyond that, appends fail with
    /// [`AppendError::Busy`].
    pub pending: usize,
    /// Bytes of records that may wait to be applied. Beyond that, appends fail with
    /// [`AppendError::Busy`].
    pub backlog: u64,
    /// Bytes of memory for the newest records, for consumers that keep up.
    pub newest_cache: usize,
    /// Bytes of memory for records read from disk, for consumers that are behind.
    pub disk_cache: usize,
    /// Bytes of applied records that are kept for repairs.
    pub keep_bytes: u64,
    /// How long applied records are kept.
    pub keep_for: Duration,
    /// Makes written bytes durable. Tests inject a slow or failing disk here.
    pub sync: fn(&File) -> io::Result<()>,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self {
            segment_size: 64 << 20,
            pending: 64 << 20,
            backlog: 8 << 30,
            newest_cache: 32 << 20,
            disk_cache: 32 << 20,
            keep_bytes: 2 << 30,
            keep_for: Duration::from_secs(24 * 3600),
            sync: File::sync_data,
        }
    }
}

/// What the writer and the readers share.
pub(super) struct Shared {
    segments: Mutex<Vec<Segment>>,
    newest_cache: Mutex<Cache>,
    disk_cache: Mutex<Cache>,
    pub(super) poisoned: Notify,
}

impl Shared {
    /// Makes synced records visible to readers.
    pub(super) fn publish(&self, records: &[Arc<Record>], end: u64) {
        if let Some(last) = self.segments.lock().last_mut() {
            last.end = end;
        }
        let mut newest = self.newest_cache.lock();
        for record in records {
            newest.insert(Arc::clone(record));
        }
    }

    /// Closes the last segment at `end` and adds the next one.
    pub(super) fn roll(&self, end: u64, next: Segment) {
        let mut segments = self.segments.lock();
        if let Some(last) = segments.last_mut() {
            last.end = end;
            last.last_written_at = last.file.metadata().ok().and_then(|m| m.modified().ok());
        }
        segments.push(next);
    }
}

impl Record {
    pub(super) fn with_batch(header: &Header, encoded: &EncodedBatch) -> Self {
        let memory = encoded.payload.len() + encoded.decoded;
        let record = Self::new(header, encoded.payload.clone(), memory);
        let batch = encoded.batch.clone().map(Ok);
        // The decoded form counts too when the record is decoded later, by its first
        // reader.
        Self { batch: batch.map_or_else(OnceLock::new, OnceLock::from), ..record }
    }

    /// The payload is unknown.
    fn damaged(header: &Header, payload: Bytes) -> Self {
        let memory = payload.len();
        Self { is_damaged: true, ..Self::new(header, payload, memory) }
    }

    /// A record whose first reader decodes it.
    pub(super) fn from_disk(header: &Header, payload: Bytes) -> Self {
        let decoded = LoggedBatch::memory_of_encoded(&payload, header.count);
        let memory = payload.len() + decoded;
        Self::new(header, payload, memory)
    }

    fn new(header: &Header, payload: Bytes, memory: usize) -> Self {
        Self {
            offset: Offset(header.offset),
            next: Offset(header.offset + header.span()),
            project: ProjectId(header.project),
            first_arrival: header.first_arrival,
            count: header.count,
            lost_before: 0,
            header: *header,
            memory,
            payload,
            is_damaged: false,
            batch: OnceLock::new(),
            partitions: OnceLock::new(),
        }
    }
}

/// The known damage of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Damage {
    /// Copies in `quarantine`, until the operator removes them: damaged ranges, and
    /// records that this program cannot read.
    pub copies: u64,
    /// Bytes of these copies.
    pub bytes: u64,
    /// Bytes that no segment held at the last start: before or between segments and not
    /// applied, at the end of the log and applied, or cut off the last segment.
    pub missing: u64,
}

impl Damage {
    /// Whether there is no damage.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// How far the log was applied when it was last open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Applied {
    /// Everything before this offset is in the store.
    pub lowest: Offset,
    /// Nothing from this offset on is in the store.
    pub highest: Offset,
}

impl Applied {
    /// Computes both offsets from the positions of all partitions.
    pub fn of(positions: &[Position]) -> Self {
        let lowest = positions.iter().map(|position| position.offset).min();
        let highest = positions.iter().map(|position| {
            // The position is within a record, so the record must be there from its first
            // byte.
            position.offset + u64::from(position.index > 0)
        });
        Self { lowest: Offset(lowest.unwrap_or(0)), highest: Offset(highest.max().unwrap_or(0)) }
    }
}

/// The log in segment files of one directory.
pub struct LocalLog {
    directory: PathBuf,
    settings: LogSettings,
    shared: Arc<Shared>,
    queue: Mutex<Option<mpsc::UnboundedSender<Request>>>,
    /// Bounds the bytes that wait for the writer.
    pending_bytes: Arc<Semaphore>,
    poisoned: Arc<AtomicBool>,
    end: watch::Sender<Offset>,
    applied: AtomicU64,
    disk: Arc<DiskState>,
    recovery: Recovery,
    /// Damaged ranges that are reported, offset and bytes: those that opening has found,
    /// and those that readers have found since.
    reported: Mutex<Vec<(u64, u64)>>,
    writer: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl LocalLog {
    /// Opens the log of `directory` and repairs what a crash left.
    ///
    /// `next_arrivals` has the first arrival number of every project that the store has
    /// not seen. Records in the log raise it further.
    ///
    /// Segments that end before `applied.lowest` are not scanned: no consumer needs their
    /// records, and reading gigabytes would delay every start. A log that ends before
    /// `applied.highest` has lost its end. It continues at that offset, because the store
    /// would skip new records at lower offsets as already applied.
    ///
    /// # Errors
    /// When the directory cannot be read or written.
    pub fn open(
        directory: &Path,
        settings: LogSettings,
        next_arrivals: HashMap<i64, u64>,
        applied: Applied,
        disk: Arc<DiskState>,
    ) -> Result<Self, LogError> {
        std::fs::create_dir_all(directory).map_err(|source| LogError::Io {
            action: "create",
            path: directory.to_owned(),
            source,
        })?;
        let mut arrivals = next_arrivals;
        let mut recovery = Recovery::default();
        let mut segments = Segment::open_all(directory)?;
        let begins: Vec<u64> = segments.iter().map(|segment| segment.base).collect();
        let needed = applied.lowest.0;
        // Where scanning begins, or should begin: the first segment that is needed.
        let begin = begins.iter().rev().find(|begin| **begin <= needed).copied();
        let begin = begin.unwrap_or(needed.next_multiple_of(ALIGN));
        if let Some(first) = begins.first().filter(|first| **first > begin) {
            recovery.missing.push((begin, first - begin));
            tracing::error!(
                offset = begin,
                bytes = first - begin,
                "ingest log: records before the first segment are missing"
            );
        }
        let mut gaps = ArrivalGaps::new(begin, &arrivals);
        let mut raise = |header: &Header| {
            let after = header.first_arrival + u64::from(header.count);
            let next = arrivals.entry(header.project).or_insert(1);
            *next = (*next).max(after);
        };
        for (index, segment) in segments.iter_mut().enumerate() {
            let next = begins.get(index + 1).copied();
            if let Some(next) = next.filter(|next| *next <= needed) {
                segment.end = next;
                continue;
            }
            let last_size = next.is_none().then_some(settings.segment_size);
            let (recovery, gaps) = (&mut recovery, &mut gaps);
            let found = scan(segment, directory, last_size, needed, recovery, gaps, &mut raise)?;
            if let Some(size) = last_size {
                recovery.torn_bytes = cut_tail(segment, &found, size)?;
            }
            let end = found.end + found.replacements.len() as u64;
            segment.end = end;
            // A segment begins where the one before it ends.
            if let Some(next) = next.filter(|next| end < *next) {
                recovery.missing.push((end, next - end));
                tracing::error!(
                    offset = end,
                    bytes = next - end,
                    "ingest log: records between two segments are missing"
                );
            }
        }
        let end = segments.last().map_or(0, |segment| segment.end);
        let begin = applied.highest.0.next_multiple_of(ALIGN);
        let is_cut = end < applied.highest.0;
        if is_cut {
            // A last segment that was cut is counted up to its full size.
            let from = recovery.missing.last().map_or(end, |(at, bytes)| end.max(at + bytes));
            recovery.missing.extend((from < begin).then(|| (from, begin - from)));
            tracing::error!(
                end,
                applied = applied.highest.0,
                "ingest log: its end is missing: more was applied than it holds; resuming behind it"
            );
        }
        if segments.is_empty() || is_cut {
            segments.push(Segment::create(directory, begin.max(end), settings.segment_size)?);
        }
        let Some(active) = segments.last().cloned() else { return Err(LogError::Missing(0)) };
        let next_offset = active.end;
        if recovery.torn_bytes > 0 {
            tracing::warn!(
                end = next_offset,
                bytes = recovery.torn_bytes,
                "ingest log: cut off the end of the last write: it was not acknowledged, unless \
                 the disk has damaged it"
            );
        }
        tracing::info!(
            records = recovery.records,
            torn_bytes = recovery.torn_bytes,
            damaged = recovery.damaged.len(),
            end = next_offset,
            "opened the ingest log"
        );

        let (end, _) = watch::channel(Offset(next_offset));
        let (queue, waiting) = mpsc::unbounded_channel();
        let poisoned = Arc::new(AtomicBool::new(false));
        let shared = Arc::new(Shared {
            segments: Mutex::new(segments),
            newest_cache: Mutex::new(Cache::new(settings.newest_cache)),
            disk_cache: Mutex::new(Cache::new(settings.disk_cache)),
            poisoned: Notify::new(),
        });
        let writer = Writer {
            directory: PathBuf::from(directory),
            segment_size: settings.segment_size,
            sync: settings.sync,
            shared: Arc::clone(&shared),
            poisoned: Arc::clone(&poisoned),
            end: end.clone(),
            arrivals,
            active,
            next_offset,
        };
        let thread = std::thread::Builder::new()
            .name("ingest-log".to_owned())
            .spawn(move || writer.run(waiting))
            .map_err(|source| LogError::Io {
                action: "start the writer of",
                path: directory.to_owned(),
                source,
            })?;
        Ok(Self {
            directory: directory.to_owned(),
            pending_bytes: Arc::new(Semaphore::new(settings.pending / PENDING_UNIT)),
            settings,
            shared,
            queue: Mutex::new(Some(queue)),
            poisoned,
            end,
            applied: AtomicU64::new(applied.lowest.0),
            disk,
            reported: Mutex::new(recovery.damaged.clone()),
            recovery,
            writer: Mutex::new(Some(thread)),
        })
    }

    /// What opening the log found and repaired.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// The damage as of now.
    ///
    /// # Errors
    /// When `quarantine` cannot be listed.
    pub fn damage(&self) -> Result<Damage, LogError> {
        let copies = quarantine::list(&self.directory)?;
        let copies = copies.iter().filter(|copy| copy.offset.is_some());
        let mut damage = Damage {
            missing: self.recovery.missing.iter().map(|(_, bytes)| bytes).sum(),
            ..Damage::default()
        };
        for copy in copies {
            damage.copies += 1;
            damage.bytes += copy.meta.len();
        }
        Ok(damage)
    }

    /// Whether a write has failed.
    pub fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire)
    }

    /// Returns when a write has failed. The process should end then.
    pub async fn wait_for_failure(&self) {
        if !self.is_poisoned() {
            self.shared.poisoned.notified().await;
        }
    }

    /// Bytes on stable storage that are not applied yet.
    pub fn backlog(&self) -> u64 {
        self.end.borrow().0.saturating_sub(self.applied.load(Ordering::Acquire))
    }

    /// Begins a new segment, unless the last one is empty. Everything accepted so far is
    /// before the returned offset.
    ///
    /// # Errors
    /// [`AppendError`] when there is no space for it, or the log has stopped.
    pub async fn begin_segment(&self) -> Result<Offset, AppendError> {
        let (done, answer) = oneshot::channel();
        let sent = match self.queue.lock().as_ref() {
            Some(queue) => queue.send(Request::BeginSegment(done)).is_ok(),
            None => false,
        };
        match sent {
            true => answer.await.unwrap_or(Err(AppendError::Poisoned)),
            false => Err(AppendError::Closed),
        }
    }

    /// The offset of the first byte that is kept.
    pub fn begin(&self) -> Offset {
        Offset(self.shared.segments.lock().first().map_or(0, |segment| segment.base))
    }

    /// Accepts no more batches, and returns when all accepted ones are synced.
    pub fn close(&self) {
        drop(self.queue.lock().take());
        if let Some(thread) = self.writer.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the ingest log's writer ended in a panic");
        }
    }

    fn check(&self) -> Result<(), AppendError> {
        if self.is_poisoned() {
            return Err(AppendError::Poisoned);
        }
        if self.disk.is_low() {
            return Err(AppendError::DiskLow);
        }
        if self.backlog() > self.settings.backlog {
            return Err(AppendError::Busy);
        }
        Ok(())
    }

    fn read_newest(&self, from: Offset, max_bytes: usize) -> Vec<Arc<Record>> {
        let newest = self.shared.newest_cache.lock();
        let mut records = Collected::new(max_bytes);
        let mut at = from;
        while !records.is_full()
            && let Some(record) = newest.get(at)
        {
            at = record.next;
            records.push(record);
        }
        records.records
    }

    fn read_disk(&self, from: Offset, max_bytes: usize) -> Result<Vec<Arc<Record>>, LogError> {
        let mut at = from.0;
        loop {
            let segment = {
                let segments = self.shared.segments.lock();
                let index = segments.partition_point(|segment| segment.end <= at);
                match segments.get(index) {
                    Some(segment) => segment.clone(),
                    None => return Ok(Vec::new()),
                }
            };
            // An offset between two segments, or before the first one, continues at the
            // next segment.
            at = at.max(segment.base);
            let records = self.read_segment(&segment, at, max_bytes)?;
            // No sound record up to the end of the segment: continue in the next one.
            if !records.is_empty() {
                return Ok(records);
            }
            at = segment.end;
        }
    }

    /// Records of a segment from `at` on.
    fn read_segment(
        &self,
        segment: &Segment,
        mut at: u64,
        max_bytes: usize,
    ) -> Result<Vec<Arc<Record>>, LogError> {
        let mut records = Collected::new(max_bytes);
        let mut broken_from = None;
        while at < segment.end && !records.is_full() {
            let Some(record) = self.cached_record(segment, at)? else {
                // Continue at the next header.
                broken_from.get_or_insert(at);
                at += ALIGN;
                continue;
            };
            self.report(segment, broken_from.take(), at)?;
            at = record.next.0;
            records.push(record);
        }
        self.report(segment, broken_from, at.min(segment.end))?;
        Ok(records.records)
    }

    /// The record at `at`, from memory or from disk. `None` if there is no sound header.
    /// Consumers that are behind read the same records at the same time, so the cache is
    /// locked while one of them reads: the others find the record, and share what its
    /// first reader decodes.
    fn cached_record(&self, segment: &Segment, at: u64) -> Result<Option<Arc<Record>>, LogError> {
        let mut cache = self.shared.disk_cache.lock();
        if let Some(record) = cache.get(Offset(at)) {
            return Ok(Some(record));
        }
        let Some(mut record) = read_record(segment, at)? else { return Ok(None) };
        record.lost_before = self.recovery.lost.get(&at).copied().unwrap_or(0);
        let record = Arc::new(record);
        cache.insert(Arc::clone(&record));
        Ok(Some(record))
    }

    /// Reports a range without a sound header, and copies it to `quarantine`, unless that
    /// was done before. The damage is newer than the start.
    fn report(&self, segment: &Segment, from: Option<u64>, to: u64) -> Result<(), LogError> {
        let Some(from) = from else { return Ok(()) };
        let mut reported = self.reported.lock();
        if reported.iter().any(|(begin, bytes)| *begin <= from && to <= begin + bytes) {
            return Ok(());
        }
        let bytes = segment.read_at(from, usize::try_from(to - from).unwrap_or(usize::MAX))?;
        // Zeros before the next segment are records that are missing. Opening reports them.
        if to == segment.end && bytes.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        quarantine::keep(&self.directory, from, &bytes)?;
        reported.push((from, to - from));
        let path = segment.path.display();
        tracing::error!(
            offset = from, bytes = to - from, segment = %path,
            "ingest log: acknowledged records are damaged; a copy is in `quarantine`"
        );
        Ok(())
    }
}

/// Records up to a bound of memory, but at least one.
struct Collected {
    records: Vec<Arc<Record>>,
    bytes: usize,
    limit: usize,
}

impl Collected {
    fn new(limit: usize) -> Self {
        Self { records: Vec::new(), bytes: 0, limit }
    }

    fn is_full(&self) -> bool {
        !self.records.is_empty() && self.bytes >= self.limit
    }

    fn push(&mut self, record: Arc<Record>) {
        self.bytes += record.memory();
        self.records.push(record);
    }
}

/// The record at `at`. `None` if there is no sound header.
fn read_record(segment: &Segment, at: u64) -> Result<Option<Record>, LogError> {
    let head = segment.read_at(at, HEADER)?;
    let Some(header) = Header::read(&head, at) else { return Ok(None) };
    let payload = segment.read_at(at + HEADER as u64, header.length as usize)?;
    if crc32c::crc32c(&payload) != header.payload_crc {
        // The header still names the project and the number of events, so they can be
        // counted and shown.
        return Ok(Some(Record::damaged(&header, Bytes::from(payload))));
    }
    Ok(Some(Record::from_disk(&header, Bytes::from(payload))))
}

impl IngestLog for LocalLog {
    fn append_all(&self, project: ProjectId, parts: Vec<EncodedBatch>) -> Appended<'_> {
        Box::pin(async move {
            self.check()?;
            // Historical batches may fill half of the backlog, so that the other half stays
            // free for live events.
            let is_history = parts.iter().any(|part| part.historical);
            if is_history && self.backlog() > self.settings.backlog / 2 {
                return Err(AppendError::Busy);
            }
            let bytes: usize = parts.iter().map(|part| part.payload.len()).sum();
            let units = bytes / PENDING_UNIT + 1;
            let permit = Arc::clone(&self.pending_bytes)
                .try_acquire_many_owned(u32::try_from(units).unwrap_or(u32::MAX))
                .map_err(|_| AppendError::Busy)?;
            let (done, answer) = oneshot::channel();
            let pending = Pending { project, parts, bytes, done, _permit: permit };
            let sent = match self.queue.lock().as_ref() {
                Some(queue) => queue.send(Request::Append(pending)).is_ok(),
                None => false,
            };
            if !sent {
                return Err(AppendError::Closed);
            }
            answer.await.unwrap_or(Err(AppendError::Poisoned))
        })
    }

    fn read(&self, from: Offset, max_bytes: usize) -> Result<Vec<Arc<Record>>, LogError> {
        let records = self.read_newest(from, max_bytes);
        if records.is_empty() { self.read_disk(from, max_bytes) } else { Ok(records) }
    }

    fn quarantine(&self, record: &Record) -> Result<(), LogError> {
        let mut bytes = Vec::with_capacity(HEADER + record.payload.len() + ALIGN as usize);
        record.header.write(&record.payload, &mut bytes);
        quarantine::keep(&self.directory, record.offset.0, &bytes)
    }

    fn end(&self) -> watch::Receiver<Offset> {
        self.end.subscribe()
    }

    fn release_before(&self, applied: Offset, stored: Offset) -> Option<Offset> {
        self.applied.fetch_max(applied.0, Ordering::AcqRel);
        self.shared.newest_cache.lock().remove_before(applied);
        self.shared.disk_cache.lock().remove_before(applied);
        let mut segments = self.shared.segments.lock();
        loop {
            let kept: u64 =
                segments.iter().map(|s| s.end.min(applied.0).saturating_sub(s.base)).sum();
            let oldest = segments.first()?;
            let is_expired = oldest
                .last_written_at
                .and_then(|at| at.elapsed().ok())
                .is_some_and(|age| age > self.settings.keep_for);
            let is_over_limit =
                kept - (oldest.end - oldest.base).min(kept) >= self.settings.keep_bytes;
            let is_applied = oldest.end <= applied.0 && segments.len() > 1;
            // Without a segment that is not stored, the next start would find it missing.
            let is_unstored = oldest.end > stored.0;
            if !is_applied || is_unstored || !(is_expired || is_over_limit || self.disk.is_low()) {
                let complete = segments.iter().rev().skip(1);
                let last = complete.map(|segment| segment.end).find(|end| *end <= applied.0);
                return last.filter(|end| *end > stored.0).map(Offset);
            }
            if let Err(error) = std::fs::remove_file(&oldest.path) {
                tracing::error!(%error, path = %oldest.path.display(), "cannot remove a log segment");
                return None;
            }
            tracing::debug!(path = %oldest.path.display(), "removed an applied log segment");
            segments.remove(0);
        }
    }
}

impl Drop for LocalLog {
    fn drop(&mut self) {
        self.close();
    }
}
