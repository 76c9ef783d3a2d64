//! Batch exports, their runs and backfills.
//!
//! What belongs here: statements about the tables below. What does not: which configs are
//! valid, sealing, schedules (`weir-service`, `weir-export`).
//!
//! | table | id | holds |
//! |---|---|---|
//! | `batch_export` | export | the record; `secrets` is sealed |
//! | `org_batch_export` | `[organization, export]` | nothing: the list, oldest first |
//! | `project_batch_export` | `[project, export]` | the same for a project |
//!
//! Runs (`runs`), backfills (`backfills`), log lines (`logs`), the state of schedules
//! (`schedule`), and the removal of deleted exports (`removed`) have their own modules.
//! The export's record holds the ids of its newest runs, because the engine cannot read
//! the end of a range without its beginning.

pub mod backfills;
mod briefs;
mod forget;
pub mod logs;
mod newest_first;
mod pause;
mod removed;
pub mod runs;
pub mod schedule;

use surrealdb::types::{SurrealValue, Variables};
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::exports::Run;
use weir_model::{BackfillId, BatchExportId, OrganizationId, ProjectId, RunId, Timestamp};

pub use self::backfills::BackfillRow;
use self::backfills::StoredBackfill;
pub use self::briefs::{ExportBrief, NewestRuns, briefs, briefs_of_all, configs_of_kind};
pub use self::forget::forget;
pub use self::pause::pause;
pub(crate) use self::removed::remove_export;
pub use self::removed::{delete, sweep};
use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::{Answer, Statement};
use crate::events::{Except, TimeRange};
use crate::organizations::touch_organization;
use crate::{Error, Result, Store, lists};

/// A pause that a backfill makes up for: the intervals that ended in it have no runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackfilledPause {
    /// The backfill; `None`: it was stored by a version that did not record it.
    pub backfill: Option<BackfillId>,
    /// The backfill of the pause before, if that pause had one.
    pub earlier: Option<BackfillId>,
    /// When the pause began. Intervals that ended until then have their runs.
    pub since: Timestamp,
    /// When the pause ended. The backfill ends there too.
    pub until: Timestamp,
}

impl BackfilledPause {
    /// The pause of a record, with its bounds, its backfill and the backfill before.
    fn stored(
        bounds: (Option<i64>, Option<i64>),
        (by, earlier): (Option<Uuid>, Option<Uuid>),
    ) -> Option<Self> {
        let (Some(since), Some(until)) = bounds else { return None };
        Some(Self {
            backfill: by.map(BackfillId),
            earlier: earlier.map(BackfillId),
            since: Timestamp::from_micros(since),
            until: Timestamp::from_micros(until),
        })
    }

    /// Whether this backfill makes up for this pause or for the pause before it.
    pub fn is_made_up_by(&self, backfill: Option<BackfillId>) -> bool {
        backfill.is_some() && (self.backfill == backfill || self.earlier == backfill)
    }
}

/// An export as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportRow {
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
    /// The settings of the destination without secrets, as JSON.
    pub config: String,
    /// The secrets of the destination, sealed; `None`: it has none.
    pub secrets: Option<String>,
    /// The word of the model that is exported. Set when the export is created, never
    /// changed.
    pub model: String,
    /// The word of the interval.
    pub interval: String,
    /// The time zone in which days and weeks begin, as IANA name; `None`: UTC.
    pub timezone: Option<String>,
    /// The day on which weeks begin, 0 is Sunday; `None`: Sunday.
    pub offset_day: Option<i64>,
    /// The hour at which days and weeks begin; `None`: midnight.
    pub offset_hour: Option<i64>,
    /// Whether it is paused.
    pub paused: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When it was last paused.
    pub last_paused_at: Option<Timestamp>,
    /// The newest pause that a backfill makes up for.
    pub backfilled: Option<BackfilledPause>,
    /// No run starts before this time.
    pub start_at: Option<Timestamp>,
    /// No run starts after this time.
    pub end_at: Option<Timestamp>,
    /// The query in normalised form.
    pub query: Option<String>,
    /// The meaning of the query, as JSON.
    pub schema: Option<String>,
    /// A new value after every change. A caller that changes the export names the
    /// revision that it read.
    pub revision: Uuid,
    /// The newest runs, newest first. Only written when runs are added.
    pub latest: Vec<RunId>,
}

