//! The types of Weir that all layers share: ids, times, scopes, levels, resources,
//! inputs, errors.
//!
//! What belongs here: types with the same meaning in every layer, and checks that need
//! only the value. What does not: I/O, the clock, randomness, frameworks. The crate also
//! builds for the browser, so it depends only on `serde`, `serde_json`, `uuid` and
//! `chrono`. The features `schema` and `store` add derives for the API document and for
//! records.

pub mod activity;
pub mod alerts;
pub mod annotations;
pub mod dashboards;
pub mod definitions;
pub mod domains;
pub mod erasures;
pub mod errors;
pub mod events;
pub mod exports;
pub mod groups;
pub mod ids;
pub mod imports;
pub mod insights;
pub mod invites;
pub mod json;
pub mod keys;
pub mod limits;
pub mod live;
pub mod mail;
pub mod members;
pub mod organizations;
pub mod outcomes;
pub mod pagination;
pub mod panics;
pub mod patch;
pub mod persons;
pub mod plugin_configs;
pub mod plugins;
pub mod preferences;
pub mod projects;
pub mod reports;
pub mod roles;
#[cfg(feature = "schema")]
pub mod schema;
pub mod scim;
pub mod scopes;
pub mod sessions;
pub mod sso;
#[cfg(feature = "store")]
mod store;
pub mod subscriptions;
pub mod time;
pub mod traces;
pub mod traffic;
pub mod user_links;
pub mod users;
pub mod validate;
pub mod warnings;

pub use ids::{
    AlertId, AnnotationId, BackfillId, BatchExportId, DashboardId, DomainId, InsightId, InviteId,
    KeyId, MailId, MembershipId, OrganizationId, PersonId, PluginConfigId, PluginId, ProjectId,
    RoleId, RoleMembershipId, RunId, ScimGroupId, SubscriptionId, UserId,
};
pub use patch::Patch;
pub use time::Timestamp;
