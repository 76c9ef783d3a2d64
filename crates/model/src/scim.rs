//! Provisioning by SCIM, as an administrator sees it (SSO-50 and later).

use serde::{Deserialize, Serialize};

use crate::ids::{DomainId, ScimGroupId};
use crate::organizations::Level;
use crate::patch::Patch;
use crate::time::Timestamp;

/// Prefix of the value of a token.
pub const PREFIX: &str = "scim_";
/// Most groups of a domain.
pub const GROUPS_MAX: usize = 1000;
/// The levels that a group can give. Only an owner makes owners.
pub const LEVELS: [i64; 2] = [1, 8];

/// The path of the SCIM endpoints of a domain, without a slash at the end.
#[must_use]
pub fn path(domain: DomainId) -> String {
    format!("/scim/v2/{domain}")
}

/// Provisioning of a domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Scim {
    /// The path of the SCIM endpoints on this instance, for the identity provider.
    pub path: String,
    /// The token of the identity provider; null: there is none, so it is refused.
    pub token: Option<ScimToken>,
}

/// The token of an identity provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ScimToken {
    /// The value, only in the answer to the request that made it.
    pub value: Option<String>,
    /// First four and last four characters of the value.
    pub mask_value: String,
    /// Address of the user who made it; null: there is no such user any more.
    pub created_by: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
}

/// A group of the identity provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ScimGroup {
    /// Unique id of the group.
    pub id: ScimGroupId,
    /// Its name at the identity provider.
    pub display_name: String,
    /// What the identity provider calls the group.
    pub external_id: Option<String>,
    /// Number of its members.
    pub member_count: u64,
    /// The level that its members get: 1 or 8; null: it changes no level.
    pub level: Option<Level>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A change of a group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScimGroupPatch {
    /// `level`, one of [`LEVELS`].
    pub level: Patch<Level>,
}
