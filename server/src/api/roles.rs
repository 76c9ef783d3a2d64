//! `/api/organizations/{organization_id}/roles/` (API-44): names for groups of members. A
//! role grants no rights.

use axum::Json;
use axum::extract::State;
use serde_json::json;
use weir_model::errors::FieldError;
use weir_model::pagination::Envelope;
use weir_model::roles::{
    NAME_MAX, Role, RoleInput, RoleMembership, RoleMembershipInput, RolePatch,
};
use weir_model::{Patch, UserId};

use crate::api::{Created, NoContent};
use crate::app::App;
use crate::http::error::ApiResult;
use crate::http::extract::{ApiJson, Authorized, InOrganization, PathParams};
use crate::http::guards::{OrganizationRead, OrganizationWrite};
use crate::http::input::{Fields, Input};
use crate::http::pagination::Listing;

const ID: &str = "role_id";
const MEMBERSHIP: &str = "role_membership_id";
/// Longest text of an id, in characters.
const REFERENCE_MAX: usize = 64;

/// The roles of an organization, oldest first. A role is a name for a group of members
/// and grants no rights.
pub async fn list_roles(
    auth: Authorized<OrganizationRead, InOrganization>,
    State(app): State<App>,
    listing: Listing,
) -> ApiResult<Json<Envelope<Role>>> {
    let paged = app.services.roles.list(&auth.ctx, listing.page()).await?;
    Ok(Json(listing.envelope(paged)))
}

/// Create a role without members.
pub async fn create_role(
    auth: Authorized<OrganizationWrite, InOrganization>,
    State(app): State<App>,
    body: ApiJson<RoleInput>,
) -> ApiResult<Created<Role>> {
    Ok(Created(app.services.roles.create(&auth.ctx, body.unchecked()).await?))
}

/// One role with its members.
pub async fn get_role(
    auth: Authorized<OrganizationRead, InOrganization>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Json<Role>> {
    Ok(Json(app.services.roles.get(&auth.ctx, path.get(ID)?).await?))
}

/// Rename a role.
pub async fn update_role(
    auth: Authorized<OrganizationWrite, InOrganization>,
    State(app): State<App>,
    path: PathParams,
    body: ApiJson<RolePatch>,
) -> ApiResult<Json<Role>> {
    let roles = &app.services.roles;
    let changeable = roles.changeable(&auth.ctx, path.get(ID)?).await?;
    Ok(Json(roles.rename(&auth.ctx, changeable, body.checked()?).await?))
}

/// Delete a role. Its members stay members of the organization.
pub async fn delete_role(
    auth: Authorized<OrganizationWrite, InOrganization>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<NoContent> {
    let roles = &app.services.roles;
    let changeable = roles.changeable(&auth.ctx, path.get(ID)?).await?;
    roles.delete(&auth.ctx, changeable).await?;
    Ok(NoContent)
}

/// The members with a role, in the order in which they got it.
pub async fn list_role_memberships(
    auth: Authorized<OrganizationRead, InOrganization>,
    State(app): State<App>,
    path: PathParams,
    listing: Listing,
) -> ApiResult<Json<Envelope<RoleMembership>>> {
    let paged = app.services.roles.members(&auth.ctx, path.get(ID)?, listing.page()).await?;
    Ok(Json(listing.envelope(paged)))
}

/// Assign a role to a member of the organization.
pub async fn create_role_membership(
    auth: Authorized<OrganizationWrite, InOrganization>,
    State(app): State<App>,
    path: PathParams,
    body: ApiJson<RoleMembershipInput>,
) -> ApiResult<Created<RoleMembership>> {
    let roles = &app.services.roles;
    let changeable = roles.changeable(&auth.ctx, path.get(ID)?).await?;
    Ok(Created(roles.add(&auth.ctx, changeable, body.checked()?).await?))
}

/// One membership of a role.
pub async fn get_role_membership(
    auth: Authorized<OrganizationRead, InOrganization>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Json<RoleMembership>> {
    let member = app.services.roles.member(&auth.ctx, path.get(ID)?, path.get(MEMBERSHIP)?);
    Ok(Json(member.await?))
}

/// Remove a role from a member.
pub async fn delete_role_membership(
    auth: Authorized<OrganizationWrite, InOrganization>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<NoContent> {
    let roles = &app.services.roles;
    let changeable = roles.changeable(&auth.ctx, path.get(ID)?).await?;
    roles.remove(&auth.ctx, changeable, path.get(MEMBERSHIP)?).await?;
    Ok(NoContent)
}

impl Input for RoleInput {
    const EXAMPLE: &'static str = r#"{"name": "Support"}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        Ok(Self { name: fields.required_text("name", NAME_MAX)? })
    }
}

impl Input for RolePatch {
    const EXAMPLE: &'static str = r#"{"name": "Support team"}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        Ok(Self {
            name: match fields.text("name", NAME_MAX)? {
                Patch::Set(name) => Some(name),
                Patch::Keep => None,
                Patch::Clear => {
                    return Err(FieldError::new("name", "null", "This field may not be null."));
                }
            },
        })
    }
}

impl Input for RoleMembershipInput {
    const EXAMPLE: &'static str = r#"{"user_uuid": "01979e3c-7a1e-7c34-b1d5-2f60a9b1c0de"}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let text = fields.required_text("user_uuid", REFERENCE_MAX)?;
        fields.refine("user_uuid", || json!({"format": "uuid"}));
        let user: Option<UserId> = text.parse().ok();
        let user = user.ok_or_else(|| {
            FieldError::new("user_uuid", "invalid_input", "Must be a valid UUID.")
        })?;
        Ok(Self { user })
    }
}
