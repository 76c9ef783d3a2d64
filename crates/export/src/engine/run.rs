//! A run from its first attempt to its end.
//!
//! What belongs here: attempts, the waits between them, the final status, the
//! consequences of a failure. What does not: a single attempt (`attempt`).

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tracing::Instrument as _;
use tracing::field::Empty;
use weir_model::exports::{ExportModel, Failing, Interval, LATEST_RUNS, LogLevel, Run, Status};
use weir_model::{BatchExportId, RunId, Timestamp, traces};
use weir_store::exports::runs::{self, Progress, RunRow, Runs};
use weir_store::exports::{self, ExportRow};

use super::Shared;
use super::attempt::{Attempt, AttemptError, Cut, is_cut};
use super::log::RunLog;
use super::settings::{ATTEMPTS, PATIENCE, is_logged, time_limit, wait};
use crate::destination::Failure;

/// An export is paused when this many of its newest runs have failed.
const FAILED: u32 = 10;
/// Number of newest runs that are checked for that.
const NEWEST: usize = 50;

/// The result of an attempt.
enum Outcome {
    Done,
    /// Retry at this uptime.
    Again(Duration),
    Ended(Status),
    /// The run was ended elsewhere.
    Gone,
    /// The service stops.
    Stopped,
}

/// Works on a run until it has ended or the service stops.
pub(super) async fn work(shared: Arc<Shared>, export: BatchExportId, run: RunId) {
    let row = match runs::row(&shared.store, export, run).await {
        Ok(Some(row)) if row.run.status.is_active() => row,
        Ok(_) => return,
        // The engine resumes it later.
        Err(error) => return tracing::error!(%run, %error, "a run of an export could not begin"),
    };
    let progress = Progress {
        status: row.run.status,
        completed: row.run.records_completed.and_then(|count| u64::try_from(count).ok()),
        total: row.run.records_total_count.and_then(|count| u64::try_from(count).ok()),
        latest_error: row.run.latest_error.clone(),
        cursor: row.run.cursor.clone(),
        delivered: row.delivered,
        attempt: row.attempt,
        bytes: row.bytes,
        target: row.target.clone(),
        failing_since: row.run.failing_since,
        next_try: row.run.next_try_at,
    };
    let log = RunLog::new(shared.store.clone(), export, run, row.attempt + 1);
    let worker = Worker { shared, row, progress, log, failing: None, seen: None };
    // A panic or the end of the process records no failed attempt: check the number here.
    if worker.progress.attempt >= ATTEMPTS {
        worker.give_up().await;
    } else {
        worker.work().await;
    }
}

struct Worker {
    shared: Arc<Shared>,
    row: RunRow,
    progress: Progress,
    log: RunLog,
    /// When the first of the present series of failed attempts failed, as uptime. An
    /// attempt that delivered something, or worked longer than the time limit for the
    /// series, ends the series.
    failing: Option<Duration>,
    /// The export as of the previous attempt.
    seen: Option<ExportRow>,
}

impl Worker {
    async fn work(mut self) {
        let (export, run) = (self.row.run.batch_export, self.row.run.id);
        let cut = watch::Sender::new(None);
        let shared = Arc::clone(&self.shared);
        let watching = watch_over(&shared, export, run, &cut);
        let working = async {
            loop {
                match self.attempt(&cut).await {
                    Outcome::Again(at) => {
                        if let Some(outcome) = self.pause(at, &cut).await {
                            return self.end(outcome).await;
                        }
                    }
                    outcome => return self.end(outcome).await,
                }
            }
        };
        tokio::select! {
            () = working => {}
            () = watching => {}
        }
    }

