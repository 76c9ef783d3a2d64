//! Scripts: one crossing of the border for all that come in a row.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use weir_model::{PluginConfigId, ProjectId};
use weir_sandbox::{Host, Outcome, Pool, Program, Step};

use super::passing::Passing;
use super::{Ruling, Verdict};
use crate::{registry, shape};

/// Events that cross at a time,
const EVENTS: usize = 500;
/// and bytes of their properties beyond which none is added.
const BYTES: usize = 4 << 20;
/// Between two lines that say that scripts cannot be run.
const TOLD: Duration = Duration::from_secs(10);

/// A script as a step.
pub(crate) struct Script<'a> {
    pub(crate) id: PluginConfigId,
    pub(crate) name: &'a str,
    pub(crate) program: &'a Arc<Program>,
    pub(crate) script: &'a weir_transpile::Script,
}

/// Where events cross, and what for.
pub(crate) struct Crossing<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) lane: usize,
    pub(crate) host: &'a dyn Host,
    pub(crate) project: ProjectId,
    pub(crate) site_url: &'a str,
}

/// Events in parts that may cross at a time.
pub(crate) fn chunks(events: &mut [Passing]) -> Vec<&mut [Passing]> {
    let mut chunks = Vec::new();
    let mut rest = events;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |event: &&Passing| {
            bytes += event.event().map_or(0, |event| event.properties.len());
            bytes <= BYTES
        };
        let count = rest.iter().take(EVENTS).take_while(fits).count();
        let count = count.clamp(1, rest.len());
        let (chunk, behind) = std::mem::take(&mut rest).split_at_mut(count);
        chunks.push(chunk);
        rest = behind;
    }
    chunks
}

/// The rulings of scripts that could not be run.
fn not_run(scripts: usize, events: usize, why: &str) -> Vec<Vec<Ruling>> {
    let verdict = Verdict::NotRun(why.to_owned());
    vec![vec![Ruling { verdict, took: Duration::ZERO, sample: None }; events]; scripts]
}

/// Whether it is time to tell again that scripts cannot be run: every crossing fails
/// then, and there are many in a second.
fn is_to_be_told() -> bool {
    static LAST: Mutex<Option<Instant>> = Mutex::new(None);
    let mut last = LAST.lock();
    let is_time = last.is_none_or(|last| last.elapsed() >= TOLD);
    if is_time {
        *last = Some(Instant::now());
    }
    is_time
}

impl Crossing<'_> {
    /// Sends events through scripts, each with what it may use up; gives the rulings
    /// of each script.
    pub(crate) async fn run(
        &self,
        scripts: &[Script<'_>],
        allowances: &[Duration],
        events: &mut [Passing],
    ) -> Vec<Vec<Ruling>> {
        let mut rulings: Vec<Vec<Ruling>> = scripts.iter().map(|_| Vec::new()).collect();
        let mut texts: Vec<Box<RawValue>> = Vec::with_capacity(events.len());
        let mut crossing: Vec<&mut Passing> = Vec::with_capacity(events.len());
        for passing in events {
            let Some(event) = passing.event() else { continue };
            let received_at = passing.received_at();
            let text = shape::for_transformation(event, self.project, received_at, self.site_url);
            // Capture has read what it is made of.
            if let Some(text) = shape::raw(text) {
                texts.push(text);
                crossing.push(passing);
            }
        }
        if texts.is_empty() {
            return rulings;
        }
        let steps: Vec<Step> = scripts
            .iter()
            .zip(allowances)
            .map(|(script, allowance)| Step {
                program: Arc::clone(script.program),
                allowance: *allowance,
            })
            .collect();
        let results = match self.pool.transform(self.lane, &steps, &texts, self.host).await {
            Ok(results) if results.len() == texts.len() => results,
            Ok(results) => {
                let (sent, got) = (texts.len(), results.len());
                tracing::error!(sent, got, "events were lost in the sandbox; they pass as sent");
                return not_run(scripts.len(), texts.len(), "The sandbox lost events.");
            }
            Err(fault) => {
                if is_to_be_told() {
                    tracing::error!(%fault, "scripts cannot be run; events pass as sent");
                }
                return not_run(scripts.len(), texts.len(), &fault.to_string());
            }
        };
        for ((passing, text), result) in crossing.into_iter().zip(&texts).zip(results) {
            let ruled = self.take(scripts, passing, text.get(), result);
            for (own, ruling) in rulings.iter_mut().zip(ruled) {
                own.push(ruling);
            }
        }
        rulings
    }

    /// Takes over what became of an event; gives the ruling of each script.
    fn take(
        &self,
        scripts: &[Script<'_>],
        passing: &mut Passing,
        text: &str,
        result: weir_sandbox::Transformed,
    ) -> Vec<Ruling> {
        let weir_sandbox::Transformed { outcome, failures, micros, passed_over } = result;
        let dropped = match outcome {
            Outcome::Dropped { step } => Some(step),
            Outcome::Kept(_) | Outcome::Unchanged => None,
        };
        let took =
            |step: usize| Duration::from_micros(micros.get(step).copied().map_or(0, u64::from));
        let mut rulings: Vec<Ruling> = (0..scripts.len())
            .map(|step| {
                let verdict = match dropped {
                    Some(dropped) if step > dropped => Verdict::Absent,
                    Some(dropped) if step == dropped => Verdict::Dropped,
                    _ if passed_over.contains(&step) => Verdict::PassedOver,
                    _ => Verdict::Succeeded,
                };
                Ruling { verdict, took: took(step), sample: None }
            })
            .collect();
        for failure in failures {
            let (Some(ruling), Some(script)) =
                (rulings.get_mut(failure.step), scripts.get(failure.step))
            else {
                continue;
            };
            ruling.verdict = Verdict::Failed(registry::told(&failure.error, script.script));
            ruling.sample = Some(text.to_owned());
        }
        match outcome {
            Outcome::Unchanged => {}
            Outcome::Dropped { step } => {
                if let Some(script) = scripts.get(step) {
                    passing.drop_by(script.id, script.name);
                }
            }
            Outcome::Kept(made) => {
                if let Err(invalid) = passing.change(made.get()) {
                    // Of those that ran it is the last one's doing, or it let it pass.
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
