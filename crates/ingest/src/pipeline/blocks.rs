//! Adds events to blocks. A consumer keeps the blocks that it fills in memory; all of
//! them can be read again from the store.
//!
//! What belongs here: choosing and filling blocks. What does not: the format of a block
//! (`weir-store`).

use std::collections::HashMap;

use weir_model::ProjectId;
use weir_store::events::{
    Added, BlockBuilder, Head, NEWEST, NewBlock, NewEvent, ProjectWrite, is_stray, open_block,
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

    /// Whether the open blocks of all these projects are in memory.
    pub(super) fn hold_all(&self, projects: &[ProjectId]) -> bool {
        projects.iter().all(|project| self.heads.contains_key(project))
    }

    /// Whether those of all these projects can be added.
    pub(super) fn have_room_for<'a>(&self, projects: impl Iterator<Item = &'a ProjectId>) -> bool {
        let new = projects.filter(|project| !self.heads.contains_key(project));
        self.heads.len() + new.count() <= OPEN_BLOCKS
    }

    /// Adds the events of a project to its blocks, and dropped or altered events to
    /// theirs. Returns what the last blocks got, for their readers.
    ///
    /// # Errors
    /// When the store cannot be read, or an event cannot be encoded.
    pub(super) async fn add(
        &mut self,
        store: &Store,
        project: ProjectId,
        partition: u16,
        events: &[NewEvent<'_>],
        affected: &[Affected],
        write: &mut ProjectWrite,
    ) -> Result<Vec<Added>, Error> {
        if self.heads.len() > OPEN_BLOCKS {
            self.heads.clear();
        }
        let writing = match self.heads.remove(&project) {
            Some(writing) => writing,
            None => read_writing(store, project, partition).await?,
        };
        let Writing { mut head, mut open, affected: mut open_affected } = writing;
        write.is_first = head.count == 0 && !events.is_empty();
        let mut closing = Closing::of(open.as_ref());
        write.uuids.reserve_exact(events.len());
        for (at, event) in events.iter().enumerate() {
            let more = events.len() - at;
            let ends = |block: &mut BlockBuilder| match at {
                0 => block.ends_before(more),
                _ => block.ends_within(more),
            };
            if let Some(full) = open.take_if(ends) {
                closing.close(&full, &mut write.blocks)?;
            }
            let index = match &mut open {
                Some(block) => block.push(event.clone())?,
                None => {
                    open = Some(BlockBuilder::begin(project, event.clone())?);
                    0
                }
            };
            let first = open.as_ref().map_or(event.arrival, |block| block.first);
            write.uuids.push((event.uuid, first, index));
            closing.times.push(event.timestamp);
            closing.last = event.arrival;
            head.newest = i64::try_from(first).unwrap_or(i64::MAX);
            head.last = i64::try_from(event.arrival).unwrap_or(i64::MAX);
            head.count += 1;
            head.from_time = head.from_time.min(event.timestamp);
            head.to_time = head.to_time.max(event.timestamp);
            head.strays = head.strays || is_stray(project, partition, event.distinct_id);
        }
        if let Some(block) = &open {
            closing.close(block, &mut write.blocks)?;
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
        Ok(closing.added)
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

/// What a batch adds to the present block of a project, and has added to those before.
struct Closing {
    /// Events that the block had before, and their bytes.
    index: u32,
    begin: usize,
    /// Times of the added events.
    times: Vec<i64>,
    /// Arrival number of the last added event.
    last: u64,
    /// The events of the last blocks.
    added: Vec<Added>,
}

impl Closing {
    fn of(open: Option<&BlockBuilder>) -> Self {
        let index = open.map_or(0, |block| u32::try_from(block.count()).unwrap_or(u32::MAX));
        let begin = open.map_or(0, BlockBuilder::bytes);
        Self { index, begin, times: Vec::new(), last: 0, added: Vec::new() }
    }

    /// Writes a block with the events that were added to it. A block without additions is
    /// stored already.
    fn close(&mut self, block: &BlockBuilder, blocks: &mut Vec<NewBlock>) -> Result<(), Error> {
        let index = std::mem::take(&mut self.index);
        let begin = std::mem::take(&mut self.begin);
        if self.times.is_empty() {
            return Ok(());
        }
        let (data, summary) = block.finish()?;
        let added_times = std::mem::take(&mut self.times);
        blocks.push(NewBlock { first: block.first, data, summary, added_times });
        if self.added.len() >= NEWEST {
            self.added.remove(0);
        }
        self.added.push(Added::of(block, index, begin, self.last));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

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
    async fn large_batches_write_every_block_once_and_small_ones_fill_a_block() {
        const PROJECT: ProjectId = ProjectId(7);
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        let mut blocks = Blocks::default();
        let mut arrival = 0;
        let mut added = async |count: u64| {
            let new = |arrival| NewEvent {
                arrival,
                uuid: uuid::Uuid::from_u128(arrival.into()),
                event: "click",
                distinct_id: "ada",
                timestamp: 0,
                received_at: 0,
                properties: "{}",
                elements_chain: "",
                historical: false,
                warnings: Cow::Borrowed(&[]),
            };
            let events: Vec<_> = (arrival..arrival + count).map(new).collect();
            arrival += count;
            let mut write = ProjectWrite::new(PROJECT);
            let shared = blocks.add(&store, PROJECT, 0, &events, &[], &mut write).await.unwrap();
            assert_eq!(shared.len(), write.blocks.len().min(NEWEST));
            let of = |block: &NewBlock| (block.first, block.summary.count, block.added_times.len());
            write.blocks.iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(added(2_400).await, [(0, 1_000, 1_000), (1_000, 1_400, 1_400)]);
        assert_eq!(added(1_700).await, [(2_400, 1_000, 1_000), (3_400, 700, 700)]);
        assert_eq!(added(800).await, [(4_100, 800, 800)]);
        assert_eq!(added(100).await, [(4_100, 900, 100)]);
        assert_eq!(added(300).await, [(4_100, 1_200, 300)]);
        assert_eq!(added(1).await, [(5_300, 1, 1)]);
        assert_eq!(added(400).await, [(5_300, 401, 400)]);
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
