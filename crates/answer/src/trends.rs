//! Trends: numbers over time.

mod actors;

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use weir_questions::evaluate::SESSION_ID;
use weir_questions::query::{BREAKDOWNS_MAX, Display, EventsNode, Math, TrendsQuery};
use weir_questions::results::{
    Amount, BreakdownValue, CompareLabel, ResolvedRange, TrendsResult, with_formula,
};
use weir_segments::NONE;

use crate::batch::{Batch, Needs};
use crate::breakdown::{Divider, Key, NO_KEY, SeenKeys, first_ranked};
use crate::by_person::{Pass, in_passes};
use crate::cells::{Cells, NumberReader};
use crate::error::{AnswerError, Result};
use crate::plan::{Actor, Plan};
use crate::run::{Reservation, Run};
use crate::scan::scan;
use crate::source::Source;
use crate::span::{Cursor, Span};
use crate::texts::Texts;
use crate::{Asked, Found};

pub(crate) use actors::{Cell, behind};

/// Most numbers of a question without a breakdown.
const NUMBERS_MAX: usize = 4_000_000;
/// Stands for all values that have no results of their own.
const OTHER_KEY: Key = [NONE - 1; BREAKDOWNS_MAX];

/// The times of the events that the answer to a question about trends needs.
///
/// # Errors
/// [`AnswerError::Field`].
pub fn trends_times(asked: &Asked<'_>, query: &TrendsQuery) -> Result<Vec<Range<i64>>> {
    Ok(spans(asked, query)?.into_iter().map(|span| span.times).collect())
}

/// Answers a question about trends.
///
/// # Errors
/// See [`AnswerError`].
pub fn trends(
    source: &dyn Source,
    run: &Run<'_>,
    asked: &Asked<'_>,
    query: &TrendsQuery,
) -> Result<Found<Vec<TrendsResult>>> {
    let spans = spans(asked, query)?;
    let width: usize = spans.iter().map(Span::len).sum();
    if width.saturating_mul(query.series.len()) > NUMBERS_MAX {
        return Err(AnswerError::TooLarge { what: "numbers".to_owned(), limit: NUMBERS_MAX });
    }
    let times: Vec<Range<i64>> = spans.iter().map(|span| span.times.clone()).collect();
    let mut plan = Plan::new(&query.scope, asked, times)?;
    plan.add_series(&query.series, asked)?;
    let divider = Divider::new(run, &mut plan, query.breakdown.as_ref())?;
    let inputs: Vec<Input> =
        query.series.iter().map(|series| Input::new(&mut plan, query, series)).collect();
    let names = Texts::new(run, "groups or sessions");
    let counter = TrendsCounter {
        run,
        series: &query.series,
        spans: &spans,
        width,
        divider: &divider,
        inputs: &inputs,
        names: &names,
        shown: None,
        pass: Pass::ALL,
    };
    let in_one = |counter: &TrendsCounter<'_, '_>| {
        let state = counter.count(source, &plan)?;
        let chosen = counter.chosen(&state, query)?;
        counter.shown(state, query, &chosen)
    };
    let series = match divider.is_whole() {
        true => in_passes(
            |pass| in_one(&TrendsCounter { pass, ..counter.clone() }),
            |all: &mut Vec<ShownSeries>, more| {
                let series = all.iter_mut().zip(more).zip(&inputs);
                for ((all, more), _) in series.filter(|(_, input)| input.has_actors()) {
                    all.add(&more);
                }
                Ok(())
            },
        )?,
        false => match in_one(&counter) {
            // The numbers of all values for each interval are many. Those for the range are
            // fewer, and then only those of the values that results show are counted.
            Err(AnswerError::Memory { .. }) if divider.has_values() => {
                counter.in_two_scans(source, &mut plan, query)?
            }
            found => found?,
        },
    };
    let maker = ResultMaker { query, spans: &spans, width, series };
    Ok(Found { results: maker.results(), has_more: maker.has_more(), range: resolved(&spans) })
}

fn resolved(spans: &[Span]) -> ResolvedRange {
    spans.first().map_or_else(|| crate::span::resolved(&(0..0)), Span::resolved)
}

