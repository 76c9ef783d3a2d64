//! Writes a planned batch and passes it on.
//!
//! What belongs here: the transaction of a batch, and everything that follows a commit:
//! caches, counts, the live feed, blocks for readers, the position. What does not: what is
//! written (`planner`), and what happens after a failure (`consumer`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::Instrument as _;
use tracing::field::Empty;
use weir_model::{ProjectId, Timestamp, traces};
use weir_store::events::{self, Position};
use weir_store::warnings::{Skipped, sample_key};
use weir_store::{Store, live};

use super::apply_batch::ApplyBatch;
use super::consumer::SharedState;
use super::planner::{Effects, Plan, Written};
use super::process::Finished;
use super::progress::Progress;
use super::sizing::Failure;
use crate::live::LiveFeed;
use crate::log::IngestLog;

/// Commits the batches of one partition, one after another.
#[derive(Clone)]
pub(super) struct Committer {
    pub(super) partition: u16,
    pub(super) log: Arc<dyn IngestLog>,
    pub(super) store: Store,
    pub(super) live: LiveFeed,
    pub(super) progress: Arc<Progress>,
    pub(super) shared: Arc<SharedState>,
}

/// A committed batch.
pub(super) struct Committed {
    /// The position after the batch.
    pub(super) to: Position,
    /// How long planning and committing took.
    pub(super) took: Duration,
    /// Bytes of the persons and groups that it changed.
    pub(super) loaded: usize,
}

/// A batch that was not applied.
pub(super) struct FailedBatch {
    pub(super) batch: ApplyBatch,
    /// The position after the batch.
    pub(super) to: Position,
    pub(super) failure: Failure,
}

impl Committer {
    /// Writes the effects of a batch with its position, all or nothing. What follows a
    /// commit has happened when this returns.
    pub(super) async fn commit(self, plan: Plan) -> Result<Committed, Box<FailedBatch>> {
        let span = tracing::info_span!(
            target: traces::TARGET,
            "commit events",
            trace.id = Empty,
            weir.partition = self.partition,
            weir.events = plan.batch.events()
        );
        self.write(plan).instrument(span).await
    }

    async fn write(self, plan: Plan) -> Result<Committed, Box<FailedBatch>> {
        let began = Instant::now();
        let Plan { batch, to, effects, permit } = plan;
        let Effects { apply, written, cache_updates, traffic, warnings, loaded, took } = effects;
        let cache = &self.shared.cache;
        match events::apply(&self.store, apply).await {
            Ok(()) => cache_updates.into_iter().for_each(|update| cache.commit(update)),
            Err(error) => {
                cache_updates.iter().for_each(|update| cache.forget(update));
                return Err(Box::new(FailedBatch { batch, to, failure: error.into() }));
            }
        }
        drop(permit);
        self.shared.outcomes.count(&warnings);
        for (project, applied) in &traffic {
            self.store.traffic().applied(*project, applied);
        }
        self.publish(&batch, written);
        self.advance(to, to);
        Ok(Committed { to, took: took + began.elapsed(), loaded })
    }

    /// Moves the applied and the stored position.
    pub(super) fn advance(&self, applied: Position, stored: Position) {
        self.progress.set_applied(self.partition, applied.offset);
        self.progress.set_stored(self.partition, stored.offset);
        self.progress.release_before(&*self.log);
    }

    fn publish(&self, batch: &ApplyBatch, written: HashMap<ProjectId, Written>) {
        for (project, Written { finished, blocks, first_affected }) in written {
            if self.live.is_watched(project) {
                self.publish_live(batch, project, &finished, first_affected);
            }
            events::share(&self.store, project, self.partition, blocks);
        }
    }

    fn publish_live(
        &self,
        batch: &ApplyBatch,
        project: ProjectId,
        finished: &[Finished],
        first_affected: i64,
    ) {
        let part = batch.parts.get(&project);
        for event in part.map(|part| Finished::all(part, finished)).unwrap_or_default() {
            self.live.publish(project, live::accepted(project, &event.to_stored()));
        }
        let skips = batch.parts.get(&project).map(|part| part.skips.as_slice());
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
