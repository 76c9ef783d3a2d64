//! Why a whole request is refused, with the texts of the answer (ING-25).
//!
//! What belongs here: code, type and message of each refusal. What does not: HTTP status
//! codes (the server).

use std::borrow::Cow;

/// Refuses the whole request. Faults of single events are not errors: they become a
/// [`Decision::Drop`](super::Decision::Drop).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// The body is missing, cannot be decoded, is not JSON, or has an unknown shape.
    #[error("invalid payload: {detail}")]
    InvalidPayload {
        /// Message for the sender.
        detail: String,
    },
    /// The body is too large, as sent or decompressed.
    #[error("payload of more than {limit} bytes")]
    PayloadTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The request contains no project key.
    #[error("no project API key")]
    MissingApiKey,
    /// An invalid key: empty, too long, not ASCII, with a NUL, or a personal API key.
    #[error("malformed project API key")]
    InvalidApiKey,
    /// Events of two projects in one request.
    #[error("two different project API keys")]
    ConflictingApiKeys,
}

impl CaptureError {
    /// A [`CaptureError::InvalidPayload`] with this sentence.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::InvalidPayload { detail: detail.into() }
    }

    /// The code of the answer.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InvalidPayload { .. } => "invalid_payload",
            Self::PayloadTooLarge { .. } => "payload_too_large",
            Self::MissingApiKey => "missing_api_key",
            Self::InvalidApiKey | Self::ConflictingApiKeys => "invalid_api_key",
        }
    }

    /// The `type` of the answer.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::InvalidPayload { .. } | Self::PayloadTooLarge { .. } => "validation_error",
            Self::MissingApiKey | Self::InvalidApiKey | Self::ConflictingApiKeys => {
                "authentication_error"
            }
        }
    }

    /// Message for the sender. It is the same for a malformed and an unknown key, so that
    /// it does not reveal the form of keys.
    pub fn detail(&self) -> Cow<'_, str> {
        match self {
            Self::InvalidPayload { detail } => Cow::Borrowed(detail),
            Self::PayloadTooLarge { limit } => {
                format!("The body is larger than {limit} bytes, as sent or decompressed.").into()
            }
            Self::MissingApiKey => "The request carries no project API key.".into(),
            Self::InvalidApiKey => "No project has this API key.".into(),
            Self::ConflictingApiKeys => {
                "The events carry different project API keys; send one request per project.".into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CaptureError;

    #[test]
    fn every_refusal_has_code_type_and_sentence() {
        let table = [
            (CaptureError::invalid("So."), "invalid_payload", "validation_error", "So."),
            (
                CaptureError::PayloadTooLarge { limit: 7 },
                "payload_too_large",
                "validation_error",
                "The body is larger than 7 bytes, as sent or decompressed.",
            ),
            (
                CaptureError::MissingApiKey,
                "missing_api_key",
                "authentication_error",
                "The request carries no project API key.",
            ),
            (
                CaptureError::InvalidApiKey,
                "invalid_api_key",
                "authentication_error",
                "No project has this API key.",
            ),
            (
                CaptureError::ConflictingApiKeys,
                "invalid_api_key",
                "authentication_error",
                "The events carry different project API keys; send one request per project.",
            ),
        ];
        for (error, code, kind, detail) in table {
            assert_eq!((error.code(), error.kind()), (code, kind));
            assert_eq!(error.detail(), detail);
        }
    }
}
