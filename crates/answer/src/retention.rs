//! Retention: how many persons come back.

mod actors;

use std::collections::HashSet;
use std::ops::Range;

use weir_questions::evaluate::{RETURNING, Retention, RetentionEvent, TARGET, grouped};
use weir_questions::query::{RetentionKind, RetentionQuery};
use weir_questions::results::{RetentionResult, retention as results};
use weir_questions::time::Buckets;
use weir_segments::NONE;

use crate::breakdown::{ByValue, Divider, Key, OTHERS, SharedKeys, first_places, shown};
use crate::by_person::{ByPerson, LongRecord, Pass, Reading, in_passes, visit};
use crate::error::Result;
use crate::plan::Plan;
use crate::run::{Reservation, Run};
use crate::source::Source;
use crate::{Asked, Found};

pub(crate) use actors::{Cell, behind};

/// Bytes of a person who began before the periods.
const BEFORE: usize = 24;

/// The times of the events that the answer to a question about retention needs.
///
/// # Errors
/// [`AnswerError::Field`](crate::AnswerError::Field).
pub fn retention_times(asked: &Asked<'_>, query: &RetentionQuery) -> Result<Vec<Range<i64>>> {
    Ok(vec![times(&periods(asked, query)?, query)])
}

/// The periods in which persons begin and come back.
pub(crate) fn periods(asked: &Asked<'_>, query: &RetentionQuery) -> Result<Buckets> {
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
    with_counter(source, run, asked, query, |counter, reading| {
        let mut totals = counter.count(reading)?;
        let RetentionCounter { periods, divider, keys, .. } = *counter;
        let ordered = keys.ordered(divider);
        if let Some(first) = first_places(divider, &ordered, &totals.by_value, |of| of.began) {
            keys.join_others(&ordered, &first);
            totals.by_value.retain(|place, _| first.contains(place));
            let others = counter.count(reading)?.by_value.remove(&OTHERS);
            let none = || ValueTotals { retention: counter.empty(), began: 0 };
            totals.by_value.insert(OTHERS, others.unwrap_or_else(none));
        }
        let period = query.filter.period;
        let boundaries = periods.boundaries();
        let (results, has_more) = match divider.filter() {
            None => {
                let all = totals.by_value.remove(&NONE);
                let all = all.map_or_else(|| counter.empty(), |all| all.retention);
                (results(period, boundaries, all.counts(), None), None)
            }
            Some(_) => {
                let (values, has_more) =
                    shown(divider, &ordered, totals.by_value, |of| of.began, ValueTotals::merge);
                let values = values.iter().flat_map(|(value, of)| {
                    results(period, boundaries, of.retention.counts(), Some(value))
                });
                (values.collect(), Some(has_more))
            }
        };
        let range = crate::span::resolved(&(periods.begin()..periods.end()));
        Ok(Found { results, has_more, range })
    })
}

/// Calls a function with what counts a retention, and what it reads.
fn with_counter<T>(
    source: &dyn Source,
    run: &Run<'_>,
    asked: &Asked<'_>,
    query: &RetentionQuery,
    work: impl for<'q, 'a> FnOnce(&RetentionCounter<'q, 'a>, &Reading<'q, 'a>) -> Result<T>,
) -> Result<T> {
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
    let keys = SharedKeys::new(run);
    let counter = RetentionCounter { query, periods: &periods, divider: &divider, keys: &keys };
    work(&counter, &reading)
}

struct RetentionCounter<'q, 'a> {
    query: &'q RetentionQuery,
    periods: &'q Buckets,
    divider: &'q Divider<'a>,
    keys: &'q SharedKeys<'a>,
}

/// The persons of a value.
struct ValueTotals {
    retention: Retention,
    /// Those who begin in any period.
    began: u64,
}

impl ValueTotals {
    fn merge(&mut self, other: Self) {
        self.retention.merge(other.retention);
        self.began += other.began;
    }
}

/// Counts by the place of a value.
struct Totals<'a> {
    by_value: ByValue<ValueTotals>,
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
                    self.memory.hold_more(&mut self.bytes, more.retention.bytes())?;
                    self.by_value.insert(value, more);
                }
            }
        }
        Ok(())
    }
}

/// A person with its events of a value.
struct SeenPerson<'e> {
    person: u32,
    /// The place of the value.
    place: u32,
    /// `None`: it is one of those without results of their own.
    key: Option<Key>,
    events: &'e [RetentionEvent],
}

/// What a thread keeps of events.
struct KeptEvents<'a> {
    events: ByPerson<'a, LongRecord>,
    before: EarlierTargets<'a>,
}

/// Persons who began before the periods, each with the number of the value of its event.
struct EarlierTargets<'a> {
    persons: HashSet<(u32, u32)>,
    bytes: usize,
    memory: Reservation<'a>,
}

