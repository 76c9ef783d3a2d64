//! Transformation configs of projects: the resource and what may be entered
//! (PLG-13, PLG-16).
//!
//! What belongs here: types, limits and checks that need nothing but the value.
//! What does not: plugin records (`plugins`), sealing and who may do what
//! (`weir-service`).

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
/// Least and most of `order`.
pub const ORDER: (i64, i64) = (i32::MIN as i64, i32::MAX as i64);
/// Configs of one project that may be enabled.
pub const ENABLED_MAX: usize = 20;
/// Configs of one project, hidden ones too.
pub const CONFIGS_MAX: usize = 1000;
/// Attachments of one config.
pub const ATTACHMENTS_MAX: usize = 20;
/// Largest attachment, in bytes.
pub const ATTACHMENT_MAX: usize = 256 << 10;
/// Longest file name and media type of an attachment, in characters.
pub const FILE_NAME_MAX: usize = 200;
/// Jobs of one config that may wait.
pub const JOBS_MAX: usize = 100;
/// Longest name of a job, in characters.
pub const JOB_MAX: usize = 200;
/// What stands in the place of a secret that is set. Sent back, it keeps it.
pub const SECRET: &str = "(secret)";
/// The media type of an attachment that came without one.
pub const ANY_MEDIA: &str = "application/octet-stream";

/// A value that clients of the protocol expect as a text: its JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Texted<T> {
    /// Its JSON text.
    Text(String),
    /// The value itself.
    Value(T),
}

impl<T: Serialize> Texted<T> {
    /// The same as a text.
    #[must_use]
    pub fn text(self) -> Self {
        match self {
            Self::Text(text) => Self::Text(text),
            // Ours all have a JSON form.
            Self::Value(value) => {
                Self::Text(serde_json::to_string(&value).unwrap_or_else(|_| "null".to_owned()))
            }
        }
    }
}

/// A transformation config as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PluginConfig {
    /// Id.
    pub id: PluginConfigId,
    /// The plugin that it configures. Never changes.
    pub plugin: PluginId,
    /// Everything else.
    #[serde(flatten)]
    pub fields: PluginConfigFields,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// What can be told of a config that is not there, too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PluginConfigFields {
    /// Whether it is to be run. At most 20 of a project may be.
    pub enabled: bool,
    /// Where it stands among the others of its project: lower ones come first,
    /// of equal ones that of the older plugin.
    #[cfg_attr(feature = "schema", schema(value_type = i32))]
    pub order: i64,
    /// The values of the plugin's settings as JSON text; with `expand=object` an
    /// object. Secrets that are set read `(secret)`, attachments have `uid`,
    /// `saved`, `size`, `name` and `type`.
    #[cfg_attr(feature = "schema", schema(value_type = String, example = "{}"))]
    pub config: Texted<Map<String, Value>>,
    /// What went wrong last, since the config was last changed; with `expand=object`
    /// an object of it as `message`, of its `time`, and of the `event` that it came
    /// of, which is null where it came of none, and a text where it is long.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub error: Option<ConfigError>,
    /// The project.
    pub team_id: ProjectId,
    /// The plugin's record as JSON text; with `expand=object` an object; null in
    /// lists, and of a hidden config whose plugin the organization does not see.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub plugin_info: Option<Texted<Box<Plugin>>>,
    /// The part of the events of the last 24 hours that it went well with, from 0
    /// to 1; null: there were none.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub delivery_rate_24h: Option<Texted<f64>>,
    /// Name, for people: the plugin's where it has none of its own.
    pub name: Option<String>,
    /// What it does, for people: likewise.
    pub description: Option<String>,
    /// Whether it is hidden from the list. It can be brought back.
    pub deleted: bool,
    /// What becomes of events for which it cannot be run. Steps of the catalogue that
    /// protect data hold and then drop them unless something else is asked for, all
    /// others store them unchanged.
    pub on_failure: OnFailure,
}

