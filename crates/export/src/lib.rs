//! Batch exports: from stored events and persons to destinations (EXP-8).
//!
//! ```text
//! schedule -> run -> events of the interval, or their persons -> rows -> destination
//! ```
//!
//! What belongs here: when runs begin, what they export, how it is delivered. What does
//! not: who may change an export (`weir-service`), the query language (`weir-query`),
//! which addresses may be dialled (`weir-egress`).
//!
//! Invariant: each interval has one run. Its selection is decided when it is created, by
//! order of arrival, so that a retry exports the same events.

pub mod columns;
pub mod destination;
pub mod destinations;
mod encode;
pub mod engine;
pub mod event_input;
mod names;
pub mod persons;
pub mod rows;

pub use encode::{EncodeError, parquet_file};