impl<'a> EarlierTargets<'a> {
    fn new(run: &Run<'a>) -> Self {
        Self { persons: HashSet::new(), bytes: 0, memory: run.memory.reservation() }
    }

    fn insert(&mut self, person: u32, value: u32) -> Result<()> {
        if self.persons.insert((person, value)) {
            self.memory.hold_more(&mut self.bytes, BEFORE)?;
        }
        Ok(())
    }
}

impl<'a> RetentionCounter<'_, 'a> {
    fn empty(&self) -> Retention {
        let filter = &self.query.filter;
        let total = usize::try_from(filter.total).unwrap_or(usize::MAX);
        let boundaries = self.periods.boundaries();
        Retention::new(boundaries, filter.kind, total, filter.is_cumulative, filter.occurrences)
    }

    fn count(&self, reading: &Reading<'_, 'a>) -> Result<Totals<'a>> {
        in_passes(|pass| self.pass(reading, pass), Totals::merge)
    }

    fn pass(&self, reading: &Reading<'_, 'a>, pass: Pass) -> Result<Totals<'a>> {
        let run = reading.run;
        let states =
            self.each(reading, pass, || Totals::new(run), |totals, seen| self.add(totals, &seen))?;
        let mut all = Totals::new(run);
        for state in states {
            all.merge(state)?;
        }
        Ok(all)
    }

    /// Shows each person of a pass for each value, with the events that have it, unless it
    /// does not begin.
    fn each<T: Send>(
        &self,
        reading: &Reading<'_, 'a>,
        pass: Pass,
        make: impl Fn() -> T + Sync,
        see: impl Fn(&mut T, SeenPerson<'_>) -> Result<()> + Sync,
    ) -> Result<Vec<T>> {
        let run = reading.run;
        let begin = self.periods.begin();
        let kept = reading.read(
            || KeptEvents { events: ByPerson::new(run, pass), before: EarlierTargets::new(run) },
            |kept, batch, actors| {
                let masks = batch.masks();
                let values = self.keys.numbers(self.divider, batch)?;
                for row in batch.kept().ones() {
                    let (person, time, bits) = (actors[row], batch.times()[row], masks[row]);
                    let value = values[row];
                    if time >= begin {
                        let record = LongRecord { person, time, arrival: 0, bits, value };
                        kept.events.push(record)?;
                    } else if bits & u64::from(TARGET) != 0 && pass.includes(person) {
                        kept.before.insert(person, value)?;
                    }
                }
                Ok(())
            },
        )?;
        let (events, before): (Vec<_>, Vec<_>) =
            kept.into_iter().map(|kept| (kept.events, kept.before)).unzip();
        let keys = self.keys.ordered(self.divider);
        visit(
            run,
            events,
            |_| {},
            make,
            |state, person, records| {
                let has_begun = |value: u32| {
                    before.iter().any(|before| before.persons.contains(&(person, value)))
                };
                self.person(records, has_begun, |value, events| {
                    let place = keys.place_of_value(value);
                    see(state, SeenPerson { person, place, key: keys.value_at(place), events })
                })
            },
        )
    }

    /// Shows a person for each value.
    fn person(
        &self,
        records: &[LongRecord],
        has_begun: impl Fn(u32) -> bool,
        mut see: impl FnMut(u32, &[RetentionEvent]) -> Result<()>,
    ) -> Result<()> {
        let event = |record: &LongRecord| RetentionEvent {
            time: record.time,
            entities: (record.bits & u64::from(TARGET | RETURNING)) as u8,
        };
        let events: Vec<RetentionEvent> = records.iter().map(event).collect();
        let values: Vec<Option<u32>> = records.iter().map(|record| Some(record.value)).collect();
        for (value, events) in grouped(&events, &values) {
            let value = value.unwrap_or(NONE);
            let is_new = || match self.query.filter.kind {
                RetentionKind::FirstTime => !has_begun(value),
                RetentionKind::Recurring => true,
            };
            let is_target = |event: &RetentionEvent| event.entities & TARGET != 0;
            if events.iter().any(is_target) && is_new() {
                see(value, &events)?;
            }
        }
        Ok(())
    }

    /// Counts a person for a value.
    fn add(&self, totals: &mut Totals<'_>, seen: &SeenPerson<'_>) -> Result<()> {
        if !totals.by_value.contains_key(&seen.place) {
            let retention = self.empty();
            totals.memory.hold_more(&mut totals.bytes, retention.bytes())?;
            totals.by_value.insert(seen.place, ValueTotals { retention, began: 0 });
        }
        if let Some(counted) = totals.by_value.get_mut(&seen.place) {
            counted.retention.person(seen.events);
            counted.began += 1;
        }
        Ok(())
    }
}
