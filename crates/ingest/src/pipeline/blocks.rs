//! Adds events to blocks. A consumer keeps the blocks that it fills in memory; all of
//! them can be read again from the store.
//!
//! What belongs here: choosing and filling blocks. What does not: the format of a block
//! (`weir-store`).

use std::collections::HashMap;

use weir_model::ProjectId;
use weir_store::events::{
    BlockBuilder, Head, NewBlock, ProjectWrite, StoredEvent, is_stray, open_block,
};
use weir_store::warnings::{self, Affected, AffectedBuilder};
use weir_store::{Error, Store, events};

/// Open blocks kept in memory per consumer; a block is up to 1 MiB.
const OPEN_BLOCKS: usize = 24;

/// The open blocks of the projects in one partition.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    heads: HashMap<ProjectId, Writing>,
}

/// The open blocks of a project in this partition.
#[derive(Debug, Clone)]
struct Writing {
    head: Head,
    open: Option<BlockBuilder>,
    /// The open block of dropped and altered events.
    affected: Option<AffectedBuilder>,
}

impl Blocks {
    /// Forgets all blocks. After a failed write, only the store is right.
    pub(super) fn clear(&mut self) {
        self.heads.clear();
    }

    /// Adds the events of a project to its blocks, and dropped or altered events to
    /// theirs.
    ///
    /// # Errors
    /// When the store cannot be read, or an event cannot be encoded.
    pub(super) async fn add(
        &mut self,
        store: &Store,
        project: ProjectId,
        partition: u16,
        events: &[StoredEvent],
        affected: &[Affected],
        write: &mut ProjectWrite,
    ) -> Result<(), Error> {
        if self.heads.len() > OPEN_BLOCKS {
            self.heads.clear();
        }
        let writing = match self.heads.remove(&project) {
            Some(writing) => writing,
            None => read_writing(store, project, partition).await?,
        };
        let Writing { mut head, mut open, affected: mut open_affected } = writing;
        write.is_first = head.count == 0 && !events.is_empty();
        let mut added_times = Vec::new();
        for event in events {
            if let Some(full) = open.take_if(|block| block.is_full()) {
                close(&full, &mut added_times, &mut write.blocks)?;
            }
            let index = match &mut open {
                Some(block) => block.push(event)?,
                None => {
                    open = Some(BlockBuilder::begin(project, event)?);
                    0
                }
            };
            let first = open.as_ref().map_or(event.arrival, |block| block.first);
            write.uuids.push((event.uuid, first, index));
            added_times.push(event.timestamp);
            head.newest = i64::try_from(first).unwrap_or(i64::MAX);
            head.last = i64::try_from(event.arrival).unwrap_or(i64::MAX);
            head.count += 1;
            head.from_time = head.from_time.min(event.timestamp);
            head.to_time = head.to_time.max(event.timestamp);
            head.strays = head.strays || is_stray(project, partition, &event.distinct_id);
        }
        if let Some(block) = &open {
            close(block, &mut added_times, &mut write.blocks)?;
        }
        let mut is_changed = false;
        for event in affected {
            if let Some(full) = open_affected.take_if(|block| block.is_full(event.received_at)) {
                // The block as it is stored. Retention may have removed it since.
                if is_changed {
                    write.affected.push(full.finish()?);
                }
            }
            let block = open_affected.get_or_insert_with(|| AffectedBuilder::begin(head.samples));
            block.push(event)?;
            is_changed = true;
            head.affected = block.first;
            head.samples += 1;
        }
        if let Some(block) = open_affected.as_ref().filter(|_| is_changed) {
            write.affected.push(block.finish()?);
        }
        write.head = head.clone();
        self.heads.insert(project, Writing { head, open, affected: open_affected });
        Ok(())
    }
}

async fn read_writing(store: &Store, project: ProjectId, partition: u16) -> Result<Writing, Error> {
    match events::head(store, project, partition).await? {
        Some(head) => {
            let open = open_block(store, project, partition, &head).await?;
            let affected = warnings::open(store, project, partition, head.affected).await?;
            Ok(Writing { head, open, affected })
        }
        None => Ok(Writing { head: Head::empty(), open: None, affected: None }),
    }
}

/// Writes a block with the events that were added to it. A block without additions is
/// stored already.
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

#[cfg(test)]
mod tests {
    use weir_model::outcomes::DropReason;
    use weir_store::warnings::DAYS;
    use weir_store::{Location, Settings};

    use super::*;

    fn dropped(day: i64) -> Affected {
        Affected {
            codes: vec![DropReason::MissingDistinctId.code().to_owned()],
            is_stored: false,
            received_at: day * 86_400_000_000,
            detail: None,
            event: None,
            distinct_id: None,
            uuid: None,
            payload: "{}".to_owned(),
        }
    }

    #[tokio::test]
    async fn a_block_of_dropped_events_is_written_only_with_new_ones() {
        const PROJECT: ProjectId = ProjectId(7);
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        let mut blocks = Blocks::default();
        let mut written = async |events: &[Affected]| {
            let mut write = ProjectWrite::new(PROJECT);
            blocks.add(&store, PROJECT, 0, &[], events, &mut write).await.unwrap();
            write.affected.len()
        };
        assert_eq!(written(&[dropped(1), dropped(1)]).await, 1);
        assert_eq!(written(&[dropped(2)]).await, 1, "the open block goes on");
        // Retention may have removed the first block by now.
        assert_eq!(written(&[dropped(DAYS + 9)]).await, 1, "the new block alone");
        assert_eq!(written(&[dropped(DAYS + 9), dropped(DAYS + 20)]).await, 2);
    }
}
