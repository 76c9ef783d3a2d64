//! Programs from a small grammar and arbitrary events: there are as many results as
//! events, and each result is an event.

use std::sync::OnceLock;

use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use weir_sandbox::{NoHost, Outcome, Pool, TransformationCall};

use crate::support::*;

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON", |n| n.is_finite()).prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z$_]{1,6}|__proto__|toJSON|then", inner, 0..4)
                .prop_map(|map| json!(map)),
        ]
    })
}

fn an_event() -> impl Strategy<Value = Box<RawValue>> {
    (any::<String>(), any::<String>(), prop::collection::btree_map("\\PC{0,8}", value(), 0..5))
        .prop_map(|(name, id, properties)| {
            raw(&json!({ "event": name, "distinct_id": id, "properties": properties }))
        })
}

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("event".to_owned()),
        Just("event.properties".to_owned()),
        Just("meta".to_owned()),
        Just("null".to_owned()),
        Just("undefined".to_owned()),
        Just("this".to_owned()),
        Just("globalThis".to_owned()),
        Just("Symbol.iterator".to_owned()),
        any::<f64>().prop_map(|n| format!("{n:?}").replace("inf", "Infinity")),
        "[a-z]{0,4}".prop_map(|text| format!("'{text}'")),
        Just("'\\ud800'".to_owned()),
        Just("10n ** 30n".to_owned()),
        Just("new Date(NaN)".to_owned()),
        Just("/(a|a)*b/".to_owned()),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} + {b})")),
            (inner.clone(), "[a-z]{1,3}").prop_map(|(a, name)| format!("({a}).{name}")),
            inner.clone().prop_map(|a| format!("({{ ...({a}) }})")),
            inner.clone().prop_map(|a| format!("[{a}]")),
            inner.clone().prop_map(|a| format!("(() => ({a}))()")),
            inner.clone().prop_map(|a| format!("(await ({a}))")),
            inner.clone().prop_map(|a| format!("JSON.stringify({a})")),
            inner.clone().prop_map(|a| format!("Object.freeze({a})")),
            inner.clone().prop_map(|a| format!("new Proxy({a}, {{}})")),
            inner.prop_map(|a| format!("structuredClone({a})")),
        ]
    })
}

fn statement() -> impl Strategy<Value = String> {
    let target = prop_oneof![
        Just("event.properties.x"),
        Just("event.properties"),
        Just("event.$set"),
        Just("event.event"),
        Just("event.toJSON"),
        Just("event.then"),
        Just("Object.prototype.x"),
        Just("Array.prototype.toJSON"),
        Just("meta.global.x"),
        Just("event"),
    ];
    let simple = prop_oneof![
        (target, expression()).prop_map(|(target, value)| format!("{target} = {value};")),
        expression().prop_map(|value| format!("console.log({value});")),
        expression().prop_map(|value| format!("throw {value};")),
        expression().prop_map(|value| format!("return {value};")),
        Just("return event;".to_owned()),
        Just("delete event.properties;".to_owned()),
    ];
    simple.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            (expression(), inner.clone())
                .prop_map(|(condition, then)| format!("if ({condition}) {{ {then} }}")),
            inner.clone().prop_map(|body| format!("try {{ {body} }} catch (error) {{}}")),
            inner.clone().prop_map(|body| format!("for (let i = 0; i < 3; i++) {{ {body} }}")),
            inner.prop_map(|body| format!("await (async () => {{ {body} }})();")),
        ]
    })
}

fn a_script() -> impl Strategy<Value = String> {
    let head = prop_oneof![
        Just("export async function processEvent(event, meta)"),
        Just("async function processEvent(event, meta)"),
        Just("module.exports.processEvent = async function (event, meta)"),
    ];
    (head, prop::collection::vec(statement(), 0..5), any::<bool>()).prop_map(
        |(head, statements, returns)| {
            let last = if returns { "return event" } else { "" };
            format!("{head} {{ {} {last} }}", statements.join("\n"))
        },
    )
}

fn shared() -> &'static (tokio::runtime::Runtime, Pool) {
    static SHARED: OnceLock<(tokio::runtime::Runtime, Pool)> = OnceLock::new();
    SHARED.get_or_init(|| (tokio::runtime::Runtime::new().unwrap(), pool(1)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_event_is_lost(
        scripts in prop::collection::vec(a_script(), 1..3),
        events in prop::collection::vec(an_event(), 0..6),
    ) {
        let (runtime, pool) = shared();
        let steps: Vec<TransformationCall> = scripts.iter().map(|script| step(script)).collect();
        let all = runtime.block_on(pool.transform(0, &steps, &events, &NoHost)).unwrap();
        prop_assert_eq!(all.len(), events.len());
        for (made, event) in all.iter().zip(&events) {
            prop_assert_eq!(made.micros.len(), steps.len());
            match &made.outcome {
                Outcome::Kept(text) => {
                    let back: Value = serde_json::from_str(text.get()).unwrap();
                    prop_assert!(back["event"].is_string() && back["distinct_id"].is_string());
                    prop_assert!(back["properties"].is_object());
                }
                Outcome::Unchanged => {}
                Outcome::Dropped { step } => prop_assert!(*step < steps.len(), "{}", event),
            }
            prop_assert!(made.failures.iter().all(|failure| failure.step < steps.len()));
        }
    }
}
