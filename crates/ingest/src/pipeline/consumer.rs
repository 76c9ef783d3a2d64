//! The loop of one partition: it reads a batch, plans it and commits it.
//!
//! While more of the log waits, the next batch is read and planned during the commit. The
//! commits of a partition come one after another, and each names the position that the
//! one before has stored. A batch that was planned on one that fails is discarded, and
//! read again.
//!
//! Duplicates are not searched for in advance: if the store refuses a batch because a
//! uuid exists, they are removed and the batch is planned again. Only projects with
//! transformations are checked first.
//!
//! Damaged event segments or runs are a state of the store: a batch that meets them is tried
//! again until they are repaired, and none of its events is dropped.
//!
//! What belongs here: when a batch is read, planned, committed, retried and made smaller.
//! What does not: those steps themselves (`reader`, `planner`, `committer`).

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use weir_model::{PersonId, ProjectId, panics};
use weir_store::events::{self, Apply, LIVE_PARTITIONS, Position};
use weir_store::{Error, Store};

use super::apply_batch::ApplyBatch;
use super::committer::{Committed, Committer, FailedBatch};
use super::outcomes::Outcomes;
use super::planner::{Plan, Planner, UncommittedWrites};
use super::process::StoreCache;
use super::progress::{BEHIND_BYTES, Progress};
use super::reader::Reader;
use super::sizing::{BatchSizing, EXCLUSIVE_MAX_BYTES, Failure};
use crate::live::LiveFeed;
use crate::location::Locations;
use crate::log::IngestLog;
use crate::transform::Transform;

/// Commits of one partition are at least this far apart while little is waiting: many
/// small writes would cost too much.
const PACE: Duration = Duration::from_millis(80);
/// The position is stored after this many bytes of the log, even if none of them are for
/// the partition.
const MAX_UNSTORED_BYTES: u64 = 16 << 20;
/// The wait after the first failure. It doubles with every further failure.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// How often a batch is planned again because another write changed its rows, before
/// that counts as a failure.
const MAX_ATTEMPTS: u32 = 8;
/// After this many attempts the other consumers wait, so that the next attempt succeeds.
const SHARED_ATTEMPTS: u32 = 2;
/// Bytes of persons and groups that a batch may change while other partitions apply
/// theirs: their texts, and what each of their properties takes in memory beside its text.
/// Changing them takes several times that: as read, as computed, as written, and in the
/// buffers of the engine. A partition may have two such batches, one of them planned.
const SHARED_MAX_BYTES: usize = 4 << 20;

/// State that the consumers of all partitions use.
pub(crate) struct SharedState {
    pub(super) cache: StoreCache,
    pub(super) transform: Arc<dyn Transform>,
    /// Held shared for every batch until it is committed. A batch that has lost too many
    /// races, or is too large, is applied alone.
    applying: Arc<RwLock<()>>,
    pub(super) outcomes: Arc<Outcomes>,
}

/// The permission to apply a batch, beside others or alone.
pub(super) enum Permit {
    Shared { _guard: OwnedRwLockReadGuard<()> },
    Exclusive { _guard: OwnedRwLockWriteGuard<()> },
}

impl SharedState {
    pub(crate) fn new(
        locations: Option<Arc<Locations>>,
        transform: Arc<dyn Transform>,
        outcomes: Arc<Outcomes>,
    ) -> Self {
        let cache = StoreCache::new(locations);
        Self { cache, transform, applying: Arc::default(), outcomes }
    }

    /// Removes persons from memory that were erased in the store.
    pub(crate) fn forget_persons(&self, project: ProjectId, ids: &[PersonId]) {
        self.cache.forget_persons(project, ids);
    }

    async fn permit(&self, is_exclusive: bool) -> Permit {
        let lock = Arc::clone(&self.applying);
        match is_exclusive {
            true => Permit::Exclusive { _guard: lock.write_owned().await },
            false => Permit::Shared { _guard: lock.read_owned().await },
        }
    }
}

/// The parts of the process that a consumer uses.
pub(crate) struct ConsumerDependencies {
    pub(crate) log: Arc<dyn IngestLog>,
    pub(crate) store: Store,
    pub(crate) live: LiveFeed,
    pub(crate) progress: Arc<Progress>,
    pub(crate) shared: Arc<SharedState>,
}