impl PluginConfigFields {
    /// Those of no config.
    #[must_use]
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

    /// The same with texts in the places of objects and numbers.
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
    /// The same with texts in the places of objects and numbers.
    #[must_use]
    pub fn texts(self) -> Self {
        Self { fields: self.fields.texts(), ..self }
    }
}

/// A config with the code of its plugin's page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PluginConfigFrontend {
    /// The config.
    #[serde(flatten)]
    pub config: PluginConfig,
    /// A JavaScript module that exports `getFrontendApp`.
    pub frontend: String,
}

/// The configs of a project in a new order: the first one, and all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PluginConfigOrder {
    /// Id of the first one; null: there is none.
    pub id: Option<PluginConfigId>,
    /// Its plugin.
    pub plugin: Option<PluginId>,
    /// Everything else of it.
    #[serde(flatten)]
    pub fields: PluginConfigFields,
    /// When it was created.
    pub created_at: Option<Timestamp>,
    /// When it was last changed.
    pub updated_at: Option<Timestamp>,
    /// All configs of the project, in order.
    pub results: Vec<PluginConfig>,
}

impl PluginConfigOrder {
    /// The answer about these configs of a project.
    #[must_use]
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

    /// The same with texts in the places of objects and numbers.
    #[must_use]
    pub fn texts(self) -> Self {
        let results = self.results.into_iter().map(PluginConfig::texts).collect();
        Self { fields: self.fields.texts(), results, ..self }
    }
}

/// A file that was sent to be attached.
#[derive(Clone, PartialEq, Eq)]
pub struct SentAttachment {
    /// The setting that it is to be the value of.
    pub key: String,
    /// Name of the file.
    pub name: String,
    /// Media type.
    pub media_type: String,
    /// What is in it.
    pub contents: Vec<u8>,
}

/// Without the contents, which may be a key.
impl fmt::Debug for SentAttachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SentAttachment")
            .field("key", &self.key)
            .field("size", &self.contents.len())
            .finish_non_exhaustive()
    }
}

/// A new config, checked as far as it can be by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginConfigInput {
    /// The plugin.
    pub plugin: PluginId,
    /// Where it is to stand.
    pub order: i64,
    /// The other fields; its `order` says nothing.
    pub rest: PluginConfigPatch,
}

/// Changes of a config.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PluginConfigPatch {
    /// The plugin, which cannot become another one.
    pub plugin: Option<PluginId>,
    /// Whether it is to be run.
    pub enabled: Patch<bool>,
    /// Where it is to stand.
    pub order: Patch<i64>,
    /// The values of its settings, not yet checked.
    pub config: Option<SentConfig>,
    /// New name.
    pub name: Patch<String>,
    /// New description.
    pub description: Patch<String>,
    /// Whether it is hidden from the list.
    pub deleted: Patch<bool>,
    /// What becomes of events for which it cannot be run; clearing leaves it to the
    /// plugin.
    pub on_failure: Patch<OnFailure>,
    /// Files to be attached.
    pub add_attachments: Vec<SentAttachment>,
    /// Settings whose attachments are to be removed.
    pub remove_attachments: Vec<String>,
}

/// A new order of the configs of a project.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RearrangeInput {
    /// New places by config.
    pub orders: Vec<(PluginConfigId, i64)>,
    /// A new place for one config.
    pub single: Option<SingleMove>,
}

/// A new place for one config, as a client names it that knows the fields of a config
/// only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SingleMove {
    /// Its plugin.
    pub plugin: PluginId,
    /// Where it is to stand.
    pub order: i64,
    /// Which config of the plugin, where there are several.
    pub id: Option<PluginConfigId>,
    /// The same by the name that people see.
    pub name: Option<String>,
}

/// A job of a plugin.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JobInput {
    /// Its name.
    pub kind: String,
    /// What it gets.
    pub payload: Map<String, Value>,
    /// What is to be done with it.
    pub operation: String,
}
