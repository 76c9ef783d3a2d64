//! The enabled configs of each project, ready to run.
//!
//! What belongs here: keeping them up to date, and reporting faults. What does not:
//! running them (`transformations`, `deliveries`, `scheduler`).
//!
//! An unchanged config stays the same value and keeps its state (consecutive failures,
//! allowance) when other configs change.

pub(crate) mod load;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver};
use tokio::sync::watch;
use uuid::Uuid;
use weir_catalogue::Step;
use weir_model::plugin_configs::{LogLevel, LogSource, OnFailure};
use weir_model::{PluginConfigId, PluginId, ProjectId};
use weir_sandbox::{Program, ScriptError, Task};
use weir_store::Result;
use weir_store::plugin_configs::ConfigRow;
use weir_store::plugin_runtime::registry::ConfigWithSource;
use weir_store::plugin_runtime::{PluginChange, registry};
use weir_store::plugins::PluginRow;
use weir_transpile::Script;

use crate::allowance::Allowance;
use crate::schedule;
use crate::{Shared, WORKERS};
use load::Sources;

/// Projects that are read concurrently at the start.
const PROJECTS_PER_READ: usize = 32;
/// Time between two complete reads, independent of notifications.
const READ_EVERY: Duration = Duration::from_secs(60);
/// Time until a failed read is retried. It doubles with each failure.
const AGAIN: Duration = Duration::from_millis(500);
/// Attempts to compile a source while the machine fails: about half a minute in total.
const COMPILE_TRIES: u32 = 7;

/// The code of a config.
pub(crate) enum Code {
    /// A step in Rust.
    Native(Box<dyn Step>),
    Script(Box<Loaded>),
    /// No server code: nothing runs.
    Nothing,
    /// It cannot be run.
    Broken,
    /// Its settings could not be opened. A later attempt may succeed.
    Unopened,
}

/// A script, ready to be sent to a child process.
pub(crate) struct Loaded {
    /// The program as a transformation, without grants for calls that wait for others.
    pub(crate) step: Arc<Program>,
    /// The program for background work.
    pub(crate) worker: Arc<Program>,
    /// Maps lines of the compiled code to lines of the source.
    pub(crate) script: Arc<Script>,
}

impl Loaded {
    /// An error of the script for its author: the message and the line of the source.
    pub(crate) fn message(&self, error: &ScriptError) -> String {
        message(error, &self.script)
    }
}

/// An error for its author: the line of the source and the message, in the same form as
/// faults of sources.
pub(crate) fn message(error: &ScriptError, script: &Script) -> String {
    let Some(file) = &error.file else { return error.to_string() };
    let line = error.line.map(|line| script.source_line(line));
    match (line, error.column) {
        (Some(line), Some(column)) => format!("{file}:{line}:{column}: {error}"),
        (Some(line), None) => format!("{file}:{line}: {error}"),
        (None, _) => format!("{file}: {error}"),
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ConfigCapabilities {
    /// Changes events before they are stored.
    pub(crate) transforms: bool,
    pub(crate) on_event: bool,
    pub(crate) compose_webhook: bool,
    pub(crate) export_events: bool,
    pub(crate) tasks: Vec<Task>,
    /// Events that it captures are historical.
    pub(crate) imports: bool,
}

impl ConfigCapabilities {
    /// Whether it receives stored events.
    pub(crate) fn delivers(&self) -> bool {
        self.on_event || self.compose_webhook || self.export_events
    }
}

/// An enabled config.
pub(crate) struct Active {
    pub(crate) row: ConfigRow,
    /// The display name.
    pub(crate) name: String,
    pub(crate) code: Code,
    pub(crate) capabilities: ConfigCapabilities,
    /// What happens to events if the config cannot run.
    pub(crate) on_failure: OnFailure,
    /// The revision of its plugin.
    revision: Uuid,
    /// Compiling took too long: the source is compiled again at this time.
    until: Option<Duration>,
    pub(crate) state: Mutex<State>,
}

/// Run-time state of an enabled config.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) allowance: Allowance,
    pub(crate) failed_in_a_row: u32,
    /// It is being disabled.
    pub(crate) is_off: bool,
}

impl Active {
    pub(crate) fn id(&self) -> PluginConfigId {
        self.row.id
    }

    pub(crate) fn project(&self) -> ProjectId {
        self.row.project
    }

    pub(crate) fn script(&self) -> Option<&Loaded> {
        match &self.code {
            Code::Script(loaded) => Some(loaded),
            Code::Native(_) | Code::Nothing | Code::Broken | Code::Unopened => None,
        }
    }

    /// Whether it receives stored events, or may do so again when its code or its settings
    /// are readable.
    pub(crate) fn may_deliver(&self) -> bool {
        match self.code {
            Code::Native(_) | Code::Script(_) | Code::Nothing => self.capabilities.delivers(),
            Code::Broken | Code::Unopened => true,
        }
    }

    /// Whether no event may be stored without this step.
    pub(crate) fn must_run(&self) -> bool {
        self.on_failure == OnFailure::HoldThenDrop
    }

    /// Whether preparing this config and plugin now would give the same result.
    fn is_of(&self, config: &ConfigRow, plugin: &PluginRow, uptime: Duration) -> bool {
        self.row.revision == config.revision
            && self.revision == plugin.revision
            && self.until.is_none_or(|until| uptime < until)
            && !matches!(self.code, Code::Unopened)
    }
}

/// The result of reading a project.
enum Enabling {
    /// Its enabled configs.
    Ready(OfProject),
    /// The sources of these plugins must be compiled first.
    Compiles(Vec<PluginRow>),
}

/// The enabled configs of a project, in order.
pub(crate) type OfProject = Arc<Vec<Arc<Active>>>;

/// The enabled configs of all projects.
pub(crate) struct Registry {
    projects: ArcSwap<HashMap<ProjectId, OfProject>>,
    configs: ArcSwap<HashMap<PluginConfigId, Arc<Active>>>,
    /// Projects that have not been read since the start.
    expected: watch::Sender<HashSet<ProjectId>>,
    sources: Sources,
    /// Serializes changes.
    changing: tokio::sync::Mutex<()>,
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            projects: ArcSwap::default(),
            configs: ArcSwap::default(),
            expected: watch::Sender::new(HashSet::new()),
            sources: Sources::default(),
            changing: tokio::sync::Mutex::default(),
        }
    }
}

