//! What the benchmark and the crash harness share: a load generator that costs
//! little, the processes under test, and what the machine says about them.
//!
//! What belongs here: anything that two of the programs need. What does not:
//! what is measured, which stands in the programs themselves.

pub mod api;
pub mod blocks;
pub mod client;
pub mod clock;
pub mod events;
pub mod load;
pub mod machine;
pub mod plugins;
pub mod process;
pub mod random;
pub mod stats;
pub mod weir;

use anyhow::{Result, bail};
use tokio::signal::unix::{SignalKind, signal};

/// Stack of a thread that runs the store in this process: statements recurse
/// deeply, most of all without optimisation.
pub const STACK: usize = 16 << 20;

/// Runs `work` until it ends or somebody asks the program to stop. In both
/// cases everything it owns is dropped, so no process that it started stays.
///
/// # Errors
/// Those of `work`, and when the program was told to stop.
pub async fn until_told<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        done = work => done,
        _ = terminate.recv() => bail!("told to stop"),
        _ = interrupt.recv() => bail!("interrupted"),
    }
}
