//! Labels of the plugin lists.

use weir_model::plugins::PluginList;

/// The labels of a list.
#[derive(Clone, Copy)]
pub(super) struct ListLabels {
    /// The heading.
    pub(super) title: &'static str,
    /// What plugins of this list do.
    pub(super) lead: &'static str,
    /// The label of the button that adds a plugin.
    pub(super) add: &'static str,
    /// The heading of an empty list.
    pub(super) none: &'static str,
    /// An example of a plugin.
    pub(super) example: &'static str,
}

impl ListLabels {
    /// The labels of the list in the address.
    pub(super) fn of(plugin_list: &str) -> Self {
        PluginList::of(plugin_list).map_or(PLUGINS, labels_of)
    }

    /// All lists: name in the address, and labels.
    pub(super) fn all() -> [(&'static str, Self); 4] {
        PluginList::ALL.map(|plugin_list| (plugin_list.text(), labels_of(plugin_list)))
    }
}

/// Labels for an unknown list. The page says that it does not exist.
const PLUGINS: ListLabels =
    ListLabels { title: "Plugins", lead: "", add: "Add plugin", none: "No plugin", example: "" };

const fn labels_of(plugin_list: PluginList) -> ListLabels {
    match plugin_list {
        PluginList::Destinations => ListLabels {
            title: "Destinations",
            lead: "Plugins that send events elsewhere, one by one, after they were stored.",
            add: "Add destination",
            none: "No destination yet",
            example: "A destination sends each event on as it is stored: to a webhook, a chat, or a service with an API. For files and databases, use exports.",
        },
        PluginList::FrontendApps => ListLabels {
            title: "Frontend apps",
            lead: "Plugins that run on the pages of visitors.",
            add: "Add frontend app",
            none: "No frontend app yet",
            example: "A frontend app runs on visited pages that load it, such as a bar with a message and a link.",
        },
        PluginList::ImportApps => ListLabels {
            title: "Import apps",
            lead: "Plugins that fetch events from elsewhere on a schedule.",
            add: "Add import app",
            none: "No import app yet",
            example: "An import app asks another service every hour for what is new, and sends each thing as an event.",
        },
        PluginList::Transformations => ListLabels {
            title: "Transformation plugins",
            lead: "Plugins that change or drop events before they are stored. Each project says which of them it uses, and in which order.",
            add: "Add transformation",
            none: "No transformation plugin yet",
            example: "A transformation adds, changes or removes properties, or drops events: bots, addresses, what you do not want to store.",
        },
    }
}
