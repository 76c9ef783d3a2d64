//! The pages: each one fetches, chooses among loading, empty, failure and data,
//! and lays out. Parts that are used again are in `ui`.

pub(crate) mod account;
mod entrance;
pub(crate) mod home;
pub(crate) mod key_new;
pub(crate) mod key_reveal;
pub(crate) mod keys;
pub(crate) mod live;
pub(crate) mod login;
pub(crate) mod login_again;
pub(crate) mod not_found;
pub(crate) mod organization;
pub(crate) mod organization_new;
pub(crate) mod organizations;
pub(crate) mod project_settings;
pub(crate) mod setup;
pub(crate) mod start;

use leptos::prelude::*;
use leptos_router::hooks::{use_params_map, use_query_map};

/// The number of the project in the address; 0, which no project has, when it
/// is none.
fn project_in_path() -> Memo<i64> {
    let params = use_params_map();
    Memo::new(move |_| {
        params.with(|params| params.get_str("id").and_then(|id| id.parse().ok()).unwrap_or(0))
    })
}

/// The id in the address.
fn id_in_path() -> Memo<String> {
    let params = use_params_map();
    Memo::new(move |_| params.with(|params| params.get("id").unwrap_or_default()))
}

/// A value of the query.
fn in_query(name: &'static str) -> Memo<String> {
    let query = use_query_map();
    Memo::new(move |_| query.with(|query| query.get(name).unwrap_or_default()))
}
