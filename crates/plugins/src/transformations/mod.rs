//! Transformations: the steps of a project on the way of its events to the store.
//!
//! ```text
//! events -> steps in Rust -> scripts, one crossing for all in a row -> … -> events
//! ```
//!
//! What belongs here: their order, what counts as a failure, and what follows from
//! failures. What does not: where in ingestion this is done (`weir-ingest`).
//!
//! Invariant: a step that fails, is passed over or gives what is no event leaves the
//! event as it was before it.

pub(crate) mod native;
pub(crate) mod passing;
pub(crate) mod scripts;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use weir_ingest::transform::{Given, Transform, Transformed};
use weir_model::{ProjectId, panics};

use crate::metrics::Effect;
use crate::registry::{Active, Code};
use crate::report::Tally;
use crate::{Plugins, Shared};
use passing::Passing;

/// Failures in a row after which a config is disabled (SECURITY-NOTES 5).
const FAILURES: u32 = 20;
/// Between two tries to disable it.
const AGAIN: Duration = Duration::from_secs(5);

/// What a step did with an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// What it is for.
    Succeeded,
    /// It dropped it.
    Dropped,
    /// It failed: why, for members.
    Failed(String),
    /// It has used up its time, and was not asked.
    PassedOver,
    /// It could not be run, through no fault of its own: why.
    NotRun(String),
    /// The event did not come to it.
    Absent,
}

/// A verdict, how long it took, and the event that it is about.
#[derive(Debug, Clone)]
pub(crate) struct Ruling {
    pub(crate) verdict: Verdict,
    pub(crate) took: Duration,
    /// Text of the event before the step, of a failure.
    pub(crate) sample: Option<String>,
}

#[async_trait]
impl Transform for Plugins {
    fn concerns(&self, project: ProjectId) -> bool {
        self.shared.registry.transforms(project)
    }

    async fn transform(
        &self,
        project: ProjectId,
        partition: u16,
        given: Vec<Given>,
    ) -> Vec<Transformed> {
        let shared = &self.shared;
        let mut events: Vec<Passing> = given.into_iter().map(Passing::new).collect();
        let mut steps = shared.registry.steps(project);
        steps.retain(|active| !active.state.lock().is_off);
        for part in steps.chunk_by(|one, other| one.script().is_some() && other.script().is_some())
        {
            match part {
                [active] if active.script().is_none() => shared.run_native(active, &mut events),
                scripts => shared.run_scripts(project, partition, scripts, &mut events).await,
            }
        }
        events.into_iter().map(Passing::end).collect()
    }
}

impl Shared {
    fn run_native(self: &Arc<Self>, active: &Arc<Active>, events: &mut [Passing]) {
        let Code::Native(step) = &active.code else { return };
        let rulings = native::run(&**step, active.id(), &active.name, events);
        self.judge(active, rulings);
    }

    async fn run_scripts(
        self: &Arc<Self>,
        project: ProjectId,
        partition: u16,
        scripts: &[Arc<Active>],
        events: &mut [Passing],
    ) {
        let steps: Vec<scripts::Script<'_>> = scripts
            .iter()
            .filter_map(|active| {
                let loaded = active.script()?;
                let (id, name) = (active.id(), active.name.as_str());
                Some(scripts::Script { id, name, program: &loaded.step, script: &loaded.script })
            })
            .collect();
        let site_url = &self.site_url;
        let crossing = scripts::Crossing {
            pool: &self.steps,
            lane: usize::from(partition),
            host: &**self,
            project,
            site_url,
        };
        for chunk in scripts::chunks(events) {
            let allowances = scripts.iter().map(|active| {
                let mut state = active.state.lock();
                match state.is_off {
                    true => Duration::ZERO,
                    false => state.allowance.available(self.host.uptime()),
                }
            });
            let rulings = crossing.run(&steps, &allowances.collect::<Vec<_>>(), chunk).await;
            for (active, rulings) in scripts.iter().zip(rulings) {
                self.judge(active, rulings);
            }
        }
    }

    /// Counts what a step did, and draws conclusions.
    fn judge(self: &Arc<Self>, active: &Arc<Active>, rulings: Vec<Ruling>) {
        let (now, uptime) = (self.host.now(), self.host.uptime());
        let (project, config) = (active.project(), active.id());
        let mut tally = Tally::default();
        let mut fault = None;
        let mut state = active.state.lock();
        let (mut is_passed_over, mut disabled_by) = (false, None);
        for Ruling { verdict, took, sample } in rulings {
            state.allowance.pay(took);
            match verdict {
                Verdict::Succeeded => {
                    state.failed_in_a_row = 0;
                    tally.succeeded += 1;
                }
                Verdict::Dropped => {
                    state.failed_in_a_row = 0;
                    tally.dropped += 1;
                }
                Verdict::Failed(message) => {
                    state.failed_in_a_row = state.failed_in_a_row.saturating_add(1);
                    tally.failed += 1;
                    fault = Some((message, sample));
                    if state.failed_in_a_row >= FAILURES && !state.is_off {
                        state.is_off = true;
                        disabled_by = fault.as_ref().map(|(message, _)| message.clone());
                    }
                }
                // The event lacks the step, so it counts; but nothing is wrong with
                // the step itself.
                Verdict::PassedOver => {
                    tally.failed += 1;
                    is_passed_over = true;
                }
                Verdict::NotRun(message) => {
                    tally.failed += 1;
                    fault = Some((message, None));
                }
                Verdict::Absent => {}
            }
        }
        let tells = is_passed_over && !state.is_off && state.allowance.tells(uptime);
        drop(state);
        if let Some((message, sample)) = fault {
            self.report.fault(project, config, &message, sample.as_deref(), now);
        } else if tells {
            let message = "Events passed without this step: it takes more than 5 ms for each of \
                           them, and has used up the time that it may take beyond that.";
            self.report.fault(project, config, message, None, now);
        }
        self.metrics.count(Effect::Transformed, tally);
        self.report.count(project, config, tally, now);
        // Last: it writes what was told first.
        if let Some(message) = disabled_by {
            self.switch_off(active, &message);
        }
    }

    /// Has a config disabled that fails again and again.
    fn switch_off(self: &Arc<Self>, active: &Arc<Active>, message: &str) {
        let message = format!("Disabled after {FAILURES} failures in a row. The last: {message}");
        let (shared, active) = (Arc::clone(self), Arc::clone(active));
        tracing::warn!(config = %active.id(), project = %active.project(), "a plugin is disabled");
        // Not in the way of the events.
        drop(tokio::spawn(async move {
            // What was told of it before comes first.
            shared.report.flush(&shared.store, shared.host.now()).await;
            // Who has changed it meanwhile may have mended it.
            let is_there = || {
                let present = shared.registry.config(active.id());
                present.is_some_and(|present| Arc::ptr_eq(&present, &active))
            };
            while is_there() && !shared.is_stopped() {
                if shared.host.switch_off(&active.row, &message).await {
                    return;
                }
                tokio::time::sleep(AGAIN).await;
            }
        }));
    }
}

/// The words for a step that panicked.
pub(crate) fn panicked(panic: &(dyn std::any::Any + Send)) -> String {
    tracing::error!(panic = panics::message(panic), "a step panicked");
    "The step failed by a defect of Weir; its log says more.".to_owned()
}