impl Registry {
    /// Marks projects with enabled configs that are not read yet.
    pub(crate) fn expect(&self, projects: Vec<ProjectId>) {
        self.expected.send_modify(|expected| expected.extend(projects));
    }

    /// Returns when the enabled configs of a project have been read.
    pub(crate) async fn ready(&self, project: ProjectId) {
        if self.expected.borrow().contains(&project) {
            // The sender is a field of the same struct, so this cannot fail.
            let _ = self.expected.subscribe().wait_for(|all| !all.contains(&project)).await;
        }
    }

    /// Whether events of a project are transformed before they are stored, or may be.
    pub(crate) fn transforms(&self, project: ProjectId) -> bool {
        if self.expected.borrow().contains(&project) {
            return true;
        }
        let projects = self.projects.load();
        projects
            .get(&project)
            .is_some_and(|all| all.iter().any(|active| active.capabilities.transforms))
    }

    /// The transformations of a project, in order.
    pub(crate) fn steps(&self, project: ProjectId) -> Vec<Arc<Active>> {
        let projects = self.projects.load();
        let all = projects.get(&project).map(|all| all.iter()).into_iter().flatten();
        all.filter(|active| active.capabilities.transforms).cloned().collect()
    }

    /// Whether some step of a project must run before its events are stored.
    pub(crate) fn must_run(&self, project: ProjectId) -> bool {
        self.steps(project).iter().any(|active| active.must_run())
    }

    /// A config, if it is enabled.
    pub(crate) fn config(&self, config: PluginConfigId) -> Option<Arc<Active>> {
        self.configs.load().get(&config).cloned()
    }

    /// All enabled configs, by project and in order.
    pub(crate) fn all(&self) -> Vec<Arc<Active>> {
        let projects = self.projects.load();
        let mut ids: Vec<&ProjectId> = projects.keys().collect();
        ids.sort_unstable();
        let of = |id: &&ProjectId| projects.get(*id).map(|all| all.to_vec()).unwrap_or_default();
        ids.iter().flat_map(of).collect()
    }

    fn with_plugin(&self, plugin: PluginId) -> HashSet<ProjectId> {
        let projects = self.projects.load();
        let uses = |all: &OfProject| all.iter().any(|active| active.row.plugin == plugin);
        projects.iter().filter(|(_, all)| uses(all)).map(|(project, _)| *project).collect()
    }

