//! The loop of one partition.

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
use weir_store::{Error, Room, Store, live};

use super::blocks::Blocks;
use super::process::{Known, Processed};
use super::spikes::Spikes;
use super::stretch::{EVENTS, Spike, Stretch};
use super::tally;
use crate::batch::BatchError;
use crate::live::LiveFeed;
use crate::location::Locations;
use crate::log::{IngestLog, LogError, Offset, Record};
use crate::transform::Transform;

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
/// After so many looks the other consumers wait, so that the next one counts.
const LOOKS_TOGETHER: u32 = 2;
/// How often a single event is tried before it is given up.
const TRIES: u32 = 3;
/// Stretches that take longer become smaller,
const LONG: Duration = Duration::from_secs(5);
/// those that take less become larger again.
const SHORT: Duration = Duration::from_secs(1);
/// Bytes of persons and groups that a stretch changes while other partitions apply
/// theirs. Changing them takes several times that: as read, as worked out, as written,
/// and in the buffers of the engine.
const SHARED: usize = 4 << 20;
/// The same of a stretch that is applied alone. One with more is cut short.
const ALONE: usize = 32 << 20;
/// Events of a stretch at most, where applying one may have ended the process.
const CAREFUL: usize = 64;

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

    /// The position that has to move for something to become readable: imports wait
    /// while live events are behind.
    pub(crate) fn next_to_move(&self, end: u64) -> u64 {
        let live = self.lowest_live();
        if end.saturating_sub(live) > WORTH { live } else { self.lowest() }
    }

    /// The lowest position that a partition of live events has applied.
    fn lowest_live(&self) -> u64 {
        let live = self.positions.iter().take(LIVE_PARTITIONS.into());
        live.map(|position| position.load(Ordering::Acquire)).min().unwrap_or(u64::MAX)
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

/// What the consumers of all partitions share.
pub(crate) struct Together {
    known: Known,
    transform: Option<Arc<dyn Transform>>,
    /// Held by all while they apply, and by one alone that was too late often.
    turns: RwLock<()>,
    outcomes: Arc<Outcomes>,
}

impl Together {
    pub(crate) fn new(
        locations: Option<Arc<Locations>>,
        transform: Option<Arc<dyn Transform>>,
        outcomes: Arc<Outcomes>,
    ) -> Self {
        Self { known: Known::new(locations), transform, turns: RwLock::default(), outcomes }
    }
}

/// What processing skipped and altered, counted until somebody asks.
#[derive(Debug, Default)]
pub(crate) struct Outcomes(Mutex<HashMap<Outcome, u64>>);

impl Outcomes {
    /// What was counted since this was asked last.
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

/// What processing did with an event beside storing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It was skipped.
    Dropped(DropReason),
    /// It was stored altered, or not all of it was done.
    Altered(Warning),
}

impl Outcome {
    /// What a code stands for; `None` for what is counted where it was decided.
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

/// What was written of a project, for those who watch it.
struct Written {
    events: Vec<events::StoredEvent>,
    /// Number of the first dropped event: it names the rows of the live list as the
    /// store does.
    first_affected: i64,
}

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
    pub(crate) together: Arc<Together>,
    pub(crate) blocks: Blocks,
    pub(crate) care: Care,
    pub(crate) spikes: Spikes,
    /// Up to where floods were looked for.
    pub(crate) noted: Position,
    /// Floods that were found in a stretch which was not applied.
    pub(crate) unsaid: BTreeMap<ProjectId, Vec<Spike>>,
    /// Up to this offset stretches are small: the process ended while the log before
    /// it was applied, and perhaps because of that.
    pub(crate) careful_until: u64,
}

/// How carefully a consumer goes on: with fewer events at a time after a
/// failure that one of them may be to blame for, until it has found it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Care {
    /// Events of the next stretch at most.
    most: usize,
    /// How often the only event of a stretch has failed.
    tried: u32,
}

impl Default for Care {
    fn default() -> Self {
        Self { most: EVENTS, tried: 0 }
    }
}

impl Care {
    /// Stretches become as large as this machine applies in a moment: what takes
    /// long keeps others waiting, and in the end meets the engine's limit.
    fn succeeded(&mut self, took: Duration, loaded: usize) {
        self.tried = 0;
        if took > LONG {
            self.most = (self.most / 2).max(1);
        } else if took < SHORT && loaded < ALONE / 2 {
            self.most = (self.most * 2).min(EVENTS);
        }
    }

    /// Whether the only event of the next stretch is left out.
    fn is_giving_up(self) -> bool {
        self.tried >= TRIES
    }

    /// A stretch was too large to be worked out.
    fn overfull(&mut self, events: usize) {
        self.most = (events / 2).max(1);
    }

