//! The server over HTTP: real requests to a real listener, with a store in memory.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod browser_library;
mod capture;
mod capture_v1;
mod cors;
mod errors;
mod events;
mod import;
mod isolation;
mod keys;
mod limits;
mod organizations;
mod pagination;
mod persons;
mod probes;
mod process;
mod projects;
mod rules;
mod samples;
mod scopes;
mod settings;
mod users;
mod validation;
mod web;
