//! Batch exports: the rate of events to destinations on the same machine, their memory,
//! and their effect on capture.
//!
//! What belongs here: an instance with many events, and a backfill of all of them to each
//! destination. What does not: correctness of the exported data (tests).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use weir_bench::api::Api;
use weir_bench::events::{People, Shape, Source, Template};
use weir_bench::load::{Load, Work, send};
use weir_bench::stats::median;
use weir_bench::weir::Weir;
use weir_bench::{clock, process};
use weir_model::Timestamp;
use weir_testservers::Postgres;

use crate::floor;
use crate::rounds::wait_readable;
use crate::service::{MemoryWatch, Service};
use crate::sustained::{BATCH, PEOPLE, freshness};

/// Timeout of an export.
const LONGEST: Duration = Duration::from_secs(1_800);
/// All events are within this many hours.
const HOURS: i64 = 20;
/// Events that are sent before waiting until they are readable.
const PART: u64 = 1_000_000;
/// Pause between two checks whether an export is complete.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Number of measurements with and without a concurrent export.
const ROUNDS: usize = 3;
/// Events per second of the steady load during an export.
const STEADY: f64 = 3_000.0;

/// File exports: name, aim, format and compression.
const PARQUET: (&str, Option<f64>, &str, &str) =
    ("Parquet with zstd, on the disk", Some(100_000.0), "Parquet", "zstd");
const LINES: (&str, Option<f64>, &str, &str) =
    ("JSON lines with gzip, on the disk", None, "JSONLines", "gzip");

/// The size of the measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Events in the instance.
    pub(crate) events: u64,
    /// Duration of one measurement with an export, and of one without.
    pub(crate) time: Duration,
}

impl Effort {
    pub(crate) fn new(quick: bool) -> Self {
        Self {
            events: if quick { 50_000 } else { 1_000_000 },
            time: Duration::from_secs(if quick { 1 } else { 5 }),
        }
    }
}

/// The results.
#[derive(Debug)]
pub(crate) struct Exports {
    /// Events per export.
    pub(crate) events: u64,
    /// Memory in bytes before the first export, after a start.
    pub(crate) idle: u64,
    pub(crate) exports: Vec<Export>,
    pub(crate) beside: Beside,
}

/// The export of all events to one destination.
#[derive(Debug)]
pub(crate) struct Export {
    pub(crate) name: &'static str,
    /// The aim in events per second.
    pub(crate) aim: Option<f64>,
    /// Events per second, from the request until the run was complete.
    pub(crate) rate: f64,
    /// Processor milliseconds of the service per 1,000 events.
    pub(crate) cpu: f64,
    /// Peak memory in bytes.
    pub(crate) memory: u64,
}

/// The effect of an export on capture.
#[derive(Debug)]
pub(crate) struct Beside {
    pub(crate) alone: Sending,
    pub(crate) exporting: Sending,
}

/// How fast events are accepted.
#[derive(Debug)]
pub(crate) struct Sending {
    /// Acknowledged events per second under full load.
    pub(crate) acknowledged: f64,
    /// Under a steady load: milliseconds from the answer until an event is readable.
    pub(crate) p50: f64,
    pub(crate) p95: f64,
}

/// A destination and its aim.
struct Destination {
    name: &'static str,
    aim: Option<f64>,
    /// The `destination` field of the API.
    value: Value,
}

/// Measures a new instance below `directory`.
pub(crate) async fn run(binary: &Path, directory: &Path, effort: Effort) -> Result<Exports> {
    let files = directory.join("files");
    std::fs::create_dir_all(&files)?;
    let mut weir = Weir::new(binary, directory)?;
    weir.settings = vec![
        ("WEIR_EGRESS_ALLOW", "127.0.0.1/32".to_owned()),
        ("WEIR_LOCAL_EXPORTS", files.to_string_lossy().into_owned()),
    ];
    let mut service = Service::of(weir, 55).await?;
    let events = fill(&service, effort.events).await?;
    // A restart, so that memory from filling is not counted.
    service.stop().await?;
    service.start().await?;
    let idle = process::memory(service.id())?;

    let exports = vec![
        to_files(&service, &files, events, PARQUET).await?,
        to_files(&service, &files, events, LINES).await?,
        to_postgres(&service, events).await?,
        to_http(&service, &directory.join("received.data"), events).await?,
    ];
    let beside = beside(&service, &files, effort).await?;
    service.stop().await?;
    Ok(Exports { events, idle, exports, beside })
}

