//! The pool with real children: the program that the tests start is
//! `weir-plugin-worker`, which is nothing but the child.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod support;

mod compile;
mod contract;
mod environment;
mod generated;
mod hostile;
mod process;
