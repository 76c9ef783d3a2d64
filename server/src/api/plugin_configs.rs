//! `/api/projects/{project_id}/pipeline_transformation_configs/` (PLG-13).

mod body;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, header};
use weir_model::pagination::{Envelope, Paged};
use weir_model::plugin_configs::{
    DryRun, DryRunInput, PluginConfig, PluginConfigFrontend, PluginConfigInput, PluginConfigOrder,
    PluginConfigPatch, PluginLogEntry, RearrangeInput,
};

use crate::api::{Created, NoContent};
use crate::app::App;
use crate::filters;
use crate::http::accept;
use crate::http::error::ApiResult;
use crate::http::extract::{ApiJson, Authorized, InProject, PathParams};
use crate::http::guards::{PluginsRead, PluginsWrite};
use crate::http::pagination::{Listing, Params};
use body::JobBody;

/// The media types of a JavaScript module.
pub(crate) const MODULE: &[&str] = &["application/javascript", "text/javascript"];
const JSON: &[&str] = &["application/json"];

filters! {
    /// Selects the form of values in the answer.
    Form {
        "expand": OtherForm, "`object`: `config`, `plugin_info` and `error` as objects and `delivery_rate_24h` as a number, instead of their texts.";
    }
}

fn is_expanded(param: Option<&str>) -> bool {
    param == Some("object")
}

fn in_form(form: &Params<Form>, config: PluginConfig) -> PluginConfig {
    if is_expanded(form.param("expand")) { config } else { config.texts() }
}

/// The transformation configs of the project, in execution order.
pub async fn list_transformation_configs(
    auth: Authorized<PluginsRead, InProject>,
    State(app): State<App>,
    listing: Listing<Form>,
) -> ApiResult<Json<Envelope<PluginConfig>>> {
    let Paged { count, mut results } =
        app.services.plugin_configs.list(&auth.ctx, listing.page()).await?;
    if !is_expanded(listing.param("expand")) {
        results = results.into_iter().map(PluginConfig::texts).collect();
    }
    Ok(Json(listing.envelope(Paged { count, results })))
}

/// Create a transformation config. Omitted settings get the defaults of the plugin.
pub async fn create_transformation_config(
    auth: Authorized<PluginsWrite, InProject>,
    State(app): State<App>,
    form: Params<Form>,
    body: ApiJson<PluginConfigInput>,
) -> ApiResult<Created<PluginConfig>> {
    let created = app.services.plugin_configs.create(&auth.ctx, body.unchecked()).await?;
    Ok(Created(in_form(&form, created)))
}

/// One transformation config.
pub async fn get_transformation_config(
    auth: Authorized<PluginsRead, InProject>,
    State(app): State<App>,
    path: PathParams,
    form: Params<Form>,
) -> ApiResult<Json<PluginConfig>> {
    let config = app.services.plugin_configs.get(&auth.ctx, path.get("config_id")?).await?;
    Ok(Json(in_form(&form, config)))
}

/// Change some fields. Omitted secrets keep their values.
pub async fn update_transformation_config(
    auth: Authorized<PluginsWrite, InProject>,
    State(app): State<App>,
    path: PathParams,
    form: Params<Form>,
    body: ApiJson<PluginConfigPatch>,
) -> ApiResult<Json<PluginConfig>> {
    let (configs, id) = (&app.services.plugin_configs, path.get("config_id")?);
    let updated = configs.update(&auth.ctx, id, body.unchecked()).await?;
    Ok(Json(in_form(&form, updated)))
}

