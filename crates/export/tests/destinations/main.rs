//! Destinations against servers: real servers where they run locally, and otherwise
//! stand-ins that check the requests.
//!
//! What belongs here: a module for each destination, and what several of them use
//! (`warehouse`, `files::support`). What does not: the servers, which each test starts
//! itself (`weir_testkit::servers`).

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod bigquery;
mod databricks;
mod files;
mod http;
mod postgres;
mod redshift;
mod snowflake;
mod warehouse;
