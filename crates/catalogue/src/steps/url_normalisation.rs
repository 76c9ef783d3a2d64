//! Replaces ids in URLs, so that URLs that differ only in ids become equal.

use regex::Regex;

use super::with_person;
use crate::config::{Config, ConfigError, pattern};
use crate::entry::{Code, Direction, Entry, Item, Native, Step, StepDependencies};
use crate::event::{Flow, StepEvent};
use crate::urls::Parts;

/// What an id is unless the config says otherwise: UUIDs, numbers, and codes that have
/// both capital letters and digits.
const ID_PATTERN: &str = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|[0-9]+|[A-Z]+[0-9][A-Z0-9]*|[0-9]+[A-Z][A-Z0-9]*";

pub(crate) const ENTRY: Entry = Entry {
    id: "url-normalisation",
    name: "URL normalisation",
    description: "Replaces ids in paths, and removes hash and query, so that pages count together.",
    icon: Some("alter"),
    direction: Direction::Filtering,
    items: &[
        Item::yes_no("removeHash", "Remove the hash", "Yes", "What comes after #."),
        Item::yes_no("removeQueryString", "Remove the query", "Yes", "What comes after ?."),
        Item::text("replaceWith", "Replace ids with", "The text that replaces them.").or(":id"),
        Item::text("urlProperties", "Properties", "Names or dotted paths, separated by commas.")
            .or("$current_url,$pathname,$referrer,$initial_current_url,$initial_pathname,\
                 $initial_referrer,$prev_pageview_pathname,$session_entry_url,\
                 $session_entry_pathname,$session_entry_referrer")
            .required(),
        Item::text(
            "pattern",
            "What an id is",
            "A regular expression for a whole part of the path.",
        )
        .or(ID_PATTERN),
    ],
    code: Code::Native(Native(make)),
};

fn make(config: &Config<'_>, _: &StepDependencies) -> Result<Box<dyn Step>, ConfigError> {
    let for_whole_part = |text: String| {
        // Compiled alone first: `)|(` is not a pattern, but becomes one in parentheses.
        pattern("pattern", &text).and_then(|_| pattern("pattern", &format!("^(?:{text})$")))
    };
    Ok(Box::new(UrlNormalisation {
        properties: config.needed_list("urlProperties")?,
        remove_hash: config.yes("removeHash")?,
        remove_query: config.yes("removeQueryString")?,
        id_pattern: config.text("pattern")?.map(for_whole_part).transpose()?,
        replacement: config.text("replaceWith")?.unwrap_or_default(),
    }))
}

struct UrlNormalisation {
    properties: Vec<String>,
    remove_hash: bool,
    remove_query: bool,
    /// `None`: ids are kept.
    id_pattern: Option<Regex>,
    replacement: String,
}

impl Step for UrlNormalisation {
    fn apply(&self, event: &mut StepEvent<'_>) -> Flow {
        with_person(event.properties_mut(), |object| {
            for name in &self.properties {
                let Some((holder, key)) = object.at(name) else { continue };
                if let Some(url) = holder.text(key).and_then(|url| self.normalise(&url)) {
                    holder.set_text(key, &url);
                }
            }
        });
        Flow::Keep
    }
}

impl UrlNormalisation {
    /// The URL after the changes; `None` if the text is no URL.
    fn normalise(&self, url: &str) -> Option<String> {
        let parts = Parts::of(url)?;
        let path = match &self.id_pattern {
            Some(pattern) => parts
                .path
                .split('/')
                .map(|part| {
                    if pattern.is_match(part) && !part.is_empty() {
                        &self.replacement
                    } else {
                        part
                    }
                })
                .collect::<Vec<_>>()
                .join("/"),
            None => parts.path.to_owned(),
        };
        let query = parts.query.filter(|_| !self.remove_query);
        let fragment = parts.fragment.filter(|_| !self.remove_hash);
        Some(parts.join(&path, query, fragment))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::{after, assert_same, fault};

    fn normalised(config: &Value, url: &str) -> String {
        let sent = json!({"$current_url": url}).to_string();
        let found = after("url-normalisation", config, &sent).unwrap();
        let found: Value = serde_json::from_str(&found).unwrap();
        found["$current_url"].as_str().unwrap().to_owned()
    }

    #[test]
    fn ids_query_and_hash_go() {
        for (url, expected) in [
            ("https://e.org/users/42/edit?x=1#y", "https://e.org/users/:id/edit"),
            ("https://e.org/o/6F9619FF-8b86-d011-b42d-00cf4fc964ff", "https://e.org/o/:id"),
            ("https://e.org:8080/p/AB12CD/", "https://e.org:8080/p/:id/"),
            ("https://e.org", "https://e.org"),
            ("https://e.org/v2/über/ABOUT/a42", "https://e.org/v2/über/ABOUT/a42"),
            ("/shop/7/", "/shop/:id/"),
            ("$direct", "$direct"),
            ("mailto:a@e.org?subject=7#x", "mailto:a@e.org?subject=7#x"),
        ] {
            assert_eq!(normalised(&json!({}), url), expected);
        }
    }

    #[test]
    fn what_is_an_id_can_be_set() {
        let config = json!({
            "pattern": "[a-z]{2}|x.*", "replaceWith": "<$1>", "removeHash": "No",
            "removeQueryString": "No",
        });
        assert_eq!(
            normalised(&config, "https://e.org/de/xyz/deu?a=1#b"),
            "https://e.org/<$1>/<$1>/deu?a=1#b"
        );
        let config = json!({"pattern": "", "removeQueryString": "No"});
        assert_eq!(normalised(&config, "https://e.org/1?a=1#b"), "https://e.org/1?a=1");
    }

    #[test]
    fn person_properties_and_nested_properties_too() {
        let config = json!({"urlProperties": "page.url, $initial_current_url"});
        let sent = r#"{"page":{"url":"/a/1","n":12345678901234567890},"$set_once":{"$initial_current_url":"https://e.org/1"},"$current_url":"/1"}"#;
        assert_eq!(
            after("url-normalisation", &config, sent).unwrap(),
            r#"{"page":{"url":"/a/:id","n":12345678901234567890},"$set_once":{"$initial_current_url":"https://e.org/:id"},"$current_url":"/1"}"#
        );
    }

    #[test]
    fn other_values_stay() {
        assert_same(
            "url-normalisation",
            &json!({}),
            &[
                "{}",
                r#"{"$current_url": null, "$pathname": 7, "$referrer": ["/1"]}"#,
                r#"{"$current_url": "https:\/\/e.org\/a", "n": 12345678901234567890}"#,
            ],
        );
    }

    #[test]
    fn faults() {
        for (config, key) in [
            (json!({"pattern": "("}), "pattern"),
            (json!({"pattern": ")|("}), "pattern"),
            (json!({"urlProperties": ""}), "urlProperties"),
            (json!({"removeHash": "Maybe"}), "removeHash"),
        ] {
            assert_eq!(fault("url-normalisation", &config).0, key);
        }
    }
}
