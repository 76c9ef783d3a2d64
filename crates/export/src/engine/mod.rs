//! The engine of batch exports: when runs begin, what they export, retries, and resuming
//! after a stop (`docs/adr/0008-exports.md`).
//!
//! ```text
//! every second: due (schedule) -> run, next of each backfill -> run
//! concurrently: the time until which acknowledged events are readable,
//!               and removing the data of deleted exports
//! a task per run: attempts -> scan, persons, rows -> destination
//! ```
//!
//! What belongs here: the loop and the state of its parts. What does not: destinations
//! (`destinations`), the rules of management ([`ExportServices`]).
//!
//! Invariant: the selection of a run is stored when the run is created, in one
//! transaction with the progress of its schedule. Invariant: a run ends in the store
//! first; all other tasks read its end from there.

mod attempt;
mod backfills;
mod due;
mod log;
mod metrics;
mod people;
mod persons;
mod run;
mod schedule;
mod services;
mod settings;
mod slots;
mod source;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinHandle};
use weir_model::{BackfillId, BatchExportId, RunId, Timestamp};
use weir_store::exports::runs::RunRow;
use weir_store::exports::{self, ExportBrief};
use weir_store::{Result, Store};

pub use metrics::{EngineCounts, Metrics};
pub use services::ExportServices;
pub use settings::Settings;

use slots::Slots;

/// Number of polls between two searches for runs that have not ended.
const POLLS_PER_RESUME: u64 = 60;
/// Seconds between two removals of old runs and lines.
const FORGETTING: i64 = 3_600;
/// How long lines are kept, in seconds: thirty days.
const LINES_KEPT: i64 = 30 * 86_400;
/// How long runs are kept, in seconds: ninety days. The newest runs stay.
const RUNS_KEPT: i64 = 90 * 86_400;

/// The running engine. Close it with [`Engine::close`].
pub struct Engine {
    shared: Arc<Shared>,
    main: Mutex<Option<JoinHandle<()>>>,
}

/// State that all tasks of the engine use.
struct Shared {
    store: Store,
    services: Arc<dyn ExportServices>,
    settings: Settings,
    metrics: Metrics,
    /// The slots of runs that read and send concurrently.
    slots: Slots,
    /// All events that were acknowledged until this time are readable.
    applied: watch::Sender<Option<Timestamp>>,
    /// Notified when a run ends, so that waiting runs need not wait for the next poll.
    ended: Notify,
    stop: watch::Sender<bool>,
}

impl Shared {
    /// Returns when the engine is closed.
    async fn stopped(&self) {
        let mut stop = self.stop.subscribe();
        // The sender is in `self`, so it is not dropped.
        let _ = stop.wait_for(|stop| *stop).await;
    }

    /// Whether all events that were acknowledged until this time are readable.
    fn is_applied(&self, time: Timestamp) -> bool {
        // A time that was noted before the clock was set back is not valid.
        self.applied
            .borrow()
            .is_some_and(|applied| time <= applied && applied <= self.services.now())
    }
}

/// A run that has not ended.
struct Active {
    export: BatchExportId,
    backfill: Option<BackfillId>,
    /// `None`: it waits until fewer runs of its export are active.
    task: Option<Task>,
}

/// The task of a run.
struct Task {
    work: AbortHandle,
    /// Ends after the work, and after the engine was notified.
    whole: JoinHandle<()>,
}

/// Waits for the work on a run, and notifies the engine if the run has ended.
async fn see_through(shared: Arc<Shared>, export: BatchExportId, run: RunId, work: JoinHandle<()>) {
    if let Err(error) = work.await
        && error.is_panic()
    {
        tracing::error!(%run, %error, "a run of an export ended early");
    }
    // The poll resumes any other run, and that may wait.
    let found = exports::runs::find(&shared.store, export, run).await;
    if found.is_ok_and(|run| run.is_none_or(|run| !run.status.is_active())) {
        shared.ended.notify_one();
    }
}

