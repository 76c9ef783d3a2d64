//! How far persons get in a funnel, and how long they take (QRY-13, QRY-14).
//!
//! An attempt begins with the first step and has a window from then on. Of several attempts,
//! a later one replaces an earlier one that is not further, because its window ends later.
//! The attempt that gets furthest counts, and of those the first.

use std::borrow::Cow;
use std::ops::Range;

use super::{add_counts, percentile};
use crate::query::FunnelOrder;

/// Most steps of a funnel: bits of [`FunnelEvent::steps`].
const STEPS_MAX: usize = 32;
const SECOND: i64 = 1_000_000;

/// An event of a person, for a funnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunnelEvent {
    /// Its time.
    pub time: i64,
    /// The steps that it is: bit 0 is the first one.
    pub steps: u32,
    /// The exclusions that it is: bit 0 is the first one.
    pub exclusions: u32,
}

/// Between which steps an exclusion counts, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExclusionRange {
    /// After this step.
    pub from_step: usize,
    /// Before this step.
    pub to_step: usize,
}

/// The rules of a funnel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunnelRules {
    steps: usize,
    order: FunnelOrder,
    window: i64,
    exclusions: Vec<ExclusionRange>,
}

/// How far a person got.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FunnelOutcome {
    /// The times of the steps that the person did, in the order in which they were done. Empty:
    /// the person did not begin.
    pub times: Vec<i64>,
    /// Whether the person did an excluded event in between, and does not count.
    pub is_excluded: bool,
}

impl FunnelOutcome {
    /// The number of steps that count.
    pub fn steps(&self) -> usize {
        if self.is_excluded { 0 } else { self.times.len() }
    }

    /// The time from one step to a later one, counted from 0, in microseconds. `None`: they do
    /// not both count.
    pub fn between(&self, from_step: usize, to_step: usize) -> Option<i64> {
        let counted = self.times.get(..self.steps())?;
        Some(counted.get(to_step)?.saturating_sub(*counted.get(from_step)?))
    }
}

/// An attempt: its steps so far.
#[derive(Debug, Clone, Default)]
struct Attempt {
    times: Vec<i64>,
    is_excluded: bool,
}

impl Attempt {
    fn start(&self) -> i64 {
        self.times.first().copied().unwrap_or(i64::MIN)
    }

    fn with(&self, time: i64) -> Self {
        let mut next = self.clone();
        next.times.push(time);
        next
    }

    /// Whether it is further than another one, or as far and not excluded as that is.
    fn replaces(&self, best: &Self) -> bool {
        self.times.len() > best.times.len()
            || (self.times.len() == best.times.len() && best.is_excluded && !self.is_excluded)
    }

    fn outcome(self) -> FunnelOutcome {
        FunnelOutcome { times: self.times, is_excluded: self.is_excluded }
    }
}

impl FunnelRules {
    /// The rules of a funnel of 1 to 32 steps with a window in microseconds. Exclusions of
    /// steps in any order count between the first and the last step that a person does.
    pub fn new(
        steps: usize,
        order: FunnelOrder,
        window: i64,
        exclusions: Vec<ExclusionRange>,
    ) -> Self {
        let steps = steps.clamp(1, STEPS_MAX);
        let within = |range: ExclusionRange| ExclusionRange {
            from_step: range.from_step.min(steps),
            to_step: range.to_step.min(steps - 1),
        };
        let exclusions = exclusions.into_iter().map(within).collect();
        Self { steps, order, window, exclusions }
    }

    /// How far a person gets with its sorted events, of which those in the range of the
    /// question count. Strict order needs all events of the person, also those that are no
    /// step. Events of the same time follow each other in the order of the steps, but in
    /// strict order in that of the input.
    pub fn person(&self, events: &[FunnelEvent], range: &Range<i64>) -> FunnelOutcome {
        let events = within(events, range);
        match self.order {
            FunnelOrder::Unordered => self.unordered(events),
            FunnelOrder::Ordered | FunnelOrder::Strict => self.in_order(events, i64::MAX),
        }
    }

    /// The same for attempts that begin in a bucket of the range, for rates over time. Steps
    /// in any order have no beginning, so for them all attempts count.
    pub fn person_of_bucket(
        &self,
        events: &[FunnelEvent],
        range: &Range<i64>,
        bucket: &Range<i64>,
    ) -> FunnelOutcome {
        if self.order == FunnelOrder::Unordered {
            return self.person(events, range);
        }
        let end = bucket.end.saturating_add(self.window).saturating_add(1).min(range.end);
        let events = within(events, &(bucket.start.max(range.start)..end));
        self.in_order(events, bucket.end)
    }

