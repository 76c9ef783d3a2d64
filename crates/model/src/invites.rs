//! Invites to an organization: the resource, its input, and what whoever opens
//! the link sees (API-33).

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::InviteId;
use crate::organizations::Level;
use crate::time::Timestamp;
use crate::users::User;

/// Longest first name on an invite, in characters.
pub const FIRST_NAME_MAX: usize = 30;
/// Longest message, in characters.
pub const MESSAGE_MAX: usize = 5000;
/// Longest first name that a new account is given by its owner, in characters.
pub const ACCOUNT_FIRST_NAME_MAX: usize = 128;
/// Invites of one request.
pub const BULK_MAX: usize = 20;
/// An invite can be taken up for so many seconds: three days.
pub const VALID_SECONDS: i64 = 3 * 24 * 60 * 60;

/// An invite as the API shows it to members of the organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Invite {
    /// Id. A key without `organization_member:write`, and a member below the
    /// level of the invite, is given another one that no operation knows.
    pub id: InviteId,
    /// Address of the invited person, who alone can take the invite up.
    pub target_email: String,
    /// First name of the invited person; may be empty.
    pub first_name: String,
    /// Whether a mail with the link was tried to be sent. Until it is, or when
    /// it never is, the link is to be passed on by hand.
    pub emailing_attempt_made: bool,
    /// Whether the invite cannot be taken up any more: it is more than three days
    /// old, or the person who made it has left or no longer has that level.
    pub is_expired: bool,
    /// Level that the person gets: 1, 8 or 15.
    pub level: Level,
    /// Who invited; null when that account is gone.
    pub created_by: Option<User>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Words for the invited person, put into the mail.
    pub message: Option<String>,
    /// Always empty.
    pub private_project_access: Vec<Uuid>,
    /// What opens the link `/signup/<token>`: only in the answers that make the
    /// invite, else null.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub token: Option<LinkToken>,
}

/// The secret of an invite's link. Its `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LinkToken(pub String);

impl LinkToken {
    /// The path of the page that the link opens.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/signup/{}", self.0)
    }
}

impl fmt::Debug for LinkToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkToken(..)")
    }
}

/// A new invite, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InviteInput {
    /// Address, with its domain in lower case.
    pub target_email: String,
    /// First name; may be empty.
    pub first_name: String,
    /// Level that the person gets.
    pub level: Level,
    /// Words for the invited person.
    pub message: Option<String>,
    /// Whether a mail is sent, where mail is set up.
    pub send_email: bool,
}

/// What whoever has the link sees of an invite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Invitation {
    /// The token of the link, by which the invite is taken up.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub id: LinkToken,
    /// Address of the invited person.
    pub target_email: String,
    /// First name of the invited person; may be empty.
    pub first_name: String,
    /// Name of the organization.
    pub organization_name: String,
}

/// What somebody without an account enters to take up an invite.
#[derive(Clone, PartialEq, Eq)]
pub struct SignUpInput {
    /// First name.
    pub first_name: String,
    /// Password, not yet judged.
    pub password: String,
}

/// Without the password.
impl fmt::Debug for SignUpInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignUpInput").field("first_name", &self.first_name).finish_non_exhaustive()
    }
}

/// The answer to an invite that was taken up: the user, and where to go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SignedUp {
    /// The user.
    #[serde(flatten)]
    pub user: User,
    /// Path of the page to go on to.
    pub redirect_url: String,
}

/// When an invite of this age is of no more use.
#[must_use]
pub fn expires_at(created_at: Timestamp) -> Timestamp {
    created_at.plus_seconds(VALID_SECONDS)
}
