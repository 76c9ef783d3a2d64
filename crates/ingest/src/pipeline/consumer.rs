//! The loop of one partition.
//!
//! Duplicates are not searched for in advance: if the store refuses a batch because a
//! uuid exists, they are removed and the batch is computed again. Only projects with
//! transformations are checked first.
//!
//! What belongs here: when a batch is read, retried, made smaller and committed. What
//! does not: collecting a batch (`apply_batch`), and computing its effects (`process`).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use parking_lot::Mutex;
use tokio::sync::{RwLock, watch};
use tokio::time::Instant;
use weir_model::outcomes::{DropReason, Warning};
use weir_model::{ProjectId, Timestamp, panics};
use weir_store::events::{self, Apply, LIVE_PARTITIONS, Position, ProjectWrite, WarningCount};
use weir_store::warnings::{Skipped, sample_key};
use weir_store::{ByteBudget, Error, Store, live};

use super::apply_batch::{ApplyBatch, EVENTS, Spike};
use super::blocks::Blocks;
use super::process::{Processed, StoreCache};
use super::spikes::Spikes;
use super::tally;
use crate::batch::BatchError;
use crate::live::LiveFeed;
use crate::location::Locations;
use crate::log::{IngestLog, LogError, Offset, Record};
use crate::transform::Transform;

/// Bytes of the records that are read for one batch.
const READ_BYTES: usize = 8 << 20;
/// Commits of one partition are at least this far apart while little is waiting: many
/// small writes would cost too much.
const PACE: Duration = Duration::from_millis(80);
/// The position is stored after this many bytes of the log, even if none of them are for
/// the partition.
const MAX_UNSTORED_BYTES: u64 = 16 << 20;
/// With this many bytes of log to apply, a partition is behind: its batch is written
/// immediately, and imports wait for it.
const BEHIND_BYTES: u64 = 512 << 10;
/// The wait after the first failure. It doubles with every further failure.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// How often a batch is computed again because another write changed its rows, before
/// that counts as a failure.
const MAX_ATTEMPTS: u32 = 8;
/// After this many attempts the other consumers wait, so that the next attempt succeeds.
const SHARED_ATTEMPTS: u32 = 2;
/// After this many failures of a single event, the event is dropped.
const MAX_FAILURES_OF_EVENT: u32 = 3;
/// After a batch that takes longer, batches become smaller.
const SLOW_BATCH: Duration = Duration::from_secs(5);
/// After a batch that takes less, batches become larger again.
const FAST_BATCH: Duration = Duration::from_secs(1);
/// Bytes of persons and groups that a batch may change while other partitions apply
/// theirs: their texts, and what each of their properties takes in memory beside its text.
/// Changing them takes several times that: as read, as computed, as written, and in the
/// buffers of the engine.
const SHARED_MAX_BYTES: usize = 4 << 20;
/// The same bound for a batch that is applied alone. A batch with more is made smaller.
const ALONE_MAX_BYTES: usize = 32 << 20;
/// Upper bound of events in a batch after a restart, where applying one of them may have
/// ended the process.
const CAUTIOUS_EVENTS: usize = 64;

/// How far each partition is applied, for all readers.
#[derive(Debug)]
pub(crate) struct Progress {
    positions: Vec<AtomicU64>,
    /// The positions in the store.
    stored: Vec<AtomicU64>,
    changed: watch::Sender<u64>,
    /// The offset that all stored positions must reach before the log can remove its next
    /// segments.
    to_store: watch::Sender<u64>,
}

impl Progress {
    pub(crate) fn new(positions: Vec<u64>) -> Self {
        let lowest = positions.iter().copied().min().unwrap_or(0);
        Self {
            stored: positions.iter().copied().map(AtomicU64::new).collect(),
            positions: positions.into_iter().map(AtomicU64::new).collect(),
            changed: watch::channel(lowest).0,
            to_store: watch::channel(0).0,
        }
    }

