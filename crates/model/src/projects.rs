//! Projects (`team` on the wire): the resource and its inputs (API-26).

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::{OrganizationId, ProjectId};
use crate::organizations::Level;
use crate::patch::Patch;
use crate::time::Timestamp;

/// Longest project name, in characters.
pub const NAME_MAX: usize = 200;
/// Longest description, in characters.
pub const DESCRIPTION_MAX: usize = 1000;
/// Maximum URLs of sites, and maximum properties that are shown as a name.
pub const LIST_MAX: usize = 100;
/// Longest item of a list, in characters.
pub const ITEM_MAX: usize = 2000;
/// The longest time that a project can keep its events for, in days.
pub const RETENTION_DAYS_MAX: i64 = 3650;
/// First days of a week: Sunday or Monday.
pub const WEEK_STARTS: [i64; 2] = [0, 1];
/// Name of the project that comes with a new organization.
pub const DEFAULT_NAME: &str = "Default project";

/// Whether a change of the days that events are kept removes events; `None`: for ever.
#[must_use]
pub fn removes_more(before: Option<i64>, after: Option<i64>) -> bool {
    after.is_some_and(|after| before.is_none_or(|before| after < before))
}

/// The short form: items of an organization's `teams` and of project lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ProjectBrief {
    /// Unique id, used in paths.
    pub id: ProjectId,
    /// Another unique id of the project, a UUID.
    pub uuid: Uuid,
    /// The organization that the project belongs to.
    pub organization: OrganizationId,
    /// Project API key: public, write only.
    pub api_token: String,
    /// Name, 1 to 200 characters.
    pub name: String,
    /// Whether the snippet was tried.
    pub completed_snippet_onboarding: bool,
    /// Always null.
    pub has_completed_onboarding_for: Option<bool>,
    /// Whether an event has been stored.
    pub ingested_event: bool,
    /// Always false.
    pub is_demo: bool,
    /// IANA name of the time zone.
    pub timezone: String,
    /// Always false.
    pub access_control: bool,
}

/// The full form of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Project {
    /// The fields of the short form.
    #[serde(flatten)]
    pub brief: ProjectBrief,
    /// Equals `id`.
    pub project_id: ProjectId,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Level of the caller in the organization.
    pub effective_membership_level: Option<Level>,
    /// Whether group types exist.
    pub has_group_types: bool,
    /// Group types, in order of their index.
    pub group_types: Vec<String>,
    /// URLs of the sites that send events.
    pub app_urls: Vec<String>,
    /// Whether IP addresses of clients are removed from events.
    pub anonymize_ips: bool,
    /// Whether events create no persons, as if they had `$process_person_profile: false`.
    pub person_processing_opt_out: bool,
    /// Always empty.
    pub test_account_filters: Vec<String>,
    /// Always `["data-attr"]`.
    pub data_attributes: Vec<String>,
    /// Person properties that are shown as the name of a person; null: the default ones.
    pub person_display_name_properties: Option<Vec<String>>,
    /// Always false.
    pub session_recording_opt_in: bool,
    /// Always false.
    pub autocapture_opt_out: bool,
    /// 0 Sunday, 1 Monday, null: not set.
    pub week_start_day: Option<i64>,
    /// Days that events are kept, by event time; null: for ever. Administrators and owners
    /// can change it. Events are removed in files, each when its newest event is old enough,
    /// so an event can stay longer, without a bound. Events that active exports and enabled
    /// plugins have not read yet stay until then.
    pub event_retention_days: Option<i64>,
    /// Always null.
    pub primary_dashboard: Option<i64>,
    /// Always null.
    pub recording_domains: Option<Vec<String>>,
    /// Always null.
    pub surveys_opt_in: Option<bool>,
    /// Always null.
    pub heatmaps_opt_in: Option<bool>,
    /// A description for users.
    pub product_description: Option<String>,
    /// Secret project key; null if there is none, or if the caller may not rotate it.
    pub secret_api_token: Option<String>,
    /// The previous secret project key, which is still valid; null like
    /// `secret_api_token`.
    pub secret_api_token_backup: Option<String>,
    /// Always empty.
    pub default_modifiers: serde_object::Empty,
    /// Always null.
    pub live_events_token: Option<String>,
}

/// An object without keys.
pub mod serde_object {
    use serde::{Deserialize, Serialize};

    /// `{}`
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
    pub struct Empty {}
}

/// The secret keys of a project. Their `Debug` does not show them.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProjectSecrets {
    /// The current key.
    pub primary: Option<String>,
    /// The previous key, until it is deleted.
    pub backup: Option<String>,
}

impl fmt::Debug for ProjectSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProjectSecrets(..)")
    }
}

/// Settings of a project, for a change or for a new project. For a new project, missing
/// and cleared fields get their defaults. In the order of the resource.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProjectPatch {
    /// New name.
    pub name: Patch<String>,
    /// New value of `completed_snippet_onboarding`.
    pub completed_snippet_onboarding: Patch<bool>,
    /// New time zone.
    pub timezone: Patch<String>,
    /// New URLs of sites.
    pub app_urls: Patch<Vec<String>>,
    /// New value of `anonymize_ips`.
    pub anonymize_ips: Patch<bool>,
    /// New value of `person_processing_opt_out`.
    pub person_processing_opt_out: Patch<bool>,
    /// New person properties shown as a name.
    pub person_display_name_properties: Patch<Vec<String>>,
    /// New first day of the week.
    pub week_start_day: Patch<i64>,
    /// New number of days that events are kept.
    pub event_retention_days: Patch<i64>,
    /// New description.
    pub product_description: Patch<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_retention_removes_events() {
        for (before, after, expected) in [
            (None, None, false),
            (None, Some(RETENTION_DAYS_MAX), true),
            (Some(30), None, false),
            (Some(30), Some(30), false),
            (Some(30), Some(31), false),
            (Some(30), Some(29), true),
        ] {
            assert_eq!(removes_more(before, after), expected, "{before:?} {after:?}");
        }
    }
}
