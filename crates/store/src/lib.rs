//! The store: the only crate that uses the engine of SurrealDB.
//!
//! What belongs here: opening and closing the engine, the schema and its migrations, and
//! one module for each resource with the statements that read and write it, and helpers
//! (`bind`, `lists`, `hash_ranges`, `update`, `ids`). Statement text is
//! constant, every value is bound, record ids are built from parsed ids (SEC-21). Records
//! that every event needs are read and written without a statement (`transaction`). What
//! does not: rules about who may do what (`weir-service`), HTTP (`weir-server`).
//!
//! Functions that touch data of an organization or a project take its id as a parameter.
//! They bind the id into the record id or compare it with the record. The few functions
//! that read across organizations say so.

// For the types of the futures of the query engine.
#![recursion_limit = "256"]

mod bind;
mod calls;
mod checkpoint;
mod checksums;
mod db;
mod engine;
mod error;
mod in_memory;
mod keyed_lock;
mod lists;
mod migrations;
mod postgres;
#[cfg(test)]
mod tests;
mod transaction;

pub mod activity;
pub mod alerts;
pub mod annotations;
pub mod counts;
pub mod dashboards;
pub mod definitions;
pub mod disk;
pub mod domains;
pub mod erasures;
pub mod events;
pub mod exports;
pub mod groups;
mod hash_ranges;
pub mod ids;
pub mod imports;
pub mod insights;
pub mod inspection;
pub mod instance;
pub mod invites;
pub mod keys;
pub mod limits;
pub mod live;
pub mod mail;
pub mod members;
mod memory_budget;
pub mod numbered;
pub mod organizations;
pub mod passkeys;
pub mod people;
pub mod persons;
pub mod plugin_configs;
pub mod plugin_runtime;
pub mod plugins;
pub mod preferences;
pub mod projects;
pub mod proofs;
pub mod roles;
pub mod scim;
pub mod sealing;
pub mod second_factor;
pub mod sessions;
pub mod sso;
pub mod subscriptions;
pub mod throttle;
pub mod traffic;
pub mod update;
pub mod user_links;
pub mod users;
pub mod warnings;

pub use calls::{Calls, RoundTrips, TransactionCalls};
pub use checkpoint::{CheckpointError, checkpoint};
pub use checksums::read_all;
pub use engine::{Location, SegmentBucket, Settings, Store};
pub use error::Error;
pub use hash_ranges::ScanLimits;
pub use memory_budget::ByteBudget;
pub use migrations::{MissingMigration, StoredSchema, schema_version};
pub use postgres::DATABASE_ID;
pub use weir_objects::{Access, BucketLocation, Secret};
pub use weir_store_postgres::{DatabaseAddress, Settings as DatabaseSettings};

/// The result of a store operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;