/// The range of the question, and the one that it is compared with.
fn spans(asked: &Asked<'_>, query: &TrendsQuery) -> Result<Vec<Span>> {
    let dates = &query.scope.dates;
    let range = asked.calendar.range(dates, query.interval, asked.now, asked.earliest)?;
    let mut ranges = vec![range];
    if let Some(compare) = &query.compare {
        ranges.push(asked.calendar.previous(dates, &range, compare)?);
    }
    let span = |range| match query.filter.display.is_total() {
        true => Ok(Span::whole(range)),
        false => Ok(Span::from(&asked.calendar.buckets(range)?)),
    };
    ranges.iter().map(span).collect()
}

/// What a series is computed of, beside its events.
#[derive(Debug, Clone, Copy)]
enum Input {
    Events,
    Actors(Actor),
    Numbers { slot: usize },
}

impl Input {
    fn new(plan: &mut Plan, query: &TrendsQuery, series: &EventsNode) -> Self {
        match &series.math {
            Math::Total => Self::Events,
            Math::UniquePersons => Self::Actors(plan.actor(query.scope.group_type)),
            Math::UniqueGroups(at) => Self::Actors(plan.actor(Some(*at))),
            Math::UniqueSessions => Self::Actors(Actor::Group { slot: plan.slot(SESSION_ID) }),
            Math::Property(_, property) => Self::Numbers { slot: plan.slot(property) },
        }
    }

    fn has_actors(self) -> bool {
        matches!(self, Self::Actors(_))
    }

    fn slot(self) -> Option<usize> {
        match self {
            Self::Actors(Actor::Group { slot }) | Self::Numbers { slot } => Some(slot),
            Self::Events | Self::Actors(Actor::Person) => None,
        }
    }
}

/// How trends are counted. A cell is an interval of a value; the intervals of all ranges of a
/// value follow each other.
#[derive(Clone)]
struct TrendsCounter<'q, 'a> {
    run: &'q Run<'a>,
    series: &'q [EventsNode],
    spans: &'q [Span],
    /// The number of cells of a value.
    width: usize,
    divider: &'q Divider<'a>,
    inputs: &'q [Input],
    /// Names of groups and ids of sessions.
    names: &'q Texts<'a>,
    /// All other values are counted together.
    shown: Option<HashSet<Key>>,
    /// Which persons, groups or sessions are counted.
    pass: Pass,
}

/// What was counted.
struct State<'a> {
    keys: SeenKeys<'a>,
    series: Vec<SeriesState<'a>>,
}

struct SeriesState<'a> {
    cells: Cells<'a>,
    /// The events of each value, by range.
    events: Vec<u64>,
    memory: Reservation<'a>,
}

impl<'a> SeriesState<'a> {
    fn grow(&mut self, values: usize, ranges: usize, width: usize) -> Result<()> {
        if self.events.len() < values * ranges {
            self.memory.hold(values * ranges * 2 * size_of::<u64>())?;
            self.events.resize(values * ranges, 0);
        }
        self.cells.grow(values * width)
    }
}

