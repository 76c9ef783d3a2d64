//! Addresses of plugins whose code is elsewhere (PLG-8).
//!
//! What belongs here: parsing an address, and separating its secret. What does not:
//! checking that the target exists (`weir-plugins`).

use std::fmt;

use super::{TAG_MAX, URL_MAX};
use crate::errors::FieldError;
use crate::validate;

/// The name of the field.
pub const FIELD: &str = "url";
const FORMS: &str = "Enter the address of a repository on github.com or gitlab.com, or of a \
                     package on npmjs.com.";

/// Prefix of the addresses of catalogue plugins.
const INLINE: &str = "inline:";

/// Where the code of a plugin comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodeSource {
    /// The catalogue: the id of an entry.
    Catalogue(String),
    /// Another host.
    Address(Address),
}

impl CodeSource {
    /// Parses an address. It does not check that the catalogue has the entry.
    ///
    /// # Errors
    /// As [`Address::read`].
    pub fn read(text: &str) -> Result<Self, FieldError> {
        match text.trim().strip_prefix(INLINE) {
            Some(id) => Ok(Self::Catalogue(validate::text(FIELD, id, URL_MAX)?)),
            None => Address::read(text).map(Self::Address),
        }
    }

    /// The address in the form for display and comparison.
    pub fn url(&self) -> String {
        match self {
            Self::Catalogue(id) => format!("{INLINE}{id}"),
            Self::Address(address) => address.url.clone(),
        }
    }
}

/// An address of a repository or a package. `Debug` does not print its token.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// The address without query and fragment, for display and comparison.
    pub url: String,
    /// The version in the address: a commit, a branch, a tag or a number.
    pub tag: Option<String>,
    /// The access token, if the target is private.
    pub private_token: Option<String>,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_private = self.private_token.is_some();
        f.debug_struct("Address")
            .field("url", &self.url)
            .field("tag", &self.tag)
            .field("is_private", &is_private)
            .finish()
    }
}

impl Address {
    /// Parses an address.
    ///
    /// # Errors
    /// `invalid_input` at `url` if its form is unknown; `max_length`.
    pub fn read(text: &str) -> Result<Self, FieldError> {
        let text = validate::text(FIELD, text, URL_MAX)?;
        let wrong = || FieldError::new(FIELD, "invalid_input", FORMS);
        let (text, _fragment) = text.split_once('#').unwrap_or((&text, ""));
        let (bare, query) = text.split_once('?').unwrap_or((text, ""));
        let bare = bare.trim_end_matches('/');
        let rest = bare.strip_prefix("https://").or_else(|| bare.strip_prefix("http://"));
        let (host, path) = rest.and_then(|rest| rest.split_once('/')).ok_or_else(wrong)?;
        let parts: Vec<&str> = path.split('/').collect();
        if !parts.iter().all(|part| is_segment(part)) {
            return Err(wrong());
        }
        let tag = match host.strip_prefix("www.").unwrap_or(host) {
            "github.com" => on_github(&parts),
            "gitlab.com" => on_gitlab(&parts),
            "npmjs.com" => on_npm(&parts),
            _ => None,
        };
        let tag = tag.ok_or_else(wrong)?.map(str::to_owned);
        if let Some(tag) = &tag {
            validate::optional_text(FIELD, tag, TAG_MAX)?;
        }
        let private_token = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find(|(name, value)| *name == "private_token" && !value.is_empty())
            .map(|(_, value)| value.to_owned());
        Ok(Self { url: bare.to_owned(), tag, private_token })
    }
}

/// Whether a text can be a part of the name of a repository, package, version or folder.
fn is_segment(part: &str) -> bool {
    !matches!(part, "" | "." | "..")
        && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.@+~%".contains(c))
}

/// The version in a path, if it is the path of a repository.
fn on_github<'a>(parts: &[&'a str]) -> Option<Option<&'a str>> {
    match parts {
        [_user, _repository] => Some(None),
        [_, _, "commit" | "tree", version, ..] | [_, _, "releases", "tag", version, ..] => {
            Some(Some(version))
        }
        [_, _, "archive", .., file] => file.strip_suffix(".zip").map(Some),
        _ => None,
    }
}