    fn put(&self, made: HashMap<ProjectId, OfProject>) {
        let read: HashSet<ProjectId> = made.keys().copied().collect();
        let mut projects = HashMap::clone(&self.projects.load());
        projects.extend(made);
        projects.retain(|_, all| !all.is_empty());
        let configs = projects.values().flat_map(|all| all.iter());
        let configs = configs.map(|active| (active.id(), Arc::clone(active))).collect();
        self.configs.store(Arc::new(configs));
        self.projects.store(Arc::new(projects));
        self.expected.send_if_modified(|expected| {
            let before = expected.len();
            expected.retain(|project| !read.contains(project));
            expected.len() < before
        });
    }
}

impl Shared {
    /// Reads the enabled configs of all projects.
    pub(crate) async fn load_all(self: &Arc<Self>) -> Result<()> {
        let mut projects: HashSet<ProjectId> =
            registry::enabled_projects(&self.store).await?.into_iter().collect();
        projects.extend(self.registry.projects.load().keys());
        projects.extend(self.registry.expected.borrow().iter());
        let projects: Vec<ProjectId> = projects.into_iter().collect();
        let mut failed = None;
        for some in projects.chunks(PROJECTS_PER_READ) {
            failed = self.load(some.iter().copied().collect()).await.err().or(failed);
        }
        failed.map_or(Ok(()), Err)
    }

    /// Reads the enabled configs of projects. A project with a source that is not
    /// compiled yet stays as it was until compilation ends.
    async fn load(self: &Arc<Self>, projects: HashSet<ProjectId>) -> Result<()> {
        let _changing = self.registry.changing.lock().await;
        let before = self.registry.all();
        let mut read = HashMap::new();
        let mut failed = None;
        for project in projects {
            match self.enabled(project).await {
                Ok(Enabling::Ready(all)) => drop(read.insert(project, all)),
                Ok(Enabling::Compiles(plugins)) => self.compile_for(project, plugins),
                // Other projects must not wait for this one, which stays as it was.
                Err(error) => {
                    tracing::error!(%project, %error, "enabled configs cannot be read");
                    failed = Some(error);
                }
            }
        }
        self.registry.put(read);
        let now = self.registry.all();
        self.registry.sources.keep(&now.iter().map(|active| active.row.plugin).collect());
        let stays = |active: &Arc<Active>| {
            self.registry.config(active.id()).is_some_and(|other| Arc::ptr_eq(active, &other))
        };
        let gone: Vec<Arc<Active>> = before.into_iter().filter(|active| !stays(active)).collect();
        if gone.iter().any(|active| active.script().is_some()) {
            // Spawned, because child processes may be busy and new configs must not wait
            // for them.
            let shared = Arc::clone(self);
            drop(tokio::spawn(async move { shared.unload(gone).await }));
        }
        failed.map_or(Ok(()), Err)
    }

    /// The enabled configs of a project. Sources are read only of changed plugins.
    async fn enabled(&self, project: ProjectId) -> Result<Enabling> {
        let running = registry::running(&self.store, project).await?;
        let uptime = self.services.uptime();
        let is_same = |config: &ConfigRow, plugin: &PluginRow| {
            let present = self.registry.config(config.id);
            present.filter(|same| same.is_of(config, plugin, uptime))
        };
        let mut read: HashMap<PluginId, BTreeMap<String, String>> = HashMap::new();
        let mut compiles: Vec<PluginRow> = Vec::new();
        for (config, plugin) in &running {
            if read.contains_key(&plugin.id) || is_same(config, plugin).is_some() {
                continue;
            }
            let files = registry::source(&self.store, plugin.id).await?;
            if !self.has_compiled(plugin, &files).await? {
                compiles.push(plugin.clone());
            }
            read.insert(plugin.id, files);
        }
        if !compiles.is_empty() {
            return Ok(Enabling::Compiles(compiles));
        }
        let mut all = Vec::with_capacity(running.len());
        for (config, plugin) in running {
            if let Some(same) = is_same(&config, &plugin) {
                all.push(same);
                continue;
            }
            // Changing a config does not refill its allowance.
            let present = self.registry.config(config.id);
            let allowance = present.map(|old| old.state.lock().allowance.carried());
            let files = read.get(&plugin.id).cloned().unwrap_or_default();
            let config = ConfigWithSource { config, plugin, files };
            all.push(Arc::new(self.prepare(config, allowance).await));
        }
        Ok(Enabling::Ready(Arc::new(all)))
    }

