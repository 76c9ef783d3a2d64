//! Plugin records: the resource, its groups and its input (PLG-1).
//!
//! What belongs here: types, limits and checks that need only the value. What does not:
//! permissions (`weir-service`), and values for a `config_schema` (`plugin_configs`).

pub mod address;
pub mod overview;
pub mod schema;
pub mod source;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::errors::FieldError;
use crate::ids::{OrganizationId, PluginId};
use crate::patch::Patch;

/// Longest name, in characters.
pub const NAME_MAX: usize = 200;
/// Longest description, in characters.
pub const DESCRIPTION_MAX: usize = 10_000;
/// Longest address, in characters.
pub const URL_MAX: usize = 800;
/// Longest address of an icon, in characters.
pub const ICON_MAX: usize = 800;
/// Longest tag, in characters.
pub const TAG_MAX: usize = 200;
/// Longest JSON text of each of the free objects, in bytes.
pub const OBJECT_MAX: usize = 65_536;
/// Maximum values in each of the free objects, nested ones too. A value in memory is much
/// larger than its shortest text.
pub const VALUES_MAX: usize = 1000;
/// Maximum plugins of an organization.
pub const PLUGINS_MAX: usize = 100;
/// Longest name of a source file, in characters.
pub const FILE_NAME_MAX: usize = 200;
/// Maximum source files of a plugin.
pub const FILES_MAX: usize = 50;
/// Maximum bytes of all source files of a plugin.
pub const SOURCE_MAX: usize = 512 << 10;
/// Largest compressed archive, in bytes.
pub const ARCHIVE_MAX: usize = 5 << 20;
/// The source file with the manifest of a plugin.
pub const MANIFEST: &str = "plugin.json";
/// The source file of a page in the app.
pub const FRONTEND: &str = "frontend.tsx";
/// The source file of code for visited pages.
pub const SITE: &str = "site.ts";

macro_rules! types {
    ($($(#[$doc:meta])* $variant:ident => $text:literal),+ $(,)?) => {
        /// Where the code of a plugin comes from.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
        #[serde(rename_all = "lowercase")]
        pub enum PluginType {
            $($(#[$doc])* $variant),+
        }

        impl PluginType {
            /// The words on the wire, in order.
            pub const WORDS: &'static [&'static str] = &[$($text),+];

            /// The word on the wire.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The type of this word.
            #[must_use]
            pub fn of(text: &str) -> Option<Self> {
                [$(Self::$variant),+].into_iter().find(|kind| kind.text() == text)
            }
        }
    };
}

types! {
    /// A folder of the host.
    Local => "local",
    /// A repository or a package.
    Custom => "custom",
    /// A repository or a package, chosen from the catalogue.
    Repository => "repository",
    /// Files that are edited in Weir.
    Source => "source",
    /// Shipped with the service.
    Inline => "inline",
}

/// A group of plugins with separate API routes (PLG-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Group {
    /// Plugins that deliver events.
    Destinations,
    /// Plugins with pages in the app.
    FrontendApps,
    /// Plugins that fetch events.
    ImportApps,
}

impl Group {
    /// All values.
    pub const ALL: [Self; 3] = [Self::Destinations, Self::FrontendApps, Self::ImportApps];

    /// The word in paths.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Destinations => "pipeline_destinations",
            Self::FrontendApps => "pipeline_frontend_apps",
            Self::ImportApps => "pipeline_import_apps",
        }
    }

    /// The group of this word.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.text() == text)
    }

    /// Whether a plugin with these capabilities belongs to the group.
    #[must_use]
    pub fn holds(self, capabilities: Option<&Map<String, Value>>) -> bool {
        let delivers =
            has_method(capabilities, "onEvent") || has_method(capabilities, "composeWebhook");
        let part = |name: &str| capabilities.and_then(|all| all.get(name));
        match self {
            Self::Destinations => delivers,
            Self::FrontendApps => part("methods").is_none() && part("scheduled_tasks").is_none(),
            Self::ImportApps => {
                let has_tasks = part("scheduled_tasks").and_then(Value::as_array);
                has_tasks.is_some_and(|tasks| !tasks.is_empty())
                    || (part("methods").is_some()
                        && !delivers
                        && !has_method(capabilities, "processEvent"))
            }
        }
    }
}

