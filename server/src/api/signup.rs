//! `/api/signup/{token}/`, `/api/login/`, its precheck and its second step: how a user
//! without a key signs in (API-35, API-40).

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use weir_model::domains::Precheck;
use weir_model::errors::FieldError;
use weir_model::invites::{Invitation, SignUpInput, SignedUp, USER_FIRST_NAME_MAX};
use weir_model::user_links::LinkKind;
use weir_model::users::User;
use weir_model::validate;

use crate::app::App;
use crate::http::error::ApiResult;
use crate::http::extract::{ApiJson, PathParams};
use crate::http::input::{Fields, Input};
use crate::http::visitor::{Opened, Visitor};

/// Longest accepted password, in characters. The service decides whether a password is
/// strong enough.
pub(super) const PASSWORD_MAX: usize = 1024;
/// Longest accepted code, in characters.
const CODE_MAX: usize = 64;
/// Longest address, in characters.
pub(super) const EMAIL_MAX: usize = 254;

/// An invite: the invited address and the organization.
pub async fn get_invitation(
    visitor: Visitor,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Json<Invitation>> {
    let token = path.get("token")?;
    let identity = &app.services.identity;
    let shown = identity.invitation(visitor.ctx.as_ref(), token, &visitor.peer).await?;
    Ok(Json(shown.invitation))
}

/// Accept an invite: as the user of the session, or else as a new user.
pub async fn accept_invitation(
    visitor: Visitor,
    State(app): State<App>,
    path: PathParams,
    body: ApiJson<SignUpInput>,
) -> ApiResult<Opened<SignedUp, 201>> {
    let token = path.get("token")?;
    let identity = &app.services.identity;
    if let Some(ctx) = &visitor.ctx {
        let user = identity.join(ctx, token, &visitor.peer).await?;
        return Ok(Opened::new(signed_up(user, "/".to_owned())));
    }
    visitor.refuse_without_session()?;
    let input = || body.read();
    let (user, session) =
        identity.sign_up(token, input, &visitor.peer, &visitor.request_id).await?;
    Ok(match session {
        Some(session) => Opened::new(signed_up(user, "/".to_owned())).with(&visitor, &session),
        // The address must be confirmed first.
        None => {
            let page = LinkKind::Confirm.page(user.uuid);
            Opened::new(signed_up(user, page))
        }
    })
}

/// Sign in with email address and password.
pub async fn login(
    visitor: Visitor,
    State(app): State<App>,
    body: ApiJson<LoginInput>,
) -> ApiResult<Opened<SignedIn>> {
    visitor.refuse_without_session()?;
    let LoginInput { email, password } = body.checked()?;
    let signed_in = app.services.identity.sign_in(&email, &password, &visitor.peer).await;
    let session = signed_in.map_err(|error| visitor.refused(error))?;
    Ok(Opened::new(SignedIn { success: true }).with(&visitor, &session))
}

/// Complete a sign-in with a code of the second factor or a recovery code. The 401 answer
/// to the sign-in has set the cookie that belongs to it.
pub async fn login_token(
    visitor: Visitor,
    State(app): State<App>,
    body: ApiJson<LoginTokenInput>,
) -> ApiResult<Opened<SignedIn>> {
    visitor.refuse_without_session()?;
    let LoginTokenInput { token } = body.checked()?;
    let pending = visitor.pending.as_deref().unwrap_or_default();
    let session = app.services.identity.end_sign_in(pending, &token, &visitor.peer).await?;
    Ok(Opened::new(SignedIn { success: true }).with(&visitor, &session).without_pending(&visitor))
}

/// How a user with this address must sign in. The answer does not show whether the user
/// exists.
pub async fn precheck_login(
    visitor: Visitor,
    State(app): State<App>,
    body: ApiJson<PrecheckInput>,
) -> ApiResult<Json<Precheck>> {
    let PrecheckInput { email } = body.checked()?;
    Ok(Json(app.services.identity.precheck(&email, &visitor.peer).await?))
}

fn signed_up(user: User, redirect_url: String) -> SignedUp {
    SignedUp { user, redirect_url }
}

/// The answer to a sign-in.
#[derive(Debug, Serialize, ToSchema)]
pub struct SignedIn {
    /// Always true.
    pub success: bool,
}

/// The body of a sign-in.
pub struct LoginInput {
    email: String,
    password: String,
}

/// A code of the second factor.
pub struct LoginTokenInput {
    token: String,
}

impl Input for LoginTokenInput {
    const EXAMPLE: &'static str = r#"{"token": "287082"}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        Ok(Self { token: fields.secret("token", CODE_MAX)? })
    }
}

/// The email address of a user who is about to sign in.
pub struct PrecheckInput {
    email: String,
}

impl Input for PrecheckInput {
    const EXAMPLE: &'static str = r#"{"email": "ada@mail.example"}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let email = fields.required_text("email", EMAIL_MAX)?;
        fields.refine("email", || serde_json::json!({"format": "email"}));
        Ok(Self { email: validate::email("email", &email)? })
    }
}

impl Input for LoginInput {
    const EXAMPLE: &'static str =
        r#"{"email": "ada@mail.example", "password": "plum-otter-violin-93"}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        Ok(Self {
            email: fields.required_text("email", EMAIL_MAX)?,
            password: fields.secret("password", PASSWORD_MAX)?,
        })
    }
}

impl Input for SignUpInput {
    const EXAMPLE: &'static str = r#"{"first_name": "Grace", "password": "plum-otter-violin-93"}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        Ok(Self {
            first_name: fields.required_text("first_name", USER_FIRST_NAME_MAX)?,
            password: fields.secret("password", PASSWORD_MAX)?,
        })
    }
}
