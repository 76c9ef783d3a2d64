//! Runs of exports.
//!
//! | table | id | holds |
//! |---|---|---|
//! | `batch_export_run` | `[export, run]` | a run; ids are in the order of creation |
//! | `active_run` | `[export, run]` | nothing; only of runs that have not ended |
//!
//! The events of a run are selected once, when it is created. Its progress is written
//! only while it has not ended: a cancelled run stays cancelled.

use surrealdb::types::{SurrealValue, Value};
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::exports::{RECENT_RUNS, Run, Status};
use weir_model::{BackfillId, BatchExportId, RunId, Timestamp};

use super::newest_first::TimeWindows;
use super::schedule::{Schedule, StoredSchedule, move_schedule};
use super::{NewestRuns, StoredExcept, int, locked, number};
use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::error::is_done;
use crate::events::{Except, TimeRange};
use crate::memory_budget::RECORDS_PER_STATEMENT;
use crate::{Error, Result, Store, ids, lists};

/// A run as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// The fields that the API shows.
    pub run: Run,
    /// It exports events with a higher arrival number,
    pub after: u64,
    /// and at most this one.
    pub up_to: u64,
    /// Whether it exports only events whose time is in its interval.
    pub by_time: bool,
    /// Events that it leaves to backfills.
    pub except: Vec<Except>,
    /// The backfill that it belongs to.
    pub backfill: Option<BackfillId>,
    /// The number of attempts so far.
    pub attempt: u32,
    /// Bytes of the events that it has sent.
    pub bytes: u64,
    /// The arrival number of the last event that is durable at the destination.
    pub delivered: Option<u64>,
    /// A fingerprint of the export's destination and query at the last attempt.
    pub target: Option<String>,
}

impl RunRow {
    /// A run without attempts and without events.
    pub fn new(run: Run) -> Self {
        Self {
            run,
            after: 0,
            up_to: 0,
            by_time: false,
            except: Vec::new(),
            backfill: None,
            attempt: 0,
            bytes: 0,
            delivered: None,
            target: None,
        }
    }

    /// The range of event time that it exports; `None`: events of any time.
    pub fn time(&self) -> Option<TimeRange> {
        self.by_time.then(|| TimeRange {
            start: self.run.data_interval_start.map_or(i64::MIN, Timestamp::micros),
            end: self.run.data_interval_end.micros(),
        })
    }
}

/// The progress of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The new status.
    pub status: Status,
    /// Number of events that are durable at the destination.
    pub completed: Option<u64>,
    /// Number of events to deliver, once they are counted.
    pub total: Option<u64>,
    /// The last error.
    pub latest_error: Option<String>,
    /// Where it continues after an interruption.
    pub cursor: Option<String>,
    /// The arrival number of the last event that is durable at the destination.
    pub delivered: Option<u64>,
    /// The number of attempts so far.
    pub attempt: u32,
    /// Bytes of the events that it has sent.
    pub bytes: u64,
    /// A fingerprint of the export's destination and query. The progress is valid only
    /// for these.
    pub target: Option<String>,
    /// The time of the first failed attempt since the last delivery.
    pub failing_since: Option<Timestamp>,
    /// The time of the next attempt.
    pub next_try: Option<Timestamp>,
}

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct StoredRun {
    uuid: Uuid,
    export: Uuid,
    status: String,
    records_completed: Option<i64>,
    latest_error: Option<String>,
    interval_start: Option<i64>,
    interval_end: i64,
    cursor: Option<String>,
    created_at: i64,
    finished_at: Option<i64>,
    updated_at: i64,
    records_total: Option<i64>,
    after: Option<i64>,
    up_to: Option<i64>,
    by_time: Option<bool>,
    except: Option<Vec<StoredExcept>>,
    backfill: Option<Uuid>,
    attempt: Option<i64>,
    bytes: Option<i64>,
    delivered: Option<i64>,
    target: Option<String>,
    failing_since: Option<i64>,
    next_try: Option<i64>,
}

