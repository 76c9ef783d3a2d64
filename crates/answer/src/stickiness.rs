//! Stickiness: in how many intervals persons are active.

use std::ops::Range;

use weir_questions::evaluate::Stickiness;
use weir_questions::query::{EventsNode, StickinessQuery};
use weir_questions::results::{CompareLabel, StickinessResult};

use crate::by_person::{ByPerson, Reading, ShortRecord, in_passes, visit};
use crate::error::Result;
use crate::plan::Plan;
use crate::run::Run;
use crate::source::Source;
use crate::span::Span;
use crate::{Asked, Found};

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
    let group_type = |series: &EventsNode| query.scope.group_type.or(series.math.group_type());
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
    let times: Vec<Range<i64>> = spans.iter().map(|span| span.times.clone()).collect();
    let begin = times.iter().map(|times| times.start).min().unwrap_or_default();
    let mut plan = Plan::new(&query.scope, asked, times)?;
    for (at, series) in series {
        let path = format!("series__{at}__properties");
        plan.add(series.event.as_deref(), &series.properties, asked, &path)?;
    }
    let actor = plan.actor(kind);
    let reading = Reading::new(source, run, &plan, actor);
    let new = || -> Vec<Vec<Stickiness>> { series.iter().map(|_| empty(query, spans)).collect() };
    let merge = |all: &mut Vec<Vec<Stickiness>>, more: Vec<Vec<Stickiness>>| {
        for (all, more) in all.iter_mut().flatten().zip(more.into_iter().flatten()) {
            all.merge(more);
        }
    };
    in_passes(
        |pass| {
            let kept = reading.read(
                || ByPerson::new(run, pass),
                |kept, batch, actors| {
                    let masks = batch.masks();
                    batch.kept().ones().try_for_each(|row| {
                        let (person, time) = (actors[row], batch.times()[row]);
                        kept.push(ShortRecord::new(person, begin, time, masks[row]))
                    })
                },
            )?;
            let states = visit(
                run,
                kept,
                |_| {},
                new,
                |state, _, records| {
                    for (at, ranges) in state.iter_mut().enumerate() {
                        for (counted, span) in ranges.iter_mut().zip(spans) {
                            let own = records.iter().filter(|record| record.bits() >> at & 1 == 1);
                            let times = own.map(|record| record.time(begin));
                            counted.person(times.filter(|time| span.times.contains(time)));
                        }
                    }
                    Ok(())
                },
            )?;
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
