//! The token that a service issues for credentials (OAuth 2).
//!
//! What belongs here: caching it while it is valid. What does not: the credentials.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;
use weir_egress::RequestBuilder;

use super::rest::Service;
use crate::destination::Failure;

/// A token is not used in this last part of its lifetime.
const RESERVE: Duration = Duration::from_secs(300);
/// Upper bound of the time in seconds for which a token is used.
const LONGEST: u64 = 86_400;

/// A token, and when to stop using it. `None`: no token was requested yet.
#[derive(Default)]
pub(in crate::destinations) struct Token(Mutex<Option<(String, Instant)>>);

impl Token {
    /// A valid token. `ask` creates the request for a new one. `refused` is the failure
    /// if the service does not accept the credentials.
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
            return Err(Failure::permanent("AuthenticationFailed", refused));
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
