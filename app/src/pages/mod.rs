//! The pages. Each page fetches its data and lays it out.
//!
//! What does not belong here: reusable components (`ui`).

pub(crate) mod account;
pub(crate) mod account_nav;
pub(crate) mod alerts;
mod columns_menu;
pub(crate) mod confirm;
pub(crate) mod dashboards;
mod entrance;
pub(crate) mod event_definition;
pub(crate) mod event_definitions;
pub(crate) mod events;
pub(crate) mod explore;
pub(crate) mod exports;
pub(crate) mod gallery;
pub(crate) mod group;
pub(crate) mod groups;
pub(crate) mod health;
pub(crate) mod help;
pub(crate) mod home;
pub(crate) mod insights;
pub(crate) mod instance;
pub(crate) mod key;
mod key_form;
pub(crate) mod key_new;
pub(crate) mod key_reveal;
pub(crate) mod keys;
pub(crate) mod limits;
pub(crate) mod login;
pub(crate) mod login_again;
pub(crate) mod login_code;
pub(crate) mod login_link;
pub(crate) mod messages;
pub(crate) mod migrations;
mod named_list;
pub(crate) mod not_found;
pub(crate) mod organization;
pub(crate) mod organization_new;
pub(crate) mod organizations;
pub(crate) mod overview;
pub(crate) mod person;
mod person_counts;
pub(crate) mod persons;
pub(crate) mod pipeline;
pub(crate) mod plugins;
pub(crate) mod preferences;
pub(crate) mod project_keys;
pub(crate) mod project_new;
mod project_retention;
pub(crate) mod project_settings;
pub(crate) mod recovery_codes;
pub(crate) mod reset;
pub(crate) mod search;
pub(crate) mod security;
pub(crate) mod setup;
pub(crate) mod signup;
pub(crate) mod sql;
pub(crate) mod start;
pub(crate) mod subscriptions;
mod timeline;
pub(crate) mod two_step;
pub(crate) mod web;

use leptos::prelude::*;
use leptos_router::hooks::use_params_map;

use crate::ui::query::in_query;

/// The number of the project in the address. 0, which no project has, if it is not a
/// number.
fn project_in_path() -> i64 {
    id_in_path().parse().unwrap_or(0)
}

/// The id in the address.
fn id_in_path() -> String {
    in_path("id")
}

/// The value of a route parameter.
fn in_path(name: &str) -> String {
    use_params_map().with(|params| params.get(name)).unwrap_or_default()
}
