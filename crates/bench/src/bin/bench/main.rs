//! The benchmark: a release binary and a floor, measured in the same run.
//!
//! `bench --weir PATH` prints a Markdown report; `--write FILE` stores it. Progress goes
//! to standard error. All processes that it starts listen only on 127.0.0.1 and end with
//! it.

mod backups;
mod exports;
mod floor;
mod library;
mod lists;
mod management;
mod peaks;
mod plugins;
mod questions;
mod report;
mod rounds;
mod sealed;
mod service;
mod sustained;
mod table;
mod volume;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use weir_bench::machine::Machine;
use weir_bench::stats::median;
use weir_bench::{clock, process, until_stopped};

use crate::report::Figures;
use crate::rounds::{BATCH, Effort};
use crate::service::{MemoryWatch, Service};

/// The floor uses the same allocator as Weir.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Measures Weir beside the least that a server can do.
#[derive(Debug, Parser)]
#[command(name = "bench", args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(flatten)]
    run: Run,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Args)]
struct Run {
    /// Release binary to measure
    #[arg(long, value_name = "PATH")]
    weir: Option<PathBuf>,
    /// Fewer and shorter rounds, fewer events: to see whether it works
    #[arg(long)]
    quick: bool,
    /// Rounds [default: 5; 2 with --quick]
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Events of the full instance, or of questions [default: 1000000; 50000 with --quick]
    #[arg(long, value_name = "N")]
    events: Option<u64>,
    /// Directory to work in, on the disk to be measured [default: the system's for temporary files]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Only the lists of a large organization: some minutes, printed
    #[arg(long, conflicts_with = "write")]
    lists: bool,
    /// Only the batch exports of so many events, printed
    #[arg(long, value_name = "N", conflicts_with_all = ["write", "lists"])]
    exports: Option<u64>,
    /// Only plugins: a few minutes, printed
    #[arg(long, conflicts_with_all = ["write", "lists", "exports"])]
    plugins: bool,
    /// Only so many events, all of them sealed, printed; 2 KB of disk for each
    #[arg(long, value_name = "N", conflicts_with_all = ["write", "lists", "exports", "plugins"])]
    sealed: Option<u64>,
    /// Only backups of so many events, restoring and checking them, printed; 4 KB of disk for each
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ["write", "lists", "exports", "plugins", "sealed"],
    )]
    backups: Option<u64>,
    /// Only questions about so many --events, printed; 2 KB of disk for each
    #[arg(
        long,
        conflicts_with_all = ["write", "lists", "exports", "plugins", "sealed", "backups"],
    )]
    questions: bool,
    /// File to write the report to
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the floor (the benchmark starts it)
    #[command(hide = true)]
    Floor {
        /// File to append to
        file: PathBuf,
    },
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    if let Some(Command::Floor { file }) = cli.command {
        return floor::run(&file);
    }
    let binary = cli.run.weir.clone().context("--weir PATH is needed")?;
    let place = cli.run.directory.clone().unwrap_or_else(std::env::temp_dir);
    let directory = tempfile::Builder::new().prefix("weir-bench-").tempdir_in(place)?;

    // One thread, so that the load generator uses as little as possible.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if cli.run.lists {
        let measuring = lists::run(&binary, directory.path(), lists::Effort::new(cli.run.quick));
        let text = report::lists(&runtime.block_on(until_stopped(measuring))?);
        return Ok(std::io::stdout().write_all(text.as_bytes())?);
    }
    if let Some(events) = cli.run.exports {
        let effort = exports::Effort { events, ..exports::Effort::new(cli.run.quick) };
        let measuring = exports::run(&binary, directory.path(), effort);
        let text = report::exports(&runtime.block_on(until_stopped(measuring))?);
        return Ok(std::io::stdout().write_all(text.as_bytes())?);
    }
    if cli.run.plugins {
        let measuring = plugins::run(&binary, directory.path(), cli.run.quick);
        let text = report::plugins(&runtime.block_on(until_stopped(measuring))?);
        return Ok(std::io::stdout().write_all(text.as_bytes())?);
    }
    if let Some(events) = cli.run.sealed {
        let measuring = sealed::run(&binary, directory.path(), events);
        let text = report::sealed(&runtime.block_on(until_stopped(measuring))?);
        return Ok(std::io::stdout().write_all(text.as_bytes())?);
    }
    if let Some(events) = cli.run.backups {
        let measuring = backups::run(&binary, directory.path(), events);
        let text = report::backups(&runtime.block_on(until_stopped(measuring))?);
        return Ok(std::io::stdout().write_all(text.as_bytes())?);
    }
    if cli.run.questions {
        let effort = questions::Effort::new(cli.run.quick, cli.run.events);
        let measuring = questions::run(&binary, directory.path(), effort);
        let text = questions::section(&runtime.block_on(until_stopped(measuring))?);
        return Ok(std::io::stdout().write_all(text.as_bytes())?);
    }
    let measuring = measure(&cli.run, &binary, directory.path());
    let mut figures = runtime.block_on(until_stopped(measuring))?;
    drop(runtime);
    let events = if cli.run.quick { 20_000 } else { 100_000 };
    figures.library = Some(library::run(&directory.path().join("library"), events)?);

    let text = report::markdown(&figures);
    std::io::stdout().write_all(text.as_bytes())?;
    if let Some(path) = &cli.run.write {
        write_into(path, &text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

async fn measure(run: &Run, binary: &Path, directory: &Path) -> Result<Figures> {
    let quick = run.quick;
    let effort = Effort {
        rounds: run.rounds.unwrap_or(if quick { 2 } else { 5 }),
        time: Duration::from_millis(if quick { 700 } else { 2_500 }),
        pool: if quick { 20_000 } else { 100_000 },
    };
    let starts = if quick { 2 } else { 5 };
    let time = Duration::from_secs(if quick { 2 } else { 10 });

    let mut service = Service::create(binary, &directory.join("weir"), 42).await?;
    let (empty_starts, idle) = volume::empty(&mut service, starts).await?;
    let (floor, floor_address) = floor::start(&directory.join("floor.data"))?;

    let watch = MemoryWatch::start(service.id());
    let rounds = rounds::run(&service, (floor_address, floor.id()), effort).await?;
    drop(floor);
    let kinds_time = Duration::from_secs(if quick { 1 } else { 4 });
    let kinds = sustained::kinds(&service, effort.rounds.min(3), kinds_time).await?;
    let sustainable = median(&rounds.rows[BATCH].stored);
    let mut freshness = Vec::new();
    for share in [0.5, 0.8] {
        freshness.push(sustained::freshness(&service, sustainable, share, time).await?);
    }
    let burst_events = if quick { 20_000 } else { 200_000 };
    let burst = peaks::burst(&service, effort.rounds.min(3), burst_events).await?;
    let hot_id = peaks::hot_id(&service, sustainable, time).await?;
    let loaded = watch.highest();
    drop(watch);
    service.stop().await?;
    drop(service);

    let events = run.events.unwrap_or(if quick { 50_000 } else { 1_000_000 });
    let (full, service) =
        volume::full(binary, &directory.join("full"), events, starts.min(3)).await?;
    let calls_time = Duration::from_millis(if quick { 500 } else { 2_000 });
    let calls = management::run(&service, calls_time).await?;
    drop(service);
    let lists = lists::run(binary, &directory.join("lists"), lists::Effort::new(quick)).await?;
    let exports =
        exports::run(binary, &directory.join("exports"), exports::Effort::new(quick)).await?;
    let plugins = plugins::run(binary, &directory.join("plugins"), quick).await?;
    let client = process::cpu("self")?;
    Ok(Figures {
        machine: Machine::look(directory),
        date: clock::today(),
        command: command_line(run),
        quick,
        binary: fs::metadata(binary)?.len(),
        rounds,
        kinds,
        sustainable,
        freshness,
        burst,
        hot_id,
        idle,
        loaded: loaded.max(full.memory),
        empty_starts,
        full,
        calls,
        lists,
        exports,
        plugins,
        client,
        library: None,
    })
}

/// Replaces the part between the marks of a file, or the whole file if it has none.
fn write_into(path: &Path, report: &str) -> Result<()> {
    const BEGIN: &str = "<!-- bench:begin -->\n";
    const END: &str = "<!-- bench:end -->";
    let present = fs::read_to_string(path).unwrap_or_default();
    let text = match (present.split_once(BEGIN), present.split_once(END)) {
        (Some((before, _)), Some((_, after))) => format!("{before}{BEGIN}{report}{END}{after}"),
        (_, _) => format!("# Benchmarks\n\n{report}"),
    };
    Ok(fs::write(path, text)?)
}

/// The command without paths of this machine, for the report.
fn command_line(run: &Run) -> String {
    let mut text = "cargo run --release -p weir-bench --bin bench -- --weir PATH".to_owned();
    if run.quick {
        text.push_str(" --quick");
    }
    if let Some(rounds) = run.rounds {
        text.push_str(&format!(" --rounds {rounds}"));
    }
    if let Some(events) = run.events {
        text.push_str(&format!(" --events {events}"));
    }
    text
}

/// Prints a line of progress.
pub(crate) fn say(line: &str) {
    // Standard error may be closed.
    let _ = writeln!(std::io::stderr(), "bench: {line}");
}
