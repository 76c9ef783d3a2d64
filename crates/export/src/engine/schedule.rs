//! The runs that the schedule creates.
//!
//! What belongs here: the range of arrival numbers of each run, and what runs leave to
//! backfills. What does not: which interval is due (`due`).

use weir_model::exports::{Run, Status};
use weir_model::{BackfillId, ProjectId, RunId, Timestamp};
use weir_store::events::{self, Except, TimeRange};
use weir_store::exports::ExportBrief;
use weir_store::exports::backfills::{self, BackfillState};
use weir_store::exports::runs::{self, RunRow};
use weir_store::exports::schedule::{self, Paused, Schedule};
use weir_store::{Error, Result, ids};

use super::Shared;
use super::due::{Due, Plan};

/// Upper bound of steps for the schedule of one export per poll.
const STEPS: usize = 100;
/// Seconds after a boundary during which the newest arrival number still counts for it.
/// Later, the times of receipt decide.
const LATE: i64 = 30;

/// One poll of an export's schedule.
pub(super) struct Check<'a> {
    pub(super) shared: &'a Shared,
    pub(super) export: &'a ExportBrief,
    /// Not later than the time at which the export was read.
    pub(super) now: Timestamp,
    /// Number of runs that it may create.
    pub(super) room: usize,
}

/// Does all due steps. `made` has the created runs, also after an error.
pub(super) async fn check(
    check: Check<'_>,
    mut present: Option<Schedule>,
    made: &mut Vec<RunRow>,
) -> Result<()> {
    let Check { shared, export, now, room } = check;
    let Some(plan) = Plan::of(export, shared.settings.jitter, shared.services.now()) else {
        tracing::error!(
            export = %export.id, interval = export.interval, zone = ?export.timezone,
            "unknown interval, time zone or offset"
        );
        return Ok(());
    };
    let (store, project) = (&shared.store, export.project);
    let cadence = || plan.cadence.name();
    for _ in 0..STEPS {
        let before = present.clone();
        let watermark = before.as_ref().map_or(0, |before| before.watermark);
        let note = match &before {
            Some(before) => note(shared, export, &plan, before).await?,
            None => Note::Unneeded,
        };
        let next = match note {
            Note::Unplanned => break,
            Note::New(next) => next,
            Note::Unneeded => {
                let due = plan.due(before.as_ref(), now);
                // The watermark of an end is known when everything before it is readable.
                if let Due::Begin(end) | Due::Skip(end) | Due::Pause(end) | Due::Run { end, .. } =
                    due
                    && !shared.is_applied(end)
                {
                    break;
                }
                match due {
                    Due::Nothing => break,
                    Due::Begin(end) => {
                        let watermark = received_before(shared, project, end).await?;
                        Schedule::new(end, watermark, cadence())
                    }
                    Due::Change(end) => match before.clone() {
                        Some(before) => Schedule { last_end: end, cadence: cadence(), ..before },
                        None => break,
                    },
                    Due::Skip(end) => {
                        let Some(before) = before.clone() else { break };
                        let watermark = watermark.max(received_before(shared, project, end).await?);
                        let left_to_backfills = still_left(&before, end, watermark);
                        Schedule {
                            last_end: end,
                            watermark,
                            paused: None,
                            left_to_backfills,
                            ..before
                        }
                    }
                    Due::Pause(end) => {
                        let Some(before) = before.clone() else { break };
                        let watermark = watermark.max(received_before(shared, project, end).await?);
                        let paused = Some(before.before_pause());
                        Schedule { last_end: end, watermark, paused, ..before }
                    }
                    Due::Run { start, end } => {
                        let Some(before) = before.as_ref().filter(|_| made.len() < room) else {
                            break;
                        };
                        let (run, next) = run(shared, export, before, start, end).await?;
                        if !runs::create(store, &run, before, &next).await? {
                            break;
                        }
                        made.push(run);
                        present = Some(next);
                        continue;
                    }
                }
            }
        };
        if !schedule::advance(store, export.id, before.as_ref(), &next).await? {
            break;
        }
        present = Some(next);
    }
    Ok(())
}

/// The run of an interval, and the state of the schedule after it.
async fn run(
    shared: &Shared,
    export: &ExportBrief,
    before: &Schedule,
    start: Timestamp,
    end: Timestamp,
) -> Result<(RunRow, Schedule)> {
    // The range of a backfill is skipped event by event, not as a whole.
    let after = if before.left_to_backfills.is_empty() {
        before.watermark
    } else {
        before.before_pause().watermark
    };
    let up_to = before.watermark.max(at(shared, export.project, end).await?);
    let run = RunRow {
        after,
        up_to,
        except: before.left_to_backfills.clone(),
        ..new_run(export, Some(start), end, shared.services.now())
    };
    let left_to_backfills = still_left(before, end, up_to);
    let next = Schedule {
        last_end: end,
        watermark: up_to,
        paused: None,
        left_to_backfills,
        ..before.clone()
    };
    Ok((run, next))
}

