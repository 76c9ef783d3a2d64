//! `/api/projects/{project_id}/dashboards/` (API-64): insights side by side, without their
//! answers.

use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value, json};
use weir_model::dashboards::{
    COLOR_MAX, COLUMNS, DESCRIPTION_MAX, Dashboard, DashboardBrief, DashboardInput, DashboardPatch,
    DashboardQuery, HEIGHT_MAX, NAME_MAX, ROW_MAX, SHARE_DAYS, SHARE_DAYS_MAX, ShareLink,
    ShareLinkInput, SharedDashboard, TILE_CHANGES_MAX, TileChange, TileLayout, TileLayouts,
};
use weir_model::errors::FieldError;
use weir_model::insights::{TAG_MAX, TAGS_MAX};
use weir_model::pagination::Envelope;
use weir_model::{InsightId, Patch, validate};

use super::insights::{FLAGS, flag};
use crate::api::{Created, NoContent};
use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{ApiJson, Authorized, InProject, PathParams};
use crate::http::guards::{DashboardsRead, DashboardsWrite};
use crate::http::input::{Fields, Input, missing, no_list, no_object, no_text, to_integer};
use crate::http::pagination::Listing;

const ID: &str = "dashboard_id";

filters! {
    /// Filters for dashboards.
    DashboardFilters {
        "search": Text, "Only dashboards whose name contains this, in any case.";
        "pinned": OneOf(FLAGS), "Only dashboards with this value of `pinned`.";
    }
}

/// The dashboards of the project, in the order of their creation, without their tiles.
/// Hidden ones are not listed.
pub async fn list_dashboards(
    auth: Authorized<DashboardsRead, InProject>,
    State(app): State<App>,
    listing: Listing<DashboardFilters>,
) -> ApiResult<Json<Envelope<DashboardBrief>>> {
    let text = |name: &str| listing.param(name).filter(|text| !text.is_empty());
    let query = DashboardQuery {
        search: text("search").map(str::to_owned),
        pinned: text("pinned").map(|word| flag("pinned", word)).transpose()?,
    };
    let paged = app.services.dashboards.list(&auth.ctx, &query, listing.page()).await?;
    Ok(Json(listing.envelope(paged)))
}

/// Create a dashboard without tiles.
pub async fn create_dashboard(
    auth: Authorized<DashboardsWrite, InProject>,
    State(app): State<App>,
    body: ApiJson<DashboardInput>,
) -> ApiResult<Created<Dashboard>> {
    Ok(Created(app.services.dashboards.create(&auth.ctx, body.unchecked()).await?))
}

/// One dashboard with its tiles and their insights.
pub async fn get_dashboard(
    auth: Authorized<DashboardsRead, InProject>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Json<Dashboard>> {
    Ok(Json(app.services.dashboards.get(&auth.ctx, path.get(ID)?).await?))
}

/// Change some fields and some tiles. `deleted` hides a dashboard, or shows it again. A tile
/// with `id` is changed. One with `insight` alone is added, if the dashboard has none of this
/// insight. `deleted` removes a tile. Tiles that are not named stay.
pub async fn update_dashboard(
    auth: Authorized<DashboardsWrite, InProject>,
    State(app): State<App>,
    path: PathParams,
    body: ApiJson<DashboardPatch>,
) -> ApiResult<Json<Dashboard>> {
    let (dashboards, id) = (&app.services.dashboards, path.get(ID)?);
    Ok(Json(dashboards.update(&auth.ctx, id, body.unchecked()).await?))
}

/// Delete a dashboard for ever. Its insights stay.
pub async fn delete_dashboard(
    auth: Authorized<DashboardsWrite, InProject>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<NoContent> {
    app.services.dashboards.delete(&auth.ctx, path.get(ID)?).await?;
    Ok(NoContent)
}

/// The share links of a dashboard that have not expired, oldest first. Tokens are only in
/// the answer that creates them.
pub async fn list_share_links(
    auth: Authorized<DashboardsRead, InProject>,
    State(app): State<App>,
    path: PathParams,
    listing: Listing,
) -> ApiResult<Json<Envelope<ShareLink>>> {
    let (dashboards, id) = (&app.services.dashboards, path.get(ID)?);
    let paged = dashboards.share_links(&auth.ctx, id, listing.page()).await?;
    Ok(Json(listing.envelope(paged)))
}

/// Create a share link. Its token shows the dashboard without an account, until the link
/// expires or is revoked.
pub async fn create_share_link(
    auth: Authorized<DashboardsWrite, InProject>,
    State(app): State<App>,
    path: PathParams,
    body: ApiJson<ShareLinkInput>,
) -> ApiResult<Created<ShareLink>> {
    let (dashboards, id) = (&app.services.dashboards, path.get(ID)?);
    Ok(Created(dashboards.create_share_link(&auth.ctx, id, body.unchecked()).await?))
}

/// Revoke a share link. It stops working before the answer is sent.
pub async fn delete_share_link(
    auth: Authorized<DashboardsWrite, InProject>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<NoContent> {
    let (dashboards, id) = (&app.services.dashboards, path.get(ID)?);
    dashboards.delete_share_link(&auth.ctx, id, path.get("link_id")?).await?;
    Ok(NoContent)
}

/// The dashboard of a share link.
pub async fn get_shared_dashboard(
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Json<SharedDashboard>> {
    Ok(Json(app.services.dashboards.shared(path.get("token")?).await?))
}

impl Input for ShareLinkInput {
    const EXAMPLE: &'static str = r#"{"expires_in_days": 7}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let days = fields.nullable_integer("expires_in_days", 1, SHARE_DAYS_MAX)?;
        Ok(Self { days: days.apply(SHARE_DAYS, SHARE_DAYS) })
    }
}

impl Input for DashboardInput {
    const EXAMPLE: &'static str =
        r#"{"name": "Growth", "filters": {"date_from": "-30d"}, "pinned": true}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let name = fields.required_text("name", NAME_MAX)?;
        Ok(Self { name, rest: beside_name(fields)? })
    }
}

impl Input for DashboardPatch {
    const EXAMPLE: &'static str = r#"{"description": "What we read on Mondays", "pinned": false}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let name = fields.text("name", NAME_MAX)?;
        let others = beside_name(fields)?;
        Ok(Self { name, tiles: tiles(fields)?, ..others })
    }
}

/// All fields except the name and the tiles.
fn beside_name(fields: &Fields) -> Result<DashboardPatch, FieldError> {
    Ok(DashboardPatch {
        description: fields.nullable_text("description", DESCRIPTION_MAX)?,
        pinned: fields.boolean("pinned")?,
        deleted: fields.boolean("deleted")?,
        tags: fields.nullable_texts("tags", TAGS_MAX, TAG_MAX)?,
        filters: filters(fields),
        ..DashboardPatch::default()
    })
}

/// The filters as they were sent. The service reads them.
fn filters(fields: &Fields) -> Patch<Value> {
    match fields.value("filters", false, || json!({"type": ["object", "null"]})) {
        None => Patch::Keep,
        Some(Value::Null) => Patch::Clear,
        Some(sent) => Patch::Set(sent.clone()),
    }
}

fn tiles(fields: &Fields) -> Result<Vec<TileChange>, FieldError> {
    const NAME: &str = "tiles";
    let items = match fields.value(NAME, false, tiles_schema) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(other) => return Err(no_list(NAME, other)),
    };
    validate::list_length(NAME, items.len(), TILE_CHANGES_MAX)?;
    let read = |(at, item): (usize, &Value)| tile(&format!("{NAME}__{at}"), item);
    items.iter().enumerate().map(read).collect()
}

