//! `…/batch_exports/{export_id}/logs/` and `…/runs/{run_id}/logs/` (EXP-26).

use axum::Json;
use axum::extract::State;
use weir_model::errors::FieldError;
use weir_model::exports::lists::LogQuery;
use weir_model::exports::{LOG_PAGE, LOG_PAGE_MAX, LogLevel, LogLine};
use weir_model::pagination::Envelope;
use weir_model::{RunId, Timestamp, validate};
use weir_service::exports::ExportScope;

use super::ID;
use super::runs::RUN;
use crate::api::events::{time, uuid};
use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{Authorized, InOrganization, InProject, PathParams};
use crate::http::guards::ExportsRead;
use crate::http::pagination::{Filters, Params};

/// Longest search text, in characters.
const SEARCH_MAX: usize = 200;

filters! {
    /// Filters for the log lines of an export.
    LogFilters {
        "limit": Number, "Lines at most, 1 to 1,000. Default: 50.";
        "offset": Number, "Lines to pass over. Default: 0.";
        "after": Time, "Only lines after this time.";
        "before": Time, "Only lines before this time.";
        "level": Text, "Only lines of this level: `DEBUG`, `INFO`, `WARNING` or `ERROR`. Can be given several times, or as a list with commas.";
        "search": Text, "Only lines that contain this, whatever the case of its letters.";
        "instance_id": Uuid, "Only lines of this run.";
    }
}

filters! {
    /// Filters for the log lines of a run.
    RunLogFilters {
        "limit": Number, "Lines at most, 1 to 1,000. Default: 50.";
        "offset": Number, "Lines to pass over. Default: 0.";
        "after": Time, "Only lines after this time.";
        "before": Time, "Only lines before this time.";
        "level": Text, "Only lines of this level: `DEBUG`, `INFO`, `WARNING` or `ERROR`. Can be given several times, or as a list with commas.";
        "search": Text, "Only lines that contain this, whatever the case of its letters.";
    }
}

below_organization_and_project! {
    /// The log lines of all runs of a batch export, newest first.
    ExportsRead list_batch_export_logs list_project_batch_export_logs
        (path: PathParams, params: Params<LogFilters>) -> Json<Envelope<LogLine>> = of_export;

    /// The log lines of a run, newest first.
    ExportsRead list_batch_export_run_logs list_project_batch_export_run_logs
        (path: PathParams, params: Params<RunLogFilters>) -> Json<Envelope<LogLine>> = of_run;
}

async fn of_export(
    app: &App,
    within: ExportScope<'_>,
    path: &PathParams,
    params: &Params<LogFilters>,
) -> ApiResult<Json<Envelope<LogLine>>> {
    let id = path.get(ID)?;
    app.services.exports.get(within, id).await?;
    let name = "instance_id";
    let run = uuid(params.param(name).filter(|text| !text.is_empty()), name)?.map(RunId);
    let query = query(params)?;
    let lines = app.services.exports.logs(within, id, run, and_one(&query)).await?;
    Ok(Json(envelope(params, &query, lines)))
}

async fn of_run(
    app: &App,
    within: ExportScope<'_>,
    path: &PathParams,
    params: &Params<RunLogFilters>,
) -> ApiResult<Json<Envelope<LogLine>>> {
    let (id, run) = (path.get(ID)?, path.get(RUN)?);
    app.services.exports.run(within, id, run).await?;
    let query = query(params)?;
    let lines = app.services.exports.run_logs(within, id, run, and_one(&query)).await?;
    Ok(Json(envelope(params, &query, lines)))
}

/// Reads one line more than the page has, to know whether there is another page.
fn and_one(query: &LogQuery) -> LogQuery {
    LogQuery { limit: query.limit + 1, ..query.clone() }
}

/// Lines are not counted: `count` is the number of lines up to the end of this page, plus
/// one if there are more. The next page begins at an offset among the lines that are not
/// newer than the first line here. So lines that are written in the meantime do not move
/// it.
fn envelope<F: Filters>(
    params: &Params<F>,
    query: &LogQuery,
    mut results: Vec<LogLine>,
) -> Envelope<LogLine> {
    let count = (query.offset + results.len()) as u64;
    let more = results.len() > query.limit;
    results.truncate(query.limit);
    let newest = results.first().map(|line| beside(line.timestamp, 1));
    let next = newest.filter(|_| more).map(|newest| {
        let mut changes = vec![
            ("limit", Some(query.limit.to_string())),
            ("offset", Some((query.offset + query.limit).to_string())),
        ];
        if query.before.is_none() && query.offset == 0 {
            changes.push(("before", Some(newest.to_string())));
        }
        params.link(&changes)
    });
    Envelope { count, next, previous: None, results }
}

/// The time this many microseconds later.
fn beside(time: Timestamp, micros: i64) -> Timestamp {
    Timestamp::from_micros(time.micros().saturating_add(micros))
}

fn query<F: Filters>(params: &Params<F>) -> Result<LogQuery, FieldError> {
    let text = |name: &str| params.param(name).filter(|text| !text.is_empty());
    let limit = text("limit").and_then(|text| text.trim().parse::<usize>().ok());
    let offset = text("offset").and_then(|text| text.trim().parse::<usize>().ok());
    Ok(LogQuery {
        // The bounds themselves are excluded.
        after: time(text("after"), "after")?.map(|after| beside(after, 1)),
        before: time(text("before"), "before")?.map(|before| beside(before, -1)),
        levels: params.words("level").map(level).collect::<Result<_, _>>()?,
        search: text("search").map(|text| text.chars().take(SEARCH_MAX).collect()),
        offset: offset.unwrap_or(0).min(1_000_000_000),
        limit: limit.filter(|limit| *limit > 0).unwrap_or(LOG_PAGE).min(LOG_PAGE_MAX),
    })
}

/// `WARN` and `LOG` are accepted for `WARNING` and `INFO`.
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
