//! Runs of an export: the list, one run, cancelling one, exporting one again (EXP-25,
//! EXP-27).
//!
//! What belongs here: which runs a list has, and which changes of a run are allowed.
//! What does not: starting and executing runs (`weir-export`).

use weir_model::activity::{AuditAction, Entry};
use weir_model::errors::FieldError;
use weir_model::exports::lists::{RUN_DAYS, RUN_PAGE, RunOrder, RunPage, RunQuery};
use weir_model::exports::{Run, Status};
use weir_model::{BackfillId, RunId, Timestamp};
use weir_store::exports::ExportRow;
use weir_store::exports::runs::{self as rows, Runs};

use super::change::{ExportChange, audit_entry};
use super::{ExportScope, Exports};
use crate::activity::Changes;
use crate::error::{Error, NOT_FOUND};
use crate::policy::{self, Action};
use crate::{Core, Result};

const DAY_SECONDS: i64 = 24 * 60 * 60;
/// How many runs one query reads when a filter skips some of them.
const CONCURRENT: usize = 1_000;
/// The maximum number of runs that are read for an order other than newest first.
const SORTED_MAX: usize = 50_000;
/// The message for cancelling a run or backfill that has ended.
pub(super) const ENDED: &str = "Only what is starting or running can be cancelled.";

/// Facts about a run that pages show and the API does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunBeside {
    /// The run.
    pub id: RunId,
    /// How many attempts it had.
    pub attempt: u32,
    /// The bytes of the events that it has sent.
    pub bytes: u64,
    /// The backfill of the run, if it belongs to one.
    pub backfill: Option<BackfillId>,
}

impl Exports {
    /// These facts about runs of an export. Deleted runs are skipped.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn beside_runs(
        &self,
        within: ExportScope<'_>,
        export: &str,
        runs: &[RunId],
    ) -> Result<Vec<RunBeside>> {
        policy::check(within.org, Action::ReadExports)?;
        let row = self.find(within, export).await?;
        let found = rows::stored(&self.core.store, row.id, runs).await?;
        let beside = |row: rows::RunRow| RunBeside {
            id: row.run.id,
            attempt: row.attempt,
            bytes: row.bytes,
            backfill: row.backfill,
        };
        Ok(found.into_iter().map(beside).collect())
    }

    /// A page of the runs of an export. Without a start in the query: the runs of the
    /// last seven days. In an order other than newest first, only the newest fifty
    /// thousand of them are read.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn runs(
        &self,
        within: ExportScope<'_>,
        export: &str,
        query: &RunQuery,
    ) -> Result<RunPage> {
        policy::check(within.org, Action::ReadExports)?;
        let row = self.find(within, export).await?;
        let week_ago = within.org.ctx.now.plus_seconds(-RUN_DAYS * DAY_SECONDS);
        let mut runs = match query.order {
            RunOrder::NewestFirst => newest(&self.core, &row, query, week_ago).await?,
            _ => ordered(&self.core, &row, query, week_ago).await?,
        };
        let limit = query.limit.unwrap_or(RUN_PAGE);
        let more = runs.len() > limit;
        runs.truncate(limit);
        Ok(RunPage { runs, more })
    }

    /// One run.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn run(&self, within: ExportScope<'_>, export: &str, run: &str) -> Result<Run> {
        policy::check(within.org, Action::ReadExports)?;
        let row = self.find(within, export).await?;
        self.find_run(&row, run).await
    }

    /// Cancels an active run. Data that it has delivered stays delivered.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`]; [`Error::Invalid`] when it
    /// has ended.
    pub async fn cancel_run(&self, within: ExportScope<'_>, export: &str, run: &str) -> Result<()> {
        policy::check(within.org, Action::WriteExports)?;
        let row = self.find(within, export).await?;
        let run = self.find_run(&row, run).await?;
        let (store, now) = (&self.core.store, within.org.ctx.now);
        let cancelled = [cancelled(within, &row, &run)];
        if !run.status.is_active()
            || !rows::request_cancel(store, row.id, run.id, now, &cancelled).await?
        {
            return Err(ended());
        }
        Ok(())
    }

    /// Exports the interval of a run again, in any status of the run, as a backfill of
    /// one run.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`]; [`Error::TooMany`] when the
    /// project has too many backfills.
    pub async fn retry_run(
        &self,
        within: ExportScope<'_>,
        export: &str,
        run: &str,
    ) -> Result<BackfillId> {
        policy::check(within.org, Action::WriteExports)?;
        let row = self.find(within, export).await?;
        let run = self.find_run(&row, run).await?;
        let changed = self.change(within, row.id, &ExportChange::Again(Box::new(run))).await?;
        changed
            .backfill_id
            .ok_or_else(|| Error::Internal("a run was retried without a backfill".to_owned()))
    }

    /// The run of this id.
    pub(super) async fn find_run(&self, export: &ExportRow, run: &str) -> Result<Run> {
        let missing = || Error::NotFound(NOT_FOUND);
        let id = parse_id(run).ok_or_else(missing)?;
        rows::find(&self.core.store, export.id, id).await?.ok_or_else(missing)
    }
}

