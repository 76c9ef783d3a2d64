//! What the lists of plugins are called.

use weir_model::plugins::Shelf;

/// The words of a list.
#[derive(Clone, Copy)]
pub(super) struct Words {
    /// Heading.
    pub(super) title: &'static str,
    /// What its plugins do.
    pub(super) lead: &'static str,
    /// The button that adds one.
    pub(super) add: &'static str,
    /// Heading where there is none.
    pub(super) none: &'static str,
    /// One that could be there.
    pub(super) example: &'static str,
}

impl Words {
    /// The words of the list that the address names.
    pub(super) fn of(shelf: &str) -> Self {
        Shelf::of(shelf).map_or(PLUGINS, words)
    }

    /// All lists: the word in addresses, and the words.
    pub(super) fn all() -> [(&'static str, Self); 4] {
        Shelf::ALL.map(|shelf| (shelf.text(), words(shelf)))
    }
}

/// A list that is not there: the page says so.
const PLUGINS: Words =
    Words { title: "Plugins", lead: "", add: "Add plugin", none: "No plugin", example: "" };

const fn words(shelf: Shelf) -> Words {
    match shelf {
        Shelf::Destinations => Words {
            title: "Destinations",
            lead: "Plugins that send events elsewhere, one by one, after they were stored.",
            add: "Add destination",
            none: "No destination yet",
            example: "A destination sends each event on as it is stored: to a webhook, a chat, or a service with an API. For files and databases, use exports.",
        },
        Shelf::FrontendApps => Words {
            title: "Frontend apps",
            lead: "Plugins that run on the pages of visitors.",
            add: "Add frontend app",
            none: "No frontend app yet",
            example: "A frontend app runs on visited pages that load it, such as a bar with a message and a link.",
        },
        Shelf::ImportApps => Words {
            title: "Import apps",
            lead: "Plugins that fetch events from elsewhere by the clock.",
            add: "Add import app",
            none: "No import app yet",
            example: "An import app asks another service every hour for what is new, and sends each thing as an event.",
        },
        Shelf::Transformations => Words {
            title: "Transformation plugins",
            lead: "Plugins that change or drop events before they are stored. Each project says which of them it uses, and in which order.",
            add: "Add transformation",
            none: "No transformation plugin yet",
            example: "A transformation adds, changes or removes properties, or drops events: bots, addresses, what you do not want to store.",
        },
    }
}
