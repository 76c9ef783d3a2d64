//! The decision about a change before its body is read: where it comes from, whether its
//! path has a function, who sends it, and how large it may be.
//!
//! What belongs here: checks of the head of a request, cheap ones first. What does not:
//! what a function or a form does with its body (`functions`, `forms`).

use axum::Json;
use axum::response::{IntoResponse, Redirect, Response};
use http::request::Parts;
use http::{Method, StatusCode, header};
use leptos::server_fn::error::SERVER_FN_ERROR_HEADER;
use weir_app::error::UiError;
use weir_app::local_path;
use weir_app::local_path::path_of;
use weir_model::UserId;
use weir_service::Ctx;

use super::held_forms::UNSENT;
use super::{cookies, cross_site, forms, functions, refused, sign_on, visit};
use crate::app::App;
use crate::http::body::BodyFault;
use crate::http::error::ApiError;
use crate::http::peer::Origin;
use crate::http::request_id::RequestId;
use crate::limits::{BodyLimits, Budget};

/// What happens to the body of a request.
pub(crate) enum Admission {
    /// The body is not read.
    Unread,
    /// The body is read within these bounds.
    Read {
        /// Limits on the body.
        limits: BodyLimits,
        /// The budget for its bytes.
        budget: Budget,
        /// Whether the limits are those of members.
        is_known: bool,
    },
    /// The request is answered without its body.
    Refused(Box<Response>),
}

/// The sender of a request, after its cookies were looked up.
#[derive(Clone)]
pub(super) enum Sender {
    /// A user with a session.
    Member(Ctx),
    /// No session, but the cookie of a browser in which this user has signed in. The
    /// session has ended, and the values of a form that was filled in before are kept for
    /// its sender.
    Returning(UserId),
    Unknown,
}

impl Sender {
    /// The context of the session.
    pub(super) fn ctx(&self) -> Option<&Ctx> {
        match self {
            Self::Member(ctx) => Some(ctx),
            Self::Returning(_) | Self::Unknown => None,
        }
    }
}

impl Admission {
    /// Decides on a request by its head. If the body is to be read, the [`Sender`] is
    /// added to the extensions.
    pub(crate) async fn of(app: &App, parts: &mut Parts) -> Self {
        if matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS) {
            return Self::Unread;
        }
        let path = parts.uri.path();
        if sign_on::takes_answer(path) && parts.method == Method::POST {
            // The page of the identity provider sends it, so it comes from another site.
            // The cookie of the pending login protects it (SSO-27).
            parts.extensions.insert(Sender::Unknown);
            let (limits, budget) = (app.limits.saml_body, app.permits.early_bytes.clone());
            return Self::Read { limits, budget, is_known: false };
        }
        let is_function = path.starts_with(functions::ROOT);
        if !is_function && !forms::exists(path) {
            return Self::Unread;
        }
        if !cross_site::may_pass(&app.config, &parts.method, &parts.headers) {
            return Self::Refused(Box::new(refused::answer(&parts.headers)));
        }
        if parts.method != Method::POST {
            return Self::Unread;
        }
        if is_function && !functions::exists(path) {
            return Self::Refused(Box::new(functions::missing()));
        }
        let sender = match sender(app, parts).await {
            Ok(sender) => sender,
            Err(error) => return Self::Refused(Box::new(error.into_response())),
        };
        let permits = &app.permits;
        let (limits, budget, is_known) = match &sender {
            Sender::Member(_) => {
                (forms::limits(&app.limits, path), &permits.management_bytes, true)
            }
            // The entered values are kept; a file would not be.
            Sender::Returning(_) if is_function => {
                (app.limits.web_body, &permits.management_bytes, true)
            }
            Sender::Returning(_) | Sender::Unknown => {
                (app.limits.early_body, &permits.early_bytes, false)
            }
        };
        parts.extensions.insert(sender);
        Self::Read { limits, budget: budget.clone(), is_known }
    }
}

/// The answer to a body that was not read. Unknown senders may send only small bodies.
/// The answer to a larger one asks the user to sign in first, and says that the entered
/// values were not kept.
pub(crate) fn unread(
    parts: &Parts,
    fault: BodyFault,
    limits: &BodyLimits,
    is_known: bool,
) -> Response {
    // An answer by SAML has no values that a person entered.
    let is_answer = sign_on::takes_answer(parts.uri.path());
    if is_known || is_answer || fault != BodyFault::TooLarge {
        return fault.into_api_error(limits.size).into_response();
    }
    if visit::wants_page(&parts.headers) {
        let page = parts.headers.get(header::REFERER).and_then(|value| value.to_str().ok());
        let page = local_path::without_outcome(page.map(path_of).unwrap_or_default());
        let next = local_path::encode(local_path::safe(&page).unwrap_or("/"));
        return Redirect::to(&format!("/login?next={next}&{UNSENT}=1")).into_response();
    }
    let headers = [(SERVER_FN_ERROR_HEADER, parts.uri.path())];
    (StatusCode::UNAUTHORIZED, headers, Json(UiError::SignIn)).into_response()
}

/// The sender by the cookies of a request.
async fn sender(app: &App, parts: &Parts) -> Result<Sender, ApiError> {
    let requested_origin = parts.extensions.get::<Origin>().map(|origin| origin.0.as_str());
    let cookies =
        cookies::of(&app.config, requested_origin.unwrap_or_default(), &parts.headers).cookies;
    let identity = &app.services.identity;
    if let Some(token) = cookies::read(&parts.headers, cookies.session_name()) {
        let request_id = parts.extensions.get::<RequestId>().map(ToString::to_string);
        if let Some(ctx) = identity.session(token, request_id.unwrap_or_default()).await? {
            return Ok(Sender::Member(ctx));
        }
    }
    let returning = match cookies::read(&parts.headers, cookies.browser_name()) {
        Some(browser) => identity.returning(browser).await?,
        None => None,
    };
    Ok(returning.map_or(Sender::Unknown, Sender::Returning))
}
