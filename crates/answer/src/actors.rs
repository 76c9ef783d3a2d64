//! The persons or groups behind a number (QRY-31).
//!
//! What belongs here: which of them a list shows, in which order, and their records. What does
//! not: who is behind a number, which the rules of its kind of question decide (`actors` of
//! each kind).

mod found;
mod records;

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use uuid::Uuid;
use weir_model::errors::FieldError;
use weir_questions::Query;
use weir_questions::query::{
    ActorColumn, ActorsQuery, Cell, CompareFilter, Display, Scope, TrendsQuery,
};
use weir_questions::results::{ActorsResult, CompareLabel};
use weir_questions::time::{Buckets, DateText, Interval, TimeRange};

use crate::error::{AnswerError, Result};
use crate::run::{Reservation, Run};
use crate::source::Source;
use crate::sql::RowSource;
use crate::{Asked, funnels, lifecycle, paths, retention, stickiness, trends};

pub(crate) use found::{ActorList, Behind, EventCounts};

/// The path of the question that a number answers.
const QUESTION: &str = "source__source";

/// What the persons or groups behind a number are found with.
#[derive(Clone, Copy)]
pub(crate) struct Search<'q, 'a> {
    pub(crate) source: &'q dyn Source,
    pub(crate) run: &'q Run<'a>,
    pub(crate) asked: &'q Asked<'q>,
}

/// The times of the events that a list of persons or groups needs.
///
/// # Errors
/// [`AnswerError::Field`].
pub fn actors_times(asked: &Asked<'_>, query: &ActorsQuery) -> Result<Vec<Range<i64>>> {
    let times = match &*query.source {
        Query::Trends(query) => trends::trends_times(asked, query),
        Query::Funnels(query) => funnels::funnel_times(asked, query),
        Query::Retention(query) => retention::retention_times(asked, query),
        Query::Paths(query) => paths::path_times(asked, query),
        Query::Stickiness(query) => stickiness::stickiness_times(asked, query),
        Query::Lifecycle(query) => lifecycle::lifecycle_times(asked, query),
        Query::WebOverview(_)
        | Query::WebTable(_)
        | Query::WebTrends(_)
        | Query::Events(_)
        | Query::HogQL(_)
        | Query::Actors(_) => return Err(no_number()),
    };
    times.map_err(of_question)
}

/// Answers a question for the persons or groups behind a number.
///
/// # Errors
/// See [`AnswerError`].
pub fn actors(
    source: &dyn RowSource,
    run: &Run<'_>,
    asked: &Asked<'_>,
    query: &ActorsQuery,
) -> Result<ActorsResult> {
    let search = Search { source, run, asked };
    let mut list = List::new(source, run, behind(&search, query)?)?;
    list.sort(query)?;
    let count = list.rows.len();
    let skipped = usize::try_from(query.offset).unwrap_or(usize::MAX).min(count);
    let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
    let end = skipped.saturating_add(limit).min(count);
    let page = list.rows.get(skipped..end).unwrap_or_default();
    let (results, missing) = records::rows(&search, source, query, list.group_type, page)?;
    let end = skipped + results.len();
    // The next page begins behind the last row, also if bytes end this one.
    let limit = match results.len() < page.len() {
        true => u32::try_from(results.len()).unwrap_or(query.limit),
        false => query.limit,
    };
    Ok(ActorsResult {
        columns: query.select.iter().map(|column| column.word().to_owned()).collect(),
        results,
        has_more: end < count,
        limit,
        offset: query.offset,
        missing_actors_count: missing,
        actors_count: length(count),
    })
}

