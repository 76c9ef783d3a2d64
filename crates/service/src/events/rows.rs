//! The rows of the events page: stored events, dropped events and refused requests, by time
//! of receipt.
//!
//! What belongs here: merging the three, the position behind a page, the end of a search
//! that takes too long. What does not: the filter (`weir_model::live`).

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use uuid::Uuid;
use weir_model::live::{
    LiveRow, Outcome, OutcomeLabel, RefusedCursor, RowCursor, RowFacts, RowFilter,
};
use weir_model::warnings::{AffectedCursor, AffectedQuery};
use weir_model::{ProjectId, Timestamp};
use weir_store::events::{Search, StoredEvent};
use weir_store::warnings::Skipped;
use weir_store::{events, live, traffic, warnings};

use super::Events;
use crate::Result;
use crate::ctx::ProjectCtx;

/// After this time the search of a source ends with the rows that it has found.
const WITHIN: Duration = Duration::from_secs(1);
/// Dropped events of one read.
pub(super) const DROPPED_PER_READ: usize = 500;
/// Arrival numbers follow the time of receipt, except within this many seconds and after a
/// replay.
pub(super) const DISORDER_SECONDS: i64 = 60;

/// A page of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowPage {
    /// The rows, newest first.
    pub rows: Vec<LiveRow>,
    /// The position behind the page. `None`: there are no more rows.
    pub next: Option<RowCursor>,
    /// Whether the search ended before the page was full, because it took too long.
    pub is_early: bool,
}

/// The position of a row in its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    Stored(u64),
    Dropped(AffectedCursor),
    Refused(RefusedCursor),
}

impl Position {
    /// Moves the cursor behind this row.
    fn pass(self, cursor: &mut RowCursor) {
        match self {
            Self::Stored(arrival) => cursor.arrival = Some(arrival),
            Self::Dropped(dropped) => cursor.dropped = Some(dropped),
            Self::Refused(refused) => cursor.refused = Some(refused),
        }
    }
}

/// Rows of one of the three sources.
#[derive(Debug, Default)]
struct Source {
    /// The rows in the order of their positions: newest first, but stored events by order
    /// of arrival.
    rows: Vec<(Position, LiveRow)>,
    /// The position up to which it was searched. `None`: everything was searched.
    next: Option<Position>,
}

impl Source {
    /// Rows of other sources that are older than this time, in microseconds, can follow only
    /// after more rows of this one.
    fn floor(&self) -> Option<i64> {
        self.next?;
        let times = self.rows.iter().map(|(_, row)| row.received_at.micros());
        Some(times.min().unwrap_or(i64::MAX))
    }
}

