//! Plugins in the forms in which pages show them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use weir_model::activity::Activity;
use weir_model::plugins::overview::CatalogueEntry;
use weir_model::plugins::{Plugin, PluginFields, Shelf};
use weir_service::plugins::{PluginUse, Shelved};

use crate::plugin_settings::{Part, parts};

/// What the addresses of plugins that Weir ships begin with.
const INLINE: &str = "inline:";

/// A list of plugins.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ShelfView {
    /// Name of the organization.
    pub(crate) organization_name: String,
    /// The plugins.
    pub(crate) plugins: Vec<PluginLine>,
    /// Why the person may not install plugins; none: the person may.
    pub(crate) refusal: Option<String>,
}

/// A plugin on a list.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct PluginLine {
    /// Id.
    pub(crate) id: String,
    /// Name, or what else it is known by.
    pub(crate) name: String,
    /// What it does.
    pub(crate) description: String,
    /// The list that it is on, as in addresses.
    pub(crate) shelf: String,
    /// The group of the API that it is reached through, as in addresses.
    pub(crate) group: String,
    /// Where its code comes from, for people.
    pub(crate) origin: String,
    /// The address of its code.
    pub(crate) url: Option<String>,
    /// Address of its icon, where the page may load it.
    pub(crate) icon: Option<String>,
    /// The version of its code.
    pub(crate) tag: Option<String>,
    /// A newer version that is known of.
    pub(crate) newer: Option<String>,
    /// Whether all organizations may use it.
    pub(crate) is_global: bool,
    /// Whether it belongs to the organization.
    pub(crate) is_own: bool,
    /// The organization that it belongs to.
    pub(crate) owner: String,
    /// Whether no enabled config uses it.
    pub(crate) is_unused: bool,
    /// Whether its source can be edited here.
    pub(crate) is_edited_here: bool,
    /// Whether its code comes from another host, which may have newer code.
    pub(crate) is_elsewhere: bool,
    /// The metrics that it declares: name, and how they are counted.
    pub(crate) metrics: Vec<(String, String)>,
}

/// A plugin with all that is known of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct PluginDetail {
    /// Name of the organization.
    pub(crate) organization_name: String,
    /// What the list shows of it.
    pub(crate) line: PluginLine,
    /// What can be configured.
    pub(crate) settings: Vec<Part>,
    /// What its code can do: methods, tasks, jobs.
    pub(crate) capabilities: Vec<(String, Vec<String>)>,
    /// Jobs that can be started by hand.
    pub(crate) jobs: Vec<String>,
    /// Why the person may not change it; none: the person may.
    pub(crate) refusal: Option<String>,
    /// Whether the person may offer it to all organizations.
    pub(crate) offers: bool,
    /// The configs that use it.
    pub(crate) uses: Vec<UseView>,
    /// How many configs of other organizations do.
    pub(crate) elsewhere: usize,
    /// What was done with it, newest first.
    pub(crate) history: Vec<DeedView>,
    /// Names of its source files, where the person may read them.
    pub(crate) files: Vec<String>,
    /// What is wrong with its source: file and sentence.
    pub(crate) faults: Vec<(String, String)>,
    /// The projects of the organization.
    pub(crate) projects: Vec<(i64, String)>,
}

/// A config that uses a plugin.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct UseView {
    /// The config.
    pub(crate) config: String,
    /// A name of its own.
    pub(crate) name: Option<String>,
    /// Its project.
    pub(crate) project: i64,
    /// The name of that.
    pub(crate) project_name: String,
    /// Whether it is run.
    pub(crate) enabled: bool,
    /// Whether it was deleted, and can be brought back.
    pub(crate) deleted: bool,
}

/// Something that was done.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DeedView {
    /// When.
    pub(crate) at: String,
    /// Who did it.
    pub(crate) who: String,
    /// What was done.
    pub(crate) what: String,
    /// The fields that changed.
    pub(crate) fields: Vec<String>,
}

/// The catalogue.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CatalogueView {
    /// Name of the organization.
    pub(crate) organization_name: String,
    /// Why the person may not install plugins; none: the person may.
    pub(crate) refusal: Option<String>,
    /// What it has for the list, as searched for.
    pub(crate) offers: Vec<OfferView>,
}

