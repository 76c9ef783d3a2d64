//! `weir log`: inspecting the ingest log of a data directory, and applying again the
//! records that the store lacks.
//!
//! What belongs here: the two commands, their questions and refusals. What does not: the
//! form of a report (`report`), and reading and appending (`weir_ingest::log::inspect`,
//! `weir_ingest::replay`).

mod report;

use std::io::{BufRead as _, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use weir_ingest::log::{LogError, LogSettings, Offset, inspect};
use weir_ingest::replay::{ReplayError, Replayed, replay};
use weir_store::events::{self, Position};
use weir_store::{Error as StoreError, Store};

use crate::config::{Config, StoreKind};
use crate::serve::open_store;

/// The commands below `weir log`.
#[derive(Debug, Subcommand)]
pub enum LogCommand {
    /// Show the contents of the ingest log, without changing or repairing it
    Inspect(InspectArguments),
    /// Apply records again that the ingest log has and the store does not
    Replay(ReplayArguments),
}

/// Arguments of `weir log inspect`.
#[derive(Debug, Args)]
pub struct InspectArguments {
    /// List the records too
    #[arg(long)]
    records: bool,
    /// Keep the store closed: do not show how much waits to be applied
    #[arg(long)]
    no_store: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Arguments of `weir log replay`.
#[derive(Debug, Args)]
pub struct ReplayArguments {
    /// Offset of the record to begin with [default: the first that is kept]
    #[arg(long, value_name = "OFFSET")]
    from: Option<u64>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// Why a command on the log failed.
#[derive(Debug, thiserror::Error)]
pub enum LogToolError {
    /// A store in memory has no log on disk.
    #[error("a store in memory keeps no log")]
    InMemory,
    /// The data directory has no store to apply the log to.
    #[error("there is no store in the data directory `{0}`")]
    NoStore(PathBuf),
    /// The log begins after the requested offset.
    #[error("the log begins at offset {begin}; what was at {from} was applied and removed")]
    Gone {
        /// The requested offset.
        from: u64,
        /// The first offset that is kept.
        begin: u64,
    },
    /// The log ends before the requested offset.
    #[error("the log ends at offset {end}; nothing is at {from}")]
    Ahead {
        /// The requested offset.
        from: u64,
        /// The offset of the end.
        end: u64,
    },
    /// No intact record begins at the offset.
    #[error("no sound record begins at offset {0}; `weir log inspect --records` lists them")]
    NoRecord(u64),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The replay stopped.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// Standard input or output failed.
    #[error("standard input or output failed")]
    Stream(#[from] std::io::Error),
}

/// Runs a command.
///
/// # Errors
/// [`LogToolError`] with the reason.
pub async fn run(config: &Config, command: LogCommand) -> Result<(), LogToolError> {
    if config.store == StoreKind::Memory {
        return Err(LogToolError::InMemory);
    }
    let directory = config.data.join("log");
    match command {
        LogCommand::Inspect(arguments) => show(config, &directory, &arguments).await,
        LogCommand::Replay(arguments) => {
            // Opening a missing store would create one.
            if !has_store(config) {
                return Err(LogToolError::NoStore(config.data.clone()));
            }
            let store = open_store(config).await?;
            let outcome = replay_from(&store, &directory, &arguments).await;
            store.close_at_end().await?;
            outcome
        }
    }
}

/// How far the store has applied the log, if that can be read.
enum Progress {
    /// Positions of all partitions.
    Positions(Vec<Position>),
    /// Another process uses the data directory.
    InUse,
    /// The reason why it is not known.
    Unknown(String),
}

async fn show(
    config: &Config,
    directory: &Path,
    arguments: &InspectArguments,
) -> Result<(), LogToolError> {
    let progress = if arguments.no_store {
        Progress::Unknown("the store was left closed".to_owned())
    } else {
        progress(config).await
    };
    let positions = match &progress {
        Progress::Positions(positions) => positions.as_slice(),
        Progress::InUse | Progress::Unknown(_) => &[],
    };
    let mut out = BufWriter::new(std::io::stdout().lock());
    if arguments.json {
        let mut records = Vec::new();
        let found = inspect(directory, positions, |record| {
            if arguments.records {
                records.push(report::record_json(record));
            }
        })?;
        let records = arguments.records.then_some(records);
        writeln!(out, "{}", report::json(directory, &found, &progress, records))?;
    } else {
        // Records are printed while they are read, because a log may hold millions.
        let mut printed = match arguments.records {
            true => writeln!(out, "{}", report::RECORDS),
            false => Ok(()),
        };
        let found = inspect(directory, positions, |record| {
            if arguments.records && printed.is_ok() {
                printed = writeln!(out, "{}", report::record_line(record));
            }
        })?;
        printed?;
        if arguments.records {
            writeln!(out)?;
        }
        write!(out, "{}", report::text(directory, &found, &progress))?;
    }
    Ok(out.flush()?)
}

/// Whether the data directory has a store, or belongs to a database.
pub fn has_store(config: &Config) -> bool {
    let sign = match config.store {
        StoreKind::RocksDb | StoreKind::Memory => "store",
        StoreKind::Postgres(_) => weir_store::DATABASE_ID,
    };
    config.data.join(sign).exists()
}

/// Reads the positions and closes the store again: reading the log may take long, and a
/// service may want to start in the meantime.
async fn progress(config: &Config) -> Progress {
    if !has_store(config) {
        return Progress::Unknown("there is no store".to_owned());
    }
    let store = match open_store(config).await {
        Ok(store) => store,
        Err(StoreError::InUse { .. }) => return Progress::InUse,
        Err(error) => return Progress::Unknown(error.to_string()),
    };
    let positions = events::positions(&store).await;
    let closed = store.close_at_end().await;
    match positions.and_then(|positions| closed.map(|()| positions)) {
        Ok(positions) => Progress::Positions(positions),
        Err(error) => Progress::Unknown(error.to_string()),
    }
}

async fn replay_from(
    store: &Store,
    directory: &Path,
    arguments: &ReplayArguments,
) -> Result<(), LogToolError> {
    let (mut records, mut events, mut begins_there) = (0_u64, 0_u64, false);
    let from = Offset(arguments.from.unwrap_or(0));
    let found = inspect(directory, &[], |record| {
        if record.offset >= from {
            records += 1;
            events += u64::from(record.events);
            begins_there |= record.offset == from;
        }
    })?;
    let copied: Vec<_> = found
        .quarantine
        .iter()
        .flat_map(|copy| &copy.records)
        .filter(|record| record.offset >= from && record.content.is_ok())
        .collect();
    begins_there |= copied.iter().any(|record| record.offset == from);
    let (begin, end) = found.bounds().unwrap_or_default();
    if arguments.from.is_some() && from < begin && !begins_there {
        return Err(LogToolError::Gone { from: from.0, begin: begin.0 });
    }
    if arguments.from.is_some() && from >= end && !begins_there {
        return Err(LogToolError::Ahead { from: from.0, end: end.0 });
    }
    if arguments.from.is_some() && !begins_there {
        return Err(LogToolError::NoRecord(from.0));
    }
    if records == 0 && copied.is_empty() {
        return print("The log holds no records.");
    }
    if !copied.is_empty() {
        print(&format!("Checks {} records in `quarantine` that can be read.", copied.len()))?;
    }
    print(&format!(
        "Checks {records} records with {events} events, from offset {} to {}.\n\
         Events that are stored stay as they are, and so do their persons.\n\
         Events that were applied and are not stored are appended to the log again; the next \
         `weir serve` applies them like new ones: what they `$set` wins.",
        from.max(begin).0,
        end.0
    ))?;
    if !arguments.yes && !agreed()? {
        return print("Nothing was changed.");
    }
    print(&summary(&replay(directory, LogSettings::default(), store, from).await?))
}

fn summary(found: &Replayed) -> String {
    let mut text = format!("Stored already: {}\n", found.stored);
    for (what, count) in [
        ("Applied at the next start anyway", found.waiting),
        ("Cannot be read by this version", found.unreadable),
        ("Damaged", found.damaged),
        ("Of projects that are deleted", found.orphaned),
        ("Of persons that are deleted", found.erased),
    ] {
        if count > 0 {
            text.push_str(&format!("{what}: {count}\n"));
        }
    }
    text.push_str(&format!("Appended again: {}", found.appended));
    text
}

/// Asks on the terminal. Every answer except yes means no.
fn agreed() -> Result<bool, LogToolError> {
    let mut out = std::io::stdout().lock();
    write!(out, "Continue? [y/N] ")?;
    out.flush()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

fn print(text: &str) -> Result<(), LogToolError> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}
