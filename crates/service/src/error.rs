//! What the caller did wrong, or that we failed. One table in the server turns
//! it into status and body, one in the web app into words.

use weir_model::UserId;
use weir_model::errors::{ErrorKind, FieldError};
use weir_model::scopes::Scope;

use crate::identity::PendingSignIn;

/// A service failure.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No credential.
    #[error("no credential")]
    NotAuthenticated,
    /// A credential that is not valid; says which place it was found in.
    #[error("invalid credential in the request {0}")]
    BadCredential(&'static str),
    /// The key lacks a scope.
    #[error("missing scope {0}")]
    MissingScope(Scope),
    /// Not allowed, with the sentence for the caller.
    #[error("forbidden: {0}")]
    Forbidden(String),
    /// Absent or not visible; the sentence is the same for both.
    #[error("not found: {0}")]
    NotFound(&'static str),
    /// A field of the input is at fault.
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
    /// Too many tries; seconds to wait.
    #[error("throttled for {wait_seconds} s")]
    Throttled {
        /// Seconds to wait.
        wait_seconds: u64,
    },
    /// As many of something as there may be: code and sentence.
    #[error("too many: {code}")]
    TooMany {
        /// Machine code.
        code: &'static str,
        /// A sentence for people.
        detail: String,
    },
    /// Not now: overload.
    #[error("unavailable: {0}")]
    Unavailable(&'static str),
    /// The person must sign in again before this.
    #[error("recent sign-in needed")]
    SignInAgain,
    /// Everything is right, but the address of the account must be confirmed first.
    #[error("address not confirmed")]
    NotConfirmed {
        /// The account, for the page that says so.
        user: UserId,
    },
    /// Password and address are right, and the second factor is asked for.
    #[error("second factor asked for")]
    SecondFactor(PendingSignIn),
    /// The organization asks its members for a second factor, and this one has none.
    #[error("second factor missing")]
    SecondFactorMissing,
    /// The store failed.
    #[error("store failure")]
    Store(#[source] weir_store::Error),
    /// A defect of ours, with the cause for the log.
    #[error("internal failure: {0}")]
    Internal(String),
}

/// The sentence for anything that is not there, or not for this caller.
pub const NOT_FOUND: &str = "Not found.";
/// The sentence for a member whose level does not suffice.
pub const LEVEL: &str = "Your organization access level is insufficient.";
/// The sentence for an address that must be confirmed first.
pub const NOT_CONFIRMED: &str =
    "Your address is not confirmed yet. Open the link in the mail that we sent to it.";
/// The sentence for a member without the second factor that the organization asks for.
pub const SECOND_FACTOR_MISSING: &str =
    "This organization asks its members for two-step sign-in. Turn it on to go on.";
/// The sentence for an action that keys may not do.
pub const NO_KEYS: &str = "This action does not support Personal API Key access";

impl Error {
    /// The class of the error.
    #[must_use]
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
            Self::Store(_) | Self::Internal(_) => ErrorKind::Internal,
        }
    }
}

impl From<weir_store::Error> for Error {
    fn from(error: weir_store::Error) -> Self {
        Self::Store(error)
    }
}

impl From<FieldError> for Error {
    fn from(error: FieldError) -> Self {
        Self::Invalid(error)
    }
}
