//! Projects with harmful plugins, next to a healthy one. No event is lost, and those of
//! the healthy project are transformed.

use std::collections::BTreeSet;

use super::*;

/// Events of each project.
const EVENTS: usize = 120;
/// Events of a request.
const EVENTS_PER_BATCH: usize = 20;

/// The code that hostile plugins run on an event `e`. Code that runs long does so for one
/// event in twenty, so that the others show that they pass too.
const HOSTILE: [(&str, &str); 14] = [
    ("loop", "if (e.properties.n % 20 === 0) { for (;;) {} }"),
    (
        "loop that catches",
        "if (e.properties.n % 20 === 0) { for (;;) { try { for (;;) {} } catch {} finally { continue } } }",
    ),
    ("sort", "if (e.properties.n % 20 === 0) { [3, 2, 1].sort(() => { for (;;) {} }) }"),
    (
        "getter",
        "Object.defineProperty(e.properties, 'x', { enumerable: true, get() { for (;;) {} } })",
    ),
    (
        "microtasks",
        "if (e.properties.n % 20 === 0) { return (async () => { for (;;) { await null } })() }",
    ),
    ("promises", "for (let i = 0; i < 1e5; i++) { new Promise(() => {}) }"),
    ("regex", "if (e.properties.n % 20 === 0) { /^(a+)+$/.test('a'.repeat(40) + 'b') }"),
    ("big number", "if (e.properties.n % 40 === 0) { let x = 3n; for (;;) { x = x * x } }"),
    ("memory", "const all = []; for (;;) { all.push(new Array(1e6).fill('x')) }"),
    ("text", "e.properties.x = 'x'.repeat(5e8)"),
    ("recursion", "const f = () => f() + f(); f()"),
    (
        "prototypes",
        "Object.prototype.event = 'stolen'; Array.prototype.map = () => []; JSON.stringify = () => '{}'; JSON.parse = () => null; Promise.prototype.then = () => {}; globalThis.processEvent = null",
    ),
    ("nesting", "let o = 0; for (let i = 0; i < 1e5; i++) { o = [o] } e.properties.o = o"),
    ("result", "e.properties.x = new Array(1e6).fill('xxxxxxxxxx')"),
];

const HEALTHY: &str = "export function processEvent(e) {
    e.properties.seen = true
    return e
}";

/// Sends the events of one project, and returns their ids.
async fn send_all(caller: &Caller, project: &Project) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for first in (0..EVENTS).step_by(EVENTS_PER_BATCH) {
        let batch: Vec<Value> = (first..first + EVENTS_PER_BATCH)
            .map(|n| {
                let id = Uuid::new_v4().to_string();
                let event = json!({
                    "event": "step", "uuid": id, "distinct_id": format!("user-{}", n % 7),
                    "properties": {"n": n, "nested": {"n": n}},
                });
                ids.insert(id);
                event
            })
            .collect();
        send(caller, project, &batch).await;
    }
    ids
}

fn ids_of(events: &[Value]) -> BTreeSet<String> {
    events.iter().map(|event| event["uuid"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_projects_harm_no_other_project() {
    let instance = Instance::start().await;
    let healthy = instance.project();
    instance.install(&healthy, 1, HEALTHY).await;
    let mut hostile = Vec::new();
    for (name, body) in HOSTILE {
        let project = instance.another(name).await;
        let source = format!("export function processEvent(e) {{ {body}\n return e }}");
        let installed = instance.install(&project, 1, &source).await;
        hostile.push((name, project, installed));
    }
    instance
        .until_works(&healthy, |found| {
            found.is_some_and(|event| event["properties"]["seen"] == true)
        })
        .await;

    let caller = instance.app.anonymous();
    let sending = hostile.iter().map(|(_, project, _)| send_all(&caller, project));
    let (of_healthy, of_hostile) = tokio::join!(send_all(&caller, &healthy), async {
        let mut sent = Vec::new();
        for ids in sending {
            sent.push(ids.await);
        }
        sent
    },);

    let events = without_probes(instance.stored(&healthy).await);
    assert!(ids_of(&events) == of_healthy, "{} of {EVENTS} events", events.len());
    assert!(events.iter().all(|event| event["properties"]["seen"] == true));
    for ((name, project, installed), sent) in hostile.iter().zip(of_hostile) {
        let events = instance.stored(project).await;
        assert_eq!(events.len(), EVENTS, "{name}");
        assert!(ids_of(&events) == sent, "{name}: other events than were sent");
        let is_as_sent = |event: &Value| {
            let properties = &event["properties"];
            event["event"] == "step" && properties["n"] == properties["nested"]["n"]
        };
        assert!(events.iter().all(is_as_sent), "{name}");
        // Changed prototypes and endless promises harm only the plugin's own copy.
        if !["prototypes", "promises"].contains(name) {
            instance.until_shown(installed, |shown| !shown["error"].is_null()).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn projects_know_nothing_of_one_another() {
    let instance = Instance::start().await;
    let (one, other) = (instance.project(), instance.another("Other").await);
    let source = "export function processEvent(e, { global, config }) {
        globalThis.shared = (globalThis.shared ?? 0) + 1
        global.count = (global.count ?? 0) + 1
        e.properties.shared = globalThis.shared
        e.properties.foreign = globalThis.foreign ?? null
        globalThis.foreign = e.team_id
        return e
    }";
    instance.install(&one, 1, source).await;
    instance.install(&other, 1, source).await;
    let is_seen =
        |found: Option<&Value>| found.is_some_and(|event| !event["properties"]["shared"].is_null());
    instance.until_works(&one, is_seen).await;
    instance.until_works(&other, is_seen).await;
    for project in [&one, &other, &one, &other] {
        let events: Vec<Value> = (0..30)
            .map(|n| json!({"event": "step", "distinct_id": format!("u{n}"), "properties": {}}))
            .collect();
        instance.send(project, &events).await;
        for event in instance.stored(project).await {
            let foreign = &event["properties"]["foreign"];
            assert!(foreign.is_null() || *foreign == project.id, "{event}");
        }
    }
}
