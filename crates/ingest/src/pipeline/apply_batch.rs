//! A batch of the log for one partition.
//!
//! What belongs here: collecting the events of a batch, deduplication, and running the
//! transformations on them. What does not: their effects (`process`) and when a batch is
//! retried (`consumer`).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use uuid::Uuid;
use weir_model::live::SAMPLE_LIMIT;
use weir_model::outcomes::{DropReason, Warning};
use weir_model::{ProjectId, panics};
use weir_store::events::{self, LIVE_PARTITIONS, Position};
use weir_store::{Error, Store};

use super::tally::cut;
use crate::batch::BatchError;
use crate::log::Record;
use crate::logged::{EventView, LoggedBatch};
use crate::transform::{Changed, Transform, TransformInput, Transformed};
use weir_capture::{AcceptedEvent, DroppedEvent};

/// Upper bound of events in one transaction.
pub(super) const EVENTS: usize = 4_000;
/// Bytes of their properties after which no event is added.
const BYTES: usize = 6 << 20;

/// One event of the batch.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    batch: Arc<LoggedBatch>,
    index: usize,
    pub(crate) arrival: u64,
    /// The event after its transformations, if they changed it.
    changed: Option<Arc<AcceptedEvent>>,
}

impl Item {
    pub(crate) fn new(batch: Arc<LoggedBatch>, index: usize, arrival: u64) -> Self {
        Self { batch, index, arrival, changed: None }
    }

    pub(crate) fn event(&self) -> Option<EventView<'_>> {
        match &self.changed {
            Some(changed) => Some(EventView::from(&**changed)),
            None => self.batch.event(self.index),
        }
    }

    pub(crate) fn received_at(&self) -> i64 {
        self.batch.received_at
    }

    pub(crate) fn is_historical(&self) -> bool {
        self.batch.historical
    }

    /// The event as transformations receive it.
    fn given(&self) -> Option<TransformInput> {
        let event = self.batch.event(self.index)?.to_accepted();
        Some(TransformInput::new(event, self.batch.received_at, self.batch.network))
    }
}

/// One skipped event of the batch.
#[derive(Debug, Clone)]
pub(crate) struct Skip {
    pub(crate) received_at: i64,
    pub(crate) dropped: DroppedEvent,
    /// The transformation that dropped the event, which the reason does not name.
    pub(crate) detail: Option<String>,
}

impl Skip {
    fn of(event: EventView<'_>, received_at: i64, reason: DropReason) -> Self {
        let dropped = DroppedEvent {
            reason,
            event: Some(event.event.to_owned()),
            distinct_id: Some(event.distinct_id.to_owned()),
            uuid: Some(event.uuid),
            sample: cut(event.properties, SAMPLE_LIMIT).to_owned(),
        };
        Self { received_at, dropped, detail: None }
    }
}

impl Skip {
    /// An event that must not be stored without its transformation.
    fn unavailable(event: EventView<'_>, received_at: i64, detail: String) -> Self {
        let skip = Self::of(event, received_at, DropReason::TransformationUnavailable);
        Self { detail: Some(detail), ..skip }.withheld()
    }

    /// The same skip without the content that a transformation removes.
    fn withheld(mut self) -> Self {
        self.dropped.distinct_id = None;
        "{}".clone_into(&mut self.dropped.sample);
        self
    }
}

/// The events of one project in a batch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Part {
    pub(crate) items: Vec<Item>,
    pub(crate) skips: Vec<Skip>,
    /// Skipped events that are only counted.
    pub(crate) further: Vec<(DropReason, u64, i64)>,
    /// Spikes that the events belong to.
    pub(crate) spikes: Vec<Spike>,
}

/// A spike that events of a batch belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spike {
    pub(crate) warning: Warning,
    /// Events of the batch that belong to it.
    pub(crate) events: u64,
    /// When the last of them was received, in microseconds.
    pub(crate) at: i64,
    /// The distinct id. `None` for a spike of the whole project.
    pub(crate) of: Option<String>,
}