impl Engine {
    /// Starts the engine on this runtime. Runs read events and make rows there.
    pub fn start(
        store: Store,
        services: Arc<dyn ExportServices>,
        settings: Settings,
        runtime: &Handle,
    ) -> Self {
        let shared = Arc::new(Shared {
            store,
            services,
            settings,
            metrics: Metrics::default(),
            slots: Slots::new(settings.slots()),
            applied: watch::Sender::new(None),
            ended: Notify::new(),
            stop: watch::Sender::new(false),
        });
        let (own, handle) = (Arc::clone(&shared), runtime.clone());
        let main = runtime.spawn(async move {
            tokio::select! {
                () = keep_going(Arc::clone(&own), handle) => {}
                never = follow(&own) => match never {},
                never = sweep(&own) => match never {},
            }
        });
        Self { shared, main: Mutex::new(Some(main)) }
    }

    /// The counters of the engine.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// Begins no more runs and interrupts the active ones. The next start resumes them.
    /// Waits for them for at most `patience`.
    pub async fn close(&self, patience: Duration) {
        self.shared.stop.send_replace(true);
        let main = self.main.lock().take();
        let Some(main) = main else { return };
        let abort = main.abort_handle();
        if tokio::time::timeout(patience, main).await.is_err() {
            abort.abort();
            tracing::warn!("stopped while exports were running; the next start continues");
        }
    }
}

/// Updates the time until which all events are readable. A log that is far behind takes
/// long, and must not delay work that does not depend on it.
async fn follow(shared: &Shared) -> std::convert::Infallible {
    loop {
        let now = shared.services.now();
        shared.services.applied().await;
        shared.applied.send_replace(Some(now));
        tokio::time::sleep(shared.settings.tick).await;
    }
}

/// Removes the data of deleted exports. Exports that ran for long take a while, and must
/// not delay other work.
async fn sweep(shared: &Shared) -> std::convert::Infallible {
    loop {
        if let Err(error) = exports::sweep(&shared.store, shared.services.now()).await {
            tracing::warn!(%error, "data of a deleted export could not be removed");
        }
        tokio::time::sleep(shared.settings.tick).await;
    }
}

async fn keep_going(shared: Arc<Shared>, runtime: Handle) {
    let mut engine = Poller {
        shared: Arc::clone(&shared),
        runtime,
        active: HashMap::new(),
        until_resume: 0,
        forgotten: None,
    };
    loop {
        tokio::select! {
            checked = engine.check() => match checked {
                Ok(()) => {}
                Err(weir_store::Error::Stopped) => return,
                Err(error) => tracing::error!(%error, "exports could not be checked"),
            },
            () = shared.stopped() => break,
        }
        tokio::select! {
            () = tokio::time::sleep(shared.settings.tick) => {}
            () = shared.ended.notified() => {}
            () = shared.stopped() => break,
        }
    }
    for task in engine.active.into_values().filter_map(|active| active.task) {
        if let Err(error) = task.whole.await {
            tracing::error!(%error, "the end of a run of an export was not seen");
        }
    }
}

/// State of the loop.
struct Poller {
    shared: Arc<Shared>,
    runtime: Handle,
    active: HashMap<RunId, Active>,
    /// Polls until runs that have not ended are resumed.
    until_resume: u64,
    /// When old runs and lines were last removed.
    forgotten: Option<Timestamp>,
}

impl Poller {
    /// Resumes runs of an earlier start, and runs whose end could not be stored.
    async fn resume(&mut self) -> Result<()> {
        for row in exports::runs::active(&self.shared.store).await? {
            if !self.active.contains_key(&row.run.id) {
                self.add(&row);
            }
        }
        self.until_resume = POLLS_PER_RESUME;
        Ok(())
    }

    fn add(&mut self, row: &RunRow) {
        let active = Active { export: row.run.batch_export, backfill: row.backfill, task: None };
        self.active.insert(row.run.id, active);
    }

