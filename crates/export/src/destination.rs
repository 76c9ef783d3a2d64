//! What a destination is to a run: the one trait behind which all of them are.
//!
//! What belongs here: the trait and what is said through it. What does not: any
//! destination (`destinations`), tries and waiting (`engine`).

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

/// What a run wants of a destination.
#[derive(Debug, Clone)]
pub struct Job {
    /// The export.
    pub export: BatchExportId,
    /// The run.
    pub run: RunId,
    /// The project.
    pub project: ProjectId,
    /// The first instant of the interval; none: from the beginning.
    pub start: Option<Timestamp>,
    /// The instant after the last one of the interval.
    pub end: Timestamp,
    /// Whether the bounds are of event times, as in a backfill, and not of arrival:
    /// other events than those of a regular run with the same bounds.
    pub by_time: bool,
    /// What is exported.
    pub model: ExportModel,
    /// The columns of the rows.
    pub columns: Arc<Columns>,
    /// What a run that was cut short left in [`Delivered::cursor`].
    pub cursor: Option<String>,
}

/// What is at the destination for good, also if the run ends now. Rows of persons
/// have no arrival: a run of them that is cut begins anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// How many rows of the run, without those that were left out.
    pub rows: u64,
    /// The arrival number of the last of them: a run that goes on begins after it.
    pub arrival: u64,
    /// What the destination wants to be told when the run goes on.
    pub cursor: String,
}

/// A row that the destination could not take as it was, or that was too much to be
/// made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Altered {
    /// The event, if the row says which.
    pub uuid: Option<Uuid>,
    /// The column.
    pub column: String,
    /// What was done, for people: `a NUL character was left out`.
    pub what: &'static str,
}

/// A place that events, or persons, are exported to.
#[async_trait]
pub trait Destination: Send + Sync {
    /// The columns of the events when the export has no query.
    fn columns(&self) -> Columns;

    /// Begins a run. What an earlier try of the same run left is replaced, or gone
    /// on with from the job's cursor.
    async fn begin(&self, job: Job) -> Result<Box<dyn Writer>, Failure>;

    /// The steps of a test in the order in which they are done, for people.
    fn steps(&self) -> &'static [&'static str];

    /// Does one step of the test, for an export of this model. Nothing stays at the
    /// destination.
    async fn test(&self, step: usize, model: ExportModel) -> Result<(), Failure>;
}

/// A run's way to its destination.
///
/// Dropped without [`Writer::finish`]: the run was cut short. What is half there
/// must not pass for whole.
#[async_trait]
pub trait Writer: Send {
    /// Takes the next rows, and waits while too much is on its way.
    async fn write(&mut self, batch: Batch) -> Result<(), Failure>;

    /// What is delivered for good by now; none: only a finished run is.
    fn delivered(&self) -> Option<Delivered> {
        None
    }

    /// The rows that were altered since the last call.
    fn altered(&mut self) -> Vec<Altered> {
        Vec::new()
    }

    /// Delivers the rest.
    async fn finish(&mut self) -> Result<(), Failure>;

    /// Removes what is half there, as far as that can be done.
    async fn abort(&mut self);
}

/// Why a destination did not do what was asked. The text is for the people of the
/// project: a class of fault and what they can do, never what a foreign server
/// wrote (SEC-29).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The class of fault, such as `ConnectionRefused`.
    pub class: &'static str,
    /// A sentence.
    pub message: String,
    /// Whether trying again may help.
    pub is_retryable: bool,
    /// How long the destination asked us to wait.
    pub wait: Option<Duration>,
}

impl Failure {
    /// A fault that trying again does not mend.
    pub fn last(class: &'static str, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), is_retryable: false, wait: None }
    }

    /// A fault that may be gone later.
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
            FaultClass::Forbidden => Self::last(
                "ForbiddenAddress",
                "The address is not public. Whoever runs this instance can allow it with the \
                 setting egress_allow.",
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
            FaultClass::Tls => Self::last(
                "Tls",
                "The certificate of the destination is not trusted, or it does not speak TLS here.",
            ),
            FaultClass::Status(status) => Self {
                class: "HttpStatus",
                message: format!("The destination answered with HTTP {status}."),
                is_retryable: status == 429 || status >= 500,
                wait: None,
            },
            FaultClass::TooLarge => Self::last(
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
            _ => Self::last("InvalidAddress", format!("The address cannot be used: {refused}.")),
        }
    }
}

impl Job {
    /// The job of a run.
    #[must_use]
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
