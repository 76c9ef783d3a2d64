//! What can go wrong, in the words of the wire: a closed set of codes and the
//! one error body of the API (API-1).

use serde::{Deserialize, Serialize};

/// The class of an error. One table in the server maps it to status and type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// No credential, or one that is not valid.
    Unauthenticated,
    /// A member without the level, or a key without the scope.
    Forbidden,
    /// Absent, or not visible to the caller.
    NotFound,
    /// The input is at fault.
    Invalid,
    /// The present state does not allow it.
    Conflict,
    /// Too many requests or tries.
    RateLimited,
    /// Not now: overload, disk, shutting down.
    Unavailable,
    /// Our fault.
    Internal,
}

/// A fault of one input field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldError {
    /// The field; nested parts joined with two underscores. `None`: the whole body.
    pub attr: Option<String>,
    /// Machine code, such as `required` or `max_length`.
    pub code: String,
    /// A sentence for people.
    pub detail: String,
}

impl FieldError {
    /// A fault of a named field.
    #[must_use]
    pub fn new(attr: &str, code: &str, detail: impl Into<String>) -> Self {
        Self { attr: Some(attr.to_owned()), code: code.to_owned(), detail: detail.into() }
    }

    /// A fault of the body as a whole.
    #[must_use]
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
    /// Machine code.
    pub code: String,
    /// A sentence for people.
    pub detail: String,
    /// The field at fault.
    pub attr: Option<String>,
    /// The request id, on 5xx answers only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<ErrorExtra>,
}

/// What a 5xx body carries besides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ErrorExtra {
    /// The id that the log line of the failure carries too.
    pub request_id: String,
}
