//! The web overview: visitors, views and sessions of a site (QRY-61 to QRY-65).

mod reader;

use std::collections::HashMap;
use std::ops::Range;

use weir_questions::evaluate::{WebSession, WebTotals, web_values};
use weir_questions::query::{
    CompareFilter, WebOverviewQuery, WebScope, WebTableQuery, WebTrendsQuery,
};
use weir_questions::results::{WebOverviewItem, WebRow, WebTableResult, WebTrendsItem};
use weir_questions::time::Interval;
use weir_segments::NONE;

use crate::by_person::in_passes;
use crate::error::Result;
use crate::run::{Reservation, Run};
use crate::source::Source;
use crate::span::{Cursor, Span, with_reach};
use crate::{Asked, Found};

use reader::{Values, WebReader};

/// The length of a range by days, as which `Calendar::range` reads dates.
const INTERVAL: Interval = Interval::Day;
/// Bytes of a value in a table beside its numbers.
const ENTRY: usize = 64;

/// The range of a question, and the one that it is compared with.
fn spans(asked: &Asked<'_>, scope: &WebScope, compare: Option<CompareFilter>) -> Result<Vec<Span>> {
    let dates = &scope.views.dates;
    let range = asked.calendar.range(dates, INTERVAL, asked.now, asked.earliest)?;
    let mut spans = vec![Span::whole(&range)];
    if let Some(compare) = &compare {
        let previous = asked.calendar.previous_of_site(dates, &range, compare, asked.now)?;
        spans.push(Span::whole(&previous));
    }
    Ok(spans)
}

/// The intervals of a question.
fn intervals(asked: &Asked<'_>, query: &WebTrendsQuery) -> Result<Span> {
    let dates = &query.scope.views.dates;
    let range = asked.calendar.range(dates, query.interval, asked.now, asked.earliest)?;
    Ok(Span::from(&asked.calendar.buckets(&range)?))
}

fn times(spans: &[Span]) -> Vec<Range<i64>> {
    spans.iter().map(|span| with_reach(&span.times)).collect()
}

/// The times of the events that the answer to a question about a site needs.
///
/// # Errors
/// [`AnswerError::Field`](crate::AnswerError::Field).
pub fn web_overview_times(asked: &Asked<'_>, query: &WebOverviewQuery) -> Result<Vec<Range<i64>>> {
    Ok(times(&spans(asked, &query.scope, query.compare)?))
}

/// The times of the events that the answer to a question for a table needs.
///
/// # Errors
/// [`AnswerError::Field`](crate::AnswerError::Field).
pub fn web_table_times(asked: &Asked<'_>, query: &WebTableQuery) -> Result<Vec<Range<i64>>> {
    Ok(times(&spans(asked, &query.scope, query.compare)?))
}

/// The times of the events that the answer to a question about a site over time needs.
///
/// # Errors
/// [`AnswerError::Field`](crate::AnswerError::Field).
pub fn web_trends_times(asked: &Asked<'_>, query: &WebTrendsQuery) -> Result<Vec<Range<i64>>> {
    Ok(times(&[intervals(asked, query)?]))
}

/// Answers a question about a site.
///
/// # Errors
/// See [`AnswerError`](crate::AnswerError).
pub fn web_overview(
    source: &dyn Source,
    run: &Run<'_>,
    asked: &Asked<'_>,
    query: &WebOverviewQuery,
) -> Result<Found<Vec<WebOverviewItem>>> {
    let spans = spans(asked, &query.scope, query.compare)?;
    let reader = WebReader::new(run, asked, &query.scope, &spans, None)?;
    let totals = totals(&reader, source, spans.len(), |totals, range, sessions| {
        totals[range].merge(&WebTotals::of_person(sessions));
    })?;
    let current = totals.first().copied().unwrap_or_default();
    Ok(Found {
        results: WebOverviewItem::all(&current, totals.get(1)),
        has_more: None,
        range: crate::span::resolved(&range(&spans)),
    })
}

/// Answers a question about a site over time.
///
/// # Errors
/// See [`AnswerError`](crate::AnswerError).
pub fn web_trends(
    source: &dyn Source,
    run: &Run<'_>,
    asked: &Asked<'_>,
    query: &WebTrendsQuery,
) -> Result<Found<Vec<WebTrendsItem>>> {
    let spans = [intervals(asked, query)?];
    let [span] = &spans;
    let reader = WebReader::new(run, asked, &query.scope, &spans, None)?;
    let totals = totals(&reader, source, span.len(), |totals, _, sessions| {
        let interval = |session: &WebSession| Cursor::new(span).index(session.start);
        // They are in the order in which they begin.
        for own in sessions.chunk_by(|a, b| interval(a) == interval(b)) {
            let at = own.first().and_then(interval);
            if let Some(totals) = at.and_then(|at| totals.get_mut(at)) {
                totals.merge(&WebTotals::of_person(own));
            }
        }
    })?;
    let days = span.axis.days.iter().zip(&totals);
    let results = days.map(|(day, totals)| WebTrendsItem::new(day, &query.metrics, totals));
    Ok(Found {
        results: results.collect(),
        has_more: None,
        range: crate::span::resolved(&range(&spans)),
    })
}

