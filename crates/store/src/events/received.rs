//! Which arrival number belongs to a moment: for intervals that were missed.

use weir_model::{ProjectId, Timestamp};

use super::read::{heads, read_block};
use super::scan::floor;
use crate::{Result, Store};

/// An arrival number that everything comes after that was received at `time` or
/// later, and as little else as possible; none: nothing was received since. Events
/// must be applied.
///
/// Looks into a few blocks of each partition, however many there are.
///
/// # Errors
/// When the store cannot be read or a block is damaged.
pub async fn last_before(
    store: &Store,
    project: ProjectId,
    time: Timestamp,
) -> Result<Option<u64>> {
    let mut found: Option<u64> = None;
    for (partition, head) in heads(store, project).await? {
        if head.count == 0 {
            continue;
        }
        let last = u64::try_from(head.last).unwrap_or(0);
        if let Some(first) = first_since(store, project, partition, last, time).await? {
            found = Some(found.map_or(first, |found| found.min(first)));
        }
    }
    Ok(found.map(|first| first.saturating_sub(1)))
}

/// The first arrival number of a partition that was received at `time` or later.
async fn first_since(
    store: &Store,
    project: ProjectId,
    partition: u16,
    last: u64,
    time: Timestamp,
) -> Result<Option<u64>> {
    let time = time.micros();
    let (mut low, mut high, mut found) = (0, last, None);
    while low <= high {
        let middle = low + (high - low) / 2;
        let Some(first) = floor(store, project, partition, middle).await? else {
            low = middle + 1;
            continue;
        };
        let events = read_block(store, project, (partition, first)).await?;
        let since = events.iter().find(|event| event.received_at >= time);
        found = since.map(|event| event.arrival).or(found);
        match (since, events.first(), events.last()) {
            // The block begins with it: so may one before.
            (Some(since), Some(begin), _) if since.arrival == begin.arrival && first > 0 => {
                high = first - 1;
            }
            (Some(_), ..) => break,
            (None, _, end) => low = end.map_or(middle, |end| end.arrival.max(middle)) + 1,
        }
    }
    Ok(found)
}
