//! The service under test, while it runs.

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

/// For a start on a machine that does other things too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A running service.
pub(crate) struct Service {
    pub(crate) weir: Weir,
    pub(crate) instance: Instance,
    pub(crate) source: Arc<Source>,
    process: Process,
}

impl Service {
    /// A new instance below `directory`, running.
    pub(crate) async fn create(binary: &Path, directory: &Path, seed: u64) -> Result<Self> {
        Self::of(Weir::new(binary, directory)?, seed).await
    }

    /// A new instance with these settings, running.
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

    /// The management API. The service closes a connection that is idle for a while:
    /// whoever has waited opens another one.
    pub(crate) async fn api(&self) -> Result<Api> {
        Api::open(self.address(), &self.instance).await
    }

    /// Stops as an operator does; tells how long it took.
    pub(crate) async fn stop(&mut self) -> Result<Duration> {
        let began = tokio::time::Instant::now();
        self.process.stop(PATIENCE).await?;
        Ok(began.elapsed())
    }

    /// Ends it like a power cut does for a process.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.process.kill()
    }

    /// Starts it again; tells how long it took to be ready.
    pub(crate) async fn start(&mut self) -> Result<Duration> {
        let (process, took) = self.weir.start_ready(PATIENCE).await?;
        self.process = process;
        Ok(took)
    }
}

/// Watches the memory of a process; stops when dropped.
pub(crate) struct MemoryWatch {
    highest: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl MemoryWatch {
    /// Looks once a second: looking costs the process some time itself.
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

    /// The most that was seen, in bytes.
    pub(crate) fn highest(&self) -> u64 {
        self.highest.load(Ordering::Relaxed)
    }
}

impl Drop for MemoryWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}
