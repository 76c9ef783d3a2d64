//! From decided events to stored events: log, pipeline, live feed.
//!
//! ```text
//! Batch -log-> (acknowledged) -pipeline-> store, live feed
//! ```
//!
//! What belongs here: everything between the decision on an event and its stored form.
//! What does not: bodies of requests (`weir-capture`), HTTP and permission to read events
//! (`weir-server`).
//!
//! Invariant: an acknowledgement means that the batch is on stable storage. Everything
//! after that can stop at any point and continues from there.

pub mod batch;
pub mod live;
pub mod location;
pub mod log;
mod logged;
mod pipeline;
pub mod replay;
pub mod transform;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use weir_model::{PersonId, ProjectId};
use weir_store::Store;
use weir_store::events::{self, Position};

use crate::batch::EncodedBatch;
use crate::live::LiveFeed;
use crate::location::Locations;
use crate::log::{
    AppendError, Applied, Damage, IngestLog, LocalLog, LogError, LogSettings, UncleanStopFile,
};
pub use crate::pipeline::Outcome;
use crate::pipeline::{Consumer, ConsumerDependencies, Outcomes, Progress, SharedState};
use crate::transform::Transform;

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

/// The open log, before its records are applied. Transformations append events too, and
/// the consumers need the transformations, so that the log opens first.
pub struct OpenLog {
    appender: Appender,
    store: Store,
    positions: Vec<Position>,
    directory: PathBuf,
}

/// The writing end of the log. Clones refer to the same log.
#[derive(Clone)]
pub struct Appender {
    log: Arc<LocalLog>,
    progress: Arc<Progress>,
}

/// Ingestion: the log, its consumers and the live feed. Clones refer to the same
/// ingestion.
#[derive(Clone)]
pub struct Ingest {
    appender: Appender,
    live: LiveFeed,
    stop: watch::Sender<bool>,
    consumers: Arc<tokio::sync::Mutex<JoinSet<()>>>,
    stall: Arc<Mutex<Stall>>,
    outcomes: Arc<Outcomes>,
    damage: Arc<Mutex<Damage>>,
    unclean_stop: Arc<UncleanStopFile>,
    shared: Arc<SharedState>,
}

/// The dependencies of the consumers.
pub struct Dependencies {
    /// The runtime that the consumers run on.
    pub applying: Handle,
    /// The location database, if the operator has supplied one.
    pub locations: Option<Arc<Locations>>,
    /// The transformations that change events before they are processed.
    pub transform: Arc<dyn Transform>,
}

/// The result of the last check of the consumers' progress.
#[derive(Debug, Default)]
struct Stall {
    position: u64,
    /// Since when records wait without any progress.
    since: Option<Instant>,
}

impl OpenLog {
    /// Opens the log in `directory`. Its records go to `store`.
    ///
    /// # Errors
    /// When the log cannot be opened or the store cannot be read.
    pub async fn open(
        directory: &Path,
        settings: LogSettings,
        store: Store,
    ) -> Result<Self, StartError> {
        let positions = events::positions(&store).await?;
        let next_arrivals = events::next_arrivals(&store).await?;
        let offsets: Vec<u64> = positions.iter().map(|position| position.offset).collect();
        let progress = Arc::new(Progress::new(offsets));
        let applied = Applied::of(&positions);
        let disk = store.disk();
        let log = Arc::new(LocalLog::open(directory, settings, next_arrivals, applied, disk)?);
        log.release_before(applied.lowest, applied.lowest);
        let appender = Appender { log, progress };
        Ok(Self { appender, store, positions, directory: directory.to_owned() })
    }

    /// Appends to this log.
    pub fn appender(&self) -> &Appender {
        &self.appender
    }

    /// Starts to apply the records.
    pub fn start(self, dependencies: Dependencies) -> Ingest {
        let Self { appender, store, positions, directory } = self;
        let Dependencies { applying, locations, transform } = dependencies;
        let (unclean_stop, has_crashed) = UncleanStopFile::create(&directory);
        let end = appender.log.end().borrow().0;
        let cautious_until = if has_crashed { end } else { 0 };
        if has_crashed && end > appender.progress.lowest() {
            tracing::warn!("the last process did not stop in order: applying in small steps");
        }
        let live = LiveFeed::default();
        let outcomes = Arc::<Outcomes>::default();
        let shared_state = Arc::new(SharedState::new(locations, transform, Arc::clone(&outcomes)));
        let stop = watch::channel(false).0;
        let mut consumers = JoinSet::new();
        for (partition, position) in (0..events::PARTITIONS).zip(positions) {
            let dependencies = ConsumerDependencies {
                log: Arc::clone(&appender.log) as Arc<dyn IngestLog>,
                store: store.clone(),
                live: live.clone(),
                progress: Arc::clone(&appender.progress),
                shared: Arc::clone(&shared_state),
            };
            let consumer = Consumer::new(partition, position, cautious_until, dependencies);
            consumers.spawn_on(consumer.run(stop.subscribe()), &applying);
        }
        let consumers = Arc::new(tokio::sync::Mutex::new(consumers));
        let ingest = Ingest {
            appender,
            live,
            stop,
            consumers,
            stall: Arc::default(),
            outcomes,
            damage: Arc::default(),
            unclean_stop: Arc::new(unclean_stop),
            shared: shared_state,
        };
        ingest.check_damage();
        ingest
    }
}