impl From<&RunRow> for StoredRun {
    fn from(row: &RunRow) -> Self {
        let run = &row.run;
        Self {
            uuid: run.id.0,
            export: run.batch_export.0,
            status: run.status.text().to_owned(),
            records_completed: run.records_completed.map(i64::from),
            latest_error: run.latest_error.clone(),
            interval_start: run.data_interval_start.map(Timestamp::micros),
            interval_end: run.data_interval_end.micros(),
            cursor: run.cursor.clone(),
            created_at: run.created_at.micros(),
            finished_at: run.finished_at.map(Timestamp::micros),
            updated_at: run.last_updated_at.micros(),
            records_total: run.records_total_count.map(i64::from),
            after: Some(int(row.after)),
            up_to: Some(int(row.up_to)),
            by_time: Some(row.by_time),
            except: Some(row.except.iter().map(StoredExcept::from).collect()),
            backfill: row.backfill.map(|backfill| backfill.0),
            attempt: Some(row.attempt.into()),
            bytes: Some(int(row.bytes)),
            delivered: row.delivered.map(int),
            target: row.target.clone(),
            failing_since: run.failing_since.map(Timestamp::micros),
            next_try: run.next_try_at.map(Timestamp::micros),
        }
    }
}

/// The API uses 32 bits for these numbers.
fn count(count: Option<i64>) -> Option<i32> {
    count.map(|count| i32::try_from(count).unwrap_or(i32::MAX))
}

impl TryFrom<StoredRun> for RunRow {
    type Error = Error;

    fn try_from(stored: StoredRun) -> Result<Self> {
        let status = Status::of(&stored.status).ok_or_else(|| Error::Shape {
            statement: "exports runs",
            detail: format!("unknown status `{}`", stored.status),
        })?;
        let run = Run {
            id: RunId(stored.uuid),
            status,
            records_completed: count(stored.records_completed),
            latest_error: stored.latest_error,
            data_interval_start: stored.interval_start.map(Timestamp::from_micros),
            data_interval_end: Timestamp::from_micros(stored.interval_end),
            cursor: stored.cursor,
            created_at: Timestamp::from_micros(stored.created_at),
            finished_at: stored.finished_at.map(Timestamp::from_micros),
            last_updated_at: Timestamp::from_micros(stored.updated_at),
            records_total_count: count(stored.records_total),
            batch_export: BatchExportId(stored.export),
            failing_since: stored.failing_since.map(Timestamp::from_micros),
            next_try_at: stored.next_try.map(Timestamp::from_micros),
        };
        Ok(Self {
            run,
            after: stored.after.map_or(0, number),
            up_to: stored.up_to.map_or(0, number),
            by_time: stored.by_time.unwrap_or_default(),
            except: stored.except.into_iter().flatten().map(Except::from).collect(),
            backfill: stored.backfill.map(BackfillId),
            attempt: stored.attempt.and_then(|n| u32::try_from(n).ok()).unwrap_or_default(),
            bytes: stored.bytes.map_or(0, number),
            delivered: stored.delivered.map(number),
            target: stored.target,
        })
    }
}

/// Adds the run `$run` as the newest run of its export. Used by the transactions that do
/// this. Idempotent.
macro_rules! add_run {
    () => {
        "LET $present = (SELECT VALUE latest ?? []
                         FROM ONLY type::record('batch_export', $run.export));
         IF $present = NONE { THROW 'gone' };
         IF $present CONTAINSNOT $run.uuid {
             UPSERT type::record('batch_export_run', [$run.export, $run.uuid])
                 CONTENT $run RETURN NONE;
             IF ['Starting', 'Running'] CONTAINS $run.status {
                 UPSERT type::record('active_run', [$run.export, $run.uuid])
                     CONTENT {} RETURN NONE;
             };
             UPDATE type::record('batch_export', $run.export)
                 SET latest = array::slice(array::concat([$run.uuid], $present), 0, $most)
                 RETURN NONE;
         };"
    };
}
pub(super) use add_run;

const CREATE: Statement = Statement::write(
    "exports create run",
    concat!("BEGIN;", move_schedule!(), add_run!(), "COMMIT;"),
);

/// Adds the run of an interval and moves the schedule on, if the schedule is still
/// `before`. So an interval has one run. `false`: the schedule has changed, or the export
/// is deleted. Nothing was written.
pub async fn create(
    store: &Store,
    row: &RunRow,
    before: &Schedule,
    after: &Schedule,
) -> Result<bool> {
    let export = row.run.batch_export;
    let vars = bind! {
        run: StoredRun::from(row),
        most: int(RECENT_RUNS as u64),
        from: StoredSchedule::of(export, before),
        to: StoredSchedule::of(export, after),
    };
    is_done(locked(store, export, CREATE, vars).await)
}

