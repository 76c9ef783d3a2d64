//! `/api/organizations/{organization_id}/batch_exports/`, and the same paths below a
//! project (EXP-5, EXP-23).
//!
//! Both have the same operations. Below an organization they cover all exports of the
//! organization, below a project only the project's.

/// The handlers of an operation below the organization and below the project. An
/// operation has one name in the API document, so there are two handlers. They share one
/// function.
macro_rules! below_organization_and_project {
    ($(
        $(#[$doc:meta])*
        $guard:ident $organization:ident $project:ident
        ($($argument:ident: $kind:ty),*) -> $answer:ty = $handler:path;
    )+) => {$(
        $(#[$doc])*
        pub async fn $organization(
            auth: Authorized<$guard, InOrganization>,
            State(app): State<App>,
            $($argument: $kind),*
        ) -> ApiResult<$answer> {
            $handler(&app, (&auth.ctx).into(), $(&$argument),*).await
        }

        $(#[$doc])*
        pub async fn $project(
            auth: Authorized<$guard, InProject>,
            State(app): State<App>,
            $($argument: $kind),*
        ) -> ApiResult<$answer> {
            $handler(&app, (&auth.ctx).into(), $(&$argument),*).await
        }
    )+};
}

pub mod backfills;
mod body;
pub mod logs;
pub mod runs;
pub mod testing;

use std::str::FromStr;

use axum::Json;
use axum::extract::State;
use weir_model::exports::{BackfillInput, BatchExport, BatchExportInput, BatchExportPatch};
use weir_model::pagination::Envelope;
use weir_service::Error as ServiceError;
use weir_service::exports::ExportScope;

use crate::api::{Created, NoContent};
use crate::app::App;
use crate::http::error::ApiResult;
use crate::http::extract::{ApiJson, Authorized, InOrganization, InProject, PathParams};
use crate::http::guards::{ExportsRead, ExportsWrite};
use crate::http::pagination::Listing;
use body::{Replacement, UnpauseInput};

/// The path parameter with the id of an export.
const ID: &str = "export_id";
/// The error for an invalid cursor.
const INVALID_CURSOR: &str = "Invalid cursor";

/// The cursor of a page: the last item of the page before it.
fn cursor<T: FromStr>(text: Option<&str>) -> Result<Option<T>, ServiceError> {
    let text = text.filter(|text| !text.is_empty());
    let read = |text: &str| text.parse().map_err(|_| ServiceError::NotFound(INVALID_CURSOR));
    text.map(read).transpose()
}

below_organization_and_project! {
    /// The batch exports of all projects or of one, newest first.
    ExportsRead list_batch_exports list_project_batch_exports
        (listing: Listing) -> Json<Envelope<BatchExport>> = list;

    /// Create a batch export. Without `team_id` it exports the project of the path. Below
    /// an organization it exports the caller's current project if that is in this
    /// organization, or else the oldest project.
    ExportsWrite create_batch_export create_project_batch_export
        (body: ApiJson<BatchExportInput>) -> Created<BatchExport> = create;

    /// One batch export.
    ExportsRead get_batch_export get_project_batch_export
        (path: PathParams) -> Json<BatchExport> = get;

    /// Change some fields. Omitted settings of the destination keep their values. Secrets
    /// must be sent again when its address or user changes.
    ExportsWrite update_batch_export update_project_batch_export
        (path: PathParams, body: ApiJson<BatchExportPatch>) -> Json<BatchExport> = update;

    /// Change a batch export, with all fields that a new export requires.
    ExportsWrite replace_batch_export replace_project_batch_export
        (path: PathParams, body: ApiJson<Replacement>) -> Json<BatchExport> = replace;

    /// Delete a batch export together with its runs and backfills.
    ExportsWrite delete_batch_export delete_project_batch_export
        (path: PathParams) -> NoContent = delete;

    /// Export a range of time again. The export may be paused.
    ExportsWrite backfill_batch_export backfill_project_batch_export
        (path: PathParams, body: ApiJson<BackfillInput>) -> Json<BatchExport> = backfill;

    /// Pause the schedule: it starts no more runs.
    ExportsWrite pause_batch_export pause_project_batch_export
        (path: PathParams) -> Json<BatchExport> = pause;

    /// Resume the schedule. With `backfill`, the missed intervals are exported too.
    ExportsWrite unpause_batch_export unpause_project_batch_export
        (path: PathParams, body: ApiJson<UnpauseInput>) -> Json<BatchExport> = unpause;
}

async fn list(
    app: &App,
    within: ExportScope<'_>,
    listing: &Listing,
) -> ApiResult<Json<Envelope<BatchExport>>> {
    let paged = app.services.exports.list(within, listing.page()).await?;
    Ok(Json(listing.envelope(paged)))
}

async fn create(
    app: &App,
    within: ExportScope<'_>,
    body: &ApiJson<BatchExportInput>,
) -> ApiResult<Created<BatchExport>> {
    Ok(Created(app.services.exports.create(within, body.unchecked()).await?))
}

async fn get(
    app: &App,
    within: ExportScope<'_>,
    path: &PathParams,
) -> ApiResult<Json<BatchExport>> {
    Ok(Json(app.services.exports.get(within, path.get(ID)?).await?))
}

async fn update(
    app: &App,
    within: ExportScope<'_>,
    path: &PathParams,
    body: &ApiJson<BatchExportPatch>,
) -> ApiResult<Json<BatchExport>> {
    Ok(Json(app.services.exports.update(within, path.get(ID)?, body.unchecked()).await?))
}

async fn replace(
    app: &App,
    within: ExportScope<'_>,
    path: &PathParams,
    body: &ApiJson<Replacement>,
) -> ApiResult<Json<BatchExport>> {
    let patch = body.unchecked_as(|Replacement(patch)| patch);
    Ok(Json(app.services.exports.update(within, path.get(ID)?, patch).await?))
}

async fn delete(app: &App, within: ExportScope<'_>, path: &PathParams) -> ApiResult<NoContent> {
    app.services.exports.delete(within, path.get(ID)?).await?;
    Ok(NoContent)
}

async fn backfill(
    app: &App,
    within: ExportScope<'_>,
    path: &PathParams,
    body: &ApiJson<BackfillInput>,
) -> ApiResult<Json<BatchExport>> {
    Ok(Json(app.services.exports.backfill(within, path.get(ID)?, body.unchecked()).await?))
}

async fn pause(
    app: &App,
    within: ExportScope<'_>,
    path: &PathParams,
) -> ApiResult<Json<BatchExport>> {
    Ok(Json(app.services.exports.pause(within, path.get(ID)?).await?))
}

async fn unpause(
    app: &App,
    within: ExportScope<'_>,
    path: &PathParams,
    body: &ApiJson<UnpauseInput>,
) -> ApiResult<Json<BatchExport>> {
    let backfill = body.unchecked_as(|UnpauseInput { backfill }| backfill);
    Ok(Json(app.services.exports.unpause(within, path.get(ID)?, backfill).await?))
}
