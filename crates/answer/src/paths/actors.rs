//! Who took a path with certain steps.

use weir_questions::evaluate::PathEvent;
use weir_questions::query::{PathKey, PathKeys, PathsQuery};

use super::{PathCounter, place, with_counter};
use crate::actors::{ActorList, Behind, Search};
use crate::error::Result;

/// The number of a step in a path from 1, and the number of its name.
type Step = (usize, u32);

/// Which paths count.
struct Steps {
    from: Option<Step>,
    to: Option<Step>,
    dropoff: Option<Step>,
}

impl Steps {
    fn new(counter: &PathCounter<'_, '_>, keys: &PathKeys) -> Result<Self> {
        let step = |key: Option<&PathKey>| step(counter, key);
        Ok(Self {
            from: step(keys.from.as_ref())?,
            to: step(keys.to.as_ref())?,
            dropoff: step(keys.dropoff.as_ref())?,
        })
    }

    fn are_in(&self, path: &[PathEvent], places: &[u32]) -> bool {
        let has = |step: Option<Step>| {
            step.is_none_or(|(at, name)| {
                let event = at.checked_sub(1).and_then(|at| path.get(at));
                event.is_some_and(|event| event.name == place(places, name))
            })
        };
        has(self.from)
            && has(self.to)
            && has(self.dropoff)
            && self.from.is_none_or(|(at, _)| at < path.len())
            && self.to.is_none_or(|(at, _)| at > 1)
            && self.dropoff.is_none_or(|(at, _)| at == path.len())
    }
}

fn step(counter: &PathCounter<'_, '_>, key: Option<&PathKey>) -> Result<Option<Step>> {
    let Some(key) = key else { return Ok(None) };
    let at = usize::try_from(key.step).unwrap_or(usize::MAX);
    Ok(Some((at, counter.texts.number(&key.name)?)))
}

/// Who took a path with these steps.
pub(crate) fn behind<'a>(
    search: &Search<'_, 'a>,
    query: &PathsQuery,
    keys: &PathKeys,
) -> Result<Behind<'a>> {
    let Search { source, run, asked } = *search;
    with_counter(source, run, asked, query, |counter, reading| {
        let steps = Steps::new(counter, keys)?;
        let list = ActorList::in_passes(run, |pass| {
            counter.each(
                reading,
                pass,
                |_| ActorList::new(run),
                |list, seen| {
                    let mut is_counted = false;
                    seen.rules.paths(seen.steps, |path| {
                        is_counted = is_counted || steps.are_in(path, seen.places);
                    });
                    if is_counted { list.push(seen.person, 0) } else { Ok(()) }
                },
            )
        })?;
        list.finish(query.scope.group_type.map(|kind| (kind, &reading.groups)))
    })
}
