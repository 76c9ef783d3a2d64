//! Server functions: the calls of pages and forms. Each one identifies the user, calls a
//! service, and converts the result for the page.
//!
//! What does not belong here: business rules (`weir-service`).
//!
//! Server functions are mounted under `/_fn` and are public, so each one checks its
//! caller. Pages call them while they are rendered, and forms are sent to them. The browser
//! has the calls only; what the functions do is compiled into the server.

#![cfg_attr(
    not(feature = "ssr"),
    allow(dead_code, unused_imports, reason = "the bodies of the functions use them")
)]

pub(crate) mod account;
pub(crate) mod activity;
pub(crate) mod alerts;
#[cfg(feature = "ssr")]
mod asking;
pub(crate) mod bulk;
pub(crate) mod dashboards;
pub(crate) mod definitions;
pub(crate) mod domains;
pub(crate) mod events;
pub(crate) mod explore;
pub(crate) mod exports;
pub(crate) mod groups;
pub(crate) mod help;
pub(crate) mod identity;
pub(crate) mod imports;
pub(crate) mod insights;
pub(crate) mod instance;
pub(crate) mod invites;
pub(crate) mod key_forms;
pub(crate) mod keys;
pub(crate) mod limits;
pub(crate) mod links;
pub(crate) mod members;
pub(crate) mod messages;
pub(crate) mod object_names;
pub(crate) mod organizations;
pub(crate) mod overview;
pub(crate) mod passkeys;
pub(crate) mod persons;
pub(crate) mod plugin_configs;
pub(crate) mod plugins;
pub(crate) mod preferences;
pub(crate) mod project_keys;
pub(crate) mod project_start;
pub(crate) mod projects;
pub(crate) mod rows;
pub(crate) mod scim;
pub(crate) mod search;
pub(crate) mod second_factor;
pub(crate) mod security;
pub(crate) mod setup;
pub(crate) mod signup;
pub(crate) mod sql;
pub(crate) mod subscriptions;
pub(crate) mod traffic;
pub(crate) mod warnings;
pub(crate) mod web;
