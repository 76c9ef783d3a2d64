//! `/api/reset/`, `/api/users/verify_email/` and
//! `/api/users/request_email_verification/`: operations with a link from a mail (API-42,
//! API-43).

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use weir_model::errors::FieldError;
use weir_model::user_links::{Confirmed, LinkKind, PasswordReset, TOKEN_MAX};
use weir_model::validate;
use weir_service::Error as ServiceError;

use crate::api::signup::{EMAIL_MAX, PASSWORD_MAX};
use crate::api::{NoContent, Nothing};
use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{ApiJson, PathParams};
use crate::http::input::{Fields, Input};
use crate::http::pagination::Params;
use crate::http::visitor::{Opened, Visitor};

/// Longest text of an id, in characters.
const ID_MAX: usize = 64;

filters! {
    /// Query parameters of a link.
    LinkParams {
        "token": RequiredText, "The token of the link.";
    }
}

/// Send a mail with a link for setting a new password. The answer does not show whether
/// the user exists.
pub async fn request_password_reset(
    visitor: Visitor,
    State(app): State<App>,
    body: ApiJson<ResetRequest>,
) -> ApiResult<NoContent> {
    let ResetRequest { email } = body.checked()?;
    app.services.identity.ask_reset(&email, &visitor.peer).await?;
    Ok(NoContent)
}

/// Check whether a link for setting a new password is valid.
pub async fn check_password_reset(
    visitor: Visitor,
    State(app): State<App>,
    path: PathParams,
    params: Params<LinkParams>,
) -> ApiResult<Nothing> {
    let user = path.get("user_id")?;
    let token = params.param("token").unwrap_or_default();
    let identity = &app.services.identity;
    identity.check_link(LinkKind::Reset, user, token, &visitor.peer).await?;
    Ok(Nothing)
}

/// Set a new password with a link. All sessions of the user end.
pub async fn reset_password(
    visitor: Visitor,
    State(app): State<App>,
    path: PathParams,
    body: ApiJson<NewPassword>,
) -> ApiResult<Json<PasswordReset>> {
    let user = path.get("user_id")?;
    let NewPassword { token, password } = body.checked()?;
    let Visitor { peer, request_id, .. } = &visitor;
    let identity = &app.services.identity;
    let set = identity.reset_password(user, &token, &password, peer, request_id).await?;
    Ok(Json(PasswordReset { success: true, email: set.email }))
}

/// Confirm an email address with a link, and sign in. If the user has a second factor,
/// its code is required before a session starts.
pub async fn confirm_email(
    visitor: Visitor,
    State(app): State<App>,
    body: ApiJson<Confirmation>,
) -> ApiResult<Opened<Confirmed>> {
    visitor.refuse_without_session()?;
    let Confirmation { uuid, token } = body.checked()?;
    let identity = &app.services.identity;
    let confirmed = identity.confirm(&uuid, &token, &visitor.peer, &visitor.request_id).await;
    let answer = |token| Opened::new(Confirmed { success: true, token });
    match confirmed {
        Ok(session) => Ok(answer(token).with(&visitor, &session)),
        Err(ServiceError::SecondFactor(pending)) => {
            Ok(answer(token).with_pending(&visitor, &pending))
        }
        Err(other) => Err(other.into()),
    }
}

/// Send the mail with the confirmation link again. The answer does not show whether the
/// user exists.
pub async fn request_email_confirmation(
    visitor: Visitor,
    State(app): State<App>,
    body: ApiJson<ConfirmationRequest>,
) -> ApiResult<Json<Requested>> {
    let ConfirmationRequest { uuid } = body.checked()?;
    app.services.identity.ask_confirmation(&uuid, &visitor.peer).await?;
    Ok(Json(Requested { success: true }))
}

/// The answer to a request for a mail.
#[derive(Debug, Serialize, ToSchema)]
pub struct Requested {
    /// Always true.
    pub success: bool,
}

/// The body of a request for a password reset.
pub struct ResetRequest {
    email: String,
}

impl Input for ResetRequest {
    const EXAMPLE: &'static str = r#"{"email": "ada@mail.example"}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let email = fields.required_text("email", EMAIL_MAX)?;
        fields.refine("email", || serde_json::json!({"format": "email"}));
        Ok(Self { email: validate::email("email", &email)? })
    }
}

/// A password to be set with a link.
pub struct NewPassword {
    token: String,
    password: String,
}

impl Input for NewPassword {
    const EXAMPLE: &'static str = r#"{"token": "8mSe7ahXnDZiJqLLFAN3O4FE1ejA0xLUjvlZHVZKWdY", "password": "plum-otter-violin-93"}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        Ok(Self {
            token: fields.required_text("token", TOKEN_MAX)?,
            password: fields.secret("password", PASSWORD_MAX)?,
        })
    }
}

/// An address to be confirmed with a link.
pub struct Confirmation {
    uuid: String,
    token: String,
}

impl Input for Confirmation {
    const EXAMPLE: &'static str = r#"{"uuid": "01979e3c-7a1e-7c34-b1d5-2f60a9b1c0de", "token": "8mSe7ahXnDZiJqLLFAN3O4FE1ejA0xLUjvlZHVZKWdY"}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        Ok(Self { uuid: uuid(fields)?, token: fields.required_text("token", TOKEN_MAX)? })
    }
}

/// The body of a request for another confirmation mail.
pub struct ConfirmationRequest {
    uuid: String,
}

impl Input for ConfirmationRequest {
    const EXAMPLE: &'static str = r#"{"uuid": "01979e3c-7a1e-7c34-b1d5-2f60a9b1c0de"}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        Ok(Self { uuid: uuid(fields)? })
    }
}

/// The id of a user. A malformed id is answered like an unknown one.
fn uuid(fields: &Fields) -> Result<String, FieldError> {
    let text = fields.required_text("uuid", ID_MAX)?;
    fields.refine("uuid", || serde_json::json!({"format": "uuid"}));
    Ok(text)
}
