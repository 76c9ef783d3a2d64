//! The listener for plain http beside one for https: it redirects to https, and answers the
//! checks of a certificate authority.
//!
//! What belongs here: these answers. What does not: the answers to checks (`weir-tls`).

use std::net::SocketAddr;
use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, StatusCode, Uri, header};
use hyper::body::Incoming;
use weir_tls::{Challenges, Tls};

use crate::listener::RequestHandler;

/// Media type of the answer to a check.
const ANSWER: &str = "application/octet-stream";

/// Answers the requests over plain http.
#[derive(Debug, Clone)]
pub struct Redirect {
    origin: Arc<str>,
    tls: Tls,
}

impl Redirect {
    /// Redirects to this origin, such as `https://weir.example.org`.
    pub fn new(origin: &str, tls: Tls) -> Self {
        Self { origin: origin.into(), tls }
    }

    /// The same path and query at the origin.
    fn target(&self, uri: &Uri) -> Option<HeaderValue> {
        // The path of `OPTIONS *` is no path.
        let path = uri.path_and_query().map(PathAndQuery::as_str);
        let path = path.filter(|path| path.starts_with('/')).unwrap_or("/");
        HeaderValue::from_bytes([self.origin.as_bytes(), path.as_bytes()].concat().as_slice()).ok()
    }

    fn answer_to_check(&self, path: &str) -> Option<String> {
        self.tls.challenges().text(path.strip_prefix(Challenges::PATH)?)
    }
}

impl RequestHandler for Redirect {
    async fn answer(&self, _peer: SocketAddr, request: Request<Incoming>) -> Response {
        let uri = request.uri();
        if let Some(answer) = self.answer_to_check(uri.path()) {
            return ([(header::CONTENT_TYPE, ANSWER)], answer).into_response();
        }
        let Some(target) = self.target(uri) else {
            return StatusCode::BAD_REQUEST.into_response();
        };
        // The method and the body stay. The answer is not cached, so that the setting can be
        // removed.
        let headers = [
            (header::LOCATION, target),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ];
        (StatusCode::PERMANENT_REDIRECT, headers).into_response()
    }
}

#[cfg(test)]
mod tests {
    use http::Uri;
    use weir_tls::Tls;

    use super::Redirect;

    #[test]
    fn redirects_lead_to_the_origin_and_keep_path_and_query() {
        let redirect = Redirect::new("https://weir.example", Tls::new().unwrap());
        for (asked, target) in [
            ("/", "https://weir.example/"),
            ("/api/projects/?a=b%20c&d", "https://weir.example/api/projects/?a=b%20c&d"),
            ("http://other.example/e/?x", "https://weir.example/e/?x"),
            ("//other.example/", "https://weir.example//other.example/"),
            ("*", "https://weir.example/"),
        ] {
            let uri: Uri = asked.parse().unwrap();
            assert_eq!(redirect.target(&uri).unwrap(), target, "{asked}");
        }
    }
}
