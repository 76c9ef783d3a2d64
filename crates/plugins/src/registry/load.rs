//! From a config and the files of its plugin to a runnable program.
//!
//! What belongs here: opening settings, finding the code and its capabilities. What does
//! not: when this is done ([`super`]).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;
use weir_catalogue::{Step, StepDependencies};
use weir_model::PluginId;
use weir_model::plugins::Group;
use weir_sandbox::{Grants, Meta, Program, ProgramKey, Source};
use weir_service::plugin_configs::on_failure;
use weir_store::plugin_configs::ConfigRow;
use weir_store::plugin_runtime::registry::ConfigWithSource;
use weir_store::plugins::{PluginRow, build};
use weir_transpile::Script;

use super::{Active, Code, ConfigCapabilities, Loaded, State, tasks};
use crate::Shared;
use crate::allowance::Allowance;
use crate::services::OpenedConfig;
use crate::shape;

/// File names of the server code.
const ENTRIES: [&str; 2] = ["index.js", "index.ts"];

/// Compiled sources that are kept although no config uses them.
const SPARE: usize = 32;

/// Grants of transformations: no call that waits for others, and no captured event, which
/// would reach the same step again.
const OF_STEPS: Grants =
    Grants { fetch: false, storage: true, cache: true, capture: false, jobs: true, geoip: true };
/// Background work may make all calls.
const OF_WORKERS: Grants =
    Grants { fetch: true, storage: true, cache: true, capture: true, jobs: true, geoip: true };

/// Version numbers of programs that are sent to child processes. Every change gets a new
/// one.
static VERSION: AtomicU64 = AtomicU64::new(1);

/// Time until a source that took too long to compile is compiled again: the machine may
/// have been busy. It is four times as long for each further failure, up to a day.
const LATE: Duration = Duration::from_secs(60);
const LATEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Compiled sources by plugin.
#[derive(Default)]
pub(crate) struct Sources(Mutex<HashMap<PluginId, CompiledSource>>);

/// The result of compiling a source.
struct CompiledSource {
    revision: Uuid,
    compiled: Compiled,
    /// Set if compiling took too long: how long the result is valid, and until when.
    late: Option<(Duration, Duration)>,
}

/// A compiled source, or its fault.
pub(crate) type Compiled = Result<Arc<Script>, String>;

/// The stored form of a result. Another version of the compiler has another number.
#[derive(Serialize, Deserialize)]
struct Stored<T> {
    compiler: u32,
    made: Result<T, String>,
}

/// Increase it with every change of the compiler output.
const COMPILER: u32 = 1;

/// The stored form of a compiled source.
pub(crate) fn stored(compiled: &Compiled) -> Option<String> {
    let made = compiled.as_ref().map(|script| &**script).map_err(String::clone);
    serde_json::to_string(&Stored { compiler: COMPILER, made }).ok()
}

impl Sources {
    /// Removes the sources of unused plugins if there are more than [`SPARE`] of them.
    pub(super) fn keep(&self, used: &HashSet<PluginId>) {
        let mut all = self.0.lock();
        if all.len() > used.len() + SPARE {
            all.retain(|plugin, _| used.contains(plugin));
        }
    }

    /// The last result for the source of a plugin. If compiling took too long, also the
    /// time until which the result is valid.
    fn last(&self, plugin: &PluginRow) -> Option<(Compiled, Option<Duration>)> {
        let all = self.0.lock();
        let known = all.get(&plugin.id).filter(|known| known.revision == plugin.revision)?;
        Some((known.compiled.clone(), known.late.map(|(_, until)| until)))
    }

    /// Whether the source of a plugin need not be compiled now.
    fn holds(&self, plugin: &PluginRow, uptime: Duration) -> bool {
        self.last(plugin).is_some_and(|(_, until)| until.is_none_or(|until| uptime < until))
    }

    fn put(&self, plugin: &PluginRow, compiled: Compiled) {
        let known = CompiledSource { revision: plugin.revision, compiled, late: None };
        self.0.lock().insert(plugin.id, known);
    }

    /// Records that compiling took too long.
    fn put_late(&self, plugin: &PluginRow, fault: String, uptime: Duration) {
        let mut all = self.0.lock();
        let before = all.get(&plugin.id).filter(|known| known.revision == plugin.revision);
        let before = before.and_then(|known| known.late);
        let pause = before.map_or(LATE, |(pause, _)| (pause * 4).min(LATEST));
        let late = Some((pause, uptime + pause));
        all.insert(
            plugin.id,
            CompiledSource { revision: plugin.revision, compiled: Err(fault), late },
        );
    }
}

/// The server code among files: its name and its text.
pub(crate) fn entry(files: &BTreeMap<String, String>) -> Option<(&str, &str)> {
    let named = |name: &&str| files.get(*name).is_some_and(|text| !text.trim().is_empty());
    let name = ENTRIES.into_iter().find(named)?;
    files.get(name).map(|text| (name, text.as_str()))
}

