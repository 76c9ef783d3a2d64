//! Funnels: how many persons do one step after another.

mod actors;

use std::ops::Range;

use weir_model::errors::FieldError;
use weir_questions::evaluate::{
    ExclusionRange, FunnelEvent, FunnelOutcome, FunnelRules, FunnelTotals, STEP_VALUES_MAX,
    by_value, histogram,
};
use weir_questions::query::{
    AttributionKind, BreakdownFilter, FunnelOrder, FunnelVisualization, FunnelsQuery,
};
use weir_questions::results::{
    FunnelStepResult, FunnelTrendResult, TimeToConvertResult, funnel_steps,
};
use weir_segments::NONE;

use crate::breakdown::{ByValue, Divider, Key, OTHERS, SharedKeys, first_places, shown};
use crate::by_person::{
    ByPerson, LongRecord, Pass, Reading, Record, ShortRecord, in_passes, visit,
};
use crate::error::{AnswerError, Result};
use crate::plan::Plan;
use crate::run::{Reservation, Run};
use crate::source::Source;
use crate::span::Span;
use crate::{Asked, Found};

pub(crate) use actors::{Cell, behind};

/// Bytes of the totals of a value beside its times.
const TOTALS: usize = 2_048;
/// Bytes of a time that is kept: its vector has room for more.
const KEPT: usize = 2 * size_of::<i64>();

/// The results of a funnel.
#[derive(Debug, Clone, PartialEq)]
pub enum FunnelResults {
    /// Its steps.
    Steps(Vec<FunnelStepResult>),
    /// Its steps for each value of a breakdown.
    Values(Vec<Vec<FunnelStepResult>>),
    /// How long persons take.
    Times(TimeToConvertResult),
    /// Rates over time: one, or one for each value of a breakdown.
    Trends(Vec<FunnelTrendResult>),
}

/// The times of the events that the answer to a question about a funnel needs.
///
/// # Errors
/// [`AnswerError::Field`].
pub fn funnel_times(asked: &Asked<'_>, query: &FunnelsQuery) -> Result<Vec<Range<i64>>> {
    Ok(vec![span(asked, query)?.times])
}

/// Answers a question about a funnel.
///
/// # Errors
/// See [`AnswerError`].
pub fn funnel(
    source: &dyn Source,
    run: &Run<'_>,
    asked: &Asked<'_>,
    query: &FunnelsQuery,
) -> Result<Found<FunnelResults>> {
    with_counter(source, run, asked, query, |counter, reading| {
        let FunnelCounter { span, divider, keys, .. } = *counter;
        let mut totals = counter.count(reading)?;
        if counter.joins_others() {
            let ordered = keys.ordered(divider);
            if let Some(first) = first_places(divider, &ordered, &totals.by_value, |of| of.began) {
                keys.join_others(&ordered, &first);
                totals.by_value.retain(|place, _| first.contains(place));
                let others = counter.count(reading)?.by_value.remove(&OTHERS);
                let others = others.unwrap_or_else(|| ValueTotals::new(query, span.len()));
                totals.by_value.insert(OTHERS, others);
            }
        }
        let (results, has_more) = counter.results(totals.by_value);
        Ok(Found { results, has_more, range: span.resolved() })
    })
}

/// Calls a function with what counts a funnel, and what it reads.
fn with_counter<T>(
    source: &dyn Source,
    run: &Run<'_>,
    asked: &Asked<'_>,
    query: &FunnelsQuery,
    work: impl for<'q, 'a> FnOnce(&FunnelCounter<'q, 'a>, &Reading<'q, 'a>) -> Result<T>,
) -> Result<T> {
    let span = span(asked, query)?;
    let filter = &query.filter;
    if query.breakdown.is_some() && filter.visualization == FunnelVisualization::TimeToConvert {
        let detail = "The time to convert has no breakdown.";
        return Err(FieldError::new("breakdownFilter", "invalid_input", detail).into());
    }
    let mut plan = Plan::new(&query.scope, asked, vec![span.times.clone()])?;
    plan.keeps_all = filter.order == FunnelOrder::Strict;
    plan.add_series(&query.series, asked)?;
    for (at, exclusion) in filter.exclusions.iter().enumerate() {
        let path = format!("funnelsFilter__exclusions__{at}__properties");
        let node = &exclusion.event;
        plan.add(node.event.as_deref(), &node.properties, asked, &path)?;
    }
    let actor = plan.actor(query.scope.group_type);
    let breakdown = query.breakdown.as_ref().map(BreakdownFilter::of_funnels);
    let divider = Divider::new(run, &mut plan, breakdown.as_ref())?.without_bins()?;
    let mut reading = Reading::new(source, run, &plan, actor);
    reading.properties = divider.slots().to_vec();
    reading.arrivals = plan.keeps_all;
    let exclusions = filter.exclusions.iter().map(|exclusion| ExclusionRange {
        from_step: exclusion.from_step,
        to_step: exclusion.to_step,
    });
    let rules = FunnelRules::new(
        query.series.len(),
        filter.order,
        filter.window.micros(),
        exclusions.collect(),
    );
    let keys = SharedKeys::new(run);
    let counter = FunnelCounter { query, span: &span, rules, divider: &divider, keys: &keys };
    work(&counter, &reading)
}

