//! The ingest log: what the request path writes, and what an acknowledgement means.
//!
//! An append resolves when its record is on stable storage. Everything after that
//! (persons, the store, the live list) reads from here and can start over. See
//! `docs/adr/0002-ingest-log.md`.
//!
//! What belongs here: bytes, offsets, segments, recovery. What does not: the meaning of
//! an event (`pipeline`).

mod cache;
mod frame;
mod inspect;
mod links;
mod local;
mod quarantine;
mod recovery;
mod segment;
mod unclean_stop;
mod writer;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::sync::watch;
use weir_model::ProjectId;
use weir_store::events::partition;

use crate::batch::{BatchError, EncodedBatch};
use crate::logged::LoggedBatch;

pub use inspect::{
    Broken, Content, Fault, Inspection, Quarantined, RecordSeen, SegmentSeen, Waiting, inspect,
};
pub use links::{last_segment, link};
pub use local::{Applied, Damage, LocalLog, LogSettings};
pub(crate) use quarantine::{Intact, list as list_quarantine};
pub use recovery::Recovery;
pub(crate) use unclean_stop::UncleanStopFile;

/// A position in the log, in bytes from its beginning. It only rises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Offset(pub u64);

/// Why an append was not accepted. No reader ever sees the record.
#[derive(Debug, thiserror::Error, Clone, Copy, PartialEq, Eq)]
pub enum AppendError {
    /// The backlog is at its bound. Try again soon.
    #[error("the backlog is full")]
    Busy,
    /// Too little free disk space.
    #[error("too little free disk space")]
    DiskLow,
    /// A write or a sync failed. The log accepts nothing until a restart.
    #[error("the log has stopped after a write error")]
    Poisoned,
    /// The service is stopping.
    #[error("the log is closed")]
    Closed,
}

/// Why the log could not be opened or read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// An operation of the file system failed.
    #[error("ingest log: cannot {action} `{path}`")]
    Io {
        /// The operation.
        action: &'static str,
        /// The file.
        path: std::path::PathBuf,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// A backup cannot link something in the directory of the log.
    #[error("ingest log: cannot link `{path}`: {why}")]
    Unlinkable {
        /// Where it is in the directory of the log.
        path: std::path::PathBuf,
        /// The reason, in words for the operator.
        why: &'static str,
    },
    /// The data at this offset was removed or never existed.
    #[error("ingest log: nothing is kept at offset {0}")]
    Missing(u64),
}

/// One record: the events of one request for one project, or a part of them.
#[derive(Debug)]
pub struct Record {
    /// Offset of its first byte.
    pub offset: Offset,
    /// Offset of the next record.
    pub next: Offset,
    /// The project of the events.
    pub project: ProjectId,
    /// Arrival number of its first event. The others follow without a gap.
    pub first_arrival: u64,
    /// How many arrival numbers it takes.
    pub count: u32,
    /// Events of the project that the log has lost before this record.
    pub(crate) lost_before: u64,
    /// The header as it is on disk.
    header: frame::Header,
    payload: Bytes,
    memory: usize,
    /// Whether the payload differs from what was written.
    is_damaged: bool,
    batch: OnceLock<Result<Arc<LoggedBatch>, BatchError>>,
    /// The partition of each event.
    partitions: OnceLock<Box<[u8]>>,
}

impl Record {
    /// The events. The first call decodes them, and others that ask meanwhile wait for it:
    /// the consumers of all partitions read the same records.
    pub(crate) fn batch(&self) -> Result<Arc<LoggedBatch>, BatchError> {
        let decode = || match self.is_damaged {
            true => Err(BatchError::damaged()),
            false => LoggedBatch::decode(&self.payload).map(Arc::new),
        };
        self.batch.get_or_init(decode).clone()
    }

    /// The partition of each event of the batch, computed once for all consumers.
    pub(crate) fn partitions(&self, batch: &LoggedBatch) -> &[u8] {
        self.partitions.get_or_init(|| {
            let own = |distinct_id| partition(self.project, distinct_id, batch.historical);
            let all = batch.events().map(|event| u8::try_from(own(event.distinct_id)));
            all.map(|own| own.unwrap_or(u8::MAX)).collect()
        })
    }

    /// Whether its events are historical. `None` if only decoding shows it.
    pub(crate) fn is_historical(&self) -> Option<bool> {
        self.header.historical
    }

    /// Bytes of the encoded payload.
    pub fn size(&self) -> usize {
        self.payload.len()
    }

    /// Whether the payload is damaged. Only the header is usable then.
    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// Bytes of memory that it takes, roughly.
    pub fn memory(&self) -> usize {
        self.memory
    }
}

/// Resolves to the offset of the first record.
pub type Appended<'a> = Pin<Box<dyn Future<Output = Result<Offset, AppendError>> + Send + 'a>>;

/// A durable, totally ordered log of records.
pub trait IngestLog: Send + Sync {
    /// Appends the parts of a request, all or none, each as one record. Resolves when
    /// they are on stable storage.
    fn append_all(&self, project: ProjectId, parts: Vec<EncodedBatch>) -> Appended<'_>;

    /// Appends a request that has one part.
    fn append(&self, project: ProjectId, batch: EncodedBatch) -> Appended<'_> {
        self.append_all(project, vec![batch])
    }

    /// Reads records from `from` on that take at most `max_bytes` of memory. Returns at
    /// least one record if there is one, and none at the end of the log.
    ///
    /// # Errors
    /// When the records cannot be read, or are no longer kept.
    fn read(&self, from: Offset, max_bytes: usize) -> Result<Vec<Arc<Record>>, LogError>;

    /// The offset at which stable storage ends, and every change of it.
    fn end(&self) -> watch::Receiver<Offset>;

    /// Copies a record to `quarantine`: it is damaged, or this program cannot read it.
    /// The copy stays when the log no longer has the record.
    ///
    /// # Errors
    /// When the copy cannot be written.
    fn quarantine(&self, record: &Record) -> Result<(), LogError>;

    /// Declares that the consumers of this process no longer need records before
    /// `applied`, and those of the next one no records before `stored`. Returns how far
    /// positions should be stored so that applied segments can be removed. `None` if they
    /// are stored that far.
    fn release_before(&self, applied: Offset, stored: Offset) -> Option<Offset>;
}

#[cfg(test)]
mod tests;
