//! Transformations that remove data that must not be stored, and the events that they
//! cannot run on.

use super::*;

/// Removes the address. Takes 90 ms for an event that asks for it.
const REDACTS: &str = "export function processEvent(event) {
    const end = Date.now() + (event.properties.costly ? 90 : 0)
    while (Date.now() < end);
    if (event.properties.fails) { throw new Error('no tea') }
    delete event.properties.email
    event.properties.redacted = true
    return event
}";
const CANARY: &str = "ada@example.com";

/// Sends events of one person from another network.
async fn send_from(instance: &Instance, network: u8, project: &Project, events: &[Value]) {
    let body = json!({"api_key": project.key, "batch": events});
    let call = instance.app.anonymous().call(http::Method::POST, "/batch/");
    let call = call.header("x-forwarded-for", &format!("192.0.{network}.9")).json(&body);
    ok(200, &call.send().await);
}

async fn instance() -> Instance {
    let behind_a_proxy =
        |config: &mut Config| config.trusted_proxies = "127.0.0.1/32".parse().unwrap();
    Instance::with(behind_a_proxy, |_| {}).await
}

fn with_email(name: &str, mut properties: Value) -> Value {
    properties["email"] = json!(CANARY);
    event(name, properties)
}

async fn redacting(instance: &Instance, project: &Project, on_failure: Value) -> Installed {
    let installed = instance.install(project, 1, REDACTS).await;
    let change = json!({"on_failure": on_failure});
    let changed = ok(200, &instance.owner.patch(&installed.config, &change).await);
    let expected = if on_failure.is_null() { json!("store_unchanged") } else { on_failure };
    assert_eq!(changed["on_failure"], expected);
    let works =
        |found: Option<&Value>| found.is_some_and(|event| event["properties"]["redacted"] == true);
    instance.until_works(project, works).await;
    installed
}

fn unredacted(events: &[Value]) -> Vec<&Value> {
    events.iter().filter(|event| event["properties"].get("email").is_some()).collect()
}

/// How often a code was counted.
async fn counted(instance: &Instance, project: &Project, code: &str) -> u64 {
    instance.dropped(project, code).await.0
}

