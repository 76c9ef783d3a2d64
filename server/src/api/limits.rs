//! `…/limits/` of an organization: its limits, and how much of them is used (API-56).

use axum::Json;
use axum::extract::State;
use weir_model::limits::OrganizationLimits;

use crate::app::App;
use crate::http::error::ApiResult;
use crate::http::extract::{Authorized, InOrganization};
use crate::http::guards::OrganizationRead;

/// The limits of the organization, which the operator of the instance chooses.
pub async fn get_organization_limits(
    auth: Authorized<OrganizationRead, InOrganization>,
    State(app): State<App>,
) -> ApiResult<Json<OrganizationLimits>> {
    Ok(Json(app.services.limits.of(&auth.ctx).await?))
}