/// The consumer of one partition.
pub(crate) struct Consumer {
    partition: u16,
    /// How far the partition is applied.
    position: Position,
    /// The position in the store. It is lower where a batch had no effects.
    stored: Position,
    log: Arc<dyn IngestLog>,
    store: Store,
    progress: Arc<Progress>,
    shared: Arc<SharedState>,
    reader: Reader,
    planner: Planner,
    committer: Committer,
    sizing: BatchSizing,
    /// The batch that is being committed.
    in_flight: Option<InFlight>,
}

/// A batch that is being committed.
struct InFlight {
    task: JoinHandle<Result<Committed, Box<FailedBatch>>>,
    /// The position after the batch.
    to: Position,
    uncommitted: UncommittedWrites,
}

/// What the store says about the earlier attempts of a refused batch.
enum EarlierAttempt {
    /// One of them was committed although its answer was an error.
    Committed,
    NotCommitted,
}

impl Consumer {
    /// A consumer that continues at `position`. Up to the offset `cautious_until` batches are
    /// small: the last process ended while it applied these records.
    pub(crate) fn new(
        partition: u16,
        position: Position,
        cautious_until: u64,
        dependencies: ConsumerDependencies,
    ) -> Self {
        let ConsumerDependencies { log, store, live, progress, shared } = dependencies;
        Self {
            partition,
            position,
            stored: position,
            reader: Reader::new(partition, Arc::clone(&log), position, cautious_until),
            planner: Planner::new(partition, store.clone(), Arc::clone(&shared)),
            committer: Committer {
                partition,
                log: Arc::clone(&log),
                store: store.clone(),
                live,
                progress: Arc::clone(&progress),
                shared: Arc::clone(&shared),
            },
            log,
            store,
            progress,
            shared,
            sizing: BatchSizing::default(),
            in_flight: None,
        }
    }

    /// Applies the records of the log as they arrive, until `stop` is true and the end of
    /// the log is reached.
    pub(crate) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut end = self.log.end();
        let mut store_up_to = self.progress.subscribe_store_up_to();
        let mut last_commit = Instant::now() - PACE;
        let mut wait = FIRST_WAIT;
        loop {
            let target = end.borrow_and_update().0;
            let waiting = target.saturating_sub(self.planned().offset);
            if waiting == 0 && self.in_flight.is_none() {
                let is_last = *stop.borrow();
                if is_last || self.stored.offset < *store_up_to.borrow_and_update() {
                    self.store_position().await;
                }
                if is_last {
                    return;
                }
                tokio::select! {
                    changed = end.changed() => if changed.is_err() { return },
                    // The stop signal changed, or its sender is gone: check again.
                    _ = stop.changed() => {}
                    // Its sender lives as long as `self`.
                    _ = store_up_to.changed() => {}
                }
                continue;
            }
            if self.in_flight.is_none() {
                if waiting < BEHIND_BYTES && !*stop.borrow() {
                    tokio::time::sleep_until(last_commit + PACE).await;
                }
                last_commit = Instant::now();
                self.wait_for_live_partitions(target).await;
            }
            // A panic on one event must not stop the others.
            let step = AssertUnwindSafe(self.step(target)).catch_unwind().await;
            match step.unwrap_or_else(|panic| Err(Failure::Panicked(panics::message(&*panic)))) {
                Ok(()) => wait = FIRST_WAIT,
                Err(Failure::Store(Error::Stopped)) => return,
                Err(Failure::Overfull { events }) => {
                    self.sizing.overfull(events);
                    self.planner.forget();
                    tracing::debug!(
                        partition = self.partition,
                        events,
                        "a batch is too large and is split"
                    );
                }
                Err(failure) => {
                    self.sizing.failed(&failure);
                    self.planner.forget();
                    let (partition, position) = (self.partition, self.position.offset);
                    match failure.is_damage() {
                        true => tracing::warn!(
                            partition, position, error = %failure,
                            "a batch waits until damaged files of events are repaired"
                        ),
                        false => tracing::error!(
                            partition, position, error = %failure,
                            "a batch was not applied; trying again"
                        ),
                    }
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
            }
        }
    }

    /// The position after all batches that are planned.
    fn planned(&self) -> Position {
        self.in_flight.as_ref().map_or(self.position, |batch| batch.to)
    }

