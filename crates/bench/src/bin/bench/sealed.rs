//! An instance whose events are all in files: sealing, disk usage, start time, memory,
//! reading.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use weir_bench::process;
use weir_bench::stats::median;

use crate::management::{self, Call};
use crate::service::MemoryWatch;
use crate::volume;

/// How long an idle service is observed.
const SETTLED: Duration = Duration::from_secs(20);
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

/// Fills a new instance, seals it and measures it.
pub(crate) async fn run(binary: &Path, directory: &Path, events: u64) -> Result<Sealed> {
    let (full, mut service) = volume::full(binary, directory, events, 1).await?;
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
    let calls = management::run(&service, Duration::from_secs(5)).await?;
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
