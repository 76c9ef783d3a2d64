//! The stored form of plugins.

use serde_json::{Map, Value};
use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::plugins::{Group, PluginType};
use weir_model::{OrganizationId, PluginId, Timestamp};

use crate::{Error, Result};

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
    /// When the host was last asked for a newer version.
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
pub(super) struct Stored {
    number: i64,
    organization: Uuid,
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
    latest_tag_checked_at: Option<i64>,
    is_global: bool,
    was_global: bool,
    capabilities: Option<String>,
    metrics: Option<String>,
    public_jobs: Option<String>,
    created_at: i64,
    updated_at: i64,
    revision: Uuid,
}

impl TryFrom<&PluginRow> for Stored {
    type Error = Error;

    fn try_from(row: &PluginRow) -> Result<Self> {
        let json = |object: &Option<Map<String, Value>>| {
            object.as_ref().map(serde_json::to_string).transpose().map_err(|error| shape(&error))
        };
        Ok(Self {
            number: row.id.0,
            organization: row.organization.0,
            created_group: row.created_group.map(|group| group.text().to_owned()),
            is_analysed: Some(row.is_analysed),
            plugin_type: row.plugin_type.map(|kind| kind.text().to_owned()),
            name: row.name.clone(),
            description: row.description.clone(),
            url: row.url.clone(),
            private_token: row.private_token.clone(),
            icon: row.icon.clone(),
            config_schema: json(&row.config_schema)?,
            tag: row.tag.clone(),
            latest_tag: row.latest_tag.clone(),
            latest_tag_checked_at: row.latest_tag_checked_at.map(Timestamp::micros),
            is_global: row.is_global,
            was_global: row.was_global,
            capabilities: json(&row.capabilities)?,
            metrics: json(&row.metrics)?,
            public_jobs: json(&row.public_jobs)?,
            created_at: row.created_at.micros(),
            updated_at: row.updated_at.micros(),
            revision: row.revision,
        })
    }
}

impl TryFrom<Stored> for PluginRow {
    type Error = Error;

    fn try_from(stored: Stored) -> Result<Self> {
        let object = |text: Option<String>| -> Result<Option<Map<String, Value>>> {
            text.as_deref().map(serde_json::from_str).transpose().map_err(|error| shape(&error))
        };
        Ok(Self {
            id: PluginId(stored.number),
            organization: OrganizationId(stored.organization),
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
            latest_tag_checked_at: stored.latest_tag_checked_at.map(Timestamp::from_micros),
            is_global: stored.is_global,
            was_global: stored.was_global,
            capabilities: object(stored.capabilities)?,
            metrics: object(stored.metrics)?,
            public_jobs: object(stored.public_jobs)?,
            created_at: Timestamp::from_micros(stored.created_at),
            updated_at: Timestamp::from_micros(stored.updated_at),
            revision: stored.revision,
        })
    }
}

pub(super) fn shape(fault: &dyn std::fmt::Display) -> Error {
    Error::Shape { statement: "plugins", detail: fault.to_string() }
}

fn group(word: &str) -> Result<Group> {
    Group::of(word).ok_or_else(|| shape(&format_args!("unknown group `{word}`")))
}

fn plugin_type(word: &str) -> Result<PluginType> {
    PluginType::of(word).ok_or_else(|| shape(&format_args!("unknown type `{word}`")))
}
