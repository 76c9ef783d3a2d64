//! An instance whose events are all in files: sealing, disk usage, start time, memory,
//! reading.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use weir_bench::api::request;
use weir_bench::client::Connection;
use weir_bench::process;
use weir_bench::stats::median;

use crate::management::{self, Call, GROUP};
use crate::rounds::wait_readable;
use crate::service::{MemoryWatch, Service};
use crate::volume;

/// How long an idle service is observed.
const SETTLED: Duration = Duration::from_secs(20);
/// Members of a group, each with two events.
const MEMBERS: usize = 5_000;
/// Events of members in one request.
const BATCH: usize = 500;
/// Starts that are measured.
const STARTS: usize = 5;

/// The results.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub(crate) events: u64,
    /// Events per second that were stored.
    pub(crate) stored: f64,
    /// Bytes of the events as JSON.
    pub(crate) raw: u64,
    /// Bytes of the store before sealing, and of store and files after it.
    pub(crate) before: u64,
    pub(crate) store: u64,
    pub(crate) segments: u64,
    pub(crate) runs: u64,
    /// Seconds that `weir seal` took.
    pub(crate) sealing: f64,
    /// Milliseconds of a start.
    pub(crate) start: f64,
    /// Memory in bytes: idle, and while reading.
    pub(crate) idle: u64,
    pub(crate) reading: u64,
    pub(crate) calls: Vec<Call>,
}

/// Stores events of some thousand persons within one group.
async fn send_members(service: &Service) -> Result<()> {
    let instance = &service.instance;
    let key = &instance.project_api_key;
    let mut connection = Connection::open(service.address()).await?;
    for batch in 0..2 * MEMBERS / BATCH {
        let events = (0..BATCH).map(|n| {
            let id = (batch * BATCH + n) % MEMBERS;
            json!({"event": "used", "distinct_id": format!("member-{id}"),
                   "properties": {"$groups": {"company": GROUP}}})
        });
        let events: Vec<_> = events.collect();
        let body = json!({"api_key": key, "batch": events}).to_string();
        let answer = connection.send(&request(instance, "POST", "/batch/", &body)).await?;
        ensure!(answer.status == 200, "events of members were answered with {}", answer.status);
    }
    wait_readable(service).await
}

/// Fills a new instance, seals it and measures it.
pub(crate) async fn run(binary: &Path, directory: &Path, events: u64) -> Result<Sealed> {
    let (full, mut service) = volume::full(binary, directory, events, 1).await?;
    send_members(&service).await?;
    service.stop().await?;
    crate::say("sealing");
    let sealing = service.weir.seal()?;
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        starts.push(service.start().await?.as_secs_f64() * 1e3);
        service.stop().await?;
    }
    service.start().await?;
    let watch = MemoryWatch::start(service.id());
    tokio::time::sleep(SETTLED).await;
    let idle = watch.highest();
    let time = Duration::from_secs(5);
    let mut calls = management::run(&service, time).await?;
    calls.extend(management::counts(&service, time).await?);
    let reading = watch.highest();
    drop(watch);
    service.stop().await?;
    let data = service.weir.data();
    let runs = process::disk_usage(&data.join("segments/uuids"))?;
    Ok(Sealed {
        events: full.events,
        stored: full.rate,
        raw: full.raw,
        before: full.store,
        store: process::disk_usage(&data.join("store"))?,
        segments: process::disk_usage(&data.join("segments"))? - runs,
        runs,
        sealing: sealing.as_secs_f64(),
        start: median(&starts),
        idle,
        reading,
        calls,
    })
}
