//! Running scripts: one request to the sandbox for all consecutive scripts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use weir_model::{PluginConfigId, ProjectId};
use weir_sandbox::{Outcome, Pool, Program, ScriptHost, TransformationCall};

use super::in_progress::EventInProgress;
use super::{TimedVerdict, Verdict};
use crate::allowance::Payers;
use crate::{registry, shape};

/// Maximum events of a crossing.
const EVENTS: usize = 500;
/// No event is added to a crossing whose properties have more bytes.
const BYTES: usize = 4 << 20;
/// Time between two log lines about scripts that cannot run.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// A script as a step.
pub(crate) struct Script<'a> {
    pub(crate) id: PluginConfigId,
    pub(crate) name: &'a str,
    pub(crate) program: &'a Arc<Program>,
    pub(crate) script: &'a weir_transpile::Script,
}

/// The lane of a crossing, and its purpose.
pub(crate) struct SandboxCall<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) lane: usize,
    pub(crate) host: &'a dyn ScriptHost,
    pub(crate) project: ProjectId,
    pub(crate) site_url: &'a str,
}

/// Splits events into crossings.
pub(crate) fn chunks(events: Vec<&mut EventInProgress>) -> Vec<Vec<&mut EventInProgress>> {
    let mut chunks: Vec<Vec<&mut EventInProgress>> = Vec::new();
    let mut bytes = 0;
    for event in events {
        let size = event.event().map_or(0, |event| event.properties.len());
        bytes += size;
        match chunks.last_mut() {
            Some(last) if last.len() < EVENTS && bytes <= BYTES => last.push(event),
            _ => {
                bytes = size;
                chunks.push(vec![event]);
            }
        }
    }
    chunks
}

/// The rulings of scripts that could not run.
fn not_run(scripts: usize, events: usize, why: &str) -> Vec<Vec<TimedVerdict>> {
    vec![vec![TimedVerdict::of(Verdict::NotRun(why.to_owned())); events]; scripts]
}

/// Whether it is time to log again that scripts cannot run. Every crossing fails then,
/// and there are many per second.
fn should_report() -> bool {
    static LAST: Mutex<Option<Instant>> = Mutex::new(None);
    let mut last = LAST.lock();
    let is_time = last.is_none_or(|last| last.elapsed() >= REPORT_EVERY);
    if is_time {
        *last = Some(Instant::now());
    }
    is_time
}

impl SandboxCall<'_> {
    /// Sends events through scripts, each within the time that `payers` may use up;
    /// returns the rulings of each script for all events.
    pub(crate) async fn run(
        &self,
        scripts: &[Script<'_>],
        payers: &Payers,
        allowances: Vec<Vec<Duration>>,
        events: &mut [&mut EventInProgress],
    ) -> Vec<Vec<TimedVerdict>> {
        let texts: Option<Vec<Box<RawValue>>> =
            events.iter().map(|event| self.written(event)).collect();
        let Some(texts) = texts else {
            return not_run(scripts.len(), events.len(), "An event cannot be written as JSON.");
        };
        let steps: Vec<TransformationCall> = scripts
            .iter()
            .zip(allowances)
            .map(|(script, allowances)| TransformationCall {
                program: Arc::clone(script.program),
                allowances,
            })
            .collect();
        let sent =
            self.pool.transform_within(self.lane, &steps, &payers.of, &texts, self.host).await;
        let results = match sent {
            Ok(results) if results.len() == texts.len() => results,
            Ok(results) => {
                let (sent, got) = (texts.len(), results.len());
                tracing::error!(sent, got, "events were lost in the sandbox");
                return not_run(scripts.len(), texts.len(), "The sandbox lost events.");
            }
            Err(fault) => {
                if should_report() {
                    tracing::error!(%fault, "scripts cannot be run");
                }
                return not_run(scripts.len(), texts.len(), &fault.to_string());
            }
        };
        let mut rulings: Vec<Vec<TimedVerdict>> =
            scripts.iter().map(|_| Vec::with_capacity(events.len())).collect();
        for ((event, text), result) in events.iter_mut().zip(&texts).zip(results) {
            let ruled = self.take(scripts, event, text.get(), result);
            for (own, ruling) in rulings.iter_mut().zip(ruled) {
                own.push(ruling);
            }
        }
        rulings
    }

    /// The JSON text of an event that crosses. Capture has validated its parts.
    fn written(&self, event: &EventInProgress) -> Option<Box<RawValue>> {
        let (event, received_at) = (event.event()?, event.received_at());
        shape::raw(shape::for_transformation(event, self.project, received_at, self.site_url))
    }

    /// Applies the result for an event; returns the ruling of each script.
    fn take(
        &self,
        scripts: &[Script<'_>],
        event: &mut EventInProgress,
        text: &str,
        result: weir_sandbox::Transformed,
    ) -> Vec<TimedVerdict> {
        let weir_sandbox::Transformed { outcome, failures, micros, passed_over } = result;
        let dropped = match outcome {
            Outcome::Dropped { step } => Some(step),
            Outcome::Kept(_) | Outcome::Unchanged => None,
        };
        let took =
            |step: usize| Duration::from_micros(micros.get(step).copied().map_or(0, u64::from));
        let mut rulings: Vec<TimedVerdict> = (0..scripts.len())
            .map(|step| {
                let verdict = match dropped {
                    Some(dropped) if step > dropped => Verdict::Absent,
                    Some(dropped) if step == dropped => Verdict::Dropped,
                    _ if passed_over.contains(&step) => Verdict::PassedOver,
                    _ => Verdict::Succeeded,
                };
                TimedVerdict { took: took(step), ..TimedVerdict::of(verdict) }
            })
            .collect();
        for failure in failures {
            let (Some(ruling), Some(script)) =
                (rulings.get_mut(failure.step), scripts.get(failure.step))
            else {
                continue;
            };
            ruling.verdict = Verdict::Failed(registry::message(&failure.error, script.script));
            ruling.sample = Some(text.to_owned());
        }
        match outcome {
            Outcome::Unchanged => {}
            Outcome::Dropped { step } => {
                if let Some(script) = scripts.get(step) {
                    event.drop_by(script.id, script.name);
                }
            }
            Outcome::Kept(made) => {
                if let Err(invalid) = event.change(made.get()) {
                    // The last successful script made the invalid event, or passed it on.
                    let last = rulings
                        .iter_mut()
                        .rev()
                        .find(|ruling| ruling.verdict == Verdict::Succeeded);
                    if let Some(last) = last {
                        last.verdict = Verdict::Failed(invalid.to_string());
                        last.sample = Some(text.to_owned());
                    }
                }
            }
        }
        rulings
    }
}
