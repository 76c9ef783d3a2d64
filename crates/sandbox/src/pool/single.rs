//! Destinations, tasks, jobs and inspection: all requests except transformations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use super::child::{Child, micros};
use super::exchange::{Reply, Timeouts, exchange};
use super::lane::LaneGuard;
use super::transform::killed;
use super::{Limits, PoolSettings};
use crate::answer::Delivered;
use crate::error::{Fault, ScriptError};
use crate::host::ScriptHost;
use crate::program::{DeliveryFunction, Program};
use crate::wire::{self, Deliver, Item, Run, SingleCall, to_child};

/// How many child processes in a row may end without having begun any work.
const MOST_IDLE_ENDS: u32 = 3;

pub(super) fn patience(limits: &Limits, script: Duration) -> Timeouts {
    // Loading is two calls: the source itself, and `setupPlugin`.
    Timeouts { script, load: limits.load * 2, wall: limits.wall, grace: limits.grace }
}

/// Passes events to a destination. If a child process ends, the current event failed. It
/// is not retried here, because something may have been sent.
pub(super) async fn deliver(
    mut guard: LaneGuard<'_>,
    settings: &PoolSettings,
    program: &Arc<Program>,
    how: DeliveryFunction,
    events: &[Box<RawValue>],
    host: &dyn ScriptHost,
) -> Result<Vec<Delivered>, Fault> {
    let limits = &settings.limits;
    let mut done = Vec::with_capacity(events.len());
    let mut idle_ends = 0;
    while done.len() < events.len() {
        let mut child = guard.take().await?;
        let mut out = Vec::new();
        let slot = child.slot(program, limits, &mut out)?;
        let rest = &events[done.len()..];
        let request = Deliver { slot, how, events: rest.iter().map(|event| &**event).collect() };
        wire::put(&mut out, to_child::DELIVER, &request)?;
        let by_slot = BTreeMap::from([(slot, &**program)]);
        let reply =
            exchange(&mut child, out, &by_slot, host, patience(limits, limits.deliver), rest.len())
                .await;
        idle_ends = ended_idle(&reply, idle_ends)?;
        let heard = reply.heard;
        let at = done.len();
        let answers = reply.items.into_iter().map(|item| delivered(item, how));
        match how {
            DeliveryFunction::ExportEvents => {
                if let Some(answer) = answers.into_iter().next() {
                    done.resize(events.len(), answer);
                }
            }
            DeliveryFunction::OnEvent | DeliveryFunction::ComposeWebhook => {
                done.extend(answers.take(rest.len()))
            }
        }
        match reply.broken {
            None if done.len() == events.len() => guard.put(child),
            // It reports that it is done although events are missing.
            None if done.len() == at => return Err(Fault::KeepsEnding),
            None => {}
            Some(broken) if heard && done.len() < events.len() => {
                let failed = Delivered::Failed(killed(broken));
                let more = if how == DeliveryFunction::ExportEvents {
                    events.len()
                } else {
                    done.len() + 1
                };
                done.resize(more, failed);
            }
            Some(_) => {}
        }
    }
    Ok(done)
}

fn delivered(item: Item, how: DeliveryFunction) -> Delivered {
    match item.failures.into_iter().next() {
        Some(failure) => Delivered::Failed(failure.error),
        None if how == DeliveryFunction::ComposeWebhook => Delivered::Webhook(item.webhook),
        None => Delivered::Done,
    }
}

pub(super) fn ended_idle(reply: &Reply, before: u32) -> Result<u32, Fault> {
    if reply.broken.is_none() || reply.heard {
        return Ok(0);
    }
    if before >= MOST_IDLE_ENDS { Err(Fault::KeepsEnding) } else { Ok(before + 1) }
}

/// One call of a program.
pub(super) struct One<'a> {
    pub(super) what: SingleCall,
    pub(super) name: &'a str,
    pub(super) payload: Option<&'a RawValue>,
    /// The child process need not keep the program.
    pub(super) forget: bool,
}

/// Calls one function. If the child process ends, the call is not retried.
pub(super) async fn run(
    mut guard: LaneGuard<'_>,
    settings: &PoolSettings,
    program: &Arc<Program>,
    one: One<'_>,
    host: &dyn ScriptHost,
) -> Result<Result<Item, ScriptError>, Fault> {
    let limits = &settings.limits;
    let mut idle_ends = 0;
    loop {
        let mut child = guard.take().await?;
        let reply = call(&mut child, limits, program, &one, host).await?;
        idle_ends = ended_idle(&reply, idle_ends)?;
        match (reply.broken, reply.items.into_iter().next()) {
            (None, Some(item)) => {
                guard.put(child);
                return Ok(match item.failures.into_iter().next() {
                    Some(failure) => Err(failure.error),
                    None => Ok(Item { failures: Vec::new(), ..item }),
                });
            }
            (Some(broken), _) if reply.heard => return Ok(Err(killed(broken))),
            (Some(_), _) => {}
            (None, None) => return Err(Fault::KeepsEnding),
        }
    }
}

async fn call(
    child: &mut Child,
    limits: &Limits,
    program: &Arc<Program>,
    one: &One<'_>,
    host: &dyn ScriptHost,
) -> Result<Reply, Fault> {
    let mut out = Vec::new();
    let slot = child.slot(program, limits, &mut out)?;
    let forget = one.forget;
    // A program that may not wait for others uses the same lane as programs that events
    // wait for.
    let patience = match one.what {
        SingleCall::Teardown if !program.grants.fetch => {
            let patience = patience(limits, limits.transform);
            Timeouts { wall: limits.transform_wall, ..patience }
        }
        // Others wait for the same few lanes. There is no `setupPlugin`, and every call of
        // the host is refused immediately.
        SingleCall::Inspect => {
            let load = limits.load;
            Timeouts { script: load, load, wall: load, grace: limits.grace }
        }
        _ => patience(limits, limits.task),
    };
    let request = Run {
        slot,
        what: one.what,
        name: one.name.into(),
        payload: one.payload,
        limit_us: micros(patience.script),
        forget,
    };
    wire::put(&mut out, to_child::RUN, &request)?;
    if forget {
        child.forgotten(program.key);
    }
    let by_slot = BTreeMap::from([(slot, &**program)]);
    Ok(exchange(child, out, &by_slot, host, patience, 1).await)
}