impl Shared {
    /// Compiles the server code among files, on a child process that has no other work.
    pub(crate) async fn compile(
        &self,
        lane: usize,
        files: &BTreeMap<String, String>,
    ) -> Result<Compiled, weir_sandbox::Fault> {
        let Some((name, text)) = entry(files) else {
            return Ok(Err("The plugin has no index.ts or index.js.".to_owned()));
        };
        let made = self.work.compile::<Script>(lane, Source::Server, name, text).await?;
        Ok(made.map(Arc::new))
    }

    /// Whether the server code of a plugin is compiled, or need not be.
    pub(super) async fn has_compiled(
        &self,
        plugin: &PluginRow,
        files: &BTreeMap<String, String>,
    ) -> Result<bool, weir_store::Error> {
        if entry(files).is_none() || self.registry.sources.holds(plugin, self.services.uptime()) {
            return Ok(true);
        }
        let found = build::get(&self.store, plugin.id).await?.and_then(|build| build.server);
        let found = found.and_then(|text| serde_json::from_str::<Stored<Script>>(&text).ok());
        let Some(Stored { made, .. }) = found.filter(|found| found.compiler == COMPILER) else {
            return Ok(false);
        };
        self.registry.sources.put(plugin, made.map(Arc::new));
        Ok(true)
    }

    /// Compiles the code of a plugin, unless a concurrent call has done so. `false`: the
    /// machine failed, not the source, and a retry may succeed. The last attempt keeps
    /// that fault as the result.
    pub(super) async fn compile_once(
        &self,
        plugin: &PluginRow,
        files: &BTreeMap<String, String>,
        is_last: bool,
    ) -> bool {
        let Some(inspect) = self.inspections.acquire_for_service(plugin.organization).await else {
            return true;
        };
        if self.registry.sources.holds(plugin, self.services.uptime()) {
            return true;
        }
        let compiled = match self.compile(inspect.lane, files).await {
            Ok(compiled) => compiled,
            // Its project does not wait for further attempts.
            Err(fault @ weir_sandbox::Fault::SlowCompile { .. }) => {
                tracing::warn!(plugin = %plugin.id, %fault, "a plugin is compiled again later");
                let uptime = self.services.uptime();
                self.registry.sources.put_late(plugin, fault.to_string(), uptime);
                return true;
            }
            Err(fault) => {
                tracing::error!(plugin = %plugin.id, %fault, is_last, "a plugin cannot be compiled");
                if !is_last {
                    return false;
                }
                Err(fault.to_string())
            }
        };
        self.registry.sources.put(plugin, compiled);
        true
    }

    /// Prepares a config, with the rest of its allowance if it was enabled before. Faults
    /// are reported immediately.
    pub(super) async fn prepare(
        &self,
        config: ConfigWithSource,
        allowance: Option<Allowance>,
    ) -> Active {
        let ConfigWithSource { config: row, plugin, files } = config;
        let name = row.name.clone().filter(|name| !name.is_empty());
        let name = name.or_else(|| plugin.name.clone()).unwrap_or_else(|| "a plugin".to_owned());
        let code = match self.code(&row, &plugin, &files).await {
            Ok(code) => code,
            Err(fault) => {
                let now = self.services.now();
                self.report.fault(&row, &fault, None, now);
                Code::Broken
            }
        };
        let capabilities = match code {
            Code::Native(_) => {
                ConfigCapabilities { transforms: true, ..ConfigCapabilities::default() }
            }
            Code::Script(_) => capabilities(&plugin),
            Code::Nothing => ConfigCapabilities::default(),
            // Such a config does nothing, but its failures are counted.
            Code::Broken | Code::Unopened => ConfigCapabilities {
                transforms: capabilities(&plugin).transforms,
                ..ConfigCapabilities::default()
            },
        };
        let on_failure = on_failure(&row, &plugin);
        let allowance = allowance.unwrap_or_else(|| Allowance::new(self.services.uptime()));
        let state = Mutex::new(State { allowance, failed_in_a_row: 0, is_off: false });
        let until = self.registry.sources.last(&plugin).and_then(|(_, until)| until);
        Active {
            row,
            name,
            code,
            capabilities,
            on_failure,
            revision: plugin.revision,
            until,
            state,
        }
    }

