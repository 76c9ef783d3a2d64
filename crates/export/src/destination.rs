//! The trait of all destinations, as a run uses them.
//!
//! What belongs here: the trait and its types. What does not: the destinations
//! (`destinations`), attempts and waits (`engine`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;
use weir_egress::{Fault, FaultClass, Refused};
use weir_model::exports::ExportModel;
use weir_model::{BatchExportId, ProjectId, RunId, Timestamp};
use weir_store::exports::runs::RunRow;

use crate::columns::Columns;
use crate::rows::Batch;

/// What a run asks of a destination.
#[derive(Debug, Clone)]
pub struct Job {
    /// The export that the run belongs to.
    pub export: BatchExportId,
    /// The run. All of its attempts have the same id.
    pub run: RunId,
    /// The project of the events.
    pub project: ProjectId,
    /// The first instant of the interval. `None`: from the first event on.
    pub start: Option<Timestamp>,
    /// The instant after the last one of the interval.
    pub end: Timestamp,
    /// Whether the bounds apply to the event time, as in a backfill, and not to the
    /// arrival. A regular run with the same bounds has other events.
    pub by_time: bool,
    /// Events or persons.
    pub model: ExportModel,
    /// The columns of the rows.
    pub columns: Arc<Columns>,
    /// The [`Delivered::cursor`] of an earlier attempt that was interrupted.
    pub cursor: Option<String>,
}

/// Rows that are at the destination permanently, even if the run ends now. Rows of
/// persons have no arrival number, so an interrupted run of persons starts over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// Number of the run's rows, without skipped ones.
    pub rows: u64,
    /// The arrival number of the last of them. A resumed run begins after it.
    pub arrival: u64,
    /// The cursor that the destination receives when the run resumes.
    pub cursor: String,
}

/// A row that the destination could not take unchanged, or that was too large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Altered {
    /// The event, if the row has its id.
    pub uuid: Option<Uuid>,
    /// Name of the column.
    pub column: String,
    /// The change, as text for users: `a NUL character was omitted`.
    pub what: &'static str,
}

/// A destination of events or persons.
#[async_trait]
pub trait Destination: Send + Sync {
    /// The columns of the events when the export has no query.
    fn columns(&self) -> Columns;

    /// Begins an attempt of a run. It replaces the rows of an earlier attempt, or
    /// continues from the cursor of the job.
    async fn begin(&self, job: Job) -> Result<Box<dyn Writer>, Failure>;

    /// The names of the steps of a test, in order, for users.
    fn steps(&self) -> &'static [&'static str];

    /// Does one step of the test, for an export of this model. It leaves nothing at the
    /// destination.
    async fn test(&self, step: usize, model: ExportModel) -> Result<(), Failure>;
}

/// Writes the rows of a run to its destination.
///
/// If it is dropped without [`Writer::finish`], the run was interrupted. Incomplete data
/// must not look complete.
#[async_trait]
pub trait Writer: Send {
    /// Takes the next rows, and waits while too many are being sent.
    async fn write(&mut self, batch: Batch) -> Result<(), Failure>;

    /// The rows that are delivered permanently by now. `None`: only a finished run is
    /// permanent.
    fn delivered(&self) -> Option<Delivered> {
        None
    }

    /// The rows that were altered since the last call.
    fn altered(&mut self) -> Vec<Altered> {
        Vec::new()
    }

    /// Delivers the remaining rows.
    async fn finish(&mut self) -> Result<(), Failure>;

    /// Removes incomplete data, as far as possible.
    async fn abort(&mut self);
}

/// Why a destination failed. The text is for members of the project. It names a class of
/// fault and a remedy, and never contains text of the external server (SEC-29).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The class of fault, such as `ConnectionRefused`.
    pub class: &'static str,
    /// One sentence for users.
    pub message: String,
    /// Whether a retry may help.
    pub is_retryable: bool,
    /// The wait that the destination requested.
    pub wait: Option<Duration>,
}

impl Failure {
    /// A fault that a retry cannot fix.
    pub fn permanent(class: &'static str, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), is_retryable: false, wait: None }
    }

    /// A fault that may pass.
    pub fn retryable(class: &'static str, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), is_retryable: true, wait: None }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.message)
    }
}

impl std::error::Error for Failure {}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        match fault.class {
            FaultClass::Forbidden => Self::permanent(
                "ForbiddenAddress",
                "The address is not public. The operator of this instance can allow it with \
                 the setting egress_allow.",
            ),
            FaultClass::NotFound => {
                Self::retryable("NameNotFound", "The name of the host has no address.")
            }
            FaultClass::Refused => Self::retryable(
                "ConnectionRefused",
                "No connection is accepted at this host and port.",
            ),
            FaultClass::TimedOut => {
                Self::retryable("TimedOut", "The destination did not answer in time.")
            }
            FaultClass::Tls => Self::permanent(
                "Tls",
                "The certificate of the destination is not trusted, or it does not speak TLS here.",
            ),
            FaultClass::Status(status) => Self {
                class: "HttpStatus",
                message: format!("The destination answered with HTTP {status}."),
                is_retryable: status == 429 || status >= 500,
                wait: None,
            },
            FaultClass::TooLarge => Self::permanent(
                "AnswerTooLarge",
                "The answer of the destination is larger than any that is expected there.",
            ),
            FaultClass::Broken => {
                Self::retryable("ConnectionBroken", "The connection to the destination broke.")
            }
        }
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Address => Fault::from(refused).into(),
            _ => {
                Self::permanent("InvalidAddress", format!("The address cannot be used: {refused}."))
            }
        }
    }
}

impl Job {
    /// The job of a run.
    pub fn of(row: &RunRow, project: ProjectId, columns: Arc<Columns>, model: ExportModel) -> Self {
        let run = &row.run;
        Self {
            export: run.batch_export,
            run: run.id,
            project,
            start: run.data_interval_start,
            end: run.data_interval_end,
            by_time: row.by_time,
            model,
            columns,
            cursor: run.cursor.clone(),
        }
    }
}
