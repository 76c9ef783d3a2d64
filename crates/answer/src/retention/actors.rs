//! Who begins in a period and comes back in another one.

use weir_questions::query::RetentionQuery;
use weir_questions::results::BreakdownValue;

use super::{RetentionCounter, with_counter};
use crate::actors::{ActorList, Behind, Search};
use crate::breakdown::{SelectedValues, first_places};
use crate::by_person::{Reading, in_passes};
use crate::error::Result;

/// A number of retention.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell<'q> {
    /// The period in which persons begin.
    pub(crate) period: usize,
    /// The period after it for which they count. `None`: all who begin.
    pub(crate) after: Option<usize>,
    /// `None`: all values.
    pub(crate) breakdown: Option<&'q BreakdownValue>,
}

/// Who is behind a cell.
pub(crate) fn behind<'a>(
    search: &Search<'_, 'a>,
    query: &RetentionQuery,
    cell: Cell<'_>,
) -> Result<Behind<'a>> {
    let Search { source, run, asked } = *search;
    let whole;
    let query = match cell.breakdown {
        Some(_) => query,
        None => {
            whole = RetentionQuery { breakdown: None, ..query.clone() };
            &whole
        }
    };
    with_counter(source, run, asked, query, |counter, reading| {
        let mut list = ActorList::new(run);
        if let Some(wanted) = wanted(counter, reading, cell.breakdown)? {
            let after = cell.after.unwrap_or(0);
            let rules = counter.empty();
            list = in_passes(
                |pass| {
                    let lists = counter.each(
                        reading,
                        pass,
                        || ActorList::new(run),
                        |list, seen| {
                            if !wanted.includes(counter.divider, seen.key) {
                                return Ok(());
                            }
                            let mut is_counted = false;
                            rules.begins(seen.events, |begin, returns| {
                                is_counted |=
                                    begin == cell.period && rules.counts_for(returns, after);
                            });
                            if is_counted { list.push(seen.person, 0) } else { Ok(()) }
                        },
                    )?;
                    ActorList::joined(run, lists)
                },
                ActorList::merge,
            )?;
        }
        list.finish(query.scope.group_type.map(|kind| (kind, &reading.groups)))
    })
}

/// The values that a number is about. `None`: no value is one of them.
fn wanted<'q, 'a>(
    counter: &RetentionCounter<'_, 'a>,
    reading: &Reading<'_, 'a>,
    breakdown: Option<&'q BreakdownValue>,
) -> Result<Option<SelectedValues<'q>>> {
    let Some(value) = breakdown else { return Ok(Some(SelectedValues::All)) };
    if !value.is_other() {
        return Ok(Some(SelectedValues::Value(value)));
    }
    let totals = counter.count(reading)?;
    let keys = counter.keys.ordered(counter.divider);
    let first = first_places(counter.divider, &keys, &totals.by_value, |of| of.began);
    Ok(first.map(|first| {
        counter.keys.join_others(&keys, &first);
        SelectedValues::OthersThan(first.iter().map(|place| keys.key(*place)).collect())
    }))
}
