//! The pages in the navigation, each with its letter for the shortcut after `g`. Search,
//! the breadcrumb and the list of shortcuts use the same table.

use super::nav_target::NavTarget;

/// A page of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NavEntry {
    /// The label of the link, below the heading of its group.
    pub(crate) label: &'static str,
    /// The name of the page where no heading says what it is about.
    pub(crate) name: &'static str,
    /// Name of its icon.
    pub(crate) icon: &'static str,
    /// The letter of its shortcut.
    pub(crate) letter: &'static str,
    of: Of,
    path: &'static str,
    /// Paths of other pages that belong to the entry.
    others: &'static [&'static str],
}

/// What the address of a page contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Project,
    Organization,
    Account,
}

const fn entry(
    label: &'static str,
    icon: &'static str,
    letter: &'static str,
    of: Of,
    path: &'static str,
) -> NavEntry {
    NavEntry { label, name: label, icon, letter, of, path, others: &[] }
}

/// A group of links in the rail.
pub(super) struct Group {
    pub(super) title: &'static str,
    pub(super) entries: &'static [NavEntry],
}

/// The pages in the rail.
pub(super) const RAIL: [Group; 3] = [
    Group {
        title: "Project",
        entries: &[
            entry("Overview", "overview", "o", Of::Project, "").with(&["/start"]),
            entry("Events", "live", "e", Of::Project, "/events"),
            entry("Web", "web", "w", Of::Project, "/web"),
            INSIGHTS,
            entry("Persons", "person", "p", Of::Project, "/persons"),
            entry("Groups", "group", "g", Of::Project, "/groups"),
            entry("Health", "health", "h", Of::Project, "/health"),
            entry("Project settings", "gear", "s", Of::Project, "/settings"),
        ],
    },
    Group {
        title: "Data",
        entries: &[
            entry("Event definitions", "definition", "d", Of::Project, "/definitions"),
            TRANSFORMATIONS,
            EXPORTS,
            PLUGINS,
            entry("Migrations", "migration", "m", Of::Project, "/migrations"),
        ],
    },
    Group {
        title: "Organization",
        entries: &[
            entry("Members", "member", "b", Of::Organization, "/members"),
            entry("Activity", "activity", "a", Of::Organization, "/activity"),
            entry("Settings", "organization", "r", Of::Organization, "")
                .named("Organization settings")
                .with(&["/invites", "/domains", "/projects"]),
        ],
    },
];

/// The pages with badges.
pub(super) const INSIGHTS: NavEntry =
    entry("Insights", "insight", "i", Of::Project, "/insights").with(&["/dashboards", "/sql"]);
pub(super) const TRANSFORMATIONS: NavEntry =
    entry("Transformations", "transformation", "t", Of::Project, "/transformations");
pub(super) const EXPORTS: NavEntry = entry("Exports", "export", "x", Of::Organization, "/exports");
pub(super) const PLUGINS: NavEntry =
    entry("Plugins", "plugin", "u", Of::Organization, "/plugins/destinations").with(&["/plugins"]);

/// The pages in the account menu.
pub(super) const ACCOUNT: [NavEntry; 4] = [
    entry("Account", "account", "c", Of::Account, "/account"),
    entry("API keys", "key", "k", Of::Account, "/account/keys"),
    entry("Messages", "info", "n", Of::Account, "/account/messages"),
    entry("Help", "help", "?", Of::Account, "/help"),
];

/// Pages that only search and the breadcrumb name. They have no shortcut.
const OTHERS: [NavEntry; 16] = [
    entry("Send events", "start", "", Of::Project, "/start"),
    entry("Explore events", "live", "", Of::Project, "/events/explore"),
    entry("Dashboards", "overview", "", Of::Project, "/dashboards"),
    entry("SQL", "insight", "", Of::Project, "/sql"),
    entry("Project keys", "key", "", Of::Project, "/settings/keys"),
    entry("Destinations", "plugin", "", Of::Organization, "/plugins/destinations"),
    entry("Frontend apps", "plugin", "", Of::Organization, "/plugins/frontend-apps"),
    entry("Import apps", "plugin", "", Of::Organization, "/plugins/import-apps"),
    entry("Transformation plugins", "plugin", "", Of::Organization, "/plugins/transformations"),
    entry("Invites", "invite", "", Of::Organization, "/invites"),
    entry("Domains", "domain", "", Of::Organization, "/domains"),
    entry("New project", "plus", "", Of::Organization, "/projects/new"),
    entry("Organizations", "organization", "", Of::Account, "/organizations"),
    entry("New organization", "plus", "", Of::Account, "/organizations/new"),
    entry("Security", "shield", "", Of::Account, "/account/security"),
    entry("Preferences", "settings", "", Of::Account, "/account/preferences"),
];

