//! What is counted of a request that brings events: its size, how long it took,
//! and why it was refused.
//!
//! What belongs here: whose request it is, also when it fails before that was
//! read. What does not: counting events, which happens where they are applied.

use std::time::Instant;

use http::{HeaderMap, header};
use weir_capture::is_project_key;
use weir_model::{ProjectId, Timestamp};

use crate::app::App;
use crate::http::error::ApiError;

/// How far into a body a key is looked for.
const LOOK: usize = 1 << 10;
/// How the keys of projects begin.
const OPENING: &[u8] = b"phc_";

/// What is known of a request while it is worked on.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// The project, once it is known.
    pub(super) project: Option<ProjectId>,
    /// A key that the request names, as far as that can be told without reading it.
    named: Option<String>,
    bytes: u64,
    /// Since when the body is there: a slow sender is no slow answer.
    since: Option<Instant>,
}

impl Account {
    /// Begins with the headers, where newer libraries put their key.
    pub(super) fn open(headers: &HeaderMap) -> Self {
        let named = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let named = named.and_then(|text| text.strip_prefix("Bearer "));
        let named = named.filter(|key| is_project_key(key)).map(str::to_owned);
        Self { named, ..Self::default() }
    }

    /// Notes the body.
    pub(super) fn body(&mut self, body: &[u8]) {
        self.since = Some(Instant::now());
        self.bytes = body.len() as u64;
        if self.named.is_none() {
            self.named = key_within(body);
        }
    }

    /// Counts the request.
    pub(super) fn close(self, app: &App, at: Timestamp, failed: Option<&ApiError>) {
        let took = self.since.map(|since| since.elapsed().as_millis()).unwrap_or_default();
        let milliseconds = u64::try_from(took).unwrap_or(u64::MAX);
        match (failed, self.project) {
            (None, Some(project)) => {
                app.traffic.answered(project, at, self.bytes, milliseconds);
            }
            // Nothing was to be kept of it.
            (None, None) => {}
            (Some(error), project) => {
                let named = || app.tokens.known(self.named.as_deref()?).map(|rules| rules.id);
                app.traffic.refused(project.or_else(named), at, self.bytes, code(error));
            }
        }
    }
}

/// The first key near the beginning of a body that is not packed.
fn key_within(body: &[u8]) -> Option<String> {
    let head = body.get(..body.len().min(LOOK))?;
    let at = head.windows(OPENING.len()).position(|window| window == OPENING)?;
    let rest = head.get(at..)?;
    let end = rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
    std::str::from_utf8(rest.get(..end?)?).ok().map(str::to_owned)
}

/// What a refusal is counted as: `weir_model::traffic::Refusal` has the words.
fn code(error: &ApiError) -> &'static str {
    match error {
        ApiError::Capture(fault) => fault.code(),
        ApiError::CaptureV1(_) => "invalid_request",
        ApiError::UnknownProjectKey => "invalid_api_key",
        ApiError::NotAccepted(_) => "not_accepted",
        ApiError::TooSlow => "request_timeout",
        ApiError::TooLarge(_) => "payload_too_large",
        _ => "failed",
    }
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
