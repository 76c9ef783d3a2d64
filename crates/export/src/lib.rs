//! Batch exports: from stored events to destinations.
//!
//! What belongs here: what an export means. What does not: the records of
//! exports and who may change them (`weir-service`).

pub mod query;
