//! From the log to the store: one consumer per partition.
//!
//! A consumer takes a batch of the log and keeps the events of its partition
//! ([`apply_batch`]). It removes duplicates and runs the transformations. It computes the
//! effects of the events ([`process`]: persons, groups, names) and their blocks
//! ([`blocks`]). It writes all of it, with its new position, in one transaction. It can
//! stop at any point: a batch is applied completely or not at all.
//!
//! Order is kept per distinct id, because all events of a distinct id go through one
//! consumer. Several partitions can change the same person or group. Every change names
//! the version that it was computed from. A change of an older version is refused and
//! computed again.
//!
//! What belongs here: applying the log. What does not: the files of the log (`log`), and
//! deciding which events are accepted (`weir-capture`).

mod apply_batch;
mod blocks;
mod cache;
mod consumer;
mod groups;
mod merge;
mod names;
mod people;
mod process;
mod properties;
mod special_properties;
mod spikes;
mod tally;
#[cfg(test)]
mod tests;
mod updates;

pub(crate) use blocks::Blocks;
pub use consumer::Outcome;
pub(crate) use consumer::{BatchSizing, Consumer, Outcomes, Progress, SharedState};
pub(crate) use spikes::Spikes;
