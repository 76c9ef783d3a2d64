//! `/api/projects/{project_id}/annotations/` (API-66): what happened at a time.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use weir_model::annotations::{
    Annotation, AnnotationInput, AnnotationPatch, AnnotationQuery, AnnotationScope, CONTENT_MAX,
};
use weir_model::errors::FieldError;
use weir_model::pagination::Envelope;
use weir_model::{DashboardId, InsightId, Patch, Timestamp, validate};

use super::events::time;
use crate::api::{Created, NoContent};
use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{ApiJson, Authorized, InProject, PathParams};
use crate::http::guards::{AnnotationsRead, AnnotationsWrite};
use crate::http::input::{Fields, Input, missing, null};
use crate::http::pagination::Listing;

const ID: &str = "annotation_id";

filters! {
    /// Filters for annotations.
    AnnotationFilters {
        "search": Text, "Only annotations whose text contains this, in any case.";
        "scope": OneOf(AnnotationScope::WORDS), "Only annotations with this scope.";
        "date_from": Time, "Only what happened at this time or later.";
        "date_to": Time, "Only what happened before this time.";
    }
}

/// The annotations of the project, the latest first. Hidden ones are not listed.
pub async fn list_annotations(
    auth: Authorized<AnnotationsRead, InProject>,
    State(app): State<App>,
    listing: Listing<AnnotationFilters>,
) -> ApiResult<Json<Envelope<Annotation>>> {
    let text = |name: &str| listing.param(name).filter(|text| !text.is_empty());
    let query = AnnotationQuery {
        search: text("search").map(str::to_owned),
        scope: text("scope").map(scope_of).transpose()?,
        date_from: time(text("date_from"), "date_from")?,
        date_to: time(text("date_to"), "date_to")?,
    };
    let paged = app.services.annotations.list(&auth.ctx, &query, listing.page()).await?;
    Ok(Json(listing.envelope(paged)))
}

/// Add an annotation. Without `scope` it is shown on all charts of the project.
pub async fn create_annotation(
    auth: Authorized<AnnotationsWrite, InProject>,
    State(app): State<App>,
    body: ApiJson<AnnotationInput>,
) -> ApiResult<Created<Annotation>> {
    Ok(Created(app.services.annotations.create(&auth.ctx, body.unchecked()).await?))
}

/// One annotation.
pub async fn get_annotation(
    auth: Authorized<AnnotationsRead, InProject>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Json<Annotation>> {
    Ok(Json(app.services.annotations.get(&auth.ctx, path.get(ID)?).await?))
}

/// Change some fields. `deleted` hides an annotation, or shows it again.
pub async fn update_annotation(
    auth: Authorized<AnnotationsWrite, InProject>,
    State(app): State<App>,
    path: PathParams,
    body: ApiJson<AnnotationPatch>,
) -> ApiResult<Json<Annotation>> {
    let (annotations, id) = (&app.services.annotations, path.get(ID)?);
    Ok(Json(annotations.update(&auth.ctx, id, body.unchecked()).await?))
}

/// Delete an annotation for ever.
pub async fn delete_annotation(
    auth: Authorized<AnnotationsWrite, InProject>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<NoContent> {
    app.services.annotations.delete(&auth.ctx, path.get(ID)?).await?;
    Ok(NoContent)
}

fn scope_of(word: &str) -> Result<AnnotationScope, FieldError> {
    AnnotationScope::of(word).ok_or_else(|| validate::invalid_choice("scope", &word))
}

impl Input for AnnotationInput {
    const EXAMPLE: &'static str =
        r#"{"content": "New prices", "date_marker": "2026-06-01T09:00:00Z"}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let content = fields.required_text("content", CONTENT_MAX)?;
        let date_marker = match date_marker(fields, true)? {
            Patch::Set(time) => time,
            Patch::Keep | Patch::Clear => return Err(missing("date_marker")),
        };
        Ok(Self { content, date_marker, rest: place(fields)? })
    }
}

impl Input for AnnotationPatch {
    const EXAMPLE: &'static str = r#"{"content": "New prices in the shop"}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let content = fields.text("content", CONTENT_MAX)?;
        let date_marker = date_marker(fields, false)?;
        Ok(Self { content, date_marker, ..place(fields)? })
    }
}

fn date_marker(fields: &Fields, is_required: bool) -> Result<Patch<Timestamp>, FieldError> {
    const NAME: &str = "date_marker";
    fields.value(NAME, is_required, || json!({"type": "string", "format": "date-time"}));
    match fields.nullable_time(NAME)? {
        Patch::Clear => Err(null(NAME)),
        Patch::Keep if is_required => Err(missing(NAME)),
        read => Ok(read),
    }
}

/// Where an annotation is shown, and whether it is hidden.
fn place(fields: &Fields) -> Result<AnnotationPatch, FieldError> {
    let scope = match fields.word("scope", AnnotationScope::WORDS)? {
        Patch::Set(word) => Some(scope_of(&word)?),
        Patch::Keep | Patch::Clear => None,
    };
    Ok(AnnotationPatch {
        scope,
        dashboard_item: number(fields, "dashboard_item", InsightId)?,
        dashboard_id: number(fields, "dashboard_id", DashboardId)?,
        deleted: fields.boolean("deleted")?,
        ..AnnotationPatch::default()
    })
}

fn number<T>(fields: &Fields, name: &str, of: fn(i64) -> T) -> Result<Patch<T>, FieldError> {
    fields.value(name, false, || -> Value { json!({"type": ["integer", "null"]}) });
    fields.nullable_integer(name, 1, i64::MAX)?.try_map(|number| Ok(of(number)))
}
