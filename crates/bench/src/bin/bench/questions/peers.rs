//! The same questions to other engines, over the files of the sealed events.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;
use weir_bench::machine::drop_file_cache;
use weir_bench::questions::{Days, Engine, Kind, READ_TABLE, sql};
use weir_testservers::python_of;

use super::{RUNS, Timing};
use crate::service::Service;

/// Maximum time of all runs of a question.
const LONGEST: Duration = Duration::from_secs(1_800);

/// The files of the tables of a project.
#[derive(Debug, Deserialize)]
pub(super) struct Tables {
    events: Vec<String>,
    persons: Vec<String>,
    /// The number of events.
    pub(super) rows: u64,
    /// The columns that all files of events have.
    columns: Vec<String>,
}

impl Tables {
    /// Reads the logs of the tables.
    pub(super) async fn read(service: &Service) -> Result<Self> {
        let project = service.instance.project_id.to_string();
        let events = fs::canonicalize(service.weir.data().join("segments").join(project))?;
        let given = json!({ "events": events, "persons": events.join("persons") });
        python(Engine::DuckDb, READ_TABLE, &given).await
    }

    /// The bytes of the files of events.
    pub(super) fn bytes(&self) -> Result<u64> {
        let sizes = self.events.iter().map(|file| fs::metadata(file).map(|meta| meta.len()));
        Ok(sizes.sum::<std::io::Result<u64>>()?)
    }
}

/// What an engine says to a question.
#[derive(Debug, Deserialize)]
pub(super) struct Peer {
    pub(super) timing: Timing,
    pub(super) rows: Vec<Vec<String>>,
}

/// Whether an engine can be asked.
pub(super) fn is_installed(engine: Engine) -> bool {
    python_of(engine.environment()).exists()
}

/// Asks an engine, in a process of its own.
pub(super) async fn ask(engine: Engine, kind: Kind, days: Days, tables: &Tables) -> Result<Peer> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let given = json!({
        "events": tables.events,
        "persons": tables.persons,
        "sql": sql(kind, engine, days, &tables.columns),
        "threads": threads,
        "runs": RUNS,
        // The script does it again, because its own start reads files.
        "drop": drop_file_cache(),
    });
    python(engine, engine.script(), &given).await
}

/// Runs a script, which reads JSON and prints JSON.
async fn python<T: DeserializeOwned>(engine: Engine, script: &str, given: &Value) -> Result<T> {
    let program = python_of(engine.environment());
    let mut child = Command::new(&program)
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| {
            format!("cannot start {}: run scripts/setup questions", program.display())
        })?;
    let mut input = child.stdin.take().context("a script has no input")?;
    // A script that fails early does not read its input.
    let _ = input.write_all(given.to_string().as_bytes()).await;
    drop(input);
    let output = timeout(LONGEST, child.wait_with_output()).await;
    let output = output.with_context(|| format!("{} takes too long", engine.name()))??;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} failed: {said}", engine.name());
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{} printed something else: {said}", engine.name()))
}
