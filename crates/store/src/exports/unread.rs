//! The events that exports will still read: retention keeps them.
//!
//! What belongs here: what the schedule of an export, a backfill and a run will still
//! read. What does not: removing events (`events`), selecting those of a run (`weir-export`).

use weir_model::{ProjectId, Timestamp};

use super::backfills::{self, BackfillState};
use super::runs::{self, RunRow};
use super::schedule::{self, Schedule};
use super::{ExportBrief, Of, briefs_of_all, ordered};
use crate::events::{EventBounds, TimeRange};
use crate::{Result, Store};

/// The events that the exports of a project will still read. A paused export reads none,
/// except for its runs and backfills that have begun.
///
/// # Errors
/// Any failure of the store.
pub async fn unread(store: &Store, project: ProjectId) -> Result<Vec<EventBounds>> {
    let ids = ordered(store, Of::Project(project)).await?;
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut unread = Vec::new();
    // In the order in which exports hand on events: unpausing adds a backfill, and schedules
    // and backfills add runs. So an event that is handed on between two reads is found twice,
    // and never missed.
    for export in briefs_of_all(store, &ids).await? {
        let schedule = schedule::find(store, export.id).await?;
        unread.extend(of_schedule(&export, schedule.as_ref()));
    }
    let backfills = backfills::active(store).await?;
    unread.extend(backfills.iter().filter(|own| own.shown.team == project).filter_map(of_backfill));
    let runs = runs::active(store).await?;
    unread.extend(runs.iter().filter(|own| ids.contains(&own.run.batch_export)).map(of_run));
    Ok(unread)
}

fn of_schedule(export: &ExportBrief, schedule: Option<&Schedule>) -> Option<EventBounds> {
    let Some(schedule) = schedule else {
        // The first interval begins before the export was created.
        return (!export.paused).then(|| EventBounds::after(0));
    };
    // Intervals that ended before the pause may still wait for their runs.
    let waits = export.last_paused_at.is_some_and(|since| schedule.last_end < since);
    // After a pause, the next run may go back to its beginning.
    (!export.paused || waits).then(|| EventBounds::after(schedule.before_pause().watermark))
}

fn of_backfill(backfill: &BackfillState) -> Option<EventBounds> {
    let BackfillState { shown, retry_of, plan, next } = backfill;
    let next = next.or(shown.start_at);
    if next.is_some_and(|next| next >= shown.end_at) {
        // All of its runs were created.
        return None;
    }
    let (after, up_to) = plan.map_or((0, u64::MAX), |plan| (plan.after, plan.up_to));
    let time = match retry_of {
        // The run that it repeats may export events of any time.
        Some(_) => TimeRange::ALL,
        None => TimeRange {
            start: next.map_or(i64::MIN, Timestamp::micros),
            end: shown.end_at.micros(),
        },
    };
    Some(EventBounds { after, up_to, time })
}

/// An attempt after a change of the destination begins again, so all events of the run
/// count until it ends.
fn of_run(row: &RunRow) -> EventBounds {
    let time = row.time().unwrap_or(TimeRange::ALL);
    EventBounds { after: row.after, up_to: row.up_to, time }
}
