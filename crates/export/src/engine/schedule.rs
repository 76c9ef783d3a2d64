//! The runs that the schedule makes.

use weir_model::exports::{Run, Status};
use weir_model::{BackfillId, ProjectId, RunId, Timestamp};
use weir_store::events::{self, Except, TimeStretch};
use weir_store::exports::ExportRow;
use weir_store::exports::backfills::{self, BackfillState};
use weir_store::exports::runs::{self, RunRow};
use weir_store::exports::schedule::{self, Paused, Schedule};
use weir_store::{Error, Result, ids};

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
        tracing::error!(
            export = %export.id, interval = export.interval, zone = ?export.timezone,
            "unknown interval, time zone or offset"
        );
        return Ok(());
    };
    let (store, project) = (&shared.store, export.project);
    let word = || plan.cadence.name();
    for _ in 0..STEPS {
        let before = present.clone();
        let mark = before.as_ref().map_or(0, |before| before.mark);
        let note = match &before {
            Some(before) => note(shared, export, &plan, before).await?,
            None => Note::Known,
        };
        let next = match note {
            Note::Unknown => break,
            Note::New(next) => next,
            Note::Known => {
                let due = plan.due(before.as_ref(), now);
                // The mark of an end is known once everything before it can be read.
                if let Due::Begin(end) | Due::Skip(end) | Due::Pause(end) | Due::Run { end, .. } =
                    due
                    && !shared.is_applied(end)
                {
                    break;
                }
                match due {
                    Due::Nothing => break,
                    Due::Begin(end) => {
                        let mark = received_before(shared, project, end).await?;
                        Schedule::new(end, mark, word())
                    }
                    Due::Change(end) => match before.clone() {
                        Some(before) => Schedule { last_end: end, interval: word(), ..before },
                        None => break,
                    },
                    Due::Skip(end) => {
                        let Some(before) = before.clone() else { break };
                        let mark = mark.max(received_before(shared, project, end).await?);
                        let left = still_left(&before, end, mark);
                        Schedule { last_end: end, mark, paused: None, left, ..before }
                    }
                    Due::Pause(end) => {
                        let Some(before) = before.clone() else { break };
                        let mark = mark.max(received_before(shared, project, end).await?);
                        let paused = Some(before.begun());
                        Schedule { last_end: end, mark, paused, ..before }
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

/// The run of an interval, and the schedule behind it.
async fn run(
    shared: &Shared,
    export: &ExportRow,
    before: &Schedule,
    start: Timestamp,
    end: Timestamp,
) -> Result<(RunRow, Schedule)> {
    // What a backfill makes up for is passed over one by one, not as a whole.
    let after = if before.left.is_empty() { before.mark } else { before.begun().mark };
    let up_to = before.mark.max(at(shared, export.project, end).await?);
    let run = RunRow {
        after,
        up_to,
        except: before.left.clone(),
        ..new_run(export, Some(start), end, shared.host.now())
    };
    let left = still_left(before, end, up_to);
    let next = Schedule { last_end: end, mark: up_to, paused: None, left, ..before.clone() };
    Ok((run, next))
}

/// What runs leave to backfills behind an interval, up to whose arrival number all is
/// dealt with. One before the pause may have waited for its run, and a backfill that
/// was planned late takes what arrived later, too.
fn still_left(before: &Schedule, end: Timestamp, up_to: u64) -> Vec<Except> {
    let mut left = before.left.clone();
    left.retain(|except| except.time.end > end.micros() || except.up_to > up_to);
    left
}

/// Whether a schedule knows what the backfill takes that makes up for a pause.
enum Note {
    /// There is none, or it does.
    Known,
    /// The backfill is not planned yet.
    Unknown,
    /// The schedule with it.
    New(Schedule),
}

/// Notes what the next run leaves to the backfill that makes up for a pause. It goes
/// by the time of events: what arrived in the pause and is of another time comes with
/// that run, and both go by the same numbers, so that nothing comes twice.
async fn note(shared: &Shared, export: &ExportRow, plan: &Plan, before: &Schedule) -> Result<Note> {
    let new = plan.backfilled.and_then(|pause| Some((pause, pause.backfill?)));
    let Some((pause, id)) = new.filter(|(_, id)| before.noted != Some(*id)) else {
        return Ok(Note::Known);
    };
    let mut next = Schedule { noted: Some(id), ..before.clone() };
    // The pause before may have been made up for a moment earlier.
    let missed = pause.earlier.filter(|earlier| before.noted != Some(*earlier));
    for id in missed.into_iter().chain([id]) {
        match taken(shared, export, id).await? {
            Taken::Unknown => return Ok(Note::Unknown),
            Taken::Nothing => {}
            Taken::This(except) => {
                if let Some(earlier) = next.paused
                    && earlier.end.micros() < except.time.start
                    && next.left.is_empty()
                {
                    // What came in a pause that nothing makes up for is left out.
                    let from = Timestamp::from_micros(except.time.start);
                    let mark = received_before(shared, export.project, from).await?;
                    next.paused = Some(Paused { end: from, mark: earlier.mark.max(mark) });
                }
                next.left.push(except);
            }
        }
    }
    Ok(Note::New(next))
}

/// What a backfill that makes up for a pause takes.
enum Taken {
    /// It is not planned yet.
    Unknown,
    /// Nobody wants it any more: what was missed is left out.
    Nothing,
    /// This.
    This(Except),
}

async fn taken(shared: &Shared, export: &ExportRow, id: BackfillId) -> Result<Taken> {
    let found = backfills::find_state(&shared.store, export.project, export.id, id).await;
    let found = match found {
        Ok(found) => found,
        Err(error @ Error::Shape { .. }) => {
            // It must not hold up the schedule for ever.
            tracing::error!(backfill = %id, %error, "a backfill cannot be read");
            None
        }
        Err(error) => return Err(error),
    };
    let Some(BackfillState { shown, plan, .. }) = found else { return Ok(Taken::Nothing) };
    let up_to = match (shown.status, plan) {
        (_, Some(plan)) => plan.up_to,
        (status, None) if status.is_active() => return Ok(Taken::Unknown),
        // There was nothing of that time.
        (Status::Completed, None) => 0,
        (_, None) => return Ok(Taken::Nothing),
    };
    let start = shown.start_at.map_or(i64::MIN, Timestamp::micros);
    let time = TimeStretch { start, end: shown.end_at.micros() };
    Ok(Taken::This(Except { up_to, time }))
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
        failing_since: None,
        next_try_at: None,
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
