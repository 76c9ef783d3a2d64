//! From the log to the store: one consumer per partition.
//!
//! A consumer ([`consumer`]) has three parts. The [`reader`] takes a batch of the log and
//! keeps the events of its partition ([`apply_batch`]). The [`planner`] removes duplicates
//! and runs the transformations. It computes the effects of the events ([`process`]:
//! persons, groups, names) and their blocks ([`blocks`]). The [`committer`] writes all of
//! it, with the new position, in one transaction. While it commits, the next batch is read
//! and planned. A consumer can stop at any point: a batch is applied completely or not at
//! all.
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
mod committer;
mod consumer;
mod groups;
mod merge;
mod names;
mod outcomes;
mod people;
mod planner;
mod process;
mod progress;
mod properties;
mod reader;
mod sizing;
mod special_properties;
mod spikes;
mod tally;
#[cfg(test)]
mod tests;
mod updates;

pub(crate) use consumer::{Consumer, ConsumerDependencies, SharedState};
pub use outcomes::Outcome;
pub(crate) use outcomes::Outcomes;
pub(crate) use progress::Progress;
