//! The engine of batch exports: when runs begin, what they export, trying again,
//! going on after a stop (`docs/adr/0008-exports.md`).
//!
//! ```text
//! every second: due (schedule) -> run, next of each backfill -> run
//! beside that: until when everything that was acknowledged can be read,
//!              and removing what is left of deleted exports
//! a task per run: tries -> scan, persons, rows -> destination
//! ```
//!
//! What belongs here: the loop and what its parts share. What does not:
//! destinations, the rules of management ([`Host`]).
//!
//! Invariant: what a run exports is written when it is created, together with how
//! far its schedule has come. Invariant: whoever ends a run does so in the store;
//! everybody else takes note.

mod attempt;
mod backfills;
mod due;
mod host;
mod log;
mod metrics;
mod people;
mod persons;
mod places;
mod run;
mod schedule;
mod settings;
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
use weir_store::exports::{self, ExportRow};
use weir_store::{Result, Store};

pub use host::Host;
pub use metrics::{Metrics, Taken};
pub use settings::Settings;

use places::Places;

/// Looks between two times at which runs that have not ended are taken up.
const TAKE_UP: u64 = 60;
/// Seconds between two times at which old runs and lines are forgotten.
const FORGETTING: i64 = 3_600;
/// Seconds for which lines are kept: thirty days.
const LINES_KEPT: i64 = 30 * 86_400;
/// Seconds for which runs are kept: ninety days. The newest stay.
const RUNS_KEPT: i64 = 90 * 86_400;

/// The running engine.
pub struct Engine {
    shared: Arc<Shared>,
    main: Mutex<Option<JoinHandle<()>>>,
}

/// What all of its tasks share.
struct Shared {
    store: Store,
    host: Arc<dyn Host>,
    settings: Settings,
    metrics: Metrics,
    /// Of those that read and send at the same time.
    places: Places,
    /// Everything that was acknowledged until then can be read.
    applied: watch::Sender<Option<Timestamp>>,
    /// A run has ended: what waits for it need not wait for the next look.
    ended: Notify,
    stop: watch::Sender<bool>,
}

impl Shared {
    /// Returns when the engine is closed.
    async fn stopped(&self) {
        let mut stop = self.stop.subscribe();
        // The sender is here.
        let _ = stop.wait_for(|stop| *stop).await;
    }

    /// Whether everything that was acknowledged until this time can be read.
    fn is_applied(&self, time: Timestamp) -> bool {
        // What was noted before the clock was set back says nothing.
        self.applied.borrow().is_some_and(|applied| time <= applied && applied <= self.host.now())
    }
}

/// A run that has not ended.
struct Active {
    export: BatchExportId,
    backfill: Option<BackfillId>,
    /// None: it waits for a place among those of its export.
    task: Option<Task>,
}

/// The task of a run.
struct Task {
    work: AbortHandle,
    /// Tells the engine when the work is over.
    whole: JoinHandle<()>,
}

/// Waits for the work on a run, and tells the engine if the run has ended.
async fn see_through(shared: Arc<Shared>, export: BatchExportId, run: RunId, work: JoinHandle<()>) {
    if let Err(error) = work.await
        && error.is_panic()
    {
        tracing::error!(%run, %error, "a run of an export ended early");
    }
    // Any other is taken up again, which may wait.
    let found = exports::runs::find(&shared.store, export, run).await;
    if found.is_ok_and(|run| run.is_none_or(|run| !run.status.is_active())) {
        shared.ended.notify_one();
    }
}

