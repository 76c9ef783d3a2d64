//! The id of a request. The server creates it. It is in the `x-request-id` header of
//! every answer, in every log line and in the body of 5xx answers.

use std::fmt;

use axum::extract::FromRequestParts;
use http::HeaderValue;
use http::request::Parts;
use uuid::Uuid;
use weir_model::Timestamp;

use crate::http::error::ApiError;

/// Name of the header.
pub const HEADER: &str = "x-request-id";

/// The id of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestId(Uuid);

impl RequestId {
    /// A new id for a request of this time; ids sort by time.
    pub fn at(now: Timestamp) -> Self {
        let micros = u64::try_from(now.micros()).unwrap_or(0);
        let nanos = u32::try_from(micros % 1_000_000 * 1_000).unwrap_or(0);
        let time = uuid::Timestamp::from_unix(uuid::NoContext, micros / 1_000_000, nanos);
        Self(Uuid::new_v7(time))
    }

    /// The id as a header.
    pub fn header(self) -> HeaderValue {
        // Digits, letters and hyphens are always valid in a header.
        HeaderValue::from_str(&self.to_string()).unwrap_or(HeaderValue::from_static("unknown"))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_hyphenated().fmt(f)
    }
}

impl<S: Sync> FromRequestParts<S> for RequestId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let missing = || ApiError::internal("the dispatcher did not see the request");
        parts.extensions.get::<Self>().copied().ok_or_else(missing)
    }
}