impl Appender {
    /// Appends a batch. Resolves when the batch is on stable storage; an empty batch
    /// resolves immediately.
    ///
    /// # Errors
    /// When the batch was not accepted. Nothing of it is stored.
    pub async fn append(&self, project: ProjectId, batch: EncodedBatch) -> Result<(), AppendError> {
        self.append_all(project, vec![batch]).await
    }

    /// Appends all parts of a request, or none of them.
    ///
    /// # Errors
    /// When the parts were not accepted. Nothing of them is stored.
    pub async fn append_all(
        &self,
        project: ProjectId,
        mut parts: Vec<EncodedBatch>,
    ) -> Result<(), AppendError> {
        parts.retain(|part| !part.is_empty());
        if !parts.is_empty() {
            self.log.append_all(project, parts).await?;
        }
        Ok(())
    }

    /// Returns when everything acknowledged so far is readable.
    pub async fn applied(&self) {
        let end = self.log.end().borrow().0;
        let mut lowest = self.progress.watch();
        // The sender lives as long as `self`.
        let _ = lowest.wait_for(|position| *position >= end).await;
    }
}

impl Ingest {
    /// Appends to the log.
    pub fn appender(&self) -> &Appender {
        &self.appender
    }

    /// The live feed.
    pub fn live(&self) -> &LiveFeed {
        &self.live
    }

    /// Bytes of the log that are acknowledged and not yet readable.
    pub fn lag_bytes(&self) -> u64 {
        self.appender.log.end().borrow().0.saturating_sub(self.appender.progress.lowest())
    }

    /// The same without events of imports, which wait for the others.
    pub fn live_lag_bytes(&self) -> u64 {
        self.appender.log.end().borrow().0.saturating_sub(self.appender.progress.lowest_live())
    }

    /// What opening the log found and repaired.
    pub fn recovery(&self) -> &log::Recovery {
        self.appender.log.recovery()
    }

    /// Damage of the log, as of the last check.
    pub fn damage(&self) -> Damage {
        *self.damage.lock()
    }

    fn check_damage(&self) {
        match self.appender.log.damage() {
            Ok(damage) => *self.damage.lock() = damage,
            Err(error) => tracing::warn!(%error, "the ingest log was not checked for damage"),
        }
    }

    /// The skipped and altered events since the last call, counted by outcome.
    pub fn take_outcomes(&self) -> HashMap<Outcome, u64> {
        self.outcomes.take()
    }

    /// Returns when everything acknowledged so far is readable.
    pub async fn applied(&self) {
        self.appender.applied().await;
    }

    /// Removes persons from memory that were erased in the store. Events that arrive later
    /// make new ones.
    pub fn forget_persons(&self, project: ProjectId, ids: &[PersonId]) {
        self.shared.forget_persons(project, ids);
    }

    /// Begins a new segment of the log, so that the ones before can be removed when they are
    /// old enough, also if few events arrive. Returns the offset at which it begins:
    /// everything acknowledged so far is before it.
    ///
    /// # Errors
    /// [`AppendError`] when there is no space for a segment, or the log has stopped.
    pub async fn begin_log_segment(&self) -> Result<u64, AppendError> {
        self.appender.log.begin_segment().await.map(|offset| offset.0)
    }

    /// The offset of the first byte that the log has.
    pub fn log_begin(&self) -> u64 {
        self.appender.log.begin().0
    }

    /// Returns when the log has failed or a consumer has ended. The process should end
    /// then: events that it acknowledges later would not become readable.
    pub async fn failed(&self) {
        let ended = async {
            // The lock is free again when this future is dropped. The service drops it
            // before it calls `close`.
            let mut consumers = self.consumers.lock().await;
            match consumers.join_next().await {
                Some(Err(error)) => tracing::error!(%error, "a consumer of the ingest log ended"),
                Some(Ok(())) => tracing::error!("a consumer of the ingest log ended"),
                // Ingestion is closed already.
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.appender.log.wait_for_failure() => {}
            () = ended => {}
        }
    }

    /// Whether the log accepts events.
    pub fn accepts(&self) -> bool {
        !self.appender.log.is_poisoned()
    }

    /// Checks the progress of the consumers and the damage of the log, and frees space
    /// when the disk is nearly full. Call it every second.
    pub fn check(&self, now: Instant) {
        self.check_damage();
        let position = self.appender.progress.next_to_move(self.appender.log.end().borrow().0);
        let mut stall = self.stall.lock();
        let is_moving = self.lag_bytes() == 0 || stall.position != position;
        if is_moving || stall.since.is_none() {
            *stall = Stall { position, since: (!is_moving).then_some(now) };
        }
        drop(stall);
        self.appender.progress.release_before(&*self.appender.log);
    }

    /// How long records have waited without any of them becoming readable.
    pub fn stalled_for(&self, now: Instant) -> Duration {
        self.stall.lock().since.map_or(Duration::ZERO, |since| now.duration_since(since))
    }

    /// Accepts no more events, waits until the accepted ones are applied, and stops. It
    /// waits at most for `patience`; the next start applies the rest.
    pub async fn close(&self, patience: Duration) {
        let log = Arc::clone(&self.appender.log);
        // The last group of the writer may take a moment.
        if tokio::task::spawn_blocking(move || log.close()).await.is_err() {
            tracing::error!("closing the ingest log failed");
        }
        self.stop.send_replace(true);
        let mut consumers = self.consumers.lock().await;
        let all = async { while consumers.join_next().await.is_some() {} };
        if tokio::time::timeout(patience, all).await.is_err() {
            tracing::warn!("stopped before the log was applied; the next start continues");
            consumers.shutdown().await;
        }
        self.unclean_stop.remove();
    }
}

#[cfg(test)]
mod tests;