fn span(asked: &Asked<'_>, query: &FunnelsQuery) -> Result<Span> {
    let dates = &query.scope.dates;
    let range = asked.calendar.range(dates, query.interval, asked.now, asked.earliest)?;
    match query.filter.visualization {
        FunnelVisualization::Trends => Ok(Span::from(&asked.calendar.buckets(&range)?)),
        FunnelVisualization::Steps | FunnelVisualization::TimeToConvert => Ok(Span::whole(&range)),
    }
}

/// How a funnel is counted.
struct FunnelCounter<'q, 'a> {
    query: &'q FunnelsQuery,
    span: &'q Span,
    rules: FunnelRules,
    divider: &'q Divider<'a>,
    keys: &'q SharedKeys<'a>,
}

/// A record of a funnel.
trait Step: Record {
    /// `value` is the number of the value of the event.
    fn new(person: u32, begin: i64, time: i64, arrival: u64, bits: u64, value: u32) -> Self;
    fn time(&self, begin: i64) -> i64;
    fn bits(&self) -> u64;
    fn value(&self) -> u32;
    fn set_value(&mut self, value: u32);
}

impl Step for ShortRecord {
    fn new(person: u32, begin: i64, time: i64, _arrival: u64, bits: u64, _value: u32) -> Self {
        Self::new(person, begin, time, bits)
    }

    fn time(&self, begin: i64) -> i64 {
        (*self).time(begin)
    }

    fn bits(&self) -> u64 {
        (*self).bits()
    }

    fn value(&self) -> u32 {
        NONE
    }

    fn set_value(&mut self, _value: u32) {}
}

impl Step for LongRecord {
    fn new(person: u32, _begin: i64, time: i64, arrival: u64, bits: u64, value: u32) -> Self {
        Self { person, time, arrival, bits, value }
    }

    fn time(&self, _begin: i64) -> i64 {
        self.time
    }

    fn bits(&self) -> u64 {
        self.bits
    }

    fn value(&self) -> u32 {
        self.value
    }

    fn set_value(&mut self, value: u32) {
        self.value = value;
    }
}

/// The totals of some persons, by the place of their value.
struct Totals<'a> {
    by_value: ByValue<ValueTotals>,
    bytes: usize,
    memory: Reservation<'a>,
}

/// The totals of the persons of a value.
struct ValueTotals {
    steps: FunnelTotals,
    /// How long persons took, in microseconds.
    times: Vec<i64>,
    /// For each interval: persons who began, and who converted.
    intervals: Vec<(u64, u64)>,
    began: u64,
}

impl ValueTotals {
    fn new(query: &FunnelsQuery, intervals: usize) -> Self {
        let intervals = match query.filter.visualization {
            FunnelVisualization::Trends => vec![(0, 0); intervals],
            FunnelVisualization::Steps | FunnelVisualization::TimeToConvert => Vec::new(),
        };
        let steps = FunnelTotals::new(query.series.len());
        Self { steps, times: Vec::new(), intervals, began: 0 }
    }

    fn merge(&mut self, mut other: Self) {
        self.steps.merge(other.steps);
        self.times.append(&mut other.times);
        for (all, more) in self.intervals.iter_mut().zip(other.intervals) {
            *all = (all.0 + more.0, all.1 + more.1);
        }
        self.began += other.began;
    }
}

