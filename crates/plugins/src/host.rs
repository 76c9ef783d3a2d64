//! What plugins need of the service around them.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};
use weir_model::{ProjectId, Timestamp};
use weir_store::plugin_configs::ConfigRow;
use weir_store::plugins::PluginRow;

pub use weir_sandbox::Attachment;

/// The settings of a config, secrets included.
#[derive(Clone, Default)]
pub struct OpenedConfig {
    /// The values.
    pub config: Map<String, Value>,
    /// What is attached, by the setting that it is the value of.
    pub attachments: BTreeMap<String, Attachment>,
}

/// An event that a plugin makes.
#[derive(Debug, Clone, PartialEq)]
pub struct Captured {
    /// The project.
    pub project: ProjectId,
    /// Its name.
    pub event: String,
    /// Whom it is about.
    pub distinct_id: String,
    /// ISO text, if the plugin says when it happened.
    pub timestamp: Option<String>,
    /// The properties.
    pub properties: Map<String, Value>,
    /// Whether it comes from elsewhere and belongs to the past.
    pub historical: bool,
}

/// The service around plugins.
#[async_trait]
pub trait PluginsHost: Send + Sync + 'static {
    /// The time of day: what is due and what is written down goes by this clock.
    fn now(&self) -> Timestamp;

    /// The time since some moment. It only goes on, also while the clock is set.
    fn uptime(&self) -> Duration;

    /// Returns when everything that was acknowledged until now can be read.
    async fn applied(&self);

    /// The settings of a config.
    ///
    /// # Errors
    /// A sentence for members when they cannot be opened.
    async fn open(&self, config: &ConfigRow, plugin: &PluginRow) -> Result<OpenedConfig, String>;

    /// A config fails again and again: it is disabled, with `message` as its error,
    /// and members are told. `false`: that has to be tried again.
    async fn switch_off(&self, config: &ConfigRow, message: &str) -> bool;

    /// Sends an event the way that all events go.
    ///
    /// # Errors
    /// A sentence for members when it was not accepted.
    async fn capture(&self, event: Captured) -> Result<(), String>;
}
