//! The loop of one partition.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use weir_model::{ProjectId, Timestamp};
use weir_store::events::{self, Apply, Position};
use weir_store::warnings::{Skipped, sample_key};
use weir_store::{Error, Store, live};

use super::stretch::{Memory, Stretch};
use crate::live::LiveFeed;
use crate::log::{IngestLog, LogError, Offset};

/// Memory of the records that are read for a stretch.
const STRETCH: usize = 8 << 20;
/// Commits of one partition come at least this far apart while traffic is slow
/// enough to wait: many small writes would cost more than they are worth.
const PACE: Duration = Duration::from_millis(80);
/// Bytes of the log without anything for a partition, after which its position
/// is stored nevertheless.
const UNSTORED: u64 = 16 << 20;
/// A stretch of this size is worth writing at once.
const WORTH: u64 = 512 << 10;
/// Waits after a failure double from here.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// How often a stretch is looked at again because something of it was stored
/// meanwhile, before that counts as a failure.
const LOOKS: u32 = 8;

/// How far the partitions are, as everybody may read it.
#[derive(Debug)]
pub(crate) struct Progress {
    positions: Vec<AtomicU64>,
    changed: watch::Sender<u64>,
}

impl Progress {
    pub(crate) fn new(positions: Vec<u64>) -> Self {
        let lowest = positions.iter().copied().min().unwrap_or(0);
        Self {
            positions: positions.into_iter().map(AtomicU64::new).collect(),
            changed: watch::channel(lowest).0,
        }
    }

    /// The lowest applied position: everything before it is readable.
    pub(crate) fn lowest(&self) -> u64 {
        self.positions.iter().map(|p| p.load(Ordering::Acquire)).min().unwrap_or(0)
    }

    /// Every change of the lowest position.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn reached(&self, partition: u16, position: u64) {
        if let Some(place) = self.positions.get(usize::from(partition)) {
            place.store(position, Ordering::Release);
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

/// Number of the first sample that a stretch writes, by project: it names the
/// rows of the live list as the store does.
type SampleNumbers = HashMap<ProjectId, i64>;

/// The consumer of one partition.
pub(crate) struct Consumer {
    pub(crate) partition: u16,
    /// How far it is.
    pub(crate) position: Position,
    /// The position in the store: it stays behind where nothing was to be done.
    pub(crate) stored: Position,
    pub(crate) log: Arc<dyn IngestLog>,
    pub(crate) store: Store,
    pub(crate) live: LiveFeed,
    pub(crate) progress: Arc<Progress>,
}

/// Why a stretch was not applied.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Store(#[from] Error),
    #[error(transparent)]
    Record(#[from] crate::batch::BatchError),
}

impl Consumer {
    /// Applies what is in the log and what comes, until `stop` is true and the
    /// log's end is reached.
    pub(crate) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut end = self.log.end();
        let mut memory = Memory::default();
        let mut last_commit = Instant::now() - PACE;
        let mut wait = FIRST_WAIT;
        loop {
            let target = end.borrow_and_update().0;
            if self.position.offset >= target {
                if *stop.borrow() {
                    return self.store_position().await;
                }
                tokio::select! {
                    changed = end.changed() => if changed.is_err() { return },
                    // The stop changes, or its sender is gone: look again.
                    _ = stop.changed() => {}
                }
                continue;
            }
            if target - self.position.offset < WORTH && !*stop.borrow() {
                tokio::time::sleep_until(last_commit + PACE).await;
            }
            last_commit = Instant::now();
            match self.step(&mut memory, target).await {
                Ok(()) => wait = FIRST_WAIT,
                Err(Failure::Store(Error::Stopped)) => return,
                Err(failure) => {
                    memory.clear();
                    tracing::error!(
                        partition = self.partition,
                        position = self.position.offset,
                        error = %failure,
                        "a stretch of the log was not applied; trying again"
                    );
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
            }
        }
    }

    /// Applies the next stretch of what is in the log before `target`.
    async fn step(&mut self, memory: &mut Memory, target: u64) -> Result<(), Failure> {
        let records = self.log.read(Offset(self.position.offset), STRETCH)?;
        if records.is_empty() {
            // Nothing sound is left up to there.
            self.reached(Position::at(target));
            return Ok(());
        }
        let (mut stretch, next) = Stretch::collect(self.partition, self.position, &records)?;
        if stretch.parts.is_empty() && next.offset - self.stored.offset < UNSTORED {
            self.reached(next);
            return Ok(());
        }
        let mut looks = 0;
        let numbers = loop {
            match self.apply(memory, next, &stretch).await {
                Ok(numbers) => break numbers,
                // Something is stored already, or another partition was faster
                // with the same uuid or person: look, and take what is stored
                // as the truth.
                Err(Error::Exists { .. } | Error::Refused { .. } | Error::Conflict { .. })
                    if looks < LOOKS =>
                {
                    looks += 1;
                    memory.clear();
                }
                Err(error) => return Err(error.into()),
            }
            let stored = events::position(&self.store, self.partition).await?;
            if stored != self.stored {
                self.stored = stored;
                let offset = stored.offset;
                tracing::info!(partition = self.partition, offset, "taking the stored position");
                self.reached(stored);
                return Ok(());
            }
            let known = stretch.stored(&self.store).await?;
            stretch.drop_duplicates(&known);
        };
        self.stored = next;
        self.publish(&stretch, &numbers);
        self.reached(next);
        Ok(())
    }

    /// Notes how far it came, so that the next start need not look again.
    async fn store_position(&self) {
        if self.stored == self.position {
            return;
        }
        let effects = Apply {
            partition: self.partition,
            from: self.stored,
            to: self.position,
            projects: Vec::new(),
        };
        if let Err(error) = events::apply(&self.store, effects).await {
            tracing::warn!(partition = self.partition, %error, "the position was not stored");
        }
    }

    async fn apply(
        &self,
        memory: &mut Memory,
        next: Position,
        stretch: &Stretch,
    ) -> Result<SampleNumbers, Error> {
        let effects =
            memory.effects(&self.store, self.partition, self.stored, next, stretch).await?;
        let numbers = effects
            .projects
            .iter()
            .map(|write| {
                let skips = stretch.parts.get(&write.project).map_or(0, |part| part.skips.len());
                (write.project, write.head.first_sample(skips))
            })
            .collect();
        events::apply(&self.store, effects).await?;
        Ok(numbers)
    }

    fn reached(&mut self, position: Position) {
        self.position = position;
        self.progress.reached(self.partition, position.offset);
        self.log.retain(Offset(self.progress.lowest()));
    }

    fn publish(&self, stretch: &Stretch, numbers: &SampleNumbers) {
        for (project, part) in &stretch.parts {
            if !self.live.is_watched(*project) {
                continue;
            }
            for item in &part.items {
                if let Some(event) = item.event() {
                    self.live.publish(*project, live::accepted(*project, &item.stored(event)));
                }
            }
            let first = numbers.get(project).copied().unwrap_or(0);
            for (number, skip) in (first..).zip(&part.skips) {
                let skipped = Skipped {
                    key: sample_key(self.partition.into(), number),
                    code: skip.dropped.reason.code().to_owned(),
                    received_at: Timestamp::from_micros(skip.received_at),
                    event: skip.dropped.event.clone(),
                    distinct_id: skip.dropped.distinct_id.clone(),
                    payload: skip.dropped.sample.clone(),
                };
                self.live.publish(*project, live::dropped(skipped));
            }
        }
    }
}
