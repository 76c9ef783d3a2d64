//! Errors as the API returns them: a closed set of codes and one error body (API-1).

use serde::{Deserialize, Serialize};

/// The class of an error. One table in the server maps it to status and type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// No credentials, or invalid ones.
    Unauthenticated,
    /// A member without the required level, or a key without the required scope.
    Forbidden,
    /// Absent, or not visible to the caller.
    NotFound,
    /// The input is invalid.
    Invalid,
    /// The current state does not allow the operation.
    Conflict,
    /// Too many requests or attempts.
    RateLimited,
    /// Temporarily unavailable: backpressure, disk, shutdown.
    Unavailable,
    /// A fault of the service.
    Internal,
}

/// A fault of one input field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldError {
    /// The field; nested parts joined with two underscores. `None`: the whole body.
    pub attr: Option<String>,
    /// Code for programs, such as `required` or `max_length`.
    pub code: String,
    /// Message for users.
    pub detail: String,
}

impl FieldError {
    /// A fault of a named field.
    pub fn new(attr: &str, code: &str, detail: impl Into<String>) -> Self {
        Self { attr: Some(attr.to_owned()), code: code.to_owned(), detail: detail.into() }
    }

    /// A fault of the body as a whole.
    pub fn body(code: &str, detail: impl Into<String>) -> Self {
        Self { attr: None, code: code.to_owned(), detail: detail.into() }
    }
}

/// The error body of every API answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Error))]
pub struct ErrorBody {
    /// `authentication_error`, `invalid_request`, `validation_error`,
    /// `throttled_error` or `server_error`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Code for programs.
    pub code: String,
    /// Message for users.
    pub detail: String,
    /// The invalid field.
    pub attr: Option<String>,
    /// The request id, only on 5xx answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<ErrorExtra>,
}

/// Additional data of a 5xx body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ErrorExtra {
    /// The request id. The log line of the failure contains it too.
    pub request_id: String,
}
