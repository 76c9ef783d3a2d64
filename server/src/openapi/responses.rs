//! The errors of operations in the API document. All have the same body (API-1, API-2).

use http::Method;
use serde_json::{Map, Value, json};

use super::operation::Description;

/// The properties of an operation that its errors depend on.
pub(super) struct Facts<'a> {
    pub(super) method: &'a Method,
    pub(super) path: &'a str,
    /// Whether it needs a key.
    pub(super) guarded: bool,
    pub(super) description: &'a Description,
}

/// An error: status, name among the components, description of the case, and an example
/// of type, code, detail and attr.
struct Refusal(
    u16,
    &'static str,
    &'static str,
    (&'static str, &'static str, &'static str, Option<&'static str>),
);

const REFUSALS: &[Refusal] = &[
    Refusal(
        400,
        "BadRequest",
        "A field or a parameter is at fault (`attr` names it), or the body is not JSON.",
        ("validation_error", "invalid_input", "Not a valid string.", Some("name")),
    ),
    Refusal(
        401,
        "NotAuthenticated",
        "There is no key, or it is not a valid one.",
        (
            "authentication_error",
            "not_authenticated",
            "Authentication credentials were not provided.",
            None,
        ),
    ),
    Refusal(
        403,
        "Forbidden",
        "The key lacks the scope (`detail` names it), or the member the level.",
        (
            "authentication_error",
            "permission_denied",
            "Your organization access level is insufficient.",
            None,
        ),
    ),
    Refusal(
        404,
        "NotFound",
        "Absent, or not visible to the caller.",
        ("invalid_request", "not_found", "Not found.", None),
    ),
    Refusal(
        405,
        "MethodNotAllowed",
        "The path has other methods: `Allow` names them.",
        ("invalid_request", "method_not_allowed", "Method \"PUT\" not allowed.", None),
    ),
    Refusal(
        406,
        "NotAcceptable",
        "`Accept` leaves no room for JSON.",
        ("invalid_request", "not_acceptable", "Could not satisfy the request Accept header.", None),
    ),
    Refusal(
        408,
        "TooSlow",
        "The body did not arrive in time.",
        ("invalid_request", "request_timeout", "The body did not arrive in time.", None),
    ),
    Refusal(
        409,
        "Conflict",
        "What is there already does not allow it.",
        (
            "server_error",
            "conflict",
            "Requested operation cannot be completed because a related object is protected.",
            None,
        ),
    ),
    Refusal(
        413,
        "TooLarge",
        "The body is too large.",
        ("validation_error", "payload_too_large", "The body is larger than 1048576 bytes.", None),
    ),
    Refusal(
        415,
        "UnsupportedMediaType",
        "The body is neither JSON nor a form.",
        (
            "invalid_request",
            "unsupported_media_type",
            "Unsupported media type \"text/plain\" in request.",
            None,
        ),
    ),
    Refusal(
        429,
        "Throttled",
        "Too many requests: `Retry-After` says when to try again.",
        (
            "throttled_error",
            "throttled",
            "Request was throttled. Expected available in 60 seconds.",
            None,
        ),
    ),
    Refusal(
        500,
        "Failed",
        "Our fault: `extra.request_id` leads to the log line.",
        ("server_error", "error", "A server error occurred.", None),
    ),
    Refusal(
        503,
        "Unavailable",
        "Not now: the storage is busy, the disk nearly full, or it took too long.",
        ("server_error", "unavailable", "The service cannot do this just now. Try again.", None),
    ),
];

impl Refusal {
    fn may_answer(&self, facts: &Facts<'_>) -> bool {
        let has_body = facts.description.body.is_some();
        let refused_always = facts.description.answer.is_none();
        match self.0 {
            // The body of a change may be missing. In an operation without a key, the
            // path is validated like a field.
            400 => {
                let is_change = facts.method != Method::GET && !refused_always;
                let filters = facts.description.filters;
                let is_filtered = filters.iter().any(|filter| filter.kind.is_documented());
                is_change || has_body || is_filtered || !facts.guarded
            }
            401 | 406 => facts.guarded,
            404 => {
                let is_hidden = facts.path.starts_with("/api/instance/");
                is_hidden || facts.path.contains('{') || facts.method != Method::GET
            }
            408 | 413 | 415 => has_body,
            409 => facts.method != Method::GET && !refused_always,
            _ => true,
        }
    }
}

/// References to the errors that an operation may answer.
pub(super) fn refusals(facts: &Facts<'_>) -> Map<String, Value> {
    let answered = REFUSALS.iter().filter(|refusal| refusal.may_answer(facts));
    answered
        .map(|Refusal(status, name, ..)| {
            (status.to_string(), json!({"$ref": format!("#/components/responses/{name}")}))
        })
        .collect()
}

/// The errors themselves.
pub(super) fn components() -> Map<String, Value> {
    REFUSALS.iter().map(|refusal| (refusal.1.to_owned(), component(refusal))).collect()
}

fn component(refusal: &Refusal) -> Value {
    let Refusal(status, _, description, (kind, code, detail, attr)) = refusal;
    let mut example = json!({"type": kind, "code": code, "detail": detail, "attr": attr});
    if *status >= 500 {
        example["extra"] = json!({"request_id": "01979e3c-7a1e-7c34-b1d5-2f60a9b1c0de"});
    }
    let mut headers = json!({"x-request-id": {"$ref": "#/components/headers/RequestId"}});
    if matches!(status, 429 | 503) {
        headers["Retry-After"] = json!({"$ref": "#/components/headers/RetryAfter"});
    }
    json!({
        "description": description,
        "headers": headers,
        "content": {"application/json": {
            "schema": {"$ref": "#/components/schemas/Error"},
            "example": example,
        }},
    })
}

/// Headers that answers carry.
pub(super) fn headers() -> Value {
    json!({
        "RequestId": {
            "description": "Names the request in the log of the service.",
            "schema": {"type": "string", "format": "uuid"},
        },
        "RetryAfter": {
            "description": "Seconds to wait before the next try.",
            "schema": {"type": "integer", "minimum": 1},
        },
    })
}
