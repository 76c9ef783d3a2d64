//! Trying transformations with one event that is not stored.
//!
//! What belongs here: running each step alone and reporting its effect. What does not:
//! steps (`transformations`).
//!
//! Nothing is stored. Writes of a script to storage or cache are discarded; its reads
//! return the real values.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::Value;
use uuid::Uuid;
use weir_capture::AcceptedEvent;
use weir_ingest::transform::TransformInput;
use weir_model::json::JsonText;
use weir_model::plugin_configs::{DryOutcome, DryStep};
use weir_model::{PluginConfigId, ProjectId, Timestamp, UserId};
use weir_sandbox::{HostCall, Program, ScriptHost};
use weir_service::plugins::code::{Busy, DryTrial};
use weir_store::plugin_runtime::registry::ConfigWithSource;
use weir_store::plugin_runtime::storage;

use crate::allowance::Payers;
use crate::registry::load::{entry, step_program};
use crate::transformations::in_progress::EventInProgress;
use crate::transformations::{TimedVerdict, Verdict, native, scripts};
use crate::{Shared, shape};

/// Log lines that are shown per step.
const LINES: usize = 100;

impl Shared {
    /// Sends an event through steps.
    pub(crate) async fn try_steps(&self, trial: DryTrial) -> Result<Vec<DryStep>, Busy> {
        let DryTrial { user, project, configs, event } = trial;
        let given = TransformInput::single(
            sample(&event, self.services.now()),
            self.services.now().micros(),
        );
        let mut current = EventInProgress::new(given);
        let mut steps = Vec::with_capacity(configs.len());
        for tried in configs {
            if current.event().is_none() {
                break;
            }
            steps.push(self.try_step(user, project, &tried, &mut current).await?);
        }
        Ok(steps)
    }

    async fn try_step(
        &self,
        user: UserId,
        project: ProjectId,
        tried: &ConfigWithSource,
        current: &mut EventInProgress,
    ) -> Result<DryStep, Busy> {
        let before = current.event().and_then(shown);
        let config = tried.config.id;
        let name = tried.config.name.clone().or_else(|| tried.plugin.name.clone());
        let name = name.unwrap_or_default();
        let logs = Trying { shared: self, config, lines: Mutex::default() };
        let ruled = self.rule(user, project, tried, &name, current, &logs).await;
        let (verdict, took) = match ruled {
            Ok(TimedVerdict { verdict, took, .. }) => (verdict, took),
            Err(NoRuling::Fault(fault)) => (Verdict::Failed(fault), Duration::ZERO),
            Err(NoRuling::Busy) => return Err(Busy),
        };
        let event = current.event().and_then(shown);
        let (outcome, error) = match verdict {
            Verdict::Dropped => (DryOutcome::Dropped, None),
            Verdict::Failed(message) | Verdict::NotRun(message) => {
                (DryOutcome::Failed, Some(message))
            }
            Verdict::Succeeded | Verdict::Absent if is_same(before.as_ref(), event.as_ref()) => {
                (DryOutcome::Unchanged, None)
            }
            Verdict::Succeeded | Verdict::Absent => (DryOutcome::Changed, None),
            // A dry run charges no allowance.
            Verdict::PassedOver => (DryOutcome::Failed, None),
        };
        let duration_ms = took.as_secs_f64() * 1_000.0;
        let logs = logs.lines.into_inner();
        Ok(DryStep { config, name, outcome, event, error, duration_ms, logs })
    }

    /// Runs one step.
    async fn rule(
        &self,
        user: UserId,
        project: ProjectId,
        tried: &ConfigWithSource,
        name: &str,
        current: &mut EventInProgress,
        logs: &Trying<'_>,
    ) -> Result<TimedVerdict, NoRuling> {
        let ConfigWithSource { config, plugin, files } = tried;
        let opened = self.services.open(config, plugin).await?;
        if let Some(step) = self.native(plugin, &opened.config)? {
            let events = std::slice::from_mut(current);
            let ruled = native::run(&*step, config.id, name, events).into_iter().next();
            return ruled.ok_or_else(not_run);
        }
        let inspect = self.inspections.acquire(user, config.organization).await;
        let inspect = inspect.map_err(|Busy| NoRuling::Busy)?;
        let compiled =
            self.compile(inspect.lane, files).await.map_err(|fault| fault.to_string())?;
        let script = compiled?;
        let file = entry(files).map_or("index.ts", |(name, _)| name);
        let program = Arc::new(step_program(config, plugin, &script, file, opened)?);
        let crossing = scripts::SandboxCall {
            pool: &self.work,
            lane: inspect.lane,
            host: logs,
            project,
            site_url: &self.site_url,
        };
        let step = scripts::Script { id: config.id, name, program: &program, script: &script };
        let payers = Payers::default();
        let ruled = crossing.run(&[step], &payers, vec![Vec::new()], &mut [current]).await;
        // The program is not needed again.
        if let Err(error) = self.work.teardown(crossing.lane, &program, logs).await {
            tracing::warn!(%error, "the tried program is still loaded");
        }
        ruled.into_iter().flatten().next().ok_or_else(not_run)
    }
}

/// Why a step has no ruling.
enum NoRuling {
    /// For people.
    Fault(String),
    /// Many calls of the user wait already.
    Busy,
}

impl From<String> for NoRuling {
    fn from(fault: String) -> Self {
        Self::Fault(fault)
    }
}

