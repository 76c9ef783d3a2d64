//! An instance with many events: disk usage, start time, memory.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;
use weir_bench::events::{Shape, Template};
use weir_bench::load::{Load, Work, send};
use weir_bench::process;
use weir_bench::stats::median;

use crate::rounds::wait_readable;
use crate::service::{MemoryWatch, Service};

/// Maximum time for filling.
const LONGEST: Duration = Duration::from_secs(1800);

/// How long an idle service is observed.
const SETTLED: Duration = Duration::from_secs(3);

/// Start times in milliseconds.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    /// After an orderly stop.
    pub(crate) stopped: f64,
    /// After `kill -9` under load.
    pub(crate) killed: f64,
}

/// Results of an instance with many events.
#[derive(Debug)]
pub(crate) struct Volume {
    pub(crate) events: u64,
    /// Events per second, from the first request until all were readable.
    pub(crate) rate: f64,
    /// Bytes of the events as JSON.
    pub(crate) raw: u64,
    /// Bytes on disk right after the load, before compaction.
    pub(crate) store_loaded: u64,
    /// Bytes on disk after a stop and a start.
    pub(crate) store: u64,
    pub(crate) log: u64,
    pub(crate) memory: u64,
    pub(crate) stop: f64,
    pub(crate) starts: Starts,
}

/// Start times of an instance without events, and its memory in bytes after the last
/// start.
pub(crate) async fn empty(service: &mut Service, starts: usize) -> Result<(Starts, u64)> {
    crate::say("starting, empty");
    let stopped = stop_and_start(service, starts).await?;
    let mut killed = Vec::new();
    for _ in 0..starts {
        service.kill()?;
        killed.push(millis(service.start().await?));
    }
    // Memory of an idle service, some time after its start.
    let watch = MemoryWatch::start(service.id());
    tokio::time::sleep(SETTLED).await;
    let memory = watch.highest();
    Ok((Starts { stopped, killed: median(&killed) }, memory))
}

/// Fills a new instance and measures it.
pub(crate) async fn full(
    binary: &Path,
    directory: &Path,
    events: u64,
    starts: usize,
) -> Result<(Volume, Service)> {
    let mut service = Service::create(binary, directory, 77).await?;
    let watch = MemoryWatch::start(service.id());
    crate::say(&format!("storing {events} events"));
    let began = Instant::now();
    let outcome = send(load(&service, events)).await?;
    wait_readable(&service).await?;
    let took = began.elapsed();
    let memory = watch.highest();
    drop(watch);
    let store = service.weir.data().join("store");
    let store_loaded = process::disk_usage(&store)?;

    crate::say("starting, full");
    let stop = millis(service.stop().await?);
    let mut stopped = vec![millis(service.start().await?)];
    for _ in 1..starts {
        service.stop().await?;
        stopped.push(millis(service.start().await?));
    }
    let stored = service.source.taken();
    let volume = Volume {
        events: stored,
        rate: stored as f64 / took.as_secs_f64(),
        raw: outcome.raw_bytes * stored / outcome.events.max(1),
        store_loaded,
        store: process::disk_usage(&store)?,
        log: process::disk_usage(&service.weir.data().join("log"))?,
        memory,
        stop,
        starts: Starts {
            stopped: median(&stopped),
            killed: after_kill(&mut service, starts).await?,
        },
    };
    Ok((volume, service))
}

fn load(service: &Service, more: u64) -> Load {
    let template = Template::batch(&service.instance.project_api_key, Shape::Server, 1000);
    let work = Work::Fresh(template, std::sync::Arc::clone(&service.source));
    let most = service.source.taken() + more;
    Load { most, ..Load::closed(service.address(), 4, LONGEST, work) }
}

/// Starts after a kill directly after the last of 20,000 answers, so that some events are
/// not applied yet.
async fn after_kill(service: &mut Service, starts: usize) -> Result<f64> {
    let mut took = Vec::new();
    for _ in 0..starts {
        send(load(service, 20_000)).await?;
        service.kill()?;
        took.push(millis(service.start().await?));
        wait_readable(service).await?;
    }
    Ok(median(&took))
}

async fn stop_and_start(service: &mut Service, times: usize) -> Result<f64> {
    let mut took = Vec::new();
    for _ in 0..times {
        service.stop().await?;
        took.push(millis(service.start().await?));
    }
    Ok(median(&took))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