    /// The watermark: the lowest applied position. Everything before it is readable.
    pub(crate) fn lowest(&self) -> u64 {
        self.positions.iter().map(|p| p.load(Ordering::Acquire)).min().unwrap_or(0)
    }

    /// The position that has to rise for more events to become readable. It is the one of
    /// live events while they are behind, because imports wait for them.
    pub(crate) fn next_to_move(&self, end: u64) -> u64 {
        let live = self.lowest_live();
        if end.saturating_sub(live) > BEHIND_BYTES { live } else { self.lowest() }
    }

    /// The lowest position that a partition of live events has applied.
    fn lowest_live(&self) -> u64 {
        let live = self.positions.iter().take(LIVE_PARTITIONS.into());
        live.map(|position| position.load(Ordering::Acquire)).min().unwrap_or(u64::MAX)
    }

    /// Reports every change of the lowest position.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Lets the log remove segments that are applied and stored. If stored positions are
    /// too low for that, asks the consumers to store theirs. Consumers without events store
    /// them rarely.
    pub(crate) fn release_before(&self, log: &dyn IngestLog) {
        let stored = self.stored.iter().map(|p| p.load(Ordering::Acquire)).min().unwrap_or(0);
        if let Some(needed) = log.release_before(Offset(self.lowest()), Offset(stored)) {
            self.to_store.send_if_modified(|present| {
                let rises = needed.0 > *present;
                *present = needed.0.max(*present);
                rises
            });
        }
    }

    fn set_stored(&self, partition: u16, position: u64) {
        if let Some(entry) = self.stored.get(usize::from(partition)) {
            entry.store(position, Ordering::Release);
        }
    }

    fn set_applied(&self, partition: u16, position: u64) {
        if let Some(entry) = self.positions.get(usize::from(partition)) {
            entry.store(position, Ordering::Release);
        }
        let lowest = self.lowest();
        self.changed.send_if_modified(|present| {
            let rises = lowest > *present;
            if rises {
                *present = lowest;
            }
            rises
        });
    }
}

/// State that the consumers of all partitions use.
pub(crate) struct SharedState {
    cache: StoreCache,
    transform: Arc<dyn Transform>,
    /// Held shared by every consumer while it applies. A consumer whose batch has lost
    /// too many races, or is too large, holds it alone.
    applying: RwLock<()>,
    outcomes: Arc<Outcomes>,
}

impl SharedState {
    pub(crate) fn new(
        locations: Option<Arc<Locations>>,
        transform: Arc<dyn Transform>,
        outcomes: Arc<Outcomes>,
    ) -> Self {
        Self { cache: StoreCache::new(locations), transform, applying: RwLock::default(), outcomes }
    }
}

/// Counts of dropped and altered events since the last call of `take`.
#[derive(Debug, Default)]
pub(crate) struct Outcomes(Mutex<HashMap<Outcome, u64>>);

impl Outcomes {
    /// The counts since the last call.
    pub(crate) fn take(&self) -> HashMap<Outcome, u64> {
        std::mem::take(&mut *self.0.lock())
    }

    fn count(&self, warnings: &[WarningCount]) {
        let mut outcomes = self.0.lock();
        for warning in warnings {
            if let Some(outcome) = Outcome::of(&warning.code) {
                let count = u64::try_from(warning.count).unwrap_or(0);
                *outcomes.entry(outcome).or_default() += count;
            }
        }
    }
}

/// What processing did with an event, other than storing it as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The event was dropped.
    Dropped(DropReason),
    /// The event was stored altered, or not all of its changes were made.
    Altered(Warning),
}

impl Outcome {
    /// The outcome for a code. `None` for codes that are counted where the decision is
    /// made.
    fn of(code: &str) -> Option<Self> {
        match DropReason::from_code(code) {
            Some(
                reason @ (DropReason::DuplicateUuid
                | DropReason::DroppedByTransformation
                | DropReason::TransformationUnavailable
                | DropReason::NotProcessed
                | DropReason::UnreadableRecord),
            ) => Some(Self::Dropped(reason)),
            Some(_) => None,
            None => Warning::from_code(code).map(Self::Altered),
        }
    }
}

