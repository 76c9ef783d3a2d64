//! Errors as answers: one enum, one table to status, type and code, one body (ING-25,
//! API-1).
//!
//! A handler returns a response without a body and with a [`Failure`] in its extensions.
//! The dispatcher writes the body, because only there the request id is known, and logs
//! the cause once.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Method, StatusCode, header};
use serde::Serialize;
use weir_capture::{CaptureError, v1};
use weir_mcp::{Fault, Id, Reply, ToolResult};
use weir_model::ProjectId;
use weir_model::errors::{ErrorBody, ErrorExtra, FieldError};
use weir_model::limits::LimitName;
use weir_model::scopes::Scope;
use weir_service::Error as ServiceError;
use weir_service::error::NOT_CONFIRMED;
use weir_service::limits::OverLimit;

use crate::http::request_id::RequestId;
use crate::logs::with_causes;

/// Result of a handler.
pub type ApiResult<T> = Result<T, ApiError>;

/// `Retry-After` in seconds, for a refusal that passes quickly.
const RETRY_SOON: u64 = 1;
/// `Retry-After` in seconds, for the time in which a long list is usually read.
const RETRY_LISTS: u64 = 5;
/// `Retry-After` in seconds, when a maximum number is reached, such as active backfills.
const RETRY_LATER: u64 = 60;

/// What the caller of a question reads whose events are damaged.
const UNREADABLE: &str =
    "Stored events that the answer needs are damaged. Without them it would be wrong.";

