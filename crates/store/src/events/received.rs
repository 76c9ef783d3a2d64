//! The arrival number for a time: for intervals that were missed.

use weir_model::{ProjectId, Timestamp};

use super::read::{heads, read_block};
use super::scan::floor;
use crate::{Result, Store};

/// The highest arrival number such that all events that were received at `time` or later
/// have a higher one; 0: all events were received at `time` or later.
///
/// `time` must be in the past, and events that were acknowledged by then must be applied.
/// Later events may be applied in part, because partitions do not wait for each other. So
/// the first stored event since `time` is not always the first one, and the last event
/// before `time` bounds the result too.
///
/// Reads a few blocks of each partition, independent of their number.
///
/// # Errors
/// When the store cannot be read or a block is damaged.
pub async fn last_before(store: &Store, project: ProjectId, time: Timestamp) -> Result<u64> {
    let (mut before, mut since) = (0, None::<u64>);
    for (partition, head) in heads(store, project).await? {
        if head.count == 0 {
            continue;
        }
        let last = u64::try_from(head.last).unwrap_or(0);
        let sides = sides(store, project, partition, last, time).await?;
        before = before.max(sides.before.unwrap_or(0));
        since = since.into_iter().chain(sides.since).min();
    }
    Ok(since.map_or(before, |since| before.min(since.saturating_sub(1))))
}

/// Arrival numbers of a partition before and since a time.
#[derive(Default)]
struct ArrivalSplit {
    /// The last event that was received before it.
    before: Option<u64>,
    /// The first event that was received at it or later.
    since: Option<u64>,
}

/// Bisects the blocks of a partition whose last arrival number is `last`.
async fn sides(
    store: &Store,
    project: ProjectId,
    partition: u16,
    last: u64,
    time: Timestamp,
) -> Result<ArrivalSplit> {
    let time = time.micros();
    let (mut low, mut high, mut sides) = (0, last, ArrivalSplit::default());
    while low <= high {
        let middle = low + (high - low) / 2;
        let Some(first) = floor(store, project, partition, middle).await? else {
            low = middle + 1;
            continue;
        };
        let events = read_block(store, project, (partition, first)).await?;
        let at = events.iter().position(|event| event.received_at >= time);
        let (before, since) = events.split_at(at.unwrap_or(events.len()));
        sides.before = before.last().map(|event| event.arrival).or(sides.before);
        sides.since = since.first().map(|event| event.arrival).or(sides.since);
        match (before.last(), since.first()) {
            (Some(_), Some(_)) => break,
            (Some(before), None) => low = before.arrival.max(middle) + 1,
            (None, _) if first == 0 => break,
            (None, _) => high = first - 1,
        }
    }
    Ok(sides)
}
