//! Plugins that fail: events pass, and the config shows the error.

use super::*;
use crate::traffic::function;
use crate::web::session;

const WORKS: &str = "export function processEvent(event) {
    event.properties.seen = true
    return event
}";

/// Throws in line 3 and changes the event before.
const THROWS: &str = "export function processEvent(event) {
    event.properties.seen = 'half'
    throw new TypeError('no tea for ' + event.event)
}";

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_breaks_lets_events_pass_and_shows_why() {
    let instance = Instance::start().await;
    let project = instance.project();
    let installed = instance.install(&project, 1, WORKS).await;
    let is_seen =
        |found: Option<&Value>| found.is_some_and(|event| event["properties"]["seen"] == true);
    instance.until_works(&project, is_seen).await;
    instance.rewrite(&installed, THROWS).await;
    let is_plain = |found: Option<&Value>| {
        found.is_some_and(|event| event["properties"].get("seen").is_none())
    };
    instance.until_works(&project, is_plain).await;

    let sent = event("paid", json!({"price": 3}));
    instance.send(&project, std::slice::from_ref(&sent)).await;
    let events = instance.stored(&project).await;
    let found = only(&events, "paid");
    assert_eq!((&found["uuid"], &found["properties"]["price"]), (&sent["uuid"], &json!(3)));
    assert_eq!(found["properties"].get("seen"), None, "a failing step leaves no trace");
    let is_reported = |shown: &Value| shown["error"]["event"]["event"] == "paid";
    let shown = instance.until_shown(&installed, is_reported).await;
    let error = shown["error"]["message"].as_str().unwrap();
    assert!(error.contains("no tea for") && error.contains("index"), "{error}");
    // The position: file, line and column.
    assert!(error.contains(":3:"), "{error}");
    // The event of the error, as it was before the step.
    let sample = &shown["error"]["event"];
    assert_eq!(sample["properties"].get("seen"), None, "{sample}");
    let rate = |shown: &Value| shown["delivery_rate_24h"].as_f64().is_some_and(|rate| rate < 1.0);
    instance.until_shown(&installed, rate).await;
    // The navigation of the app counts it.
    let cookie = session(&instance.app).await;
    let body = format!("organization={}&project={}", instance.app.organization(), project.id);
    let failing = function(&instance.app, &cookie, "find_failing", &body).await.json();
    let counts = (&failing["exports"], &failing["transformations"]);
    assert_eq!(counts, (&json!(0), &json!(1)), "{failing}");

    // After a fix it is enabled again, and earlier failures do not count.
    instance.rewrite(&installed, WORKS).await;
    ok(200, &instance.owner.patch(&installed.config, &json!({"enabled": false})).await);
    ok(200, &instance.owner.patch(&installed.config, &json!({"enabled": true})).await);
    instance.until_works(&project, is_seen).await;
    assert_eq!(instance.shown(&installed).await["error"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_taken_for_an_event_is_a_failure() {
    let instance = Instance::start().await;
    for (name, body) in [
        ("number", "return 1"),
        ("no name", "return { ...e, event: null }"),
        ("no id", "return { ...e, distinct_id: 7 }"),
        ("no properties", "return { ...e, properties: 'none' }"),
        ("huge", "e.properties.x = 'x'.repeat(3 << 20); return e"),
        (
            "deep",
            "let o = {}; for (let i = 0; i < 5000; i++) o = { o }; e.properties.o = o; return e",
        ),
        ("circular", "e.properties.e = e; return e"),
        ("never", "return new Promise(() => {})"),
        ("rejected", "return Promise.reject(new Error('no'))"),
        ("nothing thrown", "throw undefined"),
        ("fetch", "return fetch('http://127.0.0.1:1/').then(() => e)"),
    ] {
        let project = instance.another(name).await;
        let source = format!("export function processEvent(e) {{ {body} }}");
        let installed = instance.install(&project, 1, &source).await;
        let sent = event("paid", json!({"price": 3}));
        // Until it was called.
        until(async || {
            let probe = instance.probed(&project).await;
            assert!(probe.is_some(), "{name}: an event is missing");
            let error = instance.shown(&installed).await["error"].clone();
            (!error.is_null()).then_some(())
        })
        .await;
        instance.send(&project, std::slice::from_ref(&sent)).await;
        let events = instance.stored(&project).await;
        let found = only(&events, "paid");
        assert_eq!(found["uuid"], sent["uuid"], "{name}");
        assert_eq!(found["properties"]["price"], 3, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_twenty_failures_in_a_row_it_is_switched_off() {
    let instance = Instance::start().await;
    let project = instance.project();
    // Every third event succeeds, so the failures are not in a row.
    let source = "export function processEvent(e) {
        if (e.properties.fails) { throw new Error('broken') }
        e.properties.seen = true
        return e
    }";
    let installed = instance.install(&project, 1, source).await;
    instance
        .until_works(&project, |found| {
            found.is_some_and(|event| event["properties"]["seen"] == true)
        })
        .await;
    let failing: Vec<Value> =
        (0..60).map(|n| event("mixed", json!({"fails": n % 3 != 0}))).collect();
    instance.send(&project, &failing).await;
    instance.stored(&project).await;
    assert_eq!(instance.shown(&installed).await["enabled"], true);

    let failing: Vec<Value> = (0..40).map(|_| event("failing", json!({"fails": true}))).collect();
    instance.send(&project, &failing).await;
    let shown = instance.until_shown(&installed, |shown| shown["enabled"] == false).await;
    let error = &shown["error"];
    assert!(error["message"].as_str().unwrap().contains("broken"), "{shown}");
    assert!(error["event"]["event"].is_string(), "{shown}");
    // The entry does not name a member as its author, and all members can see it.
    let path = format!(
        "/api/projects/{}/activity_log/?scope=PluginConfig&item_id={}",
        project.id, installed.id
    );
    let log = ok(200, &instance.owner.get(&path).await);
    assert_eq!(log["results"][0]["activity"], "disabled", "{log}");
    // The events are stored, and so are later ones.
    instance.send(&project, &[event("after", json!({"fails": false}))]).await;
    let events = without_probes(instance.stored(&project).await);
    assert_eq!(events.len(), 101);
    assert_eq!(only(&events, "after")["properties"].get("seen"), None);
    // Enabled again it runs, and the error is gone.
    ok(200, &instance.owner.patch(&installed.config, &json!({"enabled": true})).await);
    instance
        .until_works(&project, |found| {
            found.is_some_and(|event| event["properties"]["seen"] == true)
        })
        .await;
    assert_eq!(instance.shown(&installed).await["error"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_cannot_load_is_reported_and_events_pass() {
    let instance = Instance::start().await;
    let project = instance.project();
    let installed = instance.install(&project, 1, WORKS).await;
    let path = format!("{}update_source/", installed.plugin);
    let broken = json!({"index.js": "export function processEvent(e) {\n  return e +\n}"});
    let answer = ok(200, &instance.owner.patch(&path, &broken).await);
    let fault = answer["source_errors"]["index.js"].as_str().unwrap_or_default();
    assert!(fault.contains("3:"), "{answer}");
    let foreign = json!({"index.js": "import fs from 'fs'\nexport const processEvent = (e) => e"});
    let answer = ok(200, &instance.owner.patch(&path, &foreign).await);
    let fault = answer["source_errors"]["index.js"].as_str().unwrap_or_default();
    assert!(fault.contains("fs") && fault.contains("1:"), "{answer}");
    let sets_up = json!({
        "index.js": "export function setupPlugin() { throw new Error('no key') }\n\
                     export function processEvent(e) { e.properties.seen = true; return e }",
    });
    ok(200, &instance.owner.patch(&path, &sets_up).await);
    until(async || {
        let found = instance.probed(&project).await.expect("events pass");
        let error = instance.shown(&installed).await["error"].clone();
        let is_reported = error["message"].as_str().is_some_and(|error| error.contains("no key"));
        (is_reported && found["properties"].get("seen").is_none()).then_some(())
    })
    .await;
}
