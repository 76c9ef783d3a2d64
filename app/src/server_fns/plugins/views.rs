//! Types for plugins as pages show them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use weir_model::activity::{Activity, AuditAction};
use weir_model::plugins::overview::CatalogueEntry;
use weir_model::plugins::{Plugin, PluginFields, PluginList};
#[cfg(feature = "ssr")]
use weir_service::plugins::{ListedPlugin, PluginUse};

#[cfg(feature = "ssr")]
use crate::pages::organization::activity_fields::words_of;
use crate::pages::organization::activity_words::action;
use crate::plugin_settings::{Part, parts};

/// Prefix of the addresses of plugins that are part of Weir.
const INLINE: &str = "inline:";

/// A list of plugins.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PluginListView {
    pub(crate) organization_name: String,
    pub(crate) plugins: Vec<PluginLine>,
    /// Why the user cannot install plugins. `None`: the user can.
    pub(crate) read_only_reason: Option<String>,
}

/// A plugin on a list.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct PluginLine {
    /// Id of the plugin.
    pub(crate) id: String,
    /// Name of the plugin, or a substitute for it.
    pub(crate) name: String,
    pub(crate) description: String,
    /// The list of the plugin, as in addresses.
    pub(crate) plugin_list: String,
    /// The API group of the plugin, as in addresses.
    pub(crate) group: String,
    /// Origin of its code, in words.
    pub(crate) origin: String,
    /// Address of its code.
    pub(crate) url: Option<String>,
    /// Address of its icon, if the content security policy of pages allows it.
    pub(crate) icon: Option<String>,
    /// Version of its code.
    pub(crate) tag: Option<String>,
    /// A newer version, if one is known.
    pub(crate) newer: Option<String>,
    /// Whether all organizations may use it.
    pub(crate) is_global: bool,
    /// Whether it belongs to the organization.
    pub(crate) is_own: bool,
    /// Name of its organization.
    pub(crate) owner: String,
    /// Whether no enabled config uses it.
    pub(crate) is_unused: bool,
    /// Whether its source can be edited in the app.
    pub(crate) is_edited_here: bool,
    /// Whether its code comes from another host, which can have a newer version.
    pub(crate) is_hosted_elsewhere: bool,
    /// Metrics that it declares: name, and kind of aggregation.
    pub(crate) metrics: Vec<(String, String)>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct PluginDetail {
    pub(crate) organization_name: String,
    /// The data that the list shows too.
    pub(crate) line: PluginLine,
    pub(crate) settings: Vec<Part>,
    /// Capabilities of its code: methods, scheduled tasks, jobs.
    pub(crate) capabilities: Vec<(String, Vec<String>)>,
    /// Jobs that can be started manually.
    pub(crate) jobs: Vec<String>,
    /// Why the user cannot change it. `None`: the user can.
    pub(crate) read_only_reason: Option<String>,
    /// Whether the user may share it with all organizations.
    pub(crate) offers: bool,
    /// The configs that use it.
    pub(crate) uses: Vec<UseView>,
    /// Number of configs in other organizations.
    pub(crate) elsewhere: usize,
    /// Its history, newest first.
    pub(crate) history: Vec<AuditEntryView>,
    /// Names of its source files, if the user may read them.
    pub(crate) files: Vec<String>,
    /// Errors in its source: file and message.
    pub(crate) faults: Vec<(String, String)>,
    /// The projects of the organization.
    pub(crate) projects: Vec<(i64, String)>,
}

/// A config that uses a plugin.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct UseView {
    /// Id of the config.
    pub(crate) config: String,
    /// Name of the config, if it is not the plugin's.
    pub(crate) name: Option<String>,
    /// Number of its project.
    pub(crate) project: i64,
    pub(crate) project_name: String,
    pub(crate) enabled: bool,
    /// Whether it is hidden and can be restored.
    pub(crate) deleted: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AuditEntryView {
    /// Time of the change.
    pub(crate) at: String,
    /// The actor.
    pub(crate) who: String,
    /// The audit action, in words.
    pub(crate) what: String,
    /// Labels of the changed fields. Empty if the plugin was added or removed.
    pub(crate) fields: Vec<String>,
}

/// The catalogue for one list.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CatalogueView {
    pub(crate) organization_name: String,
    /// Why the user cannot install plugins. `None`: the user can.
    pub(crate) read_only_reason: Option<String>,
    /// The entries that match the search.
    pub(crate) offers: Vec<OfferView>,
}

/// A catalogue entry.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OfferView {
    /// Name of the plugin.
    pub(crate) name: String,
    /// Address of the plugin.
    pub(crate) url: String,
    pub(crate) description: String,
    /// The installed plugin of the organization: list and id.
    pub(crate) installed: Option<(String, String)>,
}

/// The name of a plugin, for users.
pub(crate) fn name_of(plugin: &Plugin) -> String {
    let fields = &plugin.fields;
    let named = fields.name.clone().filter(|name| !name.trim().is_empty());
    named.or_else(|| fields.url.clone()).unwrap_or_else(|| format!("Plugin {}", plugin.id))
}

/// A newer version, if one is known.
pub(crate) fn newer(fields: &PluginFields) -> Option<String> {
    fields.latest_tag.clone().filter(|latest| fields.tag.as_ref() != Some(latest))
}

/// The strings of a JSON list.
fn names(value: Option<&Value>) -> Vec<String> {
    let listed = value.and_then(Value::as_array).into_iter().flatten();
    listed.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn origin(fields: &PluginFields) -> &'static str {
    use weir_model::plugins::PluginType;

    match fields.plugin_type {
        Some(PluginType::Inline) => "Weir",
        Some(PluginType::Source) => "Written here",
        Some(PluginType::Custom | PluginType::Repository) => "Another host",
        Some(PluginType::Local) => "A folder of the server",
        None => "Unknown",
    }
}

