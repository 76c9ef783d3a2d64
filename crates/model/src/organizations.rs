//! Organizations: the resource, its inputs and their rules (API-23).

use serde::{Deserialize, Serialize};
#[cfg(feature = "store")]
use surrealdb_types::SurrealValue;

use crate::errors::FieldError;
use crate::ids::OrganizationId;
use crate::limits::LimitChoices;
use crate::patch::Patch;
use crate::plugins::PluginsAccess;
use crate::projects::ProjectBrief;
use crate::time::Timestamp;
use crate::validate;

/// Longest organization name, in characters.
pub const NAME_MAX: usize = 64;

/// A member's level in an organization. Higher includes lower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub enum Level {
    /// Level 1.
    Member,
    /// Level 8.
    Administrator,
    /// Level 15.
    Owner,
}

impl From<Level> for i64 {
    fn from(level: Level) -> Self {
        match level {
            Level::Member => 1,
            Level::Administrator => 8,
            Level::Owner => 15,
        }
    }
}

impl TryFrom<i64> for Level {
    type Error = String;
    fn try_from(value: i64) -> Result<Self, String> {
        match value {
            1 => Ok(Self::Member),
            8 => Ok(Self::Administrator),
            15 => Ok(Self::Owner),
            other => Err(format!("\"{other}\" is not a valid choice.")),
        }
    }
}

impl Level {
    /// The word in pages.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Member => "Member",
            Self::Administrator => "Administrator",
            Self::Owner => "Owner",
        }
    }
}

/// The stored fields of an organization: the record `organization:<uuid>`, and the part
/// of [`Organization`] that does not depend on the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "store", derive(SurrealValue))]
#[cfg_attr(feature = "store", surreal(crate = "surrealdb_types"))]
pub struct OrganizationRow {
    /// Unique id of the organization.
    #[cfg_attr(feature = "store", surreal(rename = "uuid"))]
    pub id: OrganizationId,
    /// Name, 1 to 64 characters.
    pub name: String,
    /// Unique short name; it cannot be changed.
    pub slug: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// What the organization may do with plugins: 0 nothing, 3 configure them, 6 install
    /// plugins for itself, 9 offer its plugins to all organizations. 9 unless the
    /// operator sets less.
    // Missing in older records, whose organizations may do everything.
    #[cfg_attr(
        feature = "store",
        surreal(rename = "plugins_access", default = "PluginsAccess::unlimited")
    )]
    pub plugins_access_level: PluginsAccess,
    /// Whether members get a mail when a user joins.
    pub is_member_join_email_enabled: bool,
    /// Whether members must use a second factor.
    pub enforce_2fa: bool,
    /// The limits that the operator has chosen for it.
    // Missing in older records. Members see the limits that apply, not the choice.
    #[serde(skip)]
    #[cfg_attr(feature = "store", surreal(default))]
    pub limits: LimitChoices,
}

impl OrganizationRow {
    /// A new organization with the defaults. The name is set by a patch.
    #[must_use]
    pub fn new(id: OrganizationId, now: Timestamp) -> Self {
        Self {
            id,
            name: String::new(),
            slug: String::new(),
            created_at: now,
            updated_at: now,
            plugins_access_level: PluginsAccess::unlimited(),
            is_member_join_email_enabled: true,
            enforce_2fa: false,
            limits: LimitChoices::default(),
        }
    }
}

/// An organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Organization {
    /// The stored fields.
    #[serde(flatten)]
    pub row: OrganizationRow,
    /// Level of the caller: 1, 8 or 15.
    pub membership_level: Level,
    /// Projects that are visible to the caller.
    pub teams: Vec<ProjectBrief>,
    /// Feature keys, for older clients.
    pub available_features: Vec<String>,
    /// The same features with their limits.
    pub available_product_features: Vec<ProductFeature>,
    /// JSON text, `{"instance_tag":"none"}`.
    pub metadata: String,
    /// Billing id; always null.
    pub customer_id: Option<String>,
    /// Number of members, as text.
    pub member_count: String,
}

