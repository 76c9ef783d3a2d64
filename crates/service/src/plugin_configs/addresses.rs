//! Settings that say where a plugin connects to: which may be stored, and that secrets
//! do not follow them to another place.

use serde_json::{Map, Value};
use weir_model::errors::FieldError;
use weir_store::plugin_configs::AttachmentRow;
use weir_store::plugins::PluginRow;

use super::values::Opened;
use crate::exports::Hosts;
use crate::plugins::catalogue;

/// Words in the keys of settings whose values are addresses.
const WORDS: [&str; 14] = [
    "address", "domain", "dsn", "endpoint", "host", "hostname", "origin", "proxy", "server",
    "site", "uri", "url", "urls", "webhook",
];

/// Whether a plugin can make connections: steps in Rust cannot.
pub(super) fn connects(plugin: &PluginRow) -> bool {
    catalogue::of_url(plugin.url.as_deref()).is_none_or(weir_catalogue::Entry::connects)
}

/// Refuses an address that is never dialled, as it is written. What a name stands for is
/// looked at with every connection.
pub(super) fn judge(hosts: &dyn Hosts, values: &Map<String, Value>) -> Result<(), FieldError> {
    let is_forbidden = |(key, value): &(&String, &Value)| {
        let is_meant = names_address(key);
        let separates = |c: char| c.is_whitespace() || c == ',';
        value.as_str().is_some_and(|text| {
            let parts = text.split(separates).filter(|part| !part.is_empty());
            parts.filter(|part| is_meant || part.contains("://")).any(|part| hosts.refuses(part))
        })
    };
    match values.iter().find(is_forbidden) {
        None => Ok(()),
        Some((key, _)) => {
            let detail = "This address is on a network that this server does not connect to. \
                          Whoever runs it can allow it with egress_allow.";
            Err(FieldError::new(&format!("config__{key}"), "invalid_input", detail))
        }
    }
}

/// Refuses another address together with secrets that were entered for the one before.
/// `is_sent` tells which secrets came with the change.
pub(super) fn keep_secrets_at_home(
    before: &Opened,
    after: &Opened,
    attachments: &[AttachmentRow],
    is_sent: impl Fn(&str) -> bool,
) -> Result<(), FieldError> {
    let (was, is) = (before.all(), after.all());
    let moved = |key: &String| {
        let (was, is) = (was.get(key), is.get(key));
        was != is && (names_address(key) || [was, is].into_iter().flatten().any(is_url))
    };
    if !was.keys().chain(is.keys()).any(moved) {
        return Ok(());
    }
    let kept = before.secrets.iter().filter(|(key, value)| after.secrets.get(*key) == Some(*value));
    let files = attachments.iter().filter(|one| one.secret).map(|one| &one.key);
    match kept.map(|(key, _)| key).chain(files).find(|key| !is_sent(key)) {
        None => Ok(()),
        Some(key) => {
            let detail = "Enter this again: the address that it is used with has changed.";
            Err(FieldError::new(&format!("config__{key}"), "required", detail))
        }
    }
}

fn is_url(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains("://"))
}

/// Whether one of the words that a key is made of, as in `baseUrl` or `base_url`, stands
/// for an address.
fn names_address(key: &str) -> bool {
    let mut words = String::with_capacity(key.len() + 8);
    let mut was_lower = false;
    for c in key.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            words.push(' ');
        }
        was_lower = c.is_lowercase();
        if c.is_alphanumeric() {
            words.extend(c.to_lowercase());
        }
    }
    words.split(' ').any(|word| WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Inner;

    impl Hosts for Inner {
        fn refuses(&self, host: &str) -> bool {
            host.contains("127.0.0.1") || host == "0x7f.1"
        }
    }

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn keys_say_what_is_an_address() {
        for key in ["url", "webhookUrl", "base_url", "HOST", "server-address", "apiEndpoint"] {
            assert!(names_address(key), "{key}");
        }
        for key in ["ghost", "fields", "urlencoded", "curl", "properties", ""] {
            assert!(!names_address(key), "{key}");
        }
    }

    #[test]
    fn inner_addresses_are_refused_at_their_setting() {
        for (values, at) in [
            (json!({"a": 1, "target": "http://127.0.0.1/"}), Some("config__target")),
            (json!({"hosts": "x", "host": " 0x7f.1 "}), Some("config__host")),
            (json!({"urls": "https://a.example, https://127.0.0.1"}), Some("config__urls")),
            (json!({"note": "0x7f.1", "n": 127.1, "host": "a.example", "url": null}), None),
        ] {
            let fault = judge(&Inner, &map(values)).err();
            assert_eq!(fault.and_then(|fault| fault.attr).as_deref(), at);
        }
    }

    #[test]
    fn secrets_stay_with_the_address_that_they_were_entered_for() {
        let opened =
            |shown: Value, secrets: Value| Opened { shown: map(shown), secrets: map(secrets) };
        let before = opened(json!({"url": "https://a", "n": 1}), json!({"token": "t"}));
        let check = |after: &Opened, sent: &[&str]| {
            let fault = keep_secrets_at_home(&before, after, &[], |key| sent.contains(&key)).err();
            fault.and_then(|fault| fault.attr)
        };
        let moved = opened(json!({"url": "https://b", "n": 1}), json!({"token": "t"}));
        assert_eq!(check(&moved, &[]).as_deref(), Some("config__token"));
        assert_eq!(check(&moved, &["token"]), None);
        let other = opened(json!({"url": "https://a", "n": 2}), json!({"token": "t"}));
        assert_eq!(check(&other, &[]), None);
        for new in [
            opened(json!({"url": "https://b", "n": 1}), json!({"token": "u"})),
            opened(json!({"url": "https://b", "n": 1}), json!({})),
        ] {
            assert_eq!(check(&new, &[]), None);
        }
        let gone = opened(json!({"n": 1}), json!({"token": "t"}));
        assert_eq!(check(&gone, &[]).as_deref(), Some("config__token"));
        // One that is written where no address is expected.
        let odd = opened(json!({"url": "https://a", "n": "ftp://b"}), json!({"token": "t"}));
        assert_eq!(check(&odd, &[]).as_deref(), Some("config__token"));
    }
}