/// All errors of handlers.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// A service refused the operation or failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// A sign-in waits for the second factor. The cookie identifies it.
    #[error("second factor asked for")]
    SecondFactor(Option<HeaderValue>),
    /// The body of a capture request is invalid.
    #[error("capture refused")]
    Capture(#[source] CaptureError),
    /// A request of capture protocol V1 is invalid.
    #[error("capture refused")]
    CaptureV1(#[source] v1::Fault),
    /// The key is well formed, but no project has it.
    #[error("unknown project key")]
    UnknownProjectKey,
    /// The events cannot be stored at the moment. The text has the reason, for the log.
    #[error("events not accepted: {0}")]
    NotAccepted(Cow<'static, str>),
    /// The events are beyond a limit of their organization, which refuses them (ING-66).
    #[error("over the limit {}", .over.limit.code())]
    OverLimit {
        /// The project that they were sent to.
        project: ProjectId,
        /// The limit.
        over: OverLimit,
        /// The number of events in the request.
        events: u64,
    },
    /// Data that is not an event. Only counted and recorded as a refused request:
    /// `capture::not_kept` answers 200, so this is never a response.
    #[error("not kept")]
    NotKept,
    /// The browser library, but neither the site has one nor the settings.
    #[error("no browser library")]
    NoBrowserLibrary,
    /// No such path.
    #[error("no such path")]
    UnknownPath,
    /// The path does not have this method.
    #[error("method not allowed")]
    MethodNotAllowed(Method),
    /// The client accepts no media type that the operation can return.
    #[error("not acceptable")]
    NotAcceptable,
    /// The operation does not read bodies of this media type.
    #[error("unsupported media type")]
    UnsupportedMediaType(String),
    /// The body does not match its media type.
    #[error("malformed body: {0}")]
    Malformed(String),
    /// The body has more than this many bytes.
    #[error("body of more than {0} bytes")]
    TooLarge(usize),
    /// The body arrived too slowly.
    #[error("body came too slowly")]
    TooSlow,
    /// Path and query are too long.
    #[error("address too long")]
    UriTooLong,
    /// All permits of the management API or of the web app are in use.
    #[error("too many requests at a time")]
    Busy,
    /// The user has this many requests at the same time. More are not allowed.
    #[error("too many requests of one user at a time")]
    TooManyRequests(usize),
    /// This many long lists are already being sent to the caller. More are not allowed.
    #[error("too many long lists at a time")]
    TooManyLists(usize),
    /// The answer took longer than its time limit.
    #[error("no answer within the time limit")]
    TimedOut,
    /// The handler panicked.
    #[error("the handler panicked: {0}")]
    Panicked(String),
}

impl ApiError {
    /// A defect of the server itself.
    pub fn internal(cause: &'static str) -> Self {
        Self::Service(ServiceError::Internal(cause.to_owned()))
    }

    /// The one table from errors to answers.
    fn parts(&self) -> ErrorParts<'_> {
        match self {
            Self::Service(error) => service_parts(error),
            Self::SecondFactor(_) => second_factor_parts(),
            Self::Capture(error) => ErrorParts {
                status: match error {
                    CaptureError::InvalidPayload { .. } => StatusCode::BAD_REQUEST,
                    CaptureError::PayloadTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
                    CaptureError::MissingApiKey
                    | CaptureError::InvalidApiKey
                    | CaptureError::ConflictingApiKeys => StatusCode::UNAUTHORIZED,
                },
                kind: error.kind(),
                ..ErrorParts::new(error.code(), error.detail())
            },
            Self::CaptureV1(fault) => ErrorParts {
                status: match fault {
                    v1::Fault::UnsupportedContentType | v1::Fault::UnsupportedEncoding => {
                        StatusCode::UNSUPPORTED_MEDIA_TYPE
                    }
                    _ => StatusCode::BAD_REQUEST,
                },
                kind: "validation_error",
                ..ErrorParts::new(fault.tag(), fault.detail())
            },
            Self::UnknownProjectKey => ErrorParts {
                status: StatusCode::UNAUTHORIZED,
                kind: "authentication_error",
                ..ErrorParts::new("invalid_api_key", "No project has this API key.")
            },
            Self::NotAccepted(_) => ErrorParts {
                status: StatusCode::SERVICE_UNAVAILABLE,
                kind: "server_error",
                retry_after: Some(RETRY_SOON),
                ..ErrorParts::new("not_accepted", "The events were not stored. Send them again.")
            },
            Self::OverLimit { over, .. } => ErrorParts {
                status: StatusCode::TOO_MANY_REQUESTS,
                kind: "throttled_error",
                retry_after: Some(over.retry_after),
                ..ErrorParts::new("over_limit", over_limit(over))
            },
            // Never sent: see the variant.
            Self::NotKept => ErrorParts::new("not_kept", "Nothing of this is kept here."),
            Self::NoBrowserLibrary => ErrorParts {
                status: StatusCode::NOT_FOUND,
                ..ErrorParts::new(
                    "not_found",
                    "This build of Weir has no browser library. Set `browser_library` to the \
                     `dist` folder of the npm package posthog-js, or to a file that is its \
                     array.js.",
                )
            },
            Self::UnknownPath => ErrorParts {
                status: StatusCode::NOT_FOUND,
                ..ErrorParts::new("not_found", "Endpoint not found.")
            },
            Self::MethodNotAllowed(method) => ErrorParts {
                status: StatusCode::METHOD_NOT_ALLOWED,
                ..ErrorParts::new("method_not_allowed", format!("Method \"{method}\" not allowed."))
            },
            Self::NotAcceptable => ErrorParts {
                status: StatusCode::NOT_ACCEPTABLE,
                ..ErrorParts::new("not_acceptable", "Could not satisfy the request Accept header.")
            },
            Self::UnsupportedMediaType(media_type) => ErrorParts {
                status: StatusCode::UNSUPPORTED_MEDIA_TYPE,
                ..ErrorParts::new(
                    "unsupported_media_type",
                    format!("Unsupported media type \"{media_type}\" in request."),
                )
            },
            Self::Malformed(fault) => ErrorParts::new("parse_error", fault.as_str()),
            Self::TooLarge(limit) => ErrorParts {
                status: StatusCode::PAYLOAD_TOO_LARGE,
                kind: "validation_error",
                ..ErrorParts::new(
                    "payload_too_large",
                    format!("The body is larger than {limit} bytes."),
                )
            },
            Self::TooSlow => ErrorParts {
                status: StatusCode::REQUEST_TIMEOUT,
                ..ErrorParts::new("request_timeout", "The body did not arrive in time.")
            },
            Self::UriTooLong => ErrorParts {
                status: StatusCode::URI_TOO_LONG,
                ..ErrorParts::new("uri_too_long", "The address is too long.")
            },
            Self::Busy => ErrorParts::throttled(RETRY_SOON),
            Self::TooManyRequests(most) => ErrorParts {
                detail: format!(
                    "Too many requests at the same time. You may have {most}: wait until one has \
                     ended."
                )
                .into(),
                ..ErrorParts::throttled(RETRY_SOON)
            },
            Self::TooManyLists(most) => ErrorParts {
                detail: format!(
                    "Too many long lists are being sent. You may read {most} at a time: read one \
                     to its end, or ask for smaller pages."
                )
                .into(),
                ..ErrorParts::throttled(RETRY_LISTS)
            },
            Self::TimedOut => ErrorParts {
                status: StatusCode::SERVICE_UNAVAILABLE,
                kind: "server_error",
                retry_after: Some(RETRY_SOON),
                ..ErrorParts::new("timeout", "The request took too long.")
            },
            Self::Panicked(_) => ErrorParts::internal(),
        }
    }

    /// The cause for the log, if the server is at fault.
    fn cause(&self, status: StatusCode) -> Option<String> {
        status.is_server_error().then(|| with_causes(self))
    }
}

fn service_parts(error: &ServiceError) -> ErrorParts<'_> {
    let denied = |detail: Cow<'static, str>| ErrorParts {
        status: StatusCode::FORBIDDEN,
        kind: "authentication_error",
        ..ErrorParts::new("permission_denied", detail)
    };
    match error {
        ServiceError::NotAuthenticated => ErrorParts {
            status: StatusCode::UNAUTHORIZED,
            kind: "authentication_error",
            ..ErrorParts::new("not_authenticated", "Authentication credentials were not provided.")
        },
        ServiceError::BadCredential(place) => ErrorParts {
            status: StatusCode::UNAUTHORIZED,
            kind: "authentication_error",
            ..ErrorParts::new(
                "authentication_failed",
                format!("Personal API key found in request {place} is invalid."),
            )
        },
        ServiceError::MissingScope(scope) => {
            denied(format!("API key missing required scope '{scope}'").into())
        }
        ServiceError::Forbidden(sentence) => ErrorParts {
            status: StatusCode::FORBIDDEN,
            kind: "authentication_error",
            ..ErrorParts::new("permission_denied", sentence.as_str())
        },
        ServiceError::SignInAgain => {
            denied("This action requires you to be recently authenticated.".into())
        }
        ServiceError::NotFound(sentence) => {
            ErrorParts { status: StatusCode::NOT_FOUND, ..ErrorParts::new("not_found", *sentence) }
        }
        ServiceError::Invalid(fault) => ErrorParts {
            kind: "validation_error",
            attr: fault.attr.as_deref(),
            ..ErrorParts::new(fault.code.as_str(), fault.detail.as_str())
        },
        ServiceError::NotConfirmed { .. } => ErrorParts {
            kind: "validation_error",
            ..ErrorParts::new("not_verified", NOT_CONFIRMED)
        },
        // Client libraries know the codes of these two errors (API-2).
        ServiceError::SecondFactor(_) => second_factor_parts(),
        ServiceError::SecondFactorMissing => ErrorParts {
            status: StatusCode::FORBIDDEN,
            kind: "authentication_error",
            ..ErrorParts::new("two_factor_setup_required", "2FA setup required")
        },
        // The protocol has this type for a conflict (API-2).
        ServiceError::Conflict { code, detail } => ErrorParts {
            status: StatusCode::CONFLICT,
            kind: "server_error",
            ..ErrorParts::new(*code, detail.as_str())
        },
        ServiceError::Throttled { wait_seconds } => ErrorParts::throttled(*wait_seconds),
        ServiceError::TooMany { code, detail } => ErrorParts {
            status: StatusCode::TOO_MANY_REQUESTS,
            kind: "throttled_error",
            retry_after: Some(RETRY_LATER),
            ..ErrorParts::new(*code, detail.as_str())
        },
        ServiceError::Unavailable(why) => ErrorParts {
            detail: format!("The service cannot do this just now: {why}. Try again.").into(),
            ..ErrorParts::unavailable()
        },
        ServiceError::Store(cause) if cause.is_temporary() => ErrorParts::unavailable(),
        ServiceError::Unreadable(_) => ErrorParts {
            code: "damaged_events".into(),
            detail: UNREADABLE.into(),
            ..ErrorParts::internal()
        },
        ServiceError::Store(_) | ServiceError::Internal(_) => ErrorParts::internal(),
    }
}

