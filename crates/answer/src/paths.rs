//! Paths: what persons do after what.

mod actors;

use std::ops::Range;
use std::sync::Arc;

use weir_questions::evaluate::{
    EDGES_MAX, Edge, PathEvent, PathNames, PathRules, Paths, TooManyEdges,
};
use weir_questions::query::{FilterGroup, PathEvents, PathsFilter, PathsQuery};
use weir_questions::results::PathResult;
use weir_questions::time::Interval;
use weir_segments::{Bits, NONE};

use crate::batch::Batch;
use crate::by_person::{ByPerson, Pass, Reading, ShortRecord, in_passes, visit};
use crate::error::{AnswerError, Result};
use crate::plan::Plan;
use crate::run::{Reservation, Run};
use crate::source::Source;
use crate::texts::Texts;
use crate::{Asked, Found};

pub(crate) use actors::behind;

/// The properties with the names of steps.
const PAGE: (&str, &str) = ("$pageview", "$current_url");
const SCREEN: (&str, &str) = ("$screen", "$screen_name");
/// The name of the steps that a long path skips in its middle.
const GAP: &str = "...";
/// The length of a range by days, as which `Calendar::range` reads dates.
const INTERVAL: Interval = Interval::Day;

/// The times of the events that the answer to a question about paths needs.
///
/// # Errors
/// [`AnswerError::Field`].
pub fn path_times(asked: &Asked<'_>, query: &PathsQuery) -> Result<Vec<Range<i64>>> {
    Ok(vec![times(asked, query)?])
}

fn times(asked: &Asked<'_>, query: &PathsQuery) -> Result<Range<i64>> {
    let dates = &query.scope.dates;
    let range = asked.calendar.range(dates, INTERVAL, asked.now, asked.earliest)?;
    Ok(range.begin()..range.end())
}

/// Answers a question about paths.
///
/// # Errors
/// See [`AnswerError`].
pub fn paths(
    source: &dyn Source,
    run: &Run<'_>,
    asked: &Asked<'_>,
    query: &PathsQuery,
) -> Result<Found<Vec<PathResult>>> {
    with_counter(source, run, asked, query, |counter, reading| {
        let counted = in_passes(|pass| counter.pass(reading, pass), |all, more| all.merge(more))?;
        let mut sorted: Vec<Arc<str>> = counter.texts.all();
        sorted.sort_unstable();
        let text = |place: u32| sorted.get(place as usize).map_or("", |text| &**text);
        let filter = &query.filter;
        let most = usize::try_from(filter.edges).unwrap_or(usize::MAX);
        let bounds = u64::from(filter.least.unwrap_or(0))..=filter.most.map_or(u64::MAX, u64::from);
        let mut edges = counted.paths.edges(most.saturating_add(1), bounds);
        let has_more = edges.len() > most;
        edges.truncate(most);
        let result = |edge: &Edge| PathResult::new(edge, text(edge.source), text(edge.target));
        Ok(Found {
            results: edges.iter().map(result).collect(),
            has_more: Some(has_more),
            range: crate::span::resolved(&times(asked, query)?),
        })
    })
}

/// Calls a function with what counts paths, and what it reads.
fn with_counter<T>(
    source: &dyn Source,
    run: &Run<'_>,
    asked: &Asked<'_>,
    query: &PathsQuery,
    work: impl for<'q, 'a> FnOnce(&PathCounter<'q, 'a>, &Reading<'q, 'a>) -> Result<T>,
) -> Result<T> {
    let times = times(asked, query)?;
    let mut plan = Plan::new(&query.scope, asked, vec![times.clone()])?;
    let filter = &query.filter;
    let all = FilterGroup::default();
    let names_all = filter.events.is_empty() || filter.events.contains(&PathEvents::Custom);
    match names_all {
        true => plan.add(None, &all, asked, "pathsFilter")?,
        false => {
            for event in &filter.events {
                plan.add(Some(event.word()), &all, asked, "pathsFilter")?;
            }
        }
    }
    let slots = [plan.slot(PAGE.1), plan.slot(SCREEN.1)];
    let actor = plan.actor(query.scope.group_type);
    let mut reading = Reading::new(source, run, &plan, actor);
    reading.properties = slots.to_vec();
    reading.names = true;
    let texts = Texts::new(run, "steps of paths");
    let names = PathNames::new(filter);
    // They have numbers also if no event has these names.
    let mut ends = [None; 2];
    for (number, text) in ends.iter_mut().zip([&filter.start, &filter.end]) {
        *number = text.as_deref().map(|text| texts.number(text)).transpose()?;
    }
    let gap = texts.number(GAP)?;
    let counter =
        PathCounter { filter, begin: times.start, names, slots, texts: &texts, ends, gap };
    work(&counter, &reading)
}

struct PathCounter<'q, 'a> {
    filter: &'q PathsFilter,
    begin: i64,
    names: PathNames<'q>,
    /// Of the address and of the name of a screen.
    slots: [usize; 2],
    texts: &'q Texts<'a>,
    /// The numbers of the names at which paths begin and end.
    ends: [Option<u32>; 2],
    /// The number of [`GAP`].
    gap: u32,
}

/// A person with its steps.
struct SeenSteps<'e> {
    person: u32,
    rules: PathRules,
    steps: &'e [PathEvent],
    /// The places of the numbers of names in the order of the names.
    places: &'e [u32],
}

/// Edges with their memory.
struct CountedPaths<'a> {
    paths: Paths,
    memory: Reservation<'a>,
}

