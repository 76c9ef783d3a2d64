//! The runs that the schedule makes.

use weir_model::exports::{Run, Status};
use weir_model::{ProjectId, RunId, Timestamp};
use weir_store::exports::ExportRow;
use weir_store::exports::runs::{self, RunRow};
use weir_store::exports::schedule::{self, Schedule};
use weir_store::{Result, events, ids};

use super::Shared;
use super::due::{Due, Plan};

/// Steps of one export's schedule at one look.
const STEPS: usize = 100;
/// Seconds after a boundary at which the newest arrival still counts for it. Later
/// the time at which events were received decides.
const LATE: i64 = 30;

/// A look at an export's schedule.
pub(super) struct Look<'a> {
    pub(super) shared: &'a Shared,
    pub(super) export: &'a ExportRow,
    /// Not later than the export was read.
    pub(super) now: Timestamp,
    /// Runs that it may make.
    pub(super) room: usize,
}

/// Does what is due. The runs that it made are in `made`, also when a fault ends it.
pub(super) async fn look(
    look: Look<'_>,
    mut present: Option<Schedule>,
    made: &mut Vec<RunRow>,
) -> Result<()> {
    let Look { shared, export, now, room } = look;
    let Some(plan) = Plan::of(export, shared.settings.jitter, shared.host.now()) else {
        tracing::error!(export = %export.id, interval = export.interval, "unknown interval");
        return Ok(());
    };
    let (store, project) = (&shared.store, export.project);
    let word = || plan.interval.text().to_owned();
    for _ in 0..STEPS {
        let before = present.clone();
        let mark = before.as_ref().map_or(0, |before| before.mark);
        let due = plan.due(before.as_ref(), now);
        // The mark of an end is known once everything before it can be read.
        if let Due::Begin(end) | Due::Skip(end) | Due::Run { end, .. } = due
            && !shared.is_applied(end)
        {
            break;
        }
        let next = match due {
            Due::Nothing => break,
            Due::Begin(end) => {
                let mark = received_before(shared, project, end).await?;
                Schedule { last_end: end, mark, interval: word() }
            }
            Due::Change(end) => Schedule { last_end: end, mark, interval: word() },
            Due::Skip(end) => {
                let mark = mark.max(received_before(shared, project, end).await?);
                Schedule { last_end: end, mark, interval: word() }
            }
            Due::Run { start, end } => {
                let Some(before) = before.as_ref().filter(|_| made.len() < room) else {
                    break;
                };
                let up_to = mark.max(at(shared, project, end).await?);
                let next = Schedule { last_end: end, mark: up_to, interval: word() };
                let run = RunRow {
                    after: mark,
                    up_to,
                    ..new_run(export, Some(start), end, shared.host.now())
                };
                if !runs::create(store, &run, before, &next).await? {
                    break;
                }
                made.push(run);
                present = Some(next);
                continue;
            }
        };
        if !schedule::advance(store, export.id, before.as_ref(), &next).await? {
            break;
        }
        present = Some(next);
    }
    Ok(())
}

/// A run that has not begun and exports nothing yet.
pub(super) fn new_run(
    export: &ExportRow,
    start: Option<Timestamp>,
    end: Timestamp,
    now: Timestamp,
) -> RunRow {
    RunRow::new(Run {
        id: RunId(ids::time_ordered(now)),
        status: Status::Starting,
        records_completed: None,
        latest_error: None,
        data_interval_start: start,
        data_interval_end: end,
        cursor: None,
        created_at: now,
        finished_at: None,
        last_updated_at: now,
        records_total_count: None,
        batch_export: export.id,
    })
}

/// The last arrival number of the run that ends at this time. A moment later
/// everything that is there counts for it: no block has to be looked into.
async fn at(shared: &Shared, project: ProjectId, end: Timestamp) -> Result<u64> {
    let now = shared.host.now();
    if now >= end && now <= end.plus_seconds(LATE) {
        return newest(shared, project).await;
    }
    received_before(shared, project, end).await
}

/// The last arrival number before what was received at this time or later. Where
/// the interval that ends has no run, nothing later may count for it.
async fn received_before(shared: &Shared, project: ProjectId, end: Timestamp) -> Result<u64> {
    events::last_before(&shared.store, project, end).await
}

/// The newest arrival number of a project. What has a lower one can be read once
/// everything that is acknowledged by then is applied.
pub(super) async fn newest(shared: &Shared, project: ProjectId) -> Result<u64> {
    let heads = events::heads(&shared.store, project).await?;
    let last = heads.values().filter(|head| head.count > 0).map(|head| head.last).max();
    Ok(last.and_then(|last| u64::try_from(last).ok()).unwrap_or(0))
}
