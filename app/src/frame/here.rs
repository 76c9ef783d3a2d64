//! The organization and project that the navigation links to.

use crate::server_fns::account::OrganizationNav;

/// The organization and project of a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Here {
    /// Id and name of the organization.
    pub(super) organization: Option<(String, String)>,
    /// Number and name of the project.
    pub(super) project: Option<(i64, String)>,
}

/// What an address names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Asked {
    organization: Option<String>,
    project: Option<i64>,
}

impl Here {
    /// What the address names, see [`Self::of_asked`].
    pub(super) fn asked(path: &str) -> Asked {
        Asked { organization: organization_in(path).map(str::to_owned), project: project_in(path) }
    }

    /// The organization and project of an address, see [`Self::of_asked`].
    pub(super) fn of(organizations: &[OrganizationNav], last: Option<i64>, path: &str) -> Self {
        Self::of_asked(organizations, last, &Self::asked(path))
    }

    /// The named organization and project, else the last visited ones. There are no links
    /// for objects that do not exist or that the user has no access to.
    pub(super) fn of_asked(
        organizations: &[OrganizationNav],
        last: Option<i64>,
        asked: &Asked,
    ) -> Self {
        let within = |wanted: i64| {
            organizations.iter().find(|place| place.projects.iter().any(|(id, _)| *id == wanted))
        };
        let named = asked.organization.as_deref();
        let named = named.and_then(|id| organizations.iter().find(|place| place.id == id));
        let project = asked.project.filter(|id| within(*id).is_some()).or(last);
        let place = named.or_else(|| project.and_then(within)).or_else(|| organizations.first());
        let Some(place) = place else { return Self::default() };
        let known = place.projects.iter().find(|(id, _)| Some(*id) == project);
        Self {
            organization: Some((place.id.clone(), place.name.clone())),
            project: known.or_else(|| place.projects.first()).cloned(),
        }
    }

    /// The end of an address, after the project or organization of the navigation. `None`
    /// if the address is about neither.
    pub(super) fn rest<'a>(&self, path: &'a str) -> Option<&'a str> {
        let project = self.project.as_ref().map(|(id, _)| format!("/projects/{id}"));
        let organization = self.organization.as_ref().map(|(id, _)| format!("/organizations/{id}"));
        let rests = [project, organization].into_iter().flatten().map(|base| {
            let rest = path.strip_prefix(&base)?;
            (rest.is_empty() || rest.starts_with('/')).then_some(rest)
        });
        rests.flatten().next()
    }
}

fn project_in(path: &str) -> Option<i64> {
    path.strip_prefix("/projects/")?.split('/').next()?.parse().ok()
}

fn organization_in(path: &str) -> Option<&str> {
    path.strip_prefix("/organizations/")?.split('/').next()
}

#[cfg(test)]
mod tests {
    use super::{Here, OrganizationNav};

    fn organization(id: &str, projects: &[i64]) -> OrganizationNav {
        let projects = projects.iter().map(|id| (*id, format!("P{id}"))).collect();
        OrganizationNav { id: id.to_owned(), name: id.to_uppercase(), projects }
    }

    #[test]
    fn the_address_counts_before_the_last_visited_page() {
        let organizations =
            [organization("a", &[1, 2]), organization("b", &[3]), organization("c", &[])];
        for (path, last, organization, project) in [
            ("/projects/3/events", Some(1), Some("b"), Some(3)),
            ("/projects/9/events", Some(2), Some("a"), Some(2)),
            ("/projects/x/events", Some(3), Some("b"), Some(3)),
            ("/organizations/b/exports", Some(1), Some("b"), Some(3)),
            ("/organizations/a", Some(2), Some("a"), Some(2)),
            ("/organizations/c/members", Some(2), Some("c"), None),
            ("/organizations/new", Some(2), Some("a"), Some(2)),
            ("/account", None, Some("a"), Some(1)),
            ("/account", Some(9), Some("a"), Some(1)),
        ] {
            let here = Here::of(&organizations, last, path);
            assert_eq!(
                here.organization.as_ref().map(|(id, _)| id.as_str()),
                organization,
                "{path}"
            );
            assert_eq!(here.project.map(|(id, _)| id), project, "{path}");
        }
        assert_eq!(Here::of(&[], Some(1), "/projects/1/events"), Here::default());
    }

    #[test]
    fn the_rest_of_an_address_follows_what_it_is_about() {
        let organizations = [organization("a", &[1])];
        for (path, expected) in [
            ("/projects/1", Some("")),
            ("/projects/1/persons/x", Some("/persons/x")),
            ("/projects/10/persons", None),
            ("/organizations/a/exports", Some("/exports")),
            ("/organizations/new", None),
            ("/account", None),
        ] {
            let here = Here::of(&organizations, None, path);
            assert_eq!(here.rest(path), expected, "{path}");
        }
    }
}
