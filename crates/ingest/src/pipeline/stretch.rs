//! A stretch of the log for one partition, and its effects.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use uuid::Uuid;
use weir_model::ProjectId;
use weir_model::outcomes::{DropReason, Warning};
use weir_store::events::{
    Apply, BlockBuilder, Head, NewBlock, Position, ProjectWrite, Sample, Span, StoredEvent,
    WarningCount, historical_partition, live_partition, open_block,
};
use weir_store::warnings::SLOTS;
use weir_store::{Error, Store, events, persons};

use super::persons::{Changes, PersonCache, PersonChanges, Told};
use crate::batch::{Batch, BatchError};
use crate::capture::{AcceptedEvent, DroppedEvent};
use crate::log::Record;

/// Events that one transaction carries at most.
const EVENTS: usize = 4_000;
/// Bytes of their properties beyond which none is added.
const BYTES: usize = 6 << 20;

/// One event of the stretch.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    batch: Arc<Batch>,
    index: usize,
    pub(crate) arrival: u64,
}

impl Item {
    pub(crate) fn event(&self) -> Option<&AcceptedEvent> {
        self.batch.accepted.get(self.index)
    }

    pub(crate) fn received_at(&self) -> i64 {
        self.batch.received_at
    }

    pub(crate) fn stored(&self, event: &AcceptedEvent) -> StoredEvent {
        StoredEvent {
            arrival: self.arrival,
            uuid: event.uuid,
            event: event.event.clone(),
            distinct_id: event.distinct_id.clone(),
            timestamp: event.timestamp,
            received_at: self.batch.received_at,
            properties: event.properties.clone(),
            elements_chain: event.elements_chain.clone(),
            historical: self.batch.historical,
            warnings: event.warnings.iter().map(|w| w.code().to_owned()).collect(),
        }
    }
}

/// One skipped event of the stretch.
#[derive(Debug, Clone)]
pub(crate) struct Skip {
    pub(crate) received_at: i64,
    pub(crate) dropped: DroppedEvent,
}

/// What one project contributes to a stretch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Part {
    pub(crate) items: Vec<Item>,
    pub(crate) skips: Vec<Skip>,
    /// Skipped events that are only counted.
    pub(crate) further: Vec<(DropReason, u64, i64)>,
}

/// The events of one partition in a stretch of the log.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stretch {
    pub(crate) parts: BTreeMap<ProjectId, Part>,
}

impl Stretch {
    /// Takes what belongs to `partition` from the records at `from` on, up to
    /// what one transaction should carry: a record of many events is applied in
    /// several steps. Gives the position behind it.
    ///
    /// # Errors
    /// When a record cannot be read.
    pub(crate) fn collect(
        partition: u16,
        from: Position,
        records: &[Arc<Record>],
    ) -> Result<(Self, Position), BatchError> {
        let mut stretch = Self::default();
        let mut to = from;
        let (mut events, mut bytes) = (0, 0);
        for record in records {
            let batch = record.batch()?;
            let project = record.project;
            let done = if record.offset.0 == from.offset { from.index } else { 0 };
            if done == 0 {
                stretch.collect_dropped(partition, project, &batch);
            }
            let way = if batch.historical { historical_partition } else { live_partition };
            for index in done..u32::try_from(batch.accepted.len()).unwrap_or(u32::MAX) {
                let item = Item {
                    batch: Arc::clone(&batch),
                    index: index as usize,
                    arrival: record.first_arrival + u64::from(index),
                };
                let Some(event) = item.event() else { break };
                if way(project, &event.distinct_id) != partition {
                    continue;
                }
                if events >= EVENTS || bytes >= BYTES {
                    return Ok((stretch, Position { offset: record.offset.0, index }));
                }
                events += 1;
                bytes += event.properties.len();
                stretch.parts.entry(project).or_default().items.push(item);
            }
            to = Position::at(record.next.0);
        }
        Ok((stretch, to))
    }

    /// Skipped events have no person: one partition of the project counts them.
    fn collect_dropped(&mut self, partition: u16, project: ProjectId, batch: &Batch) {
        if batch.dropped.is_empty() || live_partition(project, "") != partition {
            return;
        }
        let part = self.parts.entry(project).or_default();
        part.skips.extend(
            batch
                .dropped
                .iter()
                .map(|dropped| Skip { received_at: batch.received_at, dropped: dropped.clone() }),
        );
        let at = batch.received_at;
        part.further.extend(batch.dropped_further.iter().map(|(r, n)| (*r, *n, at)));
    }

