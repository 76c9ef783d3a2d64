//! Applying events again that the log holds and the store does not: processing gave up on
//! them, or an older program could not read their records. `quarantine` has copies of
//! such records, which stay when the log no longer has them.
//!
//! The events are appended to the log again, each with its uuid and times. The positions
//! of the partitions are not moved back: blocks hold events in order of arrival, so an
//! old event could not be added to them, and all other events would be computed and
//! counted again.
//!
//! Events of erased persons are not appended again: an event that processing gave up on, or
//! that a transformation dropped, has no uuid in the store that would say so.
//!
//! What belongs here: which events are appended again. What does not: applying them. The
//! next start does that, as for all others.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;
use weir_model::ProjectId;
use weir_store::erasures::{self, ErasedIds};
use weir_store::events::{Position, partition};
use weir_store::{Store, events, projects};

use crate::batch::Batch;
use crate::log::{
    AppendError, Applied, IngestLog as _, Intact, LocalLog, LogError, LogSettings, Offset, Record,
    list_quarantine,
};
use crate::logged::{EventView, LoggedBatch};

/// Bytes of the records that are read at a time.
const READ_BYTES: usize = 8 << 20;

/// Why a replay stopped. The next start applies the events that were appended so far, and
/// another replay continues with the rest.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The log cannot be read or repaired.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The store cannot be read.
    #[error("cannot read what is stored")]
    Store(#[from] weir_store::Error),
    /// The log refused the events.
    #[error("cannot append to the ingest log")]
    Append(#[from] AppendError),
}

/// What a replay found, counted in events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Replayed {
    /// Stored already. Nothing was done.
    pub stored: u64,
    /// Not applied yet. The next start applies them.
    pub waiting: u64,
    /// In records that this program cannot read.
    pub unreadable: u64,
    /// In records of `quarantine` with a damaged payload.
    pub damaged: u64,
    /// Of projects that no longer exist.
    pub orphaned: u64,
    /// Of persons that were erased with their events later. Nothing was done.
    pub erased: u64,
    /// Appended again.
    pub appended: u64,
}

/// Appends the events again that are in the log from `from` on, were applied and are not
/// stored. No service may use the directory and the store at the same time.
pub async fn replay(
    directory: &Path,
    settings: LogSettings,
    store: &Store,
    from: Offset,
) -> Result<Replayed, ReplayError> {
    let positions = events::positions(store).await?;
    let next_arrivals = events::next_arrivals(store).await?;
    let applied = Applied::of(&positions);
    let log = LocalLog::open(directory, settings, next_arrivals, applied, store.disk())?;
    let end = *log.end().borrow();
    let mut replay = Replay {
        store,
        positions,
        exists: HashMap::new(),
        erased: erasures::erased_ids(store).await?,
        again: HashSet::new(),
        found: Replayed::default(),
    };
    let mut at = from;
    let mut copies = list_quarantine(directory)?;
    copies.retain(|copy| copy.offset.is_some_and(|offset| offset >= from.0));
    while at < end {
        let records = log.read(at, READ_BYTES)?;
        let Some(last) = records.last() else { break };
        at = last.next;
        let sound = |record: &&Arc<Record>| record.offset < end && !record.is_damaged();
        for record in records.iter().filter(sound) {
            copies.retain(|copy| copy.offset != Some(record.offset.0));
            if let Some(batch) = replay.look_at(record).await? {
                log.append(record.project, batch.into_encoded()).await?;
            }
        }
    }
    // Records that the log no longer has, or has damaged.
    for copy in copies {
        let Intact { records, damaged } = copy.intact()?;
        replay.found.damaged += damaged;
        for record in records {
            if let Some(batch) = replay.look_at(&record).await? {
                log.append(record.project, batch.into_encoded()).await?;
            }
        }
    }
    log.close();
    Ok(replay.found)
}

struct Replay<'a> {
    store: &'a Store,
    positions: Vec<Position>,
    exists: HashMap<ProjectId, bool>,
    erased: ErasedIds,
    /// Events that are appended again. A client may have sent one several times.
    again: HashSet<(ProjectId, Uuid)>,
    found: Replayed,
}

impl Replay<'_> {
    /// The events of a record to append again.
    async fn look_at(&mut self, record: &Record) -> Result<Option<Batch>, weir_store::Error> {
        let project = record.project;
        let Ok(batch) = record.batch() else {
            self.found.unreadable += u64::from(record.count);
            return Ok(None);
        };
        if !self.exists(project).await? {
            self.found.orphaned += batch.len() as u64;
            return Ok(None);
        }
        let applied = self.applied(record, &batch);
        self.found.waiting += (batch.len() - applied.len()) as u64;
        let uuids: Vec<Uuid> = applied.iter().map(|event| event.uuid).collect();
        let stored = match events::stored_uuids(self.store, project, &uuids).await {
            // No service repairs it in the background.
            Err(weir_store::Error::Damaged { .. }) => {
                events::repair_runs(self.store).await?;
                events::stored_uuids(self.store, project, &uuids).await?
            }
            found => found?,
        };
        let stored: HashSet<Uuid> = stored.into_iter().collect();
        // The dropped events of the request were counted when the record was applied.
        let mut again = Batch::new(batch.received_at, batch.historical);
        for event in applied {
            if self.erased.takes(project, event.distinct_id, batch.received_at) {
                self.found.erased += 1;
            } else if stored.contains(&event.uuid) || !self.again.insert((project, event.uuid)) {
                self.found.stored += 1;
            } else {
                again.accepted.push(event.to_accepted());
            }
        }
        self.found.appended += again.accepted.len() as u64;
        Ok((!again.is_empty()).then_some(again))
    }

    /// The events of a record that their partitions have passed.
    fn applied<'a>(&self, record: &Record, batch: &'a LoggedBatch) -> Vec<EventView<'a>> {
        let is_applied = |(index, event): &(u32, EventView<'_>)| {
            let own = partition(record.project, event.distinct_id, batch.historical);
            let position = self.positions.get(usize::from(own)).copied().unwrap_or_default();
            Position { offset: record.offset.0, index: *index } < position
        };
        (0..).zip(batch.events()).filter(is_applied).map(|(_, event)| event).collect()
    }

    async fn exists(&mut self, project: ProjectId) -> Result<bool, weir_store::Error> {
        if let Some(exists) = self.exists.get(&project) {
            return Ok(*exists);
        }
        let exists = projects::find(self.store, project).await?.is_some();
        self.exists.insert(project, exists);
        Ok(exists)
    }
}

#[cfg(test)]
mod tests;