// The end of a run is counted in its backfill, and a failed run ends the backfill as
// failed. The step distinguishes a retry of this transaction from another change.
const STEP: Statement = Statement::write(
    "exports run step",
    "BEGIN;
     LET $present = (SELECT status, step, backfill
                     FROM ONLY type::record('batch_export_run', [$export, $run]));
     IF $present = NONE { THROW 'gone' };
     IF $present.step != $step {
         IF ['Starting', 'Running'] CONTAINSNOT $present.status { THROW 'ended' };
         UPDATE type::record('batch_export_run', [$export, $run]) SET
             step = $step, status = $status, records_completed = $completed,
             records_total = $total, latest_error = $latest_error, cursor = $cursor,
             delivered = $delivered, attempt = $attempt, bytes = $bytes, target = $target,
             failing_since = $failing_since, next_try = $next_try,
             updated_at = $now, finished_at = $finished_at RETURN NONE;
         IF $finished_at != NONE {
             DELETE type::record('active_run', [$export, $run]) RETURN NONE;
             IF $present.backfill != NONE {
                 UPDATE type::record('batch_export_backfill', [$export, $present.backfill]) SET
                     finished_runs = (finished_runs ?? 0) + 1,
                     records = (records ?? 0) + ($completed ?? 0), updated_at = $now
                     RETURN NONE;
                 IF $status != 'Completed' {
                     UPDATE type::record('batch_export_backfill', [$export, $present.backfill]) SET
                         status = 'Failed', finished_at = $now
                         WHERE ['Starting', 'Running'] CONTAINS status RETURN NONE;
                     LET $project = (SELECT VALUE project
                                     FROM ONLY type::record('batch_export', $export));
                     DELETE type::record('active_backfill', [$project, $present.backfill])
                         RETURN NONE;
                 };
             };
         };
     };
     COMMIT;",
);

/// Stores the progress of a run. A status that is not active ends the run, and also its
/// backfill unless the status is completed. `false`: the run has already ended, or is
/// deleted, and was not changed.
pub async fn step(
    store: &Store,
    export: BatchExportId,
    run: RunId,
    progress: &Progress,
    now: Timestamp,
) -> Result<bool> {
    let vars = bind! {
        export: export.0,
        run: run.0,
        step: ids::time_ordered(now),
        status: progress.status.text(),
        completed: progress.completed.map(int),
        total: progress.total.map(int),
        latest_error: progress.latest_error.clone(),
        cursor: progress.cursor.clone(),
        delivered: progress.delivered.map(int),
        attempt: i64::from(progress.attempt),
        bytes: int(progress.bytes),
        target: progress.target.clone(),
        failing_since: progress.failing_since.map(Timestamp::micros),
        next_try: progress.next_try.map(Timestamp::micros),
        now: now.micros(),
        finished_at: (!progress.status.is_active()).then_some(now.micros()),
    };
    is_done(locked(store, export, STEP, vars).await)
}

const CANCEL: Statement = Statement::write(
    "exports cancel run",
    concat!(
        "BEGIN;
         LET $present = (SELECT status, step, backfill, records_completed
                         FROM ONLY type::record('batch_export_run', [$export, $run]));
         IF $present = NONE { THROW 'gone' };
         IF $present.step != $step {
             IF ['Starting', 'Running'] CONTAINSNOT $present.status { THROW 'ended' };
             UPDATE type::record('batch_export_run', [$export, $run]) SET
                 step = $step, status = 'Cancelled', updated_at = $now, finished_at = $now,
                 next_try = NONE RETURN NONE;
             DELETE type::record('active_run', [$export, $run]) RETURN NONE;
             IF $present.backfill != NONE {
                 UPDATE type::record('batch_export_backfill', [$export, $present.backfill]) SET
                     finished_runs = (finished_runs ?? 0) + 1,
                     cancelled_runs = (cancelled_runs ?? 0) + 1,
                     records = (records ?? 0) + ($present.records_completed ?? 0),
                     updated_at = $now RETURN NONE;
             };
         };",
        write_activities!(),
        "COMMIT;"
    ),
);

