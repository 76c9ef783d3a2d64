//! The pages in the navigation, each with its letter for the shortcut after `g`. Search
//! and the list of shortcuts use the same table.

use super::here::Here;

/// A page of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Goal {
    /// The label of the link.
    pub(crate) label: &'static str,
    /// Name of its icon.
    pub(crate) icon: &'static str,
    /// The letter of its shortcut.
    pub(crate) letter: &'static str,
    of: Of,
    path: &'static str,
}

/// What the address of a page contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Project,
    Organization,
    Account,
}

const fn goal(
    label: &'static str,
    icon: &'static str,
    letter: &'static str,
    of: Of,
    path: &'static str,
) -> Goal {
    Goal { label, icon, letter, of, path }
}

/// The pages in the rail, in groups.
pub(super) const RAIL: [&[Goal]; 3] = [
    &[
        goal("Live", "live", "l", Of::Project, "/live"),
        goal("Persons", "person", "p", Of::Project, "/persons"),
        goal("Groups", "group", "g", Of::Project, "/groups"),
        goal("Health", "health", "h", Of::Project, "/health"),
        goal("Migrations", "migration", "m", Of::Project, "/migrations"),
    ],
    &[
        EXPORTS,
        goal("Destinations", "plugin", "d", Of::Organization, "/plugins/destinations"),
        goal("Frontend apps", "plugin", "f", Of::Organization, "/plugins/frontend-apps"),
        goal("Import apps", "plugin", "i", Of::Organization, "/plugins/import-apps"),
        goal("Transformations", "transformation", "t", Of::Project, "/transformations"),
    ],
    &[
        goal("Activity", "activity", "a", Of::Organization, "/activity"),
        goal("Settings", "settings", "s", Of::Project, "/settings"),
    ],
];

/// The page with a badge.
pub(super) const EXPORTS: Goal = goal("Exports", "export", "e", Of::Organization, "/exports");

/// The pages in the account menu.
pub(super) const ACCOUNT: [Goal; 4] = [
    goal("Account", "account", "c", Of::Account, "/account"),
    goal("API keys", "key", "k", Of::Account, "/account/keys"),
    goal("Messages", "info", "n", Of::Account, "/account/messages"),
    goal("Help", "help", "?", Of::Account, "/help"),
];

/// Pages that only search lists. They have no shortcut.
const OTHERS: [Goal; 9] = [
    goal("Start", "start", "", Of::Project, "/start"),
    goal("Organization settings", "organization", "", Of::Organization, ""),
    goal("Members", "member", "", Of::Organization, "/members"),
    goal("Invites", "invite", "", Of::Organization, "/invites"),
    goal("Domains", "domain", "", Of::Organization, "/domains"),
    goal("Organizations", "organization", "", Of::Account, "/organizations"),
    goal("New organization", "plus", "", Of::Account, "/organizations/new"),
    goal("Security", "shield", "", Of::Account, "/account/security"),
    goal("Preferences", "settings", "", Of::Account, "/account/preferences"),
];

/// All pages.
pub(crate) fn all() -> impl Iterator<Item = Goal> {
    RAIL.into_iter().flatten().chain(&ACCOUNT).chain(&OTHERS).copied()
}

impl Goal {
    /// The address of the page. `None` where it needs a project or organization and there
    /// is none.
    pub(super) fn href(self, here: &Here) -> Option<String> {
        let project = here.project.as_ref().map(|(id, _)| *id);
        let organization = here.organization.as_ref().map(|(id, _)| id.as_str());
        self.at(organization, project)
    }

    /// Whether the address contains an organization.
    #[cfg(feature = "ssr")]
    pub(crate) fn is_of_organization(self) -> bool {
        self.of == Of::Organization
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

    use super::{EXPORTS, all};

    #[test]
    fn a_letter_goes_to_one_page() {
        let mut seen = HashSet::new();
        for goal in all().filter(|goal| !goal.letter.is_empty()) {
            assert!(seen.insert(goal.letter), "{}", goal.label);
        }
    }

    #[test]
    fn addresses() {
        let at = |label: &str| {
            let goal = all().find(|goal| goal.label == label).unwrap();
            goal.at(Some("o"), Some(7)).unwrap()
        };
        assert_eq!(at("Live"), "/projects/7/live");
        assert_eq!(at("Import apps"), "/organizations/o/plugins/import-apps");
        assert_eq!(at("Organization settings"), "/organizations/o");
        assert_eq!(at("Help"), "/help");
        assert_eq!(EXPORTS.at(None, Some(7)), None);
    }
}