fn tiles_schema() -> Value {
    let place = |columns: i64| {
        json!({
            "type": ["object", "null"],
            "properties": {
                "x": {"type": "integer", "minimum": 0, "maximum": columns - 1},
                "y": {"type": "integer", "minimum": 0, "maximum": ROW_MAX},
                "w": {"type": "integer", "minimum": 1, "maximum": columns},
                "h": {"type": "integer", "minimum": 1, "maximum": HEIGHT_MAX},
            },
            "required": ["x", "y", "w", "h"],
        })
    };
    json!({
        "type": ["array", "null"],
        "maxItems": TILE_CHANGES_MAX,
        "items": {
            "type": "object",
            "properties": {
                "id": {"type": ["integer", "null"]},
                "insight": {"type": ["integer", "null"]},
                "layouts": {
                    "type": ["object", "null"],
                    "properties": {"sm": place(COLUMNS), "xs": place(1)},
                },
                "color": {"type": ["string", "null"], "maxLength": COLOR_MAX},
                "deleted": {"type": ["boolean", "null"]},
            },
        },
    })
}

/// A change of a tile. The tile of an answer is accepted too: its insight is an object.
fn tile(attr: &str, sent: &Value) -> Result<TileChange, FieldError> {
    let Value::Object(sent) = sent else { return Err(no_object(attr, sent)) };
    let number = |name: &str, value: Option<&Value>| {
        let value = value.filter(|value| !value.is_null());
        value.map(|value| to_integer(&format!("{attr}__{name}"), value, 1, i64::MAX)).transpose()
    };
    let insight = match sent.get("insight") {
        Some(Value::Object(insight)) => insight.get("id"),
        other => other,
    };
    Ok(TileChange {
        id: number("id", sent.get("id"))?,
        insight: number("insight", insight)?.map(InsightId),
        layouts: match sent.get("layouts") {
            None => Patch::Keep,
            Some(Value::Null) => Patch::Clear,
            Some(sent) => Patch::Set(layouts(&format!("{attr}__layouts"), sent)?),
        },
        color: match sent.get("color") {
            None => Patch::Keep,
            Some(Value::Null) => Patch::Clear,
            Some(Value::String(color)) => Patch::Set(color.clone()),
            Some(_) => return Err(no_text(&format!("{attr}__color"))),
        },
        deleted: match sent.get("deleted") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(deleted)) => *deleted,
            Some(_) => {
                let attr = format!("{attr}__deleted");
                return Err(FieldError::new(&attr, "invalid_input", "Must be a valid boolean."));
            }
        },
    })
}

fn layouts(attr: &str, sent: &Value) -> Result<TileLayouts, FieldError> {
    let Value::Object(sent) = sent else { return Err(no_object(attr, sent)) };
    let place = |name: &str| match sent.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(sent)) => layout(&format!("{attr}__{name}"), sent).map(Some),
        Some(other) => Err(no_object(&format!("{attr}__{name}"), other)),
    };
    Ok(TileLayouts { sm: place("sm")?, xs: place("xs")? })
}

/// A place. Clients send more about it, such as `minW`, which says nothing here. The service
/// checks that it is within its grid.
fn layout(attr: &str, sent: &Map<String, Value>) -> Result<TileLayout, FieldError> {
    let number = |name: &str| {
        let attr = format!("{attr}__{name}");
        match sent.get(name) {
            None | Some(Value::Null) => Err(missing(&attr)),
            Some(value) => to_integer(&attr, value, i64::MIN, i64::MAX),
        }
    };
    Ok(TileLayout { x: number("x")?, y: number("y")?, w: number("w")?, h: number("h")? })
}
