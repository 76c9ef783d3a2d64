//! The setting `capture_prefix`: a second path of the capture endpoints.
//!
//! What belongs here: which paths it can be, and what is below it. What does not: the paths
//! of the endpoints (`capture`).

use std::fmt;
use std::str::FromStr;

use crate::capture::Endpoint;

/// Longest prefix, in bytes.
const LONGEST: usize = 64;

/// First parts of paths that mean something else: endpoints and files of more than one part,
/// the API, SCIM, sign-in and pages. Those that begin with `_` are not listed.
const RESERVED: [&str; 22] = [
    "account",
    "api",
    "array",
    "complete",
    "gallery",
    "help",
    "i",
    "instance",
    "login",
    "mcp",
    "organizations",
    "pkg",
    "projects",
    "reset",
    "scim",
    "search",
    "setup",
    "shared",
    "signup",
    "site_app",
    "static",
    "verify_email",
];

/// A path such as `/ingest`, without a slash at the end; empty when not set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapturePrefix(String);

impl CapturePrefix {
    /// The rest of a path below the prefix, with the slash before it. `None` if the path is
    /// not below it, or no prefix is set.
    pub fn rest<'a>(&self, path: &'a str) -> Option<&'a str> {
        if self.0.is_empty() {
            return None;
        }
        path.strip_prefix(self.0.as_str()).filter(|rest| rest.starts_with('/'))
    }
}

impl FromStr for CapturePrefix {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "expected a path such as /ingest, of at most 64 letters, digits, `-`, \
                             `_` and `/`, that does not begin with `_` or a word that is a path \
                             of Weir, such as `api`, `static` or `e`";
        let path = text.strip_suffix('/').unwrap_or(text);
        if path.is_empty() {
            return Ok(Self::default());
        }
        let is_word = |word: &str| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            !word.is_empty() && word.bytes().all(allowed)
        };
        let is_path = path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_word));
        let first = path.split('/').nth(1).unwrap_or_default();
        // Such a prefix would hide another path, or be hidden by it.
        let is_taken = first.starts_with('_')
            || RESERVED.contains(&first)
            || Endpoint::at(&format!("/{first}")).is_some();
        if is_path && !is_taken && path.len() <= LONGEST {
            Ok(Self(path.to_owned()))
        } else {
            Err(WRONG)
        }
    }
}

impl fmt::Display for CapturePrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{CapturePrefix, RESERVED};
    use crate::{mcp, scim};

    #[test]
    fn prefixes() {
        for (text, shown) in [
            ("", ""),
            ("/", ""),
            ("/ingest", "/ingest"),
            ("/ingest/", "/ingest"),
            ("/a/b-c_1", "/a/b-c_1"),
        ] {
            let prefix: CapturePrefix = text.parse().unwrap();
            assert_eq!(prefix.to_string(), shown, "{text}");
        }
        let long = format!("/{}", "a".repeat(64));
        for text in ["ingest", "//", "/a//b", "/a.b", "/a b", "/ä", "/a?b"] {
            assert!(text.parse::<CapturePrefix>().is_err(), "{text}");
        }
        assert!(long.parse::<CapturePrefix>().is_err());
    }

    #[test]
    fn paths_of_weir_are_no_prefixes() {
        for text in ["/e", "/batch/", "/flags/x", "/s", "/report", "/_fn", "/_livez/x"] {
            assert!(text.parse::<CapturePrefix>().is_err(), "{text}");
        }
        for first in RESERVED {
            for text in [format!("/{first}"), format!("/{first}/x")] {
                assert!(text.parse::<CapturePrefix>().is_err(), "{text}");
            }
        }
        assert!(scim::PREFIX.starts_with("/scim/"));
        assert_eq!(mcp::PATH, "/mcp");
    }

    #[test]
    fn every_page_is_reserved() {
        let routes = include_str!("../../../app/src/app.rs").split("path!(\"/").skip(1);
        let pages: Vec<&str> = routes
            .filter_map(|text| text.split(['/', '"']).next())
            .filter(|it| !it.is_empty())
            .collect();
        assert!(pages.contains(&"projects"), "{pages:?}");
        for page in pages {
            assert!(RESERVED.contains(&page), "{page}");
        }
    }

    #[test]
    fn paths_below_a_prefix() {
        let prefix: CapturePrefix = "/ingest".parse().unwrap();
        for (path, rest) in [
            ("/ingest/e/", Some("/e/")),
            ("/ingest/static/array.js", Some("/static/array.js")),
            ("/ingest/", Some("/")),
            ("/ingest", None),
            ("/ingestion/e/", None),
            ("/e/", None),
        ] {
            assert_eq!(prefix.rest(path), rest, "{path}");
            assert_eq!(CapturePrefix::default().rest(path), None, "{path}");
        }
    }
}
