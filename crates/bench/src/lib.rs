//! Code that the benchmark and the crash harness share: a load generator with little
//! overhead, the processes under test, and facts about the machine.
//!
//! What belongs here: code that several of the programs need, or that has unit tests. What does
//! not: the measurements (`bin/`).

pub mod api;
pub mod blocks;
pub mod client;
pub mod clock;
pub mod events;
pub mod load;
pub mod machine;
pub mod plugins;
pub mod process;
pub mod questions;
pub mod random;
pub mod stats;
pub mod weir;

use anyhow::{Result, bail};
use tokio::signal::unix::{SignalKind, signal};

/// Stack of a thread that runs the store in this process: statements recurse deeply,
/// especially in a debug build.
pub const STACK: usize = 16 << 20;

/// Runs `work` until it ends or a signal asks the program to stop. In both cases
/// everything it owns is dropped, so no process that it started remains.
///
/// # Errors
/// Those of `work`, and if the program was asked to stop.
pub async fn until_stopped<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        done = work => done,
        _ = terminate.recv() => bail!("asked to stop"),
        _ = interrupt.recv() => bail!("interrupted"),
    }
}
