//! Events through steps, also when child processes end.
//!
//! When a child process ends, its unanswered events are lost. They are sent again in
//! careful mode: the new child process reports each step before it runs, so the step that
//! ends it is known and skipped for that event.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::value::RawValue;

use super::child::micros;
use super::exchange::{Broken, Reply, Timeouts, exchange};
use super::lane::LaneGuard;
use super::{Limits, PoolSettings};
use crate::answer::{Failure, Outcome, Transformed};
use crate::error::{ErrorKind, Fault, ScriptError};
use crate::host::ScriptHost;
use crate::json::event_shape;
use crate::numbers;
use crate::program::TransformationCall;
use crate::wire::{self, Item, Mark, Transform, WireStep, to_child};

/// Time of a step for an event that the allowance is not charged for.
const FREE: Duration = Duration::from_millis(5);
/// The cost of replacing a child process, in addition to the time that it has used.
const REPLACING: Duration = Duration::from_millis(100);
/// Bytes of events that are sent to a child process in one frame.
const PORTION: usize = 16 << 20;
/// How many child processes in a row may end without having begun any work.
const MOST_IDLE_ENDS: u32 = 3;

pub(super) async fn transform(
    mut guard: LaneGuard<'_>,
    settings: &PoolSettings,
    steps: &[TransformationCall],
    payers: &[Vec<usize>],
    events: &[Box<RawValue>],
    host: &dyn ScriptHost,
) -> Result<Vec<Transformed>, Fault> {
    let limits = &settings.limits;
    let mut work = Work::new(steps, payers, limits);
    let mut idle_ends = 0;
    while work.done.len() < events.len() {
        let mut child = guard.take().await?;
        let mut out = Vec::new();
        let mut by_slot = BTreeMap::new();
        let mut wire_steps = Vec::with_capacity(steps.len());
        for (step, allowances) in steps.iter().zip(&work.allowances) {
            let slot = child.slot(&step.program, limits, &mut out)?;
            by_slot.insert(slot, &*step.program);
            let allowances_us = allowances.iter().copied().map(micros).collect();
            wire_steps.push(WireStep { slot, allowances_us });
        }
        let rest = portion(&events[work.done.len()..]);
        let request = Transform {
            steps: wire_steps,
            careful: work.careful,
            skip: work.skip.clone(),
            payers: (0..rest.len()).map(|index| work.payers(index).into()).collect(),
            events: rest.iter().map(|event| &**event).collect(),
        };
        wire::put(&mut out, to_child::TRANSFORM, &request)?;
        let patience = Timeouts {
            script: limits.transform,
            load: limits.load * 2,
            wall: limits.transform_wall,
            grace: limits.grace,
        };
        let reply = exchange(&mut child, out, &by_slot, host, patience, rest.len()).await;
        let processor = child.processor_time();
        let complete = reply.broken.is_none() && reply.items.len() >= rest.len();
        if complete {
            guard.put(child);
        } else if !reply.heard {
            idle_ends += 1;
            if idle_ends > MOST_IDLE_ENDS {
                return Err(Fault::KeepsEnding);
            }
        } else {
            idle_ends = 0;
        }
        work.take(reply, processor, rest);
    }
    Ok(work.done)
}

/// As many events as fit into a frame, at least one.
fn portion(events: &[Box<RawValue>]) -> &[Box<RawValue>] {
    let mut bytes = 0;
    let fit = events.iter().take_while(|event| {
        bytes += event.get().len();
        bytes <= PORTION
    });
    let fit = fit.count().max(1).min(events.len());
    &events[..fit]
}

/// Progress of a request.
struct Work<'a> {
    limits: &'a Limits,
    steps: usize,
    done: Vec<Transformed>,
    /// Allowances by step and payer.
    allowances: Vec<Vec<Duration>>,
    /// Payers by event.
    payers: &'a [Vec<usize>],
    careful: bool,
    /// Steps that are skipped for the next event, with the reason.
    skip: Vec<usize>,
    failures: Vec<Failure>,
    /// The costs of skipped steps.
    costs: Vec<(usize, Duration)>,
    /// The cost of ended child processes whose cause is not known yet.
    unpaid: Duration,
    /// The event and step during which a child process ended. One end alone can be
    /// chance.
    suspect: Option<(usize, usize)>,
}

impl<'a> Work<'a> {
    fn new(steps: &[TransformationCall], payers: &'a [Vec<usize>], limits: &'a Limits) -> Self {
        Self {
            limits,
            steps: steps.len(),
            done: Vec::new(),
            allowances: steps.iter().map(|step| step.allowances.clone()).collect(),
            payers,
            careful: false,
            skip: Vec::new(),
            failures: Vec::new(),
            costs: Vec::new(),
            unpaid: Duration::ZERO,
            suspect: None,
        }
    }