/// A list of plugins in the app: those of a group, or transformations. The API has no
/// group for transformations: it shows them in the group through which they were created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PluginList {
    /// Plugins that deliver events.
    Destinations,
    /// Plugins with pages in the app, or with code for visited pages.
    FrontendApps,
    /// Plugins that fetch events.
    ImportApps,
    /// Plugins that change events before they are stored.
    Transformations,
}

impl PluginList {
    /// All values.
    pub const ALL: [Self; 4] =
        [Self::Destinations, Self::FrontendApps, Self::ImportApps, Self::Transformations];

    /// The word in paths of pages.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Destinations => "destinations",
            Self::FrontendApps => "frontend-apps",
            Self::ImportApps => "import-apps",
            Self::Transformations => "transformations",
        }
    }

    /// The list of this word.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plugin_list| plugin_list.text() == text)
    }

    /// The group of the API through which new plugins of the list are created.
    #[must_use]
    pub const fn group(self) -> Group {
        match self {
            Self::Destinations | Self::Transformations => Group::Destinations,
            Self::FrontendApps => Group::FrontendApps,
            Self::ImportApps => Group::ImportApps,
        }
    }

    /// Whether the list shows a plugin of its group with these capabilities. A plugin
    /// that only transforms events is in its separate list.
    #[must_use]
    pub fn shows(self, capabilities: Option<&Map<String, Value>>) -> bool {
        match self {
            Self::Transformations => transforms(capabilities),
            Self::Destinations | Self::FrontendApps | Self::ImportApps => {
                self.group().holds(capabilities) || !transforms(capabilities)
            }
        }
    }
}

/// Whether a plugin changes events before they are stored, as far as its code was
/// inspected.
#[must_use]
pub fn transforms(capabilities: Option<&Map<String, Value>>) -> bool {
    has_method(capabilities, "processEvent") || has_method(capabilities, "processEventBatch")
}

/// Whether a plugin has this method, as far as its code was inspected.
#[must_use]
pub fn has_method(capabilities: Option<&Map<String, Value>>, name: &str) -> bool {
    let methods = capabilities.and_then(|all| all.get("methods")).and_then(Value::as_array);
    methods.is_some_and(|methods| methods.iter().any(|method| method == name))
}

/// What an organization may do with plugins. Higher includes lower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub enum PluginsAccess {
    /// 0: nothing; plugins are not visible.
    None,
    /// 3: see plugins, and configure the visible ones.
    Config,
    /// 6: install, change, upgrade and delete plugins for itself.
    Install,
    /// 9: offer its plugins to all organizations.
    Root,
}

impl PluginsAccess {
    /// The access of an organization that the operator has not limited (API-23).
    #[must_use]
    pub const fn unlimited() -> Self {
        Self::Root
    }
}

impl From<PluginsAccess> for i64 {
    fn from(access: PluginsAccess) -> Self {
        match access {
            PluginsAccess::None => 0,
            PluginsAccess::Config => 3,
            PluginsAccess::Install => 6,
            PluginsAccess::Root => 9,
        }
    }
}

impl TryFrom<i64> for PluginsAccess {
    type Error = String;
    fn try_from(value: i64) -> Result<Self, String> {
        match value {
            0 => Ok(Self::None),
            3 => Ok(Self::Config),
            6 => Ok(Self::Install),
            9 => Ok(Self::Root),
            other => Err(format!("\"{other}\" is not a valid choice.")),
        }
    }
}

/// A plugin record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Plugin {
    /// Unique id of the plugin.
    pub id: PluginId,
    /// All other fields.
    #[serde(flatten)]
    pub fields: PluginFields,
}

