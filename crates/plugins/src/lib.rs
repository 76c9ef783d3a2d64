//! Plugins that run: transformations, destinations, scheduled tasks and jobs
//! (`docs/adr/0009-plugins.md`).
//!
//! ```text
//! store (configs, sources) -> registry -> transformations <- ingestion
//!                                      -> deliveries      <- stored events
//!                                      -> tasks and jobs  <- clock, store
//!                        all of them <-> children of the sandbox, steps in Rust
//! ```
//!
//! What belongs here: what is enabled, when it is run, what it may ask for, what is
//! told of it, and where its code comes from. What does not: the sandbox itself
//! (`weir-sandbox`), languages (`weir-transpile`), what Weir ships
//! (`weir-catalogue`), the rules of records and configs (`weir-service`).
//!
//! Invariant: whatever a plugin does, no event is lost but one that it drops, which
//! is told with its name. Invariant: ingestion waits for transformations alone, and
//! for those no longer than their limits.

mod allowance;
mod clockwork;
mod code;
mod deliveries;
mod dry_run;
mod host;
mod host_calls;
mod looking;
mod metrics;
mod places;
mod registry;
mod report;
mod schedule;
mod shape;
mod transformations;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use weir_catalogue::Means;
use weir_egress::Egress;
use weir_ingest::location::Locations;
use weir_model::PluginConfigId;
use weir_sandbox::{Pool, PoolSettings};
use weir_store::Store;
use weir_store::plugin_runtime::registry::enabled_projects;

use looking::{LOOKERS, Looking};

pub use code::Origins;
pub use host::{Attachment, Captured, OpenedConfig, PluginsHost};
pub use metrics::{Children, Effect, Ending, Metrics};
pub use weir_sandbox::Limits;

/// The word that makes this program a child.
pub const WORKER: &str = "plugin-worker";
/// Children for what is run in the background.
pub(crate) const WORKERS: usize = 4;
/// Ticks between two times at which what is kept in memory is tidied.
const TIDYING: u32 = 60;

/// What plugins work with.
pub struct Surroundings {
    /// Where everything is stored.
    pub store: Store,
    /// The way to addresses that members enter.
    pub egress: Egress,
    /// The service around.
    pub host: Arc<dyn PluginsHost>,
    /// Where addresses are, if the operator has supplied a database.
    pub locations: Option<Arc<Locations>>,
    /// The address of the service, as scripts see it.
    pub site_url: String,
    /// What tests choose otherwise.
    pub settings: Settings,
}

/// Children, hosts, numbers and times.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The program that becomes a child.
    pub program: PathBuf,
    /// What makes it do so.
    pub arguments: Vec<OsString>,
    /// Where code is fetched from.
    pub origins: Origins,
    /// Between two looks at what is due.
    pub tick: Duration,
    /// Children for transformations.
    pub step_children: usize,
    /// What scripts may use.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            // This program, also when its file was replaced since it was started.
            program: PathBuf::from("/proc/self/exe"),
            arguments: vec![OsString::from(WORKER)],
            origins: Origins::default(),
            tick: Duration::from_secs(1),
            // As many as there are partitions that can use them.
            step_children: cores.clamp(1, usize::from(weir_store::events::PARTITIONS)),
            limits: Limits::default(),
        }
    }
}

/// Plugins that run. Clones share them.
#[derive(Clone)]
pub struct Plugins {
    shared: Arc<Shared>,
    tasks: Arc<Mutex<Tasks>>,
}

/// What goes on.
#[derive(Default)]
struct Tasks {
    /// Until deliveries are closed.
    work: JoinSet<()>,
    /// Until the end.
    upkeep: JoinSet<()>,
}

/// What everything here shares.
pub(crate) struct Shared {
    store: Store,
    egress: Egress,
    host: Arc<dyn PluginsHost>,
    locations: Option<Arc<Locations>>,
    means: Means,
    site_url: String,
    settings: Settings,
    registry: registry::Registry,
    report: report::Report,
    metrics: Metrics,
    belongings: Mutex<HashMap<PluginConfigId, Arc<host_calls::Belongings>>>,
    /// Which child works for a config in the background.
    lanes: Mutex<HashMap<PluginConfigId, usize>>,
    /// Children for transformations.
    steps: Pool,
    /// Children for everything else.
    work: Pool,
    looking: Looking,
    stop: watch::Sender<bool>,
}

impl Shared {
    /// Returns when deliveries, tasks and jobs are to end.
    async fn stopped(&self) {
        let mut stop = self.stop.subscribe();
        // The sender is here.
        let _ = stop.wait_for(|stop| *stop).await;
    }

    fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// The child that works for a config in the background, the same as long as the
    /// config is enabled: the one that works for the fewest.
    fn lane_of(&self, config: PluginConfigId) -> usize {
        let mut lanes = self.lanes.lock();
        if let Some(lane) = lanes.get(&config) {
            return *lane;
        }
        let load = |lane: &usize| lanes.values().filter(|taken| *taken == lane).count();
        let lane = (0..WORKERS).min_by_key(load).unwrap_or(0);
        lanes.insert(config, lane);
        lane
    }

    /// Writes what is told of configs, as long as there is something.
    async fn keep_up(&self) {
        let mut tick = tokio::time::interval(self.settings.tick);
        let mut ticks = 0_u32;
        loop {
            tick.tick().await;
            ticks = ticks.wrapping_add(1);
            if ticks.is_multiple_of(TIDYING) {
                self.report.tell_metrics(self.host.now());
                self.forget_belongings();
                self.lanes.lock().retain(|config, _| self.registry.config(*config).is_some());
            }
            self.report.flush(&self.store, self.host.now()).await;
        }
    }
}

impl Plugins {
    /// Plugins of which nothing runs yet.
    #[must_use]
    pub fn new(surroundings: Surroundings) -> Self {
        let Surroundings { store, egress, host, locations, site_url, settings } = surroundings;
        let pool = |children| {
            Pool::new(PoolSettings {
                program: settings.program.clone(),
                arguments: settings.arguments.clone(),
                children,
                limits: settings.limits.clone(),
            })
        };
        let shared = Shared {
            means: places::means(locations.as_ref()),
            registry: registry::Registry::default(),
            report: report::Report::default(),
            metrics: Metrics::default(),
            belongings: Mutex::default(),
            lanes: Mutex::default(),
            steps: pool(settings.step_children),
            work: pool(WORKERS + LOOKERS),
            looking: Looking::default(),
            stop: watch::Sender::new(false),
            store,
            egress,
            host,
            locations,
            site_url,
            settings,
        };
        Self { shared: Arc::new(shared), tasks: Arc::default() }
    }

    /// Begins to read what is enabled, and keeps it fresh on this runtime. From then on
    /// events are transformed: those of a project that is not ready yet wait in the log.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn start(&self, runtime: &Handle) -> Result<(), weir_store::Error> {
        // Before reading: no change is missed.
        let changes = self.shared.store.plugin_changes();
        let projects = enabled_projects(&self.shared.store).await?;
        self.shared.registry.expect(projects);
        let (following, keeping) = (Arc::clone(&self.shared), Arc::clone(&self.shared));
        let mut tasks = self.tasks.lock();
        tasks.upkeep.spawn_on(async move { following.follow_changes(changes).await }, runtime);
        tasks.upkeep.spawn_on(async move { keeping.keep_up().await }, runtime);
        Ok(())
    }

    /// Begins to deliver, and to run tasks and jobs, on this runtime.
    pub fn begin(&self, runtime: &Handle) {
        let mut tasks = self.tasks.lock();
        tasks.work.spawn_on(Arc::clone(&self.shared).deliver(), runtime);
        tasks.work.spawn_on(Arc::clone(&self.shared).run_by_the_clock(), runtime);
    }

    /// What was done, for the operator.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// The processes that run scripts.
    #[must_use]
    pub fn children(&self) -> Children {
        let pools = [&self.shared.steps, &self.shared.work];
        Children {
            alive: pools.iter().map(|pool| pool.alive()).sum(),
            replaced: pools.iter().map(|pool| pool.take_replaced()).sum(),
        }
    }

    /// Ends deliveries, tasks and jobs: waits so long at most for those that go on.
    /// Events are transformed until [`Plugins::end`].
    pub async fn close(&self, patience: Duration) {
        self.shared.stop.send_replace(true);
        let mut work = std::mem::take(&mut self.tasks.lock().work);
        let all = async { while work.join_next().await.is_some() {} };
        if tokio::time::timeout(patience, all).await.is_err() {
            tracing::warn!("stopped while plugins were running; the next start goes on");
            work.shutdown().await;
        }
    }

    /// Writes what is left to be told, and ends the children: when ingestion has
    /// ended.
    pub async fn end(&self) {
        let mut upkeep = std::mem::take(&mut self.tasks.lock().upkeep);
        upkeep.shutdown().await;
        self.shared.report.flush(&self.shared.store, self.shared.host.now()).await;
        self.shared.steps.shutdown().await;
        self.shared.work.shutdown().await;
    }
}
