//! Running plugins: transformations, destinations, scheduled tasks and jobs
//! (`docs/adr/0009-plugins.md`).
//!
//! ```text
//! store (configs, sources) -> registry -> transformations <- ingestion
//!                                      -> deliveries      <- stored events
//!                                      -> tasks and jobs  <- clock, store
//!                        all of them <-> children of the sandbox, steps in Rust
//! ```
//!
//! What belongs here: which plugins are enabled, when they run, what they may ask for,
//! what is reported about them, and where their code comes from. What does not: the
//! sandbox (`weir-sandbox`), languages (`weir-transpile`), the plugins that Weir ships
//! (`weir-catalogue`), the rules of records and configs (`weir-service`).
//!
//! Invariant: no plugin loses an event, except one that it drops; the drop is recorded
//! with the name of the plugin. Invariant: ingestion waits only for transformations, and
//! for those no longer than their limits.

mod allowance;
mod code;
mod deliveries;
mod dry_run;
mod host_calls;
mod inspection_slots;
mod locations;
mod metrics;
mod registry;
mod report;
mod schedule;
mod scheduler;
mod services;
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
use weir_catalogue::StepDependencies;
use weir_egress::Egress;
use weir_ingest::location::Locations;
use weir_model::{PluginConfigId, ProjectId};
use weir_sandbox::{Pool, PoolSettings};
use weir_store::Store;
use weir_store::events::EventBounds;
use weir_store::plugin_runtime::registry::enabled_projects;

use inspection_slots::{INSPECTORS, InspectionSlots};

pub use code::Origins;
pub use metrics::{Children, Effect, Ending, Metrics};
pub use services::{Attachment, Captured, OpenedConfig, PluginServices};
pub use weir_sandbox::Limits;

/// The command-line argument that makes this program a child process of the sandbox.
pub const WORKER: &str = "plugin-worker";
/// Child processes for background work.
pub(crate) const WORKERS: usize = 4;
/// Ticks between two cleanups of memory.
const TIDYING: u32 = 60;

/// The dependencies of plugins.
pub struct Dependencies {
    /// The store with configs, sources and events.
    pub store: Store,
    /// Outgoing connections to addresses that members enter.
    pub egress: Egress,
    /// The service as plugins use it.
    pub services: Arc<dyn PluginServices>,
    /// The `GeoIP` database, if the operator has supplied one.
    pub locations: Option<Arc<Locations>>,
    /// The public address of the service, as scripts see it.
    pub site_url: String,
    /// Settings that tests change.
    pub settings: Settings,
}

/// Child processes, hosts, numbers and times.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The program that is started as a child process.
    pub program: PathBuf,
    /// The arguments that make it a child process.
    pub arguments: Vec<OsString>,
    /// The hosts that code is fetched from.
    pub origins: Origins,
    /// Time between two checks for due work.
    pub tick: Duration,
    /// Number of child processes for transformations.
    pub step_children: usize,
    /// What scripts may use of time and memory.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            // This program, even if its file was replaced since the start.
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

/// The running plugins. Clones share one state.
#[derive(Clone)]
pub struct Plugins {
    shared: Arc<Shared>,
    tasks: Arc<Mutex<Tasks>>,
}

/// Running tasks.
#[derive(Default)]
struct Tasks {
    /// Tasks that run until deliveries are closed.
    work: JoinSet<()>,
    /// Tasks that run until the end.
    upkeep: JoinSet<()>,
}

/// State that all modules of this crate share.
pub(crate) struct Shared {
    store: Store,
    egress: Egress,
    services: Arc<dyn PluginServices>,
    locations: Option<Arc<Locations>>,
    step_dependencies: StepDependencies,
    site_url: String,
    settings: Settings,
    registry: registry::Registry,
    report: report::Report,
    metrics: Metrics,
    belongings: Mutex<HashMap<PluginConfigId, Arc<host_calls::ConfigState>>>,
    /// The lane of each config in the background pool.
    lanes: Mutex<HashMap<PluginConfigId, usize>>,
    /// Child processes for transformations.
    steps: Pool,
    /// Child processes for everything else.
    work: Pool,
    inspections: InspectionSlots,
    stop: watch::Sender<bool>,
}

impl Shared {
    /// Returns when deliveries, tasks and jobs must end.
    async fn stopped(&self) {
        let mut stop = self.stop.subscribe();
        // The sender is a field of the same struct, so this cannot fail.
        let _ = stop.wait_for(|stop| *stop).await;
    }

    fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// The lane of a config in the background pool. It stays the same while the config is
    /// enabled. New configs get the lane with the fewest configs.
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

