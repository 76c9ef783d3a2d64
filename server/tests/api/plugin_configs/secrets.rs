//! Secret settings: they can be written and never read.

use super::*;

const CANARY: &str = "c4n4ry-51a7e";

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_shown_as_one_word_wherever_it_would_stand() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let body = json!({
        "plugin": plugin, "order": 1, "enabled": true, "config": {"host": "h", "token": CANARY},
    });
    let (config, path) = made(&app, &owner, &body).await;
    assert_eq!(values(&config), json!({"host": "h", "token": "(secret)"}));
    let other = json!({"config": {"host": "h", "token": format!("{CANARY}2")}});
    assert_eq!(owner.patch(&path, &other).await.status, 200);
    let faulty = json!({"config": {"token": [CANARY]}});
    let mut answers = vec![
        owner.get(&path).await,
        owner.get(&format!("{path}?expand=object")).await,
        owner.get(&super::path(&app)).await,
        owner.get(&format!("{path}frontend/")).await,
        owner.post(&format!("{path}job/"), &json!({})).await,
        owner.patch(&format!("{}rearrange/", super::path(&app)), &json!({"orders": {}})).await,
        owner.patch(&path, &faulty).await,
    ];
    for place in ["organizations", "projects"] {
        let id = match place {
            "projects" => app.project().to_string(),
            _ => app.organization().to_string(),
        };
        answers.push(owner.get(&format!("/api/{place}/{id}/activity_log/")).await);
    }
    for answer in answers {
        assert!(!String::from_utf8_lossy(&answer.body).contains(CANARY), "{answer:?}");
    }
    let row = row(&app, &config).await;
    assert!(!format!("{row:?}").contains(CANARY));
    assert_eq!(row.secret_keys, ["token"]);
    let entries = audit_entries(&app, &owner, &config).await;
    assert_eq!(entries[0].1["config__token"], json!([null, "(secret)"]));
    let changed = json!({"config__token": ["(secret)", "(secret)"]});
    assert_eq!(entries[2], ("config_updated".to_owned(), changed));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_keeps_until_it_is_cleared() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let body = json!({"plugin": plugin, "order": 1, "config": {"host": "h", "token": CANARY}});
    let (config, path) = made(&app, &owner, &body).await;
    let before = row(&app, &config).await.secrets;
    for sent in [json!({}), json!({"token": null}), json!({"token": "(secret)"})] {
        let mut sent = sent;
        sent["host"] = json!("h");
        let after = owner.patch(&path, &json!({"config": sent})).await.json();
        assert_eq!(values(&after), json!({"host": "h", "token": "(secret)"}), "{sent}");
    }
    assert!(before.is_some() && row(&app, &config).await.secrets.is_some());
    let after = owner.patch(&path, &json!({"config": {"host": "h", "token": ""}})).await.json();
    assert_eq!(values(&after), json!({"host": "h"}));
    assert_eq!(row(&app, &config).await.secrets, None);
    let entries = audit_entries(&app, &owner, &config).await;
    let cleared = ("config_updated".to_owned(), json!({"config__token": ["(secret)", null]}));
    assert_eq!(entries.last(), Some(&cleared));
    // The placeholder is not a secret if there is no stored value.
    let after = owner.patch(&path, &json!({"config": {"token": "(secret)"}})).await.json();
    assert_eq!(values(&after), json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_cannot_take_the_secrecy_back() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let body = json!({"plugin": plugin, "order": 1, "config": {"token": CANARY, "host": CANARY}});
    let (_, path) = made(&app, &owner, &body).await;
    let schema = json!({"token": {"type": "string"}, "host": {"type": "string", "secret": true}});
    let record =
        format!("/api/organizations/{}/pipeline_destinations/{plugin}/", app.organization());
    assert_eq!(owner.patch(&record, &json!({"config_schema": schema})).await.status, 200);
    // Old secrets stay secret, and new ones become secret.
    let shown = owner.get(&path).await.json();
    assert_eq!(values(&shown), json!({"token": "(secret)", "host": "(secret)"}));
    let after = owner.patch(&path, &json!({"config": {"other": true}})).await.json();
    let expected = json!({"token": "(secret)", "host": "(secret)", "other": true});
    assert_eq!(values(&after), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_does_not_follow_another_address() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let config = json!({"host": "one.example", "token": CANARY});
    let (_, path) =
        made(&app, &owner, &json!({"plugin": plugin, "order": 1, "config": config})).await;
    let detail = "Enter this again: \"host\" has changed, and it may decide where this is sent.";
    for token in [Value::Null, json!("(secret)")] {
        let mut config = json!({"host": "other.example", "token": token});
        for _ in 0..2 {
            let answer = owner.patch(&path, &json!({"config": config})).await;
            assert_invalid(&answer, Some("config__token"), "required", detail);
            // An omitted secret also keeps its value.
            config.as_object_mut().unwrap().remove("token");
        }
    }
    for config in [
        // Other settings do not require the secret again, and neither does the same
        // address.
        json!({"host": "one.example", "mode": "a"}),
        json!({"host": "other.example", "token": "entered again"}),
        json!({"host": "third.example", "token": ""}),
        json!({"host": "fourth.example"}),
    ] {
        let answer = owner.patch(&path, &json!({"config": config})).await;
        assert_eq!(answer.status, 200, "{config}: {:?}", answer.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inner_address_is_refused_when_it_is_entered() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let path = super::path(&app);
    let detail = "This address is on a network that this server does not connect to. The operator \
                  can allow it with egress_allow.";
    for host in [
        "http://169.254.169.254/",
        "127.0.0.1",
        "127.0.0.1.",
        "127.0.0.1:8000",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "[::1]",
        "::ffff:10.0.0.1",
        "http://[::ffff:a00:1]:80/x",
        "localhost",
        "https://localhost./",
    ] {
        let body = json!({"plugin": plugin, "order": 1, "config": {"host": host}});
        let answer = owner.post(&path, &body).await;
        assert_invalid(&answer, Some("config__host"), "invalid_input", detail);
    }
    let body = json!({"plugin": plugin, "order": 1, "config": {"host": "https://a.example"}});
    let (_, config) = made(&app, &owner, &body).await;
    let change = json!({"config": {"host": "a.example", "mode": "a", "own": "http://10.0.0.1"}});
    let answer = owner.patch(&config, &change).await;
    assert_invalid(&answer, Some("config__own"), "invalid_input", detail);
    // Within JSON that a text contains, and within a text of that JSON.
    let inner = json!([1, {"a": "http://10.0.0.1"}]).to_string();
    for own in [inner.clone(), json!({"b": [inner]}).to_string()] {
        let answer = owner.patch(&config, &json!({"config": {"own": own}})).await;
        assert_invalid(&answer, Some("config__own"), "invalid_input", detail);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ordinary_values_are_no_addresses() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let config = json!({
        "version": "10.4.2", "minimum": "v10.0.0.1", "range": ">=10.2 <11", "rate": "0.5",
        "share": "10%", "limit": "2130706433", "size": "10M", "offset": "-10", "sum": "1e3",
        "at": "09:30", "on": "10/11/2024", "day": "2024-11-10", "ratio": "1/2", "zone": "+01:00",
        "cron": "0 10 * * 1-5", "phone": "+49 30 1234567", "color": "#0a0b0c", "separator": "::",
        "mark": ".", "any": "*", "path": "/10/users", "glob": "/internal/*", "flag": "true",
        "events": "$pageview,$autocapture, signed up", "words": "Only events of local hosts",
        "mail": "ada@mail.example", "mails": "ada@mail.example, grace@mail.example",
        "regex": r"^https?://(www\.)?acme\.example/.*$", "ipRegex": r"^10\.\d+\.\d+\.\d+$",
        "network": "10.0.0.0/8, 192.168.0.0/16", "uuid": "0190a1b2-0000-7000-8000-000000000000",
        "json": r#"{"a":[1,"10:00"],"b":"10.2","c":"https://a.example/?next=10.0"}"#,
        "template": "{{event.uuid}} of {{person.id}}: see https://a.example/e/{{event.uuid}}",
        "sql": "CREATE TABLE events (at timestamp, ip inet DEFAULT '0.0.0.0')",
        "agent": "Mozilla/5.0 (X11; Linux x86_64) Chrome/10.0.0.1", "host": "eu.acme.example",
        "arn": "arn:aws:s3:::acme-events", "bucket": "acme.events", "key": "a+b/c==",
    });
    for (key, value) in config.as_object().unwrap() {
        let body = json!({"plugin": plugin, "order": 1, "config": {key: value}});
        let answer = owner.post(&path(&app), &body).await;
        assert_eq!(answer.status, 201, "{key}: {:?}", answer.body);
    }
}