#[derive(Debug, Clone, SurrealValue)]
struct Stored {
    uuid: Uuid,
    organization: Uuid,
    project: i64,
    name: String,
    kind: String,
    config: String,
    secrets: Option<String>,
    model: String,
    interval: String,
    timezone: Option<String>,
    offset_day: Option<i64>,
    offset_hour: Option<i64>,
    paused: bool,
    created_at: i64,
    updated_at: i64,
    last_paused_at: Option<i64>,
    backfilled_by: Option<Uuid>,
    backfilled_since: Option<i64>,
    backfilled_earlier: Option<Uuid>,
    backfilled_until: Option<i64>,
    start_at: Option<i64>,
    end_at: Option<i64>,
    query: Option<String>,
    schema: Option<String>,
    revision: Uuid,
    latest: Vec<Uuid>,
}

impl From<&ExportRow> for Stored {
    fn from(row: &ExportRow) -> Self {
        Self {
            uuid: row.id.0,
            organization: row.organization.0,
            project: row.project.0,
            name: row.name.clone(),
            kind: row.kind.clone(),
            config: row.config.clone(),
            secrets: row.secrets.clone(),
            model: row.model.clone(),
            interval: row.interval.clone(),
            timezone: row.timezone.clone(),
            offset_day: row.offset_day,
            offset_hour: row.offset_hour,
            paused: row.paused,
            created_at: row.created_at.micros(),
            updated_at: row.updated_at.micros(),
            last_paused_at: row.last_paused_at.map(Timestamp::micros),
            backfilled_by: row.backfilled.and_then(|pause| pause.backfill).map(|id| id.0),
            backfilled_since: row.backfilled.map(|pause| pause.since.micros()),
            backfilled_earlier: row.backfilled.and_then(|pause| pause.earlier).map(|id| id.0),
            backfilled_until: row.backfilled.map(|pause| pause.until.micros()),
            start_at: row.start_at.map(Timestamp::micros),
            end_at: row.end_at.map(Timestamp::micros),
            query: row.query.clone(),
            schema: row.schema.clone(),
            revision: row.revision,
            latest: row.latest.iter().map(|run| run.0).collect(),
        }
    }
}

impl From<Stored> for ExportRow {
    fn from(stored: Stored) -> Self {
        Self {
            id: BatchExportId(stored.uuid),
            organization: OrganizationId(stored.organization),
            project: ProjectId(stored.project),
            name: stored.name,
            kind: stored.kind,
            config: stored.config,
            secrets: stored.secrets,
            model: stored.model,
            interval: stored.interval,
            timezone: stored.timezone,
            offset_day: stored.offset_day,
            offset_hour: stored.offset_hour,
            paused: stored.paused,
            created_at: Timestamp::from_micros(stored.created_at),
            updated_at: Timestamp::from_micros(stored.updated_at),
            last_paused_at: stored.last_paused_at.map(Timestamp::from_micros),
            backfilled: BackfilledPause::stored(
                (stored.backfilled_since, stored.backfilled_until),
                (stored.backfilled_by, stored.backfilled_earlier),
            ),
            start_at: stored.start_at.map(Timestamp::from_micros),
            end_at: stored.end_at.map(Timestamp::from_micros),
            query: stored.query,
            schema: stored.schema,
            revision: stored.revision,
            latest: stored.latest.into_iter().map(RunId).collect(),
        }
    }
}

/// Events that a run leaves to a backfill, as stored.
#[derive(Debug, Clone, SurrealValue)]
struct StoredExcept {
    up_to: i64,
    start: i64,
    end: i64,
}

impl From<&Except> for StoredExcept {
    fn from(except: &Except) -> Self {
        let TimeRange { start, end } = except.time;
        Self { up_to: int(except.up_to), start, end }
    }
}

impl From<StoredExcept> for Except {
    fn from(stored: StoredExcept) -> Self {
        let StoredExcept { up_to, start, end } = stored;
        Self { up_to: number(up_to), time: TimeRange { start, end } }
    }
}

fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn number(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// The scope of a list of exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// All exports of an organization.
    Organization(OrganizationId),
    /// The exports of one project.
    Project(ProjectId),
}

