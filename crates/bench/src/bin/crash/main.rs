//! The crash harness: kills a process while it works, starts it again, and compares
//! acknowledged data with stored data.
//!
//! `crash --weir PATH` tests the service through its interfaces, with `--upgrade OLD` while
//! it upgrades the data of an older program; `crash --store` tests only the store. The last
//! line is `N passed, N failed`; the exit code is non-zero after a failure.

mod aging;
mod answers;
mod compare;
mod damage;
mod exporting;
mod files;
mod ledger;
mod log;
mod people;
mod sending;
mod service;
mod store;
mod stories;
mod upgrade;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use weir_bench::clock;

/// How often a process is killed under load, unless an option says otherwise.
const CYCLES: u32 = 20;

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
    /// Upgrade the data of an older program: its binary, or an archive of scripts/fixture
    #[arg(long, value_name = "PATH", conflicts_with = "store")]
    upgrade: Option<PathBuf>,
    /// How often to kill it [default: 20; during an upgrade 10]
    #[arg(long, value_name = "N")]
    cycles: Option<u32>,
    /// New events of a cycle, or all events of the older program, about: what a build
    /// without optimisation stores soon [default: 1000; of an older program 20000]
    #[arg(long, value_name = "N", conflicts_with = "store")]
    events: Option<u64>,
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
    let Run { weir, upgrade, cycles, events, .. } = &cli.run;
    let checks = match (weir, upgrade) {
        (Some(binary), Some(old)) => {
            let (kills, events) = (cycles.unwrap_or(10), events.unwrap_or(20_000));
            upgrade::run(binary, old, directory.path(), upgrade::Load { kills, events, seed })
        }
        (Some(binary), None) => {
            let (cycles, events) = (cycles.unwrap_or(CYCLES), events.unwrap_or(1_000));
            service::run(binary, directory.path(), service::Load { cycles, events, seed })
        }
        (None, _) => store::run(directory.path(), cycles.unwrap_or(CYCLES), seed),
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