/// The same for GitLab. Groups can be nested; other parts come after `-`.
fn on_gitlab<'a>(parts: &[&'a str]) -> Option<Option<&'a str>> {
    let end = parts.iter().position(|part| *part == "-").unwrap_or(parts.len());
    if end < 2 {
        return None;
    }
    match parts.get(end..) {
        Some([]) | None => Some(None),
        Some(["-", "commit" | "tree" | "tags" | "releases" | "archive", version, ..]) => {
            Some(Some(version))
        }
        Some(_) => None,
    }
}

fn on_npm<'a>(parts: &[&'a str]) -> Option<Option<&'a str>> {
    let ["package", rest @ ..] = parts else { return None };
    let behind = match rest {
        [scope, name, behind @ ..] if scope.starts_with('@') && !name.starts_with('@') => behind,
        [name, behind @ ..] if !name.starts_with('@') => behind,
        _ => return None,
    };
    match behind {
        [] => Some(None),
        ["v", version] => Some(Some(version)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Address, CodeSource};

    #[test]
    fn the_catalogue_has_addresses_too() {
        let source = CodeSource::read(" inline:location ").unwrap();
        assert_eq!(source, CodeSource::Catalogue("location".to_owned()));
        assert_eq!(source.url(), "inline:location");
        assert!(CodeSource::read("inline:").is_err());
        let source = CodeSource::read("https://github.com/acme/tea/").unwrap();
        assert_eq!(source.url(), "https://github.com/acme/tea");
    }

    #[test]
    fn what_addresses_name() {
        for (text, url, tag, token) in [
            ("https://github.com/acme/tea", "https://github.com/acme/tea", None, None),
            (" http://www.github.com/acme/tea/ ", "http://www.github.com/acme/tea", None, None),
            (
                "https://github.com/acme/tea/commit/0a1b2c/sub",
                "https://github.com/acme/tea/commit/0a1b2c/sub",
                Some("0a1b2c"),
                None,
            ),
            (
                "https://github.com/acme/tea/tree/main?private_token=t0ken#x",
                "https://github.com/acme/tea/tree/main",
                Some("main"),
                Some("t0ken"),
            ),
            (
                "https://github.com/acme/tea/releases/tag/v1.2",
                "https://github.com/acme/tea/releases/tag/v1.2",
                Some("v1.2"),
                None,
            ),
            (
                "https://github.com/acme/tea/archive/refs/tags/v1.zip",
                "https://github.com/acme/tea/archive/refs/tags/v1.zip",
                Some("v1"),
                None,
            ),
            ("https://gitlab.com/a/b/tea?x=1", "https://gitlab.com/a/b/tea", None, None),
            (
                "https://gitlab.com/a/tea/-/tree/dev/sub?a=b&private_token=t",
                "https://gitlab.com/a/tea/-/tree/dev/sub",
                Some("dev"),
                Some("t"),
            ),
            ("https://www.npmjs.com/package/tea", "https://www.npmjs.com/package/tea", None, None),
            (
                "https://npmjs.com/package/@acme/tea/v/1.0.0",
                "https://npmjs.com/package/@acme/tea/v/1.0.0",
                Some("1.0.0"),
                None,
            ),
        ] {
            let address = Address::read(text).unwrap();
            assert_eq!(address.url, url);
            assert_eq!(address.tag.as_deref(), tag, "{text}");
            assert_eq!(address.private_token.as_deref(), token, "{text}");
        }
    }

    #[test]
    fn what_names_nothing_is_refused() {
        for bad in [
            "",
            "x",
            "https://",
            "https://github.com",
            "https://github.com/acme",
            "https://github.com/acme/tea/issues",
            "https://github.com/acme/tea/archive/x.tar",
            "https://github.com//tea",
            "https://github.com/acme/../x",
            "https://github.com.evil.example/acme/tea",
            "https://me@github.com/acme/tea",
            "https://gitlab.com/acme",
            "https://gitlab.com/acme/-/tree/x",
            "https://npmjs.com/tea",
            "https://npmjs.com/package/@acme",
            "https://npmjs.com/package/tea/v",
            "ftp://github.com/acme/tea",
            "file:///etc/passwd",
            "inline:geoip",
            "https://127.0.0.1/acme/tea",
            "https://github.com/acme/t ea",
        ] {
            assert!(Address::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_token_is_not_printed() {
        let address = Address::read("https://github.com/a/b?private_token=canary").unwrap();
        assert!(!format!("{address:?}").contains("canary"));
    }
}
