//! From the log to batches of events, for one partition.
//!
//! What belongs here: which records make the next batch, and spikes in it. What does not:
//! the events of a batch (`apply_batch`), and when the next batch is read (`consumer`).

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
    /// Spikes of batches that may not be committed. Spikes are searched for once; those of
    /// an uncommitted batch are reported with the next one, even if a panic has lost it.
    found_spikes: Vec<FoundSpike>,
    /// Up to this offset batches are small: the process ended while it applied the log
    /// before it, and an event may be the cause.
    cautious_until: u64,
}

/// A spike of a batch that was read.
struct FoundSpike {
    project: ProjectId,
    spike: Spike,
    /// The position after the last batch that has it.
    to: Position,
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
            found_spikes: Vec::new(),
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
        self.add_spikes(&mut batch, from, to);
        Ok(Some((batch, to)))
    }

    /// Whether applying the next records may have ended the process before.
    pub(super) fn is_cautious(&self, from: Position) -> bool {
        from.offset < self.cautious_until
    }

    /// Adds the spikes of a batch, and those of batches that were not committed.
    fn add_spikes(&mut self, batch: &mut ApplyBatch, from: Position, to: Position) {
        // A batch that ends at `from` may be in flight. Batches that end before it are
        // committed, and batches that end after it are not.
        self.found_spikes.retain(|found| found.to >= from);
        for found in &mut self.found_spikes {
            if found.to > from
                && let Some(part) = batch.parts.get_mut(&found.project)
            {
                part.spikes.push(found.spike.clone());
                found.to = to;
            }
        }
        if self.partition >= LIVE_PARTITIONS || to <= self.spikes_until {
            return;
        }
        self.spikes_until = to;
        for (project, part) in &mut batch.parts {
            for spike in self.spikes.search(*project, part) {
                part.spikes.push(spike.clone());
                self.found_spikes.push(FoundSpike { project: *project, spike, to });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use weir_model::outcomes::Warning;
    use weir_store::disk::{DiskMarks, DiskState};
    use weir_store::events;

    use super::*;
    use crate::batch::tests::batch;
    use crate::log::{Applied, LocalLog, LogSettings};

    const PROJECT: ProjectId = ProjectId(1);

    fn warned(batch: &ApplyBatch) -> Vec<Warning> {
        batch.parts.values().flat_map(|part| &part.spikes).map(|spike| spike.warning).collect()
    }

    /// A panic loses its batch, and events are searched only once.
    #[tokio::test]
    async fn a_spike_is_reported_again_until_its_batch_is_committed() {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::new(DiskState::new(None, DiskMarks::default()));
        let (settings, applied) = (LogSettings::default(), Applied::default());
        let log =
            LocalLog::open(directory.path(), settings, HashMap::new(), applied, disk).unwrap();
        for _ in 0..3 {
            log.append(PROJECT, batch("hot", 4_000).into_encoded()).await.unwrap();
        }
        let partition = events::partition(PROJECT, "hot", false);
        let begin = Position::default();
        let mut reader = Reader::new(partition, Arc::new(log), begin, 0);
        let mut read = |from| reader.read(from, BatchSizing::default()).unwrap().unwrap();
        let (first, second_begin) = read(begin);
        let (second, third_begin) = read(second_begin);
        assert_eq!((warned(&first), warned(&second)), (vec![], vec![]));
        let (third, _) = read(third_begin);
        assert_eq!(warned(&third), [Warning::DistinctIdSpike]);
        let (lost, _) = read(third_begin);
        assert_eq!(warned(&lost), [Warning::DistinctIdSpike]);
        let (earlier, end) = read(second_begin);
        assert_eq!((warned(&earlier), end), (vec![Warning::DistinctIdSpike], third_begin));
        let (after, _) = read(third_begin);
        assert_eq!(warned(&after), []);
    }
}
