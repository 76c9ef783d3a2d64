//! Who is active in a number of intervals.

use weir_questions::evaluate::Stickiness;
use weir_questions::query::{StickinessOperator, StickinessQuery};
use weir_questions::results::CompareLabel;

use super::{begin, group_type, plan, spans, times_of};
use crate::actors::{ActorList, Behind, Search};
use crate::by_person::{Reading, visit_nodes};
use crate::error::Result;
use crate::span::Span;

/// A number of stickiness.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell {
    /// `None`: at least one.
    pub(crate) intervals: Option<usize>,
    pub(crate) operator: StickinessOperator,
    pub(crate) series: usize,
    pub(crate) compare: CompareLabel,
}

impl Cell {
    /// Whether persons with this many intervals are counted.
    fn counts(self, active: usize) -> bool {
        active > 0
            && self.intervals.is_none_or(|intervals| match self.operator {
                StickinessOperator::GreaterOrEqual => active >= intervals,
                StickinessOperator::LessOrEqual => active <= intervals,
                StickinessOperator::Exact => active == intervals,
            })
    }
}

/// Who is behind a cell.
pub(crate) fn behind<'a>(
    search: &Search<'_, 'a>,
    query: &StickinessQuery,
    cell: Cell,
) -> Result<Behind<'a>> {
    let Search { source, run, asked } = *search;
    let at = match cell.compare {
        CompareLabel::Current => 0,
        CompareLabel::Previous => 1,
    };
    // The other range does not matter.
    let spans: Vec<Span> = spans(asked, query)?.into_iter().skip(at).take(1).collect();
    let series = query.series.get(cell.series);
    let (Some(span), Some(series)) = (spans.first(), series) else {
        return ActorList::new(run).finish(None);
    };
    let begin = begin(&spans);
    let kind = group_type(query, series);
    let (plan, actor) = plan(asked, query, &spans, kind, &[(cell.series, series)])?;
    let reading = Reading::new(source, run, &plan, actor);
    let counted = Stickiness::new(&span.boundaries, query.filter.criteria);
    let found = ActorList::in_passes(run, |pass| {
        visit_nodes(
            &reading,
            pass,
            begin,
            || ActorList::new(run),
            |list, actor, records| {
                let active = counted.active(times_of(records, 0, span, begin));
                if cell.counts(active) { list.push(actor, 0) } else { Ok(()) }
            },
        )
    })?;
    found.finish(kind.map(|kind| (kind, &reading.groups)))
}
