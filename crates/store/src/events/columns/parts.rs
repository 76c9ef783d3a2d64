//! Which parts the events of a project consist of, as of one transaction.
//!
//! All blocks of a partition up to the end of its last segment are sealed, and all later ones
//! wait. The exception is a damaged block, which a pass of sealing leaves where it is. If the
//! segments and the waiting blocks have fewer events than are stored, such blocks are
//! searched for. Then a question fails at them, instead of counting too few events.

use std::sync::Arc;
use std::time::Duration;

use surrealdb::types::{Bytes, RecordId, SurrealValue};
use weir_model::ProjectId;

use super::{Block, LANES, Part};
use crate::db::{Failure, Operation};
use crate::events::apply::Head;
use crate::events::block::Summary;
use crate::events::read::{FETCH, first_of, partition_of};
use crate::events::{PARTITIONS, TimeRange, keys, segments};
use crate::transaction::{Keyspace, RowKey, Transaction};
use crate::{Error, Result, Store};

/// Segments that a project may have.
const SEGMENTS: usize = 100_000;
/// Blocks that may wait to be sealed, about 200 million events.
const BLOCKS: usize = 200_000;
/// Rows of blocks that are read at a time. A row has a fingerprint of each distinct id.
const ROWS: u32 = 256;

const SNAPSHOT: Operation = Operation::read("snapshot of events").within(Duration::from_secs(30));

/// What a transaction has found.
pub(super) struct Found {
    /// The last arrival number of each partition.
    pub(super) last: [u64; LANES],
    /// How many events were removed for their age or with their persons.
    pub(super) removed: u64,
    /// The parts with events in the range of times.
    pub(super) parts: Vec<Part>,
}

/// The part of a summary that is needed here.
#[derive(SurrealValue)]
struct BlockRow {
    id: RecordId,
    last: i64,
    count: i64,
    bytes: i64,
    from_time: i64,
    to_time: i64,
    seconds: Option<Bytes>,
}

/// The parts with events in a range of times.
///
/// # Errors
/// [`Error::TooLarge`] when there are too many; errors of the store.
pub(super) async fn find(store: &Store, project: ProjectId, times: TimeRange) -> Result<Found> {
    let keyspace = store.db.keyspace().await?;
    let heads = (0..PARTITIONS).map(|partition| keys::head(project, partition));
    let heads = Arc::new(keyspace.keys(heads)?);
    let work = move |tx: Transaction| {
        let heads = Arc::clone(&heads);
        async move {
            let finder =
                Finder { tx, keyspace, project, times, parts: Vec::new(), blocks: 0, events: 0 };
            finder.find(&heads).await
        }
    };
    store.db.transact(SNAPSHOT, (), work).await
}

struct Finder {
    tx: Transaction,
    keyspace: Keyspace,
    project: ProjectId,
    times: TimeRange,
    parts: Vec<Part>,
    /// The number of blocks that are not sealed.
    blocks: usize,
    /// The number of events of all parts, also of those outside of the range of times.
    events: u64,
}

impl Finder {
    async fn find(mut self, heads: &[RowKey]) -> Result<Found, Failure> {
        let heads: Vec<Option<Head>> = self.tx.get(heads).await?;
        let removed = segments::removed_in(&self.tx, self.keyspace, self.project).await?;
        // For each partition the number after the last sealed event.
        let mut ends = [0; LANES];
        for sealed in segments::all_of(&self.tx, self.keyspace, self.project, SEGMENTS).await? {
            self.events = self.events.saturating_add(sealed.rows);
            if let Some(end) = ends.get_mut(usize::from(sealed.partition)) {
                *end = sealed.last.saturating_add(1);
            }
            self.parts.extend(Part::of_segment(sealed, self.times));
        }
        let (mut last, mut stored) = ([0; LANES], 0_u64);
        for (((partition, head), end), last) in (0..).zip(&heads).zip(ends).zip(&mut last) {
            let Some(head) = head else { continue };
            *last = u64::try_from(head.last).unwrap_or(0);
            stored = stored.saturating_add(u64::try_from(head.count).unwrap_or(0));
            self.add_waiting(partition, head, (end, last.saturating_add(1))).await?;
        }
        if stored.saturating_sub(removed) != self.events {
            for ((partition, head), end) in (0..).zip(&heads).zip(ends) {
                if let Some(head) = head
                    && end > 0
                {
                    self.add_damaged(partition, head, end).await?;
                }
            }
        }
        Ok(Found { last, removed, parts: self.parts })
    }

    /// Adds the blocks of a partition that begin in a range of arrival numbers.
    async fn add_waiting(
        &mut self,
        partition: u16,
        head: &Head,
        (low, end): (u64, u64),
    ) -> Result<(), Failure> {
        if low >= end {
            return Ok(());
        }
        let id = |first| keys::summary(self.project, partition, first);
        let mut rest = Some(self.keyspace.range(id(low), id(end))?);
        while let Some(range) = rest.take() {
            let (rows, more) = self.tx.first::<BlockRow>(&range, ROWS).await?;
            for row in rows {
                self.add(row, head)?;
            }
            rest = more;
        }
        Ok(())
    }

    /// Adds the blocks of a partition that are not sealed and begin before `end`.
    async fn add_damaged(&mut self, partition: u16, head: &Head, end: u64) -> Result<(), Failure> {
        let firsts =
            segments::unsealed_in(&self.tx, self.keyspace, self.project, partition, (0, end));
        for some in firsts.await?.chunks(FETCH) {
            let ids = some.iter().map(|first| keys::summary(self.project, partition, *first));
            let rows: Vec<Option<BlockRow>> = self.tx.get(&self.keyspace.keys(ids)?).await?;
            for row in rows.into_iter().flatten() {
                self.add(row, head)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, row: BlockRow, head: &Head) -> Result<()> {
        self.blocks += 1;
        if self.blocks > BLOCKS {
            return Err(Error::TooLarge { statement: SNAPSHOT.name });
        }
        let partition = partition_of(&row.id, 1, SNAPSHOT.name)?;
        let first = first_of(&row.id, 2, SNAPSHOT.name)?;
        let number = |value: i64| u64::try_from(value).unwrap_or(0);
        self.events = self.events.saturating_add(number(row.count));
        let block = Block {
            block_ref: (partition, first),
            last: number(row.last),
            bytes: number(row.bytes),
            is_open: first >= number(head.newest),
        };
        self.parts.extend(Part::of_block(block, &row.summary(), self.times));
        Ok(())
    }
}

impl BlockRow {
    fn summary(self) -> Summary {
        Summary {
            last: self.last,
            count: self.count,
            bytes: self.bytes,
            from_time: self.from_time,
            to_time: self.to_time,
            names: Vec::new(),
            ids: Bytes::default(),
            seconds: self.seconds,
            erased: None,
        }
    }
}
