//! Whatever plugins do and whatever events contain: each accepted event is stored, or
//! dropped by a transformation that is meant to drop it.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config as Rounds, TestRunner};
use tokio::runtime::Handle;

use super::*;

/// Each round uses the real service, with sandbox processes that end and start.
const ROUNDS: u32 = 24;

/// The code that a plugin runs on an event `e`.
const SHAPES: [&str; 14] = [
    "return e",
    "return null",
    "return",
    "return e.properties.n % 2 ? e : undefined",
    "throw new Error('no')",
    "throw null",
    "e.properties = { all: e.properties }; return e",
    "e.event = 'renamed'; e.distinct_id += '!'; e.uuid = 'x'; e.timestamp = 'never'; return e",
    "delete e.distinct_id; return e",
    "return [e]",
    "return new Promise((done) => done(e))",
    "return new Promise(() => {})",
    "for (const k in e.properties) { e.properties[k] = e.properties[k].toString() } return e",
    "e.self = e; return JSON.parse(JSON.stringify({ ...e, self: null }))",
];

/// The shapes that drop events.
const DROPPING: [&str; 3] = ["return null", "return", "return e.properties.n % 2 ? e : undefined"];

fn property() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec(("[a-z$_]{1,12}", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn an_event() -> impl Strategy<Value = Value> {
    let names = prop_oneof!["[a-z$ ]{1,8}", "\\PC{1,20}"];
    let keys = prop_oneof![
        "[a-z]{1,6}",
        Just("__proto__".to_owned()),
        Just("constructor".to_owned()),
        Just("toString".to_owned()),
        Just("$set".to_owned()),
        "\\PC{1,6}",
    ];
    let properties = vec((keys, property()), 0..6);
    (names, "[a-z]{1,3}", 0..9_u8, properties).prop_map(|(name, id, n, properties)| {
        let mut properties: serde_json::Map<String, Value> = properties.into_iter().collect();
        properties.insert("n".to_owned(), n.into());
        json!({"event": name, "distinct_id": id, "properties": properties})
    })
}

#[derive(Debug, Clone)]
struct Round {
    shapes: Vec<usize>,
    events: Vec<Value>,
}

fn round() -> impl Strategy<Value = Round> {
    (vec(0..SHAPES.len(), 1..4), vec(an_event(), 1..40))
        .prop_map(|(shapes, events)| Round { shapes, events })
}

#[tokio::test(flavor = "multi_thread")]
async fn accepted_is_stored_and_dropped() {
    let instance = Instance::start().await;
    let mut runner = TestRunner::new(Rounds {
        cases: ROUNDS,
        max_shrink_iters: ROUNDS,
        failure_persistence: None,
        ..Rounds::default()
    });
    let ran = tokio::task::block_in_place(|| {
        runner.run(&round(), |round| Handle::current().block_on(check(&instance, round)))
    });
    ran.unwrap();
}

/// Each event is stored once. A missing event was dropped and is counted.
async fn check(instance: &Instance, round: Round) -> Result<(), TestCaseError> {
    let project = instance.another(&Uuid::new_v4().to_string()).await;
    for (order, shape) in (1..).zip(&round.shapes) {
        let source = format!("export function processEvent(e) {{ {} }}", SHAPES[*shape]);
        instance.install(&project, order, &source).await;
    }
    let mut events = round.events;
    for event in &mut events {
        event["uuid"] = json!(Uuid::new_v4().to_string());
    }
    instance.send(&project, &events).await;
    let stored = instance.stored(&project).await;
    let mut not_stored = 0;
    for (code, outcome, count) in reasons(instance, &project).await {
        prop_assert!(!code.contains("duplicate"), "{code}");
        if outcome == "dropped" {
            not_stored += count;
        }
    }
    let ids: BTreeSet<&str> = stored.iter().map(|event| event["uuid"].as_str().unwrap()).collect();
    prop_assert_eq!(ids.len(), stored.len());
    let is_sent = |id: &str| events.iter().any(|event| event["uuid"] == id);
    prop_assert!(ids.iter().all(|id| is_sent(id)));
    let all = u64::try_from(events.len()).unwrap();
    prop_assert_eq!(u64::try_from(stored.len()).unwrap() + not_stored, all);
    // Only the shapes that drop have dropped events.
    let (by_plugins, _) = instance.dropped(&project, "dropped_by_transformation").await;
    if !round.shapes.iter().any(|shape| DROPPING.contains(&SHAPES[*shape])) {
        prop_assert_eq!(by_plugins, 0);
    }
    Ok(())
}

/// The outcomes of events: code, outcome, count.
async fn reasons(instance: &Instance, project: &Project) -> Vec<(String, String, u64)> {
    let path = format!("/api/projects/{}/ingestion_warnings/", project.id);
    let list = ok(200, &instance.owner.get(&path).await);
    let reason = |reason: &Value| {
        let text = |name: &str| reason[name].as_str().unwrap().to_owned();
        (text("code"), text("outcome"), reason["count"].as_u64().unwrap())
    };
    list["results"].as_array().unwrap().iter().map(reason).collect()
}