fn length(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Who is behind the number.
fn behind<'a>(search: &Search<'_, 'a>, query: &'a ActorsQuery) -> Result<Behind<'a>> {
    match (&*query.source, &query.cell) {
        (Query::Trends(query), Cell::Trends { day, series, breakdown, compare }) => {
            let times = counted_times(search.asked, query, *day, *compare)?;
            let breakdown = breakdown.as_ref();
            let cell = trends::Cell { times, series: *series, breakdown };
            trends::behind(search, query, &cell).map_err(of_question)
        }
        (Query::Stickiness(query), Cell::Stickiness { intervals, operator, series, compare }) => {
            let cell = stickiness::Cell {
                intervals: intervals.map(|intervals| intervals as usize),
                operator: *operator,
                series: *series,
                compare: *compare,
            };
            stickiness::behind(search, query, cell).map_err(of_question)
        }
        (Query::Lifecycle(query), Cell::Lifecycle { day, status }) => {
            let at = day.map(|day| {
                let buckets = buckets(search.asked, &query.scope, query.interval)?;
                bucket(search.asked, &buckets, day, "day")
            });
            lifecycle::behind(search, query, at.transpose()?, *status).map_err(of_question)
        }
        (Query::Retention(query), Cell::Retention { period, after, breakdown }) => {
            let periods = retention::periods(search.asked, query).map_err(of_question)?;
            if *period >= periods.len() {
                return Err(no_interval("interval"));
            }
            let breakdown = breakdown.as_ref();
            let cell = retention::Cell { period: *period, after: *after, breakdown };
            retention::behind(search, query, cell).map_err(of_question)
        }
        (Query::Paths(query), Cell::Paths(keys)) => {
            paths::behind(search, query, keys).map_err(of_question)
        }
        (Query::Funnels(query), Cell::FunnelStep { step, breakdown }) => {
            let cell = funnels::Cell::Step(*step);
            funnels::behind(search, query, cell, breakdown.as_ref()).map_err(of_question)
        }
        (Query::Funnels(query), Cell::FunnelTrend { begin, is_dropped, breakdown }) => {
            let buckets = buckets(search.asked, &query.scope, query.interval)?;
            let name = "funnelTrendsEntrancePeriodStart";
            let interval = bucket(search.asked, &buckets, *begin, name)?;
            let cell = funnels::Cell::Interval { interval, is_dropped: *is_dropped };
            funnels::behind(search, query, cell, breakdown.as_ref()).map_err(of_question)
        }
        _ => Err(no_number()),
    }
}

/// A question that was read has a number of its kind.
fn no_number() -> AnswerError {
    let detail = "The question has no such number.";
    FieldError::new("source", "invalid_input", detail).into()
}

/// Faults of the question that the number answers have the path of its fields.
fn of_question(error: AnswerError) -> AnswerError {
    match error {
        AnswerError::Field(fault) => {
            let attr = fault.attr.map(|attr| format!("{QUESTION}__{attr}"));
            FieldError { attr: Some(attr.unwrap_or_else(|| QUESTION.to_owned())), ..fault }.into()
        }
        error => error,
    }
}

fn range(
    asked: &Asked<'_>,
    scope: &Scope,
    interval: Interval,
    compare: Option<&CompareFilter>,
) -> Result<TimeRange> {
    let dates = &scope.dates;
    let range = asked.calendar.range(dates, interval, asked.now, asked.earliest);
    let range = range.map_err(|fault| of_question(fault.into()))?;
    let Some(compare) = compare else { return Ok(range) };
    let previous = asked.calendar.previous(dates, &range, compare);
    previous.map_err(|fault| of_question(fault.into()))
}

/// The intervals of the range of a question.
fn buckets(asked: &Asked<'_>, scope: &Scope, interval: Interval) -> Result<Buckets> {
    of_range(asked, &range(asked, scope, interval, None)?)
}

fn of_range(asked: &Asked<'_>, range: &TimeRange) -> Result<Buckets> {
    asked.calendar.buckets(range).map_err(|fault| of_question(fault.into()))
}

/// The number of the interval that contains a time. Faults name a member of the source.
fn bucket(asked: &Asked<'_>, buckets: &Buckets, day: DateText, name: &str) -> Result<usize> {
    asked.calendar.bucket_of(buckets, day).ok_or_else(|| no_interval(name))
}

