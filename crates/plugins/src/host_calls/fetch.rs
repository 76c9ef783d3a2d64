//! HTTP requests of scripts.
//!
//! What belongs here: which parts of a request a script can set, and what it gets of the
//! answer. What does not: where requests may go (`weir-egress`).

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use weir_egress::{Egress, Fault, FaultClass, Method, Response};

/// Timeout of a request, including its answer.
const WITHIN: Duration = Duration::from_secs(10);
/// Maximum bytes of a request body and of an answer.
const BODY_MAX: usize = 1 << 20;
/// Headers of the connection, which a script cannot set.
const CARRYING: [&str; 9] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Why a request got no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SendError {
    /// The request is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The connection failed.
    #[error("{0}")]
    Connection(FaultClass),
}

impl From<Fault> for SendError {
    fn from(fault: Fault) -> Self {
        Self::Connection(fault.class)
    }
}

/// Sends a request.
pub(crate) async fn send(
    egress: &Egress,
    url: &str,
    method: &str,
    headers: &BTreeMap<String, String>,
    body: Option<String>,
) -> Result<Response, SendError> {
    let invalid = |message: &str| SendError::Invalid(message.to_owned());
    let method = Method::from_bytes(method.as_bytes());
    let method = method.map_err(|_| invalid("this is no method of HTTP"))?;
    let request = egress.request(method, url);
    let mut request =
        request.map_err(|refused| SendError::Invalid(refused.to_string()))?.timeout(WITHIN);
    for (name, value) in headers {
        if !CARRYING.contains(&name.to_ascii_lowercase().as_str()) {
            request = request.header(name, value);
        }
    }
    if let Some(body) = body {
        if body.len() > BODY_MAX {
            return Err(invalid("a request has at most 1 MiB"));
        }
        request = request.body(body);
    }
    let sent = request.send().await;
    sent.map_err(|error| match error.is_builder() {
        true => invalid("this is no header of HTTP"),
        false => Fault::from(error).into(),
    })
}

/// Sends a request of `fetch`; returns the answer as an object.
pub(crate) async fn fetch(
    egress: &Egress,
    url: &str,
    method: &str,
    headers: &BTreeMap<String, String>,
    body: Option<String>,
) -> Result<Value, String> {
    let response =
        send(egress, url, method, headers, body).await.map_err(|fault| fault.to_string())?;
    let status = response.status().as_u16();
    let mut seen = Map::new();
    for (name, value) in response.headers() {
        if let Ok(value) = value.to_str() {
            seen.insert(name.as_str().to_owned(), value.into());
        }
    }
    let body = Egress::read(response, BODY_MAX).await.map_err(|fault| fault.to_string())?;
    Ok(json!({ "status": status, "headers": seen, "body": String::from_utf8_lossy(&body) }))
}