    /// The outcome of attempts that begin before `end`. Without regard to exclusions, the
    /// furthest one decides whether a person is excluded.
    fn in_order(&self, events: &[FunnelEvent], end: i64) -> FunnelOutcome {
        let mut found = self.ordered(events, end);
        if !found.is_excluded && events.iter().any(|event| event.exclusions != 0) {
            let rules = Self { exclusions: Vec::new(), ..self.clone() };
            found.is_excluded = rules.ordered(events, end).times.len() > found.times.len();
        }
        found
    }

    fn ordered(&self, events: &[FunnelEvent], end: i64) -> FunnelOutcome {
        // By the number of steps that they have done.
        let mut attempts: Vec<Option<Attempt>> = vec![None; self.steps + 1];
        let mut best = Attempt::default();
        let is_strict = self.order == FunnelOrder::Strict;
        // In strict order, the best attempt has ended unless the last event is its last step.
        let mut is_best_open = true;
        let mut rest = events;
        while let Some(event) = rest.first() {
            let same = match is_strict {
                true => 1,
                false => rest.partition_point(|other| other.time <= event.time),
            };
            let (group, after) = rest.split_at(same);
            rest = after;
            for event in group {
                self.exclude(event, &mut attempts, Some(&mut best).filter(|_| is_best_open));
            }
            if is_strict {
                let before = (best.times.len(), best.is_excluded);
                self.advance_strictly(event, end, &mut attempts, &mut best);
                is_best_open = before != (best.times.len(), best.is_excluded);
            } else if group.len() == 1 {
                self.advance(event, end, &mut attempts, &mut best);
            } else {
                self.advance_together(group, end, &mut attempts, &mut best);
            }
            if best.times.len() == self.steps && !best.is_excluded {
                break;
            }
        }
        best.outcome()
    }

    /// Marks attempts that are between the steps of an exclusion.
    fn exclude(
        &self,
        event: &FunnelEvent,
        attempts: &mut [Option<Attempt>],
        mut best: Option<&mut Attempt>,
    ) {
        for range in selected(&self.exclusions, event.exclusions) {
            for done in range.from_step + 1..=range.to_step {
                let Some(Some(attempt)) = attempts.get_mut(done) else { continue };
                if attempt.is_excluded || !self.is_in_window(attempt, event.time) {
                    continue;
                }
                attempt.is_excluded = true;
                // An earlier attempt that got as far has the same event in between.
                if let Some(best) = &mut best
                    && best.times.len() == done
                    && self.is_in_window(best, event.time)
                {
                    best.is_excluded = true;
                }
            }
        }
    }

    fn is_in_window(&self, attempt: &Attempt, time: i64) -> bool {
        time.saturating_sub(attempt.start()) <= self.window
    }

    /// Adds an event to the attempts whose next step it is.
    fn advance(
        &self,
        event: &FunnelEvent,
        end: i64,
        attempts: &mut [Option<Attempt>],
        best: &mut Attempt,
    ) {
        // From the last step, so that an event is one step of an attempt.
        for step in (0..self.steps).rev().filter(|step| event.steps & (1 << step) != 0) {
            if let Some(attempt) = self.open(step, event.time, end, attempts) {
                let next = attempt.with(event.time);
                place(next, attempts, best);
            }
        }
    }

    /// The same in strict order: attempts whose next step the event is not end with it.
    fn advance_strictly(
        &self,
        event: &FunnelEvent,
        end: i64,
        attempts: &mut [Option<Attempt>],
        best: &mut Attempt,
    ) {
        for step in (0..self.steps).rev() {
            let is_step = event.steps & (1 << step) != 0;
            let open = self.open(step, event.time, end, attempts).filter(|_| is_step);
            let next = open.map(|attempt| attempt.with(event.time));
            if let Some(slot) = attempts.get_mut(step + 1) {
                *slot = None;
            }
            if let Some(next) = next {
                place(next, attempts, best);
            }
        }
    }