impl Events {
    /// A page of the rows that match, newest first. Ends early when the search takes too
    /// long; the next page continues from there.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn rows(
        &self,
        project: &ProjectCtx,
        filter: &RowFilter,
        cursor: RowCursor,
        limit: usize,
    ) -> Result<RowPage> {
        let after = self.rows_after(project, filter).await?;
        self.rows_from(project, filter, after, cursor, limit).await
    }

    /// All stored events that match have a higher arrival number. It takes a few reads, so a
    /// caller of many pages asks once.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn rows_after(&self, project: &ProjectCtx, filter: &RowFilter) -> Result<u64> {
        // Blocks that are skipped do not say when their events were received.
        let skips = filter.event.is_some() || filter.distinct_id.is_some();
        match filter.from.filter(|_| skips && takes_stored(filter)) {
            Some(from) => self.arrival_before(project, from).await,
            None => Ok(0),
        }
    }

    /// As [`Events::rows`], with the number of [`Events::rows_after`].
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn rows_from(
        &self,
        project: &ProjectCtx,
        filter: &RowFilter,
        after: u64,
        cursor: RowCursor,
        limit: usize,
    ) -> Result<RowPage> {
        let stored = self.stored_rows(project, filter, after, cursor, limit).await?;
        let dropped = self.dropped_rows(project.project, filter, cursor, limit).await?;
        let refused = self.refused_rows(project.project, filter, cursor).await?;
        Ok(merged([stored, dropped, refused], cursor, limit))
    }

    /// The row with this key. `None`: it does not exist, or is not kept any more.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn row(&self, project: &ProjectCtx, key: &str) -> Result<Option<LiveRow>> {
        let (store, id) = (&self.core.store, project.project);
        if let Ok(uuid) = key.parse::<Uuid>() {
            let mut found = None;
            let see = |event: &StoredEvent| found = Some(live::accepted(id, event));
            events::see_each(store, id, &[uuid], see).await?;
            return Ok(found);
        }
        if let Some((partition, number)) = warnings::read_sample_key(key) {
            let event = warnings::one(store, id, partition, number).await?;
            let event = event.filter(|event| !event.is_stored);
            return Ok(event.map(|event| {
                let received_at = Timestamp::from_micros(event.received_at);
                let cursor = AffectedCursor { received_at, partition, number };
                live::dropped(Skipped::of(cursor, event))
            }));
        }
        let refused = traffic::refused(store, id).await?;
        Ok(refused.into_iter().find(|request| request.key == key).map(live::rejected))
    }

    async fn stored_rows(
        &self,
        project: &ProjectCtx,
        filter: &RowFilter,
        after: u64,
        cursor: RowCursor,
        limit: usize,
    ) -> Result<Source> {
        if !takes_stored(filter) {
            return Ok(Source::default());
        }
        let (store, id) = (&self.core.store, project.project);
        let before = match (cursor.arrival, filter.to) {
            (None, Some(to)) => self.arrival_since(project, to).await?,
            (arrival, _) => arrival,
        };
        let takes = |event: &StoredEvent| takes_event(filter, event);
        let takes_name = |name: &str| filter.takes_name(name);
        let search = Search {
            before,
            after,
            since: filter.from.map(Timestamp::micros),
            limit,
            within: Some(WITHIN),
            distinct_id: filter.distinct_id.as_deref(),
            takes_name: if filter.event.is_some() { Some(&takes_name) } else { None },
            takes: &takes,
        };
        let found = events::search(store, id, &search).await?;
        // Rows are short, but the events can be large.
        let row =
            |event: &StoredEvent| (Position::Stored(event.arrival), live::accepted(id, event));
        Ok(Source {
            rows: found.events.iter().map(row).collect(),
            next: found.next.map(Position::Stored),
        })
    }

    /// No event that was received before this time has this arrival number or a higher one.
    /// `None`: the time is too close to now to say.
    pub(super) async fn arrival_since(
        &self,
        project: &ProjectCtx,
        time: Timestamp,
    ) -> Result<Option<u64>> {
        let later = time.plus_seconds(DISORDER_SECONDS);
        if later >= project.org.ctx.now {
            return Ok(None);
        }
        let last = events::last_before(&self.core.store, project.project, later).await?;
        Ok(Some(last.saturating_add(1)))
    }

    /// All events that were received at this time or later have a higher arrival number.
    async fn arrival_before(&self, project: &ProjectCtx, time: Timestamp) -> Result<u64> {
        let earlier = time.plus_seconds(-DISORDER_SECONDS);
        if earlier >= project.org.ctx.now {
            return Ok(0);
        }
        Ok(events::last_before(&self.core.store, project.project, earlier).await?)
    }

    async fn dropped_rows(
        &self,
        project: ProjectId,
        filter: &RowFilter,
        cursor: RowCursor,
        limit: usize,
    ) -> Result<Source> {
        if !filter.takes_label(OutcomeLabel::Dropped) {
            return Ok(Source::default());
        }
        let until = Instant::now().checked_add(WITHIN);
        let mut query = AffectedQuery {
            is_dropped: true,
            behind: cursor.dropped,
            after: filter.from.map(just_before),
            before: filter.to,
            limit: limit.max(DROPPED_PER_READ),
            ..AffectedQuery::default()
        };
        let mut rows = Vec::new();
        loop {
            let page = warnings::page(&self.core.store, project, &query).await?;
            let last = page.found.last().map(|(at, _)| *at);
            for (at, event) in page.found {
                let row = live::dropped(Skipped::of(at, event));
                if !filter.takes_row(&row) {
                    continue;
                }
                rows.push((Position::Dropped(at), row));
                if rows.len() >= limit {
                    let are_more = page.more || Some(at) != last;
                    let next = are_more.then_some(Position::Dropped(at));
                    return Ok(Source { rows, next });
                }
            }
            let Some(last) = last.filter(|_| page.more) else {
                return Ok(Source { rows, next: None });
            };
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(Source { rows, next: Some(Position::Dropped(last)) });
            }
            query.behind = Some(last);
        }
    }

    async fn refused_rows(
        &self,
        project: ProjectId,
        filter: &RowFilter,
        cursor: RowCursor,
    ) -> Result<Source> {
        if !filter.takes_label(OutcomeLabel::Rejected) {
            return Ok(Source::default());
        }
        let refused = traffic::refused(&self.core.store, project).await?;
        let mut refused: Vec<(RefusedCursor, LiveRow)> = refused
            .into_iter()
            .map(|request| {
                (RefusedCursor::behind(request.at, &request.key), live::rejected(request))
            })
            .filter(|(at, row)| {
                cursor.refused.is_none_or(|last| *at < last) && filter.takes_row(row)
            })
            .collect();
        refused.sort_by_key(|(at, _)| Reverse(*at));
        let rows = refused.into_iter().map(|(at, row)| (Position::Refused(at), row));
        Ok(Source { rows: rows.collect(), next: None })
    }
}

