//! What is decided of a change before its body is read: where it comes from, whether
//! there is a function at its path, who sends it, and how much may come.
//!
//! What belongs here: checks of the head of a request, cheap ones first. What does not:
//! what a function or a form does with its body.

use axum::Json;
use axum::response::{IntoResponse, Redirect, Response};
use http::request::Parts;
use http::{Method, StatusCode, header};
use leptos::server_fn::error::SERVER_FN_ERROR_HEADER;
use weir_app::context::path_of;
use weir_app::error::UiError;
use weir_app::local_path;
use weir_service::Ctx;

use super::{cookies, cross_site, forms, functions, refused, visit};
use crate::app::App;
use crate::http::body::BodyFault;
use crate::http::error::ApiError;
use crate::http::peer::Origin;
use crate::http::request_id::RequestId;
use crate::limits::{BodyLimits, Budget};

/// What becomes of the body of a request.
pub(crate) enum Gate {
    /// Nobody reads it.
    Unread,
    /// It is read within these bounds.
    Read {
        /// What it may cost.
        limits: BodyLimits,
        /// What its bytes are taken from.
        budget: Budget,
        /// Whether a session came along.
        is_signed_in: bool,
    },
    /// The request is answered without it.
    Refused(Box<Response>),
}

/// Who sends a request, once its session was looked up.
#[derive(Clone)]
pub(super) struct Sender(pub(super) Option<Ctx>);

impl Gate {
    /// Judges a request by its head. Leaves the [`Sender`] beside one whose body is read.
    pub(crate) async fn of(app: &App, parts: &mut Parts) -> Self {
        if matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS) {
            return Self::Unread;
        }
        let path = parts.uri.path();
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
        let is_signed_in = sender.is_some();
        let (limits, budget) = match is_signed_in {
            true => (forms::limits(&app.limits, path), &app.shares.management_bytes),
            false => (app.limits.early_body, &app.shares.early_bytes),
        };
        parts.extensions.insert(Sender(sender));
        Self::Read { limits, budget: budget.clone(), is_signed_in }
    }
}

/// The answer to a body that was not read. Who is not signed in may send little: what is
/// larger than that is told to sign in first.
pub(crate) fn unread(
    parts: &Parts,
    fault: BodyFault,
    limits: &BodyLimits,
    is_signed_in: bool,
) -> Response {
    if is_signed_in || fault != BodyFault::TooLarge {
        return fault.into_api_error(limits.size).into_response();
    }
    if visit::wants_page(&parts.headers) {
        let page = parts.headers.get(header::REFERER).and_then(|value| value.to_str().ok());
        let page = local_path::without_outcome(page.map(path_of).unwrap_or_default());
        let next = local_path::encode(local_path::safe(&page).unwrap_or("/"));
        return Redirect::to(&format!("/login?next={next}")).into_response();
    }
    let told = [(SERVER_FN_ERROR_HEADER, parts.uri.path())];
    (StatusCode::UNAUTHORIZED, told, Json(UiError::SignIn)).into_response()
}

/// The session that the cookie of a request opens.
async fn sender(app: &App, parts: &Parts) -> Result<Option<Ctx>, ApiError> {
    let asked = parts.extensions.get::<Origin>().map(|origin| origin.0.as_str());
    let manner = cookies::of(&app.config, asked.unwrap_or_default(), &parts.headers);
    let Some(token) = cookies::read(&parts.headers, manner.cookies.session_name()) else {
        return Ok(None);
    };
    let request_id = parts.extensions.get::<RequestId>().map(ToString::to_string);
    Ok(app.services.identity.session(token, request_id.unwrap_or_default()).await?)
}
