//! Roles of an organization: names for groups of its members. They say who belongs
//! together and grant nothing: what a member may do follows from the level.

use serde::{Deserialize, Serialize};

use crate::ids::{RoleId, RoleMembershipId, UserId};
use crate::members::Member;
use crate::time::Timestamp;
use crate::users::User;

/// Longest name, in characters.
pub const NAME_MAX: usize = 200;
/// Roles of an organization.
pub const ROLES_MAX: usize = 100;
/// Members of a role.
pub const MEMBERS_MAX: usize = 1000;

/// A role as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Role {
    /// Id.
    pub id: RoleId,
    /// Name, unique in the organization without regard to case.
    pub name: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// Who created it; null when that account is gone.
    pub created_by: Option<User>,
    /// Who has it, in the order in which they got it.
    pub members: Vec<RoleMembership>,
    /// Always false: nobody gets a role by joining.
    pub is_default: bool,
}

/// A member of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RoleMembership {
    /// Id.
    pub id: RoleMembershipId,
    /// The role.
    pub role_id: RoleId,
    /// The member of the organization.
    pub organization_member: Member,
    /// The user.
    pub user: User,
    /// When the member got the role.
    pub joined_at: Timestamp,
    /// The same: nothing about it changes.
    pub updated_at: Timestamp,
}

/// The name of a role, checked. `None` keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RolePatch {
    /// Name, trimmed.
    pub name: Option<String>,
}

/// A new role, checked.
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
