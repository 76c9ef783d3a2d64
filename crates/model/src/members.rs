//! Members of organizations: the resource, what is asked of the list, and what
//! may be changed (API-32).

use serde::{Deserialize, Serialize};

use crate::ids::MembershipId;
use crate::organizations::Level;
use crate::time::Timestamp;
use crate::users::User;

/// Longest text that members are searched for, in characters.
pub const SEARCH_MAX: usize = 200;
/// End of the addresses of accounts that are no persons: they are members of no
/// list and no count.
pub const BOT_ADDRESSES: &str = "@posthogbot.user";

/// A member as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Member {
    /// Id of the membership; not used in paths.
    pub id: MembershipId,
    /// The user. Paths name a member by its `uuid`.
    pub user: User,
    /// 1 member, 8 administrator, 15 owner.
    pub level: Level,
    /// When the user joined.
    pub joined_at: Timestamp,
    /// When the membership was last changed.
    pub updated_at: Timestamp,
    /// Whether a second factor is set up.
    pub is_2fa_enabled: bool,
    /// Whether a provider is linked.
    pub has_social_auth: bool,
    /// When the user last signed in; null: not since that is noted.
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
    /// Who joined last comes first: `-joined_at`.
    #[default]
    NewestFirst,
    /// Who joined first comes first: `joined_at`.
    OldestFirst,
}

/// Which members are wanted, and in which order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemberQuery {
    /// Order of the list.
    pub order: MemberOrder,
    /// Only the one with exactly this address.
    pub email: Option<String>,
    /// Only those whose first name, last name or address contains this text.
    pub search: Option<String>,
    /// Only those that changed after this time.
    pub updated_after: Option<Timestamp>,
}

impl MemberQuery {
    /// Whether every member is wanted.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.email.is_none() && self.search.is_none() && self.updated_after.is_none()
    }
}

/// The personal API keys of a member that reach the organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MemberKeys {
    /// Whether there is any.
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
    /// Its label.
    pub name: String,
    /// When it was last used, to the hour.
    pub last_used_at: Option<Timestamp>,
}
