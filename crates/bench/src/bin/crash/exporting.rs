//! An export that is under way when the program is replaced: a backfill of one run for each
//! hour, to files.
//!
//! Checked are: all runs end, and the files have every event that was stored when the backfill
//! began, once.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use uuid::Uuid;
use weir_bench::api::Api;
use weir_bench::clock;
use weir_bench::weir::{Instance, Weir};
use weir_model::Timestamp;

use crate::Check;
use crate::ledger::HOUR;
use crate::sending::{Shared, lock};

/// Events happened in so many hours.
pub(crate) const HOURS: u64 = 24;
/// Timeout of the backfill, with waits after attempts that a kill has ended.
const LONGEST: Duration = Duration::from_secs(3_600);
/// Pause between two checks how much is delivered.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// The directory of the files.
const DELIVERED: &str = "delivered";

/// The export, and what it must deliver.
pub(crate) struct Exporting {
    /// Its path below the project.
    path: String,
    events: u64,
}

#[derive(Deserialize)]
struct Run {
    status: String,
    records_completed: Option<u64>,
    latest_error: Option<String>,
}

#[derive(Deserialize)]
struct Runs {
    results: Vec<Run>,
}

impl Exporting {
    /// Creates an export without a schedule, for `events` stored events.
    pub(crate) async fn create(api: &mut Api, instance: &Instance, events: u64) -> Result<Self> {
        let config = json!({ "path": DELIVERED, "file_format": "JSONLines" });
        let body = json!({
            "name": "Under way", "interval": "hour", "paused": true,
            "destination": { "type": "LocalDirectory", "config": config },
        });
        let exports = format!("/api/projects/{}/batch_exports/", instance.project_id);
        let (status, answer) = api.call("POST", &exports, &body.to_string()).await?;
        let text = String::from_utf8_lossy(&answer);
        ensure!(status == 201, "creating an export was answered with {status}: {text}");
        let export: Value = serde_json::from_slice(&answer)?;
        let id = export["id"].as_str().context("an export has no id")?;
        Ok(Self { path: format!("batch_exports/{id}/"), events })
    }

    /// Starts the backfill of all events, and waits until a part of them is delivered.
    pub(crate) async fn begin(&self, api: &mut Api, instance: &Instance) -> Result<()> {
        let now = clock::micros();
        let time = |micros| Timestamp::from_micros(micros).to_string();
        // Events were sent for some time, and each of them happened before.
        let hours = 2 * i64::try_from(HOURS).unwrap_or(0);
        let bounds =
            json!({ "start_at": time(now - hours * HOUR), "end_at": time(now - 1_000_000) });
        let path = format!("/api/projects/{}/{}backfill/", instance.project_id, self.path);
        let (status, answer) = api.call("POST", &path, &bounds.to_string()).await?;
        let text = String::from_utf8_lossy(&answer);
        ensure!(status == 200, "a backfill was answered with {status}: {text}");
        let deadline = Instant::now() + LONGEST;
        loop {
            let delivered = self.delivered(api).await?;
            ensure!(delivered < self.events, "the export ended before the program was killed");
            if delivered > 0 {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "the export has not begun after {LONGEST:?}");
            sleep(LOOK_AGAIN).await;
        }
    }

    /// The number of events in runs that are complete.
    async fn delivered(&self, api: &mut Api) -> Result<u64> {
        // There are fewer runs than entries of a page.
        let runs: Runs = api.of_project(&format!("{}runs/", self.path), "?limit=100").await?;
        let mut delivered = 0;
        for run in runs.results {
            match run.status.as_str() {
                "Completed" => delivered += run.records_completed.unwrap_or(0),
                "Starting" | "Running" => {}
                other => bail!("a run of the export ended as {other}: {:?}", run.latest_error),
            }
        }
        Ok(delivered)
    }

    /// Waits until everything is delivered, and compares the files below `root`.
    pub(crate) async fn complete(
        &self,
        weir: &Weir,
        instance: &Instance,
        root: &Path,
        ledger: &Shared,
        check: &mut Check,
    ) -> Result<()> {
        let deadline = Instant::now() + LONGEST;
        let mut api = Api::open(weir.address, instance).await?;
        loop {
            let delivered = self.delivered(&mut api).await?;
            if delivered >= self.events {
                if delivered > self.events {
                    check.fail(format!("{delivered} of {} events are delivered", self.events));
                }
                break;
            }
            if Instant::now() > deadline {
                check.fail(format!("{delivered} of {} events in {LONGEST:?}", self.events));
                break;
            }
            sleep(LOOK_AGAIN).await;
        }
        let mut seen: HashSet<Uuid> = HashSet::new();
        for path in files(&root.join(DELIVERED))? {
            for line in BufReader::new(File::open(&path)?).lines() {
                let uuid = uuid(&line?).with_context(|| path.display().to_string())?;
                if !seen.insert(uuid) {
                    check.fail(format!("{uuid} is delivered twice, also in {}", path.display()));
                }
                if lock(ledger).number(uuid).is_none() {
                    check.fail(format!("{uuid} is delivered and was never sent"));
                }
            }
        }
        if seen.len() as u64 != self.events {
            check.fail(format!("the files have {} of {} events", seen.len(), self.events));
        }
        Ok(())
    }
}

/// The uuid of an exported event.
fn uuid(line: &str) -> Result<Uuid> {
    #[derive(Deserialize)]
    struct Row {
        uuid: Uuid,
    }
    let row: Row = serde_json::from_str(line)?;
    Ok(row.uuid)
}

/// The complete files in a directory and below it.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|name| name == "jsonl") {
                found.push(path);
            }
        }
    }
    Ok(found)
}
