//! Members of organizations: the resource, the filter of the list, and the input
//! (API-32).

use serde::{Deserialize, Serialize};

use crate::ids::MembershipId;
use crate::organizations::Level;
use crate::time::Timestamp;
use crate::users::User;

/// Longest search text, in characters.
pub const SEARCH_MAX: usize = 200;
/// Suffix of the addresses of users that are not persons. Lists and counts of members
/// omit them.
pub const BOT_ADDRESSES: &str = "@posthogbot.user";

/// A member of an organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Member {
    /// Id of the membership; not used in paths.
    pub id: MembershipId,
    /// The user. Paths identify a member by the `uuid` of the user.
    pub user: User,
    /// Level: 1 member, 8 administrator, 15 owner.
    pub level: Level,
    /// When the user joined.
    pub joined_at: Timestamp,
    /// When the membership was last changed.
    pub updated_at: Timestamp,
    /// Whether a second factor is set up.
    pub is_2fa_enabled: bool,
    /// Whether a provider is linked.
    pub has_social_auth: bool,
    /// Time of the last sign-in; null: none is recorded.
    pub last_login: Option<Timestamp>,
}

/// Changes of a member. `None` keeps the level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemberPatch {
    /// New level.
    pub level: Option<Level>,
}

/// The order of a list of members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemberOrder {
    /// By time of joining, latest first: `-joined_at`.
    #[default]
    NewestFirst,
    /// By time of joining, earliest first: `joined_at`.
    OldestFirst,
}

/// Filter and order of a list of members.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemberQuery {
    /// Order of the list.
    pub order: MemberOrder,
    /// Only the member with exactly this address.
    pub email: Option<String>,
    /// Only members whose first name, last name or address contains this text.
    pub search: Option<String>,
    /// Only members that were changed after this time.
    pub updated_after: Option<Timestamp>,
}

impl MemberQuery {
    /// Whether the filter accepts every member.
    pub fn is_all(&self) -> bool {
        self.email.is_none() && self.search.is_none() && self.updated_after.is_none()
    }
}

/// The personal API keys of a member that have access to the organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MemberKeys {
    /// Whether there is at least one.
    pub has_keys: bool,
    /// Whether one was used within the last seven days.
    pub has_keys_active_last_week: bool,
    /// The keys, newest first.
    pub keys: Vec<MemberKey>,
}

/// A key of a member, as other members see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MemberKey {
    /// Name of the key.
    pub name: String,
    /// Time of the last use, to the hour.
    pub last_used_at: Option<Timestamp>,
}
