//! Errors of server functions. They are small, a closed set, and without internals,
//! because they can travel in an address.
//!
//! What does not belong here: the conversion from errors of services (`context`).

use serde::{Deserialize, Serialize};
use server_fn::codec::JsonEncoding;
use server_fn::error::{FromServerFnError, ServerFnErrorErr};
use weir_model::errors::FieldError;

use crate::edits::CHANGED_ELSEWHERE;

/// Why a server function did not do its work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum UiError {
    /// A field, or the form as a whole, is invalid.
    Field(FieldError),
    /// The object does not exist, or the user has no access to it.
    NotFound,
    /// The user has no permission. The text says why.
    Forbidden(String),
    /// No user is signed in.
    SignIn,
    /// The user must confirm their identity again.
    SignInAgain,
    /// Too many attempts.
    Throttled {
        /// Seconds until the next attempt is allowed.
        seconds: u64,
    },
    /// Temporarily not possible.
    Unavailable {
        /// The id of the request, which the log line has too.
        request_id: String,
    },
    /// An internal error.
    Internal {
        /// The id of the request, which the log line of the failure has too.
        request_id: String,
    },
    /// The answer of the server could not be read.
    NoAnswer,
}

impl UiError {
    /// An error of the form as a whole.
    pub fn form(code: &str, detail: &str) -> Self {
        Self::Field(FieldError::body(code, detail))
    }

    /// An error of one field.
    pub fn field(attr: &str, code: &str, detail: &str) -> Self {
        Self::Field(FieldError::new(attr, code, detail))
    }

    /// Reads the error from JSON, as answers and addresses have it.
    pub fn from_query(text: &str) -> Self {
        crate::json::read(text).unwrap_or(Self::NoAnswer)
    }

    /// The error as JSON, for an address.
    pub fn for_query(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether the same call can succeed later without a change.
    #[cfg(not(feature = "ssr"))]
    pub(crate) fn is_temporary(&self) -> bool {
        matches!(self, Self::NoAnswer | Self::Unavailable { .. } | Self::Throttled { .. })
    }

    /// Whether another user or tab saved the same form in the meantime.
    pub(crate) fn is_changed_elsewhere(&self) -> bool {
        matches!(self, Self::Field(fault) if fault.code == CHANGED_ELSEWHERE)
    }

    /// The message for users.
    pub fn sentence(&self) -> String {
        match self {
            Self::Field(fault) => fault.detail.clone(),
            Self::NotFound => "This does not exist, or you have no access to it.".to_owned(),
            Self::Forbidden(why) => why.clone(),
            Self::SignIn => "Your session has ended. Sign in to continue.".to_owned(),
            Self::SignInAgain => "Confirm your password to continue.".to_owned(),
            Self::Throttled { seconds } => {
                let unit = if *seconds == 1 { "second" } else { "seconds" };
                format!("Too many attempts. Wait {seconds} {unit}, then try again.")
            }
            Self::Unavailable { .. } => "Weir is overloaded. Try again in a moment.".to_owned(),
            Self::Internal { .. } => {
                "Something failed inside Weir. Nothing was changed.".to_owned()
            }
            Self::NoAnswer => {
                "The server does not answer. Check that it runs, then try again.".to_owned()
            }
        }
    }

    /// The error code that the API uses for the same fault, for faults that the user
    /// cannot correct (API-2).
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::Unavailable { .. } => Some("unavailable"),
            Self::Internal { .. } => Some("error"),
            Self::Field(_)
            | Self::NotFound
            | Self::Forbidden(_)
            | Self::SignIn
            | Self::SignInAgain
            | Self::Throttled { .. }
            | Self::NoAnswer => None,
        }
    }

    /// The request id, for a search in the log.
    pub fn request_id(&self) -> Option<&str> {
        match self {
            Self::Internal { request_id } | Self::Unavailable { request_id } => Some(request_id),
            Self::Field(_)
            | Self::NotFound
            | Self::Forbidden(_)
            | Self::SignIn
            | Self::SignInAgain
            | Self::Throttled { .. }
            | Self::NoAnswer => None,
        }
    }

    /// The message for the field of this name.
    pub fn at(&self, attr: &str) -> Option<&str> {
        match self {
            Self::Field(fault) if fault.attr.as_deref() == Some(attr) => Some(&fault.detail),
            Self::Field(_)
            | Self::NotFound
            | Self::Forbidden(_)
            | Self::SignIn
            | Self::SignInAgain
            | Self::Throttled { .. }
            | Self::Unavailable { .. }
            | Self::Internal { .. }
            | Self::NoAnswer => None,
        }
    }

    /// The name of the invalid field.
    pub fn attr(&self) -> Option<&str> {
        if let Self::Field(fault) = self { fault.attr.as_deref() } else { None }
    }
}

impl FromServerFnError for UiError {
    type Encoder = JsonEncoding;

    fn from_server_fn_error(error: ServerFnErrorErr) -> Self {
        match error {
            ServerFnErrorErr::Args(_) | ServerFnErrorErr::MissingArg(_) => {
                Self::form("invalid_input", "Some of the fields could not be read.")
            }
            ServerFnErrorErr::Request(_)
            | ServerFnErrorErr::Deserialization(_)
            | ServerFnErrorErr::Registration(_)
            | ServerFnErrorErr::UnsupportedRequestMethod(_)
            | ServerFnErrorErr::ServerError(_)
            | ServerFnErrorErr::MiddlewareError(_)
            | ServerFnErrorErr::Serialization(_)
            | ServerFnErrorErr::Response(_) => Self::NoAnswer,
        }
    }
}