/// Cancels a run that is starting or running. The engine notices it at its next write. A
/// backfill continues with its next run. `false`: the run has already ended, or is
/// deleted.
pub async fn request_cancel(
    store: &Store,
    export: BatchExportId,
    run: RunId,
    now: Timestamp,
    activities: &[Entry],
) -> Result<bool> {
    let vars = bind! {
        export: export.0,
        run: run.0,
        step: ids::time_ordered(now),
        now: now.micros(),
    };
    is_done(activity::change_exports(store, CANCEL, vars, activities, [export], ()).await)
}

/// A run of an export, as the API shows it.
pub async fn find(store: &Store, export: BatchExportId, run: RunId) -> Result<Option<Run>> {
    Ok(row(store, export, run).await?.map(|row| row.run))
}

/// A run of an export as stored; `None` also when it cannot be read.
pub async fn row(store: &Store, export: BatchExportId, run: RunId) -> Result<Option<RunRow>> {
    Ok(rows(store, vec![vec![export.0, run.0]]).await?.into_iter().flatten().next())
}

/// Runs of an export as stored, in the order of `runs`; missing ones are skipped.
pub async fn stored(store: &Store, export: BatchExportId, runs: &[RunId]) -> Result<Vec<RunRow>> {
    let keys = runs.iter().map(|run| vec![export.0, run.0]).collect();
    Ok(rows(store, keys).await?.into_iter().flatten().collect())
}

/// The runs with these keys, in the order of `keys`.
async fn rows(store: &Store, keys: Vec<Vec<Uuid>>) -> Result<Vec<Option<RunRow>>> {
    let mut runs = Vec::with_capacity(keys.len());
    // Runs are small, so that their number is the only bound of this list.
    for some in keys.chunks(RECORDS_PER_STATEMENT) {
        let found = lists::records::<Value>(store, "batch_export_run", some.to_vec()).await?;
        runs.extend(some.iter().zip(found).map(|(key, value)| read(key, value?)));
    }
    Ok(runs)
}

/// A run; `None`: it cannot be read. Such a run must not block the others.
fn read(key: &[Uuid], value: Value) -> Option<RunRow> {
    let stored = StoredRun::from_value(value).map_err(|error| Error::Shape {
        statement: "exports runs",
        detail: error.message().to_owned(),
    });
    match stored.and_then(RunRow::try_from) {
        Ok(row) => Some(row),
        Err(error) => {
            tracing::error!(?key, %error, "a run of an export cannot be read");
            None
        }
    }
}

/// The newest runs of each of these exports, at most `most` and [`RECENT_RUNS`] each,
/// newest first, in the order of `exports`.
pub async fn latest<E: NewestRuns>(
    store: &Store,
    exports: &[E],
    most: usize,
) -> Result<Vec<Vec<Run>>> {
    let newest = |row: &E| row.newest_runs().len().min(most);
    let of_one = |row: &E| -> Vec<Vec<Uuid>> {
        row.newest_runs().iter().take(most).map(|run| vec![row.export().0, run.0]).collect()
    };
    let keys = exports.iter().flat_map(of_one).collect();
    let mut found = rows(store, keys).await?.into_iter();
    let of = |row: &E| {
        let runs = found.by_ref().take(newest(row)).flatten();
        runs.map(|row| row.run).collect()
    };
    Ok(exports.iter().map(of).collect())
}

// A few small records for each export: the engine bounds its runs that have not ended.
const ACTIVE_OF: Statement = Statement::read(
    "exports active runs of exports",
    "RETURN $exports.map(|$export| (
         SELECT VALUE record::id(id)[1] FROM active_run:[$export]..=[$export, ..]
     ));",
);