impl Totals<'_> {
    fn merge(&mut self, other: Self) -> Result<()> {
        self.memory.hold_more(&mut self.bytes, other.bytes)?;
        for (value, totals) in other.by_value {
            match self.by_value.get_mut(&value) {
                Some(all) => all.merge(totals),
                None => {
                    self.by_value.insert(value, totals);
                }
            }
        }
        Ok(())
    }

    /// Counts an outcome for a value. `interval`: attempts that begin in it.
    fn add(
        &mut self,
        counter: &FunnelCounter<'_, '_>,
        value: u32,
        interval: usize,
        outcome: &FunnelOutcome,
    ) -> Result<()> {
        let filter = &counter.query.filter;
        let did = |step: usize| outcome.steps() > step;
        if outcome.steps() == 0 {
            return Ok(());
        }
        let intervals = counter.span.len();
        if !self.by_value.contains_key(&value) {
            self.memory.hold_more(&mut self.bytes, TOTALS + 16 * intervals)?;
            self.by_value.insert(value, ValueTotals::new(counter.query, intervals));
        }
        let Some(totals) = self.by_value.get_mut(&value) else { return Ok(()) };
        match filter.visualization {
            FunnelVisualization::Steps => {
                totals.began += 1;
                totals.steps.add(outcome);
                self.memory.hold_more(&mut self.bytes, KEPT * outcome.steps())?;
            }
            FunnelVisualization::TimeToConvert => {
                if let Some(time) = outcome.between(filter.from_step, filter.to_step) {
                    totals.times.push(time);
                    self.memory.hold_more(&mut self.bytes, KEPT)?;
                }
            }
            FunnelVisualization::Trends => {
                if let Some((began, converted)) = totals.intervals.get_mut(interval) {
                    *began += u64::from(did(filter.from_step));
                    *converted += u64::from(did(filter.to_step));
                    totals.began += u64::from(did(filter.from_step));
                }
            }
        }
        Ok(())
    }
}