/// The fields of a plugin record without its id.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PluginFields {
    /// Where its code comes from: `local`, `custom`, `repository`, `source`,
    /// `inline` or null.
    pub plugin_type: Option<PluginType>,
    /// Display name.
    pub name: Option<String>,
    /// Description for users.
    pub description: Option<String>,
    /// The repository or package of its code, without a token.
    pub url: Option<String>,
    /// Address of its icon.
    pub icon: Option<String>,
    /// The settings of the plugin: from the key of a setting to its type and rules.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub config_schema: Option<Map<String, Value>>,
    /// The version of its code: a commit, a tag or a number.
    pub tag: Option<String>,
    /// The newest known version.
    pub latest_tag: Option<String>,
    /// Whether all organizations of the instance may use it.
    pub is_global: bool,
    /// The organization that it belongs to.
    pub organization_id: Option<OrganizationId>,
    /// The name of that organization.
    pub organization_name: Option<String>,
    /// Capabilities of its code: `methods`, `scheduled_tasks` and `jobs`, each a list of
    /// names; empty until the code was inspected.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub capabilities: Option<Map<String, Value>>,
    /// Its metrics: from a name to `sum`, `max` or `min`.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub metrics: Option<Map<String, Value>>,
    /// Jobs that can be started manually: from a name to `payload`.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub public_jobs: Option<Map<String, Value>>,
}

/// One record in an answer about many plugins: all fields are null if there is none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PluginShape {
    /// Id of the plugin; null: there is none.
    pub id: Option<PluginId>,
    /// All other fields.
    #[serde(flatten)]
    pub fields: PluginFields,
}

impl From<Option<Plugin>> for PluginShape {
    fn from(plugin: Option<Plugin>) -> Self {
        plugin.map_or_else(Self::default, |plugin| Self {
            id: Some(plugin.id),
            fields: plugin.fields,
        })
    }
}

/// Input fields of a plugin. For a new plugin, missing fields get their defaults.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PluginPatch {
    /// Where its code comes from.
    pub plugin_type: Patch<PluginType>,
    /// Name.
    pub name: Patch<String>,
    /// Description.
    pub description: Patch<String>,
    /// Address of its icon.
    pub icon: Patch<String>,
    /// The settings of the plugin.
    pub config_schema: Patch<Map<String, Value>>,
    /// The version of its code.
    pub tag: Patch<String>,
    /// Whether all organizations may use it.
    pub is_global: Patch<bool>,
    /// Capabilities of its code.
    pub capabilities: Patch<Map<String, Value>>,
    /// Its metrics.
    pub metrics: Patch<Map<String, Value>>,
    /// Jobs that can be started manually.
    pub public_jobs: Patch<Map<String, Value>>,
}

/// Input for a new plugin, checked as far as possible without other data.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PluginInput {
    /// Where its code comes from, unless it is edited in Weir.
    pub url: Option<address::CodeSource>,
    /// An archive with its code.
    pub archive: Option<SentArchive>,
    /// Its other fields.
    pub fields: PluginPatch,
}

/// Source files in an archive, as they were sent.
#[derive(Clone, PartialEq, Eq)]
pub struct SentArchive(pub Vec<u8>);

/// Prints no content, which is long.
impl fmt::Debug for SentArchive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SentArchive").field(&self.0.len()).finish()
    }
}

/// A change of source files: from the name of a file to its text, or to `None` to remove
/// it.
pub type SourceChange = Vec<(String, Option<String>)>;

/// Checks a free-form object of a plugin.
///
/// # Errors
/// `max_length` at `attr` if its JSON text is too long, or if it has too many values.
pub fn object(attr: &str, object: Map<String, Value>) -> Result<Map<String, Value>, FieldError> {
    let length = serde_json::to_string(&object).map_or(usize::MAX, |text| text.len());
    if length > OBJECT_MAX {
        let detail = format!("Ensure this field has no more than {OBJECT_MAX} bytes of JSON.");
        return Err(FieldError::new(attr, "max_length", detail));
    }
    if object.values().map(count_values).sum::<usize>() > VALUES_MAX {
        let detail = format!("Ensure this field has no more than {VALUES_MAX} values.");
        return Err(FieldError::new(attr, "max_length", detail));
    }
    Ok(object)
}

