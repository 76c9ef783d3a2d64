//! Faults of the caller, and failures of the service. One table in the server maps them
//! to status and body, one in the web app to texts.

use weir_model::UserId;
use weir_model::errors::{ErrorKind, FieldError};
use weir_model::scopes::Scope;

use crate::identity::PendingSignIn;

/// A service failure.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request has no credential.
    #[error("no credential")]
    NotAuthenticated,
    /// The credential is not valid. The text says where in the request it was found.
    #[error("invalid credential in the request {0}")]
    BadCredential(&'static str),
    /// The key lacks a scope.
    #[error("missing scope {0}")]
    MissingScope(Scope),
    /// Not allowed, with the sentence for the caller.
    #[error("forbidden: {0}")]
    Forbidden(String),
    /// It does not exist or the caller cannot see it; the sentence is the same for
    /// both.
    #[error("not found: {0}")]
    NotFound(&'static str),
    /// A field of the input is not valid.
    #[error("invalid input: {}", .0.detail)]
    Invalid(FieldError),
    /// The present state does not allow it: code and sentence.
    #[error("conflict: {code}")]
    Conflict {
        /// Machine code.
        code: &'static str,
        /// A sentence for people.
        detail: String,
    },
    /// Too many attempts.
    #[error("throttled for {wait_seconds} s")]
    Throttled {
        /// Seconds until the next attempt.
        wait_seconds: u64,
    },
    /// The maximum number of something is reached: code and sentence.
    #[error("too many: {code}")]
    TooMany {
        /// Machine code.
        code: &'static str,
        /// A sentence for people.
        detail: String,
    },
    /// Temporarily not possible, for example because of too much load.
    #[error("unavailable: {0}")]
    Unavailable(&'static str),
    /// The user must sign in again first.
    #[error("recent sign-in needed")]
    SignInAgain,
    /// The credentials are right, but the address must be confirmed first.
    #[error("address not confirmed")]
    NotConfirmed {
        /// The user, for the page that says so.
        user: UserId,
    },
    /// Address and password are right, and the second factor is required now.
    #[error("second factor asked for")]
    SecondFactor(PendingSignIn),
    /// The organization requires a second factor, and this member has none.
    #[error("second factor missing")]
    SecondFactorMissing,
    /// The store failed.
    #[error("store failure")]
    Store(#[source] weir_store::Error),
    /// Stored events are damaged, so that an answer would be wrong.
    #[error("stored events cannot be read")]
    Unreadable(#[source] weir_store::Error),
    /// A defect of the service, with the cause for the log.
    #[error("internal failure: {0}")]
    Internal(String),
}

/// The sentence for something that does not exist, or that the caller cannot see.
pub const NOT_FOUND: &str = "Not found.";
/// The sentence for a member whose level does not suffice.
pub const LEVEL: &str = "Your organization access level is insufficient.";
/// The sentence for an address that must be confirmed first.
pub const NOT_CONFIRMED: &str =
    "Your address is not confirmed yet. Open the link in the mail that we sent to it.";
/// The sentence for a member without the second factor that the organization requires.
pub const SECOND_FACTOR_MISSING: &str =
    "This organization asks its members for two-step sign-in. Turn it on to continue.";
/// The sentence for an action that keys cannot do.
pub const NO_KEYS: &str = "This action does not support Personal API Key access";

impl Error {
    /// The class of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotAuthenticated | Self::BadCredential(_) | Self::SecondFactor(_) => {
                ErrorKind::Unauthenticated
            }
            Self::MissingScope(_)
            | Self::Forbidden(_)
            | Self::SignInAgain
            | Self::SecondFactorMissing => ErrorKind::Forbidden,
            Self::NotFound(_) => ErrorKind::NotFound,
            Self::Invalid(_) | Self::NotConfirmed { .. } => ErrorKind::Invalid,
            Self::Conflict { .. } => ErrorKind::Conflict,
            Self::Throttled { .. } | Self::TooMany { .. } => ErrorKind::RateLimited,
            Self::Unavailable(_) => ErrorKind::Unavailable,
            Self::Store(error) if error.is_temporary() => ErrorKind::Unavailable,
            Self::Store(_) | Self::Unreadable(_) | Self::Internal(_) => ErrorKind::Internal,
        }
    }
}

/// Why the service cannot answer: the result takes long to make, and others may wait before.
pub const MAKING: &str = "the numbers of this list are being read";
/// The sentence for records that are too large to be read together.
pub const TOO_LARGE: &str =
    "The objects of this page are too large to be read together. Use a smaller limit.";

impl From<weir_store::Error> for Error {
    fn from(error: weir_store::Error) -> Self {
        match error {
            weir_store::Error::TooLarge { .. } => {
                FieldError::new("limit", "invalid_input", TOO_LARGE).into()
            }
            weir_store::Error::Making { .. } => Self::Unavailable(MAKING),
            error => Self::Store(error),
        }
    }
}

impl From<FieldError> for Error {
    fn from(error: FieldError) -> Self {
        Self::Invalid(error)
    }
}