impl<'a> FunnelCounter<'_, 'a> {
    /// Whether all values without results of their own are counted as one, because a person may
    /// belong to several values.
    fn joins_others(&self) -> bool {
        let kind = self.query.filter.attribution.kind;
        matches!(kind, AttributionKind::AllEvents | AttributionKind::Step)
    }

    /// Whether the order of arrival and the values of events do not matter.
    fn is_short(&self, reading: &Reading<'_, 'a>) -> bool {
        self.divider.is_whole() && !reading.plan.keeps_all
    }

    fn count(&self, reading: &Reading<'_, 'a>) -> Result<Totals<'a>> {
        let make = || self.totals(reading.run);
        let add = |totals: &mut Totals<'a>, seen: SeenOutcome<'_>| {
            totals.add(self, seen.place, seen.interval, seen.outcome)
        };
        in_passes(
            |pass| {
                let states = self.each(reading, pass, make, add)?;
                let mut all = make();
                for state in states {
                    all.merge(state)?;
                }
                Ok(all)
            },
            Totals::merge,
        )
    }

    /// Shows each person of a pass for each value that it belongs to, and each interval in
    /// which it may begin.
    fn each<T: Send>(
        &self,
        reading: &Reading<'_, 'a>,
        pass: Pass,
        make: impl Fn() -> T + Sync,
        see: impl Fn(&mut T, SeenOutcome<'_>) -> Result<()> + Sync,
    ) -> Result<Vec<T>> {
        match self.is_short(reading) {
            true => self.each_of::<ShortRecord, T>(reading, pass, make, see),
            false => self.each_of::<LongRecord, T>(reading, pass, make, see),
        }
    }

    fn each_of<R: Step, T: Send>(
        &self,
        reading: &Reading<'_, 'a>,
        pass: Pass,
        make: impl Fn() -> T + Sync,
        see: impl Fn(&mut T, SeenOutcome<'_>) -> Result<()> + Sync,
    ) -> Result<Vec<T>> {
        let begin = self.span.times.start;
        let kept = reading.read(
            || ByPerson::<R>::new(reading.run, pass),
            |kept, batch, actors| {
                let masks = batch.masks();
                let values = self.keys.numbers(self.divider, batch)?;
                for row in batch.kept().ones() {
                    // In other orders, events of the same time have no order of arrival.
                    let arrival = if reading.arrivals { batch.arrival(row) } else { 0 };
                    let (person, value) = (actors[row], values[row]);
                    let time = batch.times()[row];
                    kept.push(R::new(person, begin, time, arrival, masks[row], value))?;
                }
                Ok(())
            },
        )?;
        let keys = self.keys.ordered(self.divider);
        let states = visit(
            reading.run,
            kept,
            |record| record.set_value(keys.place_of_value(record.value())),
            || PersonState { events: Vec::new(), values: Vec::new(), found: make() },
            |state: &mut PersonState<T>, person, records| {
                let PersonState { events, values, found } = state;
                self.person(events, values, records, |place, interval, outcome| {
                    let key = keys.value_at(place);
                    see(found, SeenOutcome { person, place, key, interval, outcome })
                })
            },
        )?;
        Ok(states.into_iter().map(|state| state.found).collect())
    }

    fn totals(&self, run: &Run<'a>) -> Totals<'a> {
        Totals { by_value: ByValue::new(), bytes: 0, memory: run.memory.reservation() }
    }

    fn event<R: Step>(&self, record: &R) -> FunnelEvent {
        let steps = self.query.series.len();
        let bits = record.bits();
        FunnelEvent {
            time: record.time(self.span.times.start),
            steps: (bits & ((1 << steps) - 1)) as u32,
            exclusions: (bits >> steps) as u32,
        }
    }

    /// Shows the outcomes of a person, each with the place of its value.
    fn person<R: Step>(
        &self,
        events: &mut Vec<FunnelEvent>,
        values: &mut Vec<Option<u32>>,
        records: &[R],
        mut see: impl FnMut(u32, usize, &FunnelOutcome) -> Result<()>,
    ) -> Result<()> {
        events.clear();
        events.extend(records.iter().map(|record| self.event(record)));
        if self.divider.is_whole() {
            return self.outcomes(events, |interval, outcome| see(NONE, interval, outcome));
        }
        values.clear();
        values.extend(records.iter().map(|record| Some(record.value()).filter(|of| *of != NONE)));
        let (attribution, range) = (self.query.filter.attribution, &self.span.times);
        let mut counted = Ok(());
        by_value(attribution, events, values, range, |value, events| {
            if counted.is_ok() {
                let value = value.unwrap_or(NONE);
                counted = self.outcomes(events, |interval, outcome| see(value, interval, outcome));
            }
        })
        .map_err(|_| AnswerError::TooLarge {
            what: "values of a step of one person".to_owned(),
            limit: STEP_VALUES_MAX,
        })?;
        counted
    }

    /// Shows the outcome of the events of a person, for each interval in which it may begin.
    fn outcomes(
        &self,
        events: &[FunnelEvent],
        mut see: impl FnMut(usize, &FunnelOutcome) -> Result<()>,
    ) -> Result<()> {
        let range = &self.span.times;
        if self.query.filter.visualization != FunnelVisualization::Trends {
            return see(0, &self.rules.person(events, range));
        }
        let mut cursor = crate::span::Cursor::new(self.span);
        let mut last = None;
        for event in events.iter().filter(|event| event.steps & 1 != 0) {
            let Some(at) = cursor.index(event.time).filter(|at| last != Some(*at)) else {
                continue;
            };
            last = Some(at);
            let boundaries = &self.span.boundaries;
            let (Some(start), Some(end)) = (boundaries.get(at), boundaries.get(at + 1)) else {
                continue;
            };
            see(at, &self.rules.person_of_bucket(events, range, &(*start..*end)))?;
        }
        Ok(())
    }

    fn results(&self, mut totals: ByValue<ValueTotals>) -> (FunnelResults, Option<bool>) {
        let query = self.query;
        let filter = &query.filter;
        let new = || ValueTotals::new(query, self.span.len());
        let is_divided = !self.divider.is_whole();
        let (values, has_more) = match is_divided {
            true => {
                let keys = self.keys.ordered(self.divider);
                let (values, has_more) =
                    shown(self.divider, &keys, totals, |of| of.began, ValueTotals::merge);
                let values = values.into_iter().map(|(value, of)| (Some(value), of)).collect();
                (values, Some(has_more))
            }
            false => (vec![(None, totals.remove(&NONE).unwrap_or_else(new))], None),
        };
        let results = match filter.visualization {
            FunnelVisualization::TimeToConvert => {
                let times: Vec<i64> = values.into_iter().flat_map(|(_, of)| of.times).collect();
                FunnelResults::Times(histogram(&times, filter.bins).into())
            }
            FunnelVisualization::Trends => {
                let trend = |(value, of): (Option<_>, ValueTotals)| {
                    FunnelTrendResult::new(&self.span.axis, &of.intervals, value.as_ref())
                };
                FunnelResults::Trends(values.into_iter().map(trend).collect())
            }
            FunnelVisualization::Steps => {
                let steps = |(value, of): (Option<_>, ValueTotals)| {
                    let totals = of.steps.steps();
                    funnel_steps(&query.series, filter.order, &totals, value.as_ref())
                };
                let mut values: Vec<_> = values.into_iter().map(steps).collect();
                match is_divided {
                    true => FunnelResults::Values(values),
                    false => FunnelResults::Steps(values.pop().unwrap_or_default()),
                }
            }
        };
        (results, has_more)
    }
}

/// What a thread has of persons.
struct PersonState<T> {
    /// The events of the person that it works on.
    events: Vec<FunnelEvent>,
    /// The places of their values.
    values: Vec<Option<u32>>,
    found: T,
}

/// How far a person got.
struct SeenOutcome<'e> {
    person: u32,
    /// The place of the value that it belongs to.
    place: u32,
    /// `None`: it is one of those without results of their own.
    key: Option<Key>,
    /// The number of the interval in which its attempts begin.
    interval: usize,
    outcome: &'e FunnelOutcome,
}
