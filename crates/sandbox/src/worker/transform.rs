//! Events through steps.

use std::borrow::Cow;
use std::time::Duration;

use super::report::{EventResult, Report};
use super::runtime::{Shared, Waiting};
use super::slots::Slots;
use super::trouble::ScriptFailure;
use crate::error::{ErrorKind, ScriptError};
use crate::json::{event_written, mend_surrogates};
use crate::wire::{Mark, Transform, WireFailure, WireStep, to_parent};

use rquickjs::{Object, Value};

/// Time of a step for an event that the allowance is not charged for.
const FREE: Duration = Duration::from_millis(5);
/// Bytes by which all events of a request together may grow, so that the output is
/// bounded by the input.
const GROWTH: usize = 8 << 20;
/// Time of loading that the allowance is not charged for.
const FREE_LOAD: Duration = Duration::from_millis(100);

const TOO_LARGE: &str = "events that are changed together may grow by 8 MiB, and would by more";

/// The result of a step for an event.
enum StepOutcome {
    Same,
    Other(String),
    Nothing,
}

/// Processes a request: a result for each event, in order.
pub(super) fn transform(
    shared: &Shared,
    slots: &mut Slots,
    request: &Transform<'_>,
) -> std::io::Result<()> {
    let mut report = Report::new(&shared.border);
    let mut room = GROWTH;
    let mut spent = shared.clock.spent();
    let of = |step: &WireStep| -> Vec<Duration> {
        step.allowances_us.iter().copied().map(Duration::from_micros).collect()
    };
    let mut left: Vec<Vec<Duration>> = request.steps.iter().map(of).collect();
    for (index, event) in request.events.iter().enumerate() {
        let mut made =
            EventResult { micros: vec![0; request.steps.len()], ..EventResult::default() };
        let mut text = Cow::Borrowed(event.get());
        let mut changed_by = 0;
        let payers = request.payers.get(index).map_or(&[][..], |payers| payers);
        for (step, program) in request.steps.iter().enumerate() {
            if index == 0 && request.skip.contains(&step) {
                continue;
            }
            if payers.iter().any(|payer| left[step].get(*payer).is_some_and(Duration::is_zero)) {
                made.passed_over.push(step);
                continue;
            }
            // The timer of the parent process restarts with each frame.
            if request.careful || (index, step) == (0, 0) || report.stale() {
                report.send(to_parent::MARK, &Mark { event: index, step })?;
            }
            let before = spent;
            let mut loads = false;
            let ready = slots.ready(shared, program.slot, true, || {
                loads = true;
                report.flush()
            });
            let began = if loads { shared.clock.spent() } else { before };
            let outcome = ready.and_then(|()| one(shared, slots, program.slot, &text));
            // A script that is loaded repeatedly delays others, so it pays for that.
            let loading = began.saturating_sub(before).saturating_sub(FREE_LOAD);
            spent = shared.clock.spent();
            let took = spent.saturating_sub(began) + loading;
            made.micros[step] = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
            for payer in payers {
                if let Some(left) = left[step].get_mut(*payer) {
                    *left = left.saturating_sub(took.saturating_sub(FREE));
                }
            }
            match outcome {
                Ok(StepOutcome::Same) => {}
                Ok(StepOutcome::Other(other)) => {
                    text = Cow::Owned(other);
                    changed_by = step;
                }
                Ok(StepOutcome::Nothing) => {
                    made.dropped = Some(step);
                    break;
                }
                Err(trouble) => {
                    made.failures.push(WireFailure { step, error: trouble.script()? });
                }
            }
        }
        if let (Cow::Owned(text), None) = (text, made.dropped) {
            match room.checked_sub(text.len().saturating_sub(event.get().len())) {
                Some(left) => {
                    room = left;
                    made.kept = Some(text);
                }
                None => {
                    let error = ScriptError::plain(ErrorKind::BadResult, TOO_LARGE);
                    made.failures.push(WireFailure { step: changed_by, error });
                }
            }
        }
        report.push(&made)?;
        if request.careful {
            report.flush()?;
        }
    }
    report.flush()
}

fn one(
    shared: &Shared,
    slots: &mut Slots,
    slot: u32,
    text: &str,
) -> Result<StepOutcome, ScriptFailure> {
    let limit = Duration::from_micros(shared.limits.transform_us);
    slots.run(slot, limit, |engine, program| {
        let event = engine.ok(engine.ctx.json_parse(text))?;
        let result = engine.call(program, "begin", (event,))?;
        let result = engine.call(program, "end", (result,))?;
        if result.is_null() || result.is_undefined() {
            return Ok(StepOutcome::Nothing);
        }
        let written = written(engine, result)?;
        if written == text {
            return Ok(StepOutcome::Same);
        }
        event_written(&written).map_err(|why| ScriptFailure::plain(ErrorKind::BadResult, why))?;
        Ok(StepOutcome::Other(written))
    })
}

/// A value as JSON. That may run code of the script.
pub(super) fn written<'js>(
    engine: &Waiting<'_, 'js>,
    value: Value<'js>,
) -> Result<String, ScriptFailure> {
    let text = engine.ok(engine.ctx.json_stringify(value))?;
    let Some(text) = text else {
        return Err(ScriptFailure::plain(
            ErrorKind::BadResult,
            "what was returned has no form as JSON",
        ));
    };
    let text = engine.ok(text.to_string())?;
    if text.len() > engine.shared.limits.result {
        let message = "what was returned is larger than a result may be";
        return Err(ScriptFailure::plain(ErrorKind::BadResult, message));
    }
    Ok(mend_surrogates(text))
}

/// Reads a property of an object of the prelude, through JSON.
pub(super) fn read<'js, T: serde::de::DeserializeOwned>(
    engine: &Waiting<'_, 'js>,
    value: Object<'js>,
) -> Result<T, ScriptFailure> {
    let text = written(engine, value.into_value())?;
    serde_json::from_str(&text)
        .map_err(|_| ScriptFailure::plain(ErrorKind::BadResult, "what was returned cannot be read"))
}
