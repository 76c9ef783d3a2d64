//! The configs that run: in which projects they are, and the data that running them needs.
//!
//! A config runs while it is enabled and not hidden (`deleted`), its organization may
//! configure plugins, and its plugin exists (PLG-4). A plugin that is no longer offered to all
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

/// A config with its plugin and the plugin's source. A trial also uses it for a disabled
/// config.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigWithSource {
    /// The config.
    pub config: ConfigRow,
    /// Its plugin.
    pub plugin: PluginRow,
    /// The plugin's source files by name, as [`source`] returns them.
    pub files: BTreeMap<String, String>,
}

// A scan of the whole table of pointers, which has one small record for each config.
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
struct Pointer {
    config: i64,
    plugin: i64,
    position: i64,
}

const POINTERS: Statement = Statement::read(
    "plugin registry of a project",
    "SELECT record::id(id)[1] AS config, plugin, position
     FROM project_plugin_config:[$project]..=[$project, ..]
     WHERE enabled = true AND deleted = false;",
);

/// The running configs of a project with their plugins, in the order of the project's list
/// of configs.
pub async fn running(store: &Store, project: ProjectId) -> Result<Vec<(ConfigRow, PluginRow)>> {
    let mut answer = store.db.run(POINTERS, bind! { project: project.0 }).await?;
    let mut pointers = answer.rows::<Pointer>(0)?;
    pointers.sort_by_key(|pointer| (pointer.position, pointer.plugin, pointer.config));
    let ids: Vec<PluginConfigId> =
        pointers.iter().map(|pointer| PluginConfigId(pointer.config)).collect();
    let found = configs::rows(store, project, &ids).await?;
    let Some(organization) = found.first().map(|row| row.organization) else {
        return Ok(Vec::new());
    };
    if organizations::plugins_access(store, organization).await? < PluginsAccess::Config {
        return Ok(Vec::new());
    }
    let used: BTreeSet<PluginId> = found.iter().map(|row| row.plugin).collect();
    // One read for each plugin: one read of several plugins fails if they need too much
    // memory together. Events wait for this function, so it must not fail because of that.
    let mut plugins: HashMap<PluginId, PluginRow> = HashMap::new();
    for id in used {
        plugins.extend(plugins::rows(store, &[id]).await?.into_iter().map(|row| (row.id, row)));
    }
    // A config may have changed after its pointer was read.
    let runs = found.into_iter().filter(|row| row.enabled && !row.deleted);
    let with_plugin = |row: ConfigRow| {
        let plugin = plugins.get(&row.plugin).cloned()?;
        Some((row, plugin))
    };
    Ok(runs.filter_map(with_plugin).collect())
}

/// As [`running`], with the source of each plugin.
pub async fn running_with_source(
    store: &Store,
    project: ProjectId,
) -> Result<Vec<ConfigWithSource>> {
    let mut sources: HashMap<PluginId, BTreeMap<String, String>> = HashMap::new();
    let mut configs = Vec::new();
    for (config, plugin) in running(store, project).await? {
        let files = match sources.get(&plugin.id) {
            Some(files) => files.clone(),
            None => {
                let files = source(store, plugin.id).await?;
                sources.insert(plugin.id, files.clone());
                files
            }
        };
        configs.push(ConfigWithSource { config, plugin, files });
    }
    Ok(configs)
}

/// The source files that running a plugin on the server needs: without the page in the app
/// and the code for visited pages, which run in browsers.
pub async fn source(store: &Store, plugin: PluginId) -> Result<BTreeMap<String, String>> {
    let mut files = plugins::files(store, plugin).await?;
    files.retain(|name, _| name != FRONTEND && name != SITE);
    Ok(files)
}

/// The configs of [`running`] whose plugins have code for visited pages.
pub async fn site_apps(store: &Store, project: ProjectId) -> Result<Vec<(ConfigRow, PluginRow)>> {
    let mut rows = running(store, project).await?;
    let used: Vec<PluginId> = rows.iter().map(|(_, plugin)| plugin.id).collect();
    let with_site = plugins::build::with_site(store, &used).await?;
    rows.retain(|(_, plugin)| with_site.contains(&plugin.id));
    Ok(rows)
}
