//! The setting `capture_prefix`: a second path of the capture endpoints.
//!
//! What belongs here: which paths it can be, and what is below it. What does not: the paths
//! of the endpoints (`capture`).

use std::fmt;
use std::str::FromStr;

use crate::capture::Endpoint;

/// Longest prefix, in bytes.
const LONGEST: usize = 64;

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
        const WRONG: &str = "expected a path such as /ingest, of letters, digits, `-`, `_` and \
                             `/`, at most 64, and not one of the paths of the endpoints";
        let path = text.strip_suffix('/').unwrap_or(text);
        if path.is_empty() {
            return Ok(Self::default());
        }
        let is_word = |word: &str| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            !word.is_empty() && word.bytes().all(allowed)
        };
        let is_path = path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_word));
        // Another endpoint would answer instead, such as the files below /static/.
        let is_hidden = Endpoint::at(&format!("{path}/e")).is_some();
        if is_path && !is_hidden && path.len() <= LONGEST {
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
    use super::CapturePrefix;

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
        for text in ["ingest", "//", "/a//b", "/a.b", "/a b", "/ä", "/a?b", "/static", "/array/x"]
        {
            assert!(text.parse::<CapturePrefix>().is_err(), "{text}");
        }
        assert!(long.parse::<CapturePrefix>().is_err());
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