/// Delete a transformation config with its attachments.
pub async fn delete_transformation_config(
    auth: Authorized<PluginsWrite, InProject>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<NoContent> {
    app.services.plugin_configs.delete(&auth.ctx, path.get("config_id")?).await?;
    Ok(NoContent)
}

/// The module of the plugin's page. A client that prefers JavaScript to JSON gets the
/// module alone, others get it with the config.
pub async fn get_transformation_config_frontend(
    auth: Authorized<PluginsRead, InProject>,
    State(app): State<App>,
    path: PathParams,
    form: Params<Form>,
    headers: HeaderMap,
) -> ApiResult<Frontend> {
    let id = path.get("config_id")?;
    let found = app.services.plugin_configs.frontend(&auth.ctx, id).await?;
    if accept::weight(&headers, MODULE) > accept::weight(&headers, JSON) {
        return Ok(Frontend::Module(found.frontend));
    }
    let whole = PluginConfigFrontend { config: in_form(&form, found.config), ..found };
    Ok(Frontend::Whole(Box::new(whole)))
}

/// Run a job of the plugin. Without `job` nothing is run.
pub async fn run_transformation_config_job(
    auth: Authorized<PluginsWrite, InProject>,
    State(app): State<App>,
    path: PathParams,
    form: Params<Form>,
    body: ApiJson<JobBody>,
) -> ApiResult<Json<PluginConfig>> {
    let (configs, id) = (&app.services.plugin_configs, path.get("config_id")?);
    let job = body.unchecked_as(|JobBody(job)| job);
    Ok(Json(in_form(&form, configs.job(&auth.ctx, id, job).await?)))
}

/// Change the order of configs: `orders` has an order for each config, or `plugin` and
/// `order` move one. Answers the first config, and all configs in `results`.
pub async fn rearrange_transformation_configs(
    auth: Authorized<PluginsWrite, InProject>,
    State(app): State<App>,
    form: Params<Form>,
    body: ApiJson<RearrangeInput>,
) -> ApiResult<Json<PluginConfigOrder>> {
    let order = app.services.plugin_configs.rearrange(&auth.ctx, body.unchecked()).await?;
    let is_expanded = is_expanded(form.param("expand"));
    Ok(Json(if is_expanded { order } else { order.texts() }))
}

/// The log lines of a config, newest first.
pub async fn list_transformation_config_logs(
    auth: Authorized<PluginsRead, InProject>,
    State(app): State<App>,
    path: PathParams,
    listing: Listing,
) -> ApiResult<Json<Envelope<PluginLogEntry>>> {
    let (configs, id) = (&app.services.plugin_configs, path.get("config_id")?);
    let logs = configs.logs(&auth.ctx, id, listing.page()).await?;
    Ok(Json(listing.envelope(logs)))
}

/// Test one config with an event that is not stored: `event`, or else the newest event of
/// the project. The config may be disabled.
pub async fn test_transformation_config(
    auth: Authorized<PluginsWrite, InProject>,
    State(app): State<App>,
    path: PathParams,
    body: ApiJson<DryRunInput>,
) -> ApiResult<Json<DryRun>> {
    let (configs, id) = (&app.services.plugin_configs, path.get("config_id")?);
    Ok(Json(configs.try_one(&auth.ctx, id, body.unchecked()).await?))
}

/// Test all enabled configs in their order with an event that is not stored: `event`, or
/// else the newest event of the project.
pub async fn test_transformation_configs(
    auth: Authorized<PluginsWrite, InProject>,
    State(app): State<App>,
    body: ApiJson<DryRunInput>,
) -> ApiResult<Json<DryRun>> {
    Ok(Json(app.services.plugin_configs.try_all(&auth.ctx, body.unchecked()).await?))
}

/// A module, or a config with its module.
#[derive(Debug)]
pub enum Frontend {
    /// The module alone.
    Module(String),
    /// The config with its module.
    Whole(Box<PluginConfigFrontend>),
}

impl IntoResponse for Frontend {
    fn into_response(self) -> Response {
        match self {
            Self::Module(text) => {
                let media = "application/javascript; charset=UTF-8";
                ([(header::CONTENT_TYPE, media)], text).into_response()
            }
            Self::Whole(config) => Json(config).into_response(),
        }
    }
}
