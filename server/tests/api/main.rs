//! The server over HTTP: real requests to a real listener, with a store in memory.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod capture;
mod cors;
mod errors;
mod events;
mod isolation;
mod keys;
mod limits;
mod organizations;
mod pagination;
mod probes;
mod process;
mod projects;
mod samples;
mod scopes;
mod users;
mod validation;
mod web;