    /// Waits for a slot and makes one attempt.
    async fn attempt(&mut self, cut: &watch::Sender<Option<Cut>>) -> Outcome {
        let shared = Arc::clone(&self.shared);
        let mut waiting = cut.subscribe();
        let organization = match self.export().await {
            Ok(export) => export.organization,
            Err(outcome) => return outcome,
        };
        let mut slot = tokio::select! {
            slot = shared.slots.take(organization) => slot,
            cut = is_cut(&mut waiting) => return of_cut(Some(cut)),
        };
        let now = shared.services.uptime();
        // The wait for the slot may have been long.
        let export = match self.export().await {
            Ok(export) => export,
            Err(outcome) => return outcome,
        };
        self.progress.attempt += 1;
        self.progress.next_try = None;
        let target = target(&export);
        if self.progress.target.as_ref().is_some_and(|before| *before != target) {
            // The delivered rows are at another destination, and the counted rows are of
            // another selection.
            self.progress.delivered = None;
            self.progress.cursor = None;
            self.progress.completed = None;
            self.progress.total = None;
        }
        self.progress.target = Some(target);
        let limit = time_limit(length(&self.row.run, &export));
        let deadline = now.saturating_add(limit);
        let attempt = Attempt {
            shared: &self.shared,
            export: &export,
            row: &self.row,
            progress: &mut self.progress,
            log: &mut self.log,
            slot: &mut slot,
            cut: cut.subscribe(),
        };
        let before = attempt.progress.delivered;
        let span = tracing::info_span!(
            target: traces::TARGET,
            "export attempt",
            trace.id = Empty,
            otel.status_code = Empty,
            weir.export = %self.row.run.batch_export,
            weir.run = %self.row.run.id,
            weir.attempt = attempt.progress.attempt
        );
        let timing = time_out(&self.shared, deadline, cut);
        let outcome = tokio::select! {
            outcome = attempt.run().instrument(span.clone()) => outcome,
            never = timing => match never {},
        };
        if matches!(outcome, Err(AttemptError::Failed(_) | AttemptError::Cut(Cut::TimedOut))) {
            span.record("otel.status_code", "error");
        }
        drop(span);
        // The next attempt has its own time limit.
        cut.send_if_modified(|cut| cut.take_if(|cut| *cut == Cut::TimedOut).is_some());
        let is_late = matches!(outcome, Err(AttemptError::Cut(Cut::TimedOut)));
        let worked = self.shared.services.uptime().saturating_sub(now);
        if self.progress.delivered != before || (worked > PATIENCE && !is_late) {
            self.failing = None;
            self.progress.failing_since = None;
        }
        let outcome = self.judged(outcome, is_late).await;
        self.seen = Some(export);
        outcome
    }

    /// The present state of the export.
    async fn export(&self) -> Result<ExportRow, Outcome> {
        match exports::find(&self.shared.store, self.row.run.batch_export).await {
            Ok(Some(export)) => Ok(export),
            Ok(None) => Err(Outcome::Gone),
            Err(error) => {
                tracing::warn!(%error, "an export could not be read");
                Err(Outcome::Again(self.after(wait(self.progress.attempt.max(1), None))))
            }
        }
    }

    async fn judged(&mut self, outcome: Result<(), AttemptError>, is_late: bool) -> Outcome {
        let failure = match outcome {
            Ok(()) => return Outcome::Done,
            Err(AttemptError::Cut(Cut::TimedOut)) => {
                let message = "The try took longer than it may, and was given up.";
                Failure::retryable("TimedOut", message)
            }
            Err(AttemptError::Cut(cut)) => return of_cut(Some(cut)),
            Err(AttemptError::Failed(failure)) => failure,
        };
        self.shared.metrics.attempt_failed();
        let now = self.shared.services.uptime();
        let attempt = self.progress.attempt;
        let text = failure.to_string().replace('\0', "");
        let before = self.progress.latest_error.replace(text.clone());
        if self.progress.failing_since.is_none() {
            self.progress.failing_since = Some(self.failing_since().await);
        }
        if !failure.is_retryable {
            self.log(LogLevel::Error, format!("Try {attempt} failed. {text}")).await;
            return Outcome::Ended(Status::Failed);
        }
        let wait = wait(attempt, failure.wait);
        let waited = now.saturating_sub(*self.failing.get_or_insert(now));
        if attempt >= ATTEMPTS || waited.saturating_add(wait) > PATIENCE {
            self.log(LogLevel::Error, format!("Try {attempt} failed, the last one. {text}")).await;
            return Outcome::Ended(match is_late {
                true => Status::TimedOut,
                false => Status::FailedRetryable,
            });
        }
        if is_logged(attempt) || before.is_some_and(|before| before != text) {
            let seconds = wait.as_secs();
            let message = format!("Try {attempt} failed, the next is in {seconds} seconds. {text}");
            self.log(LogLevel::Warning, message).await;
        }
        let seconds = i64::try_from(wait.as_secs()).unwrap_or(i64::MAX);
        self.progress.next_try = Some(self.shared.services.now().plus_seconds(seconds));
        let at = self.after(wait);
        match self.note(Status::Running).await {
            // If the progress could not be stored, the next attempt stores it.
            Ok(true) | Err(_) => Outcome::Again(at),
            Ok(false) => Outcome::Gone,
        }
    }

