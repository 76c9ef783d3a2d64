//! Retention: how many persons come back.

use std::ops::Range;

use weir_questions::evaluate::{RETURNING, Retention, RetentionEvent, TARGET};
use weir_questions::query::{RetentionKind, RetentionQuery};
use weir_questions::results::{RetentionResult, retention as results};
use weir_questions::time::Buckets;
use weir_segments::NONE;

use crate::breakdown::{ByValue, Divider, SharedKeys, shown};
use crate::by_person::{ByPerson, LongRecord, Pass, Reading, in_passes, visit};
use crate::earliest::Earliest;
use crate::error::Result;
use crate::plan::Plan;
use crate::run::{Reservation, Run};
use crate::source::Source;
use crate::{Asked, Found};

/// The times of the events that the answer to a question about retention needs.
///
/// # Errors
/// [`AnswerError::Field`](crate::AnswerError::Field).
pub fn retention_times(asked: &Asked<'_>, query: &RetentionQuery) -> Result<Vec<Range<i64>>> {
    Ok(vec![times(&periods(asked, query)?, query)])
}

fn periods(asked: &Asked<'_>, query: &RetentionQuery) -> Result<Buckets> {
    let (filter, dates) = (&query.filter, &query.scope.dates);
    let Asked { now, earliest, .. } = *asked;
    Ok(asked.calendar.periods(dates, filter.period, filter.total, now, earliest)?)
}

/// Whether a person begins for the first time ever is in all earlier events.
fn times(periods: &Buckets, query: &RetentionQuery) -> Range<i64> {
    let begin = match query.filter.kind {
        RetentionKind::FirstTime => i64::MIN,
        RetentionKind::Recurring => periods.begin(),
    };
    begin..periods.end()
}

/// Answers a question about retention.
///
/// # Errors
/// See [`AnswerError`](crate::AnswerError).
pub fn retention(
    source: &dyn Source,
    run: &Run<'_>,
    asked: &Asked<'_>,
    query: &RetentionQuery,
) -> Result<Found<Vec<RetentionResult>>> {
    let periods = periods(asked, query)?;
    let mut plan = Plan::new(&query.scope, asked, vec![times(&periods, query)])?;
    let filter = &query.filter;
    for (entity, name) in [(&filter.target, "target"), (&filter.returning, "returning")] {
        let path = format!("retentionFilter__{name}Entity__properties");
        plan.add(entity.event.as_deref(), &entity.properties, asked, &path)?;
    }
    let actor = plan.actor(query.scope.group_type);
    let divider = Divider::new(run, &mut plan, query.breakdown.as_ref())?.without_bins()?;
    let mut reading = Reading::new(source, run, &plan, actor);
    reading.properties = divider.slots().to_vec();
    reading.arrivals = true;
    let keys = SharedKeys::new(run);
    let counting = Counting { query, periods: &periods, divider: &divider, keys: &keys };
    let mut totals = in_passes(|pass| counting.pass(&reading, pass), Totals::merge)?;
    let boundaries = periods.boundaries();
    let (results, has_more) = match divider.filter() {
        None => {
            let all = totals.by_value.remove(&NONE).unwrap_or_else(|| counting.empty());
            (results(filter.period, boundaries, all.counts(), None), None)
        }
        Some(_) => {
            let keys = keys.ordered(&divider);
            let persons = |of: &Retention| of.counts().iter().filter_map(|c| c.first()).sum();
            let merge = |all: &mut Retention, more| all.merge(more);
            let (values, has_more) = shown(&divider, &keys, totals.by_value, persons, merge);
            let values = values.iter().flat_map(|(value, of)| {
                results(filter.period, boundaries, of.counts(), Some(value))
            });
            (values.collect(), Some(has_more))
        }
    };
    let range = crate::span::resolved(&(periods.begin()..periods.end()));
    Ok(Found { results, has_more, range })
}

struct Counting<'q, 'a> {
    query: &'q RetentionQuery,
    periods: &'q Buckets,
    divider: &'q Divider<'a>,
    keys: &'q SharedKeys<'a>,
}