    /// Reads, plans and commits the next batch of the log before `target`. If much more is
    /// waiting, it does not wait for the commit.
    async fn step(&mut self, target: u64) -> Result<(), Failure> {
        let is_behind = |from: Position| target.saturating_sub(from.offset) >= BEHIND_BYTES;
        // After a failure, and close to the end of the log, one thing happens at a time.
        let is_sequential = self.sizing.is_reduced()
            || !is_behind(self.planned())
            || self.must_wait_for_live(target);
        if is_sequential && self.in_flight.is_some() {
            return self.finish_or_retry().await;
        }
        let from = self.planned();
        let Some((batch, to)) = self.reader.read(from, self.sizing)? else {
            // No readable record is left before `target`.
            self.finish_or_retry().await?;
            if self.position == from {
                self.advance_to(Position::at(target));
            }
            return Ok(());
        };
        let can_follow = |before: &InFlight| {
            !batch.parts.is_empty() && self.planner.can_follow(&before.uncommitted, &batch)
        };
        if self.in_flight.as_ref().is_some_and(can_follow) {
            return self.follow(batch, to, is_behind(to)).await;
        }
        self.finish_or_retry().await?;
        // The store may be at another position: then this batch is not the next one.
        if self.position != from {
            return Ok(());
        }
        self.begin(batch, to, is_behind(to)).await
    }

    /// Plans a batch while the one before is committed, and commits it then. Batches with
    /// transformations never follow: `can_follow` excludes them.
    async fn follow(
        &mut self,
        batch: ApplyBatch,
        to: Position,
        is_behind: bool,
    ) -> Result<(), Failure> {
        let permit = self.shared.permit(false).await;
        let positions = (self.planned(), to);
        let uncommitted = self.in_flight.as_ref().map(|before| &before.uncommitted);
        let planned = self.planner.plan(&batch, positions, uncommitted, SHARED_MAX_BYTES).await;
        let before = self.await_commit().await;
        match (planned, before) {
            (Ok(effects), Ok(())) => {
                self.commit(Plan { batch, to, effects, permit }, is_behind).await
            }
            (_, before) => {
                // The batch is read again. If its plan has failed, that shows again then.
                drop(permit);
                self.planner.forget();
                match before {
                    Ok(()) => Ok(()),
                    Err(failed) => self.retry(*failed).await,
                }
            }
        }
    }

    /// Applies a batch while no other one of the partition is being committed.
    async fn begin(
        &mut self,
        mut batch: ApplyBatch,
        to: Position,
        is_behind: bool,
    ) -> Result<(), Failure> {
        if self.sizing.is_giving_up() {
            tracing::error!(
                partition = self.partition,
                position = self.position.offset,
                index = self.position.index,
                "an event could not be processed; it is dropped and shown as such"
            );
            batch.give_up();
        }
        if batch.parts.is_empty() && to.offset - self.stored.offset < MAX_UNSTORED_BYTES {
            self.advance_to(to);
            return Ok(());
        }
        self.planner.transform(&mut batch).await?;
        match self.plan(batch, to, false).await {
            Ok(plan) => self.commit(plan, is_behind).await,
            Err(failed) => self.retry(*failed).await,
        }
    }

    /// Plans a batch together with the other consumers, or alone. No other batch of the
    /// partition may be in flight.
    async fn plan(
        &mut self,
        batch: ApplyBatch,
        to: Position,
        is_exclusive: bool,
    ) -> Result<Plan, Box<FailedBatch>> {
        let permit = self.shared.permit(is_exclusive).await;
        let max_bytes = match batch.events() {
            _ if !is_exclusive => SHARED_MAX_BYTES,
            // A single event concerns few persons, however large they are.
            0 | 1 => usize::MAX,
            _ if self.reader.is_cautious(self.position) => SHARED_MAX_BYTES,
            _ => EXCLUSIVE_MAX_BYTES,
        };
        match self.planner.plan(&batch, (self.stored, to), None, max_bytes).await {
            Ok(effects) => Ok(Plan { batch, to, effects, permit }),
            Err(failure) => Err(Box::new(FailedBatch { batch, to, failure })),
        }
    }

    /// Commits a planned batch. If much of the log is behind it, the commit continues while
    /// the next batch is read and planned.
    async fn commit(&mut self, plan: Plan, is_behind: bool) -> Result<(), Failure> {
        let (to, committer) = (plan.to, self.committer.clone());
        let awaits_commit = !is_behind || self.reader.is_cautious(self.position);
        match plan.effects.uncommitted().filter(|_| !awaits_commit) {
            Some(uncommitted) => {
                let task = tokio::spawn(committer.commit(plan));
                self.in_flight = Some(InFlight { task, to, uncommitted });
                Ok(())
            }
            None => match committer.commit(plan).await {
                Ok(committed) => {
                    self.record_commit(&committed);
                    Ok(())
                }
                Err(failed) => self.retry(*failed).await,
            },
        }
    }