fn no_interval(name: &str) -> AnswerError {
    let detail = "The question has no such interval.";
    FieldError::new(&format!("source__{name}"), "invalid_input", detail).into()
}

/// The times of the events that a number of trends counts.
fn counted_times(
    asked: &Asked<'_>,
    query: &TrendsQuery,
    day: Option<DateText>,
    compare: CompareLabel,
) -> Result<Range<i64>> {
    let compared = query.compare.as_ref().filter(|_| compare == CompareLabel::Previous);
    let range = range(asked, &query.scope, query.interval, compared)?;
    let display = query.filter.display;
    if display.is_total() && day.is_none() {
        return Ok(range.begin()..range.end());
    }
    let buckets = of_range(asked, &range)?;
    let Some(day) = day else { return Ok(buckets.begin()..buckets.end()) };
    let at = bucket(asked, &buckets, day, "day")?;
    let span = buckets.span(at).ok_or_else(|| no_interval("day"))?;
    Ok(match display {
        // It has the numbers of all intervals before.
        Display::Cumulative => buckets.begin()..span.end,
        display if display.is_total() => span.start.max(range.begin())..span.end,
        _ => span,
    })
}

/// The id of a person, or the key of a group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Id {
    Person(Uuid),
    Group(Arc<str>),
}

/// A row of a list.
#[derive(Debug)]
struct Row {
    actor: u32,
    id: Id,
    /// How many of its events the number counts.
    events: u64,
    /// If the order needs it.
    created_at: Option<i64>,
}

/// All persons or groups behind a number.
struct List<'q, 'a> {
    source: &'q dyn RowSource,
    run: &'q Run<'a>,
    group_type: Option<u8>,
    rows: Vec<Row>,
    /// That of the rows and of the keys of groups.
    _memory: [Reservation<'a>; 2],
}

impl<'q, 'a> List<'q, 'a> {
    fn new(source: &'q dyn RowSource, run: &'q Run<'a>, behind: Behind<'a>) -> Result<Self> {
        let Behind { actors, groups, memory } = behind;
        let mut own = run.memory.reservation();
        own.hold(actors.len() * size_of::<Row>())?;
        let row = |(actor, events): (u32, u64), id: Id| Row { actor, id, events, created_at: None };
        let (group_type, rows) = match groups {
            Some((group_type, keys)) => {
                let rows = actors.into_iter().zip(keys);
                let rows = rows.map(|(actor, key)| row(actor, Id::Group(key)));
                (Some(group_type), rows.collect())
            }
            None => {
                let numbers: Vec<u32> = actors.iter().map(|(actor, _)| *actor).collect();
                let mut ids = Vec::with_capacity(numbers.len());
                source.person_ids(&numbers, &mut ids);
                let rows = actors.into_iter().zip(ids);
                (None, rows.map(|(actor, id)| row(actor, Id::Person(id))).collect())
            }
        };
        Ok(Self { source, run, group_type, rows, _memory: [memory, own] })
    }

    /// Orders the rows as the question says, and those that are equal in it by id.
    fn sort(&mut self, query: &ActorsQuery) -> Result<()> {
        if query.order.iter().any(|order| order.column == ActorColumn::CreatedAt) {
            records::read_times(self.source, self.run, self.group_type, &mut self.rows)?;
        }
        self.rows.sort_unstable_by(|a, b| {
            let compared = query.order.iter().map(|order| {
                let ordering = match order.column {
                    ActorColumn::CreatedAt => a.created_at.cmp(&b.created_at),
                    ActorColumn::EventCount => a.events.cmp(&b.events),
                    ActorColumn::Id
                    | ActorColumn::Actor
                    | ActorColumn::Person
                    | ActorColumn::Group => a.id.cmp(&b.id),
                };
                if order.is_descending { ordering.reverse() } else { ordering }
            });
            compared.fold(Ordering::Equal, Ordering::then).then_with(|| a.id.cmp(&b.id))
        });
        Ok(())
    }
}