#[cfg(feature = "ssr")]
impl From<ListedPlugin> for PluginLine {
    fn from(found: ListedPlugin) -> Self {
        use weir_model::plugins::PluginType;

        let ListedPlugin { plugin, group, plugin_list, is_own, is_unused } = found;
        let name = name_of(&plugin);
        let fields = plugin.fields;
        let kind = fields.plugin_type;
        let metrics = fields.metrics.iter().flatten();
        let metrics = metrics.map(|(name, how)| {
            (name.clone(), how.as_str().map_or_else(|| how.to_string(), str::to_owned))
        });
        // The content security policy of pages allows only these images.
        let may_load = |icon: &String| icon.starts_with("data:image/");
        Self {
            id: plugin.id.to_string(),
            name,
            plugin_list: plugin_list.text().to_owned(),
            group: group.text().to_owned(),
            origin: origin(&fields).to_owned(),
            newer: newer(&fields),
            is_hosted_elsewhere: fields.url.as_ref().is_some_and(|url| !url.starts_with(INLINE)),
            is_edited_here: matches!(kind, Some(PluginType::Source | PluginType::Local)),
            metrics: metrics.collect(),
            icon: fields.icon.filter(may_load),
            description: fields.description.unwrap_or_default(),
            url: fields.url,
            tag: fields.tag,
            is_global: fields.is_global,
            owner: fields.organization_name.unwrap_or_default(),
            is_own,
            is_unused,
        }
    }
}

#[cfg(feature = "ssr")]
impl PluginDetail {
    /// The line from the record alone.
    pub(super) fn of(found: ListedPlugin) -> Self {
        let fields = &found.plugin.fields;
        let part = |name: &str| names(fields.capabilities.as_ref().and_then(|all| all.get(name)));
        let capabilities =
            [("Functions", "methods"), ("Runs on a schedule", "scheduled_tasks"), ("Jobs", "jobs")]
                .map(|(label, name)| (label.to_owned(), part(name)));
        Self {
            settings: parts(fields.config_schema.as_ref()),
            capabilities: capabilities.into_iter().filter(|(_, names)| !names.is_empty()).collect(),
            jobs: jobs(fields.public_jobs.as_ref(), fields.capabilities.as_ref()),
            line: PluginLine::from(found),
            ..Self::default()
        }
    }
}

/// Jobs that can be started manually: those that the author lists, and those of the code.
pub(crate) fn jobs(
    public: Option<&Map<String, Value>>,
    capabilities: Option<&Map<String, Value>>,
) -> Vec<String> {
    let mut jobs: Vec<String> = public.into_iter().flatten().map(|(job, _)| job.clone()).collect();
    jobs.extend(names(capabilities.and_then(|all| all.get("jobs"))));
    jobs.sort();
    jobs.dedup();
    jobs
}

#[cfg(feature = "ssr")]
impl UseView {
    /// The use with the name of its project.
    pub(super) fn of(one: PluginUse, projects: &[(i64, String)]) -> Self {
        let project = one.project.0;
        let known = projects.iter().find(|(id, _)| *id == project);
        Self {
            config: one.config.to_string(),
            name: one.name,
            project,
            project_name: known.map_or_else(|| project.to_string(), |(_, name)| name.clone()),
            enabled: one.enabled,
            deleted: one.deleted,
        }
    }
}

#[cfg(feature = "ssr")]
impl From<Activity> for AuditEntryView {
    fn from(entry: Activity) -> Self {
        let person = entry.user.map(|user| user.first_name);
        let unknown_author = if entry.is_system { "Weir" } else { "A deleted user" };
        // A new or removed plugin has all fields in its entry.
        let is_change =
            !matches!(entry.activity, AuditAction::Installed | AuditAction::Uninstalled);
        let changes = entry.detail.changes.into_iter().filter(|_| is_change);
        let fields = changes.map(|change| words_of(change.subject, &change.field)).collect();
        Self {
            at: entry.created_at.to_string(),
            who: person.unwrap_or_else(|| unknown_author.to_owned()),
            what: action(entry.activity).to_owned(),
            fields,
        }
    }
}

#[cfg(feature = "ssr")]
impl CatalogueView {
    /// The catalogue entries of a list that match a search.
    pub(super) fn of(
        organization_name: String,
        read_only_reason: Option<String>,
        plugin_list: PluginList,
        entries: Vec<CatalogueEntry>,
        installed: &[ListedPlugin],
        search: &str,
    ) -> Self {
        let wanted = search.trim().to_lowercase();
        let fits = |entry: &CatalogueEntry| {
            kinds(plugin_list).contains(&entry.kind.as_str())
                && (entry.name.to_lowercase().contains(&wanted)
                    || entry.description.to_lowercase().contains(&wanted))
        };
        let offer = |entry: CatalogueEntry| {
            let is_same = |one: &&ListedPlugin| {
                one.is_own && one.plugin.fields.url.as_ref() == Some(&entry.url)
            };
            let found = installed.iter().find(is_same);
            OfferView {
                installed: found
                    .map(|one| (one.plugin_list.text().to_owned(), one.plugin.id.to_string())),
                name: entry.name,
                url: entry.url,
                description: entry.description,
            }
        };
        let offers = entries.into_iter().filter(fits).map(offer).collect();
        Self { organization_name, read_only_reason, offers }
    }
}

/// The catalogue's names for the plugins of a list.
const fn kinds(plugin_list: PluginList) -> &'static [&'static str] {
    match plugin_list {
        PluginList::Destinations => &["data_out"],
        PluginList::FrontendApps => &["frontend"],
        PluginList::ImportApps => &[],
        PluginList::Transformations => &["data_in", "ingestion_filtering"],
    }
}
