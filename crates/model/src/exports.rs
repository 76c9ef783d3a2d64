//! Batch exports: the resource, its runs and backfills, and its input.
//!
//! What belongs here: types, limits and checks that forms and the API share. What does
//! not: the query language (`weir-query`), permissions (`weir-service`).

pub mod addresses;
mod backfill;
pub mod config;
pub mod destinations;
mod failing;
pub mod interval;
pub mod lists;
mod log;
pub mod prefix;
mod table;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::{BackfillId, BatchExportId, ProjectId, RunId};
use crate::patch::Patch;
use crate::time::Timestamp;
pub use backfill::{Backfill, BackfillProgress};
pub use failing::Failing;
pub use interval::Interval;
pub use log::{LOG_PAGE, LOG_PAGE_MAX, LogLevel, LogLine};
pub use table::ExportModel;

/// Longest name, in characters.
pub const NAME_MAX: usize = 200;
/// Longest query, in characters.
pub const QUERY_MAX: usize = 10_000;
/// Number of runs in the answer for an export.
pub const LATEST_RUNS: usize = 10;
/// Number of newest runs that are kept independent of their age, and that pages show as a
/// strip.
pub const RECENT_RUNS: usize = 24;
/// Last day of a week, counted from 0, Sunday.
pub const LAST_DAY: i64 = 6;
/// Last hour of a day.
pub const LAST_HOUR: i64 = 23;
/// Maximum exports of one project.
pub const EXPORTS_MAX: usize = 500;
/// Maximum bytes of `include_events` and `exclude_events` together.
pub const EVENT_NAMES_MAX: usize = 32 << 10;
/// Maximum active backfills of one project.
pub const BACKFILLS_MAX: usize = 5;

/// A batch export.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BatchExport {
    /// Unique id of the export.
    pub id: BatchExportId,
    /// The project whose events or persons are exported.
    pub team_id: ProjectId,
    /// Display name.
    pub name: String,
    /// The destination that the export writes to.
    pub destination: Destination,
    /// What is exported: `events` or `persons`. It cannot be changed.
    pub model: ExportModel,
    /// How often: `hour`, `day`, `week`, `every 5 minutes` or `every 15 minutes`.
    pub interval: Interval,
    /// The time zone for the boundaries of days and weeks, as an IANA name.
    pub timezone: String,
    /// The first day of a week: 0 (Sunday) to 6 (Saturday); null: Sunday.
    pub offset_day: Option<i64>,
    /// The hour at which days and weeks begin: 0 to 23; null: midnight.
    pub offset_hour: Option<i64>,
    /// Whether the schedule starts no runs.
    pub paused: bool,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub last_updated_at: Timestamp,
    /// Time of the last pause.
    pub last_paused_at: Option<Timestamp>,
    /// No run is started before this time.
    pub start_at: Option<Timestamp>,
    /// No run is started after this time.
    pub end_at: Option<Timestamp>,
    /// The ten newest runs, newest first.
    pub latest_runs: Vec<Run>,
    /// The last error, while runs fail; null: they do not fail.
    pub latest_error: Option<String>,
    /// Since when runs fail, including runs that are retried; null: they do not fail.
    pub failing_since: Option<Timestamp>,
    /// Time of the next retry of a failed run; null: no run waits for a retry.
    pub next_try_at: Option<Timestamp>,
    /// The query that chooses columns and events, in its normal form; null: the
    /// usual columns of the destination, all events.
    pub hogql_query: Option<String>,
    /// The columns and conditions of the query; null if there is no query.
    pub schema: Option<ExportSchema>,
    /// The backfill that this call started; missing otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backfill_id: Option<BackfillId>,
}

/// The destination of an export, without its secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Destination {
    /// The kind of destination, such as `S3`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its settings. Secrets are never shown.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub config: Map<String, Value>,
}

/// The columns and conditions of a query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExportSchema {
    /// The columns, in order.
    pub fields: Vec<SchemaField>,
    /// The texts that expressions refer to, by name.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub values: Map<String, Value>,
    /// The query in its normal form.
    pub hogql_query: String,
    /// The condition that events must meet; null: all events.
    pub filter: Option<String>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SchemaField {
    /// The expression that computes the value.
    pub expression: String,
    /// The column name at the destination.
    pub alias: String,
}

/// One run of an export over one interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Run {
    /// Unique id of the run.
    pub id: RunId,
    /// Status of the run.
    pub status: Status,
    /// Events, or rows of persons, that were delivered.
    pub records_completed: Option<i32>,
    /// The last error.
    pub latest_error: Option<String>,
    /// Start of the exported range (inclusive); null: from the beginning.
    pub data_interval_start: Option<Timestamp>,
    /// End of the exported range (exclusive).
    pub data_interval_end: Timestamp,
    /// Position from which an interrupted run continues.
    pub cursor: Option<String>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the end.
    pub finished_at: Option<Timestamp>,
    /// Time of the last change.
    pub last_updated_at: Timestamp,
    /// Events, or rows of persons, to deliver, as soon as they are counted: persons only
    /// when the run has ended.
    pub records_total_count: Option<i32>,
    /// The export of the run.
    pub batch_export: BatchExportId,
    /// When the first attempt failed after the last delivered data; null: no attempt
    /// failed.
    pub failing_since: Option<Timestamp>,
    /// Time of the next retry; null: it does not wait for one.
    pub next_try_at: Option<Timestamp>,
}

