//! The health of a config: `error` and `delivery_rate_24h`.

use super::*;
use crate::traffic::function;
use crate::web::{page, session};
use weir_model::PluginConfigId;
use weir_store::plugin_runtime::health::{self, Fault, Note};

/// An hour in microseconds.
const HOUR: i64 = 3_600_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn the_last_fault_and_the_rate_of_a_day() {
    let (app, clock) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let (config, one) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    assert_eq!((&config["error"], &config["delivery_rate_24h"]), (&Value::Null, &Value::Null));

    let revision = row(&app, &config).await.revision;
    let note = |hours: i64, succeeded, failed, message: Option<&str>| Note {
        config: PluginConfigId(config["id"].as_i64().unwrap()),
        project: app.project(),
        hour: clock.now().micros() / HOUR - hours,
        succeeded,
        failed,
        dropped: 7,
        fault: message.map(|message| {
            let fault = Fault {
                message: message.to_owned(),
                at: clock.now(),
                sample: Some(r#"{"event":"visit","n":12345678901234567890123}"#.to_owned()),
            };
            (revision, fault)
        }),
    };
    let fault = "index.js:1:7: Error: no";
    // Counts older than a day are not included.
    let notes = [note(24, 0, 100, None), note(23, 2, 0, None), note(0, 1, 1, Some(fault))];
    health::note(app.store(), &notes).await.unwrap();
    let list = owner.get(&path(&app)).await.json();
    for found in [owner.get(&one).await.json(), list["results"][0].clone()] {
        assert_eq!((&found["error"], &found["delivery_rate_24h"]), (&json!(fault), &json!("0.75")));
    }
    let expanded = owner.get(&format!("{one}?expand=object")).await;
    let text = String::from_utf8_lossy(&expanded.body);
    assert!(text.contains(r#""n":12345678901234567890123"#), "digits are kept: {text}");
    let expanded = expanded.json();
    assert_eq!(expanded["delivery_rate_24h"], json!(0.75));
    assert_eq!(expanded["error"]["message"], json!(fault));
    assert_eq!(expanded["error"]["time"], json!(clock.now()));
    assert_eq!(expanded["error"]["event"]["event"], "visit");

    // A user who changes the config has seen the error.
    let changed = owner.patch(&one, &json!({"enabled": true})).await.json();
    assert_eq!((&changed["error"], &changed["delivery_rate_24h"]), (&Value::Null, &json!("0.75")));
    clock.advance(24 * 3600);
    let later = owner.get(&one).await.json();
    assert_eq!(later["delivery_rate_24h"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_switched_off_says_why() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let (config, one) =
        made(&app, &owner, &json!({"plugin": plugin, "order": 1, "enabled": true})).await;
    let configs = &app.app().services.plugin_configs;
    let failed = row(&app, &config).await;
    assert!(configs.running().switch_off(&failed, "Failed 20 times in a row").await.unwrap());
    let found = owner.get(&one).await.json();
    assert_eq!(
        (&found["enabled"], &found["error"]),
        (&json!(false), &json!("Failed 20 times in a row"))
    );
    let (action, changes) = audit_entries(&app, &owner, &config).await.pop().unwrap();
    assert_eq!(action, "disabled");
    assert_eq!(changes["enabled"], json!([true, false]));
    assert_eq!(changes["reason"], json!([null, "Failed 20 times in a row"]));
    let again = owner.patch(&one, &json!({"enabled": true})).await.json();
    assert_eq!((&again["enabled"], &again["error"]), (&json!(true), &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_navigation_counts_what_failed_beside_its_page() {
    let (app, clock) = app().await;
    let owner = owner(&app).await;
    let cookie = session(&app).await;
    let organization = app.organization().to_string();
    let list = format!("/organizations/{organization}/plugins/destinations");
    let html = page(&app, &list, &cookie).await.text();
    assert!(!html.contains("nav-badge"), "nothing failed");

    let sources = [
        "export function processEvent(event) { return event }",
        "export function onEvent(event) {}",
        "export function composeWebhook(event) { return null }",
    ];
    let mut notes = Vec::new();
    for (order, source) in (1..).zip(sources) {
        let plugin = written(&app, &owner, &json!({"index.js": source})).await;
        let (config, _) = made(&app, &owner, &json!({"plugin": plugin, "order": order})).await;
        notes.push(Note {
            config: PluginConfigId(config["id"].as_i64().unwrap()),
            project: app.project(),
            hour: clock.now().micros() / HOUR,
            succeeded: 5,
            failed: 1,
            dropped: 0,
            fault: None,
        });
    }
    health::note(app.store(), &notes).await.unwrap();
    let body = format!("organization={organization}&project={}", app.project());
    let failing = function(&app, &cookie, "find_failing", &body).await.json();
    let counts = (&failing["exports"], &failing["transformations"], &failing["plugins"]);
    assert_eq!(counts, (&json!(0), &json!(1), &json!(2)), "{failing}");
    let html = page(&app, &list, &cookie).await.text();
    for words in [
        "1<span class=\"hidden\"> failing transformation<",
        "2<span class=\"hidden\"> failing destinations or apps<",
    ] {
        assert!(html.contains(words), "{words}");
    }
}