/// Whether stored events can match.
pub(super) fn takes_stored(filter: &RowFilter) -> bool {
    filter.takes_label(OutcomeLabel::Accepted) || filter.takes_label(OutcomeLabel::Altered)
}

/// Whether a stored event matches.
pub(super) fn takes_event(filter: &RowFilter, event: &StoredEvent) -> bool {
    filter.takes(&RowFacts {
        label: OutcomeLabel::of(Outcome::Accepted, !event.warnings.is_empty()),
        event: Some(&event.event),
        distinct_id: Some(&event.distinct_id),
        json: &event.properties,
        received_at: Timestamp::from_micros(event.received_at),
    })
}

/// The bound with which dropped events begin at this time: the store excludes its bound.
pub(super) fn just_before(time: Timestamp) -> Timestamp {
    Timestamp::from_micros(time.micros().saturating_sub(1))
}

/// The newest rows of all sources, and the position behind them.
fn merged(sources: [Source; 3], begin: RowCursor, limit: usize) -> RowPage {
    let floor = sources.iter().filter_map(Source::floor).max().unwrap_or(i64::MIN);
    let mut left = sources.each_ref().map(|source| source.rows.len());
    let ends = sources.each_ref().map(|source| source.next);
    let mut all = Vec::new();
    for (of, source) in sources.into_iter().enumerate() {
        // Within a source the order is that of its positions, so that none is passed over.
        let mut time = i64::MAX;
        for (position, row) in source.rows {
            time = time.min(row.received_at.micros());
            all.push((time, of, position, row));
        }
    }
    all.retain(|(time, ..)| *time >= floor);
    all.sort_by_key(|(time, ..)| Reverse(*time));
    all.truncate(limit);
    let (mut rows, mut cursor) = (Vec::with_capacity(all.len()), begin);
    for (_, of, position, row) in all {
        position.pass(&mut cursor);
        if let Some(left) = left.get_mut(of) {
            *left -= 1;
        }
        rows.push(row);
    }
    let mut is_complete = true;
    for ((left, end), everything) in left.into_iter().zip(ends).zip(ALL_PASSED) {
        match end {
            _ if left > 0 => is_complete = false,
            Some(end) => {
                end.pass(&mut cursor);
                is_complete = false;
            }
            None => everything.pass(&mut cursor),
        }
    }
    let next = (!is_complete).then_some(cursor);
    RowPage { is_early: next.is_some() && rows.len() < limit, rows, next }
}