/// An item of `available_product_features`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ProductFeature {
    /// The key that clients check.
    pub key: String,
    /// Display name.
    pub name: String,
    /// Description of the feature.
    pub description: Option<String>,
    /// Unit of the limit.
    pub unit: Option<String>,
    /// Always null: nothing is limited.
    pub limit: Option<i64>,
    /// A remark.
    pub note: Option<String>,
    /// Always true.
    pub is_plan_default: bool,
}

/// Available features, the same for all organizations: key and name. Clients check the key,
/// so a feature is listed only if a test uses it (API-53).
pub const FEATURES: &[(&str, &str)] = &[
    ("organizations_projects", "Projects"),
    ("group_analytics", "Group analytics"),
    ("data_pipelines", "Data pipelines"),
    ("social_sso", "Sign-in through providers"),
    ("saml", "SAML"),
    ("sso_enforcement", "Required single sign-on"),
    ("automatic_provisioning", "Just-in-time provisioning"),
    ("2fa", "Two-step sign-in"),
    ("2fa_enforcement", "Required two-step sign-in"),
    ("audit_logs", "Activity log"),
];

/// The settings of a new organization, or changes of one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OrganizationPatch {
    /// New name.
    pub name: Patch<String>,
    /// New value of `is_member_join_email_enabled`.
    pub is_member_join_email_enabled: Patch<bool>,
    /// New value of `enforce_2fa`; null counts as false.
    pub enforce_2fa: Patch<bool>,
}

impl OrganizationPatch {
    /// An organization with a name and the defaults.
    ///
    /// # Errors
    /// The fault of the name, at `attr`.
    pub fn named(attr: &str, name: &str) -> Result<Self, FieldError> {
        let name = Patch::Set(validate::text(attr, name, NAME_MAX)?);
        Ok(Self { name, ..Self::default() })
    }

    /// Checks the values and applies them.
    ///
    /// # Errors
    /// The fault of the first field that has one.
    pub fn apply(self, row: &mut OrganizationRow) -> Result<(), FieldError> {
        if let Some(name) = self.name.required("name")? {
            row.name = validate::text("name", &name, NAME_MAX)?;
        }
        let is_mailed = self.is_member_join_email_enabled;
        if let Some(enabled) = is_mailed.required("is_member_join_email_enabled")? {
            row.is_member_join_email_enabled = enabled;
        }
        row.enforce_2fa = self.enforce_2fa.apply(row.enforce_2fa, false);
        Ok(())
    }
}

/// The slug for a name: ASCII letters, digits, `_` and single `-`, lower case, at most 48
/// characters, `org` if nothing is left.
///
/// `decomposed` is the name in Unicode form NFKD (the caller has the tables).
#[must_use]
pub fn slug(decomposed: &str) -> String {
    let mut slug = String::new();
    for c in decomposed.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => slug.push(c.to_ascii_lowercase()),
            '-' => separate(&mut slug),
            c if c.is_whitespace() => separate(&mut slug),
            _ => {}
        }
    }
    let slug: String = slug.trim_matches(['-', '_']).chars().take(48).collect();
    if slug.is_empty() { "org".to_owned() } else { slug }
}

fn separate(slug: &mut String) {
    if !slug.ends_with('-') {
        slug.push('-');
    }
}

#[cfg(test)]
mod tests {
    use super::slug;

    #[test]
    fn slugs() {
        let cases = [
            ("Acme & Sons, Inc.", "acme-sons-inc"),
            ("  --Hello__World--  ", "hello__world"),
            ("Mu\u{308}ller", "muller"),
            ("日本", "org"),
            ("a  -  b", "a-b"),
        ];
        for (name, expected) in cases {
            assert_eq!(slug(name), expected, "{name}");
        }
        assert_eq!(slug(&"x".repeat(60)).len(), 48);
    }
}
