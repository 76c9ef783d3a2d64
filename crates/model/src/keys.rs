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
/// Maximum keys of a user.
pub const PER_USER: usize = 10;
/// Prefix of personal API keys.
pub const PREFIX: &str = "phx_";
/// Prefix of project keys.
pub const PROJECT_PREFIX: &str = "phc_";
/// Prefix of secret project keys.
pub const PROJECT_SECRET_PREFIX: &str = "phs_";

/// A personal API key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PersonalKey {
    /// Id of the record.
    pub id: KeyId,
    /// Name of the key, chosen by the user.
    pub label: String,
    /// The key: only in the answers of create and roll.
    pub value: Option<String>,
    /// First four and last four characters of the key.
    pub mask_value: Option<String>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last use, to the hour.
    pub last_used_at: Option<Timestamp>,
    /// When the value was last replaced.
    pub last_rolled_at: Option<Timestamp>,
    /// Serial number of the owner.
    pub user_id: i64,
    /// The scopes of the key.
    pub scopes: Vec<Scope>,
    /// The projects that the key is limited to. Empty: no limit.
    pub scoped_teams: Vec<ProjectId>,
    /// The organizations that the key is limited to. Empty: no limit.
    pub scoped_organizations: Vec<OrganizationId>,
    /// Time of expiry; null: never.
    pub expires_at: Option<Timestamp>,
}

/// Prints no value, so that the key cannot reach a log.
impl fmt::Debug for PersonalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PersonalKey")
            .field("id", &self.id)
            .field("label", &self.label)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// A validated new key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonalKeyInput {
    /// Name of the key, 1 to 40 characters.
    pub label: String,
    /// The scopes of the key; at least one.
    pub scopes: Vec<Scope>,
    /// The projects that the key is limited to. Empty: no limit.
    pub scoped_teams: Vec<ProjectId>,
    /// The organizations that the key is limited to. Empty: no limit.
    pub scoped_organizations: Vec<OrganizationId>,
    /// Time of expiry; `None`: never.
    pub expires_at: Option<Timestamp>,
}

/// A change of a key. `None` keeps a field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PersonalKeyPatch {
    /// New label.
    pub label: Option<String>,
    /// New scopes; at least one.
    pub scopes: Option<Vec<Scope>>,
    /// New list of projects that the key is limited to.
    pub scoped_teams: Option<Vec<ProjectId>>,
    /// New list of organizations that the key is limited to.
    pub scoped_organizations: Option<Vec<OrganizationId>>,
}

/// `phx_...ghij`, or only stars if the key is too short to show a part of it.
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