/// What was written of a project, for the live feed.
struct Written {
    events: Vec<events::StoredEvent>,
    /// The number of the first of these dropped events. Dropped and altered events of a
    /// project share one count per partition. The keys of rows in the live list are
    /// computed from it, as in the store.
    first_affected: i64,
}

/// The consumer of one partition.
pub(crate) struct Consumer {
    pub(crate) partition: u16,
    /// How far the partition is applied.
    pub(crate) position: Position,
    /// The position in the store. It is lower where a batch had no effects.
    pub(crate) stored: Position,
    pub(crate) log: Arc<dyn IngestLog>,
    pub(crate) store: Store,
    pub(crate) live: LiveFeed,
    pub(crate) progress: Arc<Progress>,
    pub(crate) shared: Arc<SharedState>,
    pub(crate) blocks: Blocks,
    pub(crate) sizing: BatchSizing,
    pub(crate) spikes: Spikes,
    /// Up to where spikes were searched for.
    pub(crate) spikes_until: Position,
    /// Spikes that were found in a batch whose commit failed.
    pub(crate) unreported_spikes: BTreeMap<ProjectId, Vec<Spike>>,
    /// Up to this offset batches are small: the process ended while it applied the log
    /// before it, and an event may be the cause.
    pub(crate) cautious_until: u64,
}

/// The size of the next batches. After a failure that an event may cause, batches become
/// smaller until the event is found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchSizing {
    /// Upper bound of events in the next batch.
    max_events: usize,
    /// How often the only event of a batch has failed.
    failures_of_event: u32,
}

impl Default for BatchSizing {
    fn default() -> Self {
        Self { max_events: EVENTS, failures_of_event: 0 }
    }
}

impl BatchSizing {
    /// Adapts the size of batches to the speed of this machine. A long batch delays the
    /// other consumers, and a very long one reaches the time limit of the engine.
    fn succeeded(&mut self, took: Duration, loaded: usize) {
        self.failures_of_event = 0;
        if took > SLOW_BATCH {
            self.max_events = (self.max_events / 2).max(1);
        } else if took < FAST_BATCH && loaded < ALONE_MAX_BYTES / 2 {
            self.max_events = (self.max_events * 2).min(EVENTS);
        }
    }

    /// Whether the only event of the next batch is dropped.
    fn is_giving_up(self) -> bool {
        self.failures_of_event >= MAX_FAILURES_OF_EVENT
    }

    /// Halves the batch: its persons and groups were too large.
    fn overfull(&mut self, events: usize) {
        self.max_events = (events / 2).max(1);
    }

    fn failed(&mut self, failure: &Failure) {
        if self.is_giving_up() {
            // The batch fails without the event too, so the event is not the cause and is
            // tried again.
            self.failures_of_event = 0;
        } else if !failure.may_pass_with_fewer() {
            // The disk or a passing fault: retry the same batch.
        } else if self.max_events > 1 {
            self.max_events /= 2;
        } else if failure.may_be_an_event() {
            self.failures_of_event += 1;
        }
    }
}

/// Why a batch was not applied.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Store(#[from] Error),
    #[error("processing panicked: {0}")]
    Panicked(String),
    #[error("{events} events change too many large persons and groups at a time")]
    Overfull { events: usize },
}

impl Failure {
    /// Whether an event may be the cause, rather than the disk or a passing fault.
    fn may_be_an_event(&self) -> bool {
        match self {
            Self::Panicked(_) => true,
            Self::Store(error) => {
                matches!(error, Error::Shape { .. } | Error::Exists { .. } | Error::Refused { .. })
            }
            Self::Log(_) | Self::Overfull { .. } => false,
        }
    }

    /// Whether a smaller batch may succeed.
    fn may_pass_with_fewer(&self) -> bool {
        self.may_be_an_event() || matches!(self, Self::Store(Error::Timeout { .. }))
    }
}

