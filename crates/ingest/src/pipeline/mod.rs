//! From the log to the store: one consumer per partition.
//!
//! A consumer takes a stretch of the log, keeps the events of its partition
//! ([`stretch`]), removes duplicates, has them transformed, works out what the events do ([`process`]:
//! persons, groups, names) and where they go ([`blocks`]), and writes all of it
//! with its new position in one transaction. It can be stopped anywhere: the
//! stretch is done or not done.
//!
//! Order is kept per distinct id, because all events of one go through one
//! consumer. A person or a group can be reached from several partitions: every
//! change of one names the version it was made from, and a change that came too
//! late is worked out anew.

mod blocks;
mod cache;
mod consumer;
mod facts;
mod groups;
mod merge;
mod names;
mod people;
mod process;
mod properties;
mod spikes;
mod stretch;
mod tally;
#[cfg(test)]
mod tests;
mod updates;

pub(crate) use blocks::Blocks;
pub use consumer::Outcome;
pub(crate) use consumer::{Care, Consumer, Outcomes, Progress, Together};
pub(crate) use spikes::Spikes;
