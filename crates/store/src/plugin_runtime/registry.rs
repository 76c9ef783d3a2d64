//! The enabled configs: in which projects they are, and the data that running them needs.
//!
//! A config runs while it is enabled and not hidden, its organization may configure
//! plugins, and its plugin exists (PLG-4). A plugin that is no longer offered to all
//! organizations keeps running where it is configured, because the config makes it
//! visible there.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use surrealdb::types::SurrealValue;
use weir_model::plugins::{FRONTEND, PluginsAccess, SITE};
use weir_model::{PluginConfigId, PluginId, ProjectId};

use crate::bind::bind;
use crate::db::Statement;
use crate::plugin_configs::{self as configs, ConfigRow};
use crate::plugins::{self, PluginRow};
use crate::{Result, Store, organizations};

/// An enabled config with its plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct Enabled {
    /// The enabled config.
    pub config: ConfigRow,
    /// Its plugin.
    pub plugin: PluginRow,
    /// The plugin's source files by name, without those of pages.
    pub files: BTreeMap<String, String>,
}

// A table scan of the pointers: one small record for each config.
const PROJECTS: Statement = Statement::read(
    "plugin registry projects",
    "SELECT VALUE record::id(id)[0] FROM project_plugin_config
     WHERE enabled = true AND deleted = false;",
);

/// The projects of the instance that have an enabled config, even if none of them runs.
pub async fn enabled_projects(store: &Store) -> Result<Vec<ProjectId>> {
    let found: Vec<i64> = store.db.run(PROJECTS, bind! {}).await?.rows(0)?;
    let projects: BTreeSet<i64> = found.into_iter().collect();
    Ok(projects.into_iter().map(ProjectId).collect())
}

#[derive(Debug, SurrealValue)]
struct StoredProject {
    config: i64,
    plugin: i64,
    position: i64,
}

const OF_PROJECT: Statement = Statement::read(
    "plugin registry of a project",
    "SELECT record::id(id)[1] AS config, plugin, position
     FROM project_plugin_config:[$project]..=[$project, ..]
     WHERE enabled = true AND deleted = false;",
);

/// The running configs of a project with their plugins, in the order of the list.
pub async fn running(store: &Store, project: ProjectId) -> Result<Vec<(ConfigRow, PluginRow)>> {
    let mut answer = store.db.run(OF_PROJECT, bind! { project: project.0 }).await?;
    let mut places = answer.rows::<StoredProject>(0)?;
    places.sort_by_key(|place| (place.position, place.plugin, place.config));
    let ids: Vec<PluginConfigId> =
        places.iter().map(|place| PluginConfigId(place.config)).collect();
    let found = configs::rows(store, project, &ids).await?;
    let Some(home) = found.first().map(|row| row.organization) else { return Ok(Vec::new()) };
    if organizations::plugins_access(store, home).await? < PluginsAccess::Config {
        return Ok(Vec::new());
    }
    let used: BTreeSet<PluginId> = found.iter().map(|row| row.plugin).collect();
    // One at a time: events wait for this, so that old and large records are no error.
    let mut plugins: HashMap<PluginId, PluginRow> = HashMap::new();
    for id in used {
        plugins.extend(plugins::rows(store, &[id]).await?.into_iter().map(|row| (row.id, row)));
    }
    // The pointers may be older than the records.
    let runs = found.into_iter().filter(|row| row.enabled && !row.deleted);
    Ok(runs.filter_map(|row| plugins.get(&row.plugin).cloned().map(|of| (row, of))).collect())
}

/// The running configs of a project with their source, in the order of the list.
pub async fn enabled_of(store: &Store, project: ProjectId) -> Result<Vec<Enabled>> {
    let mut sources: HashMap<PluginId, BTreeMap<String, String>> = HashMap::new();
    let mut enabled = Vec::new();
    for (config, plugin) in running(store, project).await? {
        let files = match sources.get(&plugin.id) {
            Some(files) => files.clone(),
            None => {
                let files = source(store, plugin.id).await?;
                sources.insert(plugin.id, files.clone());
                files
            }
        };
        enabled.push(Enabled { config, plugin, files });
    }
    Ok(enabled)
}

/// The source files that running a plugin needs: without those of pages.
pub async fn source(store: &Store, plugin: PluginId) -> Result<BTreeMap<String, String>> {
    let mut files = plugins::files(store, plugin).await?;
    files.retain(|name, _| name != FRONTEND && name != SITE);
    Ok(files)
}

/// The running configs of a project whose plugins have code for visited pages, in the
/// order of the list.
pub async fn site_apps(store: &Store, project: ProjectId) -> Result<Vec<(ConfigRow, PluginRow)>> {
    let mut rows = running(store, project).await?;
    let used: Vec<PluginId> = rows.iter().map(|(_, plugin)| plugin.id).collect();
    let with_site = plugins::build::with_site(store, &used).await?;
    rows.retain(|(_, plugin)| with_site.contains(&plugin.id));
    Ok(rows)
}
