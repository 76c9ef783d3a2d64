//! Transformation configs of projects: the resource and its input (PLG-13, PLG-16).
//!
//! What belongs here: types, limits and checks that need only the value. What does not:
//! plugin records (`plugins`), sealing and permissions (`weir-service`).

mod dry;
mod fault;
mod log;
mod on_failure;
pub mod settings;
mod site;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::dry::{DryOutcome, DryRun, DryRunInput, DryStep};
pub use self::fault::{ConfigError, ConfigFault};
pub use self::log::{LogLevel, LogSource, PluginLogEntry};
pub use self::on_failure::OnFailure;
pub use self::site::SiteApp;
pub use crate::exports::SentConfig;
use crate::ids::{PluginConfigId, PluginId, ProjectId};
use crate::patch::Patch;
use crate::plugins::Plugin;
use crate::time::Timestamp;

/// Longest name, in characters.
pub const NAME_MAX: usize = 400;
/// Longest description, in characters.
pub const DESCRIPTION_MAX: usize = 1000;
/// Minimum and maximum of `order`.
pub const ORDER: (i64, i64) = (i32::MIN as i64, i32::MAX as i64);
/// Maximum enabled configs of a project.
pub const ENABLED_MAX: usize = 20;
/// Maximum configs of a project, including hidden ones.
pub const CONFIGS_MAX: usize = 250;
/// Maximum attachments of a config.
pub const ATTACHMENTS_MAX: usize = 20;
/// Largest attachment, in bytes.
pub const ATTACHMENT_MAX: usize = 256 << 10;
/// Longest file name and media type of an attachment, in characters.
pub const FILE_NAME_MAX: usize = 200;
/// Maximum pending jobs of a config.
pub const JOBS_MAX: usize = 100;
/// Longest name of a job, in characters.
pub const JOB_MAX: usize = 200;
/// Placeholder for a secret that is set. Sending it back keeps the secret.
pub const SECRET: &str = "(secret)";
/// The default media type of an attachment.
pub const ANY_MEDIA: &str = "application/octet-stream";

/// A value that clients of the protocol expect as JSON text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Texted<T> {
    /// Its JSON text.
    Text(String),
    /// The value.
    Value(T),
}

impl<T: Serialize> Texted<T> {
    /// The same value as JSON text.
    #[must_use]
    pub fn text(self) -> Self {
        match self {
            Self::Text(text) => Self::Text(text),
            // All types that are used here can be serialized to JSON.
            Self::Value(value) => {
                Self::Text(serde_json::to_string(&value).unwrap_or_else(|_| "null".to_owned()))
            }
        }
    }
}

/// A transformation config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PluginConfig {
    /// Unique id of the config.
    pub id: PluginConfigId,
    /// The plugin that it configures. It cannot be changed.
    pub plugin: PluginId,
    /// All other fields.
    #[serde(flatten)]
    pub fields: PluginConfigFields,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// Fields of a config that also exist if there is no config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PluginConfigFields {
    /// Whether it runs. At most 20 configs of a project can be enabled.
    pub enabled: bool,
    /// Position among the configs of its project: lower numbers first, then the older
    /// plugin first.
    #[cfg_attr(feature = "schema", schema(value_type = i32))]
    pub order: i64,
    /// The values of the plugin's settings as JSON text; with `expand=object` an object.
    /// A secret that is set has the value `(secret)`. An attachment has `uid`, `saved`,
    /// `size`, `name` and `type`.
    #[cfg_attr(feature = "schema", schema(value_type = String, example = "{}"))]
    pub config: Texted<Map<String, Value>>,
    /// The last error since the config was changed. With `expand=object` it is an object
    /// with `message`, `time` and `event`: the event that caused it, as text if it is
    /// long, or null if no event caused it.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub error: Option<ConfigError>,
    /// The project.
    pub team_id: ProjectId,
    /// The plugin record as JSON text; with `expand=object` an object. Null in lists, and
    /// for a hidden config whose plugin is not visible to the organization.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub plugin_info: Option<Texted<Box<Plugin>>>,
    /// The fraction of successful events of the last 24 hours, from 0 to 1; null: there
    /// were none.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub delivery_rate_24h: Option<Texted<f64>>,
    /// Display name; by default that of the plugin.
    pub name: Option<String>,
    /// Description for users; by default that of the plugin.
    pub description: Option<String>,
    /// Whether it is hidden from the list. It can be restored.
    pub deleted: bool,
    /// What happens to events if the config cannot run. By default, catalogue plugins
    /// that protect data hold events and then drop them, and all others store events
    /// unchanged.
    pub on_failure: OnFailure,
}