fn not_run() -> NoRuling {
    NoRuling::Fault("The step was not run.".to_owned())
}

/// The host of a script in a dry run.
struct Trying<'a> {
    shared: &'a Shared,
    config: PluginConfigId,
    lines: Mutex<Vec<String>>,
}

#[async_trait]
impl ScriptHost for Trying<'_> {
    async fn call(&self, _program: &Program, call: HostCall) -> Result<Value, String> {
        match call {
            HostCall::Log { message, .. } => {
                let mut lines = self.lines.lock();
                if lines.len() < LINES {
                    lines.push(message);
                }
                Ok(Value::Null)
            }
            HostCall::StorageGet { key } => {
                let found = storage::get(&self.shared.store, self.config, &key).await;
                let found = found.map_err(|error| {
                    tracing::error!(%error, "a call of a plugin failed");
                    "this cannot be read at this time".to_owned()
                })?;
                Ok(found.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
            }
            HostCall::Geoip { ip } => {
                let locations = self.shared.locations.as_ref();
                let record = locations.zip(ip.trim().parse().ok());
                Ok(record.and_then(|(found, ip)| found.record(ip)).unwrap_or_default())
            }
            HostCall::CacheIncr { .. } | HostCall::CursorIncrement { .. } => Ok(1.into()),
            HostCall::CacheLrange { .. } | HostCall::CacheLpop { .. } => {
                Ok(Value::Array(Vec::new()))
            }
            HostCall::CacheLpush { .. }
            | HostCall::CacheLlen { .. }
            | HostCall::CacheLrem { .. } => Ok(0.into()),
            HostCall::CacheExpire { .. } => Ok(false.into()),
            HostCall::StorageSet { .. }
            | HostCall::StorageDel { .. }
            | HostCall::CacheGet { .. }
            | HostCall::CacheSet { .. }
            | HostCall::CursorInit { .. }
            | HostCall::Capture { .. }
            | HostCall::JobEnqueue { .. }
            | HostCall::Metric { .. } => Ok(Value::Null),
            HostCall::Fetch { .. } => Err("there is no fetch in transformations".to_owned()),
        }
    }
}

/// The event of a dry run. Missing fields are filled in.
fn sample(event: &JsonText, now: Timestamp) -> AcceptedEvent {
    let part = |name: &str| weir_json::member(event.text(), name);
    let text = |name: &str| {
        let text: Option<String> = part(name).and_then(|text| serde_json::from_str(text).ok());
        text.filter(|text| !text.is_empty())
    };
    let properties = part("properties").filter(|text| text.starts_with('{')).unwrap_or("{}");
    let timestamp = text("timestamp").and_then(|text| Timestamp::parse_lenient(&text));
    AcceptedEvent {
        uuid: text("uuid").and_then(|text| Uuid::parse_str(&text).ok()).unwrap_or_default(),
        event: text("event").unwrap_or_else(|| "sample".to_owned()),
        distinct_id: text("distinct_id").unwrap_or_else(|| "sample".to_owned()),
        timestamp: timestamp.unwrap_or(now).micros(),
        properties: properties.to_owned(),
        elements_chain: String::new(),
        warnings: Vec::new(),
    }
}

/// An event as it is shown.
fn shown(event: &AcceptedEvent) -> Option<JsonText> {
    JsonText::read(shape::for_people(event))
}

/// Whether both are the same JSON value. A script may write the same value in another
/// form.
fn is_same(one: Option<&JsonText>, other: Option<&JsonText>) -> bool {
    let value = |text: &JsonText| serde_json::from_str::<Value>(text.text()).ok();
    one == other || one.and_then(value).is_some_and(|one| other.and_then(value) == Some(one))
}

#[cfg(test)]
mod tests {
    use weir_model::Timestamp;
    use weir_model::json::JsonText;

    use super::{is_same, sample, shown};

    fn text(text: &str) -> JsonText {
        JsonText::read(text.to_owned()).unwrap()
    }

    #[test]
    fn numbers_keep_their_digits() {
        let given = r#"{"uuid":"00000000-0000-0000-0000-000000000007","event":"visit","distinct_id":"ada","timestamp":"2026-05-28T20:26:40Z","properties":{"n":12345678901234567890123}}"#;
        let read = sample(&text(given), Timestamp::EPOCH);
        assert_eq!(read.properties, r#"{"n":12345678901234567890123}"#);
        assert_eq!((read.event.as_str(), read.distinct_id.as_str()), ("visit", "ada"));
        assert_eq!(read.timestamp, 1_780_000_000_000_000);
        let shown = shown(&read).unwrap();
        assert!(shown.text().ends_with(r#""properties":{"n":12345678901234567890123}}"#));
    }

    #[test]
    fn what_is_missing_is_made_up() {
        let read = sample(&text(r#"{"properties":7,"event":""}"#), Timestamp::EPOCH);
        assert_eq!((read.event.as_str(), read.properties.as_str()), ("sample", "{}"));
        assert_eq!(read.timestamp, 0);
    }

    #[test]
    fn another_way_of_writing_is_no_change() {
        let (one, other) = (text(r#"{"a":1, "b":2}"#), text(r#"{"b":2,"a":1}"#));
        assert!(is_same(Some(&one), Some(&other)) && is_same(None, None));
        assert!(!is_same(Some(&one), None) && !is_same(Some(&one), Some(&text("{}"))));
    }
}
