//! Stickiness: in how many intervals persons are active.

mod actors;

use std::ops::Range;

use weir_questions::evaluate::Stickiness;
use weir_questions::query::{EventsNode, StickinessQuery};
use weir_questions::results::{CompareLabel, StickinessResult};

use crate::by_person::{Reading, ShortRecord, in_passes, visit_nodes};
use crate::error::Result;
use crate::plan::{Actor, Plan};
use crate::run::Run;
use crate::source::Source;
use crate::span::Span;
use crate::{Asked, Found};

pub(crate) use actors::{Cell, behind};

/// The times of the events that the answer to a question about stickiness needs.
///
/// # Errors
/// [`AnswerError::Field`](crate::AnswerError::Field).
pub fn stickiness_times(asked: &Asked<'_>, query: &StickinessQuery) -> Result<Vec<Range<i64>>> {
    Ok(spans(asked, query)?.into_iter().map(|span| span.times).collect())
}

/// The range of the question, and the one that it is compared with.
fn spans(asked: &Asked<'_>, query: &StickinessQuery) -> Result<Vec<Span>> {
    let dates = &query.scope.dates;
    let range = asked.calendar.range(dates, query.interval, asked.now, asked.earliest)?;
    let mut ranges = vec![range];
    if let Some(compare) = &query.compare {
        ranges.push(asked.calendar.previous(dates, &range, compare)?);
    }
    let span = |range| Ok(Span::from(&asked.calendar.buckets(range)?));
    ranges.iter().map(span).collect()
}

/// Answers a question about stickiness.
///
/// # Errors
/// See [`AnswerError`](crate::AnswerError).
pub fn stickiness(
    source: &dyn Source,
    run: &Run<'_>,
    asked: &Asked<'_>,
    query: &StickinessQuery,
) -> Result<Found<Vec<StickinessResult>>> {
    let spans = spans(asked, query)?;
    let group_type = |series: &EventsNode| group_type(query, series);
    // By series and range.
    let mut counted: Vec<Vec<Stickiness>> =
        query.series.iter().map(|_| empty(query, &spans)).collect();
    let mut kinds: Vec<Option<u8>> = query.series.iter().map(group_type).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        let is_of = |(_, series): &(usize, &EventsNode)| group_type(series) == kind;
        let series: Vec<(usize, &EventsNode)> =
            query.series.iter().enumerate().filter(is_of).collect();
        let found = of_actors(source, run, asked, query, &spans, kind, &series)?;
        for ((at, _), found) in series.iter().zip(found) {
            counted[*at] = found;
        }
    }
    let mut results = Vec::new();
    for range in 0..spans.len() {
        for (at, (series, counted)) in query.series.iter().zip(&counted).enumerate() {
            let Some(counted) = counted.get(range) else { continue };
            let is_cumulative = query.filter.is_cumulative;
            let (counts, data) = (counted.counts(false), counted.counts(is_cumulative));
            let result =
                StickinessResult::new(series, at, query.interval, &counts, data, is_cumulative);
            let label = if range == 0 { CompareLabel::Current } else { CompareLabel::Previous };
            results.push(match query.compare {
                Some(_) => result.compared(label),
                None => result,
            });
        }
    }
    let range = spans.first().map_or_else(|| crate::span::resolved(&(0..0)), Span::resolved);
    Ok(Found { results, has_more: None, range })
}

/// The type of the groups that a series counts. `None`: it counts persons.
fn group_type(query: &StickinessQuery, series: &EventsNode) -> Option<u8> {
    query.scope.group_type.or(series.math.group_type())
}

/// For each range.
fn empty(query: &StickinessQuery, spans: &[Span]) -> Vec<Stickiness> {
    let of = |span: &Span| Stickiness::new(&span.boundaries, query.filter.criteria);
    spans.iter().map(of).collect()
}

/// Counts the persons or groups of one kind, for some series.
fn of_actors(
    source: &dyn Source,
    run: &Run<'_>,
    asked: &Asked<'_>,
    query: &StickinessQuery,
    spans: &[Span],
    kind: Option<u8>,
    series: &[(usize, &EventsNode)],
) -> Result<Vec<Vec<Stickiness>>> {
    let begin = begin(spans);
    let (plan, actor) = plan(asked, query, spans, kind, series)?;
    let reading = Reading::new(source, run, &plan, actor);
    let new = || -> Vec<Vec<Stickiness>> { series.iter().map(|_| empty(query, spans)).collect() };
    let merge = |all: &mut Vec<Vec<Stickiness>>, more: Vec<Vec<Stickiness>>| {
        for (all, more) in all.iter_mut().flatten().zip(more.into_iter().flatten()) {
            all.merge(more);
        }
    };
    in_passes(
        |pass| {
            let states = visit_nodes(&reading, pass, begin, new, |state, _, records| {
                for (at, ranges) in state.iter_mut().enumerate() {
                    for (counted, span) in ranges.iter_mut().zip(spans) {
                        counted.person(times_of(records, at, span, begin));
                    }
                }
                Ok(())
            })?;
            let mut all = new();
            states.into_iter().for_each(|state| merge(&mut all, state));
            Ok(all)
        },
        |all, more| {
            merge(all, more);
            Ok(())
        },
    )
}

/// What is read for some series of one kind of actors, and who they are.
fn plan(
    asked: &Asked<'_>,
    query: &StickinessQuery,
    spans: &[Span],
    kind: Option<u8>,
    series: &[(usize, &EventsNode)],
) -> Result<(Plan, Actor)> {
    let times = spans.iter().map(|span| span.times.clone()).collect();
    let mut plan = Plan::new(&query.scope, asked, times)?;
    for (at, series) in series {
        let path = format!("series__{at}__properties");
        plan.add(series.event.as_deref(), &series.properties, asked, &path)?;
    }
    let actor = plan.actor(kind);
    Ok((plan, actor))
}

/// The earliest time that counts.
fn begin(spans: &[Span]) -> i64 {
    spans.iter().map(|span| span.times.start).min().unwrap_or_default()
}

/// The times of the events of a person that are of a node and in a range.
fn times_of<'r>(
    records: &'r [ShortRecord],
    node: usize,
    span: &'r Span,
    begin: i64,
) -> impl Iterator<Item = i64> + 'r {
    let own = records.iter().filter(move |record| record.bits() >> node & 1 == 1);
    let times = own.map(move |record| record.time(begin));
    times.filter(move |time| span.times.contains(time))
}