impl Engine {
    /// Starts on this runtime: what a run reads and makes is worked out there.
    #[must_use]
    pub fn start(store: Store, host: Arc<dyn Host>, settings: Settings, runtime: &Handle) -> Self {
        let shared = Arc::new(Shared {
            store,
            host,
            settings,
            metrics: Metrics::default(),
            places: Places::new(settings.places()),
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

    /// What it has done, and does.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// Begins nothing more and cuts short what goes on: the next start goes on with
    /// it. Waits so long for it at most.
    pub async fn close(&self, patience: Duration) {
        self.shared.stop.send_replace(true);
        let main = self.main.lock().take();
        let Some(main) = main else { return };
        let abort = main.abort_handle();
        if tokio::time::timeout(patience, main).await.is_err() {
            abort.abort();
            tracing::warn!("stopped while exports were running; the next start goes on");
        }
    }
}

/// Notes until when everything can be read. A log that is far behind takes long, and
/// must not hold up what does not wait for it.
async fn follow(shared: &Shared) -> std::convert::Infallible {
    loop {
        let now = shared.host.now();
        shared.host.applied().await;
        shared.applied.send_replace(Some(now));
        tokio::time::sleep(shared.settings.tick).await;
    }
}

/// Removes what is left of exports that were deleted. Those that ran for long take a
/// while, and must not hold up the others.
async fn sweep(shared: &Shared) -> std::convert::Infallible {
    loop {
        if let Err(error) = exports::sweep(&shared.store, shared.host.now()).await {
            tracing::warn!(%error, "what is left of a deleted export could not be removed");
        }
        tokio::time::sleep(shared.settings.tick).await;
    }
}

async fn keep_going(shared: Arc<Shared>, runtime: Handle) {
    let mut engine = Looking {
        shared: Arc::clone(&shared),
        runtime,
        active: HashMap::new(),
        until_taken_up: 0,
        forgotten: None,
    };
    loop {
        tokio::select! {
            looked = engine.look() => match looked {
                Ok(()) => {}
                Err(weir_store::Error::Stopped) => return,
                Err(error) => tracing::error!(%error, "exports could not be looked at"),
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

/// The loop's own state.
struct Looking {
    shared: Arc<Shared>,
    runtime: Handle,
    active: HashMap<RunId, Active>,
    /// Looks before runs that have not ended are taken up.
    until_taken_up: u64,
    /// When old runs and lines were last forgotten.
    forgotten: Option<Timestamp>,
}

impl Looking {
    /// Takes up what an earlier start left, and runs whose end could not be
    /// written.
    async fn take_up(&mut self) -> Result<()> {
        for row in exports::runs::active(&self.shared.store).await? {
            if !self.active.contains_key(&row.run.id) {
                self.add(&row);
            }
        }
        self.until_taken_up = TAKE_UP;
        Ok(())
    }

    fn add(&mut self, row: &RunRow) {
        let active = Active { export: row.run.batch_export, backfill: row.backfill, task: None };
        self.active.insert(row.run.id, active);
    }

    /// Does what is due.
    async fn look(&mut self) -> Result<()> {
        let is_over =
            |active: &Active| active.task.as_ref().is_some_and(|task| task.work.is_finished());
        let before = self.active.len();
        self.active.retain(|_, active| !is_over(active));
        if self.active.len() != before {
            // One whose end could not be written goes on, before its backfill does.
            self.until_taken_up = 0;
        }
        self.until_taken_up = self.until_taken_up.saturating_sub(1);
        let taken = if self.until_taken_up == 0 { self.take_up().await } else { Ok(()) };
        // What waits begins, however long the rest takes.
        self.begin();
        // Before the exports are read: what was paused before a boundary has no run.
        let now = self.shared.host.now();
        let store = &self.shared.store;
        let exports = exports::all(store).await?;
        let mut schedules = exports::schedule::all(store).await?;
        let backfills = match taken {
            Ok(()) => exports::backfills::active(store).await,
            Err(error) => Err(error),
        };
        // One fault must not hold up the others.
        let (backfills, mut fault) = match backfills {
            Ok(backfills) => (backfills, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        for export in &exports {
            let own = self.active.values().filter(|active| active.export == export.id);
            let room = self.shared.settings.waiting.saturating_sub(own.count());
            let present = schedules.remove(&export.id);
            let mut made = Vec::new();
            let from = schedule::Look { shared: &self.shared, export, now, room };
            let looked = schedule::look(from, present, &mut made).await;
            fault = fault.or(looked.err());
            made.iter().for_each(|row| self.add(row));
        }
        let by_id: HashMap<BatchExportId, &ExportRow> =
            exports.iter().map(|export| (export.id, export)).collect();
        for backfill in &backfills {
            let id = Some(backfill.shown.id);
            if self.active.values().any(|active| active.backfill == id) {
                continue;
            }
            let Some(export) = by_id.get(&backfill.shown.batch_export) else { continue };
            match self::backfills::look(&self.shared, export, backfill).await {
                Ok(made) => made.iter().for_each(|row| self.add(row)),
                Err(error) => fault = fault.or(Some(error)),
            }
        }
        self.begin();
        fault = fault.or(self.forget(&exports).await.err());
        self.shared.metrics.set_active(self.active.len());
        fault.map_or(Ok(()), Err)
    }

    /// Removes old runs and lines, now and then.
    async fn forget(&mut self, exports: &[ExportRow]) -> Result<()> {
        let now = self.shared.host.now();
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

    /// Begins what may, the oldest first.
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
