//! Callers without a key, for the few operations that need none. The request may have a
//! session, as in the web app. Then the rules of SEC-11 apply to requests that other
//! sites make a browser send.

use axum::Json;
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde::Serialize;
use weir_app::context::NO_SESSION;
use weir_service::identity::{NewSession, Peer, PendingSignIn};
use weir_service::{Ctx, Error as ServiceError};

use crate::app::App;
use crate::config::Config;
use crate::http::error::{ApiError, ApiResult};
use crate::http::peer::{ClientAddress, Origin};
use crate::http::request_id::RequestId;
use crate::web::{cookies, cross_site};

/// The error for a request that another site made a browser send.
const OTHER_SITE: &str = "This request came from another site. Open the page again and retry.";

/// A caller without a key.
#[derive(Debug)]
pub struct Visitor {
    /// The context of the session's user, if the request has a session.
    pub ctx: Option<Ctx>,
    /// The token of a sign-in that waits for the second factor.
    pub pending: Option<String>,
    /// The client's address and origin.
    pub peer: Peer,
    /// The request's id.
    pub request_id: String,
    /// Scheme and host of this instance, as its users know it.
    pub origin: String,
    policy: cookies::CookiePolicy,
}

impl Visitor {
    /// Refuses an operation that would open a session where the browser cannot keep one,
    /// before anything is done.
    ///
    /// # Errors
    /// [`ServiceError::Forbidden`] in that case.
    pub fn refuse_without_session(&self) -> ApiResult<()> {
        if self.policy.keeps_sessions {
            return Ok(());
        }
        Err(ServiceError::Forbidden(NO_SESSION.to_owned()).into())
    }

    /// The refusal of a sign-in. If it waits for the second factor, the answer has the
    /// cookie that identifies it.
    pub fn refused(&self, error: ServiceError) -> ApiError {
        match error {
            ServiceError::SecondFactor(pending) => {
                ApiError::SecondFactor(self.pending_cookie(&pending))
            }
            other => other.into(),
        }
    }

    fn pending_cookie(&self, pending: &PendingSignIn) -> Option<HeaderValue> {
        // A token consists of letters, digits, dashes and a dot.
        HeaderValue::from_str(&self.policy.cookies.pending(pending)).ok()
    }
}

impl FromRequestParts<App> for Visitor {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> ApiResult<Self> {
        let request_id = RequestId::from_request_parts(parts, app).await?.to_string();
        let headers = &parts.headers;
        let origin = parts.extensions.get::<Origin>().map(|origin| origin.0.as_str());
        let policy = cookies::of(&app.config, origin.unwrap_or_default(), headers);
        let token = cookies::read(headers, policy.cookies.session_name());
        if !may_pass(&app.config, &parts.method, headers, token.is_some()) {
            return Err(ServiceError::Forbidden(OTHER_SITE.to_owned()).into());
        }
        let ctx = match token {
            Some(token) => app.services.identity.session(token, request_id.clone()).await?,
            None => None,
        };
        let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
        let peer = Peer {
            address: parts.extensions.get::<ClientAddress>().map(|address| address.0),
            agent: agent.map(str::to_owned),
            browser: cookies::read(headers, policy.cookies.browser_name()).map(str::to_owned),
        };
        let pending = cookies::read(headers, policy.cookies.pending_name()).map(str::to_owned);
        let requested = parts.extensions.get::<Origin>().map(|origin| origin.0.clone());
        let origin = app.config.public_url.origin().or(requested).unwrap_or_default();
        Ok(Self { ctx, pending, peer, request_id, origin, policy })
    }
}

/// Whether a request is allowed. With a session's cookie the rules are those of the web
/// app. Without one, a browser must come from a page of this instance, so that no other
/// site can sign a user in. A script sends neither site nor origin, and has nothing that
/// another site could use.
fn may_pass(config: &Config, method: &Method, headers: &HeaderMap, has_session: bool) -> bool {
    let is_browser = headers.contains_key("sec-fetch-site") || headers.contains_key(header::ORIGIN);
    let is_script = !has_session && !is_browser;
    is_script || cross_site::may_pass(config, method, headers)
}

/// An answer that may set the cookies of a session.
#[derive(Debug)]
pub struct Opened<T, const STATUS: u16 = 200> {
    body: T,
    cookies: Vec<HeaderValue>,
}

impl<T, const STATUS: u16> Opened<T, STATUS> {
    /// An answer without a session.
    pub fn new(body: T) -> Self {
        Self { body, cookies: Vec::new() }
    }

    /// The same answer with the cookies of a new session.
    #[must_use]
    pub fn with(mut self, visitor: &Visitor, session: &NewSession) -> Self {
        let cookies = visitor.policy.cookies;
        for cookie in [cookies.session(session), cookies.browser(&session.browser)] {
            // A token consists of letters and digits.
            self.cookies.extend(HeaderValue::from_str(&cookie));
        }
        self
    }

    /// The same answer with the cookie of a sign-in that waits for the second factor.
    #[must_use]
    pub fn with_pending(mut self, visitor: &Visitor, pending: &PendingSignIn) -> Self {
        self.cookies.extend(visitor.pending_cookie(pending));
        self
    }

    /// The same answer, which also removes the cookie of a waiting sign-in.
    #[must_use]
    pub fn without_pending(mut self, visitor: &Visitor) -> Self {
        let cookies = visitor.policy.cookies;
        let gone = cookies.hidden(cookies.pending_name(), "", 0);
        self.cookies.extend(HeaderValue::from_str(&gone));
        self
    }
}

impl<T: Serialize, const STATUS: u16> IntoResponse for Opened<T, STATUS> {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(STATUS).unwrap_or(StatusCode::OK);
        let mut response = (status, Json(self.body)).into_response();
        for cookie in self.cookies {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
        response
    }
}
