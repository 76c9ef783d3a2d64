//! The small fields of exports. Settings and queries may have a megabyte, so readers of
//! many exports do without them, or read them in pieces.
//!
//! What belongs here: reads of some fields of many exports. What does not: whole records
//! (`exports`).

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::{BatchExportId, OrganizationId, ProjectId, RunId, Timestamp};

use super::{BackfilledPause, ExportRow};
use crate::bind::bind;
use crate::db::Statement;
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportBrief {
    /// Id of the export.
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
    pub backfilled: Option<BackfilledPause>,
    /// No run starts before this time.
    pub start_at: Option<Timestamp>,
    /// No run starts after this time.
    pub end_at: Option<Timestamp>,
    /// The newest runs, newest first.
    pub latest: Vec<RunId>,
}

#[derive(Debug, SurrealValue)]
struct StoredBrief {
    uuid: Uuid,
    organization: Uuid,
    project: i64,
    name: String,
    kind: String,
    interval: String,
    timezone: Option<String>,
    offset_day: Option<i64>,
    offset_hour: Option<i64>,
    paused: bool,
    created_at: i64,
    last_paused_at: Option<i64>,
    backfilled_by: Option<Uuid>,
    backfilled_since: Option<i64>,
    backfilled_earlier: Option<Uuid>,
    backfilled_until: Option<i64>,
    start_at: Option<i64>,
    end_at: Option<i64>,
    latest: Vec<Uuid>,
}

impl From<StoredBrief> for ExportBrief {
    fn from(stored: StoredBrief) -> Self {
        let time = |micros: Option<i64>| micros.map(Timestamp::from_micros);
        Self {
            id: BatchExportId(stored.uuid),
            organization: OrganizationId(stored.organization),
            project: ProjectId(stored.project),
            name: stored.name,
            kind: stored.kind,
            interval: stored.interval,
            timezone: stored.timezone,
            offset_day: stored.offset_day,
            offset_hour: stored.offset_hour,
            paused: stored.paused,
            created_at: Timestamp::from_micros(stored.created_at),
            last_paused_at: time(stored.last_paused_at),
            backfilled: BackfilledPause::stored(
                (stored.backfilled_since, stored.backfilled_until),
                (stored.backfilled_by, stored.backfilled_earlier),
            ),
            start_at: time(stored.start_at),
            end_at: time(stored.end_at),
            latest: stored.latest.into_iter().map(RunId).collect(),
        }
    }
}

const BRIEFS: Statement = Statement::read(
    "exports briefs",
    "SELECT id, uuid, organization, project, name, kind, interval, timezone, offset_day,
         offset_hour, paused, created_at, last_paused_at, backfilled_by, backfilled_since,
         backfilled_earlier, backfilled_until, start_at, end_at, latest
     FROM $ids;",
);

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
        let found = lists::parts::<StoredBrief>(store, BRIEFS, "batch_export", ids).await?;
        briefs.extend(found.into_iter().flatten().map(ExportBrief::from));
    }
    Ok(briefs)
}

#[derive(Debug, SurrealValue)]
struct StoredConfig {
    uuid: Uuid,
    organization: Uuid,
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
    let config = |stored: StoredConfig| {
        (BatchExportId(stored.uuid), OrganizationId(stored.organization), stored.config)
    };
    Ok(found.into_iter().map(config).collect())
}
