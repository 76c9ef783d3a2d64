//! Skipping events by event time without reading them, to find the beginning of a page
//! that is requested by an offset.
//!
//! Blocks whose events all count are counted by their summaries. Only the blocks at the
//! ends of a range, and those that a filter takes in part, are opened.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;
use weir_model::ProjectId;
use weir_model::events::EventQuery;

use super::by_time::{Candidate, FIRST_WINDOW, LONGEST_WINDOW, Reader, matches, next_width};
use super::read::{BlockRef, read_block};
use crate::{Result, Store};

/// A range with at most this many events is sorted. A range with more is halved.
const FEW: u64 = 20_000;
/// The largest number of events of one microsecond that are sorted.
const CONCURRENT: u64 = 1_000_000;
/// Opened blocks whose times are kept: about 24 KB each.
const OPENED: usize = 512;

/// The beginning of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// After this event.
    Behind {
        /// Time of the event, microseconds.
        time: i64,
        /// Uuid of the event.
        uuid: Uuid,
    },
    /// There are no more events than the number to skip.
    Beyond,
    /// It was not found in time.
    TooLong,
}

/// Skips the first `offset` events of a query, in the order of [`page`](super::page).
/// Gives up after `time`.
///
/// # Errors
/// When the store cannot be read or a block is damaged.
pub async fn skip(
    store: &Store,
    project: ProjectId,
    query: &EventQuery,
    offset: u64,
    time: Duration,
) -> Result<Begin> {
    if query.uuid.is_some() {
        // A query by uuid has one event at most.
        return Ok(Begin::Beyond);
    }
    let Some(reader) = Reader::begin(store, project, query).await? else {
        return Ok(Begin::Beyond);
    };
    let (mut floor, mut high) = (reader.lower, reader.upper);
    let mut counter = Counter { reader, opened: HashMap::new(), end: Instant::now() + time };
    let (mut left, mut width, mut is_within) = (offset, FIRST_WINDOW, false);
    while high > floor {
        let low = floor.max(high.saturating_sub(width));
        let Some(Counted { events, pointers }) = counter.count(low, high).await? else {
            return Ok(Begin::TooLong);
        };
        if events < left {
            left -= events;
            high = low;
            if width == LONGEST_WINDOW && pointers == 0 && !is_within {
                high = counter.reader.end_of_gap(high).await?;
            }
            width = if is_within { (high - floor) / 2 } else { next_width(width, pointers) };
        } else if events <= FEW || high - low == 1 {
            return counter.find(low, high, left, events).await;
        } else {
            (floor, is_within) = (low, true);
            width = (high - low) / 2;
        }
        width = width.max(1);
    }
    Ok(Begin::Beyond)
}

/// The events of the query in a range of event time.
struct Counted {
    events: u64,
    /// The number of pointers to its blocks.
    pointers: usize,
}

/// Times and uuids of events, in order.
type Keys = Arc<Vec<(i64, Uuid)>>;

struct Counter<'a> {
    reader: Reader<'a>,
    opened: HashMap<BlockRef, Keys>,
    end: Instant,
}

impl Counter<'_> {
    /// The number of events of the query with `low <= time < high`; `None`: time was up.
    async fn count(&mut self, low: i64, high: i64) -> Result<Option<Counted>> {
        let found = self.reader.candidates(low, high).await?;
        let mut events = 0;
        for block in found.blocks {
            events += match self.whole(&block, low, high) {
                Some(count) => count,
                None if Instant::now() >= self.end => return Ok(None),
                None => {
                    let keys = self.open(block.block_ref).await?;
                    (before(&keys, high) - before(&keys, low)) as u64
                }
            };
        }
        Ok((Instant::now() < self.end).then_some(Counted { events, pointers: found.narrow }))
    }

    /// The number of events of a block, if all of them are in the range.
    fn whole(&self, block: &Candidate, low: i64, high: i64) -> Option<u64> {
        // Some of the events at `before` itself may belong to the previous page.
        let end = self.reader.query.before.map_or(high, |before| high.min(before.micros()));
        block.all.filter(|_| block.span.from >= low && block.span.to < end)
    }

    /// The event with this number (from 1) among the `events` of a range.
    async fn find(&mut self, low: i64, high: i64, number: u64, events: u64) -> Result<Begin> {
        if events > CONCURRENT {
            return Ok(Begin::TooLong);
        }
        let mut found: Vec<(i64, Uuid)> = Vec::new();
        for block in self.reader.candidates(low, high).await?.blocks {
            if Instant::now() >= self.end {
                return Ok(Begin::TooLong);
            }
            let keys = self.open(block.block_ref).await?;
            found.extend(keys.get(before(&keys, low)..before(&keys, high)).unwrap_or_default());
        }
        found.sort_unstable_by(|left, right| right.cmp(left));
        let at = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
        Ok(found
            .get(at)
            .map_or(Begin::Beyond, |(time, uuid)| Begin::Behind { time: *time, uuid: *uuid }))
    }

    async fn open(&mut self, block_ref: BlockRef) -> Result<Keys> {
        if let Some(keys) = self.opened.get(&block_ref) {
            return Ok(Arc::clone(keys));
        }
        let Reader { store, project, query, .. } = &self.reader;
        let events = read_block(store, *project, block_ref).await?;
        let taken = events.iter().filter(|event| matches(query, event));
        let mut keys: Vec<_> = taken.map(|event| (event.timestamp, event.uuid)).collect();
        keys.sort_unstable();
        if self.opened.len() >= OPENED {
            self.opened.clear();
        }
        let keys = Arc::new(keys);
        self.opened.insert(block_ref, Arc::clone(&keys));
        Ok(keys)
    }
}

/// The number of events before `time`.
fn before(keys: &[(i64, Uuid)], time: i64) -> usize {
    keys.partition_point(|(at, _)| *at < time)
}
