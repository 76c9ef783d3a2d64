//! Requests to JSON interfaces, and the meaning of their failures.
//!
//! What belongs here: HTTP. What does not: error codes of one service (its own module).

use std::time::Duration;

use serde_json::Value;
use weir_egress::{Egress, Fault, Method, RequestBuilder, header};

use crate::destination::Failure;

/// Upper bound of bytes that are read of an answer. Answers are lists of columns and
/// states, never rows.
const ANSWER_MAX: usize = 4 << 20;
/// Upper bound of the wait that a service can ask for.
const WAIT_MAX: Duration = Duration::from_secs(3600);

/// An answer with any status.
pub(in crate::destinations) struct Answer {
    /// Status code.
    pub(in crate::destinations) status: u16,
    /// The wait that the service requested.
    pub(in crate::destinations) wait: Option<Duration>,
    /// The body, or null if it is not JSON.
    pub(in crate::destinations) body: Value,
}

/// A service, under the name that users know.
#[derive(Clone)]
pub(in crate::destinations) struct Service {
    /// The name, such as `Snowflake`.
    pub(in crate::destinations) name: &'static str,
    /// Outgoing connections.
    pub(in crate::destinations) egress: Egress,
}

impl Service {
    pub(in crate::destinations) fn request(
        &self,
        method: Method,
        url: &str,
    ) -> Result<RequestBuilder, Failure> {
        Ok(self.egress.request(method, url)?)
    }

    /// Sends a request and reads its answer.
    pub(in crate::destinations) async fn send(
        &self,
        request: RequestBuilder,
    ) -> Result<Answer, Failure> {
        let response = request.send().await.map_err(Fault::from)?;
        let status = response.status().as_u16();
        let wait = response
            .headers()
            .get(header::RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.trim().parse().ok())
            .map(|seconds| Duration::from_secs(seconds).min(WAIT_MAX));
        let body = Egress::read(response, ANSWER_MAX).await?;
        Ok(Answer { status, wait, body: serde_json::from_slice(&body).unwrap_or_default() })
    }

    /// Sends a request with a JSON body and reads its answer.
    pub(in crate::destinations) async fn send_json(
        &self,
        request: RequestBuilder,
        body: &Value,
    ) -> Result<Answer, Failure> {
        let request = request.header(header::CONTENT_TYPE, "application/json");
        self.send(request.body(body.to_string())).await
    }

    /// The body of a successful answer.
    pub(in crate::destinations) fn good(&self, answer: Answer) -> Result<Value, Failure> {
        if (200..=299).contains(&answer.status) {
            return Ok(answer.body);
        }
        Err(self.refused(&answer))
    }

    /// The failure for an answer that lacks an expected value.
    pub(in crate::destinations) fn unexpected(&self) -> Failure {
        let message = format!("An answer of {} is not known.", self.name);
        Failure::retryable("UnexpectedAnswer", message)
    }

    /// The failure for an answer of which only the status is significant.
    pub(in crate::destinations) fn refused(&self, answer: &Answer) -> Failure {
        let (name, status) = (self.name, answer.status);
        let last =
            |class, why: &str| Failure::permanent(class, format!("{name} {why} (HTTP {status})."));
        match status {
            401 => last("AuthenticationFailed", "did not accept the credentials"),
            403 => last("PermissionDenied", "does not allow this"),
            404 => last("NotFound", "does not know what the settings name"),
            408 | 429 | 500..=599 => Failure {
                wait: answer.wait,
                ..Failure::retryable(
                    "Unavailable",
                    format!("{name} did not serve (HTTP {status})."),
                )
            },
            _ => last("Refused", "refused the request"),
        }
    }
}

/// Waits between two polls of a remote operation. Each one is longer than the one before.
pub(in crate::destinations) struct Pause(Duration);

impl Pause {
    /// Begins with a short wait.
    pub(in crate::destinations) fn short() -> Self {
        Self(Duration::from_millis(100))
    }

    /// Waits, and makes the next wait longer.
    pub(in crate::destinations) async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(Duration::from_secs(5));
    }
}