impl PluginConfigFields {
    /// The fields if there is no config.
    pub fn none(project: ProjectId) -> Self {
        Self {
            enabled: false,
            order: 0,
            config: Texted::Value(Map::new()),
            error: None,
            team_id: project,
            plugin_info: None,
            delivery_rate_24h: None,
            name: None,
            description: None,
            deleted: false,
            on_failure: OnFailure::StoreUnchanged,
        }
    }

    /// Converts objects and numbers to texts.
    #[must_use]
    pub fn texts(self) -> Self {
        Self {
            config: self.config.text(),
            error: self.error.map(ConfigError::text),
            plugin_info: self.plugin_info.map(Texted::text),
            delivery_rate_24h: self.delivery_rate_24h.map(Texted::text),
            ..self
        }
    }
}

impl PluginConfig {
    /// Converts objects and numbers to texts.
    #[must_use]
    pub fn texts(self) -> Self {
        Self { fields: self.fields.texts(), ..self }
    }
}

/// A config with the page code of its plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PluginConfigFrontend {
    /// The config.
    #[serde(flatten)]
    pub config: PluginConfig,
    /// A JavaScript module that exports `getFrontendApp`.
    pub frontend: String,
}

/// The configs of a project in a new order: the fields of the first one, and all configs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PluginConfigOrder {
    /// Id of the first config; null: there is none.
    pub id: Option<PluginConfigId>,
    /// Plugin of the first config.
    pub plugin: Option<PluginId>,
    /// All other fields of the first config.
    #[serde(flatten)]
    pub fields: PluginConfigFields,
    /// Time of creation of the first config.
    pub created_at: Option<Timestamp>,
    /// Time of the last change of the first config.
    pub updated_at: Option<Timestamp>,
    /// All configs of the project, in order.
    pub results: Vec<PluginConfig>,
}

impl PluginConfigOrder {
    /// The answer with these configs of a project.
    pub fn of(project: ProjectId, results: Vec<PluginConfig>) -> Self {
        let first = results.first();
        Self {
            id: first.map(|first| first.id),
            plugin: first.map(|first| first.plugin),
            fields: first
                .map_or_else(|| PluginConfigFields::none(project), |first| first.fields.clone()),
            created_at: first.map(|first| first.created_at),
            updated_at: first.map(|first| first.updated_at),
            results,
        }
    }

    /// Converts objects and numbers to texts.
    #[must_use]
    pub fn texts(self) -> Self {
        let results = self.results.into_iter().map(PluginConfig::texts).collect();
        Self { fields: self.fields.texts(), results, ..self }
    }
}

/// A file that was sent as an attachment.
#[derive(Clone, PartialEq, Eq)]
pub struct SentAttachment {
    /// The setting that it is the value of.
    pub key: String,
    /// Name of the file.
    pub name: String,
    /// Media type.
    pub media_type: String,
    /// The content.
    pub contents: Vec<u8>,
}

/// Prints no content, which may be a key.
impl fmt::Debug for SentAttachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SentAttachment")
            .field("key", &self.key)
            .field("size", &self.contents.len())
            .finish_non_exhaustive()
    }
}

/// Input for a new config, checked as far as possible without other data.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginConfigInput {
    /// The plugin.
    pub plugin: PluginId,
    /// Position among the configs of the project.
    pub order: i64,
    /// The other fields; its `order` is ignored.
    pub rest: PluginConfigPatch,
}

/// Changes of a config.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PluginConfigPatch {
    /// The plugin. It cannot be changed to another one.
    pub plugin: Option<PluginId>,
    /// Whether it runs.
    pub enabled: Patch<bool>,
    /// New position.
    pub order: Patch<i64>,
    /// The values of its settings, not yet checked.
    pub config: Option<SentConfig>,
    /// New name.
    pub name: Patch<String>,
    /// New description.
    pub description: Patch<String>,
    /// Whether it is hidden from the list.
    pub deleted: Patch<bool>,
    /// What happens to events if the config cannot run. Clearing it restores the default
    /// of the plugin.
    pub on_failure: Patch<OnFailure>,
    /// New attachments.
    pub add_attachments: Vec<SentAttachment>,
    /// Settings whose attachments are removed.
    pub remove_attachments: Vec<String>,
}

/// A new order of the configs of a project.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RearrangeInput {
    /// New positions by config.
    pub orders: Vec<(PluginConfigId, i64)>,
    /// A new position for one config.
    pub single: Option<SingleMove>,
}

/// A new position for one config, described with fields of a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SingleMove {
    /// Its plugin.
    pub plugin: PluginId,
    /// New position.
    pub order: i64,
    /// The config, if the plugin has several.
    pub id: Option<PluginConfigId>,
    /// The display name of the config, if the plugin has several.
    pub name: Option<String>,
}

/// A job of a plugin.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JobInput {
    /// Name of the job.
    pub kind: String,
    /// Input of the job.
    pub payload: Map<String, Value>,
    /// The operation, such as starting the job.
    pub operation: String,
}
