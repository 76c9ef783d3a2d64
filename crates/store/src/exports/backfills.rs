//! Backfills of exports.
//!
//! | table | id | holds |
//! |---|---|---|
//! | `batch_export_backfill` | `[export, backfill]` | a backfill; ids are in the order of creation |
//! | `active_backfill` | `[project, backfill]` | the export; only of backfills that have not ended |

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::exports::{Backfill, BackfillProgress, RECENT_RUNS, Status};
use weir_model::{BackfillId, BatchExportId, ProjectId, RunId, Timestamp};

use super::runs::{RunRow, StoredRun, add_run};
use super::{int, locked, number};
use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::error::is_done;
use crate::lists::{self, Order};
use crate::{Error, Result, Store, ids};

/// A new backfill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackfillRow {
    /// Id of the backfill.
    pub id: BackfillId,
    /// The export that it belongs to.
    pub export: BatchExportId,
    /// The project of the export.
    pub project: ProjectId,
    /// The beginning; `None`: the first event.
    pub start_at: Option<Timestamp>,
    /// The end (exclusive).
    pub end_at: Timestamp,
    /// The number of its runs, if it is known from the start.
    pub total_runs: Option<u64>,
    /// The run that it repeats. The backfill exports the same events at any event time.
    pub retry_of: Option<RunId>,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A backfill as stored, with its progress.
#[derive(Debug, Clone, PartialEq)]
pub struct BackfillState {
    /// The fields that the API shows.
    pub shown: Backfill,
    /// The run that it repeats.
    pub retry_of: Option<RunId>,
    /// The plan; `None`: work has not begun.
    pub plan: Option<Plan>,
    /// The beginning of its next run.
    pub next: Option<Timestamp>,
}

/// The parameters that are fixed when work on a backfill begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The beginning of its first run.
    pub start: Timestamp,
    /// The largest number of its runs.
    pub total_runs: u64,
    /// The number of intervals per run; `None`: planned by a version that did not record
    /// it.
    pub each: Option<u64>,
    /// It exports events with a higher arrival number,
    pub after: u64,
    /// and at most this one.
    pub up_to: u64,
}

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct StoredBackfill {
    uuid: Uuid,
    status: String,
    start_at: Option<i64>,
    end_at: i64,
    total_runs: Option<i64>,
    created_at: i64,
    updated_at: i64,
    finished_at: Option<i64>,
    retry_of: Option<Uuid>,
    finished_runs: Option<i64>,
    records: Option<i64>,
    plan_start: Option<i64>,
    each: Option<i64>,
    after: Option<i64>,
    up_to: Option<i64>,
    next: Option<i64>,
}

impl From<&BackfillRow> for StoredBackfill {
    fn from(row: &BackfillRow) -> Self {
        Self {
            uuid: row.id.0,
            status: Status::Starting.text().to_owned(),
            start_at: row.start_at.map(Timestamp::micros),
            end_at: row.end_at.micros(),
            total_runs: row.total_runs.map(int),
            created_at: row.created_at.micros(),
            updated_at: row.created_at.micros(),
            finished_at: None,
            retry_of: row.retry_of.map(|run| run.0),
            finished_runs: None,
            records: None,
            plan_start: None,
            each: None,
            after: None,
            up_to: None,
            next: None,
        }
    }
}

fn state(
    project: ProjectId,
    export: BatchExportId,
    stored: StoredBackfill,
) -> Result<BackfillState> {
    let status = Status::of(&stored.status).ok_or_else(|| Error::Shape {
        statement: "exports backfills",
        detail: format!("unknown status `{}`", stored.status),
    })?;
    let time = |micros: Option<i64>| micros.map(Timestamp::from_micros);
    let total_runs = stored.total_runs.map(number);
    let (start_at, begins) = (time(stored.start_at), time(stored.plan_start));
    let plan = match (begins, stored.up_to) {
        (Some(start), Some(up_to)) => Some(Plan {
            start,
            total_runs: total_runs.unwrap_or_default(),
            each: stored.each.map(number),
            after: stored.after.map_or(0, number),
            up_to: number(up_to),
        }),
        _ => None,
    };
    let finished_runs = stored.finished_runs.map_or(0, number);
    let shown = Backfill {
        id: BackfillId(stored.uuid),
        team: project,
        batch_export: export,
        start_at,
        end_at: Timestamp::from_micros(stored.end_at),
        status,
        created_at: Timestamp::from_micros(stored.created_at),
        finished_at: time(stored.finished_at),
        last_updated_at: Timestamp::from_micros(stored.updated_at),
        progress: BackfillProgress::of(status, total_runs, finished_runs),
        total_records_count: stored.records,
        adjusted_start_at: begins.filter(|begins| start_at.is_none_or(|start| start < *begins)),
    };
    let next = time(stored.next);
    Ok(BackfillState { shown, retry_of: stored.retry_of.map(RunId), plan, next })
}