    async fn code(
        &self,
        row: &ConfigRow,
        plugin: &PluginRow,
        files: &BTreeMap<String, String>,
    ) -> Result<Code, String> {
        let opened = match self.services.open(row, plugin).await {
            Ok(opened) => opened,
            Err(fault) => {
                self.report.fault(row, &fault, None, self.services.now());
                return Ok(Code::Unopened);
            }
        };
        if let Some(step) = self.native(plugin, &opened.config)? {
            return Ok(Code::Native(step));
        }
        // The plugin only has code for browsers, or no code yet.
        if entry(files).is_none() {
            return Ok(Code::Nothing);
        }
        let known = self.registry.sources.last(plugin);
        let (script, _) = known.ok_or_else(|| "The source is not compiled yet.".to_owned())?;
        let script = script?;
        let name = entry(files).map_or("index.ts", |(name, _)| name);
        let step = step_program(row, plugin, &script, name, opened)?;
        let worker = Program { grants: OF_WORKERS, ..step.clone() };
        Ok(Code::Script(Box::new(Loaded {
            step: Arc::new(step),
            worker: Arc::new(worker),
            script,
        })))
    }

    /// The Rust step of a catalogue plugin, if it has one.
    pub(crate) fn native(
        &self,
        plugin: &PluginRow,
        config: &Map<String, Value>,
    ) -> Result<Option<Box<dyn Step>>, String> {
        let Some(entry) = plugin.url.as_deref().and_then(weir_catalogue::find_url) else {
            return Ok(None);
        };
        let dependencies: &StepDependencies = &self.step_dependencies;
        entry.step(config, dependencies).map_err(|fault| fault.to_string())
    }
}

/// The program that runs a config as a step in a child process. Each call gives it a new
/// version.
pub(crate) fn step_program(
    row: &ConfigRow,
    plugin: &PluginRow,
    script: &Script,
    name: &str,
    opened: OpenedConfig,
) -> Result<Program, String> {
    let OpenedConfig { config, attachments } = opened;
    let config = shape::raw(Value::Object(config).to_string());
    let config = config.ok_or_else(|| "The settings cannot be read.".to_owned())?;
    let title = plugin.name.clone().unwrap_or_else(|| "plugin".to_owned());
    Ok(Program {
        key: ProgramKey { config: row.id.0, version: VERSION.fetch_add(1, Ordering::Relaxed) },
        source: Arc::from(script.code.as_str()),
        name: name.to_owned(),
        meta: Meta { config, attachments, plugin: title },
        grants: OF_STEPS,
    })
}

/// The capabilities of a plugin, as found in its code.
fn capabilities(plugin: &PluginRow) -> ConfigCapabilities {
    let names = |key: &str| -> Vec<&str> {
        let list = plugin.capabilities.as_ref().and_then(|found| found.get(key)?.as_array());
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let methods = names("methods");
    let has = |name: &str| methods.contains(&name);
    ConfigCapabilities {
        transforms: has("processEvent") || has("processEventBatch"),
        on_event: has("onEvent"),
        compose_webhook: has("composeWebhook"),
        export_events: has("exportEvents"),
        tasks: tasks(&names("scheduled_tasks")),
        imports: Group::ImportApps.holds(plugin.capabilities.as_ref()),
    }
}

#[cfg(test)]
mod tests {
    use weir_model::{OrganizationId, Timestamp};

    use super::*;

    fn plugin(revision: u128) -> PluginRow {
        PluginRow {
            id: PluginId(7),
            organization: OrganizationId(Uuid::from_u128(1)),
            created_group: None,
            is_analysed: false,
            plugin_type: None,
            name: None,
            description: None,
            url: None,
            private_token: None,
            icon: None,
            config_schema: None,
            tag: None,
            latest_tag: None,
            latest_tag_checked_at: None,
            is_global: false,
            was_global: false,
            capabilities: None,
            metrics: None,
            public_jobs: None,
            created_at: Timestamp::from_micros(1),
            updated_at: Timestamp::from_micros(1),
            revision: Uuid::from_u128(revision),
        }
    }

    #[test]
    fn a_source_that_takes_too_long_is_compiled_again_ever_later() {
        let (sources, plugin, other) = (Sources::default(), plugin(1), plugin(2));
        let mut now = Duration::from_secs(5);
        for pause in [60, 240, 960, 3_840, 15_360, 61_440, 86_400, 86_400] {
            assert!(!sources.holds(&plugin, now));
            sources.put_late(&plugin, "slow".to_owned(), now);
            let end = now + Duration::from_secs(pause);
            let (compiled, until) = sources.last(&plugin).unwrap();
            assert_eq!((compiled.err().as_deref(), until), (Some("slow"), Some(end)));
            assert!(sources.holds(&plugin, end - Duration::from_secs(1)));
            assert!(!sources.holds(&other, now), "another revision is compiled at once");
            now = end;
        }
        sources.put(&plugin, Err("wrong".to_owned()));
        assert!(sources.holds(&plugin, now + LATEST * 9), "what is wrong stays wrong");
        sources.put_late(&other, "slow".to_owned(), now);
        assert!(!sources.holds(&other, now + LATE), "pauses begin again with a change");
    }
}
