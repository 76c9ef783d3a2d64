//! Where a personal API key is looked for (management-api 3.2): the
//! `Authorization` header, then the body field `personal_api_key`, then the
//! query parameter of that name. Only the first place found is tried.
//!
//! Nothing here ever logs what it finds.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderMap, Method, header};

use crate::app::App;
use crate::http::body::{self, BodyFault, Collected};
use crate::http::input::Fields;
use crate::http::pagination::Query;

/// Name of the body field and of the query parameter.
const FIELD: &str = "personal_api_key";

/// A key and the place where it was found. Has no `Debug`: keys are secrets.
#[derive(Clone)]
pub struct Credential {
    /// The key as sent.
    pub value: String,
    /// In the words of the error text.
    pub place: &'static str,
}

/// A body that had to be read to look for a key. It is not read twice.
#[derive(Clone)]
pub struct EarlyBody(pub Result<Arc<Collected>, BodyFault>);

/// Puts the [`Credential`], if there is one, beside the request. Reads the body
/// only when there is no key in the header: everybody else is authenticated
/// before their body costs anything.
pub async fn find(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let mut found = from_header(request.headers());
    if found.is_none() && may_have_body(request.method()) {
        let body = read_early(&app, &mut request).await;
        let headers = request.headers().clone();
        found = from_body(&headers, &body).await;
        request.extensions_mut().insert(body);
    }
    if found.is_none() {
        let (parts, body) = request.into_parts();
        found = Query::of(&parts)
            .param(FIELD)
            .filter(|value| !value.is_empty())
            .map(|value| Credential { value: value.to_owned(), place: "query string" });
        request = Request::from_parts(parts, body);
    }
    if let Some(credential) = found {
        request.extensions_mut().insert(credential);
    }
    next.run(request).await
}

fn may_have_body(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

fn from_header(headers: &HeaderMap) -> Option<Credential> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.trim().split_once(' ')?;
    let key = key.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !key.is_empty())
        .then(|| Credential { value: key.to_owned(), place: "Authorization header" })
}

async fn read_early(app: &App, request: &mut Request) -> EarlyBody {
    let unread = std::mem::take(request.body_mut());
    let headers = request.headers().clone();
    let outcome =
        body::collect(&headers, unread, &app.limits.api_body, &app.shares.management_bytes).await;
    EarlyBody(outcome.map(Arc::new))
}

/// A body that cannot be read holds no key; what is wrong with it is told to
/// callers who turn out to have one elsewhere.
async fn from_body(headers: &HeaderMap, body: &EarlyBody) -> Option<Credential> {
    let EarlyBody(Ok(collected)) = body else { return None };
    let content_type = headers.get(header::CONTENT_TYPE)?.to_str().ok();
    let fields = Fields::parse(content_type, &collected.bytes).await.ok()?;
    let key = fields.raw_text(FIELD)?.trim();
    (!key.is_empty()).then(|| Credential { value: key.to_owned(), place: "body" })
}
