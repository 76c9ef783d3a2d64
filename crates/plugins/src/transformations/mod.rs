//! Transformations: the steps that events of a project pass before they are stored.
//!
//! ```text
//! events -> steps in Rust -> scripts, one crossing for all in a row -> … -> events
//! ```
//!
//! What belongs here: the order of steps, what counts as a failure, and the consequences
//! of failures. What does not: the call of this module during ingestion (`weir-ingest`).
//!
//! Invariant: a step that fails, is skipped or returns an invalid event leaves the event
//! as it was before the step. The event records that, or is dropped if the step must run.

pub(crate) mod in_progress;
pub(crate) mod native;
pub(crate) mod scripts;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use weir_catalogue::Step;
use weir_ingest::transform::{Transform, TransformInput, Transformed};
use weir_model::{ProjectId, panics};

use crate::allowance::{Allowance, Available, Payers};
use crate::metrics::Effect;
use crate::registry::{Active, Code};
use crate::report::Tally;
use crate::{Plugins, Shared};
use in_progress::EventInProgress;

/// Consecutive failures after which a config is disabled (PLG-31).
const FAILURES: u32 = 20;
/// Time between two attempts of a step that must run.
const PAUSE: Duration = Duration::from_millis(100);
/// Time between two attempts to disable a config.
const AGAIN: Duration = Duration::from_secs(5);

/// The result of a step for an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The step succeeded.
    Succeeded,
    /// The step dropped the event.
    Dropped,
    /// The step failed, with the reason for members.
    Failed(String),
    /// The step was not called because its allowance is used up.
    PassedOver,
    /// The step could not run for another reason than its own fault, with that reason.
    NotRun(String),
    /// The event did not reach the step.
    Absent,
}

/// A verdict, its time, and the event that it is about.
#[derive(Debug, Clone)]
pub(crate) struct TimedVerdict {
    pub(crate) verdict: Verdict,
    pub(crate) took: Duration,
    /// For a failure: the text of the event before the step.
    pub(crate) sample: Option<String>,
}

impl TimedVerdict {
    /// A ruling that took no time.
    pub(crate) fn of(verdict: Verdict) -> Self {
        Self { verdict, took: Duration::ZERO, sample: None }
    }

    /// Whether the step had no effect on the event.
    fn is_omitted(&self) -> bool {
        matches!(self.verdict, Verdict::Failed(_) | Verdict::PassedOver | Verdict::NotRun(_))
    }

    /// Whether a retry of the step may succeed soon.
    fn may_pass(&self) -> bool {
        matches!(self.verdict, Verdict::PassedOver | Verdict::NotRun(_))
    }
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
        given: Vec<TransformInput>,
    ) -> Vec<Transformed> {
        let shared = &self.shared;
        shared.registry.ready(project).await;
        let mut events: Vec<EventInProgress> =
            given.into_iter().map(EventInProgress::new).collect();
        let steps = shared.registry.steps(project);
        // A step that must run crosses alone, so that no later step sees an event that
        // lacks it.
        let joins = |active: &Arc<Active>| {
            active.script().is_some() && !active.must_run() && !active.state.lock().is_off
        };
        for part in steps.chunk_by(|one, other| joins(one) && joins(other)) {
            let [active] = part else {
                shared.run_scripts(project, partition, part, &mut events).await;
                continue;
            };
            match &active.code {
                _ if active.state.lock().is_off => shared.omit(active, &mut events),
                Code::Native(step) => shared.run_native(active, &**step, &mut events),
                Code::Script(_) => shared.run_scripts(project, partition, part, &mut events).await,
                Code::Broken | Code::Unopened => shared.omit(active, &mut events),
                Code::Nothing => {}
            }
        }
        events.into_iter().map(EventInProgress::end).collect()
    }

    async fn may_be_omitted(&self, project: ProjectId) -> bool {
        // The steps of the project are not known before that.
        self.shared.registry.ready(project).await;
        !self.shared.registry.must_run(project)
    }
}

impl Shared {
    /// Continues, or drops, events without a step that cannot run at all.
    fn omit(&self, active: &Active, events: &mut [EventInProgress]) {
        let mut tally = Tally::default();
        for event in events.iter_mut().filter(|event| event.event().is_some()) {
            event.omit(active.id(), &active.name, active.must_run());
            tally.failed += 1;
        }
        self.metrics.count(Effect::Transformed, tally);
        self.report.count(active.project(), active.id(), tally, self.services.now());
    }

    fn run_native(
        self: &Arc<Self>,
        active: &Arc<Active>,
        step: &dyn Step,
        events: &mut [EventInProgress],
    ) {
        let rulings = native::run(step, active.id(), &active.name, events);
        let ruled = events.iter_mut().zip(rulings).collect();
        self.judge(active, ruled);
    }

