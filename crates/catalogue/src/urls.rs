//! The parts of a URL as text.
//!
//! Unchanged parts are copied as they were sent: parsing and writing a URL would change
//! other parts too.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// A URL, or a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    /// Scheme and host; empty for a path.
    pub(crate) origin: &'a str,
    pub(crate) path: &'a str,
    /// Without the question mark.
    pub(crate) query: Option<&'a str>,
    /// Without the hash.
    pub(crate) fragment: Option<&'a str>,
}

impl<'a> Parts<'a> {
    /// Splits a URL; `None` if the text is neither a URL with a host nor a path.
    pub(crate) fn of(text: &'a str) -> Option<Self> {
        let origin_end = if text.starts_with('/') && !text.starts_with("//") {
            0
        } else {
            let host = text.find("://")? + 3;
            let scheme = text.get(..host - 3)?;
            let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
            if scheme.is_empty() || !scheme.chars().all(is_scheme) {
                return None;
            }
            let rest = text.get(host..)?;
            host + rest.find(['/', '?', '#']).unwrap_or(rest.len())
        };
        let (origin, rest) = text.split_at_checked(origin_end)?;
        let (rest, fragment) = cut(rest, '#');
        let (path, query) = cut(rest, '?');
        Some(Self { origin, path, query, fragment })
    }

    /// Joins the parts again.
    pub(crate) fn join(&self, path: &str, query: Option<&str>, fragment: Option<&str>) -> String {
        let mut out = String::from(self.origin);
        out.push_str(path);
        for (mark, part) in [('?', query), ('#', fragment)] {
            if let Some(part) = part {
                out.push(mark);
                out.push_str(part);
            }
        }
        out
    }
}

fn cut(text: &str, at: char) -> (&str, Option<&str>) {
    match text.split_once(at) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

/// The decoded name of a parameter.
pub(crate) fn parameter_name(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    use super::Parts;

    #[test]
    fn urls_and_paths_come_apart_and_together() {
        for url in [
            "https://a.example.org/b/c?d=e?f#g#h",
            "https://a.example.org",
            "https://a.example.org?x",
            "app://x/#/y?z",
            "/a/b?c",
            "/",
            "https://ä.example/ü?#",
        ] {
            let parts = Parts::of(url).unwrap();
            assert_eq!(parts.join(parts.path, parts.query, parts.fragment), url);
        }
        let parts = Parts::of("https://a.example.org/b?c=/d#e").unwrap();
        assert_eq!((parts.origin, parts.path), ("https://a.example.org", "/b"));
        assert_eq!((parts.query, parts.fragment), (Some("c=/d"), Some("e")));
    }

    #[test]
    fn other_texts_are_none() {
        for text in
            ["", "$direct", "mailto:a@b", "//host/x", "about:blank", "://x", "ä://x", "a b://"]
        {
            assert_eq!(Parts::of(text), None, "{text}");
        }
    }
}
