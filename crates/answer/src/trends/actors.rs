//! Whose events a number of trends counts.

use std::collections::HashMap;
use std::ops::Range;

use weir_questions::query::{Math, TrendsQuery};
use weir_questions::results::BreakdownValue;
use weir_segments::Bits;

use super::{Input, TrendsCounter, spans};
use crate::actors::{ActorList, Behind, EventCounts, Search};
use crate::batch::{Batch, Needs};
use crate::breakdown::{Divider, Key, SelectedValues};
use crate::by_person::Pass;
use crate::cells::NumberReader;
use crate::error::Result;
use crate::plan::{Actor, Plan};
use crate::scan::scan;
use crate::span::Span;
use crate::texts::{Texts, name};

/// A number of trends.
#[derive(Debug, Clone)]
pub(crate) struct Cell<'q> {
    /// The times of the events that it counts.
    pub(crate) times: Range<i64>,
    pub(crate) series: usize,
    /// `None`: all values.
    pub(crate) breakdown: Option<&'q BreakdownValue>,
}

/// Who is behind a number, with the events that it counts.
pub(crate) fn behind<'a>(
    search: &Search<'_, 'a>,
    query: &'a TrendsQuery,
    cell: &Cell<'_>,
) -> Result<Behind<'a>> {
    let Search { source, run, asked } = *search;
    let Some(series) = query.series.get(cell.series) else {
        return ActorList::new(run).finish(None);
    };
    let whole = |span: &Span| Span::of(span.times.clone());
    let spans: Vec<Span> = spans(asked, query)?.iter().map(whole).collect();
    let times = spans.iter().map(|span| span.times.clone()).collect();
    let mut plan = Plan::new(&query.scope, asked, times)?;
    plan.add_series(&query.series, asked)?;
    let filter = query.breakdown.as_ref().filter(|_| cell.breakdown.is_some());
    let divider = Divider::new(run, &mut plan, filter)?;
    let values = match cell.breakdown {
        None => Values::all(),
        Some(value) if !value.is_other() && (divider.is_whole() || divider.has_values()) => {
            Values { wanted: SelectedValues::Value(value), bins: None }
        }
        Some(value) => {
            if filter.is_some_and(|filter| value.is_other() && filter.hides_other) {
                return ActorList::new(run).finish(None);
            }
            counted(search, query, cell.series, value, &divider, &spans, &mut plan)?
        }
    };
    let group_type = match series.math {
        Math::UniqueGroups(at) => Some(at),
        _ => query.scope.group_type,
    };
    let actor = plan.actor(group_type);
    let input = Input::new(&mut plan, query, series);
    let node = plan.nodes.drain(..).nth(cell.series);
    plan.nodes = node.into_iter().collect();
    plan.spans = vec![cell.times.clone()];
    let names = Texts::new(run, "groups");
    let reader = Reader { actor, input, divider: &divider, values: &values, names: &names };
    let slots = reader.slots();
    let list = ActorList::in_passes(run, |pass| {
        let parts = scan(
            source,
            run,
            &plan,
            || EventCounts::new(run, pass),
            |counts, batch| reader.see(counts, batch, &slots),
        )?;
        Ok(vec![EventCounts::list(parts, run, pass)?])
    })?;
    list.finish(group_type.map(|group_type| (group_type, &names)))
}

/// Which values of a breakdown a number is about.
struct Values<'q> {
    wanted: SelectedValues<'q>,
    /// The range of numbers for each value, if there are ranges.
    bins: Option<HashMap<Key, Key>>,
}

impl Values<'_> {
    fn all() -> Self {
        Self { wanted: SelectedValues::All, bins: None }
    }

    fn include(&self, divider: &Divider<'_>, key: Key) -> bool {
        let bin = self.bins.as_ref().and_then(|bins| bins.get(&key)).copied();
        self.wanted.includes(divider, Some(bin.unwrap_or(key)))
    }
}

/// Finds the values that have results of their own, and the ranges of numbers, as the question
/// counts them.
fn counted<'q, 'a>(
    search: &Search<'_, 'a>,
    query: &'a TrendsQuery,
    series: usize,
    value: &'q BreakdownValue,
    divider: &Divider<'a>,
    spans: &[Span],
    plan: &mut Plan,
) -> Result<Values<'q>> {
    let inputs: Vec<Input> =
        query.series.iter().map(|series| Input::new(plan, query, series)).collect();
    let names = Texts::new(search.run, "groups or sessions");
    let counter = TrendsCounter {
        run: search.run,
        series: &query.series,
        spans,
        width: spans.len(),
        divider,
        inputs: &inputs,
        names: &names,
        shown: None,
        pass: Pass::ALL,
    };
    let state = counter.count_values(search.source, plan)?;
    let keys = counter.bins(&state)?;
    let bins = keys.as_ref().map(|bins| {
        state.keys.keys().iter().copied().zip(bins.iter().copied()).collect::<HashMap<_, _>>()
    });
    let wanted = match value.is_other() {
        false => SelectedValues::Value(value),
        true => {
            let chosen = counter.chosen(&counter.in_bins(state, keys)?, query)?;
            SelectedValues::OthersThan(
                chosen.into_iter().nth(series).into_iter().flatten().collect(),
            )
        }
    };
    Ok(Values { wanted, bins })
}

/// Counts the events of a number by person or group.
struct Reader<'q, 'a> {
    actor: Actor,
    input: Input,
    divider: &'q Divider<'a>,
    values: &'q Values<'q>,
    /// The keys of groups.
    names: &'q Texts<'a>,
}

impl Reader<'_, '_> {
    fn slots(&self) -> Vec<usize> {
        let of_actor = match self.actor {
            Actor::Person => None,
            Actor::Group { slot } => Some(slot),
        };
        let slots = of_actor.into_iter().chain(self.input.slot());
        slots.chain(self.divider.slots().iter().copied()).collect()
    }

    fn see(
        &self,
        counts: &mut EventCounts<'_>,
        batch: &mut Batch<'_>,
        slots: &[usize],
    ) -> Result<()> {
        let persons = self.actor == Actor::Person;
        batch.prepare(Needs { properties: slots, persons, ..Needs::default() })?;
        let keys = self.divider.keys(batch)?;
        let actors = batch.actors(self.actor, self.names)?;
        // Each value is compared once.
        let mut known: HashMap<Key, bool> = HashMap::new();
        for row in self.rows(batch).ones() {
            let key = keys.of(row);
            let is_wanted =
                *known.entry(key).or_insert_with(|| self.values.include(self.divider, key));
            if let Some(actor) = actors.get(row).filter(|_| is_wanted) {
                counts.add(*actor)?;
            }
        }
        Ok(())
    }

    /// The rows that the number counts.
    fn rows(&self, batch: &Batch<'_>) -> Bits {
        let mut rows = batch.kept().clone();
        let column = self.input.slot().and_then(|slot| batch.property(slot));
        let mut omitted = Bits::default();
        omitted.reset(batch.rows());
        match self.input {
            Input::Events | Input::Actors(Actor::Person) => return rows,
            Input::Actors(Actor::Group { .. }) => {
                let has_name = |row: usize| column.is_some_and(|of| name(of.value(row)).is_some());
                rows.ones().filter(|row| !has_name(*row)).for_each(|row| omitted.set(row));
            }
            Input::Numbers { .. } => {
                let mut numbers = NumberReader::new(column);
                let mut has_number = |row: usize| numbers.number(row).is_some();
                rows.ones().filter(|row| !has_number(*row)).for_each(|row| omitted.set(row));
            }
        }
        rows.subtract(&omitted);
        rows
    }
}
