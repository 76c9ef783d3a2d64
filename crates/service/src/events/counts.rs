//! Counting the rows of a filter over time, for the chart of the events page. Counts by minute
//! are kept for all events of a project, so a filter has to search.
//!
//! What belongs here: the search, which ends early, and from when its counts are complete.
//! What does not: the filter (`weir_model::live`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use weir_model::live::{OutcomeLabel, RowFilter};
use weir_model::warnings::AffectedQuery;
use weir_model::{ProjectId, Timestamp};
use weir_store::events::{Search, StoredEvent};
use weir_store::warnings::Skipped;
use weir_store::{events, live, warnings};

use super::Events;
use super::rows::{DISORDER_SECONDS, DROPPED_PER_READ, just_before, takes_event, takes_stored};
use crate::Result;
use crate::ctx::ProjectCtx;

/// After this time the search of a source ends with what it has counted. The page waits for
/// it.
const WITHIN: Duration = Duration::from_millis(300);

/// Events behind the end of a search that say how far it came. One of them can be from a
/// replay, with an old time.
const BEHIND: usize = 50;

/// Equal steps of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountSteps {
    /// When the first step begins.
    pub begin: Timestamp,
    /// Length of a step, in seconds.
    pub seconds: i64,
    /// Number of steps.
    pub count: usize,
}

impl CountSteps {
    /// The place of the step with this time.
    fn place(self, time: Timestamp) -> Option<usize> {
        let since = time.micros().checked_sub(self.begin.micros())?;
        let step = since.div_euclid(self.seconds.saturating_mul(1_000_000).max(1));
        usize::try_from(step).ok().filter(|step| *step < self.count)
    }

    fn end(self) -> Timestamp {
        let count = i64::try_from(self.count).unwrap_or(i64::MAX);
        self.begin.plus_seconds(self.seconds.saturating_mul(count))
    }
}

/// Counts of the rows of a filter. Lists have a count for each step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowCounts {
    /// Stored events.
    pub accepted: Vec<u64>,
    /// Dropped events.
    pub dropped: Vec<u64>,
    /// The counts of steps that begin at this time or later are complete. `None`: all counts
    /// are.
    pub since: Option<Timestamp>,
}

impl Events {
    /// Counts the stored and the dropped events that match. Each of the two searches ends
    /// early when it takes too long. Refused requests are not counted: nothing but an outcome
    /// finds them. The times of the filter do not count, those of the steps do.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn count_rows(
        &self,
        project: &ProjectCtx,
        filter: &RowFilter,
        steps: CountSteps,
    ) -> Result<RowCounts> {
        let to = Some(steps.end()).filter(|end| *end < project.org.ctx.now);
        let filter = RowFilter { from: Some(steps.begin), to, ..filter.clone() };
        let (accepted, stored_since) = self.count_stored(project, &filter, steps).await?;
        let (dropped, dropped_since) = self.count_dropped(project.project, &filter, steps).await?;
        Ok(RowCounts { accepted, dropped, since: stored_since.max(dropped_since) })
    }

    /// Stored events of each step, and since when the counts are complete.
    async fn count_stored(
        &self,
        project: &ProjectCtx,
        filter: &RowFilter,
        steps: CountSteps,
    ) -> Result<(Vec<u64>, Option<Timestamp>)> {
        let counts: Vec<AtomicU64> = (0..steps.count).map(|_| AtomicU64::new(0)).collect();
        if !takes_stored(filter) {
            return Ok((numbers(counts), None));
        }
        let (store, id) = (&self.core.store, project.project);
        let before = match filter.to {
            Some(to) => self.arrival_since(project, to).await?,
            None => None,
        };
        let takes = |event: &StoredEvent| {
            let place = steps.place(Timestamp::from_micros(event.received_at));
            if takes_event(filter, event)
                && let Some(count) = place.and_then(|place| counts.get(place))
            {
                count.fetch_add(1, Ordering::Relaxed);
            }
            // Counted events need not be kept.
            false
        };
        let takes_name = |name: &str| filter.takes_name(name);
        let search = Search {
            before,
            after: self.rows_after(project, filter).await?,
            since: filter.from.map(Timestamp::micros),
            limit: 1,
            within: Some(WITHIN),
            distinct_id: filter.distinct_id.as_deref(),
            takes_name: if filter.event.is_some() { Some(&takes_name) } else { None },
            takes: &takes,
        };
        let end = events::search(store, id, &search).await?.next;
        let since = match end {
            None => None,
            Some(arrival) => {
                let older = events::arrivals(store, id, Some(arrival), BEHIND).await?.events;
                let newest = older.iter().map(|event| event.received_at).max();
                newest.map(|at| Timestamp::from_micros(at).plus_seconds(DISORDER_SECONDS))
            }
        };
        Ok((numbers(counts), since))
    }

    /// Dropped events of each step, and since when the counts are complete.
    async fn count_dropped(
        &self,
        project: ProjectId,
        filter: &RowFilter,
        steps: CountSteps,
    ) -> Result<(Vec<u64>, Option<Timestamp>)> {
        let mut counts = vec![0; steps.count];
        if !filter.takes_label(OutcomeLabel::Dropped) {
            return Ok((counts, None));
        }
        let until = Instant::now().checked_add(WITHIN);
        let mut query = AffectedQuery {
            is_dropped: true,
            after: filter.from.map(just_before),
            before: filter.to,
            limit: DROPPED_PER_READ,
            ..AffectedQuery::default()
        };
        loop {
            let page = warnings::page(&self.core.store, project, &query).await?;
            let last = page.found.last().map(|(at, _)| *at);
            for (at, event) in page.found {
                let row = live::dropped(Skipped::of(at, event));
                if filter.takes_row(&row)
                    && let Some(count) =
                        steps.place(row.received_at).and_then(|place| counts.get_mut(place))
                {
                    *count += 1;
                }
            }
            let Some(last) = last.filter(|_| page.more) else { return Ok((counts, None)) };
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok((counts, Some(last.received_at.plus_seconds(1))));
            }
            query.behind = Some(last);
        }
    }
}

fn numbers(counts: Vec<AtomicU64>) -> Vec<u64> {
    counts.into_iter().map(AtomicU64::into_inner).collect()
}

#[cfg(test)]
mod tests {
    use super::{CountSteps, Timestamp};

    #[test]
    fn a_time_is_in_its_step() {
        let begin = Timestamp::from_micros(1_780_000_000_000_000);
        let steps = CountSteps { begin, seconds: 60, count: 3 };
        let place = |seconds: i64| steps.place(begin.plus_seconds(seconds));
        assert_eq!([-1, 0, 59].map(place), [None, Some(0), Some(0)]);
        assert_eq!([60, 179, 180].map(place), [Some(1), Some(2), None]);
        assert_eq!(steps.end(), begin.plus_seconds(180));
    }
}