impl<'a> TrendsCounter<'_, 'a> {
    /// The slots that batches need, and whether they need persons.
    fn needs(&self) -> (Vec<usize>, bool) {
        let slots = self.inputs.iter().filter_map(|input| input.slot());
        let is_person = |input: &Input| matches!(input, Input::Actors(Actor::Person));
        let slots = slots.chain(self.divider.slots().iter().copied()).collect();
        (slots, self.inputs.iter().any(is_person))
    }

    /// Counts all events.
    fn count(&self, source: &dyn Source, plan: &Plan) -> Result<State<'a>> {
        let state = self.count_values(source, plan)?;
        let keys = self.bins(&state)?;
        self.in_bins(state, keys)
    }

    /// The same, with numbers that are not replaced by their ranges.
    fn count_values(&self, source: &dyn Source, plan: &Plan) -> Result<State<'a>> {
        let needs = self.needs();
        let states = scan(
            source,
            self.run,
            plan,
            || self.state(),
            |state, batch| self.see(state, batch, &needs),
        )?;
        self.merge(states)
    }

    /// Whether most actors are in most cells. Bits do not become fewer in several passes.
    fn is_dense(&self) -> bool {
        self.divider.is_whole() && self.pass.is_all()
    }

    fn state(&self) -> State<'a> {
        let is_dense = self.is_dense();
        let series = self.series.iter().map(|series| SeriesState {
            cells: Cells::new(self.run, &series.math, is_dense),
            events: Vec::new(),
            memory: self.run.memory.reservation(),
        });
        State { keys: SeenKeys::new(self.run), series: series.collect() }
    }

    fn see(
        &self,
        state: &mut State<'a>,
        batch: &mut Batch<'_>,
        (slots, persons): &(Vec<usize>, bool),
    ) -> Result<()> {
        let needs = Needs { properties: slots, persons: *persons, ..Needs::default() };
        batch.prepare(needs)?;
        let keys = self.divider.keys(batch)?;
        // Without a breakdown all rows have the same value.
        let mut numbers = vec![0; batch.rows()];
        if !self.divider.is_whole() {
            for row in batch.kept().ones() {
                let key = keys.of(row);
                let is_shown = self.shown.as_ref().is_none_or(|shown| shown.contains(&key));
                numbers[row] = state.keys.number(if is_shown { key } else { OTHER_KEY })?;
            }
        } else {
            state.keys.number(NO_KEY)?;
        }
        let values = state.keys.len();
        let series = state.series.iter_mut().zip(self.inputs).zip(batch.nodes());
        for ((series, input), rows) in series {
            series.grow(values, self.spans.len(), self.width)?;
            let actors = match input {
                Input::Actors(actor) => batch.actors(*actor, self.names)?,
                Input::Events | Input::Numbers { .. } => Vec::new(),
            };
            let column = match input {
                Input::Numbers { slot } => batch.property(*slot),
                Input::Events | Input::Actors(_) => None,
            };
            let mut property = NumberReader::new(column);
            let mut first = 0;
            for (at, span) in self.spans.iter().enumerate() {
                let mut cursor = Cursor::new(span);
                for row in rows.ones() {
                    let Some(interval) = batch.times().get(row).and_then(|t| cursor.index(*t))
                    else {
                        continue;
                    };
                    let value = numbers[row] as usize;
                    let cell = value * self.width + first + interval;
                    if let Some(events) = series.events.get_mut(value * self.spans.len() + at) {
                        *events += 1;
                    }
                    match input {
                        Input::Events => series.cells.count(cell),
                        Input::Actors(_) => {
                            let actor = actors.get(row).filter(|of| self.pass.includes(**of));
                            if let Some(actor) = actor {
                                series.cells.add_actor(cell, *actor)?;
                            }
                        }
                        Input::Numbers { .. } => {
                            if let Some(number) = property.number(row) {
                                series.cells.add_number(cell, number);
                            }
                        }
                    }
                }
                first += span.len();
            }
            series.cells.hold()?;
        }
        Ok(())
    }

    /// The number of the range and value of a cell.
    fn row(&self, cell: usize) -> usize {
        let (value, rest) = (cell / self.width, cell % self.width);
        let first = self.spans.first().map_or(0, Span::len);
        value * self.spans.len() + usize::from(rest >= first)
    }

    /// The states of all threads together.
    fn merge(&self, states: Vec<State<'a>>) -> Result<State<'a>> {
        let mut states = states.into_iter();
        let Some(mut all) = states.next() else { return Ok(self.state()) };
        for state in states {
            let keys = state.keys.keys().to_vec();
            self.merge_into(&mut all, state, &keys)?;
        }
        Ok(all)
    }

    /// Adds a state whose values are these.
    fn merge_into(&self, all: &mut State<'a>, state: State<'a>, keys: &[Key]) -> Result<()> {
        let numbers = keys.iter().map(|key| all.keys.number(*key));
        let to: Vec<u32> = numbers.collect::<Result<_>>()?;
        let (ranges, width, values) = (self.spans.len(), self.width, all.keys.len());
        for (series, other) in all.series.iter_mut().zip(state.series) {
            series.grow(values, ranges, width)?;
            for (at, events) in other.events.iter().enumerate() {
                let value = to.get(at / ranges).map_or(usize::MAX, |to| *to as usize);
                let place = value.saturating_mul(ranges).saturating_add(at % ranges);
                if let Some(place) = series.events.get_mut(place) {
                    *place += events;
                }
            }
            series.cells.merge(other.cells, values * width, |cell| {
                Some(*to.get(cell / width)? as usize * width + cell % width)
            })?;
        }
        Ok(())
    }

    /// The values in which numbers are replaced by their ranges, if there are ranges.
    fn bins(&self, state: &State<'_>) -> Result<Option<Vec<Key>>> {
        let ranges = self.spans.len();
        let events = |value: usize| -> u64 {
            let of = |series: &SeriesState<'_>| series.events.get(value * ranges).copied();
            state.series.iter().filter_map(of).sum()
        };
        let keys = state.keys.keys().iter().enumerate();
        let keys: Vec<(Key, u64)> = keys.map(|(value, key)| (*key, events(value))).collect();
        self.divider.in_bins(&keys)
    }

    /// The state with these values, if there are any.
    fn in_bins(&self, state: State<'a>, keys: Option<Vec<Key>>) -> Result<State<'a>> {
        match keys {
            None => Ok(state),
            Some(keys) => {
                let mut all = self.state();
                self.merge_into(&mut all, state, &keys)?;
                Ok(all)
            }
        }
    }
}

/// The numbers of a series that results show.
struct ShownSeries {
    /// The values that have results of their own, in order. Without a breakdown, one `None`.
    values: Vec<Option<BreakdownValue>>,
    /// The number of each cell: of the values, and then of all others together.
    amounts: Vec<f64>,
    /// Whether there are other values, by range.
    has_other: Vec<bool>,
}

impl ShownSeries {
    /// Adds the numbers of other actors.
    fn add(&mut self, other: &Self) {
        for (amount, more) in self.amounts.iter_mut().zip(&other.amounts) {
            *amount += more;
        }
    }
}

impl TrendsCounter<'_, '_> {
    /// The values of each series that have results of their own, in order.
    fn chosen(&self, state: &State<'_>, query: &TrendsQuery) -> Result<Vec<Vec<Key>>> {
        let keys = state.keys.keys();
        let mut chosen = Vec::new();
        for (series, node) in state.series.iter().zip(self.series) {
            chosen.push(match self.divider.filter() {
                None => vec![NO_KEY],
                Some(filter) => self.ranked(series, &node.math, keys, filter.limit)?,
            });
        }
        if !query.filter.formulas.is_empty() {
            // A formula needs the numbers of all series for a value that one of them shows.
            let mut seen = HashSet::new();
            let all = chosen.iter().flatten().copied().filter(|value| seen.insert(*value));
            let all: Vec<Key> = all.collect();
            chosen.fill(all);
        }
        Ok(chosen)
    }

    fn ranked(
        &self,
        series: &SeriesState<'_>,
        math: &Math,
        keys: &[Key],
        limit: usize,
    ) -> Result<Vec<Key>> {
        let ranges = self.spans.len();
        let current = 0..self.spans.first().map_or(0, Span::len);
        let totals = series.cells.totals(self.run, math, keys.len(), self.width, &current)?;
        // A compared range has the values of the range of the question.
        let is_current =
            |value: usize| series.events.get(value * ranges).is_some_and(|events| *events > 0);
        let values = keys.iter().zip(totals).enumerate();
        let values = values.filter(|(value, _)| is_current(*value));
        let values = values.map(|(value, (key, total))| (value, total, *key)).collect();
        let first = first_ranked(self.divider, values, limit).into_iter();
        Ok(first.filter_map(|value| keys.get(value).copied()).collect())
    }

    /// First the values that results show are found, by their totals in the range of the
    /// question. Then they are counted, and all others together.
    fn in_two_scans(
        &self,
        source: &dyn Source,
        plan: &mut Plan,
        query: &TrendsQuery,
    ) -> Result<Vec<ShownSeries>> {
        let current = self.spans.first().map_or(0..0, |span| span.times.clone());
        let spans = [Span::of(current.clone())];
        let totals = TrendsCounter { spans: &spans, width: 1, ..self.clone() };
        let times = std::mem::replace(&mut plan.spans, vec![current]);
        let chosen = totals.chosen(&totals.count(source, plan)?, query)?;
        plan.spans = times;
        let shown = Some(chosen.iter().flatten().copied().collect());
        let counter = TrendsCounter { shown, ..self.clone() };
        counter.shown(counter.count(source, plan)?, query, &chosen)
    }

    /// The numbers of all series that results show.
    fn shown(
        &self,
        state: State<'_>,
        query: &TrendsQuery,
        chosen: &[Vec<Key>],
    ) -> Result<Vec<ShownSeries>> {
        let series = state.series.into_iter().zip(self.series).zip(chosen);
        let keys = state.keys.keys();
        series
            .map(|((series, node), chosen)| self.show(series, node, query, keys, chosen))
            .collect()
    }

    fn show(
        &self,
        series: SeriesState<'_>,
        node: &EventsNode,
        query: &TrendsQuery,
        keys: &[Key],
        chosen: &[Key],
    ) -> Result<ShownSeries> {
        let math = &node.math;
        let (width, ranges) = (self.width, self.spans.len());
        // Where each value goes: to its place, or to the others behind all places.
        let places: HashMap<Key, usize> =
            chosen.iter().enumerate().map(|(place, key)| (*key, place)).collect();
        let place = |key: &Key| places.get(key).copied().unwrap_or(chosen.len());
        let to: Vec<usize> = keys.iter().map(place).collect();
        let mut has_other = vec![false; ranges];
        for (at, events) in series.events.iter().enumerate() {
            let is_other = to.get(at / ranges).is_some_and(|to| *to == chosen.len());
            if let Some(has) = has_other.get_mut(at % ranges) {
                *has |= is_other && *events > 0;
            }
        }
        let is_divided = !self.divider.is_whole();
        let cells = (chosen.len() + usize::from(is_divided)) * width;
        let mut all = Cells::new(self.run, math, self.is_dense());
        all.merge(series.cells, cells, |cell| Some(to.get(cell / width)? * width + cell % width))?;
        let amounts = match query.counts_once(node) {
            true => all.first_amounts(cells, |cell| self.row(cell))?,
            false => all.amounts(math, cells),
        };
        let values = chosen.iter().map(|key| self.divider.value(*key)).collect();
        Ok(ShownSeries { values, amounts, has_other })
    }
}

/// Makes results of numbers.
struct ResultMaker<'a> {
    query: &'a TrendsQuery,
    spans: &'a [Span],
    width: usize,
    series: Vec<ShownSeries>,
}

