//! The token that a service gives for credentials, as OAuth 2 has it.
//!
//! What belongs here: keeping it as long as it is valid. What does not: the
//! credentials.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;
use weir_egress::RequestBuilder;

use super::rest::Service;
use crate::destination::Failure;

/// A token is not used in its last minutes.
const RESERVE: Duration = Duration::from_secs(300);
/// How long a token is used at most.
const LONGEST: u64 = 86_400;

/// A token, and when it is no longer used; none: none has been asked for.
#[derive(Default)]
pub(in crate::destinations) struct Token(Mutex<Option<(String, Instant)>>);

impl Token {
    /// A token that is valid for a while. `ask` makes the request for a new one;
    /// `refused` says that the service does not accept its credentials.
    pub(in crate::destinations) async fn get(
        &self,
        service: &Service,
        ask: impl FnOnce() -> Result<RequestBuilder, Failure>,
        refused: &'static str,
    ) -> Result<String, Failure> {
        let mut kept = self.0.lock().await;
        if let Some((token, until)) = kept.as_ref()
            && Instant::now() < *until
        {
            return Ok(token.clone());
        }
        let answer = service.send(ask()?).await?;
        if matches!(answer.status, 400 | 401) {
            return Err(Failure::last("AuthenticationFailed", refused));
        }
        let body = service.good(answer)?;
        let token = body.get("access_token").and_then(Value::as_str);
        let token = token.ok_or_else(|| service.unexpected())?.to_owned();
        let seconds = body.get("expires_in").and_then(Value::as_u64).unwrap_or_default();
        let valid = Duration::from_secs(seconds.min(LONGEST)).saturating_sub(RESERVE);
        *kept = Some((token.clone(), Instant::now() + valid));
        Ok(token)
    }
}