    /// Adds events of the same time to the attempts before them, as many as there can be,
    /// each of them as one step.
    fn advance_together(
        &self,
        group: &[FunnelEvent],
        end: i64,
        attempts: &mut [Option<Attempt>],
        best: &mut Attempt,
    ) {
        let Some(time) = group.first().map(|event| event.time) else { return };
        let masks = enough(group, self.steps);
        let mut found: Vec<Option<Attempt>> = vec![None; self.steps + 1];
        // Of several attempts that get as far, the one that begins last has the longest
        // window left: it has done fewest steps before. Of those that begin together, the one
        // that has done most steps before did each of them first.
        for step in (0..self.steps).rev() {
            let Some(attempt) = self.open(step, time, end, attempts) else { continue };
            let mut attempt = attempt.into_owned();
            for slot in found.iter_mut().skip(step + 1).take(reach(&masks, step, self.steps)) {
                attempt = attempt.with(time);
                let is_worse = |other: &Attempt| {
                    attempt.start() == other.start() || (attempt.is_excluded && !other.is_excluded)
                };
                if !slot.as_ref().is_some_and(is_worse) {
                    *slot = Some(attempt.clone());
                }
            }
        }
        for next in found.into_iter().flatten() {
            place(next, attempts, best);
        }
    }

    /// The attempt whose next step is this one, if its window is open at a time.
    fn open<'a>(
        &self,
        step: usize,
        time: i64,
        end: i64,
        attempts: &'a [Option<Attempt>],
    ) -> Option<Cow<'a, Attempt>> {
        match step {
            0 => (time < end).then(|| Cow::Owned(Attempt::default())),
            _ => {
                let attempt = attempts.get(step)?.as_ref()?;
                self.is_in_window(attempt, time).then_some(Cow::Borrowed(attempt))
            }
        }
    }

    fn unordered(&self, events: &[FunnelEvent]) -> FunnelOutcome {
        let mut best = Attempt::default();
        let mut clean = Assignment::new(self.steps);
        // Without regard to exclusions: the furthest attempt decides whether a person is
        // excluded.
        let mut any = (!self.exclusions.is_empty()).then(|| Assignment::new(self.steps));
        let mut furthest = 0;
        // The order of events of the same time does not matter.
        for group in events.chunk_by(|a, b| a.time == b.time) {
            let Some(time) = group.first().map(|event| event.time) else { continue };
            let begin = time.saturating_sub(self.window);
            clean.expire(begin);
            if group.iter().any(|event| event.exclusions != 0) {
                let is_best = clean.len() > 0 && clean.len() == best.times.len();
                if is_best && self.is_in_window(&best, time) {
                    best.is_excluded = true;
                }
                clean.clear();
            }
            group.iter().for_each(|event| clean.add(time, event.steps));
            if let Some(any) = &mut any {
                any.expire(begin);
                group.iter().for_each(|event| any.add(time, event.steps));
                furthest = furthest.max(any.len());
            }
            let (done, most) = (clean.len(), best.times.len());
            if done > most || (done == most && best.is_excluded) {
                best = Attempt { times: clean.times(), ..Attempt::default() };
            }
            if best.times.len() == self.steps && !best.is_excluded {
                return best.outcome();
            }
        }
        best.is_excluded |= furthest > best.times.len();
        best.outcome()
    }
}

/// Keeps an attempt that has got further, for the steps after it and for the outcome.
fn place(next: Attempt, attempts: &mut [Option<Attempt>], best: &mut Attempt) {
    let done = next.times.len();
    let Some(slot) = attempts.get_mut(done) else { return };
    // An attempt that is there keeps the time at which it got there.
    let is_same = |other: &Attempt| done > 1 && other.start() == next.start();
    if slot.as_ref().is_some_and(is_same) {
        return;
    }
    if next.replaces(best) {
        best.clone_from(&next);
    }
    if !next.is_excluded {
        *slot = Some(next);
    }
}

/// The steps that events of the same time are: of each step as many events as there are
/// steps, since an event more would never be needed.
fn enough(group: &[FunnelEvent], steps: usize) -> Vec<u32> {
    let mut missing = vec![steps; steps];
    let is_needed = |event: &&FunnelEvent| {
        let mut is_needed = false;
        for (step, missing) in missing.iter_mut().enumerate() {
            if event.steps & (1 << step) != 0 && *missing > 0 {
                *missing -= 1;
                is_needed = true;
            }
        }
        is_needed
    };
    group.iter().filter(is_needed).map(|event| event.steps).collect()
}

/// How many steps from one on the events can be, each event one of them.
fn reach(masks: &[u32], first: usize, steps: usize) -> usize {
    // The step that each event is.
    let mut taken: Vec<Option<usize>> = vec![None; masks.len()];
    (first..steps).take_while(|step| find(masks, *step, &mut taken)).count()
}

