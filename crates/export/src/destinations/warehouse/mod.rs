//! What the destinations share that are warehouses behind an HTTP interface:
//! BigQuery, Databricks and Snowflake. Files and uploads serve Redshift too.
//!
//! ```text
//! rows -> shape -> parts (files) -> uploads, a few at a time -> one statement
//! ```
//!
//! What belongs here: what all of them do. What does not: what one of them is
//! told, which is its own module's.
//!
//! Invariant: files wait beside the table, and one statement at the end brings
//! all of them in: a run that is cut short leaves nothing in the table.

mod beside;
pub(super) mod files;
mod repeats;
pub(super) mod rest;
pub(super) mod rsa;
pub(super) mod shape;
pub(super) mod staged;
pub(super) mod token;
