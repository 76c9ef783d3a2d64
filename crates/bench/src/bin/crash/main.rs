//! The crash harness: kills a process while it works, starts it again, and compares
//! acknowledged data with stored data.
//!
//! `crash --weir PATH` tests the service through its interfaces; `crash --store` tests
//! only the store. The last line is `N passed, N failed`; the exit code is non-zero after
//! a failure.

mod aging;
mod compare;
mod damage;
mod files;
mod ledger;
mod log;
mod people;
mod sending;
mod service;
mod store;
mod stories;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use weir_bench::clock;

/// Kills a service under load and looks for what is missing.
#[derive(Debug, Parser)]
#[command(name = "crash", args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(flatten)]
    run: Run,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Args)]
struct Run {
    /// Binary to run
    #[arg(long, value_name = "PATH", required_unless_present = "store")]
    weir: Option<PathBuf>,
    /// Test the store alone
    #[arg(long, conflicts_with = "weir")]
    store: bool,
    /// How often to kill it
    #[arg(long, default_value_t = 20, value_name = "N")]
    cycles: u32,
    /// New events of a cycle, about: the default is what a build without
    /// optimisation stores soon
    #[arg(long, default_value_t = 1_000, value_name = "N", conflicts_with = "store")]
    events: u64,
    /// Seed of all that is random [default: of the clock]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Directory to work in [default: the system's for temporary files]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Keep the working directory when something failed
    #[arg(long)]
    keep: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write to a store until killed (the harness starts it)
    #[command(hide = true)]
    Writer {
        /// Directory of the store
        directory: PathBuf,
        /// Seed of the sizes of writes
        seed: u64,
    },
}

/// One check.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    /// The faults that were found.
    pub(crate) faults: Vec<String>,
}

impl Check {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, faults: Vec::new() }
    }

    pub(crate) fn fail(&mut self, fault: String) {
        self.faults.push(fault);
    }
}

fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    if let Some(Command::Writer { directory, seed }) = cli.command {
        store::write(&directory, seed)?;
        return Ok(ExitCode::SUCCESS);
    }
    let seed = cli.run.seed.unwrap_or_else(|| clock::micros().unsigned_abs() % 1_000_000);
    say(&format!("seed {seed}"));
    let place = cli.run.directory.clone().unwrap_or_else(std::env::temp_dir);
    let directory = tempfile::Builder::new().prefix("weir-crash-").tempdir_in(place)?;
    let checks = match &cli.run.weir {
        Some(binary) => {
            let load = service::Load { cycles: cli.run.cycles, events: cli.run.events, seed };
            service::run(binary, directory.path(), load)
        }
        None => store::run(directory.path(), cli.run.cycles, seed),
    };
    let failed = match &checks {
        Ok(checks) => checks.iter().any(|check| !check.faults.is_empty()),
        Err(_) => true,
    };
    if failed && cli.run.keep {
        say(&format!("kept: {}", directory.keep().display()));
    }
    let checks = checks.with_context(|| format!("seed {seed}"))?;
    Ok(tell(&checks))
}

/// Prints every check and the totals.
fn tell(checks: &[Check]) -> ExitCode {
    /// Maximum faults that are printed: enough to recognize the kind of fault.
    const SHOWN: usize = 8;
    for check in checks {
        let mark = if check.faults.is_empty() { "ok" } else { "FAILED" };
        say(&format!("{mark:6} {}", check.name));
        for fault in check.faults.iter().take(SHOWN) {
            say(&format!("       {fault}"));
        }
        if check.faults.len() > SHOWN {
            say(&format!("       and {} more", check.faults.len() - SHOWN));
        }
    }
    let failed = checks.iter().filter(|check| !check.faults.is_empty()).count();
    say(&format!("{} passed, {failed} failed", checks.len() - failed));
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints a line to standard output.
pub(crate) fn say(line: &str) {
    // Standard output may be closed.
    let _ = writeln!(std::io::stdout(), "{line}");
}