/// Finds an event for a step, perhaps after others have other events.
fn find(masks: &[u32], step: usize, taken: &mut [Option<usize>]) -> bool {
    // Breadth first: from which event the step of each event was found.
    let mut found_from: Vec<Option<Option<usize>>> = vec![None; masks.len()];
    let mut queue = vec![(step, None)];
    let mut at = 0;
    while let Some((wanted, from)) = queue.get(at).copied() {
        at += 1;
        for event in 0..masks.len() {
            if masks[event] & (1 << wanted) == 0 || found_from[event].is_some() {
                continue;
            }
            found_from[event] = Some(from);
            if let Some(other) = taken[event] {
                queue.push((other, Some(event)));
                continue;
            }
            // Each event on the way takes the step of the one before it.
            let mut free = event;
            while let Some(before) = found_from[free].flatten() {
                taken[free] = taken[before];
                free = before;
            }
            taken[free] = Some(step);
            return true;
        }
    }
    false
}

/// Those of sorted events that are in a range.
pub(super) fn within<'a>(events: &'a [FunnelEvent], range: &Range<i64>) -> &'a [FunnelEvent] {
    let first = events.partition_point(|event| event.time < range.start);
    let events = events.get(first..).unwrap_or_default();
    let count = events.partition_point(|event| event.time < range.end);
    events.get(..count).unwrap_or_default()
}

/// The ranges of the exclusions that an event is.
fn selected(ranges: &[ExclusionRange], bits: u32) -> impl Iterator<Item = ExclusionRange> {
    let numbered = ranges.iter().copied().enumerate().take(STEPS_MAX);
    numbered.filter(move |(at, _)| bits & (1 << at) != 0).map(|(_, range)| range)
}

/// Events in a window, each for one step that it is, as many as there can be, and of all
/// such choices the one with the latest events. When early events expire, the rest is still
/// the largest choice, so each event is handled once.
#[derive(Debug)]
struct Assignment {
    /// For each step: the time of its event, and the steps that the event is.
    events: Vec<Option<(i64, u32)>>,
}

impl Assignment {
    fn new(steps: usize) -> Self {
        Self { events: vec![None; steps] }
    }

    fn len(&self) -> usize {
        self.events.iter().flatten().count()
    }

    fn clear(&mut self) {
        self.events.fill(None);
    }

    /// Removes events before a time.
    fn expire(&mut self, begin: i64) {
        for event in &mut self.events {
            if event.is_some_and(|(time, _)| time < begin) {
                *event = None;
            }
        }
    }

    /// The times of its events, in order.
    fn times(&self) -> Vec<i64> {
        let mut times: Vec<i64> = self.events.iter().flatten().map(|(time, _)| *time).collect();
        times.sort_unstable();
        times
    }

    /// Adds an event. If there is no step for one more, it replaces the earliest event whose
    /// step it can have, perhaps after others have moved to other steps.
    fn add(&mut self, time: i64, steps: u32) {
        // Breadth first: from which step each step was found.
        let count = self.events.len();
        let mut found_from: Vec<Option<Option<usize>>> = vec![None; count];
        let mut queue: Vec<usize> = Vec::new();
        queue.extend(visit(&mut found_from, steps, None));
        let mut at = 0;
        let mut target: Option<(i64, usize)> = None;
        while let Some(step) = queue.get(at).copied() {
            at += 1;
            match self.events.get(step).copied().flatten() {
                None => {
                    target = Some((i64::MIN, step));
                    break;
                }
                Some((other, mask)) => {
                    if target.is_none_or(|(earliest, _)| other < earliest) {
                        target = Some((other, step));
                    }
                    queue.extend(visit(&mut found_from, mask, Some(step)));
                }
            }
        }
        let Some((_, mut step)) = target else { return };
        // Each event on the way moves one step further.
        while let Some(Some(from)) = found_from.get(step).copied().flatten() {
            self.events[step] = self.events[from];
            step = from;
        }
        self.events[step] = Some((time, steps));
    }
}

/// Notes from which step those of an event were found, and returns the new ones.
fn visit(seen: &mut [Option<Option<usize>>], steps: u32, from: Option<usize>) -> Vec<usize> {
    let mut new = Vec::new();
    for (step, found) in seen.iter_mut().enumerate() {
        if steps & (1 << step) != 0 && found.is_none() {
            *found = Some(from);
            new.push(step);
        }
    }
    new
}