/// What the sender of events beyond a limit reads. Project keys are public, so it has no
/// numbers of the organization.
fn over_limit(over: &OverLimit) -> String {
    let OverLimit { limit, retry_after, .. } = over;
    let used = match limit {
        LimitName::EventsPerSecond => "events in a second",
        LimitName::DiskBytes => "disk space",
        _ => "events in a calendar month",
    };
    format!(
        "The organization of this project has reached its limit of {used}. The events were not \
         stored. Send them again after {retry_after} seconds."
    )
}

fn second_factor_parts() -> ErrorParts<'static> {
    ErrorParts {
        status: StatusCode::UNAUTHORIZED,
        kind: "server_error",
        ..ErrorParts::new("2fa_required", "2FA is required.")
    }
}

/// The status, headers and body of an error.
struct ErrorParts<'a> {
    status: StatusCode,
    kind: &'static str,
    code: Cow<'a, str>,
    detail: Cow<'a, str>,
    attr: Option<&'a str>,
    retry_after: Option<u64>,
}

impl<'a> ErrorParts<'a> {
    /// An invalid request: status 400, which a caller may replace.
    fn new(code: impl Into<Cow<'a, str>>, detail: impl Into<Cow<'a, str>>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            kind: "invalid_request",
            code: code.into(),
            detail: detail.into(),
            attr: None,
            retry_after: None,
        }
    }

    fn throttled(wait_seconds: u64) -> Self {
        let unit = if wait_seconds == 1 { "second" } else { "seconds" };
        Self {
            status: StatusCode::TOO_MANY_REQUESTS,
            kind: "throttled_error",
            retry_after: Some(wait_seconds),
            ..Self::new(
                "throttled",
                format!("Request was throttled. Expected available in {wait_seconds} {unit}."),
            )
        }
    }

    fn unavailable() -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            kind: "server_error",
            retry_after: Some(RETRY_SOON),
            ..Self::new("unavailable", "The service cannot do this just now. Try again.")
        }
    }

    fn internal() -> Self {
        Self {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            kind: "server_error",
            ..Self::new("error", "A server error occurred.")
        }
    }
}

