//! `…/batch_exports/{export_id}/runs/` (EXP-26, EXP-27).

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use weir_model::errors::FieldError;
use weir_model::exports::lists::{RunOrder, RunQuery};
use weir_model::exports::{Run, Status};
use weir_model::{BackfillId, validate};
use weir_service::exports::ExportScope;

use super::{ID, cursor};
use crate::api::events::time;
use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{Authorized, InOrganization, InProject, PathParams};
use crate::http::guards::{ExportsRead, ExportsWrite};
use crate::http::pagination::Listing;

/// The path parameter with the id of a run.
pub(super) const RUN: &str = "run_id";

filters! {
    /// Filters for runs, and their order.
    RunFilters {
        "after": Time, "Only runs that were created at this time or later. Default: of the last seven days.";
        "before": Time, "Only runs that were created at this time or before.";
        "start": Time, "In an order by interval, in place of `after`: only runs whose interval begins at this time or later. Default: of the last seven days.";
        "end": Time, "In an order by interval, in place of `before`: only runs whose interval ends at this time or before.";
        "status": Text, "Only runs of this status, such as `Failed`. Can be given several times, or as a list with commas.";
        "ordering": OneOf(&RunOrder::WORDS), "The order: by creation or by interval, with `-` the newest first. Default: `-created_at`.";
        "cursor": Text, "Where the page begins; from `next`.";
    }
}

/// One page of runs.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunList {
    /// Link to the next page; null on the last one.
    pub next: Option<String>,
    /// Always null: pages lead forward only.
    pub previous: Option<String>,
    /// The runs of this page.
    pub results: Vec<Run>,
}

/// The answer to cancelling a run.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct Cancelled {
    /// Always true.
    pub cancelled: bool,
}

/// The backfill that was started.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct StartedBackfill {
    /// Id of the backfill.
    pub backfill_id: BackfillId,
}

below_organization_and_project! {
    /// The runs of a batch export, newest first.
    ExportsRead list_batch_export_runs list_project_batch_export_runs
        (path: PathParams, listing: Listing<RunFilters>) -> Json<RunList> = list;

    /// One run.
    ExportsRead get_batch_export_run get_project_batch_export_run
        (path: PathParams) -> Json<Run> = get;

    /// Cancel a run that has not ended. Delivered data stays at the destination.
    ExportsWrite cancel_batch_export_run cancel_project_batch_export_run
        (path: PathParams) -> Json<Cancelled> = cancel;

    /// Export the interval of a run again, whatever its status: starts a backfill of one
    /// run.
    ExportsWrite retry_batch_export_run retry_project_batch_export_run
        (path: PathParams) -> Json<StartedBackfill> = retry;
}

async fn list(
    app: &App,
    within: ExportScope<'_>,
    path: &PathParams,
    listing: &Listing<RunFilters>,
) -> ApiResult<Json<RunList>> {
    // The export is checked first: a missing export is reported before an invalid page.
    let id = path.get(ID)?;
    app.services.exports.get(within, id).await?;
    let page = app.services.exports.runs(within, id, &query(listing)?).await?;
    let next = page.runs.last().filter(|_| page.more);
    Ok(Json(RunList {
        next: next
            .map(|run| listing.link(&[("cursor", Some(run.id.to_string())), ("offset", None)])),
        previous: None,
        results: page.runs,
    }))
}

fn query(params: &Listing<RunFilters>) -> ApiResult<RunQuery> {
    let page = params.page();
    let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let time = |name: &str| time(params.param(name).filter(|text| !text.is_empty()), name);
    Ok(RunQuery {
        order: params.param("ordering").and_then(RunOrder::of).unwrap_or_default(),
        after: time("after")?,
        before: time("before")?,
        start: time("start")?,
        end: time("end")?,
        statuses: params.words("status").map(status).collect::<Result<_, _>>()?,
        cursor: cursor(params.param("cursor"))?,
        offset: number(page.offset),
        limit: Some(number(page.limit)),
    })
}

fn status(word: &str) -> Result<Status, FieldError> {
    Status::of(word).ok_or_else(|| {
        let shown: String = word.chars().take(64).collect();
        validate::invalid_choice("status", &shown)
    })
}

async fn get(app: &App, within: ExportScope<'_>, path: &PathParams) -> ApiResult<Json<Run>> {
    Ok(Json(app.services.exports.run(within, path.get(ID)?, path.get(RUN)?).await?))
}

async fn cancel(
    app: &App,
    within: ExportScope<'_>,
    path: &PathParams,
) -> ApiResult<Json<Cancelled>> {
    app.services.exports.cancel_run(within, path.get(ID)?, path.get(RUN)?).await?;
    Ok(Json(Cancelled { cancelled: true }))
}

async fn retry(
    app: &App,
    within: ExportScope<'_>,
    path: &PathParams,
) -> ApiResult<Json<StartedBackfill>> {
    let exports = &app.services.exports;
    let backfill_id = exports.retry_run(within, path.get(ID)?, path.get(RUN)?).await?;
    Ok(Json(StartedBackfill { backfill_id }))
}
