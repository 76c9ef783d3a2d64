//! The engine over a real store, with a clock and a destination that the tests control.

mod backfills;
mod pauses;
mod people;
mod persons;
mod runs;
mod schedule;
mod support;
