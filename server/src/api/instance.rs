//! `/api/instance/`: all organizations of the instance and their limits, for its staff
//! (API-56). Other callers learn nothing of these paths.

use axum::Json;
use axum::extract::State;
use weir_model::Patch;
use weir_model::errors::FieldError;
use weir_model::limits::{
    DEFAULT_WORD, InstanceOrganization, LimitAction, LimitName, LimitPatch, LimitsPatch, NONE_WORD,
    OrganizationLimits, action_field, number_field,
};
use weir_model::pagination::Envelope;

use crate::app::App;
use crate::http::error::ApiResult;
use crate::http::extract::{ApiJson, Authorized, InInstance, PathParams};
use crate::http::guards::EveryScope;
use crate::http::input::{Fields, Input};
use crate::http::pagination::Listing;

/// All organizations of the instance, oldest first. For the staff of the instance.
pub async fn list_instance_organizations(
    auth: Authorized<EveryScope, InInstance>,
    State(app): State<App>,
    listing: Listing,
) -> ApiResult<Json<Envelope<InstanceOrganization>>> {
    let paged = app.services.limits.organizations(&auth.ctx, listing.page()).await?;
    Ok(Json(listing.envelope(paged)))
}

/// The limits of any organization. For the staff of the instance.
pub async fn get_instance_organization_limits(
    auth: Authorized<EveryScope, InInstance>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Json<OrganizationLimits>> {
    let id = path.get("organization_id")?;
    let (_, limits) = app.services.limits.organization(&auth.ctx, id).await?;
    Ok(Json(limits))
}

/// Choose limits of any organization. For the staff of the instance. A limit needs its
/// number and its action; `default` and `none` need no number.
pub async fn update_instance_organization_limits(
    auth: Authorized<EveryScope, InInstance>,
    State(app): State<App>,
    path: PathParams,
    body: ApiJson<LimitsPatch>,
) -> ApiResult<Json<OrganizationLimits>> {
    let id = path.get("organization_id")?;
    Ok(Json(app.services.limits.set(&auth.ctx, id, body.unchecked()).await?))
}

impl Input for LimitsPatch {
    const EXAMPLE: &'static str =
        r#"{"events_per_month_limit": 1000000, "events_per_month_action": "reject"}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let mut patch = Self::default();
        for name in LimitName::ALL {
            let limit = fields.nullable_integer(&number_field(name), 1, name.largest())?;
            let actions = name.actions().iter().copied().map(LimitAction::word);
            let words: Vec<&str> = [DEFAULT_WORD, NONE_WORD].into_iter().chain(actions).collect();
            let action = match fields.word(&action_field(name), &words)? {
                Patch::Set(word) => Some(word),
                Patch::Keep | Patch::Clear => None,
            };
            *patch.get_mut(name) = LimitPatch { limit, action };
        }
        Ok(patch)
    }
}
