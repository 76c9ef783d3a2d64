//! Roles of an organization: names for groups of its members. Roles grant no permissions;
//! these follow from the level.

use serde::{Deserialize, Serialize};

use crate::ids::{RoleId, RoleMembershipId, UserId};
use crate::members::Member;
use crate::time::Timestamp;
use crate::users::User;

/// Longest name, in characters.
pub const NAME_MAX: usize = 200;
/// Maximum roles of an organization.
pub const ROLES_MAX: usize = 100;
/// Maximum members of a role.
pub const MEMBERS_MAX: usize = 1000;

/// A role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Role {
    /// Unique id of the role.
    pub id: RoleId,
    /// Name, unique in the organization, ignoring case.
    pub name: String,
    /// Time of creation.
    pub created_at: Timestamp,
    /// The user who created it; null if that user was deleted.
    pub created_by: Option<User>,
    /// Members with the role, in the order in which they got it.
    pub members: Vec<RoleMembership>,
    /// Always false: joining the organization assigns no role.
    pub is_default: bool,
}

/// A member of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RoleMembership {
    /// Unique id of the assignment.
    pub id: RoleMembershipId,
    /// The role.
    pub role_id: RoleId,
    /// The member of the organization.
    pub organization_member: Member,
    /// The user.
    pub user: User,
    /// When the member got the role.
    pub joined_at: Timestamp,
    /// The same time: an assignment cannot be changed.
    pub updated_at: Timestamp,
}

/// The validated name of a role. `None` keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RolePatch {
    /// Name, trimmed.
    pub name: Option<String>,
}

/// A validated new role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleInput {
    /// Name, trimmed.
    pub name: String,
}

/// A new member of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoleMembershipInput {
    /// The user, who must be a member of the organization.
    pub user: UserId,
}
