//! The common part of the destinations that are warehouses with an HTTP interface:
//! BigQuery, Databricks and Snowflake. Redshift uses files and uploads too.
//!
//! ```text
//! rows -> shape -> parts (files) -> uploads, a few at a time -> one statement
//! ```
//!
//! What belongs here: what all of them do. What does not: statements and requests of one
//! warehouse (its own module).
//!
//! Invariant: files are staged, and one statement at the end loads all of them. An
//! interrupted run leaves nothing in the table.

pub(super) mod files;
mod repeats;
pub(super) mod rest;
pub(super) mod rsa;
pub(super) mod shape;
pub(super) mod staged;
pub(super) mod token;
mod uploads;
