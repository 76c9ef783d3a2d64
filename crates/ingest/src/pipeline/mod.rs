//! From the log to the store: one consumer per partition.
//!
//! A consumer takes a stretch of the log, keeps the events of its partition,
//! works out their effects ([`stretch`]: duplicates, persons, blocks, warnings)
//! and writes them with its new position in one transaction. It can be stopped
//! anywhere: the stretch is done or not done.
//!
//! Order is kept per distinct id, because all events of one go through one
//! consumer. Effects of other events on the same person come with merges; the
//! person's version guards against them already.

mod consumer;
mod persons;
mod stretch;

pub(crate) use consumer::{Consumer, Progress};