impl<'a> CountedPaths<'a> {
    fn new(run: &Run<'a>, rules: PathRules) -> Self {
        Self { paths: Paths::new(rules), memory: run.memory.reservation() }
    }

    fn merge(&mut self, other: Self) -> Result<()> {
        self.memory.hold(self.paths.bytes() + other.paths.bytes())?;
        self.paths.merge(other.paths).map_err(too_many)
    }
}

fn too_many(_: TooManyEdges) -> AnswerError {
    AnswerError::TooLarge { what: "different edges of paths".to_owned(), limit: EDGES_MAX }
}

/// The place of the name with a number in the order of the names.
fn place(places: &[u32], number: u32) -> u32 {
    places.get(number as usize).copied().unwrap_or(NONE)
}

impl<'a> PathCounter<'_, 'a> {
    fn pass(&self, reading: &Reading<'_, 'a>, pass: Pass) -> Result<CountedPaths<'a>> {
        let run = reading.run;
        let states = self.each(
            reading,
            pass,
            |rules| CountedPaths::new(run, rules),
            |counted, seen| {
                counted.paths.person(seen.steps).map_err(too_many)?;
                counted.memory.hold(counted.paths.bytes())
            },
        )?;
        let mut states = states.into_iter();
        // There is one for each thread.
        let Some(mut all) = states.next() else {
            return Ok(CountedPaths::new(run, self.rules(&self.texts.ranks())));
        };
        states.try_for_each(|state| all.merge(state))?;
        Ok(all)
    }

    fn rules(&self, places: &[u32]) -> PathRules {
        let [start, end] = self.ends.map(|end| end.map(|number| place(places, number)));
        let steps = usize::try_from(self.filter.steps).unwrap_or(usize::MAX);
        PathRules { steps, start, end, gap: place(places, self.gap) }
    }

    /// Shows each person of a pass with its steps.
    fn each<T: Send>(
        &self,
        reading: &Reading<'_, 'a>,
        pass: Pass,
        make: impl Fn(PathRules) -> T + Sync,
        see: impl Fn(&mut T, SeenSteps<'_>) -> Result<()> + Sync,
    ) -> Result<Vec<T>> {
        let run = reading.run;
        let kept = reading.read(
            || ByPerson::new(run, pass),
            |kept, batch, actors| {
                let steps = self.steps(batch)?;
                for row in batch.kept().ones() {
                    let (person, time, step) = (actors[row], batch.times()[row], steps[row]);
                    if step != NONE {
                        kept.push(ShortRecord::new(person, self.begin, time, step.into()))?;
                    }
                }
                Ok(())
            },
        )?;
        // The numbers of texts depend on threads, and their order does not.
        let places = self.texts.ranks();
        let number = |record: &ShortRecord| record.bits() as u32;
        let rules = self.rules(&places);
        let states = visit(
            run,
            kept,
            |record: &mut ShortRecord| {
                *record = record.with_bits(place(&places, number(record)).into());
            },
            || (Vec::new(), make(rules)),
            |(steps, state): &mut (Vec<PathEvent>, T), person, records| {
                let event = |record: &ShortRecord| PathEvent {
                    time: record.time(self.begin),
                    name: number(record),
                };
                steps.clear();
                steps.extend(records.iter().map(event));
                see(state, SeenSteps { person, rules, steps, places: &places })
            },
        )?;
        Ok(states.into_iter().map(|(_, state)| state).collect())
    }

    /// The number of the name of each row as a step. [`NONE`]: it is no step.
    fn steps(&self, batch: &Batch<'_>) -> Result<Vec<u32>> {
        let mut pages = Bits::default();
        let mut screens = Bits::default();
        pages.reset(batch.rows());
        screens.reset(batch.rows());
        let mut steps = vec![NONE; batch.rows()];
        // By the code of a name.
        let mut known: Vec<Option<u32>> = Vec::new();
        for row in batch.kept().ones() {
            let Some((code, name)) = batch.name(row) else { continue };
            if name == PAGE.0.as_bytes() {
                pages.set(row);
                continue;
            }
            if name == SCREEN.0.as_bytes() {
                screens.set(row);
                continue;
            }
            let code = code as usize;
            if known.len() <= code {
                known.resize(code + 1, None);
            }
            let number = match known[code] {
                Some(number) => number,
                None => {
                    let text = std::str::from_utf8(name).ok();
                    let text = text.and_then(|text| self.names.name(text, None, None));
                    text.map_or(Ok(NONE), |text| self.texts.number(text))?
                }
            };
            known[code] = Some(number);
            steps[row] = number;
        }
        let [address, screen] = self.slots;
        self.name(batch, address, &pages, &mut steps, |text| {
            self.names.name(PAGE.0, Some(text), None).map(str::to_owned)
        })?;
        self.name(batch, screen, &screens, &mut steps, |text| {
            self.names.name(SCREEN.0, None, Some(text)).map(str::to_owned)
        })?;
        Ok(steps)
    }

    /// Numbers the names of some rows by the texts of a property.
    fn name(
        &self,
        batch: &Batch<'_>,
        slot: usize,
        rows: &Bits,
        steps: &mut [u32],
        of: impl Fn(&str) -> Option<String>,
    ) -> Result<()> {
        let Some(column) = batch.property(slot) else { return Ok(()) };
        let numbers =
            self.texts.numbers_of(column, rows, batch.rows(), |value| of(&value.text()?))?;
        rows.ones().for_each(|row| steps[row] = numbers[row]);
        Ok(())
    }
}
