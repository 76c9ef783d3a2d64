//! `/api/organizations/{organization_id}/domains/{domain_id}/scim/`: what an administrator
//! decides about provisioning (SSO-50, SSO-56). The protocol itself is in `crate::scim`.

use axum::Json;
use axum::extract::State;
use weir_model::errors::FieldError;
use weir_model::organizations::Level;
use weir_model::pagination::Envelope;
use weir_model::scim::{LEVELS, Scim, ScimGroup, ScimGroupPatch, ScimToken};

use crate::api::{Created, NoContent};
use crate::app::App;
use crate::http::error::ApiResult;
use crate::http::extract::{ApiJson, Authorized, InOrganization, PathParams};
use crate::http::guards::{MembersWrite, OrganizationRead, OrganizationWrite};
use crate::http::input::{Fields, Input};
use crate::http::pagination::Listing;

/// Provisioning of a domain: the path for the identity provider, and its token without the
/// value.
pub async fn get_provisioning(
    auth: Authorized<OrganizationRead, InOrganization>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Json<Scim>> {
    Ok(Json(app.services.scim.of_domain(&auth.ctx, path.get("domain_id")?).await?))
}

/// Make a token, in place of the one before. Only this answer contains its value. The
/// domain must be verified. The body is ignored.
pub async fn create_scim_token(
    auth: Authorized<MembersWrite, InOrganization>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Created<ScimToken>> {
    let scim = &app.services.scim;
    let changeable = scim.provisionable(&auth.ctx, path.get("domain_id")?).await?;
    Ok(Created(scim.create_token(&auth.ctx, changeable).await?))
}

/// Revoke the token. Users and groups stay as they are.
pub async fn revoke_scim_token(
    auth: Authorized<OrganizationWrite, InOrganization>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<NoContent> {
    let scim = &app.services.scim;
    let changeable = scim.changeable(&auth.ctx, path.get("domain_id")?).await?;
    scim.revoke_token(&auth.ctx, changeable).await?;
    Ok(NoContent)
}

/// The groups that the identity provider has sent, oldest first.
pub async fn list_scim_groups(
    auth: Authorized<OrganizationRead, InOrganization>,
    State(app): State<App>,
    path: PathParams,
    listing: Listing,
) -> ApiResult<Json<Envelope<ScimGroup>>> {
    let domain = path.get("domain_id")?;
    let paged = app.services.scim.list_groups(&auth.ctx, domain, listing.page()).await?;
    Ok(Json(listing.envelope(paged)))
}

/// One group of the identity provider.
pub async fn get_scim_group(
    auth: Authorized<OrganizationRead, InOrganization>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Json<ScimGroup>> {
    let (domain, group) = (path.get("domain_id")?, path.get("group_id")?);
    Ok(Json(app.services.scim.get_group(&auth.ctx, domain, group).await?))
}

/// Set the level that the members of a group get. It changes the levels of those that the
/// group has.
pub async fn update_scim_group(
    auth: Authorized<MembersWrite, InOrganization>,
    State(app): State<App>,
    path: PathParams,
    body: ApiJson<ScimGroupPatch>,
) -> ApiResult<Json<ScimGroup>> {
    let scim = &app.services.scim;
    let changeable = scim.provisionable(&auth.ctx, path.get("domain_id")?).await?;
    let group = path.get("group_id")?;
    Ok(Json(scim.update_group(&auth.ctx, changeable, group, body.checked()?).await?))
}

impl Input for ScimGroupPatch {
    const EXAMPLE: &'static str = r#"{"level": 8}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let level = fields.nullable_choice("level", &LEVELS)?;
        let level = level.try_map(|level| {
            let wrong = |detail| FieldError::new("level", "invalid_choice", detail);
            Level::try_from(level).map_err(wrong)
        })?;
        Ok(Self { level })
    }
}
