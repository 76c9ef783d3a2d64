//! The tally of a request with events: its size, its duration, and why it was refused. A
//! refused request also becomes a row of the live list.
//!
//! What belongs here: finding the project of a request, also when it fails before its key
//! was read. What does not: counting events, which happens where they are applied
//! (`weir-ingest`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::extract::Request;
use http::{HeaderValue, header};
use weir_capture::is_project_key;
use weir_model::traffic::RefusedRequest;
use weir_model::{ProjectId, Timestamp};
use weir_service::limits::OverLimit;
use weir_store::live;

use super::history;

use crate::app::App;
use crate::http::error::ApiError;

/// Bytes at the beginning of a body that are searched for a key.
const SEARCHED_BYTES: usize = 1 << 10;
/// Prefix of project keys.
const OPENING: &[u8] = b"phc_";
/// The header in which newer libraries send their name. Others use the header that
/// browsers use.
const SDK_INFO: &str = "posthog-sdk-info";
/// Characters that are kept of a sender's name.
const LIBRARY: usize = 120;
/// Characters that are kept of an error's detail.
const DETAIL: usize = 300;

/// Numbers refused requests, because several may arrive within a microsecond.
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// The tally of a request while it is processed.
#[derive(Debug)]
pub(super) struct RequestTally {
    /// When the request arrived.
    at: Timestamp,
    /// The project, once it is known.
    pub(super) project: Option<ProjectId>,
    /// The key in the query or near the beginning of the body, found without decoding the
    /// body.
    named: Option<String>,
    /// The sender's name. It refers to the bytes of the headers.
    library: Option<HeaderValue>,
    bytes: u64,
    /// When the body was complete. The time of a slow upload is not counted as time of
    /// the answer.
    since: Option<Instant>,
}

impl RequestTally {
    /// Begins with the headers and the query, where some libraries put their key.
    pub(super) fn open(app: &App, request: &Request) -> Self {
        let headers = request.headers();
        let named = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let named = named.and_then(|text| text.strip_prefix("Bearer "));
        let named = named.filter(|key| is_project_key(key)).map(str::to_owned);
        let named = named.or_else(|| key_of_query(request.uri().query()?));
        let library = headers.get(SDK_INFO).or_else(|| headers.get(header::USER_AGENT)).cloned();
        let at = app.services.clock.now();
        Self { at, project: None, named, library, bytes: 0, since: None }
    }

    /// Adds the body to the tally.
    pub(super) fn body(&mut self, body: &[u8]) {
        self.since = Some(Instant::now());
        self.bytes = body.len() as u64;
        if self.named.is_none() {
            self.named = key_within(body);
        }
    }

    /// Counts the request. `route` is its path.
    pub(super) fn close(self, app: &App, route: &'static str, failed: Option<&ApiError>) {
        let at = self.at;
        let took = self.since.map(|since| since.elapsed().as_millis()).unwrap_or_default();
        let milliseconds = u64::try_from(took).unwrap_or(u64::MAX);
        match (failed, self.project) {
            (None, Some(project)) => {
                app.traffic.answered(project, at, self.bytes, milliseconds);
            }
            // A request without a project and without an error stores nothing.
            (None, None) => {}
            (Some(error), project) => {
                let key = self.named.as_deref();
                let named = key.and_then(|key| app.tokens.known(key)).map(|rules| rules.id);
                let refused = match error {
                    ApiError::OverLimit { project, .. } => Some(*project),
                    _ => None,
                };
                let of = project.or(refused).or(named);
                app.traffic.refused(of, at, self.bytes, code(error));
                if let Some(project) = of {
                    // A key in the body may be that of another project.
                    let key = key.filter(|_| named == of).map(history::beginning);
                    show(app, project, self.refused(route, at, key, error));
                }
            }
        }
    }

    /// The stored form of a refused request.
    fn refused(
        self,
        route: &'static str,
        at: Timestamp,
        project_key: Option<String>,
        error: &ApiError,
    ) -> RefusedRequest {
        let number = REFUSED.fetch_add(1, Ordering::Relaxed);
        let library = self.library.as_ref().and_then(|value| value.to_str().ok());
        let library = library.map(str::trim).filter(|name| !name.is_empty());
        RefusedRequest {
            key: format!("refused-{}-{number}", at.micros()),
            at,
            code: code(error).to_owned(),
            detail: detail(error),
            route: route.to_owned(),
            library: library.map(|name| name.chars().take(LIBRARY).collect()),
            bytes: self.bytes,
            project_key,
        }
    }
}

/// Adds the request to the live list. It is stored first, so that a page that reads the
/// stored requests and then follows the live list misses none.
fn show(app: &App, project: ProjectId, request: RefusedRequest) {
    app.traffic.refusals().note(project, request.clone());
    if app.ingest.live().is_watched(project) {
        app.ingest.live().publish(project, live::rejected(request));
    }
}

/// The shortened key in a query, as logs and reports show it.
fn key_of_query(query: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let (_, key) = pairs.find(|(name, key)| name == "token" && is_project_key(key))?;
    Some(key.into_owned())
}

/// The first key near the beginning of an uncompressed body.
fn key_within(body: &[u8]) -> Option<String> {
    let head = body.get(..body.len().min(SEARCHED_BYTES))?;
    let at = head.windows(OPENING.len()).position(|window| window == OPENING)?;
    let rest = head.get(at..)?;
    let end = rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
    std::str::from_utf8(rest.get(..end?)?).ok().map(str::to_owned)
}

/// The code that a refusal is counted under. `weir_model::traffic::Refusal` explains
/// each.
fn code(error: &ApiError) -> &'static str {
    match error {
        ApiError::Capture(fault) => fault.code(),
        ApiError::CaptureV1(_) => "invalid_request",
        ApiError::UnknownProjectKey => "invalid_api_key",
        ApiError::NotAccepted(_) => "not_accepted",
        ApiError::OverLimit { .. } => "over_limit",
        ApiError::TooSlow => "request_timeout",
        ApiError::TooLarge(_) => "payload_too_large",
        ApiError::NotKept => "not_kept",
        _ => "failed",
    }
}

/// The detail of the answer, if it adds to the code.
fn detail(error: &ApiError) -> Option<String> {
    let text = match error {
        ApiError::Capture(fault) => fault.detail(),
        ApiError::CaptureV1(fault) => fault.detail(),
        ApiError::OverLimit { over, events, .. } => {
            let OverLimit { limit, most, .. } = over;
            format!("{}: {most}. Events in the request: {events}.", limit.label()).into()
        }
        _ => return None,
    };
    Some(text.chars().take(DETAIL).collect())
}

#[cfg(test)]
mod tests {
    use super::key_within;

    #[test]
    fn keys_are_found_near_the_beginning() {
        let found = |body: &str| key_within(body.as_bytes());
        assert_eq!(found(r#"{"api_key": "phc_a1B_2", "batch": ["#).as_deref(), Some("phc_a1B_2"));
        assert_eq!(found("phc_cut"), None);
        assert_eq!(found(r#"{"api_key": "other"}"#), None);
        assert_eq!(found(&format!("{}\"phc_a\"", " ".repeat(2_000))), None);
    }
}
