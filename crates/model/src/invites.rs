//! Invites to an organization: the resource, its input, and the invite as the page of its
//! link shows it (API-33).

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
/// Longest first name of a user, in characters.
pub const USER_FIRST_NAME_MAX: usize = 128;
/// Maximum invites in one request.
pub const BULK_MAX: usize = 20;
/// Maximum invites of an organization that are not accepted, expired ones too.
pub const INVITES_MAX: usize = 500;
/// How long an invite can be accepted, in seconds: three days.
pub const VALID_SECONDS: i64 = 3 * 24 * 60 * 60;
/// How long an expired invite stays in the list, in seconds: thirty days. Until then it
/// can be renewed.
pub const KEPT_SECONDS: i64 = 30 * 24 * 60 * 60;

/// An invite, as members of the organization see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Invite {
    /// Unique id of the invite. A key without `organization_member:write`, and a member
    /// below the level of the invite, get another id that no operation accepts.
    pub id: InviteId,
    /// Address of the invited person. Only this person can accept the invite.
    pub target_email: String,
    /// First name of the invited person; may be empty.
    pub first_name: String,
    /// Whether sending a mail with the link was attempted. If not, you must pass on the
    /// link yourself.
    pub emailing_attempt_made: bool,
    /// Whether the invite can no longer be accepted: it is more than three days old, or
    /// the user who created it has left or no longer has that level.
    pub is_expired: bool,
    /// Level of the new member: 1, 8 or 15.
    pub level: Level,
    /// The user who created the invite; null if that user was deleted.
    pub created_by: Option<User>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Message to the invited person, included in the mail.
    pub message: Option<String>,
    /// Always empty.
    pub private_project_access: Vec<Uuid>,
    /// The token of the link `/signup/<token>`: only in answers that create the invite,
    /// otherwise null.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub token: Option<LinkToken>,
}

/// The secret token in the link of an invite. Its `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LinkToken(pub String);

impl LinkToken {
    /// The path of the page of the link.
    pub fn path(&self) -> String {
        format!("/signup/{}", self.0)
    }
}

impl fmt::Debug for LinkToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkToken(..)")
    }
}

/// A validated new invite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InviteInput {
    /// Mail address, with its domain in lower case.
    pub target_email: String,
    /// First name; may be empty.
    pub first_name: String,
    /// Level of the new member.
    pub level: Level,
    /// Message to the invited person.
    pub message: Option<String>,
    /// Whether to send a mail, if mail is configured.
    pub send_email: bool,
}

/// An invite, as the owner of its link sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Invitation {
    /// The token of the link, needed to accept the invite.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub id: LinkToken,
    /// Address of the invited person.
    pub target_email: String,
    /// First name of the invited person; may be empty.
    pub first_name: String,
    /// Name of the organization.
    pub organization_name: String,
}

/// Input of a new user who accepts an invite.
#[derive(Clone, PartialEq, Eq)]
pub struct SignUpInput {
    /// First name.
    pub first_name: String,
    /// Password, not yet validated.
    pub password: String,
}

/// Prints no password.
impl fmt::Debug for SignUpInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignUpInput").field("first_name", &self.first_name).finish_non_exhaustive()
    }
}

/// The answer after an invite was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SignedUp {
    /// The new user.
    #[serde(flatten)]
    pub user: User,
    /// Path of the next page.
    pub redirect_url: String,
}

/// When an invite with this creation time expires.
pub fn expires_at(created_at: Timestamp) -> Timestamp {
    created_at.plus_seconds(VALID_SECONDS)
}
