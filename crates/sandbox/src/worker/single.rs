//! Destinations, tasks, jobs and inspection: all requests except transformations.

use std::time::Duration;

use super::report::{EventResult, Report};
use super::runtime::Shared;
use super::slots::Slots;
use super::transform::read;
use super::trouble::ScriptFailure;
use crate::error::ErrorKind;
use crate::program::DeliveryFunction;
use crate::wire::{Deliver, Mark, Run, SingleCall, to_parent};

use rquickjs::convert::IteratorJs as _;
use rquickjs::{Array, Object, Value};

/// Passes events to a destination: a result for each, or one for all.
pub(super) fn deliver(
    shared: &Shared,
    slots: &mut Slots,
    request: &Deliver<'_>,
) -> std::io::Result<()> {
    let mut report = Report::new(&shared.border);
    let limit = Duration::from_micros(shared.limits.deliver_us);
    let batches: Vec<&[&serde_json::value::RawValue]> = match request.how {
        DeliveryFunction::ExportEvents => vec![&request.events],
        DeliveryFunction::OnEvent | DeliveryFunction::ComposeWebhook => {
            request.events.chunks(1).collect()
        }
    };
    for (index, events) in batches.into_iter().enumerate() {
        report.send(to_parent::MARK, &Mark { event: index, step: 0 })?;
        let outcome = slots
            .ready(shared, request.slot, true, || Ok(()))
            .and_then(|()| one(slots, request, limit, events));
        let made = match outcome {
            Ok(made) => made,
            Err(trouble) => EventResult::failed(trouble.script()?),
        };
        report.push(&made)?;
        report.flush()?;
    }
    Ok(())
}

fn one(
    slots: &mut Slots,
    request: &Deliver<'_>,
    limit: Duration,
    events: &[&serde_json::value::RawValue],
) -> Result<EventResult, ScriptFailure> {
    let how = request.how;
    slots.run(request.slot, limit, |engine, program| {
        let parsed = events.iter().map(|event| engine.ok(engine.ctx.json_parse(event.get())));
        let parsed = parsed.collect::<Result<Vec<Value<'_>>, _>>()?;
        let mut made = EventResult::default();
        match (how, parsed.into_iter()) {
            (DeliveryFunction::ExportEvents, parsed) => {
                let all: Array<'_> = engine.ok(parsed.collect_js(engine.ctx))?;
                engine.call(program, "exportEvents", (all,))?;
            }
            (DeliveryFunction::OnEvent, mut parsed) => {
                engine.call(program, "onEvent", (parsed.next(),))?;
            }
            (DeliveryFunction::ComposeWebhook, mut parsed) => {
                let wanted = engine.call(program, "composeWebhook", (parsed.next(),))?;
                let wanted = engine.call(program, "webhook", (wanted,))?;
                if let Some(wanted) = wanted.as_object() {
                    made.webhook = Some(read(engine, wanted.clone())?);
                } else if !wanted.is_null() {
                    let message = "composeWebhook returns null or an object with a text `url`";
                    return Err(ScriptFailure::plain(ErrorKind::BadResult, message));
                }
            }
        }
        Ok(made)
    })
}

/// Calls one function, or returns the capabilities.
pub(super) fn run(shared: &Shared, slots: &mut Slots, request: &Run<'_>) -> std::io::Result<()> {
    let mut report = Report::new(&shared.border);
    if matches!(request.what, SingleCall::Teardown) && !slots.loaded(request.slot) {
        slots.forget(&[request.slot]);
        report.push(&EventResult::default())?;
        return report.flush();
    }
    let inspect = matches!(request.what, SingleCall::Inspect);
    let limit = Duration::from_micros(request.limit_us);
    let outcome = slots.ready(shared, request.slot, !inspect, || Ok(())).and_then(|()| {
        slots.run(request.slot, limit, |engine, program| {
            let mut made = EventResult::default();
            match request.what {
                SingleCall::Task => {
                    engine.call(program, "task", (&*request.name,))?;
                }
                SingleCall::Job => {
                    let payload = request.payload.map_or("null", |payload| payload.get());
                    let payload = engine.ok(engine.ctx.json_parse(payload))?;
                    engine.call(program, "job", (&*request.name, payload))?;
                }
                SingleCall::Teardown => {
                    if engine.ok(program.get::<_, bool>("hasTeardown"))? {
                        engine.call(program, "teardown", ())?;
                    }
                }
                SingleCall::Inspect => {
                    let found = engine.call(program, "inspect", ())?;
                    let found: Object<'_> = engine.ok(found.get())?;
                    made.capabilities = Some(read(engine, found)?);
                }
            }
            Ok(made)
        })
    });
    let made = match outcome {
        Ok(made) => made,
        Err(trouble) => EventResult::failed(trouble.script()?),
    };
    if request.forget {
        slots.forget(&[request.slot]);
    }
    report.push(&made)?;
    report.flush()
}