/// The number of values in a value, with itself.
fn count_values(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count_values).sum::<usize>(),
        Value::Object(members) => members.values().map(count_values).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Group, PluginList, PluginType, VALUES_MAX, object};

    #[test]
    fn objects_are_bounded_in_values_and_not_only_in_bytes() {
        let of = |count: usize| match json!({"list": vec![0; count - 1]}) {
            Value::Object(object) => object,
            other => panic!("no object: {other}"),
        };
        assert!(object("config", of(VALUES_MAX)).is_ok());
        let fault = object("config", of(VALUES_MAX + 1)).unwrap_err();
        assert_eq!((fault.attr.as_deref(), &*fault.code), (Some("config"), "max_length"));
        let nested = json!({"list": vec![json!({"a": [{}]}); 400]});
        assert!(object("config", nested.as_object().unwrap().clone()).is_err());
    }

    #[test]
    fn groups_follow_what_a_plugin_can_do() {
        let groups = |capabilities: Value| -> Vec<&str> {
            let capabilities = capabilities.as_object();
            let holding = Group::ALL.into_iter().filter(|group| group.holds(capabilities));
            holding.map(|group| group.text().trim_start_matches("pipeline_")).collect()
        };
        for (capabilities, expected) in [
            (Value::Null, vec!["frontend_apps"]),
            (json!({}), vec!["frontend_apps"]),
            (json!({"jobs": ["x"]}), vec!["frontend_apps"]),
            (json!({"methods": []}), vec!["import_apps"]),
            (json!({"methods": ["setupPlugin"]}), vec!["import_apps"]),
            (json!({"methods": ["onEvent"]}), vec!["destinations"]),
            (json!({"methods": ["composeWebhook", "processEvent"]}), vec!["destinations"]),
            (json!({"methods": ["processEvent"]}), vec![]),
            (json!({"scheduled_tasks": []}), vec![]),
            (json!({"scheduled_tasks": ["runEveryHour"]}), vec!["import_apps"]),
            (
                json!({"scheduled_tasks": ["runEveryHour"], "methods": ["onEvent"]}),
                vec!["destinations", "import_apps"],
            ),
            (json!({"methods": "onEvent", "scheduled_tasks": []}), vec!["import_apps"]),
        ] {
            assert_eq!(groups(capabilities.clone()), expected, "{capabilities}");
        }
    }

    #[test]
    fn what_changes_events_has_a_list_of_its_own() {
        let lists = |capabilities: Value| -> Vec<&str> {
            let capabilities = capabilities.as_object();
            let showing =
                PluginList::ALL.into_iter().filter(|plugin_list| plugin_list.shows(capabilities));
            showing.map(PluginList::text).collect()
        };
        assert_eq!(lists(json!({"methods": ["processEvent"]})), ["transformations"]);
        assert_eq!(
            lists(json!({"methods": ["processEvent", "onEvent"]})),
            ["destinations", "transformations"]
        );
        // A plugin without capabilities is shown in the group where it was created.
        assert_eq!(lists(json!({})), ["destinations", "frontend-apps", "import-apps"]);
        for plugin_list in PluginList::ALL {
            assert_eq!(PluginList::of(plugin_list.text()), Some(plugin_list));
        }
        assert_eq!(PluginList::of("exports"), None);
    }

    #[test]
    fn types_read_back() {
        for word in PluginType::WORDS {
            let kind = PluginType::of(word).unwrap();
            assert_eq!(serde_json::to_value(kind).unwrap(), json!(word));
        }
        assert_eq!(PluginType::of("Local"), None);
    }
}