    /// The payers of an event, counted from the first unfinished one.
    fn payers(&self, index: usize) -> &'a [usize] {
        self.payers.get(self.done.len() + index).map_or(&[], Vec::as_slice)
    }

    fn pay(&mut self, step: usize, payers: &[usize], cost: Duration) {
        let Some(allowances) = self.allowances.get_mut(step) else { return };
        for payer in payers {
            if let Some(left) = allowances.get_mut(*payer) {
                *left = left.saturating_sub(cost);
            }
        }
    }

    /// Takes the answer of a child process with this processor time.
    fn take(&mut self, reply: Reply, processor: Option<Duration>, rest: &[Box<RawValue>]) {
        let requested = rest.len();
        let before = self.done.len();
        let answered = reply.items.len().min(requested);
        let used = reply.used(processor);
        for (item, original) in reply.items.into_iter().zip(rest) {
            let payers = self.payers(0);
            for (step, micros) in item.micros.iter().enumerate() {
                let took = Duration::from_micros(u64::from(*micros));
                self.pay(step, payers, took.saturating_sub(FREE));
            }
            let made = self.made(item, original);
            self.done.push(made);
        }
        let Some(broken) = reply.broken else {
            // The child process reports that it is done although events are missing:
            // retry in careful mode.
            self.careful |= answered < requested;
            return;
        };
        self.unpaid += used + REPLACING;
        let Mark { event, step } = match reply.mark {
            Some(mark) if self.careful && mark.event == answered && mark.step < self.steps => mark,
            _ => {
                self.careful |= reply.heard;
                return;
            }
        };
        let here = (before + event, step);
        if broken == Broken::Ended && self.suspect != Some(here) {
            self.suspect = Some(here);
            return;
        }
        let cost = std::mem::take(&mut self.unpaid);
        self.pay(step, self.payers(0), cost);
        self.costs.push((step, cost));
        self.skip.push(step);
        self.failures.push(Failure { step, error: killed(broken) });
    }

    fn made(&mut self, item: Item, original: &RawValue) -> Transformed {
        self.skip.clear();
        let mut failures: Vec<Failure> = std::mem::take(&mut self.failures);
        failures.extend(
            item.failures
                .into_iter()
                .map(|failure| Failure { step: failure.step, error: failure.error }),
        );
        failures.retain(|failure| failure.step < self.steps);
        let outcome = match (item.dropped, item.kept) {
            (Some(step), _) if step < self.steps => Outcome::Dropped { step },
            (_, Some(kept)) => match checked(&kept, self.limits) {
                Ok(()) => with_digits(kept, original),
                Err(error) => {
                    failures.push(Failure { step: 0, error });
                    Outcome::Unchanged
                }
            },
            _ => Outcome::Unchanged,
        };
        failures.sort_by_key(|failure| failure.step);
        let mut micros = item.micros;
        micros.resize(self.steps, 0);
        for (step, cost) in std::mem::take(&mut self.costs) {
            let cost = u32::try_from(cost.as_micros()).unwrap_or(u32::MAX);
            micros[step] = micros[step].saturating_add(cost);
        }
        Transformed { outcome, failures, micros, passed_over: item.passed_over }
    }
}

/// The child process has checked this already, but is not trusted.
fn checked(kept: &RawValue, limits: &Limits) -> Result<(), ScriptError> {
    let bad = |why| ScriptError::plain(ErrorKind::BadResult, why);
    if kept.get().len() > limits.result {
        return Err(bad("what was returned is larger than a result may be"));
    }
    event_shape(kept.get()).map_err(bad)
}

/// Restores digits that the engine could not keep.
fn with_digits(kept: Box<RawValue>, original: &RawValue) -> Outcome {
    match numbers::restore(original.get(), kept.get()) {
        Some(text) if text == original.get() => Outcome::Unchanged,
        Some(text) => Outcome::Kept(RawValue::from_string(text).unwrap_or(kept)),
        None => Outcome::Kept(kept),
    }
}

/// The error of a script for which a child process was killed, or during which it ended.
pub(super) fn killed(broken: Broken) -> ScriptError {
    match broken {
        Broken::TooLate => ScriptError::plain(
            ErrorKind::TimedOut,
            "the script runs longer than it may, and could not be stopped but with its process",
        ),
        Broken::Ended => {
            ScriptError::plain(ErrorKind::Crashed, "the process ended while the script ran")
        }
    }
}