    /// Compiles sources of plugins, and reads the project again afterwards. Nothing else
    /// waits for it.
    fn compile_for(self: &Arc<Self>, project: ProjectId, plugins: Vec<PluginRow>) {
        let shared = Arc::clone(self);
        drop(tokio::spawn(async move {
            let mut pause = AGAIN;
            for attempt in 1_u32.. {
                match shared.compile_all(&plugins, project, attempt >= COMPILE_TRIES).await {
                    Ok(true) => return,
                    Ok(false) => {}
                    Err(error) => {
                        tracing::error!(%project, %error, "sources of plugins cannot be read");
                    }
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(READ_EVERY);
            }
        }));
    }

    async fn compile_all(
        self: &Arc<Self>,
        plugins: &[PluginRow],
        project: ProjectId,
        is_last: bool,
    ) -> Result<bool> {
        let mut is_done = true;
        for plugin in plugins {
            let files = registry::source(&self.store, plugin.id).await?;
            is_done &= self.compile_once(plugin, &files, is_last).await;
        }
        if is_done {
            self.load(HashSet::from([project])).await?;
        }
        Ok(is_done)
    }

    /// Unloads programs that no longer run from child processes.
    async fn unload(&self, gone: Vec<Arc<Active>>) {
        for active in gone {
            let Some(loaded) = active.script() else { continue };
            let pools = [(&self.steps, &loaded.step), (&self.work, &loaded.worker)];
            for (pool, program) in pools {
                for lane in 0..self.settings.step_children.max(WORKERS) {
                    match pool.teardown(lane, program, self).await {
                        Ok(Ok(())) => {}
                        Ok(Err(error)) => {
                            let (id, now) = (active.id(), self.services.now());
                            let message = format!("teardownPlugin: {}", loaded.message(&error));
                            let (source, level) = (LogSource::Plugin, LogLevel::Error);
                            self.report.line(id, source, level, &message, now);
                        }
                        // A child process that cannot be reached holds no program.
                        Err(fault) => tracing::debug!(%fault, "a plugin was not unloaded"),
                    }
                }
            }
        }
    }

    /// Keeps the registry up to date until the process ends.
    pub(crate) async fn follow_changes(self: &Arc<Self>, mut changes: Receiver<PluginChange>) {
        // The first tick is immediate.
        let mut inspect = tokio::time::interval(READ_EVERY);
        let mut pause = AGAIN;
        loop {
            let read = tokio::select! {
                _ = inspect.tick() => self.load_all().await,
                changed = changes.recv() => match changed {
                    Ok(change) => self.load(self.touched(change, &mut changes)).await,
                    Err(RecvError::Lagged(_)) => self.load_all().await,
                    Err(RecvError::Closed) => return,
                },
            };
            match read {
                Ok(()) => pause = AGAIN,
                Err(error) => {
                    tracing::error!(%error, "enabled configs could not be read");
                    // The list of changes to read is lost. Changes continue during the
                    // pause.
                    inspect.reset_after(pause);
                    pause = (pause * 2).min(READ_EVERY);
                }
            }
        }
    }

    /// The projects of this change and of further changes in the channel.
    fn touched(
        &self,
        change: PluginChange,
        changes: &mut Receiver<PluginChange>,
    ) -> HashSet<ProjectId> {
        let mut next = Some(change);
        let mut projects = HashSet::new();
        while let Some(change) = next {
            match change {
                PluginChange::Project(project) => {
                    projects.insert(project);
                }
                PluginChange::Plugin(plugin) => projects.extend(self.registry.with_plugin(plugin)),
            }
            next = match changes.try_recv() {
                Ok(change) => Some(change),
                // The next call reports the missed changes, or there are none.
                Err(broadcast::error::TryRecvError::Lagged(_)) => {
                    projects.extend(self.registry.projects.load().keys());
                    None
                }
                Err(_) => None,
            };
        }
        projects
    }
}

/// The tasks with these names.
fn tasks(names: &[&str]) -> Vec<Task> {
    schedule::TASKS.into_iter().filter(|task| names.contains(&task.export())).collect()
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn events_wait_for_their_own_project_alone() {
        let registry = Registry::default();
        let (one, other, third) = (ProjectId(1), ProjectId(2), ProjectId(3));
        registry.expect(vec![one, other]);
        assert!(registry.transforms(one), "it may have a transformation");
        assert!(!registry.transforms(third));
        assert!(registry.ready(third).now_or_never().is_some());
        let mut waits = Box::pin(registry.ready(one));
        assert!(waits.as_mut().now_or_never().is_none());
        registry.put(HashMap::from([(other, OfProject::default())]));
        assert!(registry.ready(other).now_or_never().is_some());
        assert!(waits.as_mut().now_or_never().is_none());
        registry.put(HashMap::from([(one, OfProject::default())]));
        waits.await;
        assert!(!registry.transforms(one), "nothing is enabled there");
    }
}
