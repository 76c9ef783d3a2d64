//! One attempt of a run: from its events to the destination.
//!
//! What belongs here: sending the rows, what is delivered, interrupting. What does not:
//! the end of the run and retries (`run`).

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use weir_model::Timestamp;
use weir_model::exports::{ExportModel, LogLevel, Status};
use weir_store::events;
use weir_store::exports::ExportRow;
use weir_store::exports::runs::{self, Progress, RunRow};

use super::Shared;
use super::log::RunLog;
use super::settings::is_logged;
use super::slots::{Silent, Slot};
use super::source::{RowsRequest, Skipped, Source, of_store, selection};
use crate::columns::Columns;
use crate::destination::{Altered, Destination, Failure, Job, Writer};
use crate::persons;

/// The time that a destination has to remove incomplete data.
const ABORT: Duration = Duration::from_secs(5);
/// Seconds between two records of the progress.
const NOTE: i64 = 1;
/// Altered rows that get a log line each.
const LOGGED_ROWS: u64 = 20;

/// Why a run is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// A user cancelled the run, or it no longer exists.
    Cancelled,
    /// The time limit of the attempt has passed.
    TimedOut,
    /// The service stops. The run resumes at the next start.
    Stopped,
}

/// Why an attempt did not deliver everything.
#[derive(Debug)]
pub(super) enum AttemptError {
    Failed(Failure),
    Cut(Cut),
}

impl From<Failure> for AttemptError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// One attempt of a run.
pub(super) struct Attempt<'a> {
    pub(super) shared: &'a Shared,
    pub(super) export: &'a ExportRow,
    pub(super) row: &'a RunRow,
    pub(super) progress: &'a mut Progress,
    pub(super) log: &'a mut RunLog,
    /// Its slot among the running runs.
    pub(super) slot: &'a mut Slot,
    pub(super) cut: watch::Receiver<Option<Cut>>,
}

/// Rows that the destination could not take unchanged.
#[derive(Default)]
struct Changes {
    rows: u64,
}

impl Attempt<'_> {
    /// Delivers everything. The progress says how far it came, also after a failure.
    pub(super) async fn run(mut self) -> Result<(), AttemptError> {
        let services = &self.shared.services;
        let config = services.config(self.export).await?;
        let destination = services.destination(&self.export.kind, &config)?;
        let model = model(self.export)?;
        let (columns, is_counted) = columns(self.export, model, destination.as_ref())?;
        let mut cut = self.cut.clone();
        or_cut(&mut cut, services.applied()).await?;

        let whole = selection(self.row, &config);
        if self.progress.total.is_none() && is_counted {
            let store = &self.shared.store;
            let counting = events::count(store, self.export.project, whole.clone());
            self.progress.total = Some(or_cut(&mut cut, counting).await?.map_err(of_store)?);
        }
        let mut rest = whole;
        rest.after = self.progress.delivered.map_or(rest.after, |last| last.max(rest.after));
        self.note().await?;
        self.log_begin(model).await;

        let now = services.now();
        let mut source = Source::begin(RowsRequest {
            store: self.shared.store.clone(),
            project: self.export.project,
            model,
            selection: rest,
            columns: Arc::clone(&columns),
            persons: self.shared.settings.persons,
            now,
        });
        // Nothing to export: the destination is not contacted.
        let Some(first) = or_cut(&mut cut, source.next()).await?? else {
            self.log_skipped(source.skipped()).await;
            self.done(self.progress.completed.unwrap_or(0));
            return Ok(());
        };
        let mut job = Job::of(self.row, self.export.project, columns, model);
        job.cursor.clone_from(&self.progress.cursor);
        let mut writer = away(self.slot, &mut cut, destination.begin(job)).await?;
        let mut changes = Changes::default();
        let sent = self.send(writer.as_mut(), &mut source, first, &mut changes, &mut cut).await;
        let skipped = source.skipped();
        drop(source);
        // Also after a failed attempt: the next one may continue after the altered rows.
        self.log_altered(&mut changes, writer.altered()).await;
        if changes.rows > LOGGED_ROWS {
            let message = format!("{} rows were altered in all.", changes.rows);
            self.log(LogLevel::Warning, message).await;
        }
        self.log_skipped(skipped).await;
        match sent {
            Ok(sent) => {
                // The destination may have skipped some of the rows.
                self.done(writer.delivered().map_or(sent, |delivered| delivered.rows));
                Ok(())
            }
            Err(failure) => {
                self.delivered(writer.as_ref());
                if tokio::time::timeout(ABORT, writer.abort()).await.is_err() {
                    tracing::warn!(run = %self.row.run.id, "a destination did not clean up in time");
                }
                Err(failure)
            }
        }
    }

    /// Gives all rows to the writer and returns how many it took.
    async fn send(
        &mut self,
        writer: &mut dyn Writer,
        source: &mut Source,
        first: super::source::Part,
        changes: &mut Changes,
        cut: &mut watch::Receiver<Option<Cut>>,
    ) -> Result<u64, AttemptError> {
        // Rows of earlier attempts are permanent only if the destination says so.
        let mut sent = match self.progress.delivered {
            Some(_) => self.progress.completed.unwrap_or(0),
            None => 0,
        };
        let mut noted = self.shared.services.now();
        let mut next = Some(first);
        while let Some(part) = next {
            let (rows, bytes) = (part.batch.rows.len() as u64, part.bytes);
            away(self.slot, cut, writer.write(part.batch)).await?;
            sent += rows;
            self.progress.bytes = self.progress.bytes.saturating_add(bytes);
            self.shared.metrics.sent(rows, bytes);
            self.log_altered(changes, part.altered).await;
            self.log_altered(changes, writer.altered()).await;
            let now = self.shared.services.now();
            if self.delivered(writer) && (now < noted || now >= noted.plus_seconds(NOTE)) {
                noted = now;
                self.note().await?;
            }
            next = or_cut(cut, source.next()).await??;
        }
        away(self.slot, cut, writer.finish()).await?;
        Ok(sent)
    }

    fn done(&mut self, rows: u64) {
        self.progress.completed = Some(rows);
        // For persons, and for a query with a condition, the total is known only now.
        self.progress.total.get_or_insert(rows);
    }

    /// Records what the destination has permanently. Returns whether that is more than
    /// before.
    fn delivered(&mut self, writer: &dyn Writer) -> bool {
        let Some(delivered) = writer.delivered() else { return false };
        let is_more = self.progress.delivered != Some(delivered.arrival);
        self.progress.completed = Some(delivered.rows);
        self.progress.delivered = Some(delivered.arrival);
        self.progress.cursor = Some(delivered.cursor);
        is_more
    }

    /// Stores the progress of the run.
    async fn note(&mut self) -> Result<(), AttemptError> {
        let run = &self.row.run;
        self.progress.status = Status::Running;
        let now = self.shared.services.now();
        let store = &self.shared.store;
        match runs::step(store, run.batch_export, run.id, self.progress, now).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(AttemptError::Cut(Cut::Cancelled)),
            Err(error) => Err(of_store(error).into()),
        }
    }

    async fn log_begin(&mut self, model: ExportModel) {
        if !is_logged(self.progress.attempt) {
            return;
        }
        let total = match (model, self.progress.total) {
            (ExportModel::Persons, _) => "the persons that had events".to_owned(),
            (ExportModel::Events, Some(total)) => format!("{total} events"),
            (ExportModel::Events, None) => "the events that the query takes".to_owned(),
        };
        let attempt = self.progress.attempt;
        let message = match (self.progress.delivered, self.progress.completed) {
            (Some(_), Some(rows)) => {
                format!("Try {attempt}: continuing after {rows} of {total}.")
            }
            _ => format!("Try {attempt}: exporting {total} to {}.", self.export.kind),
        };
        self.log(LogLevel::Info, message).await;
    }

    async fn log_altered(&mut self, changes: &mut Changes, altered: Vec<Altered>) {
        for Altered { uuid, column, what } in altered {
            changes.rows += 1;
            if changes.rows <= LOGGED_ROWS {
                let event = uuid
                    .map(|uuid| format!("Event {uuid}, column"))
                    .unwrap_or_else(|| "Column".to_owned());
                self.log(LogLevel::Warning, format!("{event} `{column}`: {what}.")).await;
            }
        }
    }

    /// Logs the events of which it is unknown whether the export includes them.
    async fn log_skipped(&mut self, skipped: Skipped) {
        if let Skipped { count, sample: Some(sample) } = skipped {
            let message = format!(
                "{count} events were skipped, because the condition of the query takes too long \
                 to be computed for them. One of them is {sample}."
            );
            self.log(LogLevel::Warning, message).await;
        }
    }

    async fn log(&mut self, level: LogLevel, message: String) {
        let now: Timestamp = self.shared.services.now();
        self.log.add(now, level, message).await;
    }
}