#[tokio::test(flavor = "multi_thread")]
async fn one_client_does_not_spend_the_time_of_others() {
    let instance = instance().await;
    let project = instance.project();
    redacting(&instance, &project, Value::Null).await;
    // Invented ids do not make another sender. The first requests use up the allowance.
    for count in [30, 30, 60] {
        let costly = (0..count).map(|n| {
            let mut costly = with_email("costly", json!({"costly": true}));
            costly["distinct_id"] = json!(format!("made-up-{n}"));
            costly
        });
        send_from(&instance, 1, &project, &costly.collect::<Vec<_>>()).await;
        instance.stored(&project).await;
    }
    let others: Vec<Value> = (0..40).map(|_| with_email("other", json!({}))).collect();
    send_from(&instance, 2, &project, &others).await;

    let events = without_probes(instance.stored(&project).await);
    assert_eq!(events.len(), 160);
    let passed = unredacted(&events);
    assert!(!passed.is_empty() && passed.len() < 120, "{}", passed.len());
    assert!(passed.iter().all(|event| event["event"] == "costly"));
    // Each skipped event has the warning and is counted.
    let skipped = counted(&instance, &project, "transformation_skipped").await;
    assert_eq!(skipped, passed.len() as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_must_be_redacted_is_dropped_where_it_cannot_be() {
    let instance = instance().await;
    let project = instance.project();
    let installed = redacting(&instance, &project, json!("hold_then_drop")).await;
    let costly: Vec<Value> =
        (0..120).map(|_| with_email("costly", json!({"costly": true}))).collect();
    send_from(&instance, 1, &project, &costly).await;
    // More failures in a row than the limit that disables other configs.
    let failing: Vec<Value> =
        (0..40).map(|_| with_email("failing", json!({"fails": true}))).collect();
    send_from(&instance, 2, &project, &failing).await;
    let others: Vec<Value> = (0..40).map(|_| with_email("other", json!({}))).collect();
    send_from(&instance, 3, &project, &others).await;

    let events = without_probes(instance.stored(&project).await);
    assert_eq!(unredacted(&events), Vec::<&Value>::new());
    let named = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    assert_eq!((named("failing"), named("other")), (0, 40));
    let (dropped, sample) = instance.dropped(&project, "transformation_unavailable").await;
    assert_eq!(dropped, 160 - named("costly") as u64, "each of them is counted");
    assert!(sample["detail"].as_str().unwrap().contains("Tea"), "{sample}");
    assert!(!sample.to_string().contains(CANARY), "{sample}");
    let shown = instance.until_shown(&installed, |shown| !shown["error"].is_null()).await;
    assert_eq!(shown["enabled"], true, "senders of events cannot switch it off");
    assert!(!shown.to_string().contains(CANARY), "{shown}");
    // After a moment the allowance is refilled.
    let works =
        |found: Option<&Value>| found.is_some_and(|event| event["properties"]["redacted"] == true);
    instance.until_works(&project, works).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_sample_has_what_a_step_takes_out() {
    let instance = instance().await;
    let project = instance.project();
    let throws = "export function processEvent(event) {
        if (event.event === 'thrown') { throw new Error('no tea') }
        return event
    }";
    let drops = "export const processEvent = (e) => e.event === 'unwanted' ? null : e";
    let before = instance.install(&project, 0, throws).await;
    redacting(&instance, &project, json!("hold_then_drop")).await;
    instance.install(&project, 2, drops).await;
    let codes = ["duplicate_uuid", "dropped_by_transformation", "missing_distinct_id"];
    until(async || {
        // The names differ each time, so that a step that runs a moment later sees no
        // duplicates.
        let names = ["repeated", "refused", "thrown", "unwanted"];
        let [repeated, mut refused, thrown, unwanted] =
            names.map(|name| with_email(name, json!({})));
        refused["distinct_id"] = json!("");
        let events = [repeated.clone(), repeated, refused, thrown, unwanted];
        instance.send(&project, &events).await;
        for code in codes {
            if counted(&instance, &project, code).await == 0 {
                return None;
            }
        }
        Some(())
    })
    .await;
    let shown = instance.until_shown(&before, |shown| !shown["error"].is_null()).await;
    assert!(!shown.to_string().contains(CANARY), "{shown}");
    for list in ["", "events/"] {
        let path = format!("/api/projects/{}/ingestion_warnings/{list}", project.id);
        let list = ok(200, &instance.owner.get(&path).await);
        assert!(!list.to_string().contains(CANARY), "{list}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn code_that_does_not_compile_follows_the_policy() {
    let instance = instance().await;
    for (on_failure, code) in [
        ("store_unchanged", "transformation_skipped"),
        ("hold_then_drop", "transformation_unavailable"),
    ] {
        let project = instance.another(on_failure).await;
        let installed = redacting(&instance, &project, json!(on_failure)).await;
        let path = format!("{}update_source/", installed.plugin);
        let broken = json!({"index.js": "export function processEvent( {"});
        let answer = ok(200, &instance.owner.patch(&path, &broken).await);
        assert!(answer["source_errors"]["index.js"].is_string(), "{answer}");
        until(async || {
            instance.send(&project, &[with_email("paid", json!({}))]).await;
            (counted(&instance, &project, code).await > 0).then_some(())
        })
        .await;
        let events = without_probes(instance.stored(&project).await);
        let passed = unredacted(&events);
        if on_failure == "store_unchanged" {
            assert_eq!(passed.len() as u64, counted(&instance, &project, code).await);
        } else {
            assert_eq!(passed, Vec::<&Value>::new());
        }
        instance.until_shown(&installed, |shown| !shown["error"].is_null()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_that_protect_drop_and_others_store() {
    let instance = instance().await;
    let plugins =
        format!("/api/organizations/{}/pipeline_destinations/", instance.app.organization());
    let configs = Instance::configs(&instance.project());
    for (id, expected) in [
        ("redaction", "hold_then_drop"),
        ("hash-properties", "hold_then_drop"),
        ("ip-anonymisation", "hold_then_drop"),
        ("url-masking", "hold_then_drop"),
        ("property-filter", "hold_then_drop"),
        ("location", "store_unchanged"),
    ] {
        let plugin = json!({"url": format!("inline:{id}")});
        let plugin = ok(201, &instance.owner.post(&plugins, &plugin).await)["id"].clone();
        let made = json!({"plugin": plugin, "order": 1});
        let made = ok(201, &instance.owner.post(&configs, &made).await);
        assert_eq!(made["on_failure"], expected, "{id}");
        let path = format!("{configs}{}/", made["id"]);
        for (sent, shown) in [
            (json!("store_unchanged"), "store_unchanged"),
            (json!("hold_then_drop"), "hold_then_drop"),
            (Value::Null, expected),
        ] {
            let answer = ok(200, &instance.owner.patch(&path, &json!({"on_failure": sent})).await);
            assert_eq!(answer["on_failure"], shown, "{id}");
        }
        let answer = instance.owner.patch(&path, &json!({"on_failure": "drop"})).await;
        let (status, _, code, _, attr) = answer.error();
        assert_eq!(
            (status, code.as_str(), attr.as_deref()),
            (400, "invalid_choice", Some("on_failure"))
        );
    }
}
