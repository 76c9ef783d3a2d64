//! HTTP that all answers share: errors, ids, headers, bodies, pages.
//!
//! What belongs here: HTTP that does not belong to a single resource. What does not: a
//! resource's paths and fields (`api`).

pub mod accept;
pub mod body;
pub(crate) mod compress;
pub mod credential;
pub mod error;
pub mod extract;
pub mod guards;
pub mod headers;
pub mod input;
pub mod key_use;
pub mod pagination;
pub mod peer;
pub mod request_id;
pub(crate) mod sending;
pub mod visitor;
