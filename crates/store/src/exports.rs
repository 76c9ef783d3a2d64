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
//! (`schedule`), what all of them have not read yet (`unread`), and the removal of deleted
//! exports (`removed`) have their own modules.
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
mod unread;

use surrealdb::types::{self, Kind, SurrealValue, Value, Variables};
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
pub use self::unread::unread;
use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::{Answer, Statement};
use crate::events::{Except, TimeRange};
use crate::lists::{self, Order};
use crate::organizations::touch_organization;
use crate::update::{Row, update_text};
use crate::{Error, Result, Store, ids};

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
    /// Whether this backfill makes up for this pause or for the pause before it.
    pub fn is_made_up_by(&self, backfill: Option<BackfillId>) -> bool {
        backfill.is_some() && (self.backfill == backfill || self.earlier == backfill)
    }
}

/// The newest pause that a backfill makes up for, as four fields of the export's record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backfilled(pub Option<BackfilledPause>);

#[derive(Debug, Default, SurrealValue)]
struct StoredPause {
    backfilled_by: Option<BackfillId>,
    backfilled_earlier: Option<BackfillId>,
    backfilled_since: Option<Timestamp>,
    backfilled_until: Option<Timestamp>,
}

impl SurrealValue for Backfilled {
    fn kind_of() -> Kind {
        StoredPause::kind_of()
    }

    fn into_value(self) -> Value {
        let stored = self.0.map_or_else(StoredPause::default, |pause| StoredPause {
            backfilled_by: pause.backfill,
            backfilled_earlier: pause.earlier,
            backfilled_since: Some(pause.since),
            backfilled_until: Some(pause.until),
        });
        stored.into_value()
    }

    fn from_value(value: Value) -> Result<Self, types::Error> {
        let stored = StoredPause::from_value(value)?;
        let bounds = stored.backfilled_since.zip(stored.backfilled_until);
        Ok(Self(bounds.map(|(since, until)| BackfilledPause {
            backfill: stored.backfilled_by,
            earlier: stored.backfilled_earlier,
            since,
            until,
        })))
    }
}

/// An export as stored.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct ExportRow {
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
    #[surreal(flatten)]
    pub backfilled: Backfilled,
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

impl Row for ExportRow {
    type Id = BatchExportId;
    type With = Option<NewBackfill>;
    const TABLE: &'static str = "batch_export";
    const UPDATE: &'static str = "exports update";
    const TEXT: &'static str = update_text!(with_backfill!());
    // A backfill is computed from the whole export.
    const COMPARED: &'static [&'static str] = &["revision"];

    fn touch(&mut self, now: Timestamp) {
        self.updated_at = now;
        self.revision = ids::time_ordered(now);
    }

    // Its runs, their log lines and cancellations write the same record.
    fn frequent_writers(&self) -> Option<Uuid> {
        Some(self.id.0)
    }

    fn bind(&self, backfill: Option<NewBackfill>, vars: &mut Variables) -> Result<()> {
        vars.insert("backfill", backfill.as_ref().map(|new| StoredBackfill::from(&new.row)));
        vars.insert("most", backfill.map_or(0, |new| int(new.most as u64)));
        Ok(())
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

const OF_ORGANIZATION: Order =
    Order { name: "exports of an organization", table: "org_batch_export", part: 1 };

const OF_PROJECT: Order =
    Order { name: "exports of a project", table: "project_batch_export", part: 1 };

/// Exports: ids only, oldest first.
pub async fn ordered(store: &Store, of: Of) -> Result<Vec<BatchExportId>> {
    match of {
        Of::Organization(organization) => {
            lists::ordered(store, OF_ORGANIZATION, organization.0, BatchExportId).await
        }
        Of::Project(project) => lists::ordered(store, OF_PROJECT, project.0, BatchExportId).await,
    }
}

/// Exports of an organization, in the order of `ids`; missing ones are skipped.
pub async fn rows(
    store: &Store,
    organization: OrganizationId,
    ids: &[BatchExportId],
) -> Result<Vec<ExportRow>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let found = lists::records::<ExportRow>(store, "batch_export", ids).await?;
    Ok(found.into_iter().flatten().filter(|row| row.organization == organization).collect())
}

/// An export of any organization.
pub async fn find(store: &Store, export: BatchExportId) -> Result<Option<ExportRow>> {
    let found = lists::records(store, "batch_export", vec![export.0]).await?;
    Ok(found.into_iter().flatten().next())
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
         IF $organization_most != NONE {
             LET $of_organization = $export.organization;
             LET $all = (SELECT VALUE record::id(id)[1] FROM
                 org_batch_export:[$of_organization]..=[$of_organization, ..]);
             IF array::len($all) >= $organization_most AND $all CONTAINSNOT $export.uuid {
                 THROW 'limit'
             };
         };
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
    /// The organization has as many exports as its limit. Nothing was written.
    OverLimit,
    /// The organization or the project is deleted. Nothing was written.
    Gone,
}

/// Adds an export. A project may have `most`, and the organization `organization_most`
/// (`None`: no limit).
pub async fn create(
    store: &Store,
    row: &ExportRow,
    most: usize,
    organization_most: Option<u64>,
    activities: &[Entry],
) -> Result<Created> {
    let vars = bind! {
        export: row.clone(),
        most: int(most as u64),
        organization_most: organization_most.map(int),
    };
    match activity::change(store, CREATE, vars, activities).await {
        Ok(_) => Ok(Created::Yes),
        Err(Error::Refused { reason, .. }) if reason == "full" => Ok(Created::TooMany),
        Err(Error::Refused { reason, .. }) if reason == "limit" => Ok(Created::OverLimit),
        Err(Error::Refused { .. }) => Ok(Created::Gone),
        Err(error) => Err(error),
    }
}

/// A backfill that is started with a change of its export.
#[derive(Debug, Clone)]
pub struct NewBackfill {
    /// The backfill.
    pub row: BackfillRow,
    /// How many backfills of the project may be active.
    pub most: usize,
}

/// The word that refuses a change: the project has as many active backfills as allowed.
pub const TOO_MANY_BACKFILLS: &str = "backfills";

// Writing the project's record makes two backfills of one project conflict, so that both
// are counted. The update writes the export's record, so that a backfill conflicts with
// the deletion of the export and is not left behind.
macro_rules! with_backfill {
    () => {
        "IF $backfill != NONE {
             UPDATE type::record('project', $row.project)
                 SET backfills = (backfills ?? 0) + 1 RETURN NONE;
             LET $home = $row.project;
             LET $active = (SELECT VALUE record::id(id)[1] FROM
                 active_backfill:[$home]..=[$home, ..]);
             IF count($active) >= $most AND $active CONTAINSNOT $backfill.uuid {
                 THROW 'backfills'
             };
             UPSERT type::record('batch_export_backfill', [$row.uuid, $backfill.uuid])
                 CONTENT $backfill RETURN NONE;
             UPSERT type::record('active_backfill', [$home, $backfill.uuid])
                 CONTENT { export: $row.uuid } RETURN NONE;
         };"
    };
}
use with_backfill;

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
