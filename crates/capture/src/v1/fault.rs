//! Why a whole request of capture protocol V1 is refused.
//!
//! What belongs here: tag and message of each refusal. What does not: HTTP status codes
//! (the server).

use std::borrow::Cow;

use uuid::Uuid;

use crate::CaptureError;
use crate::decode::BODY_LIMIT;

/// Refuses the whole request. Faults of single events are not errors: they become a
/// [`Decision::Drop`](crate::Decision::Drop).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A fault of the key, or a body that is too large: the same as on all paths.
    #[error(transparent)]
    Common(#[from] CaptureError),
    /// Required headers that are missing.
    #[error("missing headers: {}", .0.join(", "))]
    MissingHeaders(Vec<&'static str>),
    /// A header that cannot be parsed.
    #[error("unreadable header `{0}`")]
    InvalidHeader(&'static str),
    /// The content type is not JSON.
    #[error("unsupported content type")]
    UnsupportedContentType,
    /// An unknown compression, or several ones.
    #[error("unsupported content encoding")]
    UnsupportedEncoding,
    /// The body is missing.
    #[error("empty body")]
    EmptyBody,
    /// The body does not match its encoding, or is not text.
    #[error("undecodable body")]
    Undecodable,
    /// The text does not match the protocol.
    #[error("unreadable body: {0}")]
    Unreadable(String),
    /// `created_at` is missing or not a time.
    #[error("unreadable created_at")]
    InvalidCreatedAt,
    /// No events.
    #[error("empty batch")]
    EmptyBatch,
    /// The event at this index has no uuid.
    #[error("event {0} has no uuid")]
    MissingUuid(usize),
    /// The event at this index has an invalid uuid.
    #[error("the uuid of event {0} is none")]
    InvalidUuid(usize),
    /// Two events have this uuid.
    #[error("two events have the uuid {0}")]
    DuplicateUuid(Uuid),
}

impl Fault {
    pub(super) const fn too_large() -> Self {
        Self::Common(CaptureError::PayloadTooLarge { limit: BODY_LIMIT })
    }

    /// The code of the answer.
    pub const fn tag(&self) -> &'static str {
        match self {
            Self::Common(error) => error.code(),
            Self::MissingHeaders(_) => "missing_required_headers",
            Self::InvalidHeader(_) => "invalid_header_value",
            Self::UnsupportedContentType => "unsupported_content_type",
            Self::UnsupportedEncoding => "unsupported_encoding",
            Self::EmptyBody => "empty_body",
            Self::Undecodable => "request_decoding_error",
            Self::Unreadable(_) => "request_parsing_error",
            Self::InvalidCreatedAt => "invalid_batch",
            Self::EmptyBatch => "empty_batch",
            Self::MissingUuid(_) => "missing_event_uuid",
            Self::InvalidUuid(_) => "invalid_event_uuid",
            Self::DuplicateUuid(_) => "duplicate_event_uuid",
        }
    }

    /// Message for the sender.
    pub fn detail(&self) -> Cow<'_, str> {
        match self {
            Self::Common(error) => error.detail(),
            Self::MissingHeaders(names) => {
                format!("The request lacks headers: {}.", names.join(", ")).into()
            }
            Self::InvalidHeader(name) => format!("The header {name} cannot be read.").into(),
            Self::UnsupportedContentType => "Send the body as `application/json`.".into(),
            Self::UnsupportedEncoding => {
                "Send the body as it is, or compressed with gzip, deflate, br or zstd.".into()
            }
            Self::EmptyBody => "The request has no body.".into(),
            Self::Undecodable => {
                "The body is not text, or is not compressed as its Content-Encoding says.".into()
            }
            Self::Unreadable(detail) => Cow::Borrowed(detail),
            Self::InvalidCreatedAt => {
                "Send `created_at`, the time of the batch, as ISO 8601 with a zone.".into()
            }
            Self::EmptyBatch => "The batch holds no event.".into(),
            Self::MissingUuid(index) => format!("Event {index} has no uuid.").into(),
            Self::InvalidUuid(index) => format!("The uuid of event {index} is none.").into(),
            Self::DuplicateUuid(uuid) => format!("Two events have the uuid {uuid}.").into(),
        }
    }
}
