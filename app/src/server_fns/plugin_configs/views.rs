//! Types for plugin configs as pages show them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use weir_model::pagination::Paged;
use weir_model::plugin_configs::{ConfigError, PluginConfig, PluginLogEntry, Texted};
use weir_model::projects::ProjectBrief;
#[cfg(feature = "ssr")]
use weir_service::plugin_configs::Stage;
#[cfg(feature = "ssr")]
use weir_service::plugins::ListedPlugin;

use crate::plugin_settings::{Part, parts};
use crate::server_fns::plugins::views::{jobs, name_of};

/// The transformations of a project.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PipelineView {
    pub(crate) project_name: String,
    /// Id of its organization.
    pub(crate) organization: String,
    /// The transformations in their order.
    pub(crate) listed: Vec<ConfigLine>,
    /// Deleted transformations that can be restored.
    pub(crate) hidden: Vec<ConfigLine>,
    /// Why the user cannot change anything. `None`: the user can.
    pub(crate) read_only_reason: Option<String>,
}

/// A config on a list.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ConfigLine {
    /// Id of the config.
    pub(crate) id: String,
    /// Name of the config, else of its plugin.
    pub(crate) name: String,
    /// Id of the plugin.
    pub(crate) plugin: String,
    pub(crate) plugin_name: String,
    pub(crate) enabled: bool,
    /// Whether it is hidden and can be restored.
    pub(crate) deleted: bool,
    /// Whether it is a transformation.
    pub(crate) transforms: bool,
    /// Number of events passed on without a fault in the last 24 hours; dropped events are not
    /// included.
    pub(crate) succeeded: u64,
    /// Number of events that failed in the last 24 hours.
    pub(crate) failed: u64,
    /// Number of events that it dropped intentionally in the last 24 hours.
    pub(crate) dropped: u64,
    /// The last failure.
    pub(crate) fault: Option<FaultView>,
}

/// A failure of a config.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FaultView {
    /// The error message.
    pub(crate) message: String,
    /// Time of the failure.
    pub(crate) at: Option<String>,
    /// The event that caused it, as JSON.
    pub(crate) event: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ConfigDetail {
    pub(crate) project_name: String,
    /// Id of its organization.
    pub(crate) organization: String,
    /// The list of its plugin. `None`: the user has lost access to the plugin.
    pub(crate) plugin_list: Option<String>,
    /// The data that the list shows too.
    pub(crate) line: ConfigLine,
    /// Description of the config, else of its plugin.
    pub(crate) description: String,
    /// The form of its settings.
    pub(crate) form: Vec<Part>,
    /// The values. Secrets are `(secret)`.
    pub(crate) values: Map<String, Value>,
    /// The policy for events that it cannot process.
    pub(crate) on_failure: String,
    /// Jobs that can be started manually.
    pub(crate) jobs: Vec<String>,
    /// When it was created.
    pub(crate) created_at: String,
    /// When it was last changed.
    pub(crate) updated_at: String,
    /// Why the user cannot change it. `None`: the user can.
    pub(crate) read_only_reason: Option<String>,
}

/// A plugin, with the data for the form of a new config.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OfferedPlugin {
    pub(crate) project_name: String,
    /// Id of its organization.
    pub(crate) organization: String,
    /// Id of the plugin.
    pub(crate) plugin: String,
    /// Name of the plugin.
    pub(crate) name: String,
    /// Description of the plugin.
    pub(crate) description: String,
    /// The list of the plugin.
    pub(crate) plugin_list: String,
    /// The form of its settings.
    pub(crate) form: Vec<Part>,
    /// Why the user cannot add it. `None`: the user can.
    pub(crate) read_only_reason: Option<String>,
}

/// A page of a log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LogView {
    /// Total number of lines.
    pub(crate) total: u64,
    pub(crate) lines: Vec<LogLine>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LogLine {
    /// Time of the line.
    pub(crate) at: String,
    /// `DEBUG`, `LOG`, `INFO`, `WARN` or `ERROR`.
    pub(crate) level: String,
    /// The writer of the line, in words.
    pub(crate) source: String,
    /// The text.
    pub(crate) message: String,
}

/// The values of a config, as the service returns them.
pub(super) fn values_of(config: &PluginConfig) -> Map<String, Value> {
    match &config.fields.config {
        Texted::Value(values) => values.clone(),
        Texted::Text(text) => serde_json::from_str(text).unwrap_or_default(),
    }
}

#[cfg(feature = "ssr")]
impl From<Stage> for ConfigLine {
    fn from(stage: Stage) -> Self {
        let Stage { config, plugin, transforms, numbers } = stage;
        let plugin_name = name_of(&plugin);
        let fields = config.fields;
        Self {
            id: config.id.to_string(),
            name: fields
                .name
                .filter(|name| !name.trim().is_empty())
                .unwrap_or_else(|| plugin_name.clone()),
            plugin: plugin.id.to_string(),
            plugin_name,
            enabled: fields.enabled,
            deleted: fields.deleted,
            transforms,
            succeeded: numbers.succeeded,
            failed: numbers.failed,
            dropped: numbers.dropped,
            fault: fields.error.map(FaultView::from),
        }
    }
}

impl From<ConfigError> for FaultView {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Text(message) => Self { message, at: None, event: None },
            ConfigError::Whole(fault) => Self {
                message: fault.message,
                at: Some(fault.time.to_string()),
                event: fault.event.map(|event| event.text().to_owned()),
            },
        }
    }
}

#[cfg(feature = "ssr")]
impl ConfigDetail {
    /// The line without metrics, from the config alone.
    pub(super) fn of(stage: Stage) -> Self {
        let fields = &stage.plugin.fields;
        Self {
            description: stage.config.fields.description.clone().unwrap_or_default(),
            form: parts(fields.config_schema.as_ref()),
            values: values_of(&stage.config),
            on_failure: stage.config.fields.on_failure.text().to_owned(),
            jobs: jobs(fields.public_jobs.as_ref(), fields.capabilities.as_ref()),
            created_at: stage.config.created_at.to_string(),
            updated_at: stage.config.updated_at.to_string(),
            line: ConfigLine::from(stage),
            ..Self::default()
        }
    }
}

#[cfg(feature = "ssr")]
impl OfferedPlugin {
    /// The offer of this plugin for this project.
    pub(super) fn of(
        project: ProjectBrief,
        found: ListedPlugin,
        read_only_reason: Option<String>,
    ) -> Self {
        let name = name_of(&found.plugin);
        let fields = found.plugin.fields;
        Self {
            project_name: project.name,
            organization: project.organization.to_string(),
            plugin: found.plugin.id.to_string(),
            name,
            description: fields.description.unwrap_or_default(),
            plugin_list: found.plugin_list.text().to_owned(),
            form: parts(fields.config_schema.as_ref()),
            read_only_reason,
        }
    }
}

impl From<Paged<PluginLogEntry>> for LogView {
    fn from(found: Paged<PluginLogEntry>) -> Self {
        use weir_model::plugin_configs::LogSource;

        let line = |entry: PluginLogEntry| LogLine {
            at: entry.timestamp.to_string(),
            level: entry.kind.text().to_owned(),
            source: match entry.source {
                LogSource::System | LogSource::Plugin => "Weir".to_owned(),
                LogSource::Console => "Plugin".to_owned(),
            },
            message: entry.message,
        };
        Self { total: found.count, lines: found.results.into_iter().map(line).collect() }
    }
}