    async fn run_scripts(
        self: &Arc<Self>,
        project: ProjectId,
        partition: u16,
        active: &[Arc<Active>],
        events: &mut [EventInProgress],
    ) {
        let scripts: Vec<scripts::Script<'_>> = active
            .iter()
            .filter_map(|active| {
                let loaded = active.script()?;
                let (id, name) = (active.id(), active.name.as_str());
                Some(scripts::Script { id, name, program: &loaded.step, script: &loaded.script })
            })
            .collect();
        let crossing = scripts::SandboxCall {
            pool: &self.steps,
            lane: usize::from(partition),
            host: &**self,
            project,
            site_url: &self.site_url,
        };
        let present = events.iter_mut().filter(|event| event.event().is_some()).collect();
        for mut chunk in scripts::chunks(present) {
            loop {
                let payers = Payers::of(chunk.iter().map(|event| event.sender()));
                let uptime = self.services.uptime();
                let allowances = active
                    .iter()
                    .map(|active| active.state.lock().allowance.available(&payers, uptime));
                let lent: Vec<Available> = allowances.collect();
                let by_payer = lent.iter().map(|lent| lent.by_payer.clone()).collect();
                let rulings = crossing.run(&scripts, &payers, by_payer, &mut chunk).await;
                for (active, lent) in active.iter().zip(&lent) {
                    active.state.lock().allowance.return_lent(&payers, lent);
                }
                let Some((last, others)) = active.split_last() else { break };
                let mut rulings = rulings.into_iter();
                for (active, rulings) in others.iter().zip(&mut rulings) {
                    let ruled = chunk.iter_mut().map(|event| &mut **event).zip(rulings);
                    self.judge(active, ruled.collect());
                }
                let ruled = chunk.into_iter().zip(rulings.next().unwrap_or_default());
                chunk = self.held(last, ruled.collect()).await;
                if chunk.is_empty() {
                    break;
                }
            }
        }
    }

    /// Judges the results of a step. Events that may succeed in a retry of a step that
    /// must run are returned after a pause.
    async fn held<'e>(
        self: &Arc<Self>,
        active: &Arc<Active>,
        ruled: Vec<(&'e mut EventInProgress, TimedVerdict)>,
    ) -> Vec<&'e mut EventInProgress> {
        let may_pass = |(_, ruling): &(&mut EventInProgress, TimedVerdict)| ruling.may_pass();
        let waits = active.must_run() && ruled.iter().any(may_pass) && {
            let uptime = self.services.uptime();
            active.state.lock().allowance.may_wait(PAUSE, uptime)
        };
        if !waits {
            self.judge(active, ruled);
            return Vec::new();
        }
        let (waiting, done): (Vec<_>, Vec<_>) = ruled.into_iter().partition(may_pass);
        self.judge(active, done);
        tokio::time::sleep(PAUSE).await;
        waiting.into_iter().map(|(event, _)| event).collect()
    }

    /// Counts the results of a step, and disables a failing config.
    fn judge(
        self: &Arc<Self>,
        active: &Arc<Active>,
        ruled: Vec<(&mut EventInProgress, TimedVerdict)>,
    ) {
        let (now, uptime) = (self.services.now(), self.services.uptime());
        let (project, config) = (active.project(), active.id());
        let mut tally = Tally::default();
        let mut fault = None;
        let mut state = active.state.lock();
        let (mut is_passed_over, mut disabled_by) = (false, None);
        let must_run = active.must_run();
        for (event, ruling) in ruled {
            if Allowance::costs(ruling.took) {
                state.allowance.pay(event.sender(), ruling.took, uptime);
            }
            if ruling.is_omitted() {
                event.omit(config, &active.name, must_run);
            }
            match ruling.verdict {
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
                    fault = Some((message, ruling.sample));
                    // A step that must run is never disabled: a sender that can make it
                    // fail could otherwise switch it off.
                    if state.failed_in_a_row >= FAILURES && !state.is_off && !must_run {
                        state.is_off = true;
                        disabled_by = fault.as_ref().map(|(message, _)| message.clone());
                    }
                }
                // The event lacks the step, so it is counted; but the step itself has no
                // fault.
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
        let reports = is_passed_over && !state.is_off && state.allowance.should_report(uptime);
        drop(state);
        if let Some((message, sample)) = fault {
            // Data that a step that must run removes is never shown, even if an earlier
            // step fails.
            let sample = sample.filter(|_| !must_run && !self.registry.must_run(project));
            self.report.fault(&active.row, &message, sample.as_deref(), now);
        } else if reports {
            let became = if must_run { "were dropped" } else { "passed" };
            let message = format!(
                "Events {became} without this step: it takes more than 5 ms for each of them, and \
                 they, or their senders, have used up the time that it may take beyond that."
            );
            self.report.fault(&active.row, &message, None, now);
        }
        self.metrics.count(Effect::Transformed, tally);
        self.report.count(project, config, tally, now);
        // Last, because it first writes pending reports.
        if let Some(message) = disabled_by {
            self.switch_off(active, &message);
        }
    }

    /// Disables a config that fails repeatedly.
    fn switch_off(self: &Arc<Self>, active: &Arc<Active>, message: &str) {
        let message = format!("Disabled after {FAILURES} failures in a row. The last: {message}");
        let (shared, active) = (Arc::clone(self), Arc::clone(active));
        tracing::warn!(config = %active.id(), project = %active.project(), "a plugin is disabled");
        // Spawned, so that events do not wait.
        drop(tokio::spawn(async move {
            // Earlier reports are written first.
            shared.report.flush(&shared.store, shared.services.now()).await;
            // A member who changed the config in the meantime may have repaired it.
            let is_there = || {
                let present = shared.registry.config(active.id());
                present.is_some_and(|present| Arc::ptr_eq(&present, &active))
            };
            while is_there() && !shared.is_stopped() {
                if shared.services.switch_off(&active.row, &message).await {
                    return;
                }
                tokio::time::sleep(AGAIN).await;
            }
        }));
    }
}

/// The message for a step that panicked.
pub(crate) fn panicked(panic: &(dyn std::any::Any + Send)) -> String {
    tracing::error!(panic = panics::message(panic), "a step panicked");
    "The step failed by a defect of Weir; its log says more.".to_owned()
}