// The files of each export are deleted before the next one begins: the files of ten
// million events do not fit on many disks together.

async fn to_files(
    service: &Service,
    files: &Path,
    events: u64,
    (name, aim, format, compression): (&'static str, Option<f64>, &str, &str),
) -> Result<Export> {
    let value = local_directory("delivered", format, compression);
    let exported = export(service, Destination { name, aim, value }, events).await?;
    std::fs::remove_dir_all(files.join("delivered"))?;
    Ok(exported)
}

async fn to_postgres(service: &Service, events: u64) -> Result<Export> {
    let postgres = Postgres::start().await;
    let address = postgres.address();
    let value = json!({ "type": "Postgres", "config": {
        "host": address.ip().to_string(), "port": address.port(), "database": "postgres",
        "user": "weir", "password": "correct horse",
    } });
    export(service, Destination { name: "PostgreSQL", aim: Some(30_000.0), value }, events).await
}

async fn to_http(service: &Service, received: &Path, events: u64) -> Result<Export> {
    let (floor, receiver) = floor::start(received)?;
    let url = format!("http://{receiver}/batch/");
    let value = json!({ "type": "HTTP", "config": { "url": url, "token": "bench" } });
    let destination = Destination { name: "HTTP, to the floor", aim: None, value };
    let exported = export(service, destination, events).await?;
    drop(floor);
    std::fs::remove_file(received)?;
    Ok(exported)
}

/// A directory on the machine of the service.
fn local_directory(path: &str, format: &str, compression: &str) -> Value {
    json!({ "type": "LocalDirectory", "config": {
        "path": path, "file_format": format, "compression": compression,
    } })
}

/// Sends events, and waits until they are readable; returns their number. They are sent
/// in parts, because the log of all of them would be larger than the store.
async fn fill(service: &Service, events: u64) -> Result<u64> {
    crate::say(&format!("storing {events} events to export"));
    let source = Arc::new(Source::new(4_000, People::Known(PEOPLE)));
    let mut taken = 0;
    while taken < events {
        let template = Template::batch(&service.instance.project_api_key, Shape::Server, 1_000);
        let most = events.min(taken + PART);
        let work = Work::Fresh(template, Arc::clone(&source));
        // The source continues counting.
        let load = Load { most, ..Load::closed(service.address(), 1, LONGEST, work) };
        taken += send(load).await?.events;
        ensure!(taken == most, "{taken} of {most} events were taken");
        wait_readable(service).await?;
    }
    // An export ends a second before now, and the last events must be before its end.
    sleep(Duration::from_secs(2)).await;
    // The last events, which show that all are readable, count too.
    Ok(taken + service.source.taken())
}

/// The fields of a run that are used.
#[derive(Debug, Deserialize)]
struct Run {
    status: String,
    records_completed: Option<u64>,
    latest_error: Option<String>,
}

/// A started export of all events.
struct Begun {
    /// The path below the project.
    path: String,
    api: Api,
}

impl Begun {
    /// Creates a paused export, and starts a backfill of all events.
    async fn create(service: &Service, destination: &Destination) -> Result<Self> {
        let mut api = service.api().await?;
        let exports = format!("/api/projects/{}/batch_exports/", service.instance.project_id);
        let body = json!({
            "name": destination.name, "interval": "day", "paused": true,
            "destination": destination.value,
        });
        let (status, answer) = api.call("POST", &exports, &body.to_string()).await?;
        let text = String::from_utf8_lossy(&answer);
        ensure!(status == 201, "creating an export was answered with {status}: {text}");
        let export: Value = serde_json::from_slice(&answer)?;
        let path = format!("batch_exports/{}/", export["id"].as_str().unwrap_or_default());
        // One run: all events are within the last hours.
        let now = clock::micros();
        let time = |micros| Timestamp::from_micros(micros).to_string();
        let bounds = json!({
            "start_at": time(now - HOURS * 3_600_000_000), "end_at": time(now - 1_000_000),
        });
        let backfill = format!("/api/projects/{}/{path}backfill/", service.instance.project_id);
        let (status, answer) = api.call("POST", &backfill, &bounds.to_string()).await?;
        let text = String::from_utf8_lossy(&answer);
        ensure!(status == 200, "a backfill was answered with {status}: {text}");
        Ok(Self { path, api })
    }

    /// The newest run; `None`: it has not begun.
    async fn run(&mut self) -> Result<Option<Run>> {
        #[derive(Deserialize)]
        struct Page {
            results: Vec<Run>,
        }
        let page: Page = self.api.of_project(&format!("{}runs/", self.path), "?limit=1").await?;
        Ok(page.results.into_iter().next())
    }

    /// Waits until the run is complete; returns its number of events.
    async fn completed(&mut self) -> Result<u64> {
        let begun = Instant::now();
        while begun.elapsed() < LONGEST {
            if let Some(run) = self.run().await? {
                match run.status.as_str() {
                    "Completed" => return Ok(run.records_completed.unwrap_or(0)),
                    "Starting" | "Running" if run.latest_error.is_none() => {}
                    other => bail!("an export ended as {other}: {:?}", run.latest_error),
                }
            }
            sleep(LOOK_AGAIN).await;
        }
        bail!("an export took longer than {LONGEST:?}")
    }
}

async fn export(service: &Service, destination: Destination, events: u64) -> Result<Export> {
    crate::say(&format!("exporting {events} events: {}", destination.name));
    let process = service.id().to_string();
    let watch = MemoryWatch::start(service.id());
    let (began, before) = (Instant::now(), process::cpu(&process)?);
    let sent = Begun::create(service, &destination).await?.completed().await?;
    let took = began.elapsed();
    let used = process::cpu(&process)?.saturating_sub(before);
    ensure!(sent == events, "{} exported {sent} of {events} events", destination.name);
    let export = Export {
        name: destination.name,
        aim: destination.aim,
        rate: events as f64 / took.as_secs_f64(),
        cpu: used.as_secs_f64() * 1e6 / events as f64,
        memory: watch.highest(),
    };
    // Printed, so that it is not lost if a later export fails.
    crate::say(&format!("{:.0} events/s, at most {} MB", export.rate, export.memory / 1_000_000));
    Ok(export)
}

/// Measures capture with and without a concurrent export, alternating.
async fn beside(service: &Service, files: &Path, effort: Effort) -> Result<Beside> {
    let (mut alone, mut exporting) = (Rounds::default(), Rounds::default());
    for round in 0..ROUNDS {
        crate::say(&format!("events beside an export, {} of {ROUNDS}", round + 1));
        alone.round(service, effort, round as u64).await?;
        let is_over = AtomicBool::new(false);
        let sending = async {
            let turned = exporting.round(service, effort, (ROUNDS + round) as u64).await;
            is_over.store(true, Relaxed);
            turned
        };
        tokio::try_join!(sending, export_until(service, &is_over))?;
        std::fs::remove_dir_all(files.join("beside"))?;
        wait_readable(service).await?;
    }
    Ok(Beside { alone: alone.median(), exporting: exporting.median() })
}

/// Runs exports until `is_over`, and completes the last one, so that none runs during the
/// next measurement.
async fn export_until(service: &Service, is_over: &AtomicBool) -> Result<()> {
    let value = local_directory("beside", "Parquet", "zstd");
    let destination = Destination { name: "Beside", aim: None, value };
    while !is_over.load(Relaxed) {
        Begun::create(service, &destination).await?.completed().await?;
    }
    Ok(())
}

/// Figures of each measurement.
#[derive(Debug, Default)]
struct Rounds {
    acknowledged: Vec<f64>,
    p50: Vec<f64>,
    p95: Vec<f64>,
}

impl Rounds {
    async fn round(&mut self, service: &Service, effort: Effort, seed: u64) -> Result<()> {
        let template = Template::batch(&service.instance.project_api_key, Shape::Server, BATCH);
        let source = Arc::new(Source::new(5_000 + seed, People::Known(PEOPLE)));
        let work = Work::Fresh(template, source);
        let outcome = send(Load::closed(service.address(), 8, effort.time, work)).await?;
        self.acknowledged.push(outcome.rate());
        wait_readable(service).await?;
        let fresh = freshness(service, STEADY, 1.0, effort.time).await?;
        self.p50.push(fresh.p50);
        self.p95.push(fresh.p95);
        Ok(())
    }

    fn median(&self) -> Sending {
        Sending {
            acknowledged: median(&self.acknowledged),
            p50: median(&self.p50),
            p95: median(&self.p95),
        }
    }
}