const OF_ORGANIZATION: Statement = Statement::read(
    "exports of an organization",
    "SELECT VALUE record::id(id)[1] FROM org_batch_export:[$organization]..=[$organization, ..];",
);

const OF_PROJECT: Statement = Statement::read(
    "exports of a project",
    "SELECT VALUE record::id(id)[1] FROM project_batch_export:[$project]..=[$project, ..];",
);

/// Exports: ids only, oldest first.
pub async fn ordered(store: &Store, of: Of) -> Result<Vec<BatchExportId>> {
    let (statement, vars) = match of {
        Of::Organization(organization) => (OF_ORGANIZATION, bind! { organization: organization.0 }),
        Of::Project(project) => (OF_PROJECT, bind! { project: project.0 }),
    };
    lists::ids(store, statement, vars, BatchExportId).await
}

/// Exports of an organization, in the order of `ids`; missing ones are skipped.
pub async fn rows(
    store: &Store,
    organization: OrganizationId,
    ids: &[BatchExportId],
) -> Result<Vec<ExportRow>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let found = lists::records::<Stored>(store, "batch_export", ids).await?.into_iter().flatten();
    let own = found.filter(|row| row.organization == organization.0);
    Ok(own.map(ExportRow::from).collect())
}

/// An export of any organization.
pub async fn find(store: &Store, export: BatchExportId) -> Result<Option<ExportRow>> {
    let found = lists::records::<Stored>(store, "batch_export", vec![export.0]).await?;
    Ok(found.into_iter().flatten().next().map(ExportRow::from))
}

// The pointers are small. The records of exports are not: callers read them in pieces.
const ALL: Statement =
    Statement::read("all exports", "SELECT VALUE record::id(id)[1] FROM org_batch_export;");

/// The exports of all organizations: ids only, in no particular order.
pub async fn all(store: &Store) -> Result<Vec<BatchExportId>> {
    lists::ids(store, ALL, bind! {}, BatchExportId).await
}

/// The newest runs of each of these exports, at most `most` each, newest first, in the
/// order of `rows`.
pub async fn latest_runs(
    store: &Store,
    rows: &[impl NewestRuns],
    most: usize,
) -> Result<Vec<Vec<Run>>> {
    runs::latest(store, rows, most).await
}

/// The runs of each of these exports from which its condition is derived: its newest
/// runs, at most `most`, and older ones that have not ended. Newest first, in the order
/// of `rows`.
pub async fn decisive_runs(
    store: &Store,
    rows: &[impl NewestRuns],
    most: usize,
) -> Result<Vec<Vec<Run>>> {
    runs::decisive(store, rows, most).await
}

// It writes the organization's record for the reason given at `projects::CREATE`, and so
// that of two concurrent ones both are counted. The deletion of a project deletes its
// exports, so the project must still exist. A retry after a lost answer finds its export
// and does not count it.
const CREATE: Statement = Statement::write(
    "exports create",
    concat!(
        "BEGIN;",
        touch_organization!("$export.organization", "gone"),
        "LET $of = (SELECT VALUE organization
                    FROM ONLY type::record('project', $export.project));
         IF $of != $export.organization { THROW 'gone' };
         LET $home = $export.project;
         LET $own = (SELECT VALUE record::id(id)[1]
                     FROM project_batch_export:[$home]..=[$home, ..]);
         IF array::len($own) >= $most AND $own CONTAINSNOT $export.uuid { THROW 'full' };
         UPSERT type::record('batch_export', $export.uuid) CONTENT $export RETURN NONE;
         UPSERT type::record('org_batch_export', [$export.organization, $export.uuid])
             CONTENT {} RETURN NONE;
         UPSERT type::record('project_batch_export', [$export.project, $export.uuid])
             CONTENT {} RETURN NONE;",
        write_activities!(),
        "COMMIT;"
    ),
);

/// The result of creating an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// The export is stored.
    Yes,
    /// The project has as many exports as allowed. Nothing was written.
    TooMany,
    /// The organization or the project is deleted. Nothing was written.
    Gone,
}

