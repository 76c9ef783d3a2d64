//! `/api/organizations/{organization_id}/members/` (API-31, API-32).

use axum::Json;
use axum::extract::State;
use weir_model::errors::FieldError;
use weir_model::members::{Member, MemberKeys, MemberOrder, MemberPatch, MemberQuery, SEARCH_MAX};
use weir_model::organizations::Level;
use weir_model::pagination::Envelope;
use weir_model::{Patch, Timestamp, validate};

use crate::api::NoContent;
use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{ApiJson, Authorized, InOrganization, PathParams};
use crate::http::guards::{MembersRead, MembersWrite};
use crate::http::input::{Fields, Input};
use crate::http::pagination::Listing;

/// Valid values of a level in JSON.
pub(super) const LEVELS: [i64; 3] = [1, 8, 15];
const WRONG_TIME: &str = "Datetime has wrong format. Use one of these formats instead: \
     YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].";

filters! {
    /// Filters for members, and their order.
    MemberFilters {
        "order": OneOf(&["joined_at", "-joined_at"]), "`joined_at`: who joined first comes first. Anything else: who joined last does.";
        "email": Text, "Only the member with exactly this address.";
        "search": Text, "Only members with this in the first name, the last name or the address.";
        "updated_after": Time, "Only members that changed after this time.";
    }
}

/// The members of an organization.
pub async fn list_members(
    auth: Authorized<MembersRead, InOrganization>,
    State(app): State<App>,
    listing: Listing<MemberFilters>,
) -> ApiResult<Json<Envelope<Member>>> {
    let query = query(&listing)?;
    let paged = app.services.members.list(&auth.ctx, &query, listing.page()).await?;
    Ok(Json(listing.envelope(paged)))
}

/// Change a member's level.
pub async fn update_member(
    auth: Authorized<MembersWrite, InOrganization>,
    State(app): State<App>,
    path: PathParams,
    body: ApiJson<MemberPatch>,
) -> ApiResult<Json<Member>> {
    let members = &app.services.members;
    let member = members.changeable(&auth.ctx, path.get("user_id")?).await?;
    Ok(Json(members.update(&auth.ctx, member, body.checked()?).await?))
}

/// Change a member's level. `level` may be omitted, because it already has a value.
pub async fn replace_member(
    auth: Authorized<MembersWrite, InOrganization>,
    app: State<App>,
    path: PathParams,
    body: ApiJson<MemberPatch>,
) -> ApiResult<Json<Member>> {
    update_member(auth, app, path, body).await
}

/// Remove a member from the organization. A caller can also remove themselves.
pub async fn delete_member(
    auth: Authorized<MembersWrite, InOrganization>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<NoContent> {
    let members = &app.services.members;
    let member = members.changeable(&auth.ctx, path.get("user_id")?).await?;
    members.remove(&auth.ctx, member).await?;
    Ok(NoContent)
}

/// The personal API keys of a member that have access to the organization.
pub async fn list_member_keys(
    auth: Authorized<MembersRead, InOrganization>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Json<MemberKeys>> {
    Ok(Json(app.services.members.keys(&auth.ctx, path.get("user_id")?).await?))
}

fn query(listing: &Listing<MemberFilters>) -> Result<MemberQuery, FieldError> {
    let text = |name: &str| listing.param(name).map(str::trim).filter(|value| !value.is_empty());
    let search = text("search").map(|text| validate::optional_text("search", text, SEARCH_MAX));
    let updated_after = text("updated_after").map(|text| {
        Timestamp::parse_lenient(text)
            .ok_or_else(|| FieldError::new("updated_after", "invalid_input", WRONG_TIME))
    });
    Ok(MemberQuery {
        order: match text("order") {
            Some("joined_at") => MemberOrder::OldestFirst,
            Some(_) | None => MemberOrder::NewestFirst,
        },
        email: text("email").map(str::to_owned),
        search: search.transpose()?,
        updated_after: updated_after.transpose()?,
    })
}

/// The level for one of the values of [`LEVELS`].
pub(super) fn level(attr: &str, chosen: i64) -> Result<Level, FieldError> {
    Level::try_from(chosen).map_err(|_| validate::invalid_choice(attr, &chosen))
}

impl Input for MemberPatch {
    const EXAMPLE: &'static str = r#"{"level": 8}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let chosen = match fields.choice("level", &LEVELS)? {
            Patch::Set(chosen) => Some(level("level", chosen)?),
            Patch::Keep | Patch::Clear => None,
        };
        Ok(Self { level: chosen })
    }
}
