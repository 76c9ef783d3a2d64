//! `/api/organizations/{organization_id}/batch_exports/`, and the same below a
//! project (service.md "Batch export", batch-exports 1, 4, 5, 7, 8).
//!
//! Both places have the same operations: what one sees of the organization, the
//! other sees of its project.

use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value, json};
use weir_model::errors::FieldError;
use weir_model::exports::destinations::{self, DestinationType};
use weir_model::exports::{
    BackfillInput, BatchExport, BatchExportInput, BatchExportPatch, Interval, NAME_MAX, QUERY_MAX,
    SentConfig,
};
use weir_model::pagination::Envelope;
use weir_model::{Patch, ProjectId, validate};
use weir_service::exports::Within;
use weir_service::policy::{self, Action};

use crate::api::{Created, NoContent};
use crate::app::App;
use crate::http::error::ApiResult;
use crate::http::extract::{ApiJson, Authorized, InOrganization, InProject, PathParams};
use crate::http::guards::{ExportsRead, ExportsWrite};
use crate::http::input::{Fields, Input, kind};
use crate::http::pagination::Listing;

/// Longest form of a time in a body, in characters.
const TIME_MAX: usize = 64;
const DESTINATION: &str = "destination";

/// The batch exports of all projects, newest first.
pub async fn list_batch_exports(
    auth: Authorized<ExportsRead, InOrganization>,
    State(app): State<App>,
    listing: Listing,
) -> ApiResult<Json<Envelope<BatchExport>>> {
    list(&app, (&auth.ctx).into(), &listing).await
}

/// Create a batch export. Without `team_id` it exports the caller's current
/// project, if that is in this organization, else the oldest.
pub async fn create_batch_export(
    auth: Authorized<ExportsWrite, InOrganization>,
    State(app): State<App>,
    body: ApiJson<BatchExportInput>,
) -> ApiResult<Created<BatchExport>> {
    create(&app, (&auth.ctx).into(), &body).await
}

