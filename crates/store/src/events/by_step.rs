//! The number of events in each step of a range of event time, for charts.
//!
//! The summaries of blocks decide, no block is opened. A block whose events are in several
//! steps is divided: evenly over the seconds that its summary lists, or else over its span.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use surrealdb::types::RecordId;
use weir_model::ProjectId;

use super::apply::Head;
use super::block::Summary;
use super::keys;
use super::next::Pointers;
use super::read::{BlockRef, FETCH, heads};
use super::scan::{BRIEFS_OF, Brief, TimeRange};
use crate::{Result, Store};

/// The largest number of blocks that are read for one chart.
const BLOCKS: usize = 10_000;
const SECOND: i64 = 1_000_000;

/// Steps of event time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeSteps {
    /// The first microsecond of the first step.
    pub start: i64,
    /// Length of a step, microseconds.
    pub length: i64,
    /// Number of steps.
    pub count: usize,
}

impl TimeSteps {
    fn end(self) -> i64 {
        let steps = i64::try_from(self.count).unwrap_or(i64::MAX);
        self.start.saturating_add(self.length.saturating_mul(steps))
    }

    /// The step with a time.
    fn of(self, time: i64) -> Option<usize> {
        usize::try_from((time - self.start).div_euclid(self.length)).ok()
    }
}

/// The approximate number of events in each step. `None`: there are too many blocks, or
/// they take longer than `within`.
///
/// # Errors
/// When the store cannot be read.
pub async fn by_step(
    store: &Store,
    project: ProjectId,
    steps: TimeSteps,
    within: Duration,
) -> Result<Option<Vec<u64>>> {
    let until = Instant::now().checked_add(within);
    let is_late = || until.is_some_and(|until| Instant::now() >= until);
    let mut counts = vec![0; steps.count];
    let heads = heads(store, project).await?;
    let spans = || heads.values().filter_map(Head::span);
    let (from, to) = (spans().map(|span| span.from).min(), spans().map(|span| span.to).max());
    let (Some(from), Some(to)) = (from, to) else { return Ok(Some(counts)) };
    let (start, end) = (steps.start.max(from), steps.end().min(to.saturating_add(1)));
    if start >= end {
        return Ok(Some(counts));
    }
    // The number of blocks is known before the first one is read.
    let mut blocks: BTreeSet<BlockRef> = BTreeSet::new();
    for width in keys::WIDTHS {
        let mut pointers = Pointers::new(project, width, TimeRange { start, end });
        while let Some(block_refs) = pointers.next(store).await? {
            blocks.extend(block_refs);
            if blocks.len() > BLOCKS || is_late() {
                return Ok(None);
            }
        }
    }
    let id = |(partition, first): BlockRef| keys::summary(project, partition, first);
    let ids: Vec<RecordId> = blocks.into_iter().map(id).collect();
    for some in ids.chunks(FETCH) {
        if is_late() {
            return Ok(None);
        }
        let briefs = store.db.get::<Brief>(BRIEFS_OF, some.to_vec()).await?;
        for brief in briefs.into_iter().flatten() {
            divide(&brief.summary(), steps, &mut counts);
        }
    }
    Ok(Some(counts))
}

/// Adds the events of a block to the steps.
fn divide(summary: &Summary, steps: TimeSteps, counts: &mut [u64]) {
    let events = u64::try_from(summary.count).unwrap_or(0);
    let mut add = |step: Option<usize>, events: u64| {
        if let Some(count) = step.and_then(|step| counts.get_mut(step)) {
            *count += events;
        }
    };
    if let Some(seconds) = &summary.seconds {
        let (seconds, _) = seconds.as_chunks::<4>();
        let whole = seconds.len() as u64;
        for (at, second) in (0_u64..).zip(seconds) {
            let time = summary.from_time + i64::from(u32::from_be_bytes(*second)) * SECOND;
            add(steps.of(time), part(events, at + 1, whole) - part(events, at, whole));
        }
        return;
    }
    let (from, to) = (summary.from_time, summary.to_time.saturating_add(1));
    let length = |until: i64| u64::try_from(until.clamp(from, to) - from).unwrap_or(0);
    // A block with a damaged clock may span centuries.
    let mut begin = from.max(steps.start);
    while begin < to.min(steps.end()) {
        let next = begin + steps.length - (begin - steps.start).rem_euclid(steps.length);
        let before = part(events, length(begin), length(to));
        add(steps.of(begin), part(events, length(next), length(to)) - before);
        begin = next;
    }
}

/// A part of a count, rounded down.
fn part(count: u64, part: u64, whole: u64) -> u64 {
    let scaled = u128::from(count) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(scaled).unwrap_or(count)
}