impl ResultMaker<'_> {
    fn results(&self) -> Vec<TrendsResult> {
        let ranges = 0..self.spans.len();
        let formulas = &self.query.filter.formulas;
        if formulas.is_empty() {
            let of_range = |range| {
                let series = 0..self.series.len();
                series.flat_map(move |at| {
                    self.places(range, at..at + 1).map(move |place| self.result(range, at, place))
                })
            };
            return ranges.flat_map(of_range).collect();
        }
        let is_cumulative = self.query.filter.display == Display::Cumulative;
        let mut results = Vec::new();
        for (number, formula) in formulas.iter().enumerate() {
            for range in ranges.clone() {
                for place in self.places(range, 0..self.series.len()) {
                    let all = (0..self.series.len()).map(|at| self.result(range, at, place));
                    let all: Vec<TrendsResult> = all.collect();
                    let all: Vec<Option<&TrendsResult>> = all.iter().map(Some).collect();
                    results.extend(with_formula(formula, number, is_cumulative, &all));
                }
            }
        }
        results
    }

    /// The places of the values of some series, and that of the others if there are any.
    fn places(&self, range: usize, series: Range<usize>) -> Range<usize> {
        let series = self.series.get(series).unwrap_or_default();
        let values = series.first().map_or(0, |series| series.values.len());
        let has_other = |series: &ShownSeries| series.has_other.get(range) == Some(&true);
        let hides = self.query.breakdown.as_ref().is_none_or(|filter| filter.hides_other);
        let has_other = !hides && series.iter().any(has_other);
        0..values + usize::from(has_other)
    }

    fn result(&self, range: usize, at: usize, place: usize) -> TrendsResult {
        let empty = ShownSeries { values: Vec::new(), amounts: Vec::new(), has_other: Vec::new() };
        let shown = self.series.get(at).unwrap_or(&empty);
        let node = &self.query.series[at];
        let span = &self.spans[range];
        let first: usize = self.spans.iter().take(range).map(Span::len).sum();
        let first = place * self.width + first;
        let amounts = shown.amounts.get(first..first + span.len()).unwrap_or_default();
        let data: Vec<Amount> = amounts.iter().copied().map(Amount::new).collect();
        let display = self.query.filter.display;
        let mut result = match display.is_total() {
            true => TrendsResult::total(node, at, data.first().copied().unwrap_or_default()),
            false => TrendsResult::over_time(node, at, &span.axis, data),
        };
        if display == Display::Cumulative {
            result = result.cumulative();
        }
        if self.query.compare.is_some() {
            let label = if range == 0 { CompareLabel::Current } else { CompareLabel::Previous };
            result = result.compared(label);
        }
        match &self.query.breakdown {
            None => result,
            Some(filter) => {
                let value = shown.values.get(place).cloned().flatten();
                let value = value.unwrap_or_else(|| BreakdownValue::other(filter));
                result.broken_down(value, self.query.series.len() == 1)
            }
        }
    }

    fn has_more(&self) -> Option<bool> {
        self.query.breakdown.as_ref()?;
        Some(self.series.iter().any(|series| series.has_other.first() == Some(&true)))
    }
}
