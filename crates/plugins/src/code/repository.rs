//! The target of a plugin address (PLG-8).
//!
//! What belongs here: splitting an address into user, repository, version and folder.
//! What does not: which addresses are valid (`weir-model`).

use weir_model::plugins::address::Address;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CodeLocation {
    /// A repository on GitHub: `user/name`.
    GitHub(Repository),
    /// A repository on GitLab: groups and name.
    GitLab(Repository),
    /// A package of npm.
    Npm {
        /// The name, with its scope.
        name: String,
        /// `None`: the latest version.
        version: Option<String>,
    },
}

/// A repository, as an address names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repository {
    pub(super) path: String,
    /// A commit, a branch or a tag. `None`: the default branch.
    pub(super) version: Option<String>,
    /// Whether the version may be a branch, which moves.
    pub(super) may_move: bool,
    /// The folder that contains the plugin.
    pub(super) folder: Option<String>,
}

impl Repository {
    /// The version, if it cannot move.
    pub(super) fn fixed(&self) -> Option<String> {
        self.version.clone().filter(|_| !self.may_move)
    }
}

impl CodeLocation {
    /// Parses an address.
    pub(super) fn of(address: &Address) -> Option<Self> {
        let rest = address.url.split_once("://")?.1;
        let (host, path) = rest.split_once('/')?;
        let parts: Vec<&str> = path.split('/').collect();
        match host.strip_prefix("www.").unwrap_or(host) {
            "github.com" => github(&parts, address.tag.clone()).map(Self::GitHub),
            "gitlab.com" => gitlab(&parts, address.tag.clone()).map(Self::GitLab),
            "npmjs.com" => {
                let name = match parts.get(1..)? {
                    [scope, name, ..] if scope.starts_with('@') => format!("{scope}/{name}"),
                    [name, ..] => (*name).to_owned(),
                    [] => return None,
                };
                Some(Self::Npm { name, version: address.tag.clone() })
            }
            _ => None,
        }
    }
}

fn github(parts: &[&str], version: Option<String>) -> Option<Repository> {
    let (path, behind) = parts.split_at_checked(2)?;
    let folder = match behind {
        ["commit" | "tree", _, folder @ ..] => folder,
        ["releases", "tag", _, folder @ ..] => folder,
        _ => &[],
    };
    Some(Repository {
        path: path.join("/"),
        version,
        may_move: behind.first() == Some(&"tree"),
        folder: (!folder.is_empty()).then(|| folder.join("/")),
    })
}

fn gitlab(parts: &[&str], version: Option<String>) -> Option<Repository> {
    let end = parts.iter().position(|part| *part == "-").unwrap_or(parts.len());
    let (path, behind) = parts.split_at_checked(end)?;
    let folder = match behind {
        ["-", "commit" | "tree", _, folder @ ..] => folder,
        _ => &[],
    };
    Some(Repository {
        path: path.join("/"),
        version,
        may_move: behind.get(1) == Some(&"tree"),
        folder: (!folder.is_empty()).then(|| folder.join("/")),
    })
}

#[cfg(test)]
mod tests {
    use weir_model::plugins::address::Address;

    use super::{CodeLocation, Repository};

    fn of(text: &str) -> CodeLocation {
        CodeLocation::of(&Address::read(text).unwrap()).unwrap()
    }

    #[test]
    fn addresses_lead_to_repositories() {
        let repository = |path: &str, version: Option<&str>, may_move, folder: Option<&str>| {
            let (version, folder) = (version.map(str::to_owned), folder.map(str::to_owned));
            Repository { path: path.to_owned(), version, may_move, folder }
        };
        for (text, expected) in [
            ("https://github.com/acme/tea", repository("acme/tea", None, false, None)),
            (
                "https://github.com/acme/tea/tree/dev/a/b",
                repository("acme/tea", Some("dev"), true, Some("a/b")),
            ),
            (
                "https://github.com/acme/tea/archive/refs/tags/v1.zip",
                repository("acme/tea", Some("v1"), false, None),
            ),
        ] {
            assert_eq!(of(text), CodeLocation::GitHub(expected), "{text}");
        }
        let nested = repository("a/b/tea", Some("0a1b"), false, Some("sub"));
        assert_eq!(
            of("https://gitlab.com/a/b/tea/-/commit/0a1b/sub"),
            CodeLocation::GitLab(nested)
        );
    }

    #[test]
    fn addresses_lead_to_packages() {
        let npm = |name: &str, version: Option<&str>| CodeLocation::Npm {
            name: name.to_owned(),
            version: version.map(str::to_owned),
        };
        assert_eq!(of("https://www.npmjs.com/package/tea"), npm("tea", None));
        assert_eq!(
            of("https://npmjs.com/package/@acme/tea/v/1.0.0"),
            npm("@acme/tea", Some("1.0.0"))
        );
    }
}
