//! Requests to JSON interfaces, and what their failures mean.
//!
//! What belongs here: what HTTP says. What does not: codes of one service.

use std::time::Duration;

use serde_json::Value;
use weir_egress::{Egress, Fault, Method, RequestBuilder, header};

use crate::destination::Failure;

/// Bytes of an answer that are read: lists of columns and states, never rows.
const ANSWER_MAX: usize = 4 << 20;
/// How long a service may ask us to wait.
const WAIT_MAX: Duration = Duration::from_secs(3600);

/// An answer, whatever its status.
pub(in crate::destinations) struct Answer {
    /// Status code.
    pub(in crate::destinations) status: u16,
    /// How long the service asks us to wait.
    pub(in crate::destinations) wait: Option<Duration>,
    /// The body; null if it is no JSON.
    pub(in crate::destinations) body: Value,
}

/// A service by the name that people know.
#[derive(Clone)]
pub(in crate::destinations) struct Service {
    /// Such as `Snowflake`.
    pub(in crate::destinations) name: &'static str,
    /// The way there.
    pub(in crate::destinations) egress: Egress,
}

impl Service {
    /// A request.
    pub(in crate::destinations) fn request(
        &self,
        method: Method,
        url: &str,
    ) -> Result<RequestBuilder, Failure> {
        Ok(self.egress.request(method, url)?)
    }

    /// Sends a request and reads what comes back.
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

    /// The same with a JSON body.
    pub(in crate::destinations) async fn send_json(
        &self,
        request: RequestBuilder,
        body: &Value,
    ) -> Result<Answer, Failure> {
        let request = request.header(header::CONTENT_TYPE, "application/json");
        self.send(request.body(body.to_string())).await
    }

    /// The body of an answer that says yes.
    pub(in crate::destinations) fn good(&self, answer: Answer) -> Result<Value, Failure> {
        if (200..=299).contains(&answer.status) {
            return Ok(answer.body);
        }
        Err(self.refused(&answer))
    }

    /// That an answer lacks what it should have.
    pub(in crate::destinations) fn unexpected(&self) -> Failure {
        let message = format!("An answer of {} is not known.", self.name);
        Failure::retryable("UnexpectedAnswer", message)
    }

    /// What an answer means that says no more than its status.
    pub(in crate::destinations) fn refused(&self, answer: &Answer) -> Failure {
        let (name, status) = (self.name, answer.status);
        let last =
            |class, why: &str| Failure::last(class, format!("{name} {why} (HTTP {status})."));
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

/// Waits between two looks at work that goes on elsewhere: longer each time.
pub(in crate::destinations) struct Pause(Duration);

impl Pause {
    /// Begins with a short one.
    pub(in crate::destinations) fn short() -> Self {
        Self(Duration::from_millis(100))
    }

    /// Waits.
    pub(in crate::destinations) async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(Duration::from_secs(5));
    }
}