/// Counts by the place of a value.
struct Totals<'a> {
    by_value: ByValue<Retention>,
    bytes: usize,
    memory: Reservation<'a>,
}

impl<'a> Totals<'a> {
    fn new(run: &Run<'a>) -> Self {
        Self { by_value: ByValue::new(), bytes: 0, memory: run.memory.reservation() }
    }

    fn merge(&mut self, other: Self) -> Result<()> {
        for (value, more) in other.by_value {
            match self.by_value.get_mut(&value) {
                Some(all) => all.merge(more),
                None => {
                    self.memory.hold_more(&mut self.bytes, more.bytes())?;
                    self.by_value.insert(value, more);
                }
            }
        }
        Ok(())
    }
}

/// What a thread keeps of events.
struct Kept<'a> {
    events: ByPerson<'a, LongRecord>,
    /// When persons began before the periods.
    before: Earliest<'a>,
}

impl<'a> Counting<'_, 'a> {
    fn empty(&self) -> Retention {
        let filter = &self.query.filter;
        let total = usize::try_from(filter.total).unwrap_or(usize::MAX);
        let boundaries = self.periods.boundaries();
        Retention::new(boundaries, filter.kind, total, filter.is_cumulative, filter.occurrences)
    }

    fn pass(&self, reading: &Reading<'_, 'a>, pass: Pass) -> Result<Totals<'a>> {
        let run = reading.run;
        let begin = self.periods.begin();
        let kept = reading.read(
            || Kept { events: ByPerson::new(run, pass), before: Earliest::new(run) },
            |kept, batch, actors| {
                let masks = batch.masks();
                let values = self.keys.numbers(self.divider, batch)?;
                for row in batch.kept().ones() {
                    let (person, time, bits) = (actors[row], batch.times()[row], masks[row]);
                    if time >= begin {
                        let (arrival, value) = (batch.arrival(row), values[row]);
                        let record = LongRecord { person, time, arrival, bits, value };
                        kept.events.push(record)?;
                    } else if bits & u64::from(TARGET) != 0 {
                        kept.before.see(person, time)?;
                    }
                }
                Ok(())
            },
        )?;
        let mut before = Earliest::new(run);
        let mut events = Vec::new();
        for kept in kept {
            before.merge(&kept.before)?;
            events.push(kept.events);
        }
        let keys = self.keys.ordered(self.divider);
        let states = visit(
            run,
            events,
            |record| record.value = keys.place(record.value),
            || Totals::new(run),
            |totals, person, records| match before.of(person) {
                // The person has begun before.
                Some(_) => Ok(()),
                None => self.person(totals, records),
            },
        )?;
        let mut all = Totals::new(run);
        for state in states {
            all.merge(state)?;
        }
        Ok(all)
    }

    fn person(&self, totals: &mut Totals<'_>, records: &[LongRecord]) -> Result<()> {
        let is_target = |record: &&LongRecord| record.bits & u64::from(TARGET) != 0;
        let targets = records.iter().filter(is_target);
        let mut values: Vec<u32> = match self.query.filter.kind {
            RetentionKind::FirstTime => targets.take(1).map(|record| record.value).collect(),
            RetentionKind::Recurring => targets.map(|record| record.value).collect(),
        };
        values.sort_unstable();
        values.dedup();
        for value in values {
            // A person begins with target events of the value, and comes back with any.
            let entities = |record: &LongRecord| {
                let bits = (record.bits & u64::from(TARGET | RETURNING)) as u8;
                let is_other =
                    record.value != value && self.query.filter.kind == RetentionKind::Recurring;
                if is_other { bits & RETURNING } else { bits }
            };
            let event = |record: &LongRecord| RetentionEvent {
                time: record.time,
                entities: entities(record),
            };
            let events: Vec<RetentionEvent> = records.iter().map(event).collect();
            if !totals.by_value.contains_key(&value) {
                let empty = self.empty();
                totals.memory.hold_more(&mut totals.bytes, empty.bytes())?;
                totals.by_value.insert(value, empty);
            }
            if let Some(counted) = totals.by_value.get_mut(&value) {
                counted.person(&events);
            }
        }
        Ok(())
    }
}
