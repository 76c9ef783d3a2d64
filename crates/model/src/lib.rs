//! The vocabulary of Weir: ids, times, scopes, levels, resources, inputs, errors.
//!
//! What belongs here: types that mean the same in every layer, and the checks
//! that need nothing but the value itself.
//! What does not: I/O, the clock, randomness, frameworks. The crate builds for
//! the browser, so it depends on `serde`, `uuid` and `chrono` only.

pub mod definitions;
pub mod errors;
pub mod events;
pub mod groups;
pub mod ids;
pub mod keys;
pub mod live;
pub mod organizations;
pub mod outcomes;
pub mod pagination;
pub mod patch;
pub mod persons;
pub mod projects;
pub mod scopes;
pub mod time;
pub mod users;
pub mod validate;

pub use ids::{KeyId, MembershipId, OrganizationId, PersonId, ProjectId, UserId};
pub use patch::Patch;
pub use time::Timestamp;
