//! Backfills, divided into intervals that run one after another (EXP-10).
//!
//! What belongs here: the plan of a backfill and its next run. What does not: boundaries
//! of intervals (`weir-schedule`), regular runs (`schedule`).

use weir_model::Timestamp;
use weir_model::exports::Status;
use weir_schedule::{BackfillPlan, COUNTED, Cadence};
use weir_store::events::{EventBounds, TimeRange};
use weir_store::exports::backfills::{self, BackfillState, Plan};
use weir_store::exports::runs::{self, RunRow};
use weir_store::exports::schedule;
use weir_store::exports::{self, ExportBrief};
use weir_store::{Result, events};

use super::Shared;
use super::due::cadence;
use super::schedule::{new_run, newest};

/// Seconds after which acknowledged events are usually readable.
const APPLIED: i64 = 10;

/// Does the next step of a backfill without an active run. That may be a new run.
pub(super) async fn check(
    shared: &Shared,
    export: &ExportBrief,
    backfill: &BackfillState,
) -> Result<Option<RunRow>> {
    let now = shared.services.now();
    let (store, id) = (&shared.store, backfill.shown.id);
    let end = |status| end(shared, export, backfill, status);
    let repeated = match backfill.retry_of {
        None => None,
        Some(run) => match runs::row(store, export.id, run).await? {
            Some(row) => Some(row),
            None => return end(Status::Failed).await,
        },
    };
    let Some(cadence) = cadence(export) else {
        return end(Status::Failed).await;
    };
    let (plan, next) = match (backfill.plan, backfill.next) {
        (Some(plan), Some(next)) => (plan, next),
        // All events that had arrived when the backfill was created belong to it.
        _ if repeated.is_none() && !shared.is_applied(begun(backfill.shown.created_at, now)) => {
            return Ok(None);
        }
        _ => {
            let Some(plan) = plan(shared, export, &cadence, backfill, repeated.as_ref()).await?
            else {
                return end(Status::Completed).await;
            };
            if !backfills::begin(store, export.id, id, plan, now).await? {
                return Ok(None);
            }
            (plan, plan.start)
        }
    };
    let last = backfill.shown.end_at;
    if next >= last {
        return end(Status::Completed).await;
    }
    let (begin, until) = match repeated {
        Some(_) => (next, last),
        None => match bounds(shared, export, &cadence, plan, next, last).await? {
            Some(bounds) => bounds,
            None => return end(Status::Completed).await,
        },
    };
    let run = RunRow {
        after: plan.after,
        up_to: plan.up_to,
        by_time: true,
        backfill: Some(id),
        ..new_run(export, Some(begin), until, now)
    };
    let run = match repeated {
        None => run,
        Some(repeated) => {
            // The repeated run has the same bounds and the same events.
            let mut run = RunRow {
                after: repeated.after,
                up_to: repeated.up_to,
                by_time: repeated.by_time,
                except: repeated.except.clone(),
                ..run
            };
            run.run.data_interval_start = repeated.run.data_interval_start;
            run.run.data_interval_end = repeated.run.data_interval_end;
            run
        }
    };
    let is_added = backfills::add_run_of(store, &run, next, until).await?;
    Ok(is_added.then_some(run))
}

/// The bounds of the next run, which begins at `next` or later: the first part with
/// events. `None` if all remaining parts are empty.
async fn bounds(
    shared: &Shared,
    export: &ExportBrief,
    cadence: &Cadence,
    plan: Plan,
    next: Timestamp,
    last: Timestamp,
) -> Result<Option<(Timestamp, Timestamp)>> {
    let each = plan.each.unwrap_or_else(|| cadence.intervals_per_run(plan.start, last));
    let (_, soon) = cadence.backfill_run(plan.start, each, next, last);
    let time = TimeRange { start: next.micros(), end: last.micros() };
    let wanted = EventBounds { after: plan.after, up_to: plan.up_to, time };
    let found = events::next_time(&shared.store, export.project, wanted, soon.micros()).await?;
    let found = found.map(Timestamp::from_micros);
    Ok(found.map(|found| {
        let (begin, until) = cadence.backfill_run(plan.start, each, found, last);
        (begin.max(next), until)
    }))
}

/// When a backfill was created, or slightly before now if the clock was set back since.
fn begun(created_at: Timestamp, now: Timestamp) -> Timestamp {
    match created_at > now {
        true => now.plus_seconds(-APPLIED),
        false => created_at,
    }
}

async fn end(
    shared: &Shared,
    export: &ExportBrief,
    backfill: &BackfillState,
    status: Status,
) -> Result<Option<RunRow>> {
    let (store, now) = (&shared.store, shared.services.now());
    let id = backfill.shown.id;
    backfills::end(store, export.project, export.id, id, status, now, &[]).await?;
    Ok(None)
}

/// The plan of a backfill. `None` if there is nothing to export.
async fn plan(
    shared: &Shared,
    export: &ExportBrief,
    cadence: &Cadence,
    backfill: &BackfillState,
    repeated: Option<&RunRow>,
) -> Result<Option<Plan>> {
    let (start, end) = (backfill.shown.start_at, backfill.shown.end_at);
    if let Some(repeated) = repeated {
        // A run from the first event on has no start of its own.
        let start = start.unwrap_or_else(|| cadence.start_of(end));
        let (after, up_to) = (repeated.after, repeated.up_to);
        return Ok(Some(Plan { start, total_runs: 1, each: None, after, up_to }));
    }
    let up_to = newest(shared, export.project).await?;
    let after = delivered(shared, export, backfill).await?;
    let time = TimeRange { start: start.map_or(i64::MIN, Timestamp::micros), end: end.micros() };
    let wanted = EventBounds { after, up_to, time };
    let ends = |at: i64| cadence.interval_end(start, Timestamp::from_micros(at)).micros();
    let firsts = events::first_times(&shared.store, export.project, wanted, COUNTED, ends).await?;
    let firsts: Vec<Timestamp> = firsts.into_iter().map(Timestamp::from_micros).collect();
    let planned = cadence.backfill_plan(start, end, &firsts);
    Ok(planned.map(|BackfillPlan { start, each, runs }| Plan {
        start,
        total_runs: runs,
        each: Some(each),
        after,
        up_to,
    }))
}

/// The last arrival number that a backfill after a pause can skip: runs before the pause
/// have exported all events up to it. Other backfills export all events again.
async fn delivered(shared: &Shared, export: &ExportBrief, backfill: &BackfillState) -> Result<u64> {
    let (id, from) = (Some(backfill.shown.id), backfill.shown.start_at);
    // The export may have been unpaused since it was read.
    let export = exports::briefs_of_all(&shared.store, &[export.id]).await?.into_iter().next();
    let pause = export.and_then(|export| export.backfilled.0);
    let Some(from) = from.filter(|_| pause.is_some_and(|pause| pause.is_made_up_by(id))) else {
        return Ok(0);
    };
    let schedule = schedule::find(&shared.store, backfill.shown.batch_export).await?;
    // If a user moved the begin of the pause back, the backfill exports events again too.
    let stop = schedule.map(|schedule| schedule.before_pause());
    Ok(stop.filter(|stop| stop.end <= from).map_or(0, |stop| stop.watermark))
}
