//! `…/batch_exports/{export_id}/logs/` and `…/runs/{run_id}/logs/`
//! (batch-exports 6.1).

use axum::Json;
use axum::extract::State;
use weir_model::errors::FieldError;
use weir_model::exports::lists::LogQuery;
use weir_model::exports::{LOG_PAGE, LOG_PAGE_MAX, LogLevel, LogLine};
use weir_model::pagination::Envelope;
use weir_model::{RunId, Timestamp, validate};
use weir_service::exports::Within;

use super::ID;
use super::runs::RUN;
use crate::api::events::{time, uuid};
use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{Authorized, InOrganization, InProject, PathParams};
use crate::http::guards::ExportsRead;
use crate::http::pagination::{Filters, Params};

/// Longest text that is searched for, in characters.
const SEARCH_MAX: usize = 200;

filters! {
    /// Which log lines of an export are wanted.
    LogFilters {
        "limit": Number, "Lines at most, 1 to 500. Left out: 50.";
        "after": Time, "Only lines after this time.";
        "before": Time, "Only lines before this time.";
        "level": Text, "Only lines of this level: `DEBUG`, `INFO`, `WARNING` or `ERROR`. Can be given several times, or as a list with commas.";
        "search": Text, "Only lines that contain this, whatever the case of its letters.";
        "instance_id": Uuid, "Only lines of this run.";
    }
}

filters! {
    /// Which log lines of a run are wanted.
    RunLogFilters {
        "limit": Number, "Lines at most, 1 to 500. Left out: 50.";
        "after": Time, "Only lines after this time.";
        "before": Time, "Only lines before this time.";
        "level": Text, "Only lines of this level: `DEBUG`, `INFO`, `WARNING` or `ERROR`. Can be given several times, or as a list with commas.";
        "search": Text, "Only lines that contain this, whatever the case of its letters.";
    }
}

in_both_places! {
    /// What the runs of a batch export wrote into their log, newest first.
    ExportsRead list_batch_export_logs list_project_batch_export_logs
        (path: PathParams, params: Params<LogFilters>) -> Json<Envelope<LogLine>> = of_export;

    /// What a run wrote into its log, newest first.
    ExportsRead list_batch_export_run_logs list_project_batch_export_run_logs
        (path: PathParams, params: Params<RunLogFilters>) -> Json<Envelope<LogLine>> = of_run;
}

async fn of_export(
    app: &App,
    within: Within<'_>,
    path: &PathParams,
    params: &Params<LogFilters>,
) -> ApiResult<Json<Envelope<LogLine>>> {
    let id = path.get(ID)?;
    app.services.exports.get(within, id).await?;
    let name = "instance_id";
    let run = uuid(params.param(name).filter(|text| !text.is_empty()), name)?.map(RunId);
    let lines = app.services.exports.logs(within, id, run, query(params)?).await?;
    Ok(Json(envelope(lines)))
}

async fn of_run(
    app: &App,
    within: Within<'_>,
    path: &PathParams,
    params: &Params<RunLogFilters>,
) -> ApiResult<Json<Envelope<LogLine>>> {
    let (id, run) = (path.get(ID)?, path.get(RUN)?);
    app.services.exports.run(within, id, run).await?;
    let lines = app.services.exports.run_logs(within, id, run, query(params)?).await?;
    Ok(Json(envelope(lines)))
}

/// A list without further pages, as clients know it: older lines are asked for
/// with `before`.
fn envelope(results: Vec<LogLine>) -> Envelope<LogLine> {
    Envelope { count: results.len() as u64, next: None, previous: None, results }
}

fn query<F: Filters>(params: &Params<F>) -> Result<LogQuery, FieldError> {
    let text = |name: &str| params.param(name).filter(|text| !text.is_empty());
    let limit = text("limit").and_then(|text| text.trim().parse::<usize>().ok());
    // The bounds do not belong to what is wanted.
    let beside = |time: Timestamp, micros| Timestamp::from_micros(time.micros() + micros);
    Ok(LogQuery {
        after: time(text("after"), "after")?.map(|after| beside(after, 1)),
        before: time(text("before"), "before")?.map(|before| beside(before, -1)),
        levels: params.words("level").map(level).collect::<Result<_, _>>()?,
        search: text("search").map(|text| text.chars().take(SEARCH_MAX).collect()),
        limit: limit.filter(|limit| *limit > 0).unwrap_or(LOG_PAGE).min(LOG_PAGE_MAX),
    })
}

/// `WARN` and `LOG` are what others call `WARNING` and `INFO`.
fn level(word: &str) -> Result<LogLevel, FieldError> {
    let known = match word.to_ascii_uppercase().as_str() {
        "WARN" => Some(LogLevel::Warning),
        "LOG" => Some(LogLevel::Info),
        word => LogLevel::of(word),
    };
    known.ok_or_else(|| {
        let shown: String = word.chars().take(64).collect();
        validate::invalid_choice("level", &shown)
    })
}
