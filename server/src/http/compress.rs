//! Compressing pages for browsers that accept it. Their markup compresses to about a
//! tenth. Files are compressed when they are built, and answers of the API are short.
//!
//! The length of a compressed page depends on both the text of the address and the
//! secrets in the page. A site that leads a browser here could choose the address and
//! learn the secrets from the length. So the answer to such a request is not compressed.
//! Browsers report where a request comes from, except over plain HTTP, where everything
//! is readable anyway.

use std::io::{self, Write as _};

use axum::body::{Body, to_bytes};
use axum::response::{IntoResponse as _, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, header};
use tokio::task::spawn_blocking;
use weir_service::Error as ServiceError;

use super::error::ApiError;
use super::headers::accepts_encoding;

/// Shorter pages take as many network packets either way.
const SHORTEST: usize = 1_000;

/// Compressing longer pages blocks a thread for a while.
const LONG: usize = 256 << 10;

/// The answer, compressed if it is a page and the client accepts gzip.
pub(crate) async fn compress_page(takes_gzip: bool, response: Response) -> Response {
    if !is_plain_page(response.headers()) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    parts.headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
    if !takes_gzip {
        return Response::from_parts(parts, body);
    }
    // Pages are complete before they are sent.
    let page = match to_bytes(body, usize::MAX).await {
        Ok(page) => page,
        Err(error) => return failed(&error),
    };
    if page.is_empty() {
        // For an answer to HEAD the length would be that of the uncompressed page.
        parts.headers.remove(header::CONTENT_LENGTH);
    }
    if page.len() < SHORTEST {
        return Response::from_parts(parts, Body::from(page));
    }
    let unpacked = page.clone();
    let compressed = match page.len() {
        ..LONG => compress(&page),
        LONG.. => spawn_blocking(move || compress(&page)).await.unwrap_or_else(|e| Err(e.into())),
    };
    match compressed {
        Ok(compressed) => {
            parts.headers.remove(header::CONTENT_LENGTH);
            parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            Response::from_parts(parts, Body::from(compressed))
        }
        Err(error) => {
            tracing::warn!(%error, "a page was not compressed");
            Response::from_parts(parts, Body::from(unpacked))
        }
    }
}

fn failed(error: &axum::Error) -> Response {
    ApiError::Service(ServiceError::Internal(error.to_string())).into_response()
}

/// Whether the client accepts the encoding of [`compress_page`], and no other site led it
/// here.
pub(crate) fn takes_gzip(request: &HeaderMap) -> bool {
    let site = request.get("sec-fetch-site").map(HeaderValue::as_bytes);
    let is_led = !matches!(site, None | Some(b"same-origin" | b"none"));
    accepts_encoding(request, "gzip") && !is_led
}

fn is_plain_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/html"))
        && !headers.contains_key(header::CONTENT_ENCODING)
}

fn compress(page: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(page.len() / 8), Compression::fast());
    encoder.write_all(page)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use axum::response::{Html, IntoResponse as _};
    use flate2::read::GzDecoder;

    use super::*;

    async fn answered(takes_gzip: bool, answer: Response) -> (HeaderMap, Vec<u8>) {
        let (parts, body) = compress_page(takes_gzip, answer).await.into_parts();
        (parts.headers, to_bytes(body, usize::MAX).await.unwrap().to_vec())
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "reads what was packed here")]
    async fn pages_are_compressed_for_clients_that_accept_it() {
        let page = "<p>again</p>".repeat(1_000);
        let (headers, body) = answered(true, Html(page.clone()).into_response()).await;
        assert_eq!(headers[header::CONTENT_ENCODING], "gzip");
        assert_eq!(headers[header::VARY], "accept-encoding");
        assert!(body.len() < page.len() / 10);
        let mut read = String::new();
        GzDecoder::new(&body[..]).read_to_string(&mut read).unwrap();
        assert_eq!(read, page);

        let (headers, body) = answered(false, Html(page.clone()).into_response()).await;
        assert!(!headers.contains_key(header::CONTENT_ENCODING));
        assert_eq!(headers[header::VARY], "accept-encoding");
        assert_eq!(body, page.as_bytes());
    }

    #[test]
    fn nothing_is_compressed_for_requests_from_other_sites() {
        for (site, expected) in [
            (None, true),
            (Some("none"), true),
            (Some("same-origin"), true),
            (Some("same-site"), false),
            (Some("cross-site"), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip, br"));
            if let Some(site) = site {
                headers.insert("sec-fetch-site", HeaderValue::from_static(site));
            }
            assert_eq!(takes_gzip(&headers), expected, "{site:?}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[tokio::test]
    async fn long_pages_are_compressed_on_another_thread() {
        let page = "again ".repeat(LONG);
        let (headers, body) = answered(true, Html(page).into_response()).await;
        assert_eq!(headers[header::CONTENT_ENCODING], "gzip");
        assert!(body.len() < LONG / 10);
    }

    #[tokio::test]
    async fn short_compressed_or_other_answers_stay_unchanged() {
        let long = "again ".repeat(1_000);
        let compressed = ([(header::CONTENT_ENCODING, "br")], Html(long.clone()));
        for (answer, expected) in [
            (Html("short").into_response(), "short"),
            (long.clone().into_response(), &long),
            (compressed.into_response(), &long),
        ] {
            let before = answer.headers().get(header::CONTENT_ENCODING).cloned();
            let (headers, body) = answered(true, answer).await;
            assert_eq!(headers.get(header::CONTENT_ENCODING), before.as_ref());
            assert_eq!(body, expected.as_bytes());
        }
    }
}
