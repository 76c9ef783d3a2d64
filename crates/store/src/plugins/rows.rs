//! The stored form of plugins.

use serde_json::{Map, Value};
use surrealdb::types::{self, Kind, SurrealValue};
use uuid::Uuid;
use weir_model::plugins::{Group, PluginType};
use weir_model::{OrganizationId, PluginId, Timestamp};

/// A plugin as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginRow {
    /// Id of the plugin.
    pub id: PluginId,
    /// The organization that it belongs to.
    pub organization: OrganizationId,
    /// The group that it was created in.
    pub created_group: Option<Group>,
    /// Whether its capabilities were read from its code.
    pub is_analysed: bool,
    /// Where its code comes from.
    pub plugin_type: Option<PluginType>,
    /// Display name of the plugin.
    pub name: Option<String>,
    /// A description of the plugin.
    pub description: Option<String>,
    /// The URL of its code, without a token.
    pub url: Option<String>,
    /// The token with which its code is downloaded, sealed.
    pub private_token: Option<String>,
    /// URL of its icon.
    pub icon: Option<String>,
    /// The schema of its settings.
    pub config_schema: Option<Map<String, Value>>,
    /// The version of its code.
    pub tag: Option<String>,
    /// The newest known version.
    pub latest_tag: Option<String>,
    /// When a newer version was last requested of the host.
    pub latest_tag_checked_at: Option<Timestamp>,
    /// Whether all organizations may use it.
    pub is_global: bool,
    /// Whether all organizations could ever use it. Some may still use it.
    pub was_global: bool,
    /// The capabilities of its code.
    pub capabilities: Option<Map<String, Value>>,
    /// The metrics that it declares.
    pub metrics: Option<Map<String, Value>>,
    /// Jobs that users can start.
    pub public_jobs: Option<Map<String, Value>>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it or its source was last changed.
    pub updated_at: Timestamp,
    /// A new value after every change. A caller that changes the plugin names the
    /// revision that it read.
    pub revision: Uuid,
}

impl PluginRow {
    /// The groups that show the plugin: those of its capabilities, and also the group
    /// that it was created in until its code is analysed. A plugin whose code belongs to
    /// no group stays in that group, because it would not be reachable otherwise.
    pub fn groups(&self) -> Vec<Group> {
        let held = |group: &Group| group.holds(self.capabilities.as_ref());
        let is_homeless = !Group::ALL.iter().any(held);
        let stays = !self.is_analysed || is_homeless;
        let shows = |group: &Group| held(group) || (stays && self.created_group == Some(*group));
        Group::ALL.into_iter().filter(shows).collect()
    }
}

/// The record. Objects are stored as JSON text, because users choose their keys.
#[derive(Debug, Clone, SurrealValue)]
struct Stored {
    number: PluginId,
    organization: OrganizationId,
    created_group: Option<String>,
    // Missing for plugins that were created before code was analysed.
    is_analysed: Option<bool>,
    plugin_type: Option<String>,
    name: Option<String>,
    description: Option<String>,
    url: Option<String>,
    private_token: Option<String>,
    icon: Option<String>,
    config_schema: Option<String>,
    tag: Option<String>,
    latest_tag: Option<String>,
    latest_tag_checked_at: Option<Timestamp>,
    is_global: bool,
    was_global: bool,
    capabilities: Option<String>,
    metrics: Option<String>,
    public_jobs: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
    revision: Uuid,
}

impl SurrealValue for PluginRow {
    fn kind_of() -> Kind {
        Stored::kind_of()
    }

    fn into_value(self) -> types::Value {
        let json =
            |object: Option<Map<String, Value>>| object.map(|it| Value::Object(it).to_string());
        Stored {
            number: self.id,
            organization: self.organization,
            created_group: self.created_group.map(|group| group.text().to_owned()),
            is_analysed: Some(self.is_analysed),
            plugin_type: self.plugin_type.map(|kind| kind.text().to_owned()),
            name: self.name,
            description: self.description,
            url: self.url,
            private_token: self.private_token,
            icon: self.icon,
            config_schema: json(self.config_schema),
            tag: self.tag,
            latest_tag: self.latest_tag,
            latest_tag_checked_at: self.latest_tag_checked_at,
            is_global: self.is_global,
            was_global: self.was_global,
            capabilities: json(self.capabilities),
            metrics: json(self.metrics),
            public_jobs: json(self.public_jobs),
            created_at: self.created_at,
            updated_at: self.updated_at,
            revision: self.revision,
        }
        .into_value()
    }

    fn from_value(value: types::Value) -> Result<Self, types::Error> {
        let stored = Stored::from_value(value)?;
        let object = |text: Option<String>| {
            text.as_deref().map(serde_json::from_str).transpose().map_err(|error| shape(&error))
        };
        Ok(Self {
            id: stored.number,
            organization: stored.organization,
            created_group: stored.created_group.map(|word| group(&word)).transpose()?,
            is_analysed: stored.is_analysed.unwrap_or(false),
            plugin_type: stored.plugin_type.map(|word| plugin_type(&word)).transpose()?,
            name: stored.name,
            description: stored.description,
            url: stored.url,
            private_token: stored.private_token,
            icon: stored.icon,
            config_schema: object(stored.config_schema)?,
            tag: stored.tag,
            latest_tag: stored.latest_tag,
            latest_tag_checked_at: stored.latest_tag_checked_at,
            is_global: stored.is_global,
            was_global: stored.was_global,
            capabilities: object(stored.capabilities)?,
            metrics: object(stored.metrics)?,
            public_jobs: object(stored.public_jobs)?,
            created_at: stored.created_at,
            updated_at: stored.updated_at,
            revision: stored.revision,
        })
    }
}

fn shape(fault: &dyn std::fmt::Display) -> types::Error {
    types::Error::serialization(fault.to_string(), None)
}

fn group(word: &str) -> Result<Group, types::Error> {
    Group::of(word).ok_or_else(|| shape(&format_args!("unknown group `{word}`")))
}

fn plugin_type(word: &str) -> Result<PluginType, types::Error> {
    PluginType::of(word).ok_or_else(|| shape(&format_args!("unknown type `{word}`")))
}
