//! Who begins in a period and comes back in another one.

use weir_questions::query::RetentionQuery;
use weir_questions::results::BreakdownValue;

use super::{RetentionCounter, with_counter};
use crate::actors::{ActorList, Behind, Search};
use crate::breakdown::SelectedValues;
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
        let RetentionCounter { divider, keys, .. } = *counter;
        let wanted = SelectedValues::of(cell.breakdown, divider, keys, true, || {
            let totals = counter.count(reading)?;
            Ok(totals.by_value.iter().map(|(place, of)| (*place, of.began)).collect())
        })?;
        let mut list = ActorList::new(run);
        if let Some(wanted) = wanted {
            let after = cell.after.unwrap_or(0);
            let rules = counter.empty();
            list = ActorList::in_passes(run, |pass| {
                counter.each(
                    reading,
                    pass,
                    || ActorList::new(run),
                    |list, seen| {
                        if !wanted.includes(divider, seen.key) {
                            return Ok(());
                        }
                        let mut is_counted = false;
                        rules.begins(seen.events, |begin, returns| {
                            is_counted |= begin == cell.period && rules.counts_for(returns, after);
                        });
                        if is_counted { list.push(seen.person, 0) } else { Ok(()) }
                    },
                )
            })?;
        }
        list.finish(query.scope.group_type.map(|kind| (kind, &reading.groups)))
    })
}