    /// Writes pending reports about configs until there are none.
    async fn keep_up(&self) {
        let mut tick = tokio::time::interval(self.settings.tick);
        let mut ticks = 0_u32;
        loop {
            tick.tick().await;
            ticks = ticks.wrapping_add(1);
            if ticks.is_multiple_of(TIDYING) {
                self.report.update_metrics(self.services.now());
                self.forget_belongings();
                self.lanes.lock().retain(|config, _| self.registry.config(*config).is_some());
            }
            self.report.flush(&self.store, self.services.now()).await;
        }
    }
}

impl Plugins {
    /// Creates the plugins; nothing runs yet.
    pub fn new(dependencies: Dependencies) -> Self {
        let Dependencies { store, egress, services, locations, site_url, settings } = dependencies;
        let pool = |children| {
            Pool::new(PoolSettings {
                program: settings.program.clone(),
                arguments: settings.arguments.clone(),
                children,
                limits: settings.limits.clone(),
            })
        };
        let shared = Shared {
            step_dependencies: locations::step_dependencies(locations.as_ref()),
            registry: registry::Registry::default(),
            report: report::Report::default(),
            metrics: Metrics::default(),
            belongings: Mutex::default(),
            lanes: Mutex::default(),
            steps: pool(settings.step_children),
            work: pool(WORKERS + INSPECTORS),
            inspections: InspectionSlots::default(),
            stop: watch::Sender::new(false),
            store,
            egress,
            services,
            locations,
            site_url,
            settings,
        };
        Self { shared: Arc::new(shared), tasks: Arc::default() }
    }

    /// Reads the enabled configs and keeps them up to date on this runtime. From then on
    /// events are transformed: events of a project that is not ready yet wait in the log.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn start(&self, runtime: &Handle) -> Result<(), weir_store::Error> {
        // Subscribed before reading, so that no change is missed.
        let changes = self.shared.store.plugin_changes();
        let projects = enabled_projects(&self.shared.store).await?;
        self.shared.registry.expect(projects);
        let (following, keeping) = (Arc::clone(&self.shared), Arc::clone(&self.shared));
        let mut tasks = self.tasks.lock();
        tasks.upkeep.spawn_on(async move { following.follow_changes(changes).await }, runtime);
        tasks.upkeep.spawn_on(async move { keeping.keep_up().await }, runtime);
        Ok(())
    }

    /// Starts deliveries, tasks and jobs on this runtime.
    pub fn begin(&self, runtime: &Handle) {
        let mut tasks = self.tasks.lock();
        tasks.work.spawn_on(Arc::clone(&self.shared).deliver(), runtime);
        tasks.work.spawn_on(Arc::clone(&self.shared).run_by_the_clock(), runtime);
    }

    /// Whether a config runs: it is enabled, and its code is compiled. Events that are
    /// accepted from now on pass it.
    pub fn runs(&self, config: PluginConfigId) -> bool {
        self.shared.registry.config(config).is_some()
    }

    /// The events of a project that its enabled destinations have not received yet.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn undelivered(
        &self,
        project: ProjectId,
    ) -> Result<Vec<EventBounds>, weir_store::Error> {
        self.shared.undelivered(project).await
    }

    /// Counts of what plugins did, for the operator.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// The processes that run scripts.
    pub fn children(&self) -> Children {
        let pools = [&self.shared.steps, &self.shared.work];
        Children {
            alive: pools.iter().map(|pool| pool.alive()).sum(),
            replaced: pools.iter().map(|pool| pool.take_replaced()).sum(),
        }
    }

    /// Ends deliveries, tasks and jobs; waits for running ones no longer than `patience`.
    /// Events are transformed until [`Plugins::end`].
    pub async fn close(&self, patience: Duration) {
        self.shared.stop.send_replace(true);
        let mut work = std::mem::take(&mut self.tasks.lock().work);
        let all = async { while work.join_next().await.is_some() {} };
        if tokio::time::timeout(patience, all).await.is_err() {
            tracing::warn!("stopped while plugins were running; the next start continues");
            work.shutdown().await;
        }
    }

    /// Writes pending reports and ends the child processes. Call it when ingestion has
    /// ended.
    pub async fn end(&self) {
        let mut upkeep = std::mem::take(&mut self.tasks.lock().upkeep);
        upkeep.shutdown().await;
        self.shared.report.flush(&self.shared.store, self.shared.services.now()).await;
        self.shared.steps.shutdown().await;
        self.shared.work.shutdown().await;
    }
}
