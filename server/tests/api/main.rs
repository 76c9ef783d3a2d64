//! The server over HTTP: real requests to a real listener, with a store in memory.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod activity_log;
mod browser_library;
mod capture;
mod capture_v1;
mod cors;
mod coverage;
mod domains;
mod errors;
mod events;
mod exports;
mod full_disk;
mod generated;
mod import;
mod import_defects;
mod invites;
mod isolation;
mod keys;
mod limits;
mod members;
mod memory;
mod openapi;
mod organizations;
mod overload;
mod pagination;
mod person_processing;
mod persons;
mod probes;
mod process;
mod projects;
mod rules;
mod samples;
mod scopes;
mod section_13;
mod sessions;
mod settings;
mod silent_cases;
mod snapshot;
mod spikes;
mod users;
mod validation;
mod web;