impl Consumer {
    /// Applies the records of the log as they arrive, until `stop` is true and the end of
    /// the log is reached.
    pub(crate) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut end = self.log.end();
        let mut to_store = self.progress.to_store.subscribe();
        let mut last_commit = Instant::now() - PACE;
        let mut wait = FIRST_WAIT;
        loop {
            let target = end.borrow_and_update().0;
            if self.position.offset >= target {
                let is_last = *stop.borrow();
                if is_last || self.stored.offset < *to_store.borrow_and_update() {
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
                    _ = to_store.changed() => {}
                }
                continue;
            }
            if target - self.position.offset < BEHIND_BYTES && !*stop.borrow() {
                tokio::time::sleep_until(last_commit + PACE).await;
            }
            last_commit = Instant::now();
            self.let_others_first(target).await;
            // A panic on one event must not stop the others.
            let step = AssertUnwindSafe(self.step(target)).catch_unwind().await;
            match step.unwrap_or_else(|panic| Err(Failure::Panicked(panics::message(&*panic)))) {
                Ok(()) => wait = FIRST_WAIT,
                Err(Failure::Store(Error::Stopped)) => return,
                Err(Failure::Overfull { events }) => {
                    self.sizing.overfull(events);
                    self.blocks.clear();
                    tracing::debug!(
                        partition = self.partition,
                        events,
                        "a batch is too large and is split"
                    );
                }
                Err(failure) => {
                    self.sizing.failed(&failure);
                    self.blocks.clear();
                    tracing::error!(
                        partition = self.partition,
                        position = self.position.offset,
                        error = %failure,
                        "a batch was not applied; trying again"
                    );
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
            }
        }
    }

    /// Applies the next batch of the log before `target`.
    async fn step(&mut self, target: u64) -> Result<(), Failure> {
        let records = self.log.read(Offset(self.position.offset), READ_BYTES)?;
        if records.is_empty() {
            // No readable record is left before `target`.
            self.advance_to(Position::at(target));
            return Ok(());
        }
        let mut unreadable = Vec::new();
        let quarantine = |record: &Record, error: BatchError| {
            tracing::error!(
                offset = record.offset.0,
                %error,
                "an unreadable record of the log is quarantined"
            );
            unreadable.push(self.log.quarantine(record));
        };
        let max_events = if self.is_cautious() { CAUTIOUS_EVENTS } else { EVENTS };
        let max_events = self.sizing.max_events.min(max_events);
        let (mut apply_batch, next) =
            ApplyBatch::collect(self.partition, self.position, &records, max_events, quarantine);
        unreadable.into_iter().collect::<Result<(), _>>()?;
        // Only once, however often the batch is retried.
        if self.partition < LIVE_PARTITIONS && next > self.spikes_until {
            self.spikes_until = next;
            for (project, part) in &mut apply_batch.parts {
                self.spikes.note(*project, part);
            }
        }
        for (project, part) in &mut apply_batch.parts {
            part.spikes.extend(self.unreported_spikes.remove(project).unwrap_or_default());
        }
        if self.sizing.is_giving_up() {
            tracing::error!(
                partition = self.partition,
                position = self.position.offset,
                index = self.position.index,
                "an event could not be processed; it is dropped and shown as such"
            );
            apply_batch.give_up();
        }
        if apply_batch.parts.is_empty() && next.offset - self.stored.offset < MAX_UNSTORED_BYTES {
            self.advance_to(next);
            return Ok(());
        }
        let began = Instant::now();
        let applied = match self.transform(&mut apply_batch).await {
            Ok(()) => self.commit_with_retries(&mut apply_batch, next).await,
            Err(failure) => Err(failure),
        };
        match applied {
            Ok(loaded) => self.sizing.succeeded(began.elapsed(), loaded),
            Err(failure) => {
                let parts = apply_batch.parts.into_iter();
                let unreported = parts.filter(|(_, part)| !part.spikes.is_empty());
                self.unreported_spikes
                    .extend(unreported.map(|(project, part)| (project, part.spikes)));
                return Err(failure);
            }
        }
        Ok(())
    }