/// Answers a question for a table about a site.
///
/// # Errors
/// See [`AnswerError`](crate::AnswerError).
pub fn web_table(
    source: &dyn Source,
    run: &Run<'_>,
    asked: &Asked<'_>,
    query: &WebTableQuery,
) -> Result<Found<WebTableResult>> {
    let spans = spans(asked, &query.scope, query.compare)?;
    let values = Values::new(run, query.breakdown);
    let reader = WebReader::new(run, asked, &query.scope, &spans, Some(&values))?;
    let (view, of_bounces) = (query.breakdown.view(), query.breakdown.view_of_bounces());
    let counted = in_passes(
        |pass| {
            let states = reader.visit(
                source,
                pass,
                || CountedValues::new(run, spans.len()),
                |counted, range, sessions, records| {
                    let value = |at: usize| records.get(at).map_or(NONE, |record| record.value);
                    for (value, totals) in web_values(sessions, view, of_bounces, value) {
                        counted.add(value, range, &totals)?;
                    }
                    Ok(())
                },
            )?;
            let mut all = CountedValues::new(run, spans.len());
            states.into_iter().try_for_each(|state| all.merge(&state))?;
            Ok(all)
        },
        |all, more| all.merge(&more),
    )?;
    let mut memory = run.memory.reservation();
    let mut bytes = counted.values.len() * size_of::<WebRow>();
    memory.hold(bytes)?;
    let mut rows = Vec::with_capacity(counted.values.len());
    for (number, totals) in &counted.values {
        let value = values.text(*number);
        memory.hold_more(&mut bytes, value.as_ref().map_or(0, String::len))?;
        let current = totals.first().copied().unwrap_or_default();
        rows.push(WebRow { value, current, previous: totals.get(1).copied() });
    }
    let results = WebTableResult::new(query, rows);
    Ok(Found {
        has_more: Some(results.has_more),
        results,
        range: crate::span::resolved(&range(&spans)),
    })
}

/// The range of a question.
fn range(spans: &[Span]) -> Range<i64> {
    spans.first().map_or(0..0, |span| span.times.clone())
}

/// The totals of so many ranges or intervals. `add` adds the sessions of a person in a range.
fn totals(
    reader: &WebReader<'_, '_>,
    source: &dyn Source,
    count: usize,
    add: impl Fn(&mut [WebTotals], usize, &[WebSession]) + Sync,
) -> Result<Vec<WebTotals>> {
    let none = || vec![WebTotals::default(); count];
    let merge = |mut all: Vec<WebTotals>, more: Vec<WebTotals>| {
        all.iter_mut().zip(&more).for_each(|(all, more)| all.merge(more));
        all
    };
    in_passes(
        |pass| {
            let states = reader.visit(source, pass, none, |totals, range, sessions, _| {
                add(totals, range, sessions);
                Ok(())
            })?;
            Ok(states.into_iter().fold(none(), merge))
        },
        |all, more| {
            *all = merge(std::mem::take(all), more);
            Ok(())
        },
    )
}

/// The numbers of each value by range, with their memory.
struct CountedValues<'a> {
    ranges: usize,
    values: HashMap<u32, Vec<WebTotals>>,
    bytes: usize,
    memory: Reservation<'a>,
}

impl<'a> CountedValues<'a> {
    fn new(run: &Run<'a>, ranges: usize) -> Self {
        Self { ranges, values: HashMap::new(), bytes: 0, memory: run.memory.reservation() }
    }

    fn add(&mut self, value: u32, range: usize, more: &WebTotals) -> Result<()> {
        if !self.values.contains_key(&value) {
            let bytes = ENTRY + self.ranges * size_of::<WebTotals>();
            self.memory.hold_more(&mut self.bytes, bytes)?;
        }
        let new = || vec![WebTotals::default(); self.ranges];
        let totals = self.values.entry(value).or_insert_with(new);
        if let Some(totals) = totals.get_mut(range) {
            totals.merge(more);
        }
        Ok(())
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        for (value, totals) in &other.values {
            for (range, totals) in totals.iter().enumerate() {
                self.add(*value, range, totals)?;
            }
        }
        Ok(())
    }
}