/// All pages.
pub(crate) fn all() -> impl Iterator<Item = NavEntry> {
    in_rail().chain(beside_rail())
}

/// The pages in the rail.
pub(super) fn in_rail() -> impl Iterator<Item = NavEntry> {
    RAIL.into_iter().flat_map(|group| group.entries).copied()
}

/// The pages that are not in the rail.
pub(super) fn beside_rail() -> impl Iterator<Item = NavEntry> {
    ACCOUNT.into_iter().chain(OTHERS)
}

impl NavEntry {
    const fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    const fn with(self, others: &'static [&'static str]) -> Self {
        Self { others, ..self }
    }

    /// The address of the page. `None` where it needs a project or organization and there
    /// is none.
    pub(super) fn href(self, target: &NavTarget) -> Option<String> {
        let project = target.project.as_ref().map(|(id, _)| *id);
        let organization = target.organization.as_ref().map(|(id, _)| id.as_str());
        self.at(organization, project)
    }

    /// Whether the address contains an organization.
    #[cfg(feature = "ssr")]
    pub(crate) fn is_of_organization(self) -> bool {
        self.of == Of::Organization
    }

    /// Whether this is the end of the address, see [`NavTarget::path_end`]. Of pages of the account
    /// it is the whole address.
    pub(super) fn is_at(self, rest: &str) -> bool {
        self.path == rest
    }

    /// The value of `aria-current` of the entry: `page` for the page itself, `true` for
    /// another page of the entry.
    pub(super) fn current(self, target: &NavTarget, path: &str) -> Option<&'static str> {
        if self.href(target).as_deref() == Some(path) {
            return Some("page");
        }
        target.path_end(path).filter(|rest| self.contains(rest)).map(|_| "true")
    }

    /// Whether an address with this end, see [`NavTarget::path_end`], is a page of the entry.
    fn contains(self, rest: &str) -> bool {
        let is_within = |path: &str| {
            let end = rest.strip_prefix(path).filter(|_| !path.is_empty());
            end.is_some_and(|end| end.is_empty() || end.starts_with('/'))
        };
        is_within(self.path) || self.others.iter().any(|path| is_within(path))
    }

    /// The address of the page in this organization and project.
    pub(crate) fn at(self, organization: Option<&str>, project: Option<i64>) -> Option<String> {
        let path = self.path;
        match self.of {
            Of::Project => project.map(|id| format!("/projects/{id}{path}")),
            Of::Organization => organization.map(|id| format!("/organizations/{id}{path}")),
            Of::Account => Some(path.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{EXPORTS, all, in_rail};

    #[test]
    fn a_letter_goes_to_one_page() {
        let mut seen = HashSet::new();
        for entry in all().filter(|entry| !entry.letter.is_empty()) {
            assert!(seen.insert(entry.letter), "{}", entry.label);
        }
    }

    #[test]
    fn entries_of_the_rail_differ_in_their_icons() {
        let mut seen = HashSet::new();
        let sprite = include_str!("../../../public/icons.svg");
        for entry in in_rail() {
            assert!(seen.insert(entry.icon), "{}", entry.label);
            assert!(sprite.contains(&format!("id=\"{}\"", entry.icon)), "{}", entry.icon);
        }
    }

    #[test]
    fn addresses() {
        let at = |name: &str| {
            let entry = all().find(|entry| entry.name == name).unwrap();
            entry.at(Some("o"), Some(7)).unwrap()
        };
        assert_eq!(at("Overview"), "/projects/7");
        assert_eq!(at("Events"), "/projects/7/events");
        assert_eq!(at("Import apps"), "/organizations/o/plugins/import-apps");
        assert_eq!(at("Organization settings"), "/organizations/o");
        assert_eq!(at("Help"), "/help");
        assert_eq!(EXPORTS.at(None, Some(7)), None);
    }

    #[test]
    fn an_entry_contains_the_pages_below_it() {
        let entry = |label: &str| in_rail().find(|entry| entry.label == label).unwrap();
        for (label, rest, expected) in [
            ("Overview", "/start", true),
            ("Overview", "/persons", false),
            ("Persons", "/persons/7", true),
            ("Persons", "/personsx", false),
            ("Insights", "/dashboards/3/settings", true),
            ("Plugins", "/plugins/import-apps/3", true),
            ("Settings", "/projects/new", true),
            ("Settings", "/members", false),
            ("Project settings", "/settings/keys", true),
        ] {
            assert_eq!(entry(label).contains(rest), expected, "{label} {rest}");
        }
    }
}