/// One batch export.
pub async fn get_batch_export(
    auth: Authorized<ExportsRead, InOrganization>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Json<BatchExport>> {
    get(&app, (&auth.ctx).into(), &path).await
}

/// Change some fields. Settings of the destination that are left out keep;
/// secrets must be sent again when its address or user changes.
pub async fn update_batch_export(
    auth: Authorized<ExportsWrite, InOrganization>,
    State(app): State<App>,
    path: PathParams,
    body: ApiJson<BatchExportPatch>,
) -> ApiResult<Json<BatchExport>> {
    update(&app, (&auth.ctx).into(), &path, &body).await
}

/// Delete a batch export with its runs and backfills.
pub async fn delete_batch_export(
    auth: Authorized<ExportsWrite, InOrganization>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<NoContent> {
    delete(&app, (&auth.ctx).into(), &path).await
}

/// Export a stretch of time anew, whether the export is paused or not.
pub async fn backfill_batch_export(
    auth: Authorized<ExportsWrite, InOrganization>,
    State(app): State<App>,
    path: PathParams,
    body: ApiJson<BackfillInput>,
) -> ApiResult<Json<BatchExport>> {
    backfill(&app, (&auth.ctx).into(), &path, &body).await
}

/// Start no further runs by the schedule.
pub async fn pause_batch_export(
    auth: Authorized<ExportsWrite, InOrganization>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Json<BatchExport>> {
    pause(&app, (&auth.ctx).into(), &path).await
}

/// Let the schedule start runs again, and with `backfill` export what was missed.
pub async fn unpause_batch_export(
    auth: Authorized<ExportsWrite, InOrganization>,
    State(app): State<App>,
    path: PathParams,
    body: ApiJson<Unpausing>,
) -> ApiResult<Json<BatchExport>> {
    unpause(&app, (&auth.ctx).into(), &path, &body).await
}

/// The batch exports of the project, newest first.
pub async fn list_project_batch_exports(
    auth: Authorized<ExportsRead, InProject>,
    State(app): State<App>,
    listing: Listing,
) -> ApiResult<Json<Envelope<BatchExport>>> {
    list(&app, (&auth.ctx).into(), &listing).await
}

/// Create a batch export of the project in the path.
pub async fn create_project_batch_export(
    auth: Authorized<ExportsWrite, InProject>,
    State(app): State<App>,
    body: ApiJson<BatchExportInput>,
) -> ApiResult<Created<BatchExport>> {
    create(&app, (&auth.ctx).into(), &body).await
}

/// One batch export of the project.
pub async fn get_project_batch_export(
    auth: Authorized<ExportsRead, InProject>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Json<BatchExport>> {
    get(&app, (&auth.ctx).into(), &path).await
}

/// Change some fields of a batch export of the project.
pub async fn update_project_batch_export(
    auth: Authorized<ExportsWrite, InProject>,
    State(app): State<App>,
    path: PathParams,
    body: ApiJson<BatchExportPatch>,
) -> ApiResult<Json<BatchExport>> {
    update(&app, (&auth.ctx).into(), &path, &body).await
}

/// Delete a batch export of the project with its runs and backfills.
pub async fn delete_project_batch_export(
    auth: Authorized<ExportsWrite, InProject>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<NoContent> {
    delete(&app, (&auth.ctx).into(), &path).await
}

/// Export a stretch of time of the project anew.
pub async fn backfill_project_batch_export(
    auth: Authorized<ExportsWrite, InProject>,
    State(app): State<App>,
    path: PathParams,
    body: ApiJson<BackfillInput>,
) -> ApiResult<Json<BatchExport>> {
    backfill(&app, (&auth.ctx).into(), &path, &body).await
}

/// Start no further runs of the project's export by the schedule.
pub async fn pause_project_batch_export(
    auth: Authorized<ExportsWrite, InProject>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Json<BatchExport>> {
    pause(&app, (&auth.ctx).into(), &path).await
}

/// Let the schedule start runs of the project's export again.
pub async fn unpause_project_batch_export(
    auth: Authorized<ExportsWrite, InProject>,
    State(app): State<App>,
    path: PathParams,
    body: ApiJson<Unpausing>,
) -> ApiResult<Json<BatchExport>> {
    unpause(&app, (&auth.ctx).into(), &path, &body).await
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
    Ok(Json(app.services.exports.get(within, path.get("export_id")?).await?))
}

/// The export first: what is not there has no fields to be judged.
async fn update(
    app: &App,
    within: Within<'_>,
    path: &PathParams,
    body: &ApiJson<BatchExportPatch>,
) -> ApiResult<Json<BatchExport>> {
    policy::check(within.org(), Action::WriteExports)?;
    let id = path.get("export_id")?;
    app.services.exports.get(within, id).await?;
    Ok(Json(app.services.exports.update(within, id, body.checked()?).await?))
}

async fn delete(app: &App, within: Within<'_>, path: &PathParams) -> ApiResult<NoContent> {
    app.services.exports.delete(within, path.get("export_id")?).await?;
    Ok(NoContent)
}

async fn backfill(
    app: &App,
    within: Within<'_>,
    path: &PathParams,
    body: &ApiJson<BackfillInput>,
) -> ApiResult<Json<BatchExport>> {
    policy::check(within.org(), Action::WriteExports)?;
    let id = path.get("export_id")?;
    app.services.exports.get(within, id).await?;
    Ok(Json(app.services.exports.backfill(within, id, body.checked()?).await?))
}

async fn pause(app: &App, within: Within<'_>, path: &PathParams) -> ApiResult<Json<BatchExport>> {
    Ok(Json(app.services.exports.pause(within, path.get("export_id")?).await?))
}

async fn unpause(
    app: &App,
    within: Within<'_>,
    path: &PathParams,
    body: &ApiJson<Unpausing>,
) -> ApiResult<Json<BatchExport>> {
    policy::check(within.org(), Action::WriteExports)?;
    let id = path.get("export_id")?;
    app.services.exports.get(within, id).await?;
    let Unpausing { backfill } = body.checked()?;
    Ok(Json(app.services.exports.unpause(within, id, backfill).await?))
}

/// The body of `unpause/`. Fields of the export are ignored there.
#[derive(Debug)]
pub struct Unpausing {
    backfill: bool,
}

impl Input for Unpausing {
    const EXAMPLE: &'static str = r#"{"backfill": true}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        Ok(Self { backfill: fields.boolean("backfill")?.apply(false, false) })
    }
}

impl Input for BackfillInput {
    const EXAMPLE: &'static str = "{}";

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let text = |name: &str| -> Result<Option<String>, FieldError> {
            Ok(match fields.nullable_text(name, TIME_MAX)? {
                Patch::Set(text) => Some(text),
                Patch::Keep | Patch::Clear => None,
            })
        };
        Ok(Self { start_at: text("start_at")?, end_at: text("end_at")? })
    }
}

/// In the order in which the resource shows its fields.
impl Input for BatchExportInput {
    const EXAMPLE: &'static str = r#"{
        "name": "Nightly", "interval": "day",
        "destination": {
            "type": "S3",
            "config": {
                "bucket_name": "events", "region": "eu-west-1", "prefix": "weir/{year}/{month}/",
                "aws_access_key_id": "AKIAEXAMPLE", "aws_secret_access_key": "example"
            }
        },
        "hogql_query": "SELECT event, distinct_id, timestamp, properties FROM events"
    }"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let team_id = match fields.nullable_integer("team_id", 1, i64::MAX)? {
            Patch::Set(number) => Some(ProjectId(number)),
            Patch::Keep | Patch::Clear => None,
        };
        let name = fields.required_text("name", NAME_MAX)?;
        let sent = destination(fields, true)?;
        let sent = sent.ok_or_else(|| required(DESTINATION))?;
        let kind = sent.kind.ok_or_else(|| required("destination__type"))?;
        let config = sent.config.ok_or_else(|| required("destination__config"))?;
        let interval = interval(fields, true)?;
        let Patch::Set(interval) = interval else { return Err(required("interval")) };
        let paused = fields.boolean("paused")?.apply(false, false);
        let time = |name: &str| -> Result<_, FieldError> {
            Ok(match fields.nullable_time(name)? {
                Patch::Set(time) => Some(time),
                Patch::Keep | Patch::Clear => None,
            })
        };
        let last_paused_at = time("last_paused_at")?;
        let start_at = time("start_at")?;
        let end_at = time("end_at")?;
        let hogql_query = match fields.nullable_text("hogql_query", QUERY_MAX)? {
            Patch::Set(query) => Some(query),
            Patch::Keep | Patch::Clear => None,
        };
        Ok(Self {
            team_id,
            name,
            destination: kind,
            config,
            interval,
            paused,
            last_paused_at,
            start_at,
            end_at,
            hogql_query,
        })
    }
}

impl Input for BatchExportPatch {
    const EXAMPLE: &'static str =
        r#"{"name": "Hourly", "interval": "hour", "destination": {"config": {"prefix": "new/"}}}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let name = fields.text("name", NAME_MAX)?;
        let sent = destination(fields, false)?.unwrap_or_default();
        Ok(Self {
            name,
            destination: sent.kind,
            config: sent.config,
            interval: interval(fields, false)?,
            paused: fields.boolean("paused")?,
            last_paused_at: fields.nullable_time("last_paused_at")?,
            start_at: fields.nullable_time("start_at")?,
            end_at: fields.nullable_time("end_at")?,
            hogql_query: fields.nullable_text("hogql_query", QUERY_MAX)?,
        })
    }
}

