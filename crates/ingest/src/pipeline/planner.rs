//! From a batch to the records that it writes.
//!
//! The planner of a partition may work on a batch while the one before is committed. It
//! then takes from memory what that batch writes: the open blocks, and the persons
//! ([`UncommittedWrites`]). A batch that also writes groups or names is committed first.
//!
//! What belongs here: the effects of a batch as one value. What does not: the effects of
//! single events (`process`), writing (`committer`), retries (`consumer`).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::Instrument as _;
use tracing::field::Empty;
use weir_model::{PersonId, ProjectId, traces};
use weir_store::events::{Added, Apply, Position, ProjectWrite, WarningCount};
use weir_store::persons::Stored;
use weir_store::{ByteBudget, Store, traffic};

use super::apply_batch::ApplyBatch;
use super::blocks::Blocks;
use super::consumer::{Permit, SharedState};
use super::process::{CacheUpdate, Finished, Processed};
use super::sizing::Failure;
use super::tally;

/// The planner of one partition.
pub(super) struct Planner {
    partition: u16,
    store: Store,
    shared: Arc<SharedState>,
    blocks: Blocks,
}

/// A batch and its effects, ready to be committed.
pub(super) struct Plan {
    pub(super) batch: ApplyBatch,
    /// The position after the batch.
    pub(super) to: Position,
    pub(super) effects: Effects,
    /// Held until the batch is committed.
    pub(super) permit: Permit,
}

/// The effects of a batch.
pub(super) struct Effects {
    pub(super) apply: Apply,
    /// What is written of each project, for the live feed and for readers.
    pub(super) written: HashMap<ProjectId, Written>,
    pub(super) cache_updates: Vec<CacheUpdate>,
    pub(super) traffic: Vec<(ProjectId, traffic::Applied)>,
    pub(super) warnings: Vec<WarningCount>,
    /// Bytes of the persons and groups that the batch changes.
    pub(super) loaded: usize,
    /// How long planning took.
    pub(super) took: Duration,
}

/// What is written of a project, for the live feed and for readers.
pub(super) struct Written {
    /// For each event, what processing changed in its stored form.
    pub(super) finished: Vec<Finished>,
    /// The events of the last blocks.
    pub(super) blocks: Vec<Added>,
    /// The number of the first of these dropped events. Dropped and altered events of a
    /// project share one count per partition. The keys of rows in the live list are
    /// computed from it, as in the store.
    pub(super) first_affected: i64,
}

/// What a batch writes that is being committed, as far as the next batch reads it.
#[derive(Debug, Default)]
pub(super) struct UncommittedWrites {
    projects: Vec<ProjectId>,
    persons: HashMap<(ProjectId, PersonId), Arc<Stored>>,
}

impl UncommittedWrites {
    /// The person with this id.
    pub(super) fn person(&self, project: ProjectId, id: PersonId) -> Option<&Arc<Stored>> {
        self.persons.get(&(project, id))
    }
}

impl Effects {
    /// What the next batch needs to know of these effects before they are committed. `None`
    /// if it must wait for the commit.
    pub(super) fn uncommitted(&self) -> Option<UncommittedWrites> {
        let is_simple = |write: &ProjectWrite| {
            write.groups.is_empty()
                && write.group_types.is_none()
                && write.event_names.is_empty()
                && write.property_names.is_empty()
        };
        if !self.apply.projects.iter().all(is_simple) {
            return None;
        }
        let projects = self.apply.projects.iter().map(|write| write.project).collect();
        let persons = self.cache_updates.iter().flat_map(CacheUpdate::persons).collect();
        Some(UncommittedWrites { projects, persons })
    }
}

impl Planner {
    pub(super) fn new(partition: u16, store: Store, shared: Arc<SharedState>) -> Self {
        Self { partition, store, shared, blocks: Blocks::default() }
    }

    /// Forgets what memory has of open blocks. After a batch was not committed, only the
    /// store is right.
    pub(super) fn forget(&mut self) {
        self.blocks.clear();
    }

    /// Whether a batch can be planned before an earlier one is committed.
    pub(super) fn can_follow(&self, uncommitted: &UncommittedWrites, batch: &ApplyBatch) -> bool {
        self.concerned(batch).is_empty()
            && self.blocks.hold_all(&uncommitted.projects)
            && self.blocks.have_room_for(batch.parts.keys())
    }

    /// The projects of a batch that have transformations.
    fn concerned(&self, batch: &ApplyBatch) -> BTreeSet<ProjectId> {
        let projects = batch.parts.keys().copied();
        projects.filter(|project| self.shared.transform.concerns(*project)).collect()
    }

    /// Runs the transformations on the new events of a batch. It runs once per batch that
    /// was read, even if the batch is planned several times.
    pub(super) async fn transform(&self, batch: &mut ApplyBatch) -> Result<(), Failure> {
        let concerned = self.concerned(batch);
        if concerned.is_empty() {
            return Ok(());
        }
        let span = tracing::info_span!(
            target: traces::TARGET,
            "transform events",
            trace.id = Empty,
            weir.partition = self.partition,
            weir.events = batch.events()
        );
        let work = async {
            let stored = batch.stored_uuids(&self.store, |project| concerned.contains(&project));
            let stored = stored.await?;
            batch.drop_duplicates(&stored);
            batch.transform(self.partition, &concerned, &*self.shared.transform).await;
            Ok::<(), Failure>(())
        };
        work.instrument(span).await
    }

    /// Computes the effects of a batch, unless its persons and groups have more than
    /// `max_bytes` bytes. The store is at `from` when they are written. `uncommitted` is
    /// what the batch before is writing.
    pub(super) async fn plan(
        &mut self,
        batch: &ApplyBatch,
        (from, to): (Position, Position),
        uncommitted: Option<&UncommittedWrites>,
        max_bytes: usize,
    ) -> Result<Effects, Failure> {
        let began = Instant::now();
        if uncommitted.is_none() && !self.blocks.have_room_for(batch.parts.keys()) {
            self.blocks.clear();
        }
        let mut budget = ByteBudget::of(max_bytes);
        let apply = Apply { partition: self.partition, from, to, projects: Vec::new() };
        let mut effects = Effects {
            apply,
            written: HashMap::new(),
            cache_updates: Vec::new(),
            traffic: Vec::new(),
            warnings: Vec::new(),
            loaded: 0,
            took: Duration::ZERO,
        };
        for (project, part) in &batch.parts {
            let mut write = ProjectWrite::new(*project);
            let cache = &self.shared.cache;
            let processed =
                cache.process(&self.store, *project, part, uncommitted, &mut write, &mut budget);
            let Some(Processed { finished, cache_update }) = processed.await? else {
                return Err(Failure::Overfull { events: batch.events() });
            };
            let events = Finished::all(part, &finished);
            let affected = tally::affected(part, &events);
            let partition = self.partition;
            let blocks = self
                .blocks
                .add(&self.store, *project, partition, &events, &affected, &mut write)
                .await?;
            write.warnings = tally::warnings(part, &events);
            effects.traffic.push((*project, tally::traffic(&events, &write.warnings)));
            effects.warnings.extend(write.warnings.iter().cloned());
            let first_affected =
                write.head.samples - i64::try_from(affected.len()).unwrap_or(i64::MAX);
            effects.apply.projects.push(write);
            effects.written.insert(*project, Written { finished, blocks, first_affected });
            effects.cache_updates.push(cache_update);
        }
        effects.loaded = max_bytes - budget.left();
        effects.took = began.elapsed();
        Ok(effects)
    }
}
