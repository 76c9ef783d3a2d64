//! Configs of plugins in the forms in which pages show them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use weir_model::pagination::Paged;
use weir_model::plugin_configs::{ConfigError, PluginConfig, PluginLogEntry, Texted};
use weir_model::projects::ProjectBrief;
use weir_service::plugin_configs::Stage;
use weir_service::plugins::Shelved;

use crate::plugin_settings::{Part, parts};
use crate::server_fns::plugins::views::{jobs, name_of};

/// The transformations of a project.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PipelineView {
    /// Name of the project.
    pub(crate) project_name: String,
    /// Its organization.
    pub(crate) organization: String,
    /// The transformations in their order.
    pub(crate) listed: Vec<ConfigLine>,
    /// Those that were deleted and can be brought back.
    pub(crate) hidden: Vec<ConfigLine>,
    /// Why the person may change nothing; none: the person may.
    pub(crate) refusal: Option<String>,
}

/// A config on a list.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ConfigLine {
    /// Id.
    pub(crate) id: String,
    /// Its name, or its plugin's.
    pub(crate) name: String,
    /// The plugin.
    pub(crate) plugin: String,
    /// The plugin's name.
    pub(crate) plugin_name: String,
    /// Whether it is run.
    pub(crate) enabled: bool,
    /// Whether it was deleted, and can be brought back.
    pub(crate) deleted: bool,
    /// Whether it changes events before they are stored.
    pub(crate) transforms: bool,
    /// Events of the last 24 hours that it went well with.
    pub(crate) succeeded: u64,
    /// Those that it went wrong with.
    pub(crate) failed: u64,
    /// Those that it dropped, and meant to.
    pub(crate) dropped: u64,
    /// What went wrong last.
    pub(crate) fault: Option<FaultView>,
}

/// What went wrong with a config.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FaultView {
    /// What.
    pub(crate) message: String,
    /// When.
    pub(crate) at: Option<String>,
    /// The event that it came of, as JSON.
    pub(crate) event: Option<String>,
}

/// A config with all that is known of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ConfigDetail {
    /// Name of the project.
    pub(crate) project_name: String,
    /// Its organization.
    pub(crate) organization: String,
    /// The list that its plugin is on; none: the plugin is seen no more.
    pub(crate) shelf: Option<String>,
    /// What the list shows of it.
    pub(crate) line: ConfigLine,
    /// Its description, or its plugin's.
    pub(crate) description: String,
    /// The form of its settings.
    pub(crate) form: Vec<Part>,
    /// Their values, secrets as `(secret)`.
    pub(crate) values: Map<String, Value>,
    /// What becomes of events for which it cannot be run.
    pub(crate) on_failure: String,
    /// Jobs that can be started by hand.
    pub(crate) jobs: Vec<String>,
    /// When it was created.
    pub(crate) created_at: String,
    /// When it was last changed.
    pub(crate) updated_at: String,
    /// Why the person may not change it; none: the person may.
    pub(crate) refusal: Option<String>,
}

/// A plugin that a project is to use.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OfferedPlugin {
    /// Name of the project.
    pub(crate) project_name: String,
    /// Its organization.
    pub(crate) organization: String,
    /// The plugin.
    pub(crate) plugin: String,
    /// Its name.
    pub(crate) name: String,
    /// What it does.
    pub(crate) description: String,
    /// The list that it is on.
    pub(crate) shelf: String,
    /// The form of its settings.
    pub(crate) form: Vec<Part>,
    /// Why the person may not add it; none: the person may.
    pub(crate) refusal: Option<String>,
}

/// A page of a log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LogView {
    /// How many lines there are.
    pub(crate) total: u64,
    /// The lines.
    pub(crate) lines: Vec<LogLine>,
}

/// A line of a log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LogLine {
    /// When.
    pub(crate) at: String,
    /// `DEBUG`, `LOG`, `INFO`, `WARN` or `ERROR`.
    pub(crate) level: String,
    /// Who wrote it, in words.
    pub(crate) source: String,
    /// The text.
    pub(crate) message: String,
}

/// The values of a config as the service shows them.
pub(super) fn values_of(config: &PluginConfig) -> Map<String, Value> {
    match &config.fields.config {
        Texted::Value(values) => values.clone(),
        Texted::Text(text) => serde_json::from_str(text).unwrap_or_default(),
    }
}

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

impl ConfigDetail {
    /// What the config alone says.
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

impl OfferedPlugin {
    /// This plugin, for this project.
    pub(super) fn of(project: ProjectBrief, found: Shelved, refusal: Option<String>) -> Self {
        let name = name_of(&found.plugin);
        let fields = found.plugin.fields;
        Self {
            project_name: project.name,
            organization: project.organization.to_string(),
            plugin: found.plugin.id.to_string(),
            name,
            description: fields.description.unwrap_or_default(),
            shelf: found.shelf.text().to_owned(),
            form: parts(fields.config_schema.as_ref()),
            refusal,
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