impl From<FieldError> for ApiError {
    fn from(error: FieldError) -> Self {
        Self::Service(ServiceError::Invalid(error))
    }
}

impl From<CaptureError> for ApiError {
    fn from(error: CaptureError) -> Self {
        Self::Capture(error)
    }
}

impl From<v1::Fault> for ApiError {
    fn from(fault: v1::Fault) -> Self {
        match fault {
            v1::Fault::Common(error) => Self::Capture(error),
            fault => Self::CaptureV1(fault),
        }
    }
}

/// The form of an error body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorForm {
    /// Type, code, detail and attr (API-1).
    Common,
    /// Tag, sentence and address of capture protocol V1 (ING-27).
    V1,
    /// Status and sentence of SCIM (SSO-51).
    Scim,
    /// An answer of JSON-RPC: the fault of a request, or the result of a tool (QRY-36).
    JsonRpc,
}

/// The request whose tool has failed. It is in the extensions of an answer of the form
/// [`ErrorForm::JsonRpc`].
#[derive(Debug, Clone)]
pub struct FailedTool(pub Id);

/// The error body of capture protocol V1.
#[derive(Serialize)]
struct ErrorBodyV1<'a> {
    error: &'a str,
    error_description: &'a str,
    /// Address of the documentation of the endpoint.
    error_uri: &'static str,
}

#[derive(Serialize)]
struct ErrorBodyScim<'a> {
    schemas: [&'static str; 1],
    status: &'a str,
    detail: &'a str,
}