const IDS: Order =
    Order { name: "exports backfills in order", table: "batch_export_backfill", part: 1 };

/// Backfills of an export, newest first: at most `limit`, after `cursor` in the list.
pub async fn page(
    store: &Store,
    project: ProjectId,
    export: BatchExportId,
    cursor: Option<BackfillId>,
    limit: usize,
) -> Result<Vec<Backfill>> {
    let mut found = lists::ordered(store, IDS, export.0, BackfillId).await?;
    found.retain(|id| cursor.is_none_or(|cursor| *id < cursor));
    found.reverse();
    found.truncate(limit);
    let found = states(store, project, export, &found).await?;
    Ok(found.into_iter().map(|state| state.shown).collect())
}

/// A backfill of an export, as the API shows it.
pub async fn find(
    store: &Store,
    project: ProjectId,
    export: BatchExportId,
    backfill: BackfillId,
) -> Result<Option<Backfill>> {
    let found = find_state(store, project, export, backfill).await?;
    Ok(found.map(|state| state.shown))
}

/// A backfill of an export, with its progress.
pub async fn find_state(
    store: &Store,
    project: ProjectId,
    export: BatchExportId,
    backfill: BackfillId,
) -> Result<Option<BackfillState>> {
    Ok(states(store, project, export, &[backfill]).await?.into_iter().next())
}

async fn states(
    store: &Store,
    project: ProjectId,
    export: BatchExportId,
    ids: &[BackfillId],
) -> Result<Vec<BackfillState>> {
    let keys: Vec<Vec<Uuid>> = ids.iter().map(|id| vec![export.0, id.0]).collect();
    let found = lists::records(store, "batch_export_backfill", keys).await?;
    found.into_iter().flatten().map(|stored| state(project, export, stored)).collect()
}

#[derive(Debug, SurrealValue)]
struct Active {
    project: i64,
    backfill: Uuid,
    export: Uuid,
}

// A few records for each project.
const ACTIVE: Statement = Statement::read(
    "exports active backfills",
    "SELECT record::id(id)[0] AS project, record::id(id)[1] AS backfill, export
     FROM active_backfill;",
);