    /// Removes events whose uuid came before in the stretch or is in `stored`;
    /// they become skips with the reason `duplicate_uuid`.
    pub(crate) fn drop_duplicates(&mut self, stored: &HashMap<ProjectId, HashSet<Uuid>>) {
        for (project, part) in &mut self.parts {
            let mut seen: HashSet<Uuid> = stored.get(project).cloned().unwrap_or_default();
            let skips = &mut part.skips;
            part.items.retain(|item| {
                let Some(event) = item.event() else { return false };
                let new = seen.insert(event.uuid);
                if !new {
                    skips.push(Skip {
                        received_at: item.received_at(),
                        dropped: DroppedEvent {
                            reason: DropReason::DuplicateUuid,
                            event: Some(event.event.clone()),
                            distinct_id: Some(event.distinct_id.clone()),
                            uuid: Some(event.uuid),
                            sample: sample_of(event),
                        },
                    });
                }
                new
            });
        }
    }

    /// Which events of the stretch are stored already.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) async fn stored(
        &self,
        store: &Store,
    ) -> Result<HashMap<ProjectId, HashSet<Uuid>>, Error> {
        let mut stored = HashMap::new();
        for (project, part) in &self.parts {
            let uuids: Vec<Uuid> =
                part.items.iter().filter_map(|i| i.event().map(|e| e.uuid)).collect();
            let found = events::stored_uuids(store, *project, &uuids).await?;
            stored.insert(*project, found.into_iter().collect());
        }
        Ok(stored)
    }
}

/// What is kept of a duplicate, to look at.
fn sample_of(event: &AcceptedEvent) -> String {
    let mut end = event.properties.len().min(4_096);
    while !event.properties.is_char_boundary(end) {
        end -= 1;
    }
    event.properties.get(..end).unwrap_or_default().to_owned()
}

/// What a consumer remembers between stretches; all of it can be read again.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    heads: HashMap<ProjectId, Writing>,
    persons: PersonCache,
}

/// The end of a project's events in this partition.
#[derive(Debug, Clone)]
struct Writing {
    head: Head,
    open: Option<BlockBuilder>,
}

/// Open blocks kept in memory per consumer; a block is up to 1 MiB.
const OPEN_BLOCKS: usize = 24;

impl Memory {
    /// Forgets everything: after a failed write, what is stored counts.
    pub(crate) fn clear(&mut self) {
        self.heads.clear();
        self.persons.clear();
    }