    /// Whether applying the next records may have ended the process before.
    fn is_cautious(&self) -> bool {
        self.position.offset < self.cautious_until
    }

    /// Runs the transformations on the new events of a batch. It runs once per batch,
    /// even if the batch is computed several times.
    async fn transform(&self, apply_batch: &mut ApplyBatch) -> Result<(), Failure> {
        let transform = &self.shared.transform;
        let concerned: BTreeSet<ProjectId> = apply_batch
            .parts
            .keys()
            .copied()
            .filter(|project| transform.concerns(*project))
            .collect();
        if concerned.is_empty() {
            return Ok(());
        }
        let stored_uuids =
            apply_batch.stored_uuids(&self.store, |project| concerned.contains(&project)).await?;
        apply_batch.drop_duplicates(&stored_uuids);
        apply_batch.transform(self.partition, &concerned, &**transform).await;
        Ok(())
    }

    /// Makes an import wait while live events wait to be applied.
    async fn let_others_first(&self, target: u64) {
        if self.partition < LIVE_PARTITIONS {
            return;
        }
        while target.saturating_sub(self.progress.lowest_live()) > BEHIND_BYTES {
            tokio::time::sleep(PACE).await;
        }
    }

    /// Applies a batch, and computes it again while other writes change the same rows.
    /// Returns the bytes of the persons and groups that it changed.
    async fn commit_with_retries(
        &mut self,
        apply_batch: &mut ApplyBatch,
        next: Position,
    ) -> Result<usize, Failure> {
        let mut retries = 0;
        let (written, loaded) = loop {
            let failed = match self.attempt(retries, next, apply_batch).await {
                Ok(written) => break written,
                // An event is stored already, or another partition committed the same
                // uuid, person or group first. Read the store again and continue from
                // there.
                Err(Failure::Store(
                    failed
                    @ (Error::Exists { .. } | Error::Refused { .. } | Error::Conflict { .. }),
                )) if retries < MAX_ATTEMPTS => failed,
                Err(failure) => return Err(failure),
            };
            retries += 1;
            self.blocks.clear();
            let stored = events::position(&self.store, self.partition).await?;
            // An earlier attempt may have been committed although its answer was an error.
            // Then the store is ahead: continue from its position.
            if stored != self.stored {
                self.stored = stored;
                tracing::info!(
                    partition = self.partition,
                    offset = stored.offset,
                    "an earlier attempt was committed; continuing after it"
                );
                self.advance_to(stored);
                return Ok(0);
            }
            if matches!(failed, Error::Exists { .. }) {
                let stored_uuids = apply_batch.stored_uuids(&self.store, |_| true).await?;
                apply_batch.drop_duplicates(&stored_uuids);
            }
        };
        self.stored = next;
        self.publish(apply_batch, written);
        self.advance_to(next);
        Ok(loaded)
    }