    fn failed(&mut self, failure: &Failure) {
        if self.is_giving_up() {
            // Not even without the event: it is not to blame, and is tried again.
            self.tried = 0;
        } else if !failure.may_pass_with_fewer() {
            // The disk or the moment: the same again.
        } else if self.most > 1 {
            self.most /= 2;
        } else if failure.may_be_an_event() {
            self.tried += 1;
        }
    }
}

/// Why a stretch was not applied.
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
    /// Whether an event may be to blame, and not the disk or the moment.
    fn may_be_an_event(&self) -> bool {
        match self {
            Self::Panicked(_) => true,
            Self::Store(error) => {
                matches!(error, Error::Shape { .. } | Error::Exists { .. } | Error::Refused { .. })
            }
            Self::Log(_) | Self::Overfull { .. } => false,
        }
    }

    /// Whether a smaller stretch may be applied.
    fn may_pass_with_fewer(&self) -> bool {
        self.may_be_an_event() || matches!(self, Self::Store(Error::Timeout { .. }))
    }
}

impl Consumer {
    /// Applies what is in the log and what comes, until `stop` is true and the
    /// log's end is reached.
    pub(crate) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut end = self.log.end();
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
            self.let_others_first(target).await;
            // A defect that one event brings to light must not stop the others.
            let step = AssertUnwindSafe(self.step(target)).catch_unwind().await;
            match step.unwrap_or_else(|panic| Err(Failure::Panicked(panics::message(&*panic)))) {
                Ok(()) => wait = FIRST_WAIT,
                Err(Failure::Store(Error::Stopped)) => return,
                Err(Failure::Overfull { events }) => {
                    self.care.overfull(events);
                    self.blocks.clear();
                    tracing::debug!(partition = self.partition, events, "a stretch is cut short");
                }
                Err(failure) => {
                    self.care.failed(&failure);
                    self.blocks.clear();
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
    async fn step(&mut self, target: u64) -> Result<(), Failure> {
        let records = self.log.read(Offset(self.position.offset), STRETCH)?;
        if records.is_empty() {
            // Nothing sound is left up to there.
            self.reached(Position::at(target));
            return Ok(());
        }
        let mut unreadable = Vec::new();
        let aside = |record: &Record, error: BatchError| {
            tracing::error!(offset = record.offset.0, %error, "a record of the log is set aside");
            unreadable.push(self.log.set_aside(record));
        };
        let most = if self.is_careful() { CAREFUL } else { EVENTS };
        let most = self.care.most.min(most);
        let (mut stretch, next) =
            Stretch::collect(self.partition, self.position, &records, most, aside);
        unreadable.into_iter().collect::<Result<(), _>>()?;
        // Once, however often the stretch is tried.
        if self.partition < LIVE_PARTITIONS && next > self.noted {
            self.noted = next;
            for (project, part) in &mut stretch.parts {
                self.spikes.note(*project, part);
            }
        }
        for (project, part) in &mut stretch.parts {
            part.spikes.extend(self.unsaid.remove(project).unwrap_or_default());
        }
        if self.care.is_giving_up() {
            tracing::error!(
                partition = self.partition,
                position = self.position.offset,
                index = self.position.index,
                "an event could not be processed; it is skipped and shown as such"
            );
            stretch.give_up();
        }
        if stretch.parts.is_empty() && next.offset - self.stored.offset < UNSTORED {
            self.reached(next);
            return Ok(());
        }
        let began = Instant::now();
        let applied = match self.transform(&mut stretch).await {
            Ok(()) => self.settle(&mut stretch, next).await,
            Err(failure) => Err(failure),
        };
        match applied {
            Ok(loaded) => self.care.succeeded(began.elapsed(), loaded),
            Err(failure) => {
                let parts = stretch.parts.into_iter();
                let said = parts.filter(|(_, part)| !part.spikes.is_empty());
                self.unsaid.extend(said.map(|(project, part)| (project, part.spikes)));
                return Err(failure);
            }
        }
        Ok(())
    }

    /// Whether applying what comes next may have ended the process before.
    fn is_careful(&self) -> bool {
        self.position.offset < self.careful_until
    }

    /// Has the events of a stretch transformed: those that are new, and once,
    /// however often the stretch is looked at.
    async fn transform(&self, stretch: &mut Stretch) -> Result<(), Failure> {
        let Some(transform) = &self.together.transform else { return Ok(()) };
        let concerned: BTreeSet<ProjectId> =
            stretch.parts.keys().copied().filter(|project| transform.concerns(*project)).collect();
        if concerned.is_empty() {
            return Ok(());
        }
        let known = stretch.stored(&self.store, |project| concerned.contains(&project)).await?;
        stretch.drop_duplicates(&known);
        stretch.transform(self.partition, &concerned, &**transform).await;
        Ok(())
    }

    /// An import waits while live events wait to be applied.
    async fn let_others_first(&self, target: u64) {
        if self.partition < LIVE_PARTITIONS {
            return;
        }
        while target.saturating_sub(self.progress.lowest_live()) > WORTH {
            tokio::time::sleep(PACE).await;
        }
    }

    /// Applies a stretch, looking again as long as something of it was changed
    /// meanwhile by others. Gives the bytes of persons and groups that it concerned.
    async fn settle(&mut self, stretch: &mut Stretch, next: Position) -> Result<usize, Failure> {
        let mut looks = 0;
        let (written, loaded) = loop {
            let failed = match self.take_turn(looks, next, stretch).await {
                Ok(written) => break written,
                // Something is stored already, or another partition was faster
                // with the same uuid, person or group: look, and take what is
                // stored as the truth.
                Err(Failure::Store(
                    failed
                    @ (Error::Exists { .. } | Error::Refused { .. } | Error::Conflict { .. }),
                )) if looks < LOOKS => failed,
                Err(failure) => return Err(failure),
            };
            looks += 1;
            self.blocks.clear();
            let stored = events::position(&self.store, self.partition).await?;
            if stored != self.stored {
                self.stored = stored;
                let offset = stored.offset;
                tracing::info!(partition = self.partition, offset, "taking the stored position");
                self.reached(stored);
                return Ok(0);
            }
            if matches!(failed, Error::Exists { .. }) {
                let known = stretch.stored(&self.store, |_| true).await?;
                stretch.drop_duplicates(&known);
            }
        };
        self.stored = next;
        self.publish(stretch, written);
        self.reached(next);
        Ok(loaded)
    }

    async fn take_turn(
        &mut self,
        looks: u32,
        next: Position,
        stretch: &Stretch,
    ) -> Result<(HashMap<ProjectId, Written>, usize), Failure> {
        let together = Arc::clone(&self.together);
        if looks < LOOKS_TOGETHER {
            let _turn = together.turns.read().await;
            match self.apply(&together.known, next, stretch, SHARED).await {
                // What it has begun to fill is filled again.
                Err(Failure::Overfull { .. }) => self.blocks.clear(),
                outcome => return outcome,
            }
        }
        let _alone = together.turns.write().await;
        // The persons of a single event are few, however large they are.
        let room = match stretch.events() {
            0 | 1 => usize::MAX,
            _ if self.is_careful() => SHARED,
            _ => ALONE,
        };
        self.apply(&together.known, next, stretch, room).await
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

    /// Works out what a stretch does and writes it, unless its persons and groups have
    /// more than `most` bytes. Gives how many they have.
    async fn apply(
        &mut self,
        known: &Known,
        next: Position,
        stretch: &Stretch,
        most: usize,
    ) -> Result<(HashMap<ProjectId, Written>, usize), Failure> {
        let mut room = Room::of(most);
        let partition = self.partition;
        let mut effects = Apply { partition, from: self.stored, to: next, projects: Vec::new() };
        let mut written = HashMap::new();
        let mut learned = Vec::new();
        let mut counted = Vec::new();
        for (project, part) in &stretch.parts {
            let mut write = ProjectWrite::new(*project);
            let processed =
                known.process(&self.store, *project, part, &mut write, &mut room).await?;
            let Some(Processed { events, learned: new }) = processed else {
                return Err(Failure::Overfull { events: stretch.events() });
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
            learned.push(new);
        }
        let warnings: Vec<WarningCount> =
            effects.projects.iter().flat_map(|write| write.warnings.clone()).collect();
        match events::apply(&self.store, effects).await {
            Ok(()) => learned.into_iter().for_each(|new| known.learn(new)),
            Err(error) => {
                learned.iter().for_each(|new| known.forget(new));
                return Err(error.into());
            }
        }
        self.together.outcomes.count(&warnings);
        for (project, applied) in &counted {
            self.store.traffic().applied(*project, applied);
        }
        Ok((written, most - room.left()))
    }

    fn reached(&mut self, position: Position) {
        self.position = position;
        self.progress.reached(self.partition, position.offset);
        self.log.retain(Offset(self.progress.lowest()));
    }

    fn publish(&self, stretch: &Stretch, written: HashMap<ProjectId, Written>) {
        for (project, Written { events, first_affected }) in written {
            if !self.live.is_watched(project) {
                continue;
            }
            for event in &events {
                self.live.publish(project, live::accepted(project, event));
            }
            let skips = stretch.parts.get(&project).map(|part| part.skips.as_slice());
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
    use super::{Care, Failure, TRIES};

    /// What was acknowledged is not given up because the store failed for a while.
    #[test]
    fn an_event_is_kept_when_leaving_it_out_fails_too() {
        let failure = || Failure::Panicked(String::new());
        let mut care = Care { most: 1, tried: 0 };
        for _ in 0..TRIES {
            assert!(!care.is_giving_up());
            care.failed(&failure());
        }
        assert!(care.is_giving_up());
        care.failed(&failure());
        assert!(!care.is_giving_up(), "the event is tried again");
    }
}