    /// Does all steps that are due.
    async fn check(&mut self) -> Result<()> {
        let is_over =
            |active: &Active| active.task.as_ref().is_some_and(|task| task.work.is_finished());
        let before = self.active.len();
        self.active.retain(|_, active| !is_over(active));
        if self.active.len() != before {
            // A run whose end could not be stored resumes before the next run of its
            // backfill.
            self.until_resume = 0;
        }
        self.until_resume = self.until_resume.saturating_sub(1);
        let taken = if self.until_resume == 0 { self.resume().await } else { Ok(()) };
        // Waiting runs begin first, however long the other steps take.
        self.begin();
        // Taken before the exports are read: an export that was paused before a boundary
        // gets no run.
        let now = self.shared.services.now();
        let store = &self.shared.store;
        let exports = exports::briefs_of_all(store, &exports::all(store).await?).await?;
        let mut schedules = exports::schedule::all(store).await?;
        let backfills = match taken {
            Ok(()) => exports::backfills::active(store).await,
            Err(error) => Err(error),
        };
        // A fault of one export must not delay the others.
        let (backfills, mut fault) = match backfills {
            Ok(backfills) => (backfills, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        for export in &exports {
            let own = self.active.values().filter(|active| active.export == export.id);
            let room = self.shared.settings.waiting.saturating_sub(own.count());
            let present = schedules.remove(&export.id);
            let mut made = Vec::new();
            let from = schedule::Check { shared: &self.shared, export, now, room };
            let checked = schedule::check(from, present, &mut made).await;
            fault = fault.or(checked.err());
            made.iter().for_each(|row| self.add(row));
        }
        let by_id: HashMap<BatchExportId, &ExportBrief> =
            exports.iter().map(|export| (export.id, export)).collect();
        for backfill in &backfills {
            let id = Some(backfill.shown.id);
            if self.active.values().any(|active| active.backfill == id) {
                continue;
            }
            let Some(export) = by_id.get(&backfill.shown.batch_export) else { continue };
            match self::backfills::check(&self.shared, export, backfill).await {
                Ok(made) => made.iter().for_each(|row| self.add(row)),
                Err(error) => fault = fault.or(Some(error)),
            }
        }
        self.begin();
        fault = fault.or(self.forget(&exports).await.err());
        self.shared.metrics.set_active(self.active.len());
        fault.map_or(Ok(()), Err)
    }

    /// Removes old runs and lines from time to time.
    async fn forget(&mut self, exports: &[ExportBrief]) -> Result<()> {
        let now = self.shared.services.now();
        if self.forgotten.is_some_and(|last| now < last.plus_seconds(FORGETTING)) {
            return Ok(());
        }
        self.forgotten = Some(now);
        let (lines, runs) = (now.plus_seconds(-LINES_KEPT), now.plus_seconds(-RUNS_KEPT));
        let mut fault = None;
        for export in exports {
            let forgotten = exports::forget(&self.shared.store, export, lines, runs).await;
            fault = fault.or(forgotten.err());
        }
        fault.map_or(Ok(()), Err)
    }

    /// Begins the waiting runs that may begin, oldest first.
    fn begin(&mut self) {
        let mut of: HashMap<BatchExportId, usize> = HashMap::new();
        for active in self.active.values().filter(|active| active.task.is_some()) {
            *of.entry(active.export).or_default() += 1;
        }
        let mut waiting: Vec<(RunId, &mut Active)> = self
            .active
            .iter_mut()
            .filter(|(_, active)| active.task.is_none())
            .map(|(run, active)| (*run, active))
            .collect();
        waiting.sort_unstable_by_key(|(run, _)| *run);
        for (run, active) in waiting {
            let going = of.entry(active.export).or_default();
            if *going < self.shared.settings.of_an_export {
                *going += 1;
                let (shared, export) = (&self.shared, active.export);
                let task = self.runtime.spawn(run::work(Arc::clone(shared), export, run));
                let work = task.abort_handle();
                let whole = see_through(Arc::clone(shared), export, run, task);
                active.task = Some(Task { work, whole: self.runtime.spawn(whole) });
            }
        }
    }
}

#[cfg(test)]
mod tests;
