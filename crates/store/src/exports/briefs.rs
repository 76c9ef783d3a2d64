//! The small fields of exports. Settings and queries may have a megabyte, so readers of
//! many exports do without them, or read them in pieces.
//!
//! What belongs here: reads of some fields of many exports. What does not: whole records
//! (`exports`).

use surrealdb::types::{SurrealValue, Value};
use uuid::Uuid;
use weir_model::{BatchExportId, OrganizationId, ProjectId, RunId, Timestamp};

use super::{Backfilled, ExportRow};
use crate::bind::bind;
use crate::db::{Operation, Statement};
use crate::memory_budget::{RECORDS_PER_STATEMENT, read_large};
use crate::{Result, Store, lists};

/// An export whose record names its newest runs.
pub trait NewestRuns: Sync {
    /// Id of the export.
    fn export(&self) -> BatchExportId;
    /// Its newest runs, newest first.
    fn newest_runs(&self) -> &[RunId];
}

impl NewestRuns for ExportRow {
    fn export(&self) -> BatchExportId {
        self.id
    }

    fn newest_runs(&self) -> &[RunId] {
        &self.latest
    }
}

impl NewestRuns for ExportBrief {
    fn export(&self) -> BatchExportId {
        self.id
    }

    fn newest_runs(&self) -> &[RunId] {
        &self.latest
    }
}

/// The fields of an export that its schedule and lists of names need. The fields of
/// [`ExportRow`] with the same names are the same.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct ExportBrief {
    /// Id of the export.
    #[surreal(rename = "uuid")]
    pub id: BatchExportId,
    /// The organization that owns the export.
    pub organization: OrganizationId,
    /// The project whose data is exported.
    pub project: ProjectId,
    /// Display name.
    pub name: String,
    /// The kind of destination.
    pub kind: String,
    /// The word of the interval.
    pub interval: String,
    /// The time zone in which days and weeks begin.
    pub timezone: Option<String>,
    /// The day on which weeks begin.
    pub offset_day: Option<i64>,
    /// The hour at which days and weeks begin.
    pub offset_hour: Option<i64>,
    /// Whether it is paused.
    pub paused: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last paused.
    pub last_paused_at: Option<Timestamp>,
    /// The newest pause that a backfill makes up for.
    #[surreal(flatten)]
    pub backfilled: Backfilled,
    /// No run starts before this time.
    pub start_at: Option<Timestamp>,
    /// No run starts after this time.
    pub end_at: Option<Timestamp>,
    /// The newest runs, newest first.
    pub latest: Vec<RunId>,
}

const BRIEFS: Operation = Operation::read("exports briefs");

/// The small fields of these exports of an organization, in the order of `ids`; missing
/// exports are skipped.
pub async fn briefs(
    store: &Store,
    organization: OrganizationId,
    ids: &[BatchExportId],
) -> Result<Vec<ExportBrief>> {
    let mut briefs = briefs_of_all(store, ids).await?;
    briefs.retain(|brief| brief.organization == organization);
    Ok(briefs)
}

/// The same of any organization: for background work.
pub async fn briefs_of_all(store: &Store, ids: &[BatchExportId]) -> Result<Vec<ExportBrief>> {
    let mut briefs = Vec::with_capacity(ids.len());
    // The fields are small, so that the number of exports is the only bound of this list.
    for some in ids.chunks(RECORDS_PER_STATEMENT) {
        let ids: Vec<Uuid> = some.iter().map(|id| id.0).collect();
        let found = lists::parts::<ExportBrief>(store, BRIEFS, "batch_export", ids).await?;
        briefs.extend(found.into_iter().flatten());
    }
    Ok(briefs)
}

#[derive(Debug, SurrealValue)]
struct StoredConfig {
    uuid: BatchExportId,
    organization: OrganizationId,
    config: String,
}

const OF_KIND: Statement = Statement::read(
    "exports configs of a kind",
    "SELECT uuid, organization, config
     FROM (SELECT VALUE type::record('batch_export', $this) FROM $exports)
     WHERE kind = $kind;",
);

/// The settings of those of these exports that have this kind of destination, with their
/// ids and organizations. Pass a few exports at a time: their settings may be large.
pub async fn configs_of_kind(
    store: &Store,
    ids: &[BatchExportId],
    kind: &str,
) -> Result<Vec<(BatchExportId, OrganizationId, String)>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let vars = bind! { exports: ids, kind: kind };
    let found: Vec<StoredConfig> = read_large(store, OF_KIND, vars).await?;
    Ok(found.into_iter().map(|stored| (stored.uuid, stored.organization, stored.config)).collect())
}
