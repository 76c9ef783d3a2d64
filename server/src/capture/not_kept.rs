//! Data from libraries and programs that is not an event and that Weir does not store:
//! logs, metrics, traces, AI traces, browser reports, and addresses for push messages.
//!
//! What belongs here: an answer after which the sender does not retry, and a refused
//! request in the project, so that its members see the data that is not stored.

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header};

use super::intake;
use super::request_tally::RequestTally;
use crate::app::App;
use crate::http::error::{ApiError, ApiResult};

/// The message in OpenTelemetry's field for it. It is shorter than 126 bytes, so that its
/// length and that of the enclosing field take one byte each.
const NOT_KEPT: &str =
    "Not kept: this host stores events, no logs, metrics, traces, reports or push tokens.";

/// The path where mobile libraries register a device at every start, and unregister it.
pub(super) const PUSH: &str = "/api/push_subscriptions";

const PROTOBUF: &str = "application/x-protobuf";

/// The route at a path without the slash at the end.
pub(super) fn at(path: &str) -> Option<&'static str> {
    let routes = [
        "/i/v1/logs",
        "/i/v1/metrics",
        "/i/v1/traces",
        "/i/v0/ai",
        "/i/v0/ai/otel",
        // An exporter of OpenTelemetry appends the path of the signal to its address.
        "/i/v0/ai/otel/v1/logs",
        "/i/v0/ai/otel/v1/metrics",
        "/i/v0/ai/otel/v1/traces",
        "/report",
        PUSH,
    ];
    routes.into_iter().find(|route| *route == path)
}

/// Reads the body, records the request and answers it.
pub(super) async fn answer(
    app: &App,
    route: &'static str,
    request: Request,
) -> ApiResult<Response> {
    let answer = taken(request.headers());
    let mut tally = RequestTally::open(app, &request);
    let received = intake::receive(app, request).await;
    if let Ok(received) = &received {
        tally.body(&received.body);
    }
    tally.close(app, route, Some(received.as_ref().err().unwrap_or(&ApiError::NotKept)));
    received.map(|_| answer)
}

/// Success with nothing stored, in the format of the request: OpenTelemetry's partial
/// success. PostHog's libraries read only the status.
fn taken(headers: &HeaderMap) -> Response {
    let sent = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if sent.is_some_and(|sent| sent.starts_with(PROTOBUF)) {
        let length = u8::try_from(NOT_KEPT.len()).unwrap_or_default();
        // Field 1, `partial_success`; in it field 2, `error_message`.
        let mut body = vec![0x0a, length + 2, 0x12, length];
        body.extend_from_slice(NOT_KEPT.as_bytes());
        return ([(header::CONTENT_TYPE, HeaderValue::from_static(PROTOBUF))], body)
            .into_response();
    }
    let body = serde_json::json!({"status": 1, "partialSuccess": {"errorMessage": NOT_KEPT}});
    axum::Json(body).into_response()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_sentence_fits_its_length() {
        assert!(super::NOT_KEPT.len() < 126);
    }
}
