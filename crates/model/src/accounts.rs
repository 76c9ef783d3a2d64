//! What a person proves with a link from a mail: that an address is theirs, and
//! that they may set a new password (API-42, API-43, SEC-9).

use serde::{Deserialize, Serialize};

use crate::ids::UserId;

/// Longest token of a link that is looked at, in bytes: ours have 43.
pub const TOKEN_MAX: usize = 128;

/// What a one-time link is for. One made for the one does nothing for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKind {
    /// Confirming an address.
    Confirm,
    /// Setting a new password.
    Reset,
}

impl LinkKind {
    /// The word for it that is stored.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Confirm => "confirm",
            Self::Reset => "reset",
        }
    }

    /// The link works for so many seconds after it was sent: a day.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        match self {
            Self::Confirm | Self::Reset => 24 * 60 * 60,
        }
    }

    /// The page of the link, without what makes it work.
    #[must_use]
    pub fn page(self, user: UserId) -> String {
        match self {
            Self::Confirm => format!("/verify_email/{user}"),
            Self::Reset => format!("/reset/{user}"),
        }
    }

    /// The page with the token. The token is in the query, which access logs
    /// leave out.
    #[must_use]
    pub fn path(self, user: UserId, token: &str) -> String {
        format!("{}?token={token}", self.page(user))
    }
}

/// The answer to an address that was confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Confirmed {
    /// Always true.
    pub success: bool,
    /// The token of the link, which is used up.
    pub token: String,
}

/// The answer to a password that was set anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PasswordReset {
    /// Always true.
    pub success: bool,
    /// Address of the account.
    pub email: String,
}
