//! Source code of plugins: reading and editing.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use weir_model::plugins::{MANIFEST, PluginList, SITE, SourceChange};

use super::views::PluginLine;
#[cfg(feature = "ssr")]
use super::{enter_plugin, plugin_path};
#[cfg(feature = "ssr")]
use crate::context::{go, notice, ui_error};
use crate::error::UiError;
use crate::local_path;

/// A plugin with its source.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SourceView {
    pub(crate) line: PluginLine,
    /// Files: name and text.
    pub(crate) files: Vec<(String, String)>,
    /// Errors in the files: file and message.
    pub(crate) faults: Vec<(String, String)>,
    /// Why the user cannot change it. `None`: the user can.
    pub(crate) read_only_reason: Option<String>,
}

/// Refusal for transformations that are part of Weir.
const BUILT_IN: &str = "It comes with Weir. Upgrading Weir brings its newest code.";
/// Refusal for plugins from another host.
const BROUGHT: &str = "Its code comes from another host. Upgrading it would undo your changes.";

/// Returns the source of a plugin.
#[server(prefix = "/_fn", endpoint = "get_plugin_source")]
pub(crate) async fn get_plugin_source(
    organization: String,
    plugin: String,
) -> Result<SourceView, UiError> {
    let (services, org, found) = enter_plugin(&organization, &plugin).await?;
    let plugins = &services.plugins;
    let read_only_reason = plugins.why_not_change(&org, &found).await.map_err(ui_error)?;
    let source = plugins.source(&org, found.group, &plugin).await.map_err(ui_error)?;
    let line = PluginLine::from(found);
    let foreign = match (line.is_edited_here, line.is_hosted_elsewhere) {
        (true, _) => None,
        (false, true) => Some(BROUGHT.to_owned()),
        (false, false) => Some(BUILT_IN.to_owned()),
    };
    Ok(SourceView {
        files: source.files.into_iter().collect(),
        faults: source.faults.into_iter().collect(),
        read_only_reason: read_only_reason.or(foreign),
        line,
    })
}

/// Stores a new or changed source file. Code that cannot be loaded is stored too, and the
/// page shows its errors.
#[server(prefix = "/_fn", endpoint = "save_plugin_file")]
pub(crate) async fn save_plugin_file(
    organization: String,
    plugin: String,
    file: String,
    #[server(default)] seen: String,
    #[server(default)] source: String,
) -> Result<(), UiError> {
    use weir_model::plugins::source as model;

    use crate::edits::Edits;

    let (services, org, found) = enter_plugin(&organization, &plugin).await?;
    let file = file.trim();
    if !model::is_file_name(file) {
        let detail = "Enter a name with an ending, such as index.js or plugin.json.";
        return Err(UiError::field("file", "invalid_input", detail));
    }
    let name = model::file_name(file).map_err(UiError::Field)?;
    let present = services.plugins.source(&org, found.group, &plugin).await.map_err(ui_error)?;
    let stored = present.files.get(&name).map(String::as_str).unwrap_or_default();
    let mut edits = Edits::of(&seen);
    let is_own = edits.is_own("source", "The file", &source, stored);
    edits.check()?;
    if is_own || !present.files.contains_key(&name) {
        // Forms send CRLF line ends.
        let change = vec![(name.clone(), Some(source.replace("\r\n", "\n")))];
        change_source(&services, &org, &found, change).await?;
    }
    // The new code can belong to another list.
    let found = services.plugins.get_listed(&org, &plugin).await.map_err(ui_error)?;
    let path = plugin_path(&organization, found.plugin_list.text(), &plugin);
    go(&format!("{path}/source?file={}", local_path::encode(&name)));
    Ok(())
}

/// Removes a source file.
#[server(prefix = "/_fn", endpoint = "remove_plugin_file")]
pub(crate) async fn remove_plugin_file(
    organization: String,
    plugin: String,
    file: String,
) -> Result<(), UiError> {
    let (services, org, found) = enter_plugin(&organization, &plugin).await?;
    change_source(&services, &org, &found, vec![(file.clone(), None)]).await?;
    notice(&format!("Removed the file {file}."));
    let path = plugin_path(&organization, found.plugin_list.text(), &plugin);
    go(&format!("{path}/source"));
    Ok(())
}

#[cfg(feature = "ssr")]
async fn change_source(
    services: &weir_service::Services,
    org: &weir_service::OrgCtx,
    found: &weir_service::plugins::ListedPlugin,
    change: SourceChange,
) -> Result<(), UiError> {
    let (plugins, id) = (&services.plugins, found.plugin.id.to_string());
    let editable = plugins.editable(org, found.group, &id).await.map_err(ui_error)?;
    let changed = plugins.update_source(org, editable, change).await;
    // The form has the same field name for every file.
    changed.map(drop).map_err(|error| match ui_error(error) {
        UiError::Field(fault) => UiError::field("source", &fault.code, &fault.detail),
        other => other,
    })
}

/// Working example source for a new plugin.
pub(super) fn first_files(plugin_list: PluginList, name: &str) -> SourceChange {
    let manifest = serde_json::json!({"name": name, "config": []});
    let manifest = serde_json::to_string_pretty(&manifest).unwrap_or_default();
    let (file, text) = match plugin_list {
        PluginList::Transformations => (
            "index.js",
            "export function processEvent(event, { config }) {\n    \
             // Change the event and return it, or return null to drop it.\n    \
             return event\n}\n",
        ),
        PluginList::Destinations => (
            "index.js",
            "export async function onEvent(event, { config }) {\n    \
             // Send the stored event somewhere with fetch().\n    \
             console.log(event.event, event.distinct_id)\n}\n",
        ),
        PluginList::ImportApps => (
            "index.js",
            "export async function runEveryHour({ config, storage }) {\n    \
             // Fetch what is new since the last time, and send each as an event:\n    \
             // await posthog.capture('imported', { distinct_id: 'user-1' })\n}\n",
        ),
        PluginList::FrontendApps => (
            SITE,
            "export function inject({ config, posthog }) {\n    \
             // Runs on every visited page that loads apps.\n}\n",
        ),
    };
    vec![
        (MANIFEST.to_owned(), Some(format!("{manifest}\n"))),
        (file.to_owned(), Some(text.to_owned())),
    ]
}

#[cfg(test)]
mod tests {
    use weir_model::plugins::PluginList;
    use weir_model::plugins::source::{faults, manifest};

    use super::first_files;

    #[test]
    fn a_new_plugin_has_a_readable_manifest() {
        for plugin_list in PluginList::ALL {
            let files = first_files(plugin_list, "Say \"tea\"");
            let texts = files.into_iter().filter_map(|(name, text)| Some((name, text?))).collect();
            assert!(faults(&texts).is_empty(), "{plugin_list:?}");
            assert_eq!(manifest(&texts["plugin.json"]).unwrap().name.unwrap(), "Say \"tea\"");
        }
    }
}
