//! `/api/organizations/` (API-23).

use axum::Json;
use axum::extract::State;
use weir_model::Patch;
use weir_model::errors::FieldError;
use weir_model::organizations::{NAME_MAX, Organization, OrganizationPatch};
use weir_model::pagination::Envelope;

use crate::api::{Created, NoContent};
use crate::app::App;
use crate::http::error::ApiResult;
use crate::http::extract::{
    ApiJson, AtOrganization, Authorized, ForOrganization, InAllOrganizations,
};
use crate::http::guards::{OrganizationRead, OrganizationWrite};
use crate::http::input::{Fields, Input};
use crate::http::pagination::Listing;

/// The organizations that the caller belongs to.
pub async fn list_organizations(
    auth: Authorized<OrganizationRead, InAllOrganizations>,
    State(app): State<App>,
    listing: Listing,
) -> ApiResult<Json<Envelope<Organization>>> {
    let paged = app.services.organizations.list(&auth.ctx, listing.page()).await?;
    Ok(Json(listing.envelope(paged)))
}

/// Create an organization with a first project; the caller becomes its owner.
pub async fn create_organization(
    auth: Authorized<OrganizationWrite, ForOrganization>,
    State(app): State<App>,
    body: ApiJson<Named>,
) -> ApiResult<Created<Organization>> {
    let Named(settings) = body.checked()?;
    let organization = app.services.organizations.create(&auth.ctx, settings).await?;
    app.tokens.refresh().await;
    Ok(Created(organization))
}

/// One organization.
pub async fn get_organization(
    auth: Authorized<OrganizationRead, AtOrganization>,
    State(app): State<App>,
) -> ApiResult<Json<Organization>> {
    Ok(Json(app.services.organizations.get(&auth.ctx).await?))
}

/// Change some fields.
pub async fn update_organization(
    auth: Authorized<OrganizationWrite, AtOrganization>,
    State(app): State<App>,
    body: ApiJson<OrganizationPatch>,
) -> ApiResult<Json<Organization>> {
    Ok(Json(app.services.organizations.update(&auth.ctx, body.unchecked()).await?))
}

/// Change the fields that are sent. The name is required.
pub async fn replace_organization(
    auth: Authorized<OrganizationWrite, AtOrganization>,
    State(app): State<App>,
    body: ApiJson<Named>,
) -> ApiResult<Json<Organization>> {
    let patch = body.unchecked_as(|Named(patch)| patch);
    Ok(Json(app.services.organizations.update(&auth.ctx, patch).await?))
}

/// Delete an organization with all its data.
pub async fn delete_organization(
    auth: Authorized<OrganizationWrite, AtOrganization>,
    State(app): State<App>,
) -> ApiResult<NoContent> {
    app.services.organizations.delete(&auth.ctx).await?;
    app.tokens.refresh().await;
    Ok(NoContent)
}

/// The body of POST and PUT: settings that include the name.
#[derive(Debug)]
pub struct Named(OrganizationPatch);

impl Input for OrganizationPatch {
    const EXAMPLE: &'static str = r#"{"name": "Acme Coffee"}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        Ok(Self {
            name: fields.text("name", NAME_MAX)?,
            is_member_join_email_enabled: fields.boolean("is_member_join_email_enabled")?,
            enforce_2fa: fields.nullable_boolean("enforce_2fa")?,
        })
    }
}

impl Input for Named {
    const EXAMPLE: &'static str = r#"{"name": "Acme Tea", "enforce_2fa": false}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let name = fields.required_text("name", NAME_MAX)?;
        Ok(Self(OrganizationPatch { name: Patch::Set(name), ..OrganizationPatch::read(fields)? }))
    }
}
