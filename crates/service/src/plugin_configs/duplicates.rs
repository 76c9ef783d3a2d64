//! Warning about steps of the catalogue that a project needs only once (PLG-21).

use std::collections::BTreeSet;

use weir_model::PluginId;
use weir_model::plugin_configs::{LogLevel, LogSource};
use weir_store::plugin_configs::{self as rows, ConfigRow, Use};
use weir_store::plugin_runtime::logs::{self, Line};
use weir_store::plugins::{self as plugin_rows, PluginRow};

use super::PluginConfigs;
use crate::Result;
use crate::plugins::catalogue;

/// The catalogue entries that add the same properties again when they run twice.
const ONCE: &[&str] = &["location"];

impl PluginConfigs {
    /// Writes a warning into the log of a config that was just enabled, if another
    /// enabled config does the same. The config stays enabled, even if the warning
    /// cannot be written.
    pub(super) async fn warn_of_duplicates(&self, row: &ConfigRow, plugin: &PluginRow) {
        let Some(entry) = once(plugin).filter(|_| row.enabled) else { return };
        if let Err(error) = self.warn(row, entry).await {
            tracing::error!(config = %row.id, %error, "a warning of a config was not written");
        }
    }

    async fn warn(&self, row: &ConfigRow, entry: &str) -> Result<()> {
        let store = &self.core.store;
        let mut uses = rows::of_organization(store, row.organization).await?;
        uses.retain(|one| one.project == row.project && one.enabled && one.config != row.id);
        let used: BTreeSet<PluginId> = uses.iter().map(|one| one.plugin).collect();
        let mut same: BTreeSet<PluginId> = BTreeSet::new();
        // One at a time: only a few are needed, and records may be large.
        for id in used {
            let found = plugin_rows::rows(store, &[id]).await?.into_iter();
            same.extend(found.filter(|other| once(other) == Some(entry)).map(|other| other.id));
        }
        let is_same = |one: &&Use| same.contains(&one.plugin);
        let Some(other) = uses.iter().find(is_same) else { return Ok(()) };
        let message = format!(
            "The config {} of this project does the same and is enabled too. One is enough.",
            other.config
        );
        let (source, level) = (LogSource::System, LogLevel::Warn);
        let line = Line { config: row.id, at: row.updated_at, source, level, message };
        Ok(logs::append(store, &[line]).await?)
    }
}

/// The catalogue entry of a plugin, if a project needs it only once.
fn once(plugin: &PluginRow) -> Option<&'static str> {
    let entry = catalogue::of_url(plugin.url.as_deref())?;
    ONCE.contains(&entry.id).then_some(entry.id)
}