/// The model of an export.
fn model(export: &ExportRow) -> Result<ExportModel, Failure> {
    ExportModel::of(&export.model).ok_or_else(|| {
        let message = format!("There is nothing like `{}` to export.", export.model);
        Failure::permanent("UnknownModel", message)
    })
}

/// The columns of an export, and whether its rows can be counted in advance. That is not
/// possible for persons, or if a condition selects the events.
fn columns(
    export: &ExportRow,
    model: ExportModel,
    destination: &dyn Destination,
) -> Result<(Arc<Columns>, bool), Failure> {
    if model == ExportModel::Persons {
        return Ok((Arc::new(persons::columns()), false));
    }
    let Some(text) = &export.query else { return Ok((Arc::new(destination.columns()), true)) };
    let query = weir_query::parse(text).map_err(|error| {
        Failure::permanent(
            "InvalidQuery",
            format!("The query of the export cannot be read: {error}"),
        )
    })?;
    let is_counted = query.filter.is_none();
    Ok((Arc::new(Columns::of_query(Arc::new(query))), is_counted))
}

/// Waits for the destination, unless the run is interrupted. A silent destination does
/// not keep the slot of the run.
async fn away<T>(
    slot: &mut Slot,
    cut: &mut watch::Receiver<Option<Cut>>,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, AttemptError> {
    match or_cut(cut, slot.during(work)).await? {
        Ok(done) => Ok(done?),
        Err(Silent) => {
            let message =
                "The destination took nothing for a long time while other exports waited.";
            Err(Failure::retryable("Silent", message).into())
        }
    }
}

/// Waits for this future, unless the run is interrupted.
async fn or_cut<T>(
    cut: &mut watch::Receiver<Option<Cut>>,
    work: impl Future<Output = T>,
) -> Result<T, AttemptError> {
    tokio::select! {
        biased;
        cut = is_cut(cut) => Err(AttemptError::Cut(cut)),
        done = work => Ok(done),
    }
}

/// Returns when the run is interrupted.
pub(super) async fn is_cut(cut: &mut watch::Receiver<Option<Cut>>) -> Cut {
    // The sender lives longer than every attempt.
    let found = cut.wait_for(Option::is_some).await.map(|cut| *cut);
    match found {
        Ok(Some(cut)) => cut,
        Ok(None) | Err(_) => std::future::pending().await,
    }
}
