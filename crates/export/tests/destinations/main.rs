//! Destinations against servers: real ones where there is one to run at home,
//! stand-ins that check what they are asked where there is none.
//!
//! What belongs here: a module for each destination, and what several of them
//! share (`warehouse`, `files::support`). What does not: servers themselves, which
//! each test starts for itself (`weir_testkit::servers`).

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod bigquery;
mod databricks;
mod files;
mod http;
mod postgres;
mod redshift;
mod snowflake;
mod warehouse;
