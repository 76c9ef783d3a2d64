//! Who is new, comes back, or stays away.

use weir_questions::evaluate::Lifecycle;
use weir_questions::query::{LifecycleQuery, LifecycleStatus};

use super::{buckets, first_seen, plan, times};
use crate::actors::{ActorList, Behind, Search};
use crate::by_person::{Reading, visit_nodes};
use crate::error::Result;
use crate::plan::Actor;

/// The persons who have a status in an interval. `None`: any of them.
pub(crate) fn behind<'a>(
    search: &Search<'_, 'a>,
    query: &LifecycleQuery,
    interval: Option<usize>,
    status: Option<LifecycleStatus>,
) -> Result<Behind<'a>> {
    let Search { source, run, asked } = *search;
    let buckets = buckets(asked, query)?;
    let times = times(&buckets, asked)?;
    let before = times[0].start;
    let plan = plan(asked, query, times)?;
    let reading = Reading::new(source, run, &plan, Actor::Person);
    let seen = first_seen(source, run)?;
    let lifecycle = Lifecycle::new(before, buckets.boundaries());
    let found = ActorList::in_passes(run, |pass| {
        visit_nodes(
            &reading,
            pass,
            before,
            || ActorList::new(run),
            |list, person, records| {
                let first = seen.of(person).unwrap_or(i64::MAX);
                let times = records.iter().map(|record| record.time(before));
                let mut is_counted = false;
                lifecycle.statuses(first, times, |of, at| {
                    let is_status = status.is_none_or(|status| status == of);
                    is_counted |= is_status && interval.is_none_or(|interval| interval == at);
                });
                if is_counted { list.push(person, 0) } else { Ok(()) }
            },
        )
    })?;
    found.finish(None)
}
