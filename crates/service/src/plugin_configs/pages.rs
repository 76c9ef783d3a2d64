//! Code of plugins for browsers: the page in the app, and what runs on visited pages
//! (PLG-22).

use serde_json::{Map, Value, json};
use weir_model::plugin_configs::settings::Settings;
use weir_model::plugin_configs::{PluginConfigFrontend, SiteApp};
use weir_model::plugins::{FRONTEND, PluginsAccess};
use weir_model::{PluginConfigId, ProjectId};
use weir_store::organizations;
use weir_store::plugin_configs::ConfigRow;
use weir_store::plugin_runtime::{PluginChange, registry};
use weir_store::plugins::{self as plugin_rows, PluginRow, build};

use super::{PluginConfigs, values};
use crate::ctx::ProjectCtx;
use crate::error::Error;
use crate::{Result, secrets};

/// Hexadecimal digits that tell one state of an app from another.
const HASH: usize = 16;

/// The code of an app for visited pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteScript {
    /// JavaScript that starts the app.
    pub text: String,
    /// What its address has at its end while it is this one.
    pub hash: String,
}

impl PluginConfigs {
    /// A config with the module of its plugin's page. Where there is none the module
    /// says so, or what is wrong with its source.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn frontend(
        &self,
        project: &ProjectCtx,
        config: &str,
    ) -> Result<PluginConfigFrontend> {
        let row = self.readable(project, config).await?;
        let store = &self.core.store;
        let build = build::get(store, row.plugin).await?.unwrap_or_default();
        let module = match build.frontend {
            Some(module) => module,
            None => {
                let files = plugin_rows::files(store, row.plugin).await?;
                let (state, told) = match build.faults.get(FRONTEND) {
                    Some(fault) => ("error", Value::from(fault.as_str())),
                    None if files.contains_key(FRONTEND) => ("transpiling", Value::Bool(true)),
                    None => ("no_frontend", Value::Bool(true)),
                };
                let told = json!({"id": row.plugin, "config_id": row.id, state: told});
                format!("export function getFrontendApp() {{ return {told}; }}\n")
            }
        };
        Ok(PluginConfigFrontend { config: self.show(&row).await?, frontend: module })
    }

    /// The apps for the pages that a project's visitors see, in order. Everybody may
    /// know them: they are told to whoever visits.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn site_apps(&self, project: ProjectId) -> Result<Vec<SiteApp>> {
        let found = registry::site_apps(&self.core.store, project).await?;
        let app = |(row, plugin): &(ConfigRow, PluginRow)| SiteApp {
            id: row.id.to_string(),
            url: format!("/site_app/{}/{}/{}/", row.id, row.web_token, hash(row, plugin)),
            kind: "site_app",
        };
        Ok(found.iter().map(app).collect())
    }

    /// The code of an app by the words of its address; `None`: there is none, or it
    /// is not enabled. Everybody who knows the address may have it. Secrets are not
    /// in it.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn site_script(&self, config: &str, token: &str) -> Result<Option<SiteScript>> {
        let Some(id) = PluginConfigId::in_path(config) else { return Ok(None) };
        let store = &self.core.store;
        let Some(row) = weir_store::plugin_configs::find(store, id).await? else {
            return Ok(None);
        };
        // It is in the settings of every page: no secret that time could tell.
        if row.web_token != token || !row.enabled || row.deleted {
            return Ok(None);
        }
        let access = organizations::plugins_access(store, row.organization).await?;
        if access < PluginsAccess::Config {
            return Ok(None);
        }
        let plugin = match self.plugin(&row).await {
            Ok(plugin) => plugin,
            Err(Error::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let build = build::get(store, row.plugin).await?.unwrap_or_default();
        let Some(site) = build.site else { return Ok(None) };
        let text = script(row.id, &site, public_values(&row, &plugin)?);
        Ok(Some(SiteScript { text, hash: hash(&row, &plugin) }))
    }

    /// Changes of configs and plugins from now on, for whoever keeps a copy.
    #[must_use]
    pub fn changes(&self) -> tokio::sync::broadcast::Receiver<PluginChange> {
        self.core.store.plugin_changes()
    }
}

/// The values of a config that are meant for pages. One whose name the plugin does not
/// know may be anything.
fn public_values(row: &ConfigRow, plugin: &PluginRow) -> Result<Map<String, Value>> {
    let settings = Settings::of(plugin.config_schema.as_ref());
    let mut shown = values::read(&row.values)?;
    shown.retain(|key, _| settings.is_for_pages(key) && !row.secret_keys.contains(key));
    Ok(shown)
}

/// Another one after every change of the config or the plugin.
fn hash(row: &ConfigRow, plugin: &PluginRow) -> String {
    let mut hash = secrets::sha256_hex(&format!("{}{}", row.revision, plugin.revision));
    hash.truncate(HASH);
    hash
}

/// Starts an app with its config, and the library that asked for it: that leaves
/// itself in a place with the id in its name.
fn script(id: PluginConfigId, site: &str, config: Map<String, Value>) -> String {
    // Nothing in it can end a script element, wherever somebody puts the text.
    let config = Value::Object(config).to_string().replace('<', "\\u003c");
    format!(
        "(function(){{var made={site}\n;\
         var app=typeof made===\"function\"?made():made;\
         if(app&&typeof app.inject===\"function\"){{\
         app.inject({{config:{config},posthog:window[\"__$$ph_site_app_{id}\"]}});}}}})();\n"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_app_is_started_with_its_config() {
        let config = json!({"text": "</script>"}).as_object().unwrap().clone();
        let text = script(PluginConfigId(7), "(function(){return {}})", config);
        assert!(
            text.starts_with("(function(){var made=(function(){return {}})\n;var app="),
            "{text}"
        );
        assert!(text.contains(r#"config:{"text":"\u003c/script>"}"#), "{text}");
        assert!(text.contains(r#"posthog:window["__$$ph_site_app_7"]"#), "{text}");
    }
}
