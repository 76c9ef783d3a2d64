//! The endpoints that take events: `/capture`, `/batch` and their relatives
//! (ingestion 1.1, 1.4, 2.7, 3).
//!
//! What belongs here: methods, statuses, limits, and the way from a request to
//! the ingest pipeline. What does not: what a body means
//! (`weir_ingest::capture`) and where events go (`weir_ingest::Ingest`).
//!
//! 200 means that every kept event is on stable storage. A refusal for the time
//! being is 503, never 429: browser libraries drop events on any 4xx.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use tokio::runtime::Handle;
use tokio::time::timeout_at;
use weir_ingest::batch::{Batch, Sealed};
use weir_ingest::capture::{
    self as capture, CaptureError, CapturePath, CaptureRequest, Context, Decision,
};
use weir_ingest::log::AppendError;
use weir_model::outcomes::DropReason;
use weir_model::{ProjectId, Timestamp};

use crate::app::App;
use crate::front::RoutePattern;
use crate::http::body::{self, BodyFault, Collected};
use crate::http::error::{ApiError, ApiResult};
use crate::http::peer::ClientAddress;
use crate::limits::HeldBytes;
use crate::tokens::Verdict;

const ALLOWED: HeaderValue = HeaderValue::from_static("GET, POST, OPTIONS");
/// Bodies of at least this size that are not plain JSON may take long to unpack:
/// a thousand times what they look like.
const HEAVY_PACKED: usize = 1 << 10;

/// The capture path that a request names, without the slash at the end.
#[must_use]
pub fn path(name: &str) -> Option<CapturePath> {
    match name {
        "/capture" => Some(CapturePath::Capture),
        "/batch" | "/i/v0/ai/batch" => Some(CapturePath::Batch),
        "/e" => Some(CapturePath::E),
        "/i/v0/e" => Some(CapturePath::I0E),
        "/track" => Some(CapturePath::Track),
        "/engage" => Some(CapturePath::Engage),
        _ => None,
    }
}

fn pattern(path: CapturePath) -> &'static str {
    match path {
        CapturePath::Capture => "/capture/",
        CapturePath::Batch => "/batch/",
        CapturePath::E => "/e/",
        CapturePath::I0E => "/i/v0/e/",
        CapturePath::Track => "/track/",
        CapturePath::Engage => "/engage/",
    }
}

/// Answers a request to a capture path. The front adds the CORS headers.
pub async fn answer(app: &App, path: CapturePath, request: Request) -> Response {
    let method = request.method().clone();
    let mut response = match method {
        Method::OPTIONS => preflight(),
        Method::GET | Method::POST => match take(app, path, request).await {
            Ok(response) => response,
            Err(error) => error.into_response(),
        },
        other => {
            let mut refusal = ApiError::MethodNotAllowed(other).into_response();
            refusal.headers_mut().insert(header::ALLOW, ALLOWED);
            refusal
        }
    };
    response.extensions_mut().insert(RoutePattern(pattern(path)));
    response
}

fn preflight() -> Response {
    const MAX_AGE: HeaderName = header::ACCESS_CONTROL_MAX_AGE;
    ([(MAX_AGE, HeaderValue::from_static("86400"))], accepted()).into_response()
}

fn accepted() -> Response {
    let json = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, json)], r#"{"status":1}"#).into_response()
}

/// Takes the events of a request to the log.
async fn take(app: &App, path: CapturePath, request: Request) -> ApiResult<Response> {
    let received_at = app.services.clock.now();
    let deadline = tokio::time::Instant::now() + app.limits.capture_time;
    let (parts, unread) = request.into_parts();
    let limits = &app.limits.capture_body;
    let reading = body::collect(&parts.headers, unread, limits, &app.shares.capture_bytes);
    let collected = timeout_at(deadline, reading)
        .await
        .map_err(|_elapsed| ApiError::TooSlow)?
        .map_err(refused_body)?;

    let _share = app
        .shares
        .capture
        .try_acquire()
        .map_err(|_| not_accepted("too many capture requests at a time"))?;
    let beacon = is_beacon(parts.uri.query());
    let work = Arc::new(parts);
    timeout_at(deadline, keep(app, path, received_at, work, collected))
        .await
        .map_err(|_elapsed| not_accepted("the request took too long"))??;
    Ok(if beacon { StatusCode::NO_CONTENT.into_response() } else { accepted() })
}

/// Decodes a body and waits until its events are on stable storage.
async fn keep(
    app: &App,
    path: CapturePath,
    received_at: Timestamp,
    parts: Arc<Parts>,
    collected: Collected,
) -> ApiResult<()> {
    let Collected { bytes, held } = collected;
    let (project, outcome, _held) = if is_heavy(app, &bytes) {
        let turn = Arc::clone(&app.shares.heavy)
            .acquire_owned()
            .await
            .map_err(|_| not_accepted("the service is stopping"))?;
        let app = app.clone();
        let decoding = move || {
            // Kept to the end, also when the sender has gone meanwhile.
            let _turn = turn;
            Handle::current().block_on(prepare(&app, path, received_at, &parts, bytes, held))
        };
        tokio::task::spawn_blocking(decoding)
            .await
            .map_err(|error| ApiError::Panicked(error.to_string()))??
    } else {
        prepare(app, path, received_at, &parts, bytes, held).await?
    };
    append(app, project, outcome).await
}

