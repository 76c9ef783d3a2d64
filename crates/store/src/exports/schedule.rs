//! How far the schedule of each export has come, and which arrivals the next
//! interval begins after.
//!
//! | table | id | holds |
//! |---|---|---|
//! | `batch_export_state` | export | the end of the last interval, its mark, its cadence, where a pause began and what backfills take of it |
//!
//! Only the engine of exports writes them, each time from what it read: two
//! decisions about one interval cannot both be made.

use std::collections::HashMap;

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::{BackfillId, BatchExportId, Timestamp};

use super::StoredExcept;
use crate::bind::bind;
use crate::db::Statement;
use crate::error::is_done;
use crate::events::Except;
use crate::{Result, Store};

/// How far the schedule of an export has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The end of the last interval that was dealt with.
    pub last_end: Timestamp,
    /// The last arrival number that belongs to it or to one before.
    pub mark: u64,
    /// The name of its cadence at that time.
    pub interval: String,
    /// Where the intervals begin that a pause has left out since the last run.
    pub paused: Option<Paused>,
    /// What the next run leaves to backfills, which make up for pauses.
    pub left: Vec<Except>,
    /// The newest of these backfills, also once that run is made.
    pub noted: Option<BackfillId>,
}

impl Schedule {
    /// A schedule without pauses.
    #[must_use]
    pub fn new(last_end: Timestamp, mark: u64, interval: String) -> Self {
        Self { last_end, mark, interval, paused: None, left: Vec::new(), noted: None }
    }

    /// Where begins what no run has, and no window has left out.
    #[must_use]
    pub fn begun(&self) -> Paused {
        self.paused.unwrap_or(Paused { end: self.last_end, mark: self.mark })
    }
}

/// Where a pause begins, for a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paused {
    /// The end of the last interval before it.
    pub end: Timestamp,
    /// The last arrival number that belongs to that interval or to one before.
    pub mark: u64,
}

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct StoredSchedule {
    uuid: Uuid,
    last_end: i64,
    mark: i64,
    interval: String,
    paused_end: Option<i64>,
    paused_mark: Option<i64>,
    left: Option<Vec<StoredExcept>>,
    noted: Option<Uuid>,
}

impl StoredSchedule {
    pub(super) fn of(export: BatchExportId, schedule: &Schedule) -> Self {
        Self {
            uuid: export.0,
            last_end: schedule.last_end.micros(),
            mark: super::int(schedule.mark),
            interval: schedule.interval.clone(),
            paused_end: schedule.paused.map(|paused| paused.end.micros()),
            paused_mark: schedule.paused.map(|paused| super::int(paused.mark)),
            left: Some(schedule.left.iter().map(StoredExcept::from).collect()),
            noted: schedule.noted.map(|backfill| backfill.0),
        }
    }
}

impl From<StoredSchedule> for Schedule {
    fn from(stored: StoredSchedule) -> Self {
        Self {
            last_end: Timestamp::from_micros(stored.last_end),
            mark: super::number(stored.mark),
            interval: stored.interval,
            paused: stored.paused_end.zip(stored.paused_mark).map(|(end, mark)| Paused {
                end: Timestamp::from_micros(end),
                mark: super::number(mark),
            }),
            left: stored.left.into_iter().flatten().map(Except::from).collect(),
            noted: stored.noted.map(BackfillId),
        }
    }
}

// One small record for each export.
const ALL: Statement = Statement::read("export schedules", "SELECT * FROM batch_export_state;");

/// How far the schedules of all exports of all organizations have come.
///
/// # Errors
/// Any failure of the store.
pub async fn all(store: &Store) -> Result<HashMap<BatchExportId, Schedule>> {
    let rows = store.db.run(ALL, bind! {}).await?.rows::<StoredSchedule>(0)?;
    Ok(rows.into_iter().map(|row| (BatchExportId(row.uuid), row.into())).collect())
}

/// Moves the schedule of `$to.uuid` from `$from` on to `$to`. Part of the
/// transactions that do so; one whose outcome is unknown can be repeated.
macro_rules! move_schedule {
    () => {
        "LET $home = (SELECT VALUE uuid FROM ONLY type::record('batch_export', $to.uuid));
         IF $home = NONE { THROW 'gone' };
         LET $state = (SELECT * FROM ONLY type::record('batch_export_state', $to.uuid));
         LET $is_done = ($state.last_end = $to.last_end AND $state.mark = $to.mark
             AND $state.interval = $to.interval);
         IF !$is_done AND ($state.last_end != $from.last_end OR $state.mark != $from.mark
                 OR $state.interval != $from.interval) {
             THROW 'stale'
         };
         UPSERT type::record('batch_export_state', $to.uuid) CONTENT $to RETURN NONE;"
    };
}
pub(super) use move_schedule;

const ADVANCE: Statement =
    Statement::write("export schedule", concat!("BEGIN;", move_schedule!(), "COMMIT;"));

/// Moves a schedule on without a run. `false`: it is not where it was when
/// `before` was read, or the export is gone.
///
/// # Errors
/// Any failure of the store.
pub async fn advance(
    store: &Store,
    export: BatchExportId,
    before: Option<&Schedule>,
    after: &Schedule,
) -> Result<bool> {
    let vars = bind! {
        from: before.map(|before| StoredSchedule::of(export, before)),
        to: StoredSchedule::of(export, after),
    };
    is_done(super::in_turn(store, export, ADVANCE, vars).await)
}
