use serde_json::json;
use uuid::Uuid;

use super::*;

/// Refuses hosts that are `127.0.0.1` as text.
struct Inner;

impl HostPolicy for Inner {
    fn refuses(&self, host: &str) -> bool {
        let host = host.split_once("://").map_or(host, |(_, rest)| rest);
        let host = host.split(['/', ':']).next().unwrap_or_default();
        ["127.0.0.1", "0x7f.1", "2130706433", "127.1", "100"].contains(&host)
    }
}

fn map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

fn opened(shown: Value, secrets: Value) -> Opened {
    Opened { shown: map(shown), secrets: map(secrets) }
}

fn file(key: &str, number: u128, secret: bool) -> AttachmentRow {
    AttachmentRow {
        uid: Uuid::from_u128(number),
        key: key.to_owned(),
        name: "file".to_owned(),
        media_type: "text/plain".to_owned(),
        size: 1,
        secret,
    }
}

#[test]
fn keys_name_addresses_and_places() {
    let address = |key: &str| words(key).iter().any(|word| is_address(word));
    let place = |key: &str| words(key).iter().any(|word| is_place(word));
    for key in [
        "url",
        "webhookUrl",
        "base_url",
        "baseurl",
        "apiurl",
        "subdomain",
        "HOST",
        "hostname",
        "server-address",
        "apiEndpoint",
        "URLs",
    ] {
        assert!(address(key), "{key}");
    }
    for key in ["region", "instance", "account", "cluster", "bucketName", "accountId", "port"] {
        assert!(place(key) && !address(key), "{key}");
    }
    for key in ["fields", "properties", "export", "width", "zip", "shipping", "", "é"] {
        assert!(!address(key) && !place(key), "{key}");
    }
}

