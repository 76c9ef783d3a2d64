//! Lifecycle: how many persons are new, come back, or stay away.

mod actors;

use std::ops::Range;

use weir_model::errors::FieldError;
use weir_questions::evaluate::Lifecycle;
use weir_questions::query::{LifecycleQuery, LifecycleStatus};
use weir_questions::results::{Axis, LifecycleResult};
use weir_questions::time::Buckets;

use crate::by_person::{Reading, in_passes, visit_nodes};
use crate::earliest::Earliest;
use crate::error::Result;
use crate::plan::{Actor, Plan};
use crate::run::Run;
use crate::source::Source;
use crate::{Asked, Found};

pub(crate) use actors::behind;

/// The times of the events that the answer to a question about a lifecycle needs.
///
/// # Errors
/// [`AnswerError::Field`](crate::AnswerError::Field).
pub fn lifecycle_times(asked: &Asked<'_>, query: &LifecycleQuery) -> Result<Vec<Range<i64>>> {
    Ok(times(&buckets(asked, query)?, asked)?.into())
}

fn buckets(asked: &Asked<'_>, query: &LifecycleQuery) -> Result<Buckets> {
    let dates = &query.scope.dates;
    let range = asked.calendar.range(dates, query.interval, asked.now, asked.earliest)?;
    Ok(asked.calendar.buckets(&range)?)
}

/// The interval before the first one, and the range of the question.
fn times(buckets: &Buckets, asked: &Asked<'_>) -> Result<[Range<i64>; 2]> {
    let outside = || {
        let detail = "The date is outside of the calendar.";
        FieldError::new("dateRange__date_from", "invalid_input", detail)
    };
    let before = asked.calendar.interval_before(buckets).ok_or_else(outside)?;
    let first = buckets.boundaries().first().copied().unwrap_or(before);
    Ok([before..first, buckets.begin()..buckets.end()])
}

/// Answers a question about a lifecycle.
///
/// # Errors
/// See [`AnswerError`](crate::AnswerError).
pub fn lifecycle(
    source: &dyn Source,
    run: &Run<'_>,
    asked: &Asked<'_>,
    query: &LifecycleQuery,
) -> Result<Found<Vec<LifecycleResult>>> {
    let buckets = buckets(asked, query)?;
    let times = times(&buckets, asked)?;
    let before = times[0].start;
    let plan = plan(asked, query, times)?;
    let reading = Reading::new(source, run, &plan, Actor::Person);
    let seen = first_seen(source, run)?;
    let new = || Lifecycle::new(before, buckets.boundaries());
    let counted = in_passes(
        |pass| {
            let states = visit_nodes(&reading, pass, before, new, |counted, person, records| {
                let first = seen.of(person).unwrap_or(i64::MAX);
                counted.person(first, records.iter().map(|record| record.time(before)));
                Ok(())
            })?;
            let mut all = new();
            states.into_iter().for_each(|state| all.merge(state));
            Ok(all)
        },
        |all, more| {
            all.merge(more);
            Ok(())
        },
    )?;
    let axis = Axis::from(&buckets);
    let results = query.series.iter().flat_map(|series| {
        let result = |status: &LifecycleStatus| {
            LifecycleResult::new(series, &axis, *status, counted.counts(*status))
        };
        LifecycleStatus::ALL.iter().map(result).collect::<Vec<_>>()
    });
    let range = crate::span::resolved(&(buckets.begin()..buckets.end()));
    Ok(Found { results: results.collect(), has_more: None, range })
}

fn plan(asked: &Asked<'_>, query: &LifecycleQuery, times: [Range<i64>; 2]) -> Result<Plan> {
    let mut plan = Plan::new(&query.scope, asked, times.into())?;
    plan.add_series(&query.series, asked)?;
    Ok(plan)
}

/// When each person was first seen.
fn first_seen<'a>(source: &dyn Source, run: &Run<'a>) -> Result<Earliest<'a>> {
    let mut seen = Earliest::new(run);
    let mut failed = Ok(());
    let mut note = |person: u32, time: i64| {
        if failed.is_ok() {
            failed = seen.see(person, time);
        }
    };
    source.first_seen(&mut note)?;
    failed?;
    Ok(seen)
}