/// Writes an error as an answer of JSON-RPC. That of a tool is a result, which the model reads,
/// so the request itself has succeeded.
fn json_rpc(body: &ErrorBody, response: &mut Response) -> Result<Vec<u8>, serde_json::Error> {
    if let Some(FailedTool(id)) = response.extensions_mut().remove() {
        *response.status_mut() = StatusCode::OK;
        let failed = ToolResult::failed(serde_json::to_string(body)?);
        return serde_json::to_vec(&Reply::result(id, failed));
    }
    let code = match body.code.as_str() {
        "parse_error" => Fault::PARSE_ERROR,
        _ => Fault::REFUSED,
    };
    let fault = Fault { data: Some(serde_json::to_value(body)?), ..Fault::new(code, &body.detail) };
    serde_json::to_vec(&Reply::fault(None, fault))
}

/// The names of capture protocol V1 for errors that all paths share.
fn v1_tag(code: &str) -> &str {
    match code {
        "missing_api_key" | "invalid_api_key" => "invalid_api_token",
        "not_accepted" | "unavailable" | "timeout" => "service_unavailable",
        "error" => "internal_error",
        other => other,
    }
}

/// An error on its way to the dispatcher.
#[derive(Debug, Clone)]
pub struct Failure {
    body: Arc<ErrorBody>,
    /// The cause for the log, if the server is at fault.
    pub cause: Option<String>,
    /// Whether the store failed.
    pub store_failed: bool,
    /// The scope that the key does not have. `key_use` records it.
    pub missing_scope: Option<Scope>,
}

impl Failure {
    /// Writes the error body. In the common form and in that of JSON-RPC, an error of the
    /// server contains the request id. In the form `V1`, the response gets `Retry-After`.
    ///
    /// # Errors
    /// None in practice: the body consists of texts.
    pub fn write(
        &self,
        form: ErrorForm,
        response: &mut Response,
        request_id: RequestId,
    ) -> Result<(), serde_json::Error> {
        let is_server_error = response.status().is_server_error();
        let body = || {
            let extra = is_server_error.then(|| ErrorExtra { request_id: request_id.to_string() });
            ErrorBody { extra, ..(*self.body).clone() }
        };
        let text = match form {
            ErrorForm::Common => serde_json::to_vec(&body())?,
            ErrorForm::JsonRpc => json_rpc(&body(), response)?,
            ErrorForm::V1 => serde_json::to_vec(&ErrorBodyV1 {
                error: v1_tag(&self.body.code),
                error_description: &self.body.detail,
                error_uri: "/api/docs/",
            })?,
            ErrorForm::Scim => serde_json::to_vec(&ErrorBodyScim {
                schemas: [weir_scim::ERROR],
                status: response.status().as_str(),
                detail: &self.body.detail,
            })?,
        };
        *response.body_mut() = Body::from(text);
        let headers = response.headers_mut();
        let media = match form {
            ErrorForm::Scim => weir_scim::MEDIA_TYPE,
            ErrorForm::Common | ErrorForm::V1 | ErrorForm::JsonRpc => "application/json",
        };
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
        headers.remove(header::CONTENT_LENGTH);
        if is_server_error && form == ErrorForm::V1 {
            headers.entry(header::RETRY_AFTER).or_insert(HeaderValue::from(RETRY_SOON));
        }
        Ok(())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let parts = self.parts();
        let status = parts.status;
        let body = ErrorBody {
            kind: parts.kind.to_owned(),
            code: parts.code.into_owned(),
            detail: parts.detail.into_owned(),
            attr: parts.attr.map(str::to_owned),
            extra: None,
        };
        let mut response = status.into_response();
        if let Some(seconds) = parts.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Self::SecondFactor(Some(cookie)) = &self {
            response.headers_mut().append(header::SET_COOKIE, cookie.clone());
        }
        let failure = Failure {
            body: Arc::new(body),
            cause: self.cause(status),
            store_failed: matches!(
                self,
                Self::Service(ServiceError::Store(_) | ServiceError::Unreadable(_))
            ),
            missing_scope: match self {
                Self::Service(ServiceError::MissingScope(scope)) => Some(scope),
                _ => None,
            },
        };
        response.extensions_mut().insert(failure);
        response
    }
}
