//! What plugins need from the service.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};
use weir_model::{ProjectId, Timestamp};
use weir_store::plugin_configs::ConfigRow;
use weir_store::plugins::PluginRow;

pub use weir_sandbox::Attachment;

/// The settings of a config, including secrets.
#[derive(Clone, Default)]
pub struct OpenedConfig {
    /// The values by key.
    pub config: Map<String, Value>,
    /// Attachments, by the setting that they are the value of.
    pub attachments: BTreeMap<String, Attachment>,
}

/// An event that a plugin makes.
#[derive(Debug, Clone, PartialEq)]
pub struct Captured {
    /// The project that gets the event.
    pub project: ProjectId,
    /// The event name.
    pub event: String,
    /// The distinct id of the user that the event is about.
    pub distinct_id: String,
    /// ISO text of the event time, if the plugin sets one.
    pub timestamp: Option<String>,
    /// The properties.
    pub properties: Map<String, Value>,
    /// Whether the event is historical (imported).
    pub historical: bool,
}

/// The service as plugins use it.
#[async_trait]
pub trait PluginServices: Send + Sync + 'static {
    /// The wall clock time. Schedules and stored times use this clock.
    fn now(&self) -> Timestamp;

    /// The time of a monotonic clock. Setting the wall clock does not change it.
    fn uptime(&self) -> Duration;

    /// Returns when all events that were acknowledged until now can be read.
    async fn applied(&self);

    /// The settings of a config.
    ///
    /// # Errors
    /// A message for members if the settings cannot be opened.
    async fn open(&self, config: &ConfigRow, plugin: &PluginRow) -> Result<OpenedConfig, String>;

    /// Disables a config that fails repeatedly, with `message` as its error, and notifies
    /// members. `false`: the caller must try again.
    async fn switch_off(&self, config: &ConfigRow, message: &str) -> bool;

    /// Sends an event through capture.
    ///
    /// # Errors
    /// A message for members if the event was not accepted.
    async fn capture(&self, event: Captured) -> Result<(), String>;
}
