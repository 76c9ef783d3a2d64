//! Capture pipeline: decode, decide, log, apply, live feed.
//!
//! ```text
//! request -capture-> Batch -log-> (acknowledged) -pipeline-> store, live feed
//! ```
//!
//! What belongs here: everything between the bytes of a capture request and the
//! stored event. What does not: HTTP, who may read events.
//!
//! Invariant: an acknowledgement means that the batch is on stable storage;
//! everything after that can be stopped anywhere and goes on from there.

pub mod batch;
pub mod capture;
pub mod live;
pub mod log;
mod pipeline;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use weir_model::ProjectId;
use weir_store::{Store, events};

use crate::batch::Batch;
use crate::live::LiveFeed;
use crate::log::{AppendError, IngestLog, LocalLog, LogError, LogSettings, Offset};
use crate::pipeline::{Consumer, Progress};

/// Why ingestion could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The log could not be opened.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The store could not be read.
    #[error("ingestion: cannot read the applied positions")]
    Store(#[from] weir_store::Error),
}

/// Ingestion: the log, its consumers and the live feed. Clones share them.
#[derive(Clone)]
pub struct Ingest {
    log: Arc<LocalLog>,
    progress: Arc<Progress>,
    live: LiveFeed,
    stop: watch::Sender<bool>,
    consumers: Arc<tokio::sync::Mutex<JoinSet<()>>>,
}

impl Ingest {
    /// Opens the log in `directory` and starts to apply what is in it.
    ///
    /// # Errors
    /// When the log cannot be opened or the store cannot be read.
    pub async fn start(
        directory: &Path,
        settings: LogSettings,
        store: Store,
    ) -> Result<Self, StartError> {
        let mut positions = Vec::new();
        for partition in 0..events::PARTITIONS {
            positions.push(events::position(&store, partition).await?);
        }
        let next_arrivals = events::next_arrivals(&store).await?;
        let progress = Arc::new(Progress::new(positions.clone()));
        let applied = Offset(progress.lowest());
        let disk = store.disk();
        let log = Arc::new(LocalLog::open(directory, settings, next_arrivals, applied, disk)?);
        log.retain(applied);
        let live = LiveFeed::default();
        let stop = watch::channel(false).0;
        let mut consumers = JoinSet::new();
        for (partition, position) in (0..events::PARTITIONS).zip(positions) {
            let shared: Arc<dyn IngestLog> = Arc::clone(&log) as Arc<dyn IngestLog>;
            let consumer = Consumer {
                partition,
                position,
                log: shared,
                store: store.clone(),
                live: live.clone(),
                progress: Arc::clone(&progress),
            };
            consumers.spawn(consumer.run(stop.subscribe()));
        }
        let consumers = Arc::new(tokio::sync::Mutex::new(consumers));
        Ok(Self { log, progress, live, stop, consumers })
    }

    /// Appends a batch; resolves when it is on stable storage. A batch with
    /// nothing in it resolves at once.
    ///
    /// # Errors
    /// When it was not accepted: nothing of it is stored.
    pub async fn append(&self, project: ProjectId, batch: Batch) -> Result<(), AppendError> {
        if batch.is_empty() {
            return Ok(());
        }
        self.log.append(project, batch).await?;
        Ok(())
    }

    /// The live feed.
    #[must_use]
    pub fn live(&self) -> &LiveFeed {
        &self.live
    }

    /// Bytes that are acknowledged and not yet readable.
    #[must_use]
    pub fn lag_bytes(&self) -> u64 {
        self.log.end().borrow().0.saturating_sub(self.progress.lowest())
    }

    /// What opening the log found and repaired.
    #[must_use]
    pub fn recovery(&self) -> &log::Recovery {
        self.log.recovery()
    }

    /// Returns when everything acknowledged so far is readable.
    pub async fn applied(&self) {
        let end = self.log.end().borrow().0;
        let mut lowest = self.progress.watch();
        // The sender lives as long as `self`.
        let _ = lowest.wait_for(|position| *position >= end).await;
    }

    /// Returns when the log has failed: the process should end then.
    pub async fn failed(&self) {
        self.log.failed().await;
    }

    /// Accepts nothing more, waits until what was accepted is applied (at most
    /// `patience`; the rest is applied at the next start), and stops.
    pub async fn close(&self, patience: Duration) {
        let log = Arc::clone(&self.log);
        // The writer's last group may take a moment.
        if tokio::task::spawn_blocking(move || log.close()).await.is_err() {
            tracing::error!("closing the ingest log failed");
        }
        self.stop.send_replace(true);
        let mut consumers = self.consumers.lock().await;
        let all = async { while consumers.join_next().await.is_some() {} };
        if tokio::time::timeout(patience, all).await.is_err() {
            tracing::warn!("stopped before the log was applied; the next start goes on");
            consumers.shutdown().await;
        }
    }
}

#[cfg(test)]
mod tests;