/// A plugin that can be installed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OfferView {
    /// Name.
    pub(crate) name: String,
    /// Its address.
    pub(crate) url: String,
    /// What it does.
    pub(crate) description: String,
    /// The plugin that the organization has of it: list and id.
    pub(crate) installed: Option<(String, String)>,
}

/// The name that people know a plugin by.
pub(crate) fn name_of(plugin: &Plugin) -> String {
    let fields = &plugin.fields;
    let named = fields.name.clone().filter(|name| !name.trim().is_empty());
    named.or_else(|| fields.url.clone()).unwrap_or_else(|| format!("Plugin {}", plugin.id))
}

/// A newer version that is known of.
pub(crate) fn newer(fields: &PluginFields) -> Option<String> {
    fields.latest_tag.clone().filter(|latest| fields.tag.as_ref() != Some(latest))
}

/// The words of a list of names.
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

impl From<Shelved> for PluginLine {
    fn from(found: Shelved) -> Self {
        use weir_model::plugins::PluginType;

        let Shelved { plugin, group, shelf, is_own, is_unused } = found;
        let name = name_of(&plugin);
        let fields = plugin.fields;
        let kind = fields.plugin_type;
        let metrics = fields.metrics.iter().flatten();
        let metrics = metrics.map(|(name, how)| {
            (name.clone(), how.as_str().map_or_else(|| how.to_string(), str::to_owned))
        });
        // The policy of pages loads pictures from nowhere else.
        let may_load = |icon: &String| icon.starts_with("data:image/");
        Self {
            id: plugin.id.to_string(),
            name,
            shelf: shelf.text().to_owned(),
            group: group.text().to_owned(),
            origin: origin(&fields).to_owned(),
            newer: newer(&fields),
            is_elsewhere: fields.url.as_ref().is_some_and(|url| !url.starts_with(INLINE)),
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

impl PluginDetail {
    /// What the record alone says.
    pub(super) fn of(found: Shelved) -> Self {
        let fields = &found.plugin.fields;
        let part = |name: &str| names(fields.capabilities.as_ref().and_then(|all| all.get(name)));
        let capabilities =
            [("Functions", "methods"), ("Runs by the clock", "scheduled_tasks"), ("Jobs", "jobs")]
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

/// The jobs that can be started by hand: as its author and its code say.
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

impl UseView {
    /// A use, with the name of its project.
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

impl From<Activity> for DeedView {
    fn from(entry: Activity) -> Self {
        let person = entry.user.map(|user| user.first_name);
        let nobody = if entry.is_system { "Weir" } else { "Somebody whose account is gone" };
        Self {
            at: entry.created_at.to_string(),
            who: person.unwrap_or_else(|| nobody.to_owned()),
            what: entry.activity.text().replace('_', " "),
            fields: entry.detail.changes.into_iter().map(|change| change.field).collect(),
        }
    }
}

impl CatalogueView {
    /// What of the catalogue belongs on a list and is searched for.
    pub(super) fn of(
        organization_name: String,
        refusal: Option<String>,
        shelf: Shelf,
        entries: Vec<CatalogueEntry>,
        installed: &[Shelved],
        search: &str,
    ) -> Self {
        let wanted = search.trim().to_lowercase();
        let fits = |entry: &CatalogueEntry| {
            kinds(shelf).contains(&entry.kind.as_str())
                && (entry.name.to_lowercase().contains(&wanted)
                    || entry.description.to_lowercase().contains(&wanted))
        };
        let offer = |entry: CatalogueEntry| {
            let is_same =
                |one: &&Shelved| one.is_own && one.plugin.fields.url.as_ref() == Some(&entry.url);
            let found = installed.iter().find(is_same);
            OfferView {
                installed: found
                    .map(|one| (one.shelf.text().to_owned(), one.plugin.id.to_string())),
                name: entry.name,
                url: entry.url,
                description: entry.description,
            }
        };
        let offers = entries.into_iter().filter(fits).map(offer).collect();
        Self { organization_name, refusal, offers }
    }
}

/// What the catalogue calls the plugins of a list.
const fn kinds(shelf: Shelf) -> &'static [&'static str] {
    match shelf {
        Shelf::Destinations => &["data_out"],
        Shelf::FrontendApps => &["frontend"],
        Shelf::ImportApps => &[],
        Shelf::Transformations => &["data_in", "ingestion_filtering"],
    }
}