    /// Since when the export fails, if it fails from this run on.
    async fn failing_since(&self) -> Timestamp {
        let now = self.shared.services.now();
        let Ok(export) = self.export().await else { return now };
        match exports::decisive_runs(&self.shared.store, &[export], LATEST_RUNS).await {
            Ok(runs) => {
                let runs: Vec<Run> = runs.into_iter().flatten().collect();
                Failing::of(&runs).map_or(now, |trouble| trouble.since.min(now))
            }
            Err(error) => {
                tracing::warn!(%error, "the runs of an export could not be read");
                now
            }
        }
    }

    /// The uptime after this wait.
    fn after(&self, wait: Duration) -> Duration {
        self.shared.services.uptime().saturating_add(wait)
    }

    /// Waits until this uptime. Returns an outcome if the run is interrupted.
    async fn pause(&self, until: Duration, cut: &watch::Sender<Option<Cut>>) -> Option<Outcome> {
        while self.shared.services.uptime() < until {
            tokio::time::sleep(self.shared.settings.tick).await;
            let cut = *cut.borrow();
            if cut.is_some() {
                return Some(of_cut(cut));
            }
        }
        None
    }

    /// Ends a run whose attempts all ended early.
    async fn give_up(mut self) {
        match exports::find(&self.shared.store, self.row.run.batch_export).await {
            Ok(export) => self.seen = export,
            Err(error) => return tracing::warn!(%error, "an export could not be read"),
        }
        let text = "EndedEarly: The run ended early too often. The log of Weir may say why.";
        self.progress.latest_error = Some(text.to_owned());
        self.log(LogLevel::Error, text.to_owned()).await;
        self.end(Outcome::Ended(Status::Failed)).await;
    }

    async fn end(&mut self, outcome: Outcome) {
        let (status, level) = match outcome {
            Outcome::Done => (Status::Completed, LogLevel::Info),
            Outcome::Ended(status) => (status, LogLevel::Error),
            Outcome::Gone => {
                self.log(LogLevel::Info, "The run was cancelled.".to_owned()).await;
                self.shared.metrics.ended(Status::Cancelled);
                return;
            }
            Outcome::Stopped | Outcome::Again(_) => {
                // If the progress cannot be stored, the next start repeats a little more.
                let _ = self.note(Status::Running).await;
                return;
            }
        };
        if status == Status::Completed {
            self.progress.latest_error = None;
            self.progress.failing_since = None;
        }
        // If the status could not be stored, the run is still active in the store, and
        // the engine resumes it.
        if !self.note(status).await.unwrap_or(false) {
            return;
        }
        self.shared.metrics.ended(status);
        let rows = self.progress.completed.unwrap_or(0);
        let message = match status {
            Status::Completed => format!("Completed: {rows} {} are delivered.", self.what()),
            other => format!("The run ended with the status {}.", other.text()),
        };
        self.log(level, message).await;
        if status != Status::Completed {
            self.after_failure(status).await;
        }
    }

    /// Stores the progress. Returns `false` if the run was ended elsewhere.
    async fn note(&mut self, status: Status) -> weir_store::Result<bool> {
        self.progress.status = status;
        let (export, run) = (self.row.run.batch_export, self.row.run.id);
        let now = self.shared.services.now();
        let written = runs::step(&self.shared.store, export, run, &self.progress, now).await;
        written.inspect_err(|error| {
            tracing::error!(%run, %error, "the outcome of a run could not be written");
        })
    }

