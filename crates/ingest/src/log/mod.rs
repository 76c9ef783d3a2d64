//! The ingest log: what the request path writes, and what an acknowledgement means.
//!
//! An append resolves when its record is on stable storage. Everything after
//! that (persons, the store, the live list) reads from here and can start over.
//! See `docs/adr/0002-ingest-log.md`.
//!
//! What belongs here: bytes, offsets, segments, recovery. What does not: what
//! an event means.

mod aside;
mod cache;
mod frame;
mod inspect;
mod local;
mod mark;
mod recovery;
mod segment;
mod writer;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::sync::watch;
use weir_model::ProjectId;

use crate::batch::{Batch, BatchError, Sealed};

pub(crate) use aside::{Intact, list as list_aside};
pub use inspect::{
    Broken, Content, Fault, Inspection, RecordSeen, SegmentSeen, SetAside, Waiting, inspect,
};
pub use local::{Applied, Damage, LocalLog, LogSettings};
pub(crate) use mark::Mark;
pub use recovery::Recovery;

/// A place in the log: bytes from its beginning. Only rises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Offset(pub u64);

/// Why an append was not accepted. Nothing of the record will be read back.
#[derive(Debug, thiserror::Error, Clone, Copy, PartialEq, Eq)]
pub enum AppendError {
    /// The backlog is at its bound; try again soon.
    #[error("the backlog is full")]
    Busy,
    /// Too little free disk space.
    #[error("too little free disk space")]
    DiskLow,
    /// A write or a sync failed: the log accepts nothing until a restart.
    #[error("the log has stopped after a write error")]
    Poisoned,
    /// The service is stopping.
    #[error("the log is closed")]
    Closed,
}

/// Why the log could not be opened or read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file system refused.
    #[error("ingest log: cannot {action} `{path}`")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: std::path::PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The data before this offset was removed or never existed.
    #[error("ingest log: nothing is kept at offset {0}")]
    Missing(u64),
}

/// One record: the events of one request for one project, or a part of them.
#[derive(Debug)]
pub struct Record {
    /// Where it begins.
    pub offset: Offset,
    /// Where the next one begins.
    pub next: Offset,
    /// The project.
    pub project: ProjectId,
    /// Arrival number of its first event; the others follow without a gap.
    pub first_arrival: u64,
    /// How many events it carries.
    pub count: u32,
    /// As it stands on disk.
    header: frame::Header,
    payload: Bytes,
    memory: usize,
    /// Whether the payload has other bytes than were written.
    is_damaged: bool,
    batch: OnceLock<Arc<Batch>>,
}

impl Record {
    /// The events. Decoded once, whoever asks first.
    ///
    /// # Errors
    /// When the payload is damaged, or of a form this program does not know.
    pub fn batch(&self) -> Result<Arc<Batch>, BatchError> {
        if let Some(batch) = self.batch.get() {
            return Ok(Arc::clone(batch));
        }
        if self.is_damaged {
            return Err(BatchError::damaged());
        }
        let batch = Arc::new(Batch::decode(&self.payload)?);
        Ok(Arc::clone(self.batch.get_or_init(|| batch)))
    }

    /// Bytes of the encoded payload.
    #[must_use]
    pub fn size(&self) -> usize {
        self.payload.len()
    }

    /// Whether the payload is damaged: only the header can be trusted.
    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// Bytes that it takes in memory, roughly.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.memory
    }
}

/// Resolves to where the first record begins.
pub type Appended<'a> = Pin<Box<dyn Future<Output = Result<Offset, AppendError>> + Send + 'a>>;

/// A durable, totally ordered log of records.
pub trait IngestLog: Send + Sync {
    /// Appends the parts of a request, all or none, each as a record; resolves when
    /// they are on stable storage.
    fn append_all(&self, project: ProjectId, parts: Vec<Sealed>) -> Appended<'_>;

    /// The same of a request that has one part.
    fn append(&self, project: ProjectId, batch: Sealed) -> Appended<'_> {
        self.append_all(project, vec![batch])
    }

    /// Reads records from `from` on that take up to `max_bytes` in memory; empty
    /// at the end. Always gives at least one record when there is one.
    ///
    /// # Errors
    /// When the records cannot be read, or are no longer kept.
    fn read(&self, from: Offset, max_bytes: usize) -> Result<Vec<Arc<Record>>, LogError>;

    /// The end of what is on stable storage, and every change of it.
    fn end(&self) -> watch::Receiver<Offset>;

    /// Keeps a copy of a record that is damaged or that this program cannot read: also
    /// when the log no longer has it.
    ///
    /// # Errors
    /// When it cannot be written.
    fn set_aside(&self, record: &Record) -> Result<(), LogError>;

    /// Says that nothing before `applied` is needed for applying any more.
    fn retain(&self, applied: Offset);
}

#[cfg(test)]
mod tests;
