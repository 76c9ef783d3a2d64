//! `/api/organizations/{organization_id}/invites/` (API-33, API-34).

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use weir_model::Patch;
use weir_model::errors::FieldError;
use weir_model::invites::{FIRST_NAME_MAX, Invite, InviteInput, MESSAGE_MAX};
use weir_model::organizations::Level;
use weir_model::pagination::Envelope;
use weir_model::validate;
use weir_service::invites::Invites;
use weir_service::unchecked::Unchecked;

use super::members::{LEVELS, level};
use crate::api::{Created, NoContent};
use crate::app::App;
use crate::http::error::ApiResult;
use crate::http::extract::{ApiItems, ApiJson, Authorized, InOrganization, OneOrMany, PathParams};
use crate::http::guards::{MembersRead, MembersWrite};
use crate::http::input::{Fields, Input};
use crate::http::pagination::Listing;

/// Longest address, in characters.
const EMAIL_MAX: usize = 254;
const NO_LIST: &str = "This endpoint needs an array of data for bulk invite creation.";

/// The invites to an organization, newest first.
pub async fn list_invites(
    auth: Authorized<MembersRead, InOrganization>,
    State(app): State<App>,
    listing: Listing,
) -> ApiResult<Json<Envelope<Invite>>> {
    let paged = app.services.invites.list(&auth.ctx, listing.page()).await?;
    Ok(Json(listing.envelope(paged)))
}

/// Invite a user. An earlier invite for the same address ends.
pub async fn create_invite(
    auth: Authorized<MembersWrite, InOrganization>,
    State(app): State<App>,
    body: ApiJson<InviteInput>,
) -> ApiResult<Created<Invite>> {
    Ok(Created(app.services.invites.create(&auth.ctx, body.unchecked()).await?))
}

/// Invite several users. If one invite is invalid, none is created. A list is answered
/// with a list, a single object with a single object.
pub async fn create_invites(
    auth: Authorized<MembersWrite, InOrganization>,
    State(app): State<App>,
    mut body: ApiItems<InviteInput>,
) -> ApiResult<Invited> {
    let mut is_list = false;
    let inputs = Unchecked::new(|| match body.read(NO_LIST, Invites::refuse_too_many)? {
        OneOrMany::One(input) => Ok(vec![input]),
        OneOrMany::Many(inputs) => {
            is_list = true;
            Ok(inputs)
        }
    });
    let mut made = app.services.invites.create_all(&auth.ctx, inputs).await?;
    Ok(Invited(match made.pop() {
        Some(invite) if !is_list => OneOrMany::One(invite),
        last => OneOrMany::Many(made.into_iter().chain(last).collect()),
    }))
}

/// Delete an invite.
pub async fn delete_invite(
    auth: Authorized<MembersWrite, InOrganization>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<NoContent> {
    app.services.invites.delete(&auth.ctx, path.get("invite_id")?).await?;
    Ok(NoContent)
}

/// New invites: 200 with one invite or with a list.
#[derive(Debug)]
pub struct Invited(OneOrMany<Invite>);

impl IntoResponse for Invited {
    fn into_response(self) -> Response {
        match self.0 {
            OneOrMany::One(invite) => Json(invite).into_response(),
            OneOrMany::Many(invites) => Json(invites).into_response(),
        }
    }
}

impl Input for InviteInput {
    const EXAMPLE: &'static str = r#"{"target_email": "grace@mail.example", "first_name": "Grace", "message": "Welcome to the team."}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let target_email = fields.required_text("target_email", EMAIL_MAX)?;
        fields.refine("target_email", || json!({"format": "email"}));
        let target_email = validate::email("target_email", &target_email)?;
        let first_name =
            fields.optional_text("first_name", FIRST_NAME_MAX)?.apply(String::new(), String::new());
        let chosen = match fields.choice("level", &LEVELS)? {
            Patch::Set(chosen) => level("level", chosen)?,
            Patch::Keep | Patch::Clear => Level::Member,
        };
        let message = match fields.nullable_text("message", MESSAGE_MAX)? {
            Patch::Set(message) => Some(message),
            Patch::Keep | Patch::Clear => None,
        };
        let send_email = fields.boolean("send_email")?.apply(true, true);
        Ok(Self { target_email, first_name, level: chosen, message, send_email })
    }
}