/// The ranges that runs after this interval still leave to backfills. All events up to
/// the arrival number `up_to` are settled. An interval before the pause may have waited
/// for its run, and a backfill that was planned late has later arrivals too.
fn still_left(before: &Schedule, end: Timestamp, up_to: u64) -> Vec<Except> {
    let mut left = before.left_to_backfills.clone();
    left.retain(|except| except.time.end > end.micros() || except.up_to > up_to);
    left
}

/// Whether a schedule knows the range of the backfill for a pause.
enum Note {
    /// There is no such backfill, or the schedule knows its range.
    Unneeded,
    /// The backfill is not planned yet.
    Unplanned,
    /// The schedule with the range.
    New(Schedule),
}

/// Records the range that the coming runs leave to the backfill for a pause. The backfill
/// selects by event time. Events that arrived in the pause and have another time come
/// with the next run. Both use the same range, so no event comes twice.
async fn note(
    shared: &Shared,
    export: &ExportBrief,
    plan: &Plan,
    before: &Schedule,
) -> Result<Note> {
    let new = plan.backfilled.and_then(|pause| Some((pause, pause.backfill?)));
    let Some((pause, id)) = new.filter(|(_, id)| before.newest_backfill != Some(*id)) else {
        return Ok(Note::Unneeded);
    };
    let mut next = Schedule { newest_backfill: Some(id), ..before.clone() };
    // The previous pause may have got its backfill a moment earlier.
    let missed = pause.earlier.filter(|earlier| before.newest_backfill != Some(*earlier));
    for id in missed.into_iter().chain([id]) {
        match taken(shared, export, id).await? {
            BackfilledRange::Unknown => return Ok(Note::Unplanned),
            BackfilledRange::Nothing => {}
            BackfilledRange::This(except) => {
                if let Some(earlier) = next.paused
                    && earlier.end.micros() < except.time.start
                    && next.left_to_backfills.is_empty()
                {
                    // Events that arrived in a pause without a backfill are skipped.
                    let from = Timestamp::from_micros(except.time.start);
                    let watermark = received_before(shared, export.project, from).await?;
                    next.paused =
                        Some(Paused { end: from, watermark: earlier.watermark.max(watermark) });
                }
                next.left_to_backfills.push(except);
            }
        }
    }
    Ok(Note::New(next))
}

/// The range that the backfill for a pause exports.
enum BackfilledRange {
    /// The backfill is not planned yet.
    Unknown,
    /// The backfill was cancelled or removed: the missed events are skipped.
    Nothing,
    /// This range.
    This(Except),
}

async fn taken(shared: &Shared, export: &ExportBrief, id: BackfillId) -> Result<BackfilledRange> {
    let found = backfills::find_state(&shared.store, export.project, export.id, id).await;
    let found = match found {
        Ok(found) => found,
        Err(error @ Error::Shape { .. }) => {
            // An error must not block the schedule forever.
            tracing::error!(backfill = %id, %error, "a backfill cannot be read");
            None
        }
        Err(error) => return Err(error),
    };
    let Some(BackfillState { shown, plan, .. }) = found else {
        return Ok(BackfilledRange::Nothing);
    };
    let up_to = match (shown.status, plan) {
        (_, Some(plan)) => plan.up_to,
        (status, None) if status.is_active() => return Ok(BackfilledRange::Unknown),
        // There were no events of that time.
        (Status::Completed, None) => 0,
        (_, None) => return Ok(BackfilledRange::Nothing),
    };
    let start = shown.start_at.map_or(i64::MIN, Timestamp::micros);
    let time = TimeRange { start, end: shown.end_at.micros() };
    Ok(BackfilledRange::This(Except { up_to, time }))
}

/// A run that has not begun, without a range.
pub(super) fn new_run(
    export: &ExportBrief,
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
        failing_since: None,
        next_try_at: None,
    })
}

/// The last arrival number of the run that ends at this time. Shortly after the end, all
/// present events count for it, so no block has to be read.
async fn at(shared: &Shared, project: ProjectId, end: Timestamp) -> Result<u64> {
    let now = shared.services.now();
    if now >= end && now <= end.plus_seconds(LATE) {
        return newest(shared, project).await;
    }
    received_before(shared, project, end).await
}

/// The last arrival number before the events that were received at this time or later. If
/// the interval that ends has no run, later events must not count for it.
async fn received_before(shared: &Shared, project: ProjectId, end: Timestamp) -> Result<u64> {
    events::last_before(&shared.store, project, end).await
}

/// The newest arrival number of a project. All events with lower numbers are readable
/// when the events acknowledged by then are applied.
pub(super) async fn newest(shared: &Shared, project: ProjectId) -> Result<u64> {
    let heads = events::heads(&shared.store, project).await?;
    let last = heads.values().filter(|head| head.count > 0).map(|head| head.last).max();
    Ok(last.and_then(|last| u64::try_from(last).ok()).unwrap_or(0))
}
