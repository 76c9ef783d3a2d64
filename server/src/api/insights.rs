//! `/api/projects/{project_id}/insights/` (API-63): saved questions, without their answers.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use weir_model::errors::FieldError;
use weir_model::insights::{
    DASHBOARDS_MAX, DESCRIPTION_MAX, Insight, InsightInput, InsightPatch, InsightQuery, NAME_MAX,
    TAG_MAX, TAGS_MAX,
};
use weir_model::pagination::Envelope;
use weir_model::{DashboardId, Patch, UserId, validate};

use super::events::uuid;
use crate::api::{Created, NoContent};
use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{ApiJson, Authorized, InProject, PathParams};
use crate::http::guards::{InsightsRead, InsightsWrite};
use crate::http::input::{Fields, Input, missing, no_list, null, to_integer};
use crate::http::pagination::Listing;

const ID: &str = "insight_id";
/// The words of flags in addresses.
pub(super) const FLAGS: &[&str] = &["true", "false"];

filters! {
    /// Filters for insights.
    InsightFilters {
        "search": Text, "Only insights whose name or `derived_name` contains this, in any case.";
        "short_id": Text, "Only the insight with this short id.";
        "saved": OneOf(FLAGS), "Only insights with this value of `saved`.";
        "favorited": OneOf(FLAGS), "Only insights with this value of `favorited`.";
        "created_by": Uuid, "Only insights that this user created.";
    }
}

/// The saved insights of the project, in the order of their creation. Hidden ones are not
/// listed.
pub async fn list_insights(
    auth: Authorized<InsightsRead, InProject>,
    State(app): State<App>,
    listing: Listing<InsightFilters>,
) -> ApiResult<Json<Envelope<Insight>>> {
    let text = |name: &str| listing.param(name).filter(|text| !text.is_empty());
    let query = InsightQuery {
        search: text("search").map(str::to_owned),
        short_id: text("short_id").map(str::to_owned),
        saved: text("saved").map(|word| flag("saved", word)).transpose()?,
        favorited: text("favorited").map(|word| flag("favorited", word)).transpose()?,
        created_by: uuid(text("created_by"), "created_by")?.map(UserId),
    };
    let paged = app.services.insights.list(&auth.ctx, &query, listing.page()).await?;
    Ok(Json(listing.envelope(paged)))
}

/// Save an insight. Its question is answered in its canonical form.
pub async fn create_insight(
    auth: Authorized<InsightsWrite, InProject>,
    State(app): State<App>,
    body: ApiJson<InsightInput>,
) -> ApiResult<Created<Insight>> {
    Ok(Created(app.services.insights.create(&auth.ctx, body.unchecked()).await?))
}

/// One saved insight, by its number or its short id.
pub async fn get_insight(
    auth: Authorized<InsightsRead, InProject>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Json<Insight>> {
    Ok(Json(app.services.insights.get(&auth.ctx, path.get(ID)?).await?))
}

/// Change some fields. `deleted` hides an insight, or shows it again. `dashboards` has all
/// dashboards that are to have a tile of it; changing it needs `dashboard:write` too.
pub async fn update_insight(
    auth: Authorized<InsightsWrite, InProject>,
    State(app): State<App>,
    path: PathParams,
    body: ApiJson<InsightPatch>,
) -> ApiResult<Json<Insight>> {
    let (insights, id) = (&app.services.insights, path.get(ID)?);
    Ok(Json(insights.update(&auth.ctx, id, body.unchecked()).await?))
}

/// Delete an insight for ever, with its tiles.
pub async fn delete_insight(
    auth: Authorized<InsightsWrite, InProject>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<NoContent> {
    app.services.insights.delete(&auth.ctx, path.get(ID)?).await?;
    Ok(NoContent)
}

/// The value of a flag in an address.
pub(super) fn flag(attr: &str, word: &str) -> Result<bool, FieldError> {
    match word {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(validate::invalid_choice(attr, &word)),
    }
}

impl Input for InsightInput {
    const EXAMPLE: &'static str = r#"{
        "name": "Weekly signups",
        "query": {
            "kind": "TrendsQuery",
            "series": [{"event": "signed up", "math": "dau"}],
            "interval": "week"
        }
    }"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let mut rest = patch(fields, true)?;
        match std::mem::take(&mut rest.query) {
            Patch::Set(query) => Ok(Self { query, rest }),
            Patch::Keep | Patch::Clear => Err(missing("query")),
        }
    }
}

impl Input for InsightPatch {
    const EXAMPLE: &'static str = r#"{"name": "Signups", "favorited": true}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        patch(fields, false)
    }
}

fn patch(fields: &Fields, is_new: bool) -> Result<InsightPatch, FieldError> {
    Ok(InsightPatch {
        name: fields.nullable_text("name", NAME_MAX)?,
        derived_name: fields.nullable_text("derived_name", NAME_MAX)?,
        description: fields.nullable_text("description", DESCRIPTION_MAX)?,
        query: query(fields, is_new)?,
        dashboards: dashboards(fields)?,
        tags: fields.nullable_texts("tags", TAGS_MAX, TAG_MAX)?,
        favorited: fields.boolean("favorited")?,
        saved: fields.boolean("saved")?,
        deleted: fields.boolean("deleted")?,
    })
}

/// The question as it was sent. The service reads it.
fn query(fields: &Fields, is_required: bool) -> Result<Patch<Value>, FieldError> {
    const NAME: &str = "query";
    let schema = || {
        json!({
            "type": "object",
            "description": "A question, also within a node that says how it is drawn. It is answered in its canonical form, without that node.",
        })
    };
    match fields.value(NAME, is_required, schema) {
        None if is_required => Err(missing(NAME)),
        None => Ok(Patch::Keep),
        Some(Value::Null) => Err(null(NAME)),
        Some(sent) => Ok(Patch::Set(sent.clone())),
    }
}

fn dashboards(fields: &Fields) -> Result<Patch<Vec<DashboardId>>, FieldError> {
    const NAME: &str = "dashboards";
    let schema = || {
        json!({
            "type": ["array", "null"], "maxItems": DASHBOARDS_MAX, "items": {"type": "integer"},
        })
    };
    match fields.value(NAME, false, schema) {
        None => Ok(Patch::Keep),
        Some(Value::Null) => Ok(Patch::Clear),
        Some(Value::Array(items)) => {
            validate::list_length(NAME, items.len(), DASHBOARDS_MAX)?;
            let id = |(at, item): (usize, &Value)| {
                to_integer(&format!("{NAME}__{at}"), item, 1, i64::MAX).map(DashboardId)
            };
            items.iter().enumerate().map(id).collect::<Result<_, _>>().map(Patch::Set)
        }
        Some(other) => Err(no_list(NAME, other)),
    }
}