/// Behind all rows of each source.
const ALL_PASSED: [Position; 3] = [
    Position::Stored(0),
    Position::Dropped(AffectedCursor { received_at: Timestamp::EPOCH, partition: 0, number: 0 }),
    Position::Refused(RefusedCursor { at: Timestamp::EPOCH, number: 0 }),
];

#[cfg(test)]
mod tests {
    use weir_model::Timestamp;
    use weir_model::live::{LiveRow, Outcome, RefusedCursor, RowCursor};
    use weir_model::warnings::AffectedCursor;

    use super::{Position, RowPage, Source, merged};

    fn row(received_at: i64) -> LiveRow {
        LiveRow {
            key: received_at.to_string(),
            received_at: Timestamp::from_micros(received_at),
            outcome: Outcome::Accepted,
            reasons: Vec::new(),
            detail: None,
            event: None,
            distinct_id: None,
            timestamp: None,
            place: None,
            library: None,
            size: 0,
            payload: String::new(),
            project_key: None,
            person: None,
            effects: Vec::new(),
        }
    }

    fn stored(rows: &[(u64, i64)], next: Option<u64>) -> Source {
        let rows = rows.iter().map(|(arrival, at)| (Position::Stored(*arrival), row(*at)));
        Source { rows: rows.collect(), next: next.map(Position::Stored) }
    }

    fn behind(at: i64) -> AffectedCursor {
        let received_at = Timestamp::from_micros(at);
        AffectedCursor { received_at, partition: 1, number: at }
    }

    fn dropped(rows: &[i64], next: Option<i64>) -> Source {
        let rows = rows.iter().map(|at| (Position::Dropped(behind(*at)), row(*at)));
        let next = next.map(|at| Position::Dropped(behind(at)));
        Source { rows: rows.collect(), next }
    }

    fn refusal(at: i64) -> RefusedCursor {
        RefusedCursor { at: Timestamp::from_micros(at), number: 0 }
    }

    fn refused(rows: &[i64]) -> Source {
        let rows = rows.iter().map(|at| (Position::Refused(refusal(*at)), row(*at)));
        Source { rows: rows.collect(), next: None }
    }

    /// The times of the rows, the position behind them, and whether the page ended early.
    fn page(sources: [Source; 3], limit: usize) -> (Vec<i64>, Option<RowCursor>, bool) {
        let page = merged(sources, RowCursor::NEWEST, limit);
        let times = page.rows.iter().map(|row| row.received_at.micros()).collect();
        (times, page.next, page.is_early)
    }

    #[test]
    fn rows_are_in_order_and_each_source_continues_behind_its_last_row() {
        let sources = [stored(&[(9, 90), (8, 60)], None), dropped(&[80, 50], None), refused(&[70])];
        let (times, next, is_early) = page(sources, 3);
        assert_eq!((times, is_early), (vec![90, 80, 70], false));
        let next = next.unwrap();
        assert_eq!((next.arrival, next.dropped), (Some(9), Some(behind(80))));
        assert_eq!(next.refused, Some(refusal(0)), "all of them are shown");

        let sources = [stored(&[(9, 90)], None), dropped(&[80], None), refused(&[])];
        assert_eq!(page(sources, 3), (vec![90, 80], None, false));
    }

    #[test]
    fn older_rows_wait_for_a_source_that_is_not_searched_yet() {
        // It may have a stored event between 70 and 80.
        let sources =
            [stored(&[(9, 90), (8, 80)], Some(5)), dropped(&[85, 70], None), refused(&[])];
        let (times, next, is_early) = page(sources, 10);
        assert_eq!((times, is_early), (vec![90, 85, 80], true));
        let next = next.unwrap();
        assert_eq!((next.arrival, next.dropped), (Some(5), Some(behind(85))));
        // Nothing matched so far, but the search gets on.
        let (times, next, is_early) =
            page([stored(&[], Some(5)), dropped(&[85], None), refused(&[])], 10);
        assert_eq!((times.len(), is_early), (0, true));
        assert_eq!(
            next,
            Some(RowCursor { arrival: Some(5), refused: Some(refusal(0)), dropped: None })
        );
    }

