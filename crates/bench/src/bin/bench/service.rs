//! The service under test.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};
use weir_bench::api::Api;
use weir_bench::events::{People, Source};
use weir_bench::process::{self, Process};
use weir_bench::weir::{Instance, Weir};

/// Timeout of a start, also on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A running service.
pub(crate) struct Service {
    pub(crate) weir: Weir,
    pub(crate) instance: Instance,
    pub(crate) source: Arc<Source>,
    process: Process,
}

impl Service {
    /// Creates and starts an instance below `directory`.
    pub(crate) async fn create(binary: &Path, directory: &Path, seed: u64) -> Result<Self> {
        Self::of(Weir::new(binary, directory)?, seed).await
    }

    /// Creates and starts an instance with these settings.
    pub(crate) async fn of(weir: Weir, seed: u64) -> Result<Self> {
        let instance = weir.set_up()?;
        let (process, _) = weir.start_ready(PATIENCE).await?;
        let source = Arc::new(Source::new(seed, People::New));
        Ok(Self { weir, instance, source, process })
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.weir.address
    }

    /// Opens a connection to the management API. The service closes idle connections, so
    /// open a new one after waiting.
    pub(crate) async fn api(&self) -> Result<Api> {
        Api::open(self.address(), &self.instance).await
    }

    /// Stops it like an operator; returns the duration.
    pub(crate) async fn stop(&mut self) -> Result<Duration> {
        let began = tokio::time::Instant::now();
        self.process.stop(PATIENCE).await?;
        Ok(began.elapsed())
    }

    /// Kills it without warning, as in a power cut.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.process.kill()
    }

    /// Starts it again; returns the time until it was ready.
    pub(crate) async fn start(&mut self) -> Result<Duration> {
        let (process, took) = self.weir.start_ready(PATIENCE).await?;
        self.process = process;
        Ok(took)
    }
}

/// Records the peak memory of a process; stops when dropped.
pub(crate) struct MemoryWatch {
    highest: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl MemoryWatch {
    /// Reads the memory once a second: reading it costs the process time.
    pub(crate) fn start(process: u32) -> Self {
        let highest = Arc::new(AtomicU64::new(0));
        let shared = Arc::clone(&highest);
        let task = tokio::spawn(async move {
            let mut tick = interval(Duration::from_secs(1));
            tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while let Ok(now) = process::memory(process) {
                shared.fetch_max(now, Ordering::Relaxed);
                tick.tick().await;
            }
        });
        Self { highest, task }
    }

    /// The peak, in bytes.
    pub(crate) fn highest(&self) -> u64 {
        self.highest.load(Ordering::Relaxed)
    }
}

impl Drop for MemoryWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}