/// Whether working on a body could hold up a thread that serves connections.
fn is_heavy(app: &App, body: &[u8]) -> bool {
    let plain =
        body.trim_ascii_start().starts_with(b"{") || body.trim_ascii_start().starts_with(b"[");
    body.len() >= if plain { app.limits.heavy_body } else { HEAVY_PACKED }
}

/// Decodes a body, decides on its events and encodes them for the log. The bytes
/// held grow by the unpacked text and by the events that are made of it.
async fn prepare(
    app: &App,
    path: CapturePath,
    received_at: Timestamp,
    parts: &Parts,
    body: Bytes,
    mut held: HeldBytes,
) -> ApiResult<(ProjectId, Outcome, HeldBytes)> {
    let sent_bytes = body.len();
    let payload = capture::decode(CaptureRequest {
        path,
        query: parts.uri.query(),
        content_type: text(&parts.headers, &header::CONTENT_TYPE),
        content_encoding: text(&parts.headers, &header::CONTENT_ENCODING),
        body,
    })?;
    held.grow_to(sent_bytes.saturating_add(payload.text().len().saturating_mul(2)))
        .map_err(|_| not_accepted("too many bytes in flight"))?;
    let batch = capture::shape(&payload)?;

    let rules = match app.tokens.find(&batch.token).await {
        Verdict::Known(rules) => rules,
        Verdict::Unknown => return Err(ApiError::UnknownProjectKey),
        Verdict::Undecided => return Err(not_accepted("the project key could not be looked up")),
    };
    let keeps_address = !payload.hides_address() && !rules.anonymize_ips;
    let client = parts.extensions.get::<ClientAddress>().filter(|_| keeps_address);
    let context = Context {
        received_at: received_at.to_chrono(),
        sent_at: batch.sent_at,
        project: rules.id.0,
        client_address: client.map(|client| client.0.to_string()),
        engage: path.is_engage(),
    };
    let mut captured = Batch::new(received_at.micros(), batch.historical_migration);
    for event in &batch.events {
        match capture::decide(&event, &context) {
            Decision::Accept(event) => captured.accepted.push(event),
            Decision::Drop(event) => captured.push_dropped(event),
        }
    }
    Ok((rules.id, Outcome::of(captured), held))
}

/// What became of the events of a request.
struct Outcome {
    sealed: Sealed,
    accepted: u64,
    dropped: Vec<(DropReason, u64)>,
}

impl Outcome {
    fn of(batch: Batch) -> Self {
        let mut dropped = batch.dropped_further.clone();
        dropped.extend(batch.dropped.iter().map(|event| (event.reason, 1)));
        Self { accepted: batch.accepted.len() as u64, dropped, sealed: batch.seal() }
    }
}

async fn append(app: &App, project: ProjectId, outcome: Outcome) -> ApiResult<()> {
    let Outcome { sealed, accepted, dropped } = outcome;
    let began = Instant::now();
    // What is given up here may be stored later all the same: sending it again
    // does no harm (ingestion 6).
    let appended = tokio::time::timeout(app.limits.append_time, app.ingest.append(project, sealed))
        .await
        .map_err(|_elapsed| not_accepted("the append took too long"))?;
    appended.map_err(|error| match error {
        AppendError::Busy => not_accepted("the ingest log is busy"),
        AppendError::DiskLow => not_accepted("too little free disk space"),
        AppendError::Poisoned => not_accepted("the ingest log has failed"),
        AppendError::Closed => not_accepted("the service is stopping"),
    })?;
    app.metrics.append_seconds.observe(began.elapsed().as_secs_f64());
    app.metrics.events_accepted.inc_by(accepted);
    for (reason, count) in dropped {
        app.metrics.count_drops(reason, count);
    }
    Ok(())
}

fn not_accepted(why: &'static str) -> ApiError {
    ApiError::NotAccepted(Cow::Borrowed(why))
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn is_beacon(query: Option<&str>) -> bool {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs.into_iter().any(|(name, value)| name == "beacon" && value == "1")
}

/// A body fault as an answer of the capture endpoints.
fn refused_body(fault: BodyFault) -> ApiError {
    match fault {
        BodyFault::TooLarge => CaptureError::PayloadTooLarge { limit: capture::BODY_LIMIT }.into(),
        BodyFault::TooSlow => ApiError::TooSlow,
        BodyFault::Broken => {
            CaptureError::InvalidPayload { detail: "The body broke off.".to_owned() }.into()
        }
        BodyFault::NoRoom => not_accepted("too many bytes in flight"),
    }
}
