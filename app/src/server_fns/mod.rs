//! Server functions: the calls of pages and forms. Each one identifies the user, calls a
//! service, and converts the result for the page.
//!
//! What does not belong here: business rules (`weir-service`).
//!
//! Server functions are mounted under `/_fn` and are public, so each one checks its
//! caller. Pages call them while they are rendered, and forms are sent to them.

#[cfg(feature = "ssr")]
pub(crate) mod account;
#[cfg(feature = "ssr")]
pub(crate) mod activity;
#[cfg(feature = "ssr")]
pub(crate) mod domains;
// The only server function that scripts call. Islands use it to fill gaps.
pub(crate) mod events;
#[cfg(feature = "ssr")]
pub(crate) mod exports;
#[cfg(feature = "ssr")]
pub(crate) mod groups;
#[cfg(feature = "ssr")]
pub(crate) mod identity;
#[cfg(feature = "ssr")]
pub(crate) mod imports;
#[cfg(feature = "ssr")]
pub(crate) mod instance;
#[cfg(feature = "ssr")]
pub(crate) mod invites;
#[cfg(feature = "ssr")]
pub(crate) mod key_forms;
#[cfg(feature = "ssr")]
pub(crate) mod keys;
#[cfg(feature = "ssr")]
pub(crate) mod links;
#[cfg(feature = "ssr")]
pub(crate) mod members;
#[cfg(feature = "ssr")]
pub(crate) mod messages;
#[cfg(feature = "ssr")]
pub(crate) mod organizations;
#[cfg(feature = "ssr")]
pub(crate) mod persons;
#[cfg(feature = "ssr")]
pub(crate) mod plugin_configs;
#[cfg(feature = "ssr")]
pub(crate) mod plugins;
#[cfg(feature = "ssr")]
pub(crate) mod preferences;
#[cfg(feature = "ssr")]
pub(crate) mod project_keys;
#[cfg(feature = "ssr")]
pub(crate) mod project_start;
#[cfg(feature = "ssr")]
pub(crate) mod projects;
#[cfg(feature = "ssr")]
pub(crate) mod search;
#[cfg(feature = "ssr")]
pub(crate) mod second_factor;
#[cfg(feature = "ssr")]
pub(crate) mod security;
#[cfg(feature = "ssr")]
pub(crate) mod setup;
#[cfg(feature = "ssr")]
pub(crate) mod signup;
#[cfg(feature = "ssr")]
pub(crate) mod traffic;
#[cfg(feature = "ssr")]
pub(crate) mod warnings;
