//! `/api/projects/` and the same paths below an organization (API-26).

use axum::Json;
use axum::extract::State;
use serde_json::json;
use weir_model::OrganizationId;
use weir_model::errors::FieldError;
use weir_model::pagination::Envelope;
use weir_model::projects::{
    DESCRIPTION_MAX, ITEM_MAX, LIST_MAX, NAME_MAX, Project, ProjectBrief, ProjectPatch,
    RETENTION_DAYS_MAX, WEEK_STARTS,
};
use weir_service::projects::timezone;
use weir_service::{OrgCtx, ProjectCtx};

use crate::api::{Created, NoContent};
use crate::app::App;
use crate::http::error::ApiResult;
use crate::http::extract::{
    ApiJson, AtOrganizationProject, AtProject, Authorized, ForProject, ForProjectOfCurrent,
    InAllOrganizations, InOrganization, InOrganizationProject, InProject,
};
use crate::http::guards::{ProjectRead, ProjectWrite};
use crate::http::input::{Fields, Input};
use crate::http::pagination::Listing;

/// Longest time zone name, in characters.
const TIMEZONE_MAX: usize = 64;
/// Longest text of an id, in characters.
const REFERENCE_MAX: usize = 64;

/// The projects of all organizations that the caller belongs to.
pub async fn list_projects(
    auth: Authorized<ProjectRead, InAllOrganizations>,
    State(app): State<App>,
    listing: Listing,
) -> ApiResult<Json<Envelope<ProjectBrief>>> {
    let paged = app.services.projects.list(&auth.ctx, listing.page()).await?;
    Ok(Json(listing.envelope(paged)))
}

/// The projects of one organization.
pub async fn list_organization_projects(
    auth: Authorized<ProjectRead, InOrganization>,
    State(app): State<App>,
    listing: Listing,
) -> ApiResult<Json<Envelope<ProjectBrief>>> {
    let paged = app.services.projects.list_in(&auth.ctx, listing.page()).await?;
    Ok(Json(listing.envelope(paged)))
}

/// Create a project in the caller's current organization.
pub async fn create_project(
    auth: Authorized<ProjectWrite, ForProjectOfCurrent>,
    State(app): State<App>,
    body: ApiJson<ProjectPatch>,
) -> ApiResult<Created<Project>> {
    create(&app, &auth.ctx, &body).await
}

/// Create a project in the organization of the path.
pub async fn create_organization_project(
    auth: Authorized<ProjectWrite, ForProject>,
    State(app): State<App>,
    body: ApiJson<ProjectPatch>,
) -> ApiResult<Created<Project>> {
    create(&app, &auth.ctx, &body).await
}

async fn create(
    app: &App,
    organization: &OrgCtx,
    body: &ApiJson<ProjectPatch>,
) -> ApiResult<Created<Project>> {
    let project = app.services.projects.create(organization, body.checked()?).await?;
    app.tokens.refresh().await;
    Ok(Created(project))
}

/// One project.
pub async fn get_project(
    auth: Authorized<ProjectRead, AtProject>,
    State(app): State<App>,
) -> ApiResult<Json<Project>> {
    Ok(Json(app.services.projects.get(&auth.ctx).await?))
}

/// One project, by the path below its organization.
pub async fn get_organization_project(
    auth: Authorized<ProjectRead, AtOrganizationProject>,
    State(app): State<App>,
) -> ApiResult<Json<Project>> {
    Ok(Json(app.services.projects.get(&auth.ctx).await?))
}

/// Change some fields.
pub async fn update_project(
    auth: Authorized<ProjectWrite, AtProject>,
    State(app): State<App>,
    body: ApiJson<ProjectPatch>,
) -> ApiResult<Json<Project>> {
    update(&app, &auth.ctx, &body).await
}

/// Change some fields, by the path below the organization.
pub async fn update_organization_project(
    auth: Authorized<ProjectWrite, AtOrganizationProject>,
    State(app): State<App>,
    body: ApiJson<ProjectPatch>,
) -> ApiResult<Json<Project>> {
    update(&app, &auth.ctx, &body).await
}

async fn update(
    app: &App,
    project: &ProjectCtx,
    body: &ApiJson<ProjectPatch>,
) -> ApiResult<Json<Project>> {
    let updated = app.services.projects.update(project, body.unchecked()).await?;
    app.tokens.refresh().await;
    Ok(Json(updated))
}

/// Delete a project with all its data.
pub async fn delete_project(
    auth: Authorized<ProjectWrite, AtProject>,
    State(app): State<App>,
) -> ApiResult<NoContent> {
    delete(&app, &auth.ctx).await
}

/// Delete a project, by the path below the organization.
pub async fn delete_organization_project(
    auth: Authorized<ProjectWrite, AtOrganizationProject>,
    State(app): State<App>,
) -> ApiResult<NoContent> {
    delete(&app, &auth.ctx).await
}

async fn delete(app: &App, project: &ProjectCtx) -> ApiResult<NoContent> {
    app.services.projects.delete(project).await?;
    app.tokens.refresh().await;
    Ok(NoContent)
}