/// The backfills of all organizations that have not ended. One that cannot be read is
/// skipped, so that it does not block the others.
pub async fn active(store: &Store) -> Result<Vec<BackfillState>> {
    let mut found = Vec::new();
    for row in store.db.run(ACTIVE, bind! {}).await?.rows::<Active>(0)? {
        let (project, export) = (ProjectId(row.project), BatchExportId(row.export));
        match states(store, project, export, &[BackfillId(row.backfill)]).await {
            Ok(states) => found.extend(states),
            Err(error @ Error::Shape { .. }) => {
                tracing::error!(backfill = %row.backfill, %error, "a backfill cannot be read");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

const BEGIN: Statement = Statement::write(
    "exports begin backfill",
    "BEGIN;
     LET $status = (SELECT VALUE status
                    FROM ONLY type::record('batch_export_backfill', [$export, $backfill]));
     IF ['Starting', 'Running'] CONTAINSNOT $status { THROW 'ended' };
     UPDATE type::record('batch_export_backfill', [$export, $backfill]) SET
         status = 'Running', plan_start = $start, next = $start, total_runs = $total_runs,
         each = $each, after = $after, up_to = $up_to, updated_at = $now RETURN NONE;
     COMMIT;",
);

/// Stores the plan of a backfill. `false`: the backfill has ended.
pub async fn begin(
    store: &Store,
    export: BatchExportId,
    backfill: BackfillId,
    plan: Plan,
    now: Timestamp,
) -> Result<bool> {
    let vars = bind! {
        export: export.0,
        backfill: backfill.0,
        start: plan.start.micros(),
        total_runs: int(plan.total_runs),
        each: plan.each.map(int),
        after: int(plan.after),
        up_to: int(plan.up_to),
        now: now.micros(),
    };
    is_done(locked(store, export, BEGIN, vars).await)
}

const ADD_RUN: Statement = Statement::write(
    "exports add backfill run",
    concat!(
        "BEGIN;
         LET $home = (SELECT status, next
                      FROM ONLY type::record('batch_export_backfill', [$run.export, $run.backfill]));
         IF $home.next != $next {
             IF ['Starting', 'Running'] CONTAINSNOT $home.status { THROW 'ended' };
             IF $home.next != $begins { THROW 'stale' };
             UPDATE type::record('batch_export_backfill', [$run.export, $run.backfill])
                 SET next = $next RETURN NONE;
         };",
        add_run!(),
        "COMMIT;"
    ),
);

/// Adds the next run of a backfill whose progress is at `begins`. The run after it begins
/// at `next` or later. `false`: the backfill has ended, or its progress is not at
/// `begins`.
pub async fn add_run_of(
    store: &Store,
    run: &RunRow,
    begins: Timestamp,
    next: Timestamp,
) -> Result<bool> {
    let vars = bind! {
        run: StoredRun::from(run),
        most: int(RECENT_RUNS as u64),
        begins: begins.micros(),
        next: next.micros(),
    };
    is_done(locked(store, run.run.batch_export, ADD_RUN, vars).await)
}

// Cancelling a backfill cancels its active run.
const END: Statement = Statement::write(
    "exports end backfill",
    concat!(
        "BEGIN;
         LET $present = (SELECT status, step, cancelled_runs
                         FROM ONLY type::record('batch_export_backfill', [$export, $backfill]));
         IF $present = NONE { THROW 'gone' };
         IF $present.step != $step {
             IF ['Starting', 'Running'] CONTAINSNOT $present.status { THROW 'ended' };
             LET $is_whole = ($present.cancelled_runs ?? 0) = 0 OR $status != 'Completed';
             LET $ended = IF $is_whole { $status } ELSE { 'Cancelled' };
             UPDATE type::record('batch_export_backfill', [$export, $backfill]) SET
                 step = $step, status = $ended, updated_at = $now, finished_at = $now,
                 total_runs = IF $ended = 'Completed' { finished_runs ?? 0 } ELSE { total_runs }
                 RETURN NONE;
             DELETE type::record('active_backfill', [$project, $backfill]) RETURN NONE;
             IF $status = 'Cancelled' {
                 FOR $run IN (SELECT VALUE record::id(id)[1]
                              FROM active_run:[$export]..=[$export, ..]) {
                     UPDATE type::record('batch_export_run', [$export, $run]) SET
                         step = $step, status = 'Cancelled', updated_at = $now,
                         finished_at = $now, next_try = NONE
                         WHERE backfill = $backfill RETURN NONE;
                     LET $left = (SELECT VALUE status
                                  FROM ONLY type::record('batch_export_run', [$export, $run]));
                     IF $left = 'Cancelled' {
                         DELETE type::record('active_run', [$export, $run]) RETURN NONE;
                     };
                 };
             };
         };",
        write_activities!(),
        "COMMIT;"
    ),
);

/// Ends a backfill with this status. If it would be completed but one of its runs was
/// cancelled, it is cancelled, because not all records were delivered (EXP-25). `false`:
/// it has already ended, or is deleted.
pub async fn end(
    store: &Store,
    project: ProjectId,
    export: BatchExportId,
    backfill: BackfillId,
    status: Status,
    now: Timestamp,
    activities: &[Entry],
) -> Result<bool> {
    let vars = bind! {
        project: project.0,
        export: export.0,
        backfill: backfill.0,
        status: status.text(),
        step: ids::time_ordered(now),
        now: now.micros(),
    };
    is_done(activity::change_exports(store, END, vars, activities, [export], ()).await)
}

/// Cancels a backfill that is starting or running, and its runs. The engine notices it at
/// its next write. `false`: it has already ended, or is deleted.
pub async fn cancel(
    store: &Store,
    project: ProjectId,
    export: BatchExportId,
    backfill: BackfillId,
    now: Timestamp,
    activities: &[Entry],
) -> Result<bool> {
    end(store, project, export, backfill, Status::Cancelled, now, activities).await
}
