//! The state of the schedule of each export, and the arrival number after which the next
//! interval begins.
//!
//! | table | id | holds |
//! |---|---|---|
//! | `batch_export_state` | export | the end of the last interval, its watermark, its cadence, the beginning of a pause, and the events that backfills export |
//!
//! Only the engine of exports writes these records. Each write names the end, watermark
//! and cadence that it was computed from, so that two decisions about one interval cannot
//! both be stored. The other fields are not compared.

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

/// The state of the schedule of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The end of the last interval that was handled.
    pub last_end: Timestamp,
    /// The last arrival number of that interval.
    pub watermark: u64,
    /// The name of the cadence (`Cadence::name`). If the export's cadence has another name,
    /// its boundaries have changed.
    pub cadence: String,
    /// The beginning of the intervals that were skipped by a pause since the last run.
    pub paused: Option<Paused>,
    /// Events that the coming runs skip, because a backfill for a pause exports them.
    pub left_to_backfills: Vec<Except>,
    /// The newest known backfill for a pause. Its range, if it has one, was added to
    /// `left_to_backfills`. The id stays after the range is removed.
    pub newest_backfill: Option<BackfillId>,
}

impl Schedule {
    /// A schedule without pauses.
    pub fn new(last_end: Timestamp, watermark: u64, cadence: String) -> Self {
        Self {
            last_end,
            watermark,
            cadence,
            paused: None,
            left_to_backfills: Vec::new(),
            newest_backfill: None,
        }
    }

    /// Where the export stopped: the beginning of the pause, or the last handled interval if
    /// no pause skipped intervals since the last run.
    pub fn before_pause(&self) -> Paused {
        self.paused.unwrap_or(Paused { end: self.last_end, watermark: self.watermark })
    }
}

/// The beginning of a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paused {
    /// The end of the last interval before the pause.
    pub end: Timestamp,
    /// The last arrival number of that interval.
    pub watermark: u64,
}

// The fields are the stored columns, which have older names.
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
            mark: super::int(schedule.watermark),
            interval: schedule.cadence.clone(),
            paused_end: schedule.paused.map(|paused| paused.end.micros()),
            paused_mark: schedule.paused.map(|paused| super::int(paused.watermark)),
            left: Some(schedule.left_to_backfills.iter().map(StoredExcept::from).collect()),
            noted: schedule.newest_backfill.map(|backfill| backfill.0),
        }
    }
}

impl From<StoredSchedule> for Schedule {
    fn from(stored: StoredSchedule) -> Self {
        Self {
            last_end: Timestamp::from_micros(stored.last_end),
            watermark: super::number(stored.mark),
            cadence: stored.interval,
            paused: stored.paused_end.zip(stored.paused_mark).map(|(end, mark)| Paused {
                end: Timestamp::from_micros(end),
                watermark: super::number(mark),
            }),
            left_to_backfills: stored.left.into_iter().flatten().map(Except::from).collect(),
            newest_backfill: stored.noted.map(BackfillId),
        }
    }
}

// One small record for each export.
const ALL: Statement = Statement::read("export schedules", "SELECT * FROM batch_export_state;");

/// The schedules of all exports of all organizations.
pub async fn all(store: &Store) -> Result<HashMap<BatchExportId, Schedule>> {
    let rows = store.db.run(ALL, bind! {}).await?.rows::<StoredSchedule>(0)?;
    Ok(rows.into_iter().map(|row| (BatchExportId(row.uuid), row.into())).collect())
}

const OF: Statement = Statement::read(
    "export schedule",
    "SELECT * FROM type::record('batch_export_state', $export);",
);

/// The schedule of an export, if it has begun.
pub async fn find(store: &Store, export: BatchExportId) -> Result<Option<Schedule>> {
    let found = store.db.run(OF, bind! { export: export.0 }).await?.row::<StoredSchedule>(0)?;
    Ok(found.map(Schedule::from))
}

/// Moves the schedule of `$to.uuid` from `$from` to `$to`. Part of the transactions that
/// advance a schedule. Idempotent.
macro_rules! move_schedule {
    () => {
        "LET $export_uuid = (SELECT VALUE uuid FROM ONLY type::record('batch_export', $to.uuid));
         IF $export_uuid = NONE { THROW 'gone' };
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

/// Begins a schedule, or moves it without a run. `false`: another write came first, or the
/// export is deleted.
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
    is_done(super::locked(store, export, ADVANCE, vars).await)
}
