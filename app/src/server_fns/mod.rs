//! Server functions: what pages and their forms ask the server for. Each one
//! enters, calls a service, and maps the answer to what the page shows; rules
//! are elsewhere.
//!
//! They are mounted under `/_fn` and are public: each one finds out by itself
//! who is calling. Pages call them while they are drawn, forms are sent to them.

#[cfg(feature = "ssr")]
pub(crate) mod account;
#[cfg(feature = "ssr")]
pub(crate) mod activity;
#[cfg(feature = "ssr")]
pub(crate) mod domains;
// The only one that scripts call: islands fill gaps with it.
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
