//! The organization and project that the navigation links to.

use crate::server_fns::account::OrganizationNav;

/// The organization and project that the navigation of a page links to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct NavTarget {
    /// Id and name of the organization.
    pub(super) organization: Option<(String, String)>,
    /// Number and name of the project.
    pub(super) project: Option<(i64, String)>,
}

/// The ids of an organization and a project in a path. They may not exist.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct PathIds {
    organization: Option<String>,
    project: Option<i64>,
}

impl PathIds {
    /// The ids in a path.
    pub(super) fn of(path: &str) -> Self {
        Self { organization: organization_in(path).map(str::to_owned), project: project_in(path) }
    }
}

impl NavTarget {
    /// The organization and project of a page with this path, see [`Self::for_ids`].
    pub(super) fn of(
        organizations: &[OrganizationNav],
        last_project: Option<i64>,
        path: &str,
    ) -> Self {
        Self::for_ids(organizations, last_project, &PathIds::of(path))
    }

    /// The organization and project with these ids. `organizations` are those of the user.
    /// If an id is missing, unknown or of an organization without the user: the project that
    /// the user visited last, else the first organization and its first project.
    pub(super) fn for_ids(
        organizations: &[OrganizationNav],
        last_project: Option<i64>,
        ids: &PathIds,
    ) -> Self {
        let owner_of = |project: i64| {
            organizations.iter().find(|one| one.projects.iter().any(|(id, _)| *id == project))
        };
        let named = ids.organization.as_deref();
        let named = named.and_then(|id| organizations.iter().find(|one| one.id == id));
        let project = ids.project.filter(|id| owner_of(*id).is_some()).or(last_project);
        let organization =
            named.or_else(|| project.and_then(owner_of)).or_else(|| organizations.first());
        let Some(organization) = organization else { return Self::default() };
        let known = organization.projects.iter().find(|(id, _)| Some(*id) == project);
        Self {
            organization: Some((organization.id.clone(), organization.name.clone())),
            project: known.or_else(|| organization.projects.first()).cloned(),
        }
    }

    /// The end of a path, after the id of the project or organization. `None` if the path has
    /// neither id.
    pub(super) fn path_end<'a>(&self, path: &'a str) -> Option<&'a str> {
        let project = self.project.as_ref().map(|(id, _)| format!("/projects/{id}"));
        let organization = self.organization.as_ref().map(|(id, _)| format!("/organizations/{id}"));
        [project, organization].into_iter().flatten().find_map(|base| {
            let end = path.strip_prefix(&base)?;
            (end.is_empty() || end.starts_with('/')).then_some(end)
        })
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
    use super::{NavTarget, OrganizationNav};

    fn organization(id: &str, projects: &[i64]) -> OrganizationNav {
        let projects = projects.iter().map(|id| (*id, format!("P{id}"))).collect();
        OrganizationNav { id: id.to_owned(), name: id.to_uppercase(), projects }
    }

    #[test]
    fn the_path_decides_before_the_last_visited_project() {
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
            let target = NavTarget::of(&organizations, last, path);
            assert_eq!(
                target.organization.as_ref().map(|(id, _)| id.as_str()),
                organization,
                "{path}"
            );
            assert_eq!(target.project.map(|(id, _)| id), project, "{path}");
        }
        assert_eq!(NavTarget::of(&[], Some(1), "/projects/1/events"), NavTarget::default());
    }

    #[test]
    fn the_end_of_a_path_follows_the_id() {
        let organizations = [organization("a", &[1])];
        for (path, expected) in [
            ("/projects/1", Some("")),
            ("/projects/1/persons/x", Some("/persons/x")),
            ("/projects/10/persons", None),
            ("/organizations/a/exports", Some("/exports")),
            ("/organizations/new", None),
            ("/account", None),
        ] {
            let target = NavTarget::of(&organizations, None, path);
            assert_eq!(target.path_end(path), expected, "{path}");
        }
    }
}
