//! Code of plugins for browsers: the module of `frontend.tsx`, which the API returns, and
//! site apps (`site.ts`) for pages of visitors (PLG-22).

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

/// How many hexadecimal digits identify one state of a site app.
const HASH_DIGITS: usize = 16;

/// The code of a site app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteScript {
    /// JavaScript that starts the site app.
    pub text: String,
    /// The last part of its URL, which changes with the code.
    pub hash: String,
}

impl PluginConfigs {
    /// A config with the module of its plugin's page. Without a page the module says
    /// so, or contains the fault in its source.
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
                let (state, message) = match build.faults.get(FRONTEND) {
                    Some(fault) => ("error", Value::from(fault.as_str())),
                    None if files.contains_key(FRONTEND) => ("transpiling", Value::Bool(true)),
                    None => ("no_frontend", Value::Bool(true)),
                };
                let message = json!({"id": row.plugin, "config_id": row.id, state: message});
                format!("export function getFrontendApp() {{ return {message}; }}\n")
            }
        };
        Ok(PluginConfigFrontend { config: self.show(&row).await?, frontend: module })
    }

    /// The site apps for the visited pages of a project, in order. They are public.
    pub async fn site_apps(&self, project: ProjectId) -> Result<Vec<SiteApp>> {
        let found = registry::site_apps(&self.core.store, project).await?;
        let app = |(row, plugin): &(ConfigRow, PluginRow)| SiteApp {
            id: row.id.to_string(),
            url: format!("/site_app/{}/{}/{}/", row.id, row.web_token, hash(row, plugin)),
            kind: "site_app",
        };
        Ok(found.iter().map(app).collect())
    }

    /// The code of a site app, by the parts of its URL; `None`: there is none, or it is
    /// not enabled. It is public to clients that know the URL, and contains no secrets.
    pub async fn site_script(&self, config: &str, token: &str) -> Result<Option<SiteScript>> {
        let Some(id) = PluginConfigId::in_path(config) else { return Ok(None) };
        let store = &self.core.store;
        let Some(row) = weir_store::plugin_configs::find(store, id).await? else {
            return Ok(None);
        };
        // The token is in the settings of every page, so the comparison reveals no
        // secret by its time.
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

    /// Changes of configs and plugins from now on, for a cache.
    pub fn changes(&self) -> tokio::sync::broadcast::Receiver<PluginChange> {
        self.core.store.plugin_changes()
    }
}

/// The values of a config that are meant for pages. A value without a setting in the
/// plugin is skipped, because it could be a secret.
fn public_values(row: &ConfigRow, plugin: &PluginRow) -> Result<Map<String, Value>> {
    let settings = Settings::of(plugin.config_schema.as_ref());
    let mut shown = values::read(&row.values)?;
    shown.retain(|key, _| settings.is_for_pages(key) && !row.secret_keys.contains(key));
    Ok(shown)
}

/// A new value after every change of the config or the plugin.
fn hash(row: &ConfigRow, plugin: &PluginRow) -> String {
    let mut hash = secrets::sha256_hex(&format!("{}{}", row.revision, plugin.revision));
    hash.truncate(HASH_DIGITS);
    hash
}

/// Starts a site app with its config and the client library, which the library has
/// stored in a global variable with the id in its name.
fn script(id: PluginConfigId, site: &str, config: Map<String, Value>) -> String {
    // The config cannot end a script element, wherever the text is included.
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
