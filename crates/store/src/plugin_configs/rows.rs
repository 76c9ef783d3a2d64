//! The stored forms of configs, and of their attachments and pointers.

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::plugin_configs::OnFailure;
use weir_model::{OrganizationId, PluginConfigId, PluginId, ProjectId, Timestamp};

/// A config as stored.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct ConfigRow {
    /// Id of the config.
    #[surreal(rename = "number")]
    pub id: PluginConfigId,
    /// The organization of the project.
    pub organization: OrganizationId,
    /// The project that the config belongs to.
    pub project: ProjectId,
    /// The plugin that it configures.
    pub plugin: PluginId,
    /// Whether it is to be run.
    pub enabled: bool,
    /// Its position among the configs of its project.
    #[surreal(rename = "position")]
    pub order: i64,
    /// The values of its settings without secrets, as JSON.
    #[surreal(rename = "settings")]
    pub values: String,
    /// The values of its secret settings, sealed; `None`: it has none.
    pub secrets: Option<String>,
    /// The names of the settings in `secrets`.
    pub secret_keys: Vec<String>,
    /// Its attachments, in order of their keys.
    pub attachments: Vec<AttachmentRow>,
    /// A name of the config, shown instead of that of the plugin.
    pub name: Option<String>,
    /// The config's own description.
    pub description: Option<String>,
    /// Whether it is hidden from the list.
    pub deleted: bool,
    /// The policy for events when the plugin cannot run; `None`: the default of the
    /// plugin.
    pub on_failure: Option<OnFailure>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// A new value after every change. A caller that changes the config names the
    /// revision that it read.
    pub revision: Uuid,
    /// The token in the URL of its code for visited pages. Never changes.
    pub web_token: String,
}

/// The fields of a config that are needed where its plugin is deleted or its uses are
/// listed.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct ConfigBrief {
    /// Id of the config.
    #[surreal(rename = "number")]
    pub id: PluginConfigId,
    /// The organization of the project.
    pub organization: OrganizationId,
    /// The project that the config belongs to.
    pub project: ProjectId,
    /// A name of the config, shown instead of that of the plugin.
    pub name: Option<String>,
    /// Whether it is to be run.
    pub enabled: bool,
    /// Whether it is hidden from the list.
    pub deleted: bool,
    /// A new value after every change.
    pub revision: Uuid,
}

/// An attachment without its contents.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct AttachmentRow {
    /// A new value after every change of the contents.
    pub uid: Uuid,
    /// The key of the setting whose value it is.
    pub key: String,
    /// Name of the uploaded file.
    pub name: String,
    /// Media type of the file.
    pub media_type: String,
    /// Size of the contents, bytes.
    pub size: i64,
    /// Whether the plugin declared the setting as secret when the file was attached.
    pub secret: bool,
}

/// The contents of a new attachment.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct Contents {
    /// The attachment's `uid`.
    pub uid: Uuid,
    /// The contents, sealed.
    pub sealed: String,
}

/// The use of a plugin by a config.
#[derive(Debug, Clone, Copy, PartialEq, Eq, SurrealValue)]
pub struct Use {
    /// The config that uses the plugin.
    pub config: PluginConfigId,
    /// The plugin that is used.
    pub plugin: PluginId,
    /// The organization of the config's project.
    pub organization: OrganizationId,
    /// The project of the config.
    pub project: ProjectId,
    /// Whether the config is enabled.
    pub enabled: bool,
    /// Whether the config is hidden. A hidden config makes no plugin visible.
    pub deleted: bool,
}

/// The fields of a config that sorting needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, SurrealValue)]
pub struct Position {
    /// The config.
    #[surreal(rename = "config")]
    pub id: PluginConfigId,
    /// The plugin that the config uses.
    pub plugin: PluginId,
    /// Its position in the list.
    #[surreal(rename = "position")]
    pub order: i64,
    /// Whether it is hidden from the list.
    pub deleted: bool,
}

/// A new position of a config.
#[derive(Debug, Clone, Copy, PartialEq, Eq, SurrealValue)]
pub struct Move {
    /// The config.
    #[surreal(rename = "config")]
    pub id: PluginConfigId,
    /// The new position in the list.
    #[surreal(rename = "position")]
    pub order: i64,
    /// Its revision when it was read.
    pub before: Uuid,
    /// Its revision after the move.
    pub after: Uuid,
}