    /// Waits for the batch that is being committed, and applies it if that fails.
    async fn finish_or_retry(&mut self) -> Result<(), Failure> {
        match self.await_commit().await {
            Ok(()) => Ok(()),
            Err(failed) => self.retry(*failed).await,
        }
    }

    /// Waits for the batch that is being committed.
    async fn await_commit(&mut self) -> Result<(), Box<FailedBatch>> {
        let Some(InFlight { task, to, .. }) = self.in_flight.take() else { return Ok(()) };
        match task.await {
            Ok(committed) => committed.map(|committed| self.record_commit(&committed)),
            Err(join) => {
                // The batch is lost with its task. `retry` returns the failure, and it is read
                // again.
                let failure = Failure::Panicked(join.to_string());
                Err(Box::new(FailedBatch { batch: ApplyBatch::default(), to, failure }))
            }
        }
    }

    /// Plans and commits a batch again while other writes change the same rows.
    async fn retry(&mut self, mut failed: FailedBatch) -> Result<(), Failure> {
        let (mut retries, mut was_exclusive) = (0, false);
        loop {
            self.planner.forget();
            let FailedBatch { mut batch, to, failure } = failed;
            let is_exclusive = match &failure {
                // Too large to share.
                Failure::Overfull { .. } if !was_exclusive => true,
                // An event is stored already, or another partition committed the same
                // uuid, person or group first. Read the store again and continue from
                // there.
                Failure::Store(
                    error @ (Error::Exists { .. } | Error::Refused { .. } | Error::Conflict { .. }),
                ) if retries < MAX_ATTEMPTS => {
                    retries += 1;
                    match self.compare_with_store(&mut batch, error).await? {
                        EarlierAttempt::Committed => return Ok(()),
                        EarlierAttempt::NotCommitted => retries >= SHARED_ATTEMPTS,
                    }
                }
                _ => return Err(failure),
            };
            was_exclusive = is_exclusive;
            let applied = match self.plan(batch, to, is_exclusive).await {
                Ok(plan) => self.committer.clone().commit(plan).await,
                Err(failed) => Err(failed),
            };
            match applied {
                Ok(committed) => {
                    self.record_commit(&committed);
                    return Ok(());
                }
                Err(again) => failed = *again,
            }
        }
    }

    /// Compares a batch that was refused with the store. If it is not stored, drops those of
    /// its events that are.
    async fn compare_with_store(
        &mut self,
        batch: &mut ApplyBatch,
        error: &Error,
    ) -> Result<EarlierAttempt, Failure> {
        let stored = events::position(&self.store, self.partition).await?;
        if stored != self.stored {
            self.stored = stored;
            tracing::info!(
                partition = self.partition,
                offset = stored.offset,
                "an earlier attempt was committed; continuing after it"
            );
            self.advance_to(stored);
            return Ok(EarlierAttempt::Committed);
        }
        if matches!(error, Error::Exists { .. }) {
            let stored_uuids = batch.stored_uuids(&self.store, |_| true).await?;
            batch.drop_duplicates(&stored_uuids);
        }
        Ok(EarlierAttempt::NotCommitted)
    }

    /// Makes an import wait while live events wait to be applied.
    async fn wait_for_live_partitions(&self, target: u64) {
        while self.must_wait_for_live(target) {
            tokio::time::sleep(PACE).await;
        }
    }

    fn must_wait_for_live(&self, target: u64) -> bool {
        self.partition >= LIVE_PARTITIONS
            && target.saturating_sub(self.progress.lowest_live()) > BEHIND_BYTES
    }

    /// Stores the position, so that the next start does not read this part of the log
    /// again.
    async fn store_position(&mut self) {
        if self.stored == self.position {
            return;
        }
        let effects = Apply {
            partition: self.partition,
            from: self.stored,
            to: self.position,
            projects: Vec::new(),
        };
        match events::apply(&self.store, effects).await {
            Ok(()) => {
                self.stored = self.position;
                self.advance_to(self.position);
            }
            Err(error) => {
                tracing::warn!(partition = self.partition, %error, "the position was not stored");
            }
        }
    }

    fn record_commit(&mut self, committed: &Committed) {
        (self.position, self.stored) = (committed.to, committed.to);
        self.sizing.succeeded(committed.took, committed.loaded);
    }

    fn advance_to(&mut self, position: Position) {
        self.position = position;
        self.committer.advance(position, self.stored);
    }
}