/// Replace the project API key. The old key stops working immediately.
pub async fn reset_project_token(
    auth: Authorized<ProjectWrite, InProject>,
    State(app): State<App>,
) -> ApiResult<Json<Project>> {
    reset_token(&app, &auth.ctx).await
}

/// Replace the project API key, by the path below the organization.
pub async fn reset_organization_project_token(
    auth: Authorized<ProjectWrite, InOrganizationProject>,
    State(app): State<App>,
) -> ApiResult<Json<Project>> {
    reset_token(&app, &auth.ctx).await
}

async fn reset_token(app: &App, project: &ProjectCtx) -> ApiResult<Json<Project>> {
    let project = app.services.projects.reset_token(project).await?;
    app.tokens.refresh().await;
    Ok(Json(project))
}

/// Create a new secret project key. The previous key stays valid as the backup.
pub async fn rotate_project_secret(
    auth: Authorized<ProjectWrite, InProject>,
    State(app): State<App>,
) -> ApiResult<Json<Project>> {
    Ok(Json(app.services.projects.rotate_secret_token(&auth.ctx).await?))
}

/// Create a new secret project key, by the path below the organization.
pub async fn rotate_organization_project_secret(
    auth: Authorized<ProjectWrite, InOrganizationProject>,
    State(app): State<App>,
) -> ApiResult<Json<Project>> {
    Ok(Json(app.services.projects.rotate_secret_token(&auth.ctx).await?))
}

/// Delete the backup of the secret project key, if there is one.
pub async fn delete_project_secret_backup(
    auth: Authorized<ProjectWrite, InProject>,
    State(app): State<App>,
) -> ApiResult<Json<Project>> {
    Ok(Json(app.services.projects.delete_secret_backup(&auth.ctx).await?))
}

/// Delete the backup of the secret project key, by the path below the organization.
pub async fn delete_organization_project_secret_backup(
    auth: Authorized<ProjectWrite, InOrganizationProject>,
    State(app): State<App>,
) -> ApiResult<Json<Project>> {
    Ok(Json(app.services.projects.delete_secret_backup(&auth.ctx).await?))
}

/// Move a project to another organization. The project keeps its events and keys.
pub async fn change_project_organization(
    auth: Authorized<ProjectWrite, InProject>,
    State(app): State<App>,
    body: ApiJson<NewHome>,
) -> ApiResult<Json<Project>> {
    let NewHome(organization) = body.checked()?;
    Ok(Json(app.services.projects.change_organization(&auth.ctx, organization).await?))
}

/// Move a project to another organization, by the path below the present one.
pub async fn move_organization_project(
    auth: Authorized<ProjectWrite, InOrganizationProject>,
    State(app): State<App>,
    body: ApiJson<NewHome>,
) -> ApiResult<Json<Project>> {
    let NewHome(organization) = body.checked()?;
    Ok(Json(app.services.projects.change_organization(&auth.ctx, organization).await?))
}

/// The organization that the project moves to.
#[derive(Debug)]
pub struct NewHome(OrganizationId);

impl Input for NewHome {
    const EXAMPLE: &'static str = r#"{"organization_id": "01979e3c-7a1e-7c34-b1d5-2f60a9b1c0de"}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let text = fields.required_text("organization_id", REFERENCE_MAX)?;
        fields.refine("organization_id", || json!({"format": "uuid"}));
        // An id that is malformed or not in canonical form is treated as unknown.
        let id = text
            .parse()
            .ok()
            .filter(|id: &OrganizationId| text.eq_ignore_ascii_case(&id.to_string()));
        id.map(Self).ok_or_else(|| {
            let detail = format!("Object with id={text} does not exist.");
            FieldError::new("organization_id", "does_not_exist", detail)
        })
    }
}

/// Fields are checked in the order in which the resource shows them. Each is checked
/// completely before the next, so the first invalid field is reported.
impl Input for ProjectPatch {
    const EXAMPLE: &'static str =
        r#"{"name": "Shop", "timezone": "Europe/Paris", "app_urls": ["https://shop.example"]}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        Ok(Self {
            name: fields.text("name", NAME_MAX)?,
            completed_snippet_onboarding: fields.boolean("completed_snippet_onboarding")?,
            timezone: fields.text("timezone", TIMEZONE_MAX)?.try_map(timezone)?,
            app_urls: fields.texts("app_urls", LIST_MAX, ITEM_MAX)?,
            anonymize_ips: fields.boolean("anonymize_ips")?,
            person_processing_opt_out: fields.boolean("person_processing_opt_out")?,
            person_display_name_properties: fields.nullable_texts(
                "person_display_name_properties",
                LIST_MAX,
                ITEM_MAX,
            )?,
            week_start_day: fields.nullable_choice("week_start_day", &WEEK_STARTS)?,
            event_retention_days: fields.nullable_integer(
                "event_retention_days",
                1,
                RETENTION_DAYS_MAX,
            )?,
            product_description: fields.nullable_text("product_description", DESCRIPTION_MAX)?,
        })
    }
}