/// Status of a run or a backfill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum Status {
    /// Created; work has not begun.
    Starting,
    /// In progress.
    Running,
    /// Everything is delivered.
    Completed,
    /// It failed, and a retry would not help.
    Failed,
    /// It failed in all attempts.
    FailedRetryable,
    /// The quota was used up. Weir never sets it.
    FailedBilling,
    /// A user cancelled it, or deleted the export.
    Cancelled,
    /// It took too long.
    TimedOut,
    /// It was stopped from outside. Weir never sets it.
    Terminated,
    /// It continued as another run. Weir never sets it.
    ContinuedAsNew,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Starting,
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::FailedRetryable,
        Self::FailedBilling,
        Self::Cancelled,
        Self::TimedOut,
        Self::Terminated,
        Self::ContinuedAsNew,
    ];

    /// The word on the wire.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Starting => "Starting",
            Self::Running => "Running",
            Self::Completed => "Completed",
            Self::Failed => "Failed",
            Self::FailedRetryable => "FailedRetryable",
            Self::FailedBilling => "FailedBilling",
            Self::Cancelled => "Cancelled",
            Self::TimedOut => "TimedOut",
            Self::Terminated => "Terminated",
            Self::ContinuedAsNew => "ContinuedAsNew",
        }
    }

    /// The status of this word.
    pub fn of(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.text() == text)
    }

    /// Whether it ended before everything was delivered, without being cancelled.
    pub const fn is_failure(self) -> bool {
        matches!(
            self,
            Self::Failed
                | Self::FailedRetryable
                | Self::FailedBilling
                | Self::TimedOut
                | Self::Terminated
        )
    }

    /// Whether work is still to be done.
    pub const fn is_active(self) -> bool {
        matches!(self, Self::Starting | Self::Running)
    }
}

/// A config as it was sent. It may contain secrets, so `Debug` does not print values.
#[derive(Clone, PartialEq, Default)]
pub struct SentConfig(pub Map<String, Value>);

/// Prints only names.
impl fmt::Debug for SentConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Input for a new export, checked as far as possible without other data.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchExportInput {
    /// The project; `None`: a default is chosen.
    pub team_id: Option<ProjectId>,
    /// Display name.
    pub name: String,
    /// The kind of destination.
    pub destination: &'static destinations::DestinationType,
    /// Settings of the destination, not yet checked.
    pub config: SentConfig,
    /// What is exported.
    pub model: ExportModel,
    /// Interval of the runs.
    pub interval: Interval,
    /// The time zone for the boundaries of days and weeks, not yet checked; `None`: UTC.
    pub timezone: Option<String>,
    /// The first day of a week.
    pub offset_day: Option<i64>,
    /// The hour at which days and weeks begin.
    pub offset_hour: Option<i64>,
    /// Whether it is paused.
    pub paused: bool,
    /// Time of the last pause.
    pub last_paused_at: Option<Timestamp>,
    /// No run is started before this time.
    pub start_at: Option<Timestamp>,
    /// No run is started after this time.
    pub end_at: Option<Timestamp>,
    /// The query, not yet checked.
    pub hogql_query: Option<String>,
}

/// Changes of an export.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BatchExportPatch {
    /// New name.
    pub name: Patch<String>,
    /// New kind of destination.
    pub destination: Option<&'static destinations::DestinationType>,
    /// New settings of the destination, not yet checked.
    pub config: Option<SentConfig>,
    /// What is exported. Only the current value is valid.
    pub model: Patch<ExportModel>,
    /// New interval.
    pub interval: Patch<Interval>,
    /// New time zone, not yet checked. Cleared: UTC.
    pub timezone: Patch<String>,
    /// New first day of a week.
    pub offset_day: Patch<i64>,
    /// New hour at which days and weeks begin.
    pub offset_hour: Patch<i64>,
    /// Whether it is paused.
    pub paused: Patch<bool>,
    /// Time of the last pause.
    pub last_paused_at: Patch<Timestamp>,
    /// No run is started before this time.
    pub start_at: Patch<Timestamp>,
    /// No run is started after this time.
    pub end_at: Patch<Timestamp>,
    /// New query, not yet checked.
    pub hogql_query: Patch<String>,
}

/// Input for a backfill. A bound is an ISO 8601 time with an offset, or a date, which
/// means its start in UTC.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BackfillInput {
    /// Start of the range (inclusive); `None`: the first event.
    pub start_at: Option<String>,
    /// End of the range (exclusive); `None`: the end of the latest regular run.
    pub end_at: Option<String>,
    /// Whether the bounds were sent among the fields of an export. Then the bounds of its
    /// schedule do not limit the backfill.
    pub has_export_fields: bool,
}

#[cfg(test)]
mod corpus;
