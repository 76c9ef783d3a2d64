//! From the log to batches of events, for one partition.
//!
//! What belongs here: which records make the next batch, and spikes in it. What does not:
//! the events of a batch (`apply_batch`), and when the next batch is read (`consumer`).

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_model::ProjectId;
use weir_store::events::{LIVE_PARTITIONS, Position};

use super::apply_batch::{ApplyBatch, EVENTS, Spike};
use super::sizing::{BatchSizing, Failure};
use super::spikes::Spikes;
use crate::batch::BatchError;
use crate::log::{IngestLog, Offset, Record};

/// Bytes of the records that are read for one batch. They have the events of all
/// partitions.
const READ_BYTES: usize = 12 << 20;
/// Upper bound of events in a batch after a restart, where applying one of them may have
/// ended the process.
const CAUTIOUS_EVENTS: usize = 64;

/// Reads the events of one partition.
pub(super) struct Reader {
    partition: u16,
    log: Arc<dyn IngestLog>,
    spikes: Spikes,
    /// Up to where spikes were searched for.
    spikes_until: Position,
    /// Spikes that were found in a batch that was not committed.
    unreported_spikes: BTreeMap<ProjectId, Vec<Spike>>,
    /// Up to this offset batches are small: the process ended while it applied the log
    /// before it, and an event may be the cause.
    cautious_until: u64,
}

impl Reader {
    pub(super) fn new(
        partition: u16,
        log: Arc<dyn IngestLog>,
        position: Position,
        cautious_until: u64,
    ) -> Self {
        Self {
            partition,
            log,
            spikes: Spikes::default(),
            spikes_until: position,
            unreported_spikes: BTreeMap::new(),
            cautious_until,
        }
    }

    /// The next batch from `from` on, and the position after it. `None` if the log has no
    /// readable record there.
    pub(super) fn read(
        &mut self,
        from: Position,
        sizing: BatchSizing,
    ) -> Result<Option<(ApplyBatch, Position)>, Failure> {
        let records = self.log.read(Offset(from.offset), READ_BYTES)?;
        if records.is_empty() {
            return Ok(None);
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
        let max_events = if self.is_cautious(from) { CAUTIOUS_EVENTS } else { EVENTS };
        let max_events = sizing.max_events().min(max_events);
        let (mut batch, to) =
            ApplyBatch::collect(self.partition, from, &records, max_events, quarantine);
        unreadable.into_iter().collect::<Result<(), _>>()?;
        // Only once, however often the batch is read.
        if self.partition < LIVE_PARTITIONS && to > self.spikes_until {
            self.spikes_until = to;
            for (project, part) in &mut batch.parts {
                self.spikes.note(*project, part);
            }
        }
        for (project, part) in &mut batch.parts {
            part.spikes.extend(self.unreported_spikes.remove(project).unwrap_or_default());
        }
        Ok(Some((batch, to)))
    }

    /// Whether applying the next records may have ended the process before.
    pub(super) fn is_cautious(&self, from: Position) -> bool {
        from.offset < self.cautious_until
    }

    /// Keeps the spikes of a batch that was not committed. The batch is read again.
    pub(super) fn return_spikes(&mut self, batch: ApplyBatch) {
        for (project, part) in batch.parts {
            if !part.spikes.is_empty() {
                self.unreported_spikes.entry(project).or_default().extend(part.spikes);
            }
        }
    }
}