    #[test]
    fn events_that_arrived_in_another_order_are_not_passed_over() {
        let sources = [stored(&[(9, 10), (8, 90)], None), dropped(&[50], None), refused(&[])];
        let (times, next, _) = page(sources, 2);
        assert_eq!(times, [50, 10]);
        assert_eq!(next.unwrap().arrival, Some(9));
        let late = stored(&[(2000, 100), (1999, 105), (1998, 105)], Some(1998));
        let (times, next, is_early) = page([late, dropped(&[], None), refused(&[])], 3);
        assert_eq!((times, is_early), (vec![100, 105, 105], false));
        assert_eq!(next.unwrap().arrival, Some(1998));
    }

    /// Rows of one source. Their keys are their positions.
    fn rows_at(rows: impl IntoIterator<Item = (Position, i64)>) -> Vec<(Position, LiveRow)> {
        let key = |position: &Position| format!("{position:?}");
        let named = |(position, at)| (position, LiveRow { key: key(&position), ..row(at) });
        rows.into_iter().map(named).collect()
    }

    /// The page behind a cursor. A source finds as many rows as the page may have.
    fn page_of(all: &[Vec<(Position, LiveRow)>; 3], cursor: RowCursor, limit: usize) -> RowPage {
        let is_left = |(position, _): &&(Position, LiveRow)| match position {
            Position::Stored(at) => cursor.arrival.is_none_or(|last| *at < last),
            Position::Dropped(at) => cursor.dropped.is_none_or(|last| *at < last),
            Position::Refused(at) => cursor.refused.is_none_or(|last| *at < last),
        };
        let sources = all.each_ref().map(|rows| {
            let mut rows: Vec<_> = rows.iter().filter(is_left).cloned().collect();
            let are_more = rows.len() > limit;
            rows.truncate(limit);
            Source { next: rows.last().map(|(at, _)| *at).filter(|_| are_more), rows }
        });
        merged(sources, cursor, limit)
    }

    #[test]
    fn a_walk_gets_on_and_has_each_row_once() {
        // Events of a replay and of slow uploads are among newer ones.
        let times = [100, 105, 105, 3, 90, 95, 2, 2, 2, 99, 80, 81, 60, 1, 70];
        let stored = (1..=15).rev().map(Position::Stored).zip(times);
        let dropped = [104, 98, 82, 61, 2].map(|at| (Position::Dropped(behind(at)), at));
        let refused = [106, 97, 3].map(|at| (Position::Refused(refusal(at)), at));
        let all = [rows_at(stored), rows_at(dropped), rows_at(refused)];
        let mut expected: Vec<&str> =
            all.iter().flatten().map(|(_, row)| row.key.as_str()).collect();
        expected.sort_unstable();
        for limit in 1..=25 {
            let (mut cursor, mut found) = (RowCursor::NEWEST, Vec::new());
            loop {
                let page = page_of(&all, cursor, limit);
                found.extend(page.rows.into_iter().map(|row| row.key));
                let Some(next) = page.next else { break };
                assert_ne!(next, cursor, "limit {limit}");
                cursor = next;
            }
            found.sort_unstable();
            assert_eq!(found, expected, "limit {limit}");
        }
    }

    #[test]
    fn refused_requests_of_the_same_time_can_be_on_two_pages() {
        let at = |number| RefusedCursor { number, ..refusal(7) };
        let refused = [2, 1].map(|number| (Position::Refused(at(number)), 7));
        let all = [Vec::new(), Vec::new(), rows_at(refused)];
        let next = page_of(&all, RowCursor::NEWEST, 1).next.unwrap();
        assert_eq!(next.refused, Some(at(2)));
        assert_eq!(page_of(&all, next, 1).rows.len(), 1);
    }
}
