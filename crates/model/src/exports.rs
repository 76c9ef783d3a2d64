//! Batch exports: the resource, its runs and backfills, and what may be entered.
//!
//! What belongs here: types, limits and checks that forms and the API share.
//! What does not: the query language (`weir-query`), who may do what
//! (`weir-service`).

pub mod addresses;
mod backfill;
pub mod config;
pub mod destinations;
pub mod interval;
pub mod lists;
mod log;
pub mod prefix;
mod table;
mod trouble;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::{BackfillId, BatchExportId, ProjectId, RunId};
use crate::patch::Patch;
use crate::time::Timestamp;
pub use backfill::{Backfill, BackfillProgress};
pub use interval::Interval;
pub use log::{LOG_PAGE, LOG_PAGE_MAX, LogLevel, LogLine};
pub use table::ExportModel;
pub use trouble::Trouble;

/// Longest name, in characters.
pub const NAME_MAX: usize = 200;
/// Longest query, in characters.
pub const QUERY_MAX: usize = 10_000;
/// Runs that an export shows.
pub const LATEST_RUNS: usize = 10;
/// Runs that are kept whatever their age, and that pages show as a strip.
pub const RECENT_RUNS: usize = 24;
/// Last day of a week, counted from 0, Sunday.
pub const LAST_DAY: i64 = 6;
/// Last hour of a day.
pub const LAST_HOUR: i64 = 23;
/// Backfills of one project that may go on at a time.
pub const BACKFILLS_MAX: usize = 5;

/// A batch export as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BatchExport {
    /// Id.
    pub id: BatchExportId,
    /// The project whose events or persons are exported.
    pub team_id: ProjectId,
    /// Name, for people.
    pub name: String,
    /// Where to.
    pub destination: Destination,
    /// What is exported: `events` or `persons`. Never changes.
    pub model: ExportModel,
    /// How often: `hour`, `day`, `week`, `every 5 minutes` or `every 15 minutes`.
    pub interval: Interval,
    /// The time zone in which days and weeks begin, by its IANA name.
    pub timezone: String,
    /// The day on which weeks begin: 0 Sunday to 6 Saturday; null: Sunday.
    pub offset_day: Option<i64>,
    /// The hour at which days and weeks begin: 0 to 23; null: midnight.
    pub offset_hour: Option<i64>,
    /// Whether no runs are started by the schedule.
    pub paused: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub last_updated_at: Timestamp,
    /// When it was last paused.
    pub last_paused_at: Option<Timestamp>,
    /// No run is started before this time.
    pub start_at: Option<Timestamp>,
    /// No run is started after this time.
    pub end_at: Option<Timestamp>,
    /// The ten newest runs, newest first.
    pub latest_runs: Vec<Run>,
    /// What went wrong last, while runs fail; null: they do not.
    pub latest_error: Option<String>,
    /// Since when runs fail, those that are tried again included; null: they do not.
    pub failing_since: Option<Timestamp>,
    /// When a run that failed is tried again; null: none waits for that.
    pub next_try_at: Option<Timestamp>,
    /// The query that chooses columns and events, in its normal form; null: the
    /// usual columns of the destination, all events.
    pub hogql_query: Option<String>,
    /// What the query means; null when there is none.
    pub schema: Option<ExportSchema>,
    /// The backfill that this call started; not there otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backfill_id: Option<BackfillId>,
}

/// Where an export goes, without its secrets.
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

/// What a query means.
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
    /// How its value is worked out.
    pub expression: String,
    /// Its name at the destination.
    pub alias: String,
}

/// One run of an export over one interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Run {
    /// Id.
    pub id: RunId,
    /// How far it is.
    pub status: Status,
    /// Events, or rows of persons, that were delivered.
    pub records_completed: Option<i32>,
    /// What went wrong last.
    pub latest_error: Option<String>,
    /// The first instant of what it exports; null: from the beginning.
    pub data_interval_start: Option<Timestamp>,
    /// The instant after the last one of what it exports.
    pub data_interval_end: Timestamp,
    /// Where a run that was cut short goes on.
    pub cursor: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// When it last changed.
    pub last_updated_at: Timestamp,
    /// Events, or rows of persons, that are to be delivered, once they are counted:
    /// persons only when the run has ended.
    pub records_total_count: Option<i32>,
    /// The export.
    pub batch_export: BatchExportId,
    /// When the first of its tries failed since which it delivered nothing; null: none
    /// did.
    pub failing_since: Option<Timestamp>,
    /// When it is tried again; null: it does not wait for that.
    pub next_try_at: Option<Timestamp>,
}

/// How far a run or a backfill is (EXP-25).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum Status {
    /// It is there, and work has not begun.
    Starting,
    /// It is being worked on.
    Running,
    /// Everything is delivered.
    Completed,
    /// It failed, and trying again would not help.
    Failed,
    /// It failed, and was tried often enough.
    FailedRetryable,
    /// The quota was used up; never here.
    FailedBilling,
    /// Somebody stopped it, or deleted the export.
    Cancelled,
    /// It took too long.
    TimedOut,
    /// It was stopped from outside; never here.
    Terminated,
    /// It went on as another; never here.
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
    #[must_use]
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
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.text() == text)
    }

    /// Whether it ended without everything being delivered, and nobody wanted that.
    #[must_use]
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
    #[must_use]
    pub const fn is_active(self) -> bool {
        matches!(self, Self::Starting | Self::Running)
    }
}

/// A config as it was sent: it may hold secrets, so it cannot be printed.
#[derive(Clone, PartialEq, Default)]
pub struct SentConfig(pub Map<String, Value>);

/// Names only.
impl fmt::Debug for SentConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A new export, checked as far as it can be by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchExportInput {
    /// The project; none: one is chosen.
    pub team_id: Option<ProjectId>,
    /// Name.
    pub name: String,
    /// The kind of destination.
    pub destination: &'static destinations::DestinationType,
    /// Its settings, not yet checked.
    pub config: SentConfig,
    /// What is exported.
    pub model: ExportModel,
    /// How often.
    pub interval: Interval,
    /// The time zone in which days and weeks begin, not yet checked; none: UTC.
    pub timezone: Option<String>,
    /// The day on which weeks begin.
    pub offset_day: Option<i64>,
    /// The hour at which days and weeks begin.
    pub offset_hour: Option<i64>,
    /// Whether it is paused.
    pub paused: bool,
    /// When it was last paused.
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
    /// What is exported: only what it is already.
    pub model: Patch<ExportModel>,
    /// New interval.
    pub interval: Patch<Interval>,
    /// New time zone, not yet checked; cleared: UTC.
    pub timezone: Patch<String>,
    /// New day on which weeks begin.
    pub offset_day: Patch<i64>,
    /// New hour at which days and weeks begin.
    pub offset_hour: Patch<i64>,
    /// Whether it is paused.
    pub paused: Patch<bool>,
    /// When it was last paused.
    pub last_paused_at: Patch<Timestamp>,
    /// No run is started before this time.
    pub start_at: Patch<Timestamp>,
    /// No run is started after this time.
    pub end_at: Patch<Timestamp>,
    /// New query, not yet checked.
    pub hogql_query: Patch<String>,
}

/// What is to be exported anew. A bound is an ISO 8601 time with an offset, or a
/// date, which means its first instant in UTC.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BackfillInput {
    /// The first instant; none: from the first event.
    pub start_at: Option<String>,
    /// The instant after the last one; none: as far as regular runs have come.
    pub end_at: Option<String>,
    /// Whether they came within the fields of an export: then those of its schedule are no
    /// bounds.
    pub of_export: bool,
}

#[cfg(test)]
mod corpus;