/// Adds an export. A project may have `most`.
pub async fn create(
    store: &Store,
    row: &ExportRow,
    most: usize,
    activities: &[Entry],
) -> Result<Created> {
    let vars = bind! { export: Stored::from(row), most: int(most as u64) };
    match activity::change(store, CREATE, vars, activities).await {
        Ok(_) => Ok(Created::Yes),
        Err(Error::Refused { reason, .. }) if reason == "full" => Ok(Created::TooMany),
        Err(Error::Refused { .. }) => Ok(Created::Gone),
        Err(error) => Err(error),
    }
}

/// The result of changing an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// The change is stored.
    Yes,
    /// Another caller has changed or deleted the export since it was read. Nothing was
    /// written.
    Stale,
    /// The project has as many active backfills as allowed. Nothing was written.
    TooManyBackfills,
}

// A retry after a lost answer finds its own revision. The newest runs and the model are
// not part of the change and stay. Writing the project's record makes two backfills of
// one project conflict, so that both are counted. Writing the export's record makes a
// backfill conflict with the deletion of the export, so that no backfill is left behind.
const UPDATE: Statement = Statement::write(
    "exports update",
    concat!(
        "BEGIN;
         LET $present = (SELECT VALUE revision
                         FROM ONLY type::record('batch_export', $export.uuid));
         IF $present = NONE OR ($present != $before AND $present != $export.revision) {
             THROW 'stale'
         };
         UPDATE type::record('batch_export', $export.uuid) SET
             name = $export.name, kind = $export.kind, config = $export.config,
             secrets = $export.secrets, interval = $export.interval,
             timezone = $export.timezone, offset_day = $export.offset_day,
             offset_hour = $export.offset_hour,
             paused = $export.paused, last_paused_at = $export.last_paused_at,
             backfilled_by = $export.backfilled_by,
             backfilled_since = $export.backfilled_since,
             backfilled_earlier = $export.backfilled_earlier,
             backfilled_until = $export.backfilled_until,
             start_at = $export.start_at, end_at = $export.end_at,
             query = $export.query, schema = $export.schema,
             updated_at = $export.updated_at, revision = $export.revision
             RETURN NONE;
         IF $backfill != NONE {
             UPDATE type::record('batch_export', $export.uuid)
                 SET backfills = (backfills ?? 0) + 1 RETURN NONE;
             UPDATE type::record('project', $export.project)
                 SET backfills = (backfills ?? 0) + 1 RETURN NONE;
             LET $active = (SELECT VALUE record::id(id)[1] FROM
                 active_backfill:[$export.project]..=[$export.project, ..]);
             IF count($active) >= $most AND $active CONTAINSNOT $backfill.uuid {
                 THROW 'backfills'
             };
             UPSERT type::record('batch_export_backfill', [$export.uuid, $backfill.uuid])
                 CONTENT $backfill RETURN NONE;
             UPSERT type::record('active_backfill', [$export.project, $backfill.uuid])
                 CONTENT { export: $export.uuid } RETURN NONE;
         };",
        write_activities!(),
        "COMMIT;"
    ),
);

/// Stores a change of an export whose revision was `before` when it was read, and an
/// optional backfill. At most `most` backfills of a project may be active.
pub async fn update(
    store: &Store,
    row: &ExportRow,
    before: Uuid,
    backfill: Option<&BackfillRow>,
    most: usize,
    activities: &[Entry],
) -> Result<Changed> {
    let vars = bind! {
        export: Stored::from(row),
        before: before,
        backfill: backfill.map(StoredBackfill::from),
        most: int(most as u64),
    };
    match activity::change_exports(store, UPDATE, vars, activities, [row.id], ()).await {
        Ok(_) => Ok(Changed::Yes),
        Err(Error::Refused { reason, .. }) if reason == "backfills" => {
            Ok(Changed::TooManyBackfills)
        }
        Err(Error::Refused { .. }) => Ok(Changed::Stale),
        Err(error) => Err(error),
    }
}

/// Runs a write about an export while holding the keyed lock of the export. Runs, their
/// log lines and changes by users write the same records. Without the lock they would
/// conflict repeatedly, and a cancellation could use up its attempts.
async fn locked(
    store: &Store,
    export: BatchExportId,
    statement: Statement,
    vars: Variables,
) -> Result<Answer> {
    let permit = store.locks.take([export.0]).await;
    store.db.run_holding(statement, vars, permit).await
}

#[cfg(test)]
mod tests;
