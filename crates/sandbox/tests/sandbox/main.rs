//! Tests of the pool with real child processes: the tests start `weir-plugin-worker`,
//! which contains only the child process.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod support;

mod compile;
mod contract;
mod environment;
mod generated;
mod hostile;
mod process;