    /// Applies a batch together with the other consumers, or alone: after some retries, or
    /// if the batch is too large to share.
    async fn attempt(
        &mut self,
        retries: u32,
        next: Position,
        apply_batch: &ApplyBatch,
    ) -> Result<(HashMap<ProjectId, Written>, usize), Failure> {
        let shared = Arc::clone(&self.shared);
        if retries < SHARED_ATTEMPTS {
            let _guard = shared.applying.read().await;
            match self.apply(&shared.cache, next, apply_batch, SHARED_MAX_BYTES).await {
                // Too large to share. The blocks have events of this attempt: read them
                // again, and apply alone.
                Err(Failure::Overfull { .. }) => self.blocks.clear(),
                outcome => return outcome,
            }
        }
        let _alone = shared.applying.write().await;
        // A single event concerns few persons, however large they are.
        let max_bytes = match apply_batch.events() {
            0 | 1 => usize::MAX,
            _ if self.is_cautious() => SHARED_MAX_BYTES,
            _ => ALONE_MAX_BYTES,
        };
        self.apply(&shared.cache, next, apply_batch, max_bytes).await
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

    /// Computes the effects of a batch and writes them, unless its persons and groups
    /// have more than `max_bytes` bytes. Returns how many bytes they have.
    async fn apply(
        &mut self,
        cache: &StoreCache,
        next: Position,
        apply_batch: &ApplyBatch,
        max_bytes: usize,
    ) -> Result<(HashMap<ProjectId, Written>, usize), Failure> {
        let mut budget = ByteBudget::of(max_bytes);
        let partition = self.partition;
        let mut effects = Apply { partition, from: self.stored, to: next, projects: Vec::new() };
        let mut written = HashMap::new();
        let mut cache_update = Vec::new();
        let mut counted = Vec::new();
        for (project, part) in &apply_batch.parts {
            let mut write = ProjectWrite::new(*project);
            let processed =
                cache.process(&self.store, *project, part, &mut write, &mut budget).await?;
            let Some(Processed { events, cache_update: new }) = processed else {
                return Err(Failure::Overfull { events: apply_batch.events() });
            };
            let affected = tally::affected(part, &events);
            self.blocks
                .add(&self.store, *project, partition, &events, &affected, &mut write)
                .await?;
            write.warnings = tally::warnings(part, &events);
            counted.push((*project, tally::traffic(&events, &write.warnings)));
            let first_affected =
                write.head.samples - i64::try_from(affected.len()).unwrap_or(i64::MAX);
            effects.projects.push(write);
            written.insert(*project, Written { events, first_affected });
            cache_update.push(new);
        }
        let warnings: Vec<WarningCount> =
            effects.projects.iter().flat_map(|write| write.warnings.clone()).collect();
        match events::apply(&self.store, effects).await {
            Ok(()) => cache_update.into_iter().for_each(|new| cache.commit(new)),
            Err(error) => {
                cache_update.iter().for_each(|new| cache.forget(new));
                return Err(error.into());
            }
        }
        self.shared.outcomes.count(&warnings);
        for (project, applied) in &counted {
            self.store.traffic().applied(*project, applied);
        }
        Ok((written, max_bytes - budget.left()))
    }

    fn advance_to(&mut self, position: Position) {
        self.position = position;
        self.progress.set_applied(self.partition, position.offset);
        self.progress.set_stored(self.partition, self.stored.offset);
        self.progress.release_before(&*self.log);
    }

    fn publish(&self, apply_batch: &ApplyBatch, written: HashMap<ProjectId, Written>) {
        for (project, Written { events, first_affected }) in written {
            if !self.live.is_watched(project) {
                continue;
            }
            for event in &events {
                self.live.publish(project, live::accepted(project, event));
            }
            let skips = apply_batch.parts.get(&project).map(|part| part.skips.as_slice());
            for (number, skip) in (first_affected..).zip(skips.unwrap_or_default()) {
                let skipped = Skipped {
                    key: sample_key(self.partition.into(), number),
                    code: skip.dropped.reason.code().to_owned(),
                    received_at: Timestamp::from_micros(skip.received_at),
                    detail: skip.detail.clone(),
                    event: skip.dropped.event.clone(),
                    distinct_id: skip.dropped.distinct_id.clone(),
                    payload: skip.dropped.sample.clone(),
                };
                self.live.publish(project, live::dropped(skipped));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BatchSizing, Failure, MAX_FAILURES_OF_EVENT};

    /// An acknowledged event is not dropped because the store failed for a while.
    #[test]
    fn an_event_is_kept_when_dropping_it_fails_too() {
        let failure = || Failure::Panicked(String::new());
        let mut sizing = BatchSizing { max_events: 1, failures_of_event: 0 };
        for _ in 0..MAX_FAILURES_OF_EVENT {
            assert!(!sizing.is_giving_up());
            sizing.failed(&failure());
        }
        assert!(sizing.is_giving_up());
        sizing.failed(&failure());
        assert!(!sizing.is_giving_up(), "the event is tried again");
    }
}
