//! What a server function answers when it does not do what was asked: small,
//! closed, and without internals, because it may travel in an address.

use serde::{Deserialize, Serialize};
use server_fn::codec::JsonEncoding;
use server_fn::error::{FromServerFnError, ServerFnErrorErr};
use weir_model::errors::FieldError;

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum UiError {
    /// A field, or the form as a whole, is at fault.
    Field(FieldError),
    /// Absent, or not for this person.
    NotFound,
    /// Not allowed; says why.
    Forbidden(String),
    /// Nobody is signed in.
    SignIn,
    /// The person must prove once more who they are.
    SignInAgain,
    /// Too many tries.
    Throttled {
        /// How long to wait.
        seconds: u64,
    },
    /// Not now.
    Unavailable {
        /// What the log line carries too.
        request_id: String,
    },
    /// Our fault.
    Internal {
        /// What the log line of the failure carries too.
        request_id: String,
    },
    /// The server gave no answer that can be read.
    NoAnswer,
}

impl UiError {
    /// A fault of the form as a whole.
    #[must_use]
    pub fn form(code: &str, detail: &str) -> Self {
        Self::Field(FieldError::body(code, detail))
    }

    /// A fault of one field.
    #[must_use]
    pub fn field(attr: &str, code: &str, detail: &str) -> Self {
        Self::Field(FieldError::new(attr, code, detail))
    }

    /// What is wrong, for people.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Field(fault) => fault.detail.clone(),
            Self::NotFound => "This is not here, or not for you.".to_owned(),
            Self::Forbidden(why) => why.clone(),
            Self::SignIn => "Your session has ended. Sign in to go on.".to_owned(),
            Self::SignInAgain => "Confirm your password to go on.".to_owned(),
            Self::Throttled { seconds } => {
                let unit = if *seconds == 1 { "second" } else { "seconds" };
                format!("Too many tries. Wait {seconds} {unit}, then try again.")
            }
            Self::Unavailable { .. } => {
                "Weir cannot take this on right now. Try again in a moment.".to_owned()
            }
            Self::Internal { .. } => {
                "Something failed inside Weir. Nothing was changed.".to_owned()
            }
            Self::NoAnswer => {
                "The server does not answer. Check that it runs, then try again.".to_owned()
            }
        }
    }

    /// The word by which the API tells a fault that is not the person's own (API-2).
    #[must_use]
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

    /// What to look for in the log.
    #[must_use]
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

    /// What is wrong with the field of this name.
    #[must_use]
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

    /// The field at fault.
    #[must_use]
    pub fn attr(&self) -> Option<&str> {
        if let Self::Field(fault) = self { fault.attr.as_deref() } else { None }
    }
}

impl FromServerFnError for UiError {
    type Encoder = JsonEncoding;

    fn from_server_fn_error(error: ServerFnErrorErr) -> Self {
        match error {
            ServerFnErrorErr::Args(_) | ServerFnErrorErr::MissingArg(_) => {
                Self::form("invalid_input", "Some of what was entered could not be read.")
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
