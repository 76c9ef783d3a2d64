//! One-time links in mails: confirming an address, and setting a new password (API-42,
//! API-43, SEC-9).

use serde::{Deserialize, Serialize};

use crate::ids::UserId;

/// Longest token of a link that is accepted, in bytes. Tokens of Weir have 43.
pub const TOKEN_MAX: usize = 128;

/// What a one-time link is for. A link for one purpose is not valid for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKind {
    /// Confirms an address.
    Confirm,
    /// Sets a new password.
    Reset,
    /// Signs in. The operator makes it on the host.
    SignIn,
}

impl LinkKind {
    /// The stored word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Confirm => "confirm",
            Self::Reset => "reset",
            Self::SignIn => "sign in",
        }
    }

    /// How long the link is valid after it was made, in seconds: a day, or an hour if it
    /// signs in.
    pub const fn seconds(self) -> i64 {
        match self {
            Self::Confirm | Self::Reset => 24 * 60 * 60,
            Self::SignIn => 60 * 60,
        }
    }

    /// The page of the link, without the token.
    pub fn page(self, user: UserId) -> String {
        match self {
            Self::Confirm => format!("/verify_email/{user}"),
            Self::Reset => format!("/reset/{user}"),
            Self::SignIn => format!("/login/link/{user}"),
        }
    }

    /// The page with the token. The token is in the query, which access logs omit.
    pub fn path(self, user: UserId, token: &str) -> String {
        format!("{}?token={token}", self.page(user))
    }
}

/// The answer after an address was confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Confirmed {
    /// Always true.
    pub success: bool,
    /// The token of the link. It cannot be used again.
    pub token: String,
}

/// The answer after a new password was set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PasswordReset {
    /// Always true.
    pub success: bool,
    /// Mail address of the user.
    pub email: String,
}
