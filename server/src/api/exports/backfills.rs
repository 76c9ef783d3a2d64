//! `…/batch_exports/{export_id}/backfills/` (EXP-10, EXP-24). `backfill/` also starts
//! one, with the body that existing clients send.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use weir_model::exports::{Backfill, BackfillInput};
use weir_service::exports::ExportScope;

use super::runs::{Cancelled, StartedBackfill};
use super::{ID, cursor};
use crate::api::Created;
use crate::app::App;
use crate::filters;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{ApiJson, Authorized, InOrganization, InProject, PathParams};
use crate::http::guards::{ExportsRead, ExportsWrite};
use crate::http::pagination::Listing;

/// The path parameter with the id of a backfill.
const BACKFILL: &str = "backfill_id";

filters! {
    /// Filters for backfills.
    BackfillFilters, pages of 50 {
        "cursor": Text, "Where the page begins; from `next`.";
    }
}

/// One page of backfills.
#[derive(Debug, Serialize, ToSchema)]
pub struct BackfillList {
    /// Link to the next page; null on the last one.
    pub next: Option<String>,
    /// Always null: pages lead forward only.
    pub previous: Option<String>,
    /// The backfills of this page.
    pub results: Vec<Backfill>,
}

below_organization_and_project! {
    /// The backfills of a batch export, newest first.
    ExportsRead list_batch_export_backfills list_project_batch_export_backfills
        (path: PathParams, listing: Listing<BackfillFilters>) -> Json<BackfillList> = list;

    /// Export a range of time again. The export may be paused.
    ExportsWrite create_batch_export_backfill create_project_batch_export_backfill
        (path: PathParams, body: ApiJson<BackfillInput>) -> Created<StartedBackfill> = create;

    /// One backfill.
    ExportsRead get_batch_export_backfill get_project_batch_export_backfill
        (path: PathParams) -> Json<Backfill> = get;

    /// Cancel a backfill that has not ended, together with its runs.
    ExportsWrite cancel_batch_export_backfill cancel_project_batch_export_backfill
        (path: PathParams) -> Json<Cancelled> = cancel;
}

async fn list(
    app: &App,
    within: ExportScope<'_>,
    path: &PathParams,
    listing: &Listing<BackfillFilters>,
) -> ApiResult<Json<BackfillList>> {
    let id = path.get(ID)?;
    app.services.exports.get(within, id).await?;
    let cursor = cursor(listing.param("cursor"))?;
    let page = app.services.exports.backfills(within, id, cursor, listing.page()).await?;
    let next = page.backfills.last().filter(|_| page.more);
    Ok(Json(BackfillList {
        next: next.map(|backfill| {
            listing.link(&[("cursor", Some(backfill.id.to_string())), ("offset", None)])
        }),
        previous: None,
        results: page.backfills,
    }))
}

async fn create(
    app: &App,
    within: ExportScope<'_>,
    path: &PathParams,
    body: &ApiJson<BackfillInput>,
) -> ApiResult<Created<StartedBackfill>> {
    let export = app.services.exports.backfill(within, path.get(ID)?, body.unchecked()).await?;
    let started = export.backfill_id.ok_or_else(|| ApiError::internal("no backfill was made"))?;
    Ok(Created(StartedBackfill { backfill_id: started }))
}

async fn get(app: &App, within: ExportScope<'_>, path: &PathParams) -> ApiResult<Json<Backfill>> {
    let exports = &app.services.exports;
    Ok(Json(exports.get_backfill(within, path.get(ID)?, path.get(BACKFILL)?).await?))
}

async fn cancel(
    app: &App,
    within: ExportScope<'_>,
    path: &PathParams,
) -> ApiResult<Json<Cancelled>> {
    app.services.exports.cancel_backfill(within, path.get(ID)?, path.get(BACKFILL)?).await?;
    Ok(Json(Cancelled { cancelled: true }))
}