fn required(attr: &str) -> FieldError {
    FieldError::new(attr, "required", "This field is required.")
}

fn interval(fields: &Fields, is_required: bool) -> Result<Patch<Interval>, FieldError> {
    fields.value("interval", is_required, || json!({"type": "string", "enum": Interval::WORDS}));
    let word = fields.word("interval", &Interval::WORDS)?;
    word.try_map(|word| {
        Interval::of(&word).ok_or_else(|| validate::invalid_choice("interval", &word))
    })
}

/// A destination as it was sent.
#[derive(Default)]
struct SentDestination {
    kind: Option<&'static DestinationType>,
    config: Option<SentConfig>,
}

fn destination(fields: &Fields, is_required: bool) -> Result<Option<SentDestination>, FieldError> {
    let sent = fields.value(DESTINATION, is_required, || schema(is_required));
    let sent = match sent {
        None => return Ok(None),
        Some(Value::Null) => {
            return Err(FieldError::new(DESTINATION, "null", "This field may not be null."));
        }
        Some(Value::Object(sent)) => sent,
        Some(other) => {
            let detail = format!("Invalid data. Expected a dictionary, but got {}.", kind(other));
            return Err(FieldError::new("destination__non_field_errors", "invalid_input", detail));
        }
    };
    Ok(Some(SentDestination { kind: kind_of(sent)?, config: config(sent)? }))
}

fn kind_of(sent: &Map<String, Value>) -> Result<Option<&'static DestinationType>, FieldError> {
    let Some(sent) = sent.get("type") else { return Ok(None) };
    let known = sent.as_str().and_then(DestinationType::of);
    known.map(Some).ok_or_else(|| {
        let shown: String = sent
            .as_str()
            .map_or_else(|| sent.to_string(), str::to_owned)
            .chars()
            .take(64)
            .collect();
        validate::invalid_choice("destination__type", &shown)
    })
}

fn config(sent: &Map<String, Value>) -> Result<Option<SentConfig>, FieldError> {
    match sent.get("config") {
        None => Ok(None),
        Some(Value::Object(config)) => Ok(Some(SentConfig(config.clone()))),
        Some(other) => {
            let detail =
                format!("Expected a dictionary of items but got type \"{}\".", kind(other));
            Err(FieldError::new("destination__config", "not_a_dict", detail))
        }
    }
}

fn schema(is_required: bool) -> Value {
    let kinds: Vec<&str> = destinations::ALL.iter().map(|kind| kind.name).collect();
    let mut schema = json!({
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": kinds},
            "config": {"type": "object", "description": "Depends on the type."},
        },
    });
    if is_required {
        schema["required"] = json!(["type", "config"]);
    }
    schema
}
