//! Personal API keys: the record and the input (API-18).

mod overlap;
mod usage;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{KeyId, OrganizationId, ProjectId};
use crate::scopes::Scope;
use crate::time::Timestamp;

pub use overlap::Overlap;
pub use usage::{KeyCall, KeyUse, RefusedCall};

/// Longest label, in characters.
pub const LABEL_MAX: usize = 40;
/// How many keys one user may have.
pub const PER_USER: usize = 10;
/// What every personal key starts with.
pub const PREFIX: &str = "phx_";
/// What every project key starts with.
pub const PROJECT_PREFIX: &str = "phc_";
/// What every secret project key starts with.
pub const PROJECT_SECRET_PREFIX: &str = "phs_";

/// A personal API key as the API and the pages show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PersonalKey {
    /// Id of the record.
    pub id: KeyId,
    /// What the key is for.
    pub label: String,
    /// The key itself: only in the answers of create and roll.
    pub value: Option<String>,
    /// First four and last four characters.
    pub mask_value: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last used, to the hour.
    pub last_used_at: Option<Timestamp>,
    /// When its value was last replaced.
    pub last_rolled_at: Option<Timestamp>,
    /// Running number of the owner.
    pub user_id: i64,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// Projects it is limited to; empty: no limit.
    pub scoped_teams: Vec<ProjectId>,
    /// Organizations it is limited to; empty: no limit.
    pub scoped_organizations: Vec<OrganizationId>,
    /// When it stops working; null: never.
    pub expires_at: Option<Timestamp>,
}

/// Without the key itself, so that it cannot reach a log.
impl fmt::Debug for PersonalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PersonalKey")
            .field("id", &self.id)
            .field("label", &self.label)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// A new key, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonalKeyInput {
    /// What the key is for, 1 to 40 characters.
    pub label: String,
    /// What it may do; at least one.
    pub scopes: Vec<Scope>,
    /// Projects it is limited to.
    pub scoped_teams: Vec<ProjectId>,
    /// Organizations it is limited to.
    pub scoped_organizations: Vec<OrganizationId>,
    /// When it stops working.
    pub expires_at: Option<Timestamp>,
}

/// What is to change of a key; `None` keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PersonalKeyPatch {
    /// New label.
    pub label: Option<String>,
    /// What it may do from now on; at least one.
    pub scopes: Option<Vec<Scope>>,
    /// Projects it is limited to from now on.
    pub scoped_teams: Option<Vec<ProjectId>>,
    /// Organizations it is limited to from now on.
    pub scoped_organizations: Option<Vec<OrganizationId>>,
}

/// `phx_...ghij`, or stars when the key is too short to show any of it.
#[must_use]
pub fn mask(value: &str) -> String {
    if value.len() < 16 || !value.is_ascii() {
        return "********".to_owned();
    }
    let (head, tail) = (&value[..4], &value[value.len() - 4..]);
    format!("{head}...{tail}")
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[test]
    fn masks() {
        assert_eq!(mask("phx_0123456789abcdefghij"), "phx_...ghij");
        assert_eq!(mask("short"), "********");
    }
}
