//! Pictures of the user guide. The pages of the guide are pages of the web app.

use axum::body::Body;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use weir_app::help;

use super::assets::media_type;
use crate::dispatcher::RoutePattern;

/// A picture. Pages put its version into the address, so an answer for the current
/// version never changes.
pub(super) async fn image(Path(name): Path<String>, uri: Uri, headers: HeaderMap) -> Response {
    let mut response = answer(&name, uri.query(), &headers);
    response.extensions_mut().insert(RoutePattern("/_help/img/{name}"));
    response
}

fn answer(name: &str, query: Option<&str>, request: &HeaderMap) -> Response {
    let Some(image) = help::image(name) else {
        return (StatusCode::NOT_FOUND, "Not found.\n").into_response();
    };
    let tag = format!("\"{}\"", image.version);
    let is_known = request.get(header::IF_NONE_MATCH).is_some_and(|known| known == tag.as_str());
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        Body::from(image.data).into_response()
    };
    let is_present =
        query.and_then(|query| query.strip_prefix("v=")) == Some(image.version.as_str());
    let caching = if is_present { "public, max-age=31536000, immutable" } else { "no-cache" };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type(name)));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}