impl Part {
    async fn transform(&mut self, project: ProjectId, partition: u16, transform: &dyn Transform) {
        let given: Vec<TransformInput> = self.items.iter().filter_map(Item::given).collect();
        // Every item refers to a batch that has its event.
        if given.is_empty() || given.len() != self.items.len() {
            return;
        }
        // A panic there must not stop acknowledged events.
        let transforming =
            AssertUnwindSafe(transform.transform(project, partition, given)).catch_unwind();
        let results = match transforming.await {
            Ok(results) if results.len() == self.items.len() => results,
            Ok(results) => {
                let (given, got) = (self.items.len(), results.len());
                tracing::error!(%project, given, got, "transforming lost events");
                return self.omit(transform.may_be_omitted(project).await);
            }
            Err(panic) => {
                let panic = panics::message(&*panic);
                tracing::error!(%project, panic, "transforming panicked");
                return self.omit(transform.may_be_omitted(project).await);
            }
        };
        let mut kept = Vec::with_capacity(self.items.len());
        for (mut item, result) in std::mem::take(&mut self.items).into_iter().zip(results) {
            match result {
                Transformed::Unchanged => {}
                Transformed::Changed(changed) => item.changed = Some(changed.into_event().into()),
                Transformed::Dropped { config, name } => {
                    let Some(event) = item.event() else { continue };
                    let reason = DropReason::DroppedByTransformation;
                    let detail = Some(format!("dropped by {name} (config {config})"));
                    let skip = Skip::of(event, item.received_at(), reason);
                    self.skips.push(Skip { detail, ..skip });
                    continue;
                }
                Transformed::Unavailable { config, name } => {
                    let detail = format!("{name} (config {config}) could not be run");
                    self.skips.extend(
                        item.event()
                            .map(|event| Skip::unavailable(event, item.received_at(), detail)),
                    );
                    continue;
                }
            }
            kept.push(item);
        }
        self.items = kept;
    }

    /// Handles events that could not be transformed: they are stored with a warning, or
    /// dropped.
    fn omit(&mut self, is_allowed: bool) {
        if is_allowed {
            for item in &mut self.items {
                item.changed = item
                    .event()
                    .map(|event| Changed::without_a_step(event.to_accepted()).into_event().into());
            }
            return;
        }
        for item in std::mem::take(&mut self.items) {
            let detail = "the transformations could not be run".to_owned();
            let skip =
                item.event().map(|event| Skip::unavailable(event, item.received_at(), detail));
            self.skips.extend(skip);
        }
    }
}

/// The events of one partition in a batch of the log.
#[derive(Debug, Clone, Default)]
pub(crate) struct ApplyBatch {
    pub(crate) parts: BTreeMap<ProjectId, Part>,
}

impl ApplyBatch {
    /// Collects the events of `partition` from the records at `from` on, up to `most`
    /// events and the other bounds of one transaction. A record of many events is applied
    /// in several steps. Returns the position after the batch. A record that cannot be
    /// read is counted, and passed to `quarantine`.
    pub(crate) fn collect(
        partition: u16,
        from: Position,
        records: &[Arc<Record>],
        most: usize,
        mut quarantine: impl FnMut(&Record, BatchError),
    ) -> (Self, Position) {
        let most = most.max(1);
        let mut apply_batch = Self::default();
        let mut to = from;
        let (mut events, mut bytes) = (0, 0);
        for record in records {
            let project = record.project;
            let done = if record.offset.0 == from.offset { from.index } else { 0 };
            // Before its skipped events are added: they belong to the step with its first
            // event.
            if done == 0 && (events >= most || bytes >= BYTES) {
                return (apply_batch, Position::at(record.offset.0));
            }
            if done == 0 {
                apply_batch.collect_unreadable(partition, project, false, record.lost_before);
            }
            // All of its events belong to partitions of the other kind. It is not even
            // decoded.
            let is_historical = record.is_historical();
            let is_own_kind = |historical: bool| historical == (partition >= LIVE_PARTITIONS);
            if !is_historical.is_none_or(is_own_kind) {
                to = Position::at(record.next.0);
                continue;
            }
            let batch = match record.batch() {
                Ok(batch) => batch,
                Err(error) => {
                    let historical = is_historical.unwrap_or(false);
                    let events = u64::from(record.count.max(1));
                    apply_batch.collect_unreadable(partition, project, historical, events);
                    quarantine(record, error);
                    to = Position::at(record.next.0);
                    continue;
                }
            };
            if done == 0 {
                apply_batch.collect_dropped(partition, project, &batch);
            }
            if !is_own_kind(batch.historical) {
                to = Position::at(record.next.0);
                continue;
            }
            // Not skipped one by one: a record can be read in many small batches.
            let left = record.partitions(&batch).get(done as usize..).unwrap_or_default();
            for (index, own) in (done..).zip(left) {
                if u16::from(*own) != partition {
                    continue;
                }
                let Some(event) = batch.event(index as usize) else { break };
                if events >= most || bytes >= BYTES {
                    return (apply_batch, Position { offset: record.offset.0, index });
                }
                events += 1;
                bytes += event.properties.len();
                let arrival = record.first_arrival + u64::from(index);
                let item = Item::new(Arc::clone(&batch), index as usize, arrival);
                apply_batch.parts.entry(project).or_default().items.push(item);
            }
            to = Position::at(record.next.0);
        }
        (apply_batch, to)
    }