    async fn log(&mut self, level: LogLevel, message: String) {
        self.log.add(self.shared.services.now(), level, message).await;
    }

    /// The unit of the row count.
    fn what(&self) -> &'static str {
        let model = self.seen.as_ref().and_then(|export| ExportModel::of(&export.model));
        match model.unwrap_or_default() {
            ExportModel::Events => "events",
            ExportModel::Persons => "rows of persons",
        }
    }

    /// Applies the consequences of a failed run to its export.
    async fn after_failure(&self, status: Status) {
        let Some(export) = &self.seen else { return };
        let store = &self.shared.store;
        let mut run = self.row.run.clone();
        run.status = status;
        run.latest_error.clone_from(&self.progress.latest_error);
        run.failing_since = self.progress.failing_since;
        self.shared.services.failed(export, &run).await;
        let newest = Runs { after: export.last_paused_at, limit: NEWEST, ..Runs::default() };
        match runs::page(store, export.id, newest).await {
            Ok(runs) => {
                let failed = runs.iter().filter(|run| is_failed(run.status)).count();
                let (failed, of) = (to_u32(failed), to_u32(runs.len()));
                if failed >= FAILED && !export.paused {
                    let error = self.progress.latest_error.as_deref();
                    self.shared.services.pause(export, failed, of, error).await;
                }
            }
            Err(error) => tracing::error!(%error, "the runs of an export could not be read"),
        }
    }
}

/// Seconds that a run covers: an interval, or more in a long backfill.
fn length(run: &Run, export: &ExportRow) -> i64 {
    let interval = Interval::of(&export.interval).unwrap_or(Interval::Hour).seconds();
    let covered = run.data_interval_start.map_or(0, |start| {
        run.data_interval_end.micros().saturating_sub(start.micros()) / 1_000_000
    });
    interval.max(covered)
}

fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn is_failed(status: Status) -> bool {
    matches!(status, Status::Failed | Status::FailedRetryable | Status::TimedOut)
}

/// A fingerprint of the export's selection and destination. The progress of a run is
/// valid only for the same fingerprint.
fn target(export: &ExportRow) -> String {
    let ExportRow { kind, config, secrets, query, .. } = export;
    let mut digest = Sha256::new();
    for part in [Some(kind), Some(config), secrets.as_ref(), query.as_ref()] {
        let part = part.map_or("", String::as_str);
        // The length separates the parts.
        digest.update(part.len().to_le_bytes());
        digest.update(part);
    }
    BASE64_STANDARD.encode(digest.finalize())
}

fn of_cut(cut: Option<Cut>) -> Outcome {
    match cut {
        Some(Cut::Stopped) => Outcome::Stopped,
        Some(Cut::Cancelled | Cut::TimedOut) | None => Outcome::Gone,
    }
}

/// Interrupts a run when it was cancelled or the service stops. Never returns.
async fn watch_over(
    shared: &Shared,
    export: BatchExportId,
    run: RunId,
    cut: &watch::Sender<Option<Cut>>,
) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(shared.settings.tick) => {}
            () = shared.stopped() => {
                cut.send_replace(Some(Cut::Stopped));
                return std::future::pending().await;
            }
        }
        match runs::find(&shared.store, export, run).await {
            Ok(Some(found)) if found.status.is_active() => {}
            // The run may have ended just now. The signal has no effect then.
            Ok(_) => {
                cut.send_replace(Some(Cut::Cancelled));
            }
            Err(error) => tracing::warn!(%run, %error, "a run could not be checked"),
        }
    }
}

/// Interrupts an attempt when its time limit has passed.
async fn time_out(
    shared: &Shared,
    deadline: Duration,
    cut: &watch::Sender<Option<Cut>>,
) -> std::convert::Infallible {
    loop {
        tokio::time::sleep(shared.settings.tick).await;
        if shared.services.uptime() > deadline {
            cut.send_if_modified(|cut| {
                let is_first = cut.is_none();
                cut.get_or_insert(Cut::TimedOut);
                is_first
            });
            return std::future::pending().await;
        }
    }
}
