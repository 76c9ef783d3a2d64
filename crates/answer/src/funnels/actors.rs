//! Who did a step of a funnel, or stopped before it.

use weir_questions::query::{FunnelStep, FunnelsQuery};
use weir_questions::results::BreakdownValue;

use super::{FunnelCounter, SeenOutcome, with_counter};
use crate::actors::{ActorList, Behind, Search};
use crate::breakdown::SelectedValues;
use crate::error::Result;

/// A number of a funnel.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cell {
    /// Of a step.
    Step(FunnelStep),
    /// Of the rate of those who begin in an interval.
    Interval { interval: usize, is_dropped: bool },
}

impl Cell {
    /// Whether a person with this outcome is counted.
    fn counts(self, query: &FunnelsQuery, seen: &SeenOutcome<'_>) -> bool {
        let did = |step: usize| seen.outcome.steps() > step;
        match self {
            Self::Step(step) => step.contains(seen.outcome),
            Self::Interval { interval, is_dropped } => {
                let filter = &query.filter;
                seen.interval == interval
                    && did(filter.from_step)
                    && did(filter.to_step) != is_dropped
            }
        }
    }
}

/// Who is behind a number of a value. `None`: of all values.
pub(crate) fn behind<'a>(
    search: &Search<'_, 'a>,
    query: &FunnelsQuery,
    cell: Cell,
    breakdown: Option<&BreakdownValue>,
) -> Result<Behind<'a>> {
    let Search { source, run, asked } = *search;
    let whole;
    let query = match breakdown {
        Some(_) => query,
        None => {
            whole = FunnelsQuery { breakdown: None, ..query.clone() };
            &whole
        }
    };
    with_counter(source, run, asked, query, |counter, reading| {
        let FunnelCounter { divider, keys, .. } = *counter;
        let joins_others = counter.joins_others();
        let wanted = SelectedValues::of(breakdown, divider, keys, joins_others, || {
            let totals = counter.count(reading)?;
            Ok(totals.by_value.iter().map(|(place, of)| (*place, of.began)).collect())
        })?;
        let mut list = ActorList::new(run);
        if let Some(wanted) = wanted {
            list = ActorList::in_passes(run, |pass| {
                counter.each(
                    reading,
                    pass,
                    || ActorList::new(run),
                    |list, seen| {
                        let is_counted =
                            cell.counts(query, &seen) && wanted.includes(divider, seen.key);
                        if is_counted { list.push(seen.person, 0) } else { Ok(()) }
                    },
                )
            })?;
        }
        list.finish(query.scope.group_type.map(|kind| (kind, &reading.groups)))
    })
}