    /// Number of events.
    pub(crate) fn events(&self) -> usize {
        self.parts.values().map(|part| part.items.len()).sum()
    }

    /// Events that cannot be read cannot be assigned to partitions. One partition of the
    /// project counts them.
    fn collect_unreadable(
        &mut self,
        partition: u16,
        project: ProjectId,
        historical: bool,
        events: u64,
    ) {
        if events > 0 && events::partition(project, "", historical) == partition {
            let part = self.parts.entry(project).or_default();
            #[expect(clippy::disallowed_methods, reason = "their own time cannot be read either")]
            let now = chrono::Utc::now().timestamp_micros();
            part.further.push((DropReason::UnreadableRecord, events, now));
        }
    }

    /// Replaces all events by skips with the reason `not_processed`.
    pub(crate) fn give_up(&mut self) {
        for part in self.parts.values_mut() {
            for item in std::mem::take(&mut part.items) {
                let Some(event) = item.event() else { continue };
                part.skips.push(Skip::of(event, item.received_at(), DropReason::NotProcessed));
            }
        }
    }

    /// Skipped events have no person. One partition of the project counts them: for an
    /// import, one of the partitions for historical events.
    fn collect_dropped(&mut self, partition: u16, project: ProjectId, batch: &LoggedBatch) {
        let own = events::partition(project, "", batch.historical);
        if batch.dropped.is_empty() || own != partition {
            return;
        }
        let part = self.parts.entry(project).or_default();
        part.skips.extend(batch.dropped.iter().map(|dropped| Skip {
            received_at: batch.received_at,
            dropped: dropped.clone(),
            detail: None,
        }));
        let at = batch.received_at;
        part.further.extend(batch.further_drops.iter().map(|(r, n)| (*r, *n, at)));
    }

    /// Removes events whose uuid is repeated in the batch or is in `stored`. They become
    /// skips with the reason `duplicate_uuid`.
    pub(crate) fn drop_duplicates(&mut self, stored: &HashMap<ProjectId, HashSet<Uuid>>) {
        for (project, part) in &mut self.parts {
            let mut seen: HashSet<Uuid> = stored.get(project).cloned().unwrap_or_default();
            let skips = &mut part.skips;
            part.items.retain(|item| {
                let Some(event) = item.event() else { return false };
                let new = seen.insert(event.uuid);
                if !new {
                    skips.push(Skip::of(event, item.received_at(), DropReason::DuplicateUuid));
                }
                new
            });
        }
    }

    /// Transforms the events of these projects, all projects concurrently. Dropped events
    /// become skips that name the transformation. After a failure, the events of the
    /// project stay as they are. Where a transformation is mandatory, skips lose their
    /// samples, and spikes lose their distinct id.
    pub(crate) async fn transform(
        &mut self,
        partition: u16,
        concerned: &BTreeSet<ProjectId>,
        transform: &dyn Transform,
    ) {
        let parts = self.parts.iter_mut().filter(|(project, _)| concerned.contains(*project));
        let all = parts.map(async |(project, part)| {
            part.transform(*project, partition, transform).await;
            // Duplicates, events that capture refused, and events that a transformation
            // dropped: none of these samples has passed all transformations.
            let has_samples = !part.skips.is_empty() || !part.spikes.is_empty();
            if has_samples && !transform.may_be_omitted(*project).await {
                let skips = std::mem::take(&mut part.skips);
                part.skips = skips.into_iter().map(Skip::withheld).collect();
                part.spikes.iter_mut().for_each(|spike| spike.of = None);
            }
        });
        futures::future::join_all(all).await;
    }

    /// The uuids of the batch that are stored already, in the projects that are `wanted`.
    pub(crate) async fn stored_uuids(
        &self,
        store: &Store,
        wanted: impl Fn(ProjectId) -> bool,
    ) -> Result<HashMap<ProjectId, HashSet<Uuid>>, Error> {
        let mut stored = HashMap::new();
        for (project, part) in self.parts.iter().filter(|(project, _)| wanted(**project)) {
            let uuids: Vec<Uuid> =
                part.items.iter().filter_map(|i| i.event().map(|e| e.uuid)).collect();
            let found = events::stored_uuids(store, *project, &uuids).await?;
            stored.insert(*project, found.into_iter().collect());
        }
        Ok(stored)
    }
}
