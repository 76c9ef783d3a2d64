//! Transformations change, drop and order events.

use std::time::{Duration, Instant};

use super::*;

const SEEN: &str = "export function processEvent(event) {
    event.properties.seen = true
    return event
}";

#[tokio::test(flavor = "multi_thread")]
async fn an_event_comes_back_transformed() {
    let instance = Instance::start().await;
    let project = instance.project();
    let source = "export function processEvent(event, { config }) {
        event.event = event.event.toUpperCase()
        event.distinct_id = `${config.prefix}-${event.distinct_id}`
        event.properties = { ...event.properties, $set: { plan: 'pro' }, given: Object.keys(event).sort() }
        event.uuid = '00000000-0000-0000-0000-000000000000'
        event.team_id = 4711
        return event
    }";
    let manifest = json!({
        "name": "Shout", "config": [{"key": "prefix", "type": "string", "default": "shop"}],
    });
    let files = json!({"index.js": source, "plugin.json": manifest.to_string()});
    let installed = instance.install_files(&project, 1, &files, &json!({})).await;
    instance
        .until_works(&project, |found| found.is_some_and(|event| event["event"] == "PROBE"))
        .await;

    let sent = event("paid", json!({"price": 3}));
    instance.send(&project, std::slice::from_ref(&sent)).await;
    let events = instance.stored(&project).await;
    let found = only(&events, "PAID");
    // Fields that a plugin may not change are unchanged.
    assert_eq!(found["uuid"], sent["uuid"]);
    assert_eq!(
        (&found["distinct_id"], &found["properties"]["price"]),
        (&json!("shop-ada"), &json!(3))
    );
    // Processing happens after the transformation.
    assert_eq!(found["person"]["properties"]["plan"], "pro", "{found}");
    let given = found["properties"]["given"].as_array().unwrap();
    for key in [
        "distinct_id",
        "event",
        "ip",
        "now",
        "properties",
        "site_url",
        "team_id",
        "timestamp",
        "uuid",
    ] {
        assert!(given.contains(&json!(key)), "{key}: {given:?}");
    }
    let shown = instance.shown(&installed).await;
    assert_eq!(shown["error"], Value::Null, "{shown}");
    instance.until_shown(&installed, |shown| shown["delivery_rate_24h"] == 1.0).await;
    instance.app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_form_of_a_source_runs() {
    let instance = Instance::start().await;
    for (name, file, source) in [
        ("module", "index.js", SEEN),
        ("default", "index.js", "export default { processEvent(e) { e.properties.seen = true; return e } }"),
        ("common", "index.js", "module.exports = { processEvent: async (e) => { e.properties.seen = true; return e } }"),
        ("bare", "index.js", "function processEvent(e) { e.properties.seen = true; return e }"),
        ("batch", "index.js", "exports.processEventBatch = (all) => all.map((e) => { e.properties.seen = true; return e })"),
        (
            "typescript", "index.ts",
            "import { Plugin, PluginEvent, PluginMeta } from '@posthog/plugin-scaffold'
            enum Mark { Seen = 'seen' }
            interface Settings { config: { unused?: string } }
            export const processEvent = (event: PluginEvent, meta: PluginMeta<Plugin<Settings>>): PluginEvent => {
                (event.properties as Record<string, unknown>)![Mark.Seen] = meta !== undefined
                return event
            }",
        ),
    ] {
        let project = instance.another(name).await;
        let files = json!({file: source});
        let installed = instance.install_files(&project, 1, &files, &json!({})).await;
        instance
            .until_works(&project, |found| {
                found.is_some_and(|event| event["properties"]["seen"] == true)
            })
            .await;
        assert_eq!(instance.shown(&installed).await["error"], Value::Null, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_of_the_catalogue_and_a_script_take_part_in_one_order() {
    let instance = Instance::start().await;
    let project = instance.project();
    let group =
        format!("/api/organizations/{}/pipeline_destinations/", instance.app.organization());
    let native = json!({"plugin_type": "inline", "url": "inline:ip-anonymisation"});
    let native = ok(201, &instance.owner.post(&group, &native).await);
    let copies = "export function processEvent(e) {
        e.properties.copy = e.properties.$ip
        return e
    }";
    let copying = instance.install(&project, 1, copies).await;
    let (_, masking) = instance.enabled(&project, &native["id"], 2, &json!({})).await;
    let ip = async |number: i64| {
        let name = format!("visit {number}");
        instance.send(&project, &[event(&name, json!({"$ip": "203.0.113.7"}))]).await;
        let events = instance.stored(&project).await;
        let properties = &only(&events, &name)["properties"];
        (properties["$ip"].clone(), properties["copy"].clone())
    };
    let mut number = 0;
    let mut until_ip = async |wanted: (&str, &str)| {
        loop {
            number += 1;
            if ip(number).await == (json!(wanted.0), json!(wanted.1)) {
                return;
            }
            assert!(number < 500, "never {wanted:?}");
        }
    };
    until_ip(("203.0.113.0", "203.0.113.7")).await;
    let orders = json!({"orders": {masking.to_string(): 1, copying.id.to_string(): 2}});
    let path = format!("{}rearrange/", Instance::configs(&project));
    ok(200, &instance.owner.patch(&path, &orders).await);
    until_ip(("203.0.113.0", "203.0.113.0")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_order_gives_another_result() {
    let instance = Instance::start().await;
    let project = instance.project();
    let adding = |letter: &str| {
        format!(
            "export function processEvent(e) {{
                e.properties.way = (e.properties.way ?? '') + '{letter}'
                return e
            }}"
        )
    };
    let first = instance.install(&project, 1, &adding("a")).await;
    let second = instance.install(&project, 2, &adding("b")).await;
    let way = |wanted: &'static str| {
        move |found: Option<&Value>| found.is_some_and(|event| event["properties"]["way"] == wanted)
    };
    instance.until_works(&project, way("ab")).await;
    let path = format!("{}rearrange/", Instance::configs(&project));
    let orders = json!({"orders": {first.id.to_string(): 2, second.id.to_string(): 1}});
    ok(200, &instance.owner.patch(&path, &orders).await);
    instance.until_works(&project, way("ba")).await;
    // A disabled config is skipped, and so is a deleted one.
    ok(200, &instance.owner.patch(&second.config, &json!({"enabled": false})).await);
    instance.until_works(&project, way("a")).await;
    assert_eq!(instance.owner.delete(&first.config).await.status, 204);
    let is_plain =
        |found: Option<&Value>| found.is_some_and(|event| event["properties"].get("way").is_none());
    instance.until_works(&project, is_plain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_dropped_is_shown_with_the_config_that_did_it() {
    let instance = Instance::start().await;
    let project = instance.project();
    let source = "export function processEvent(e) {
        if (e.event === 'noise' || e.properties.probe) { return null }
        return e
    }";
    let installed = instance.install(&project, 1, source).await;
    instance.until_works(&project, |found| found.is_none()).await;
    let (before, _) = instance.dropped(&project, "dropped_by_transformation").await;
    instance.send(&project, &[event("tea", json!({})), event("noise", json!({"loud": 9}))]).await;
    let events = without_probes(instance.stored(&project).await);
    assert_eq!(events.len(), 1, "{events:?}");
    only(&events, "tea");
    let (count, newest) = instance.dropped(&project, "dropped_by_transformation").await;
    assert_eq!(count, before + 1);
    assert_eq!(newest["event"], "noise");
    let detail = newest["detail"].as_str().unwrap_or_default().to_owned();
    assert!(detail.contains(&format!("(config {})", installed.id)), "{newest}");
    // The pages show it too.
    let cookie = crate::web::session(&instance.app).await;
    for name in ["start", "health"] {
        let path = format!("/projects/{}/{name}", project.id);
        let shown = crate::web::page(&instance.app, &path, &cookie).await;
        assert!(String::from_utf8_lossy(&shown.body).contains(&detail), "{name}");
    }
    // Dropping an event is not a failure.
    instance.until_shown(&installed, |shown| shown["delivery_rate_24h"] == 1.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_keep_all_their_digits() {
    let instance = Instance::start().await;
    let project = instance.project();
    instance.install(&project, 1, SEEN).await;
    instance
        .until_works(&project, |found| {
            found.is_some_and(|event| event["properties"]["seen"] == true)
        })
        .await;
    let numbers = r#"{"whole":12345678901234567890,"deep":[{"less":-9223372036854775808}],"part":0.1234567890123456789,"small":7}"#;
    let body = format!(
        r#"{{"api_key":"{}","batch":[{{"event":"counted","distinct_id":"ada","properties":{numbers}}}]}}"#,
        project.key
    );
    let call = instance.app.anonymous().call(http::Method::POST, "/batch/");
    ok(200, &call.header("content-type", "application/json").body(body).send().await);
    instance.app.app().ingest.applied().await;
    let path = format!("/api/projects/{}/events/?event=counted", project.id);
    let answer = instance.owner.get(&path).await;
    let text = answer.text();
    for number in ["12345678901234567890", "-9223372036854775808", "0.1234567890123456789"] {
        assert!(text.contains(number), "{number}: {text}");
    }
    assert_eq!(answer.json()["results"][0]["properties"]["seen"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_works_within_a_second() {
    let instance = Instance::start().await;
    let project = instance.project();
    let source = "export function processEvent(e, { config }) {
        e.properties.word = config.word
        return e
    }";
    let manifest = json!({"name": "Words", "config": [{"key": "word", "type": "string"}]});
    let files = json!({"index.js": source, "plugin.json": manifest.to_string()});
    let config = json!({"word": "first"});
    let installed = instance.install_files(&project, 1, &files, &config).await;
    let says = |found: &Option<Value>, word: &str| {
        found.as_ref().is_some_and(|event| event["properties"]["word"] == word)
    };
    instance.until_works(&project, |found| says(&found.cloned(), "first")).await;
    // Events that are sent a second after the change, and later, show its effect.
    let within_a_second = async |word: &str| {
        let changed = Instant::now();
        until(async || {
            let is_late = changed.elapsed() > Duration::from_secs(1);
            let found = instance.probed(&project).await;
            assert!(says(&found, word) || !is_late, "{found:?}");
            says(&found, word)
        })
        .await;
    };
    for word in ["second", "third"] {
        ok(200, &instance.owner.patch(&installed.config, &json!({"config": {"word": word}})).await);
        within_a_second(word).await;
    }
    let other = "export function processEvent(e) { e.properties.word = 'rewritten'; return e }";
    instance.rewrite(&installed, other).await;
    within_a_second("rewritten").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_there_for_the_plugin_alone() {
    const CANARY: &str = "c4n4ry-8f1b";
    let instance = Instance::start().await;
    let project = instance.project();
    let source = "export function processEvent(e, { config }) {
        e.properties.length = config.token.length
        e.properties.first = config.token[0]
        return e
    }";
    let manifest = json!({
        "name": "Keys", "config": [{"key": "token", "type": "string", "secret": true}],
    });
    let files = json!({"index.js": source, "plugin.json": manifest.to_string()});
    let installed = instance.install_files(&project, 1, &files, &json!({"token": CANARY})).await;
    instance
        .until_works(&project, |found| {
            found.is_some_and(|event| event["properties"]["length"] == CANARY.len())
        })
        .await;
    for path in [
        installed.config.clone(),
        format!("{}?expand=object", installed.config),
        format!("{}logs/", installed.config),
        Instance::configs(&project),
        format!("/api/projects/{}/activity_log/", project.id),
        format!("/api/projects/{}/events/", project.id),
    ] {
        let answer = instance.owner.get(&path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(!String::from_utf8_lossy(&answer.body).contains(CANARY), "{path}");
    }
}