    /// The effects of a stretch without duplicates.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) async fn effects(
        &mut self,
        store: &Store,
        partition: u16,
        from: Position,
        to: Position,
        stretch: &Stretch,
    ) -> Result<Apply, Error> {
        if self.heads.len() > OPEN_BLOCKS {
            self.heads.clear();
        }
        let mut apply = Apply { partition, from, to, projects: Vec::new() };
        for (project, part) in &stretch.parts {
            let persons = self.persons_of(store, *project, part).await?;
            let write = self.blocks_of(store, *project, partition, part).await?;
            let warnings = warnings(part, &persons.too_large);
            let persons = persons.into_writes();
            apply.projects.push(ProjectWrite { persons, warnings, ..write });
        }
        Ok(apply)
    }

    async fn persons_of(
        &mut self,
        store: &Store,
        project: ProjectId,
        part: &Part,
    ) -> Result<PersonChanges, Error> {
        let mut all: Vec<Told<'_>> = Vec::new();
        for item in &part.items {
            let Some(event) = item.event() else { continue };
            let changes = Changes::read(&event.properties);
            if !changes.without_profile {
                let id = persons::first_id(project, &event.distinct_id);
                all.push(Told { id, event, received_at: item.received_at(), changes });
            }
        }
        self.persons.load(store, project, all.iter().map(|told| told.id)).await?;
        let mut writes = PersonChanges::default();
        for told in &all {
            self.persons.effect(project, told, &mut writes);
        }
        Ok(writes)
    }

    async fn blocks_of(
        &mut self,
        store: &Store,
        project: ProjectId,
        partition: u16,
        part: &Part,
    ) -> Result<ProjectWrite, Error> {
        let writing = match self.heads.remove(&project) {
            Some(writing) => writing,
            None => read_writing(store, project, partition).await?,
        };
        let Writing { mut head, mut open } = writing;
        let is_first = head.count == 0 && !part.items.is_empty();
        let mut uuids = Vec::with_capacity(part.items.len());
        let mut blocks = Vec::new();
        let mut added_times = Vec::new();
        for item in &part.items {
            let Some(event) = item.event() else { continue };
            let stored = item.stored(event);
            if let Some(full) = open.take_if(|block| block.is_full()) {
                close(&full, &mut added_times, &mut blocks)?;
            }
            let index = match &mut open {
                Some(block) => block.push(&stored)?,
                None => {
                    open = Some(BlockBuilder::begin(project, &stored)?);
                    0
                }
            };
            let first = open.as_ref().map_or(item.arrival, |block| block.first);
            uuids.push((event.uuid, first, index));
            added_times.push(event.timestamp);
            head.newest = i64::try_from(first).unwrap_or(i64::MAX);
            head.last = i64::try_from(item.arrival).unwrap_or(i64::MAX);
            head.count += 1;
            head.from_time = head.from_time.min(event.timestamp);
            head.to_time = head.to_time.max(event.timestamp);
        }
        if let Some(block) = &open {
            close(block, &mut added_times, &mut blocks)?;
        }
        // Earlier ones would be overwritten by later ones.
        let kept = usize::try_from(SLOTS).unwrap_or(0);
        let samples =
            part.skips.iter().skip(part.skips.len().saturating_sub(kept)).map(sample).collect();
        head.samples += i64::try_from(part.skips.len()).unwrap_or(0);
        self.heads.insert(project, Writing { head: head.clone(), open });
        Ok(ProjectWrite {
            project,
            blocks,
            uuids,
            head,
            is_first,
            persons: Vec::new(),
            warnings: Vec::new(),
            samples,
        })
    }
}

async fn read_writing(store: &Store, project: ProjectId, partition: u16) -> Result<Writing, Error> {
    match events::head(store, project, partition).await? {
        Some(head) => {
            let open = open_block(store, project, partition, &head).await?;
            Ok(Writing { head, open })
        }
        None => Ok(Writing { head: Head::empty(), open: None }),
    }
}

/// Writes a block with what was added to it. Without additions it is as stored.
fn close(
    block: &BlockBuilder,
    added_times: &mut Vec<i64>,
    blocks: &mut Vec<NewBlock>,
) -> Result<(), Error> {
    if added_times.is_empty() {
        return Ok(());
    }
    let (data, summary) = block.finish()?;
    let added_times = std::mem::take(added_times);
    blocks.push(NewBlock { first: block.first, data, summary, added_times });
    Ok(())
}

fn sample(skip: &Skip) -> Sample {
    Sample {
        code: skip.dropped.reason.code().to_owned(),
        received_at: skip.received_at,
        event: skip.dropped.event.clone(),
        distinct_id: skip.dropped.distinct_id.clone(),
        payload: skip.dropped.sample.clone(),
    }
}

/// What was skipped or altered, and which persons became too large.
fn warnings(part: &Part, persons_too_large: &[i64]) -> Vec<WarningCount> {
    let mut counts: BTreeMap<&'static str, (i64, Span)> = BTreeMap::new();
    let mut count = |code: &'static str, times: u64, at: i64| {
        let (count, seen) = counts.entry(code).or_insert((0, Span { from: at, to: at }));
        *count += i64::try_from(times).unwrap_or(i64::MAX);
        *seen = seen.with(at);
    };
    for skip in &part.skips {
        count(skip.dropped.reason.code(), 1, skip.received_at);
    }
    for (reason, times, at) in &part.further {
        count(reason.code(), *times, *at);
    }
    for item in &part.items {
        let Some(event) = item.event() else { continue };
        for warning in &event.warnings {
            count(warning.code(), 1, item.received_at());
        }
    }
    for at in persons_too_large {
        count(Warning::PersonTooLarge.code(), 1, *at);
    }
    counts
        .into_iter()
        .map(|(code, (count, seen))| WarningCount { code: code.to_owned(), count, seen })
        .collect()
}
