//! `/api/organizations/{organization_id}/batch_exports/`, and the same below a
//! project (EXP-5, EXP-23).
//!
//! Both places have the same operations: what one sees of the organization, the
//! other sees of its project.

/// The handlers of an operation in both places, by their names: an operation has
/// one name in the API document. What they do stands in a function of its own.
macro_rules! in_both_places {
    ($(
        $(#[$doc:meta])*
        $guard:ident $organization:ident $project:ident
        ($($argument:ident: $kind:ty),*) -> $answer:ty = $work:path;
    )+) => {$(
        $(#[$doc])*
        pub async fn $organization(
            auth: Authorized<$guard, InOrganization>,
            State(app): State<App>,
            $($argument: $kind),*
        ) -> ApiResult<$answer> {
            $work(&app, (&auth.ctx).into(), $(&$argument),*).await
        }

        $(#[$doc])*
        pub async fn $project(
            auth: Authorized<$guard, InProject>,
            State(app): State<App>,
            $($argument: $kind),*
        ) -> ApiResult<$answer> {
            $work(&app, (&auth.ctx).into(), $(&$argument),*).await
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
use weir_service::exports::Within;
use weir_service::policy::{self, Action};

use crate::api::{Created, NoContent};
use crate::app::App;
use crate::http::error::ApiResult;
use crate::http::extract::{ApiJson, Authorized, InOrganization, InProject, PathParams};
use crate::http::guards::{ExportsRead, ExportsWrite};
use crate::http::pagination::Listing;
use body::{Replacement, Unpausing};

/// The export in a path.
const ID: &str = "export_id";
/// What whoever makes up the begin of a page hears.
const NO_CURSOR: &str = "Invalid cursor";

/// The begin of a page: what stands last on the page before.
fn cursor<T: FromStr>(text: Option<&str>) -> Result<Option<T>, ServiceError> {
    let text = text.filter(|text| !text.is_empty());
    let read = |text: &str| text.parse().map_err(|_| ServiceError::NotFound(NO_CURSOR));
    text.map(read).transpose()
}

in_both_places! {
    /// The batch exports of all projects or of one, newest first.
    ExportsRead list_batch_exports list_project_batch_exports
        (listing: Listing) -> Json<Envelope<BatchExport>> = list;

    /// Create a batch export. Without `team_id` it exports the project of the
    /// path, else the caller's current project, if that is in this organization,
    /// else the oldest.
    ExportsWrite create_batch_export create_project_batch_export
        (body: ApiJson<BatchExportInput>) -> Created<BatchExport> = create;

    /// One batch export.
    ExportsRead get_batch_export get_project_batch_export
        (path: PathParams) -> Json<BatchExport> = get;

    /// Change some fields. Settings of the destination that are left out keep;
    /// secrets must be sent again when its address or user changes.
    ExportsWrite update_batch_export update_project_batch_export
        (path: PathParams, body: ApiJson<BatchExportPatch>) -> Json<BatchExport> = update;

    /// The same, with the fields that a new export needs.
    ExportsWrite replace_batch_export replace_project_batch_export
        (path: PathParams, body: ApiJson<Replacement>) -> Json<BatchExport> = replace;

    /// Delete a batch export with its runs and backfills.
    ExportsWrite delete_batch_export delete_project_batch_export
        (path: PathParams) -> NoContent = delete;

    /// Export a stretch of time anew, whether the export is paused or not.
    ExportsWrite backfill_batch_export backfill_project_batch_export
        (path: PathParams, body: ApiJson<BackfillInput>) -> Json<BatchExport> = backfill;

    /// Start no further runs by the schedule.
    ExportsWrite pause_batch_export pause_project_batch_export
        (path: PathParams) -> Json<BatchExport> = pause;

    /// Let the schedule start runs again, and with `backfill` export what was
    /// missed.
    ExportsWrite unpause_batch_export unpause_project_batch_export
        (path: PathParams, body: ApiJson<Unpausing>) -> Json<BatchExport> = unpause;
}

async fn list(
    app: &App,
    within: Within<'_>,
    listing: &Listing,
) -> ApiResult<Json<Envelope<BatchExport>>> {
    let paged = app.services.exports.list(within, listing.page()).await?;
    Ok(Json(listing.envelope(paged)))
}

async fn create(
    app: &App,
    within: Within<'_>,
    body: &ApiJson<BatchExportInput>,
) -> ApiResult<Created<BatchExport>> {
    policy::check(within.org(), Action::WriteExports)?;
    Ok(Created(app.services.exports.create(within, body.checked()?).await?))
}

async fn get(app: &App, within: Within<'_>, path: &PathParams) -> ApiResult<Json<BatchExport>> {
    Ok(Json(app.services.exports.get(within, path.get(ID)?).await?))
}

/// The export first: what is not there has no fields to be judged.
async fn update(
    app: &App,
    within: Within<'_>,
    path: &PathParams,
    body: &ApiJson<BatchExportPatch>,
) -> ApiResult<Json<BatchExport>> {
    policy::check(within.org(), Action::WriteExports)?;
    let id = path.get(ID)?;
    app.services.exports.get(within, id).await?;
    Ok(Json(app.services.exports.update(within, id, body.checked()?).await?))
}

async fn replace(
    app: &App,
    within: Within<'_>,
    path: &PathParams,
    body: &ApiJson<Replacement>,
) -> ApiResult<Json<BatchExport>> {
    policy::check(within.org(), Action::WriteExports)?;
    let id = path.get(ID)?;
    app.services.exports.get(within, id).await?;
    let Replacement(patch) = body.checked()?;
    Ok(Json(app.services.exports.update(within, id, patch).await?))
}

async fn delete(app: &App, within: Within<'_>, path: &PathParams) -> ApiResult<NoContent> {
    app.services.exports.delete(within, path.get(ID)?).await?;
    Ok(NoContent)
}

async fn backfill(
    app: &App,
    within: Within<'_>,
    path: &PathParams,
    body: &ApiJson<BackfillInput>,
) -> ApiResult<Json<BatchExport>> {
    policy::check(within.org(), Action::WriteExports)?;
    let id = path.get(ID)?;
    app.services.exports.get(within, id).await?;
    Ok(Json(app.services.exports.backfill(within, id, body.checked()?).await?))
}

async fn pause(app: &App, within: Within<'_>, path: &PathParams) -> ApiResult<Json<BatchExport>> {
    Ok(Json(app.services.exports.pause(within, path.get(ID)?).await?))
}

async fn unpause(
    app: &App,
    within: Within<'_>,
    path: &PathParams,
    body: &ApiJson<Unpausing>,
) -> ApiResult<Json<BatchExport>> {
    policy::check(within.org(), Action::WriteExports)?;
    let id = path.get(ID)?;
    app.services.exports.get(within, id).await?;
    let Unpausing { backfill } = body.checked()?;
    Ok(Json(app.services.exports.unpause(within, id, backfill).await?))
}