#[test]
fn inner_addresses_are_refused_at_their_setting() {
    for (values, at) in [
        (json!({"a": 1, "target": "http://127.0.0.1/"}), Some("config__target")),
        (json!({"hosts": "x", "host": " 0x7f.1 "}), Some("config__host")),
        (json!({"urls": "https://a.example, https://127.0.0.1"}), Some("config__urls")),
        // For every key.
        (json!({"region": "127.0.0.1"}), Some("config__region")),
        (json!({"anything": "127.0.0.1:80/x"}), Some("config__anything")),
        (json!({"note": "0x7f.1"}), Some("config__note")),
        (json!({"subdomain": "2130706433"}), Some("config__subdomain")),
        (json!({"baseurl": "127.1"}), Some("config__baseurl")),
        // Within other values.
        (json!({"map": {"a": [1, "http://127.0.0.1/"]}}), Some("config__map")),
        (json!({"map": r#"{"a":"http://127.0.0.1/"}"#}), Some("config__map")),
        (json!({"map": r#" {"a": ["127.0.0.1"]}"#}), Some("config__map")),
        (json!({"map": r#"["0x7f.1:80"]"#}), Some("config__map")),
        (json!({"map": r#"{"a": "{\"b\": \"127.0.0.1\"}"}"#}), Some("config__map")),
        (json!({"note": r#""127.0.0.1""#}), Some("config__note")),
        (json!({"template": "see (ftp://127.0.0.1:21)"}), Some("config__template")),
        // A text that can be a number is one where no address is expected.
        (json!({"limit": "100", "version": "127.1", "n": 127.1}), None),
        (json!({"serverTimeout": "100", "host": "a.example", "url": null}), None),
        (json!({"at": "100:30", "day": "100/11/2024", "part": "/100/x"}), None),
        (json!({"host": "100:30"}), Some("config__host")),
        // A list of addresses to compare with.
        (json!({"ignored": "127.0.0.1, 127.0.0.2"}), None),
    ] {
        let fault = judge(&Inner, &map(values.clone())).err();
        assert_eq!(fault.and_then(|fault| fault.attr).as_deref(), at, "{values}");
    }
}

#[test]
fn addresses_within_a_long_text_are_found_in_time_in_proportion() {
    let text = "://a".repeat(200_000);
    let began = std::time::Instant::now();
    judge(&Inner, &map(json!({ "text": text }))).unwrap();
    assert!(began.elapsed().as_secs() < 5);
}

#[test]
fn secrets_stay_with_the_place_that_they_were_entered_for() {
    let schema = map(json!({
        "mode": {"type": "choice", "choices": ["a", "b", "b.example"]},
        "region": {"type": "choice", "choices": ["eu", "us"]},
    }));
    let settings = Settings::of(Some(&schema));
    let check = |was: &Value, is: &Value, sent: &[&str]| {
        let before = opened(was.clone(), json!({"token": "t"}));
        let after = opened(is.clone(), json!({"token": "t"}));
        let change = Move {
            settings: &settings,
            before: &before,
            after: &after,
            files_before: &[],
            files_after: &[],
        };
        let fault = change.keeps_secrets_at_home(&|key: &str| sent.contains(&key)).err();
        fault.and_then(|fault| fault.attr)
    };
    for (was, is) in [
        (json!({"url": "https://a"}), json!({"url": "https://b"})),
        (json!({"url": "https://a"}), json!({})),
        (json!({"n": 1}), json!({"n": "ftp://b"})),
        (json!({"subdomain": "a"}), json!({"subdomain": "b"})),
        (json!({"baseurl": "a"}), json!({"baseurl": "b"})),
        (json!({"account": 1}), json!({"account": 2})),
        (json!({"port": "80"}), json!({"port": "81"})),
        (json!({"region": "eu"}), json!({"region": "us"})),
        (json!({"mode": "a"}), json!({"mode": "b.example"})),
        // A setting that the plugin does not describe.
        (json!({"x": "acme"}), json!({"x": "evil"})),
        (json!({}), json!({"x": "evil"})),
        (json!({"x": ["acme"]}), json!({"x": ["evil"]})),
        (json!({"x": "a, b"}), json!({"x": "evil.example/?, b"})),
    ] {
        assert_eq!(check(&was, &is, &[]).as_deref(), Some("config__token"), "{was} {is}");
        assert_eq!(check(&was, &is, &["token"]), None, "{was} {is}");
    }
    for (was, is) in [
        (json!({"url": "https://a", "n": 1}), json!({"url": "https://a", "n": 2})),
        (json!({"on": true, "limit": "10"}), json!({"on": false, "limit": "10.5"})),
        (json!({"mode": "a"}), json!({"mode": "b"})),
        (json!({"events": "paid, signed up"}), json!({"events": "paid, left"})),
        (json!({"x": ""}), json!({"x": null})),
        (json!({"x": ""}), json!({})),
    ] {
        assert_eq!(check(&was, &is, &[]), None, "{was} {is}");
    }
}

#[test]
fn secrets_that_are_replaced_or_removed_are_not_asked_for() {
    let settings = Settings::default();
    let check = |before: &Opened, after: &Opened| {
        let (files_before, files_after) = (&[], &[]);
        let change = Move { settings: &settings, before, after, files_before, files_after };
        change.keeps_secrets_at_home(&|_: &str| false).is_ok()
    };
    let before = opened(json!({"url": "https://a"}), json!({"token": "t"}));
    assert!(check(&before, &opened(json!({"url": "https://b"}), json!({"token": "u"}))));
    assert!(check(&before, &opened(json!({"url": "https://b"}), json!({}))));
    // One of two secrets that is not an address may be replaced alone.
    let two = opened(json!({}), json!({"key": "k", "token": "t"}));
    assert!(check(&two, &opened(json!({}), json!({"key": "l", "token": "t"}))));
    let address = opened(json!({}), json!({"key": "https://a", "token": "t"}));
    assert!(!check(&address, &opened(json!({}), json!({"key": "https://b", "token": "t"}))));
}

#[test]
fn files_count_like_other_settings() {
    let settings = Settings::default();
    let values = opened(json!({}), json!({"token": "t"}));
    let check = |files_before: &[AttachmentRow], files_after: &[AttachmentRow]| {
        let (before, after) = (&values, &values);
        let change = Move { settings: &settings, before, after, files_before, files_after };
        let fault = change.keeps_secrets_at_home(&|_: &str| false).err();
        fault.and_then(|fault| fault.attr)
    };
    let old = [file("rules", 1, false), file("key", 2, true)];
    assert_eq!(check(&old, &old), None);
    let new = [file("rules", 3, false), file("key", 2, true)];
    assert_eq!(check(&old, &new).as_deref(), Some("config__token"));
    assert_eq!(check(&old, &old[1..]).as_deref(), Some("config__token"));
    // A setting that became a secret since has the same value.
    let (before, after) = (
        opened(json!({"url": "a"}), json!({"token": "t"})),
        opened(json!({}), json!({"token": "t", "url": "a"})),
    );
    let (files_before, files_after) = (&[], &[]);
    let same =
        Move { settings: &settings, before: &before, after: &after, files_before, files_after };
    assert!(same.keeps_secrets_at_home(&|_: &str| false).is_ok());
    // Only another secret file.
    assert_eq!(check(&old, &[file("rules", 1, false), file("key", 3, true)]), None);
}