/// The totals of a funnel over persons, in any order.
#[derive(Debug, Clone)]
pub struct FunnelTotals {
    /// Persons who did at least one, two, … steps.
    counts: Vec<u64>,
    /// For each step but the first one: the times since the step before, in microseconds.
    times: Vec<Vec<i64>>,
}

/// The totals of one step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StepTotals {
    /// Persons who did this many steps or more.
    pub count: u64,
    /// The average time since the step before, in seconds.
    pub average: Option<f64>,
    /// The median of that time, in seconds.
    pub median: Option<f64>,
}

impl FunnelTotals {
    /// For a funnel of this many steps.
    pub fn new(steps: usize) -> Self {
        Self { counts: vec![0; steps], times: vec![Vec::new(); steps.saturating_sub(1)] }
    }

    /// Counts a person.
    pub fn add(&mut self, outcome: &FunnelOutcome) {
        let done = outcome.steps();
        for count in self.counts.iter_mut().take(done) {
            *count += 1;
        }
        let counted = outcome.times.iter().take(done);
        let pairs = counted.clone().zip(counted.skip(1));
        for (times, (before, after)) in self.times.iter_mut().zip(pairs) {
            times.push(after.saturating_sub(*before));
        }
    }

    /// Counts the persons of other totals of the same funnel.
    pub fn merge(&mut self, mut other: Self) {
        add_counts(&mut self.counts, &other.counts);
        for (times, more) in self.times.iter_mut().zip(&mut other.times) {
            times.append(more);
        }
    }

    /// The bytes that it takes in memory.
    pub fn bytes(&self) -> usize {
        let times: usize = self.times.iter().map(Vec::capacity).sum();
        (times + self.counts.capacity()) * size_of::<i64>()
    }

    /// The totals of each step.
    pub fn steps(&self) -> Vec<StepTotals> {
        self.counts
            .iter()
            .enumerate()
            .map(|(step, count)| {
                let times = step.checked_sub(1).and_then(|at| self.times.get(at));
                let times = times.map_or(&[] as &[i64], Vec::as_slice);
                let mut seconds: Vec<f64> = times.iter().copied().map(as_seconds).collect();
                StepTotals {
                    count: *count,
                    average: average(times),
                    median: percentile(&mut seconds, 0.5),
                }
            })
            .collect()
    }
}

/// How long persons take, in bins of the same width.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// The average in seconds, to hundredths.
    pub average: Option<f64>,
    /// The beginning of each bin in seconds, and the persons in it.
    pub bins: Vec<(i64, u64)>,
}

/// The width of a bin if all persons take equally long, in seconds.
const ONE_BIN: i64 = 60;
/// Most bins that follow from the number of persons.
const BINS_MAX: f64 = 60.0;

/// The histogram of times in microseconds: with this many bins and one more, or by the cube
/// root of the number of persons.
pub fn histogram(times: &[i64], bins: Option<u32>) -> Histogram {
    let average = average(times).map(|average| (average * 100.0).round() / 100.0);
    let (Some(least), Some(most)) = (times.iter().min(), times.iter().max()) else {
        return Histogram { average, bins: Vec::new() };
    };
    let count = match bins {
        Some(bins) => i64::from(bins.clamp(1, 90)),
        None => (times.len() as f64).cbrt().ceil().clamp(1.0, BINS_MAX) as i64,
    };
    let from = least.div_euclid(SECOND);
    // A begun second is a whole one.
    let to = most.div_euclid(SECOND) + i64::from(most.rem_euclid(SECOND) != 0);
    let width = match (to - from).div_euclid(count) + i64::from((to - from) % count != 0) {
        0 => ONE_BIN,
        width => width,
    };
    let mut counted: Vec<(i64, u64)> = (0..=count).map(|at| (from + at * width, 0)).collect();
    for time in times {
        let at = (time.div_euclid(SECOND) - from) / width;
        if let Some((_, persons)) = usize::try_from(at).ok().and_then(|at| counted.get_mut(at)) {
            *persons += 1;
        }
    }
    Histogram { average, bins: counted }
}

fn as_seconds(micros: i64) -> f64 {
    micros as f64 / SECOND as f64
}

/// The average of times in seconds. Their sum is exact, so their order does not matter.
fn average(times: &[i64]) -> Option<f64> {
    let sum: i128 = times.iter().map(|time| i128::from(*time)).sum();
    let count = i64::try_from(times.len()).ok().filter(|count| *count > 0)?;
    Some(sum as f64 / (i128::from(count) * i128::from(SECOND)) as f64)
}

#[cfg(test)]
mod tests;
