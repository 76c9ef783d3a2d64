//! Users: the object embedded in other resources and `users/@me` (API-29).

use serde::{Deserialize, Serialize};

use crate::ids::{OrganizationId, UserId};
use crate::organizations::{Level, Organization};
use crate::projects::ProjectBrief;
use crate::projects::serde_object::Empty;
use crate::time::Timestamp;

/// A user, as shown with members and invites.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct User {
    /// Serial number.
    pub id: i64,
    /// Id used in paths.
    pub uuid: UserId,
    /// Random text that identifies the user in events.
    pub distinct_id: String,
    /// First name.
    pub first_name: String,
    /// Last name; may be empty.
    pub last_name: String,
    /// E-mail address; unique, compared without case.
    pub email: String,
    /// Whether the address was confirmed.
    pub is_email_verified: bool,
    /// Free-form; `{}` when unset.
    pub hedgehog_config: Empty,
}

/// `GET /api/users/@me/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Me {
    /// Time of creation.
    pub date_joined: Timestamp,
    /// Id used in paths.
    pub uuid: UserId,
    /// Random text that identifies the user in events.
    pub distinct_id: String,
    /// First name.
    pub first_name: String,
    /// Last name.
    pub last_name: String,
    /// E-mail address.
    pub email: String,
    /// New address that is not confirmed yet.
    pub pending_email: Option<String>,
    /// Whether the address was confirmed.
    pub is_email_verified: bool,
    /// Always empty.
    pub notification_settings: Empty,
    /// Always false.
    pub anonymize_data: bool,
    /// Always `disabled`.
    pub toolbar_mode: String,
    /// Whether a password is set.
    pub has_password: bool,
    /// Serial number.
    pub id: i64,
    /// Whether the user may see instance settings: the first user.
    pub is_staff: bool,
    /// Always false.
    pub is_impersonated: bool,
    /// Current project.
    pub team: Option<ProjectBrief>,
    /// Current organization.
    pub organization: Option<Organization>,
    /// All organizations of the user.
    pub organizations: Vec<OrganizationRef>,
    /// Whether a second factor is set up.
    pub is_2fa_enabled: bool,
    /// Whether a provider is linked.
    pub has_social_auth: bool,
    /// Whether the user's domain enforces single sign-on.
    pub has_sso_enforcement: bool,
    /// Always null.
    pub has_seen_product_intro_for: Option<Empty>,
    /// Always null.
    pub scene_personalisation: Option<Empty>,
    /// `light`, `dark` or `system`.
    pub theme_mode: Option<String>,
    /// `{}` when unset.
    pub hedgehog_config: Empty,
    /// Always null.
    pub role_at_organization: Option<String>,
    /// `{"active":"DEFAULT"}`.
    pub events_column_config: EventsColumns,
}

/// The columns of a list of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EventsColumns {
    /// Always `DEFAULT`.
    pub active: String,
}

/// An organization in the user's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OrganizationRef {
    /// Id.
    pub id: OrganizationId,
    /// Name.
    pub name: String,
    /// Short name.
    pub slug: String,
    /// Always null.
    pub logo_media_id: Option<String>,
    /// Level of the user.
    pub membership_level: Level,
    /// Always true.
    pub members_can_use_personal_api_keys: bool,
}
