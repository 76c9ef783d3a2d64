//! Finding the personal API key of a request (API-16): in the `Authorization` header,
//! then in the body field `personal_api_key`, then in the query parameter of that name.
//! Only the first one found is tried. A body that is too large to be read before its
//! sender is known is not searched.
//!
//! Keys are never logged here.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::request::Parts;
use http::{HeaderMap, Method, header};

use crate::app::App;
use crate::http::body::{self, BodyFault, SharedBody};
use crate::http::input;
use crate::http::pagination::Query;

/// Name of the body field and of the query parameter.
const FIELD: &str = "personal_api_key";

/// A key and where it was found. It has no `Debug`, because keys are secrets.
#[derive(Clone)]
pub struct Credential {
    /// The key as sent.
    pub value: String,
    /// Where it was found, in the words of the error text.
    pub found_in: &'static str,
}

/// A body that was read before the caller was known. It is not read again.
#[derive(Clone)]
pub struct EarlyBody(pub Result<SharedBody, BodyFault>);

/// Adds the [`Credential`], if there is one, to the extensions of the request. Reads the
/// body only when the header has no key: all other callers are authenticated before their
/// body costs anything.
pub async fn find(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let mut found = from_header(request.headers());
    if found.is_none() {
        let (mut parts, mut body) = request.into_parts();
        let declared = body::declared_length(&parts.headers);
        let is_small = declared.is_none_or(|length| length <= app.limits.early_body.size);
        if is_small && may_have_body(&parts.method) {
            let early = read_early(&app, &parts, std::mem::take(&mut body)).await;
            found = from_body(&parts.headers, &early).await;
            parts.extensions.insert(early);
        }
        if found.is_none() {
            found = Query::of(&parts)
                .param(FIELD)
                .filter(|value| !value.is_empty())
                .map(|value| Credential { value: value.to_owned(), found_in: "query string" });
        }
        request = Request::from_parts(parts, body);
    }
    if let Some(credential) = found {
        request.extensions_mut().insert(credential);
    }
    next.run(request).await
}

/// Adds the bearer token of the header to the extensions of the request, for protocols that
/// send it nowhere else.
pub(crate) async fn find_in_header(mut request: Request, next: Next) -> Response {
    if let Some(found) = from_header(request.headers()) {
        request.extensions_mut().insert(found);
    }
    next.run(request).await
}

/// Reads the body for operations without a key. The body of an unknown sender is small.
/// The request takes a permit only when the body is complete.
pub async fn read_first(State(app): State<App>, request: Request, next: Next) -> Response {
    if !may_have_body(request.method()) {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let early = read_early(&app, &parts, body).await;
    parts.extensions.insert(early);
    next.run(Request::from_parts(parts, Body::empty())).await
}

fn may_have_body(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// The key in the header `Authorization`.
fn from_header(headers: &HeaderMap) -> Option<Credential> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.trim().split_once(' ')?;
    let key = key.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !key.is_empty())
        .then(|| Credential { value: key.to_owned(), found_in: "Authorization header" })
}

async fn read_early(app: &App, parts: &Parts, body: Body) -> EarlyBody {
    let limits = &app.limits.early_body;
    let collected = body::collect(parts, body, limits, &app.permits.early_bytes).await;
    EarlyBody(collected.map(SharedBody::from))
}

/// A body that cannot be read contains no key. Its fault is reported to callers who have
/// a key elsewhere.
async fn from_body(headers: &HeaderMap, body: &EarlyBody) -> Option<Credential> {
    let EarlyBody(Ok(collected)) = body else { return None };
    let content_type = headers.get(header::CONTENT_TYPE)?.to_str().ok();
    let key = input::text_in(content_type, &collected.bytes, FIELD).await?;
    let key = key.trim();
    (!key.is_empty()).then(|| Credential { value: key.to_owned(), found_in: "body" })
}