/// The runs of each of these exports from which its condition is derived: its newest
/// runs, at most `most` and [`RECENT_RUNS`], and older ones that have not ended. Newest
/// first, in the order of `exports`.
pub async fn decisive<E: NewestRuns>(
    store: &Store,
    exports: &[E],
    most: usize,
) -> Result<Vec<Vec<Run>>> {
    let mut found = latest(store, exports, most).await?;
    // An export with fewer runs than this has no older ones.
    let last = most.min(RECENT_RUNS).saturating_sub(1);
    let full = exports.iter().zip(&mut found);
    let full: Vec<_> = full
        .filter_map(|(row, of)| Some((row.export().0, row.newest_runs().get(last)?, of)))
        .collect();
    if full.is_empty() {
        return Ok(found);
    }
    let ids: Vec<Uuid> = full.iter().map(|(export, _, _)| *export).collect();
    let active: Vec<Vec<Uuid>> =
        store.db.run(ACTIVE_OF, bind! { exports: ids }).await?.rows::<Vec<Uuid>>(0)?;
    for ((export, oldest, of), mut runs) in full.into_iter().zip(active) {
        runs.retain(|run| *run < oldest.0);
        runs.sort_unstable_by(|a, b| b.cmp(a));
        let keys = runs.into_iter().map(|run| vec![export, run]).collect();
        of.extend(rows(store, keys).await?.into_iter().flatten().map(|row| row.run));
    }
    Ok(found)
}

// One small record for each run that has not ended. The engine of exports bounds their
// number.
const ACTIVE: Statement =
    Statement::read("exports active runs", "SELECT VALUE record::id(id) FROM active_run;");

/// The runs of all organizations that have not ended, oldest first.
pub async fn active(store: &Store) -> Result<Vec<RunRow>> {
    let mut keys = store.db.run(ACTIVE, bind! {}).await?.rows::<Vec<Uuid>>(0)?;
    keys.sort_unstable_by_key(|key| key.last().copied());
    Ok(rows(store, keys).await?.into_iter().flatten().collect())
}

/// A query for a page of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Runs {
    /// No runs that were created before this time.
    pub after: Option<Timestamp>,
    /// No runs that were created after this time.
    pub before: Option<Timestamp>,
    /// Only runs after this one in the list, which is newest first.
    pub cursor: Option<RunId>,
    /// The largest number of runs to return.
    pub limit: usize,
}

const RANGE: Statement = Statement::read(
    "exports runs in order",
    "SELECT VALUE record::id(id)[1] FROM batch_export_run:[$export, $low]..=[$export, $high];",
);

/// Runs of an export, newest first.
pub async fn page(store: &Store, export: BatchExportId, wanted: Runs) -> Result<Vec<Run>> {
    let fits = |run: &Run| {
        wanted.after.is_none_or(|after| run.created_at >= after)
            && wanted.before.is_none_or(|before| run.created_at <= before)
    };
    let end = wanted.cursor.map_or(u128::MAX, |run| run.0.as_u128());
    let cursor = wanted.cursor.and_then(created);
    let before = match (wanted.before, cursor) {
        (Some(before), Some(cursor)) => Some(before.min(cursor)),
        (before, cursor) => before.or(cursor),
    };
    let mut windows = TimeWindows::between(wanted.after, before);
    let mut runs = Vec::new();
    while runs.len() < wanted.limit {
        let Some((low, high)) = windows.next() else { break };
        let vars = bind! { export: export.0, low: ids::first_of(low), high: last_of(high) };
        let mut found = store.db.run(RANGE, vars).await?.rows::<Uuid>(0)?;
        windows.had(found.len());
        found.retain(|run| run.as_u128() < end);
        found.reverse();
        for some in found.chunks(wanted.limit.max(1)) {
            let keys = some.iter().map(|run| vec![export.0, *run]).collect();
            let read = rows(store, keys).await?.into_iter().flatten().map(|row| row.run);
            runs.extend(read.filter(fits));
            if runs.len() >= wanted.limit {
                break;
            }
        }
    }
    runs.truncate(wanted.limit);
    Ok(runs)
}

/// The time in the id of a run: when it was created, to the millisecond.
pub(super) fn created(run: RunId) -> Option<Timestamp> {
    let millis = i64::try_from(run.0.as_u128() >> 80).ok()?;
    Some(Timestamp::from_micros(millis.saturating_mul(1_000)))
}

/// The highest id of a millisecond.
pub(super) fn last_of(millis: i64) -> Uuid {
    Uuid::from_u128(ids::first_of(millis).as_u128() | ((1 << 80) - 1))
}