/// The refusal to cancel a run or backfill that has ended.
pub(super) fn ended() -> Error {
    FieldError::body("invalid_input", ENDED).into()
}

/// The id in a path. Only its usual written form is accepted.
fn parse_id(text: &str) -> Option<RunId> {
    let id: RunId = text.parse().ok()?;
    text.eq_ignore_ascii_case(&id.to_string()).then_some(id)
}

fn cancelled(within: ExportScope<'_>, row: &ExportRow, run: &Run) -> Entry {
    let changes = Changes::none().field("run", &None, &Some(run.id)).field(
        "run_status",
        &Some(run.status),
        &Some(Status::Cancelled),
    );
    audit_entry(within, row, AuditAction::Updated, changes)
}

/// The runs of the page and one more, in the order of the table.
async fn newest(
    core: &Core,
    row: &ExportRow,
    query: &RunQuery,
    week_ago: Timestamp,
) -> Result<Vec<Run>> {
    let page = query.limit.unwrap_or(RUN_PAGE) + 1;
    let all_of_them = query.statuses.is_empty() && query.offset == 0;
    let limit = if all_of_them { page } else { CONCURRENT };
    let mut wanted = Runs {
        after: Some(query.after.unwrap_or(week_ago)),
        before: query.before,
        cursor: query.cursor,
        limit,
    };
    let (mut kept, mut passed) = (Vec::new(), 0);
    while kept.len() < page {
        let some = rows::page(&core.store, row.id, wanted).await?;
        let is_last = some.len() < limit;
        wanted.cursor = some.last().map(|run| run.id).or(wanted.cursor);
        let mut wanted_ones = some.into_iter().filter(|run| has_status(query, run));
        passed += wanted_ones.by_ref().take(query.offset - passed).count();
        kept.extend(wanted_ones);
        if is_last {
            break;
        }
    }
    Ok(kept)
}

/// The runs of the page and one more, in another order.
async fn ordered(
    core: &Core,
    row: &ExportRow,
    query: &RunQuery,
    week_ago: Timestamp,
) -> Result<Vec<Run>> {
    let by_interval = query.order.is_of_intervals();
    let start = query.start.unwrap_or(week_ago);
    // A run is never created before its interval has begun.
    let after = if by_interval { start } else { query.after.unwrap_or(week_ago) };
    let before = if by_interval { None } else { query.before };
    let mut wanted = Runs { after: Some(after), before, cursor: None, limit: CONCURRENT };
    let mut all = Vec::new();
    while all.len() < SORTED_MAX {
        let some = rows::page(&core.store, row.id, wanted).await?;
        let is_last = some.len() < CONCURRENT;
        wanted.cursor = some.last().map(|run| run.id);
        all.extend(some);
        if is_last {
            break;
        }
    }
    if by_interval {
        all.retain(|run| {
            run.data_interval_start.is_some_and(|begin| begin >= start)
                && query.end.is_none_or(|end| run.data_interval_end <= end)
        });
    }
    match query.order {
        RunOrder::NewestFirst => {}
        RunOrder::OldestFirst => all.reverse(),
        RunOrder::EarliestInterval => all.sort_by_key(|run| (run.data_interval_start, run.id)),
        RunOrder::LatestInterval => {
            all.sort_by_key(|run| std::cmp::Reverse((run.data_interval_start, run.id)));
        }
    }
    let passed = match query.cursor {
        None => 0,
        Some(cursor) => all.iter().position(|run| run.id == cursor).map_or(all.len(), |at| at + 1),
    };
    let rest = all.into_iter().skip(passed).filter(|run| has_status(query, run));
    Ok(rest.skip(query.offset).take(query.limit.unwrap_or(RUN_PAGE) + 1).collect())
}

fn has_status(query: &RunQuery, run: &Run) -> bool {
    query.statuses.is_empty() || query.statuses.contains(&run.status)
}
