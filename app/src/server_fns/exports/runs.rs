//! Runs of an export and their log.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use weir_model::exports::{LogLine, Run};

#[cfg(feature = "ssr")]
use crate::context::{enter_organization, notice, redirect_with_notice, ui_error};
use crate::error::UiError;

/// A run in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunRow {
    pub(crate) run: Run,
    /// Number of attempts.
    pub(crate) attempt: u32,
    /// Bytes of the events sent.
    pub(crate) bytes: u64,
    /// Whether it belongs to a backfill.
    pub(crate) of_backfill: bool,
    /// Duration in milliseconds.
    pub(crate) milliseconds: u64,
}

/// A page of runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunList {
    /// The runs, newest first.
    pub(crate) rows: Vec<RunRow>,
    /// Whether older runs exist.
    pub(crate) more: bool,
}

/// A page of log lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogList {
    /// The lines, newest first.
    pub(crate) lines: Vec<LogLine>,
    /// Whether older lines can exist.
    pub(crate) more: bool,
}

/// Lists runs of an export, newest first. Without times, only those of the last seven
/// days.
#[server(prefix = "/_fn", endpoint = "list_export_runs")]
pub(crate) async fn list_export_runs(
    organization: String,
    export: String,
    state: String,
    after: String,
    before: String,
    cursor: String,
) -> Result<RunList, UiError> {
    use weir_model::RunId;
    use weir_model::exports::lists::RunQuery;

    let (services, org) = enter_organization(&organization).await?;
    let cursor = cursor.parse().ok();
    let query = RunQuery { cursor, ..crate::filters::runs(&state, &after, &before) };
    let exports = &services.exports;
    let page = exports.runs((&org).into(), &export, &query).await.map_err(ui_error)?;
    let ids: Vec<RunId> = page.runs.iter().map(|run| run.id).collect();
    let beside = exports.beside_runs((&org).into(), &export, &ids).await.map_err(ui_error)?;
    let row = |run: Run| {
        let beside = beside.iter().find(|beside| beside.id == run.id);
        let end = run.finished_at.unwrap_or(org.ctx.now);
        let micros = end.micros().saturating_sub(run.created_at.micros());
        RunRow {
            attempt: beside.map_or(0, |beside| beside.attempt),
            bytes: beside.map_or(0, |beside| beside.bytes),
            of_backfill: beside.is_some_and(|beside| beside.backfill.is_some()),
            milliseconds: u64::try_from(micros / 1_000).unwrap_or(0),
            run,
        }
    };
    Ok(RunList { rows: page.runs.into_iter().map(row).collect(), more: page.more })
}

/// Exports the range of a run again.
#[server(prefix = "/_fn", endpoint = "retry_export_run")]
pub(crate) async fn retry_export_run(
    organization: String,
    export: String,
    run: String,
) -> Result<(), UiError> {
    let (services, org) = enter_organization(&organization).await?;
    services.exports.retry_run((&org).into(), &export, &run).await.map_err(ui_error)?;
    // The list of newest runs, where the new run will appear.
    let path = format!("/organizations/{organization}/exports/{export}");
    redirect_with_notice(&path, "Weir exports this interval once more, as a backfill of one run.");
    Ok(())
}

/// Cancels a run that has not ended.
#[server(prefix = "/_fn", endpoint = "cancel_export_run")]
pub(crate) async fn cancel_export_run(
    organization: String,
    export: String,
    run: String,
) -> Result<(), UiError> {
    let (services, org) = enter_organization(&organization).await?;
    services.exports.cancel_run((&org).into(), &export, &run).await.map_err(ui_error)?;
    notice("Cancelled the run. Delivered rows stay at the destination.");
    Ok(())
}

/// Lists log lines of an export, newest first, optionally only those before a time.
#[server(prefix = "/_fn", endpoint = "list_export_logs")]
pub(crate) async fn list_export_logs(
    organization: String,
    export: String,
    run: String,
    level: String,
    text: String,
    before: String,
) -> Result<LogList, UiError> {
    use weir_model::Timestamp;
    use weir_model::exports::LOG_PAGE;

    let (services, org) = enter_organization(&organization).await?;
    // The line at this time was on the previous page.
    let before = Timestamp::parse(&before);
    let query = crate::filters::logs(&level, &text, before, LOG_PAGE + 1);
    let exports = &services.exports;
    let mut lines = if run.is_empty() {
        exports.logs((&org).into(), &export, None, query).await
    } else {
        exports.run_logs((&org).into(), &export, &run, query).await
    }
    .map_err(ui_error)?;
    let more = lines.len() > LOG_PAGE;
    lines.truncate(LOG_PAGE);
    Ok(LogList { lines, more })
}
