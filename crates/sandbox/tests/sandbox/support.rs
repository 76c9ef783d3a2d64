//! Programs, events, and a host that records its calls.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use weir_sandbox::{
    Delivered, DeliveryFunction, Grants, HostCall, Limits, Meta, NoHost, Outcome, Pool,
    PoolSettings, Program, ProgramKey, ScriptError, ScriptHost, TransformationCall, Transformed,
};

pub(crate) fn settings(children: usize) -> PoolSettings {
    PoolSettings {
        program: env!("CARGO_BIN_EXE_weir-plugin-worker").into(),
        arguments: vec!["plugin-worker".into()],
        children,
        // The machine of a test may be busy.
        limits: Limits { grace: Duration::from_millis(500), ..Limits::default() },
    }
}

pub(crate) fn pool(children: usize) -> Pool {
    Pool::new(settings(children))
}

pub(crate) fn everything() -> Grants {
    Grants { fetch: true, storage: true, cache: true, capture: true, jobs: true, geoip: true }
}

pub(crate) fn program(source: &str) -> Arc<Program> {
    program_with(source, json!({}))
}

pub(crate) fn program_with(source: &str, config: Value) -> Arc<Program> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    Arc::new(Program {
        key: ProgramKey { config: 1, version: NEXT.fetch_add(1, Ordering::Relaxed) },
        source: source.into(),
        name: "index.js".to_owned(),
        meta: Meta {
            config: raw(&config),
            attachments: BTreeMap::new(),
            plugin: "Sample".to_owned(),
        },
        grants: everything(),
    })
}

pub(crate) fn step(source: &str) -> TransformationCall {
    of(program(source))
}

pub(crate) fn of(program: Arc<Program>) -> TransformationCall {
    TransformationCall { program, allowances: Vec::new() }
}

pub(crate) fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

pub(crate) fn event(properties: Value) -> Box<RawValue> {
    raw(&json!({ "event": "seen", "distinct_id": "anna", "properties": properties }))
}

/// Sends one event through one script.
pub(crate) async fn through(source: &str, properties: Value) -> Transformed {
    let pool = pool(1);
    let mut all = pool.transform(0, &[step(source)], &[event(properties)], &NoHost).await.unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

pub(crate) fn kept(transformed: &Transformed) -> Value {
    assert!(transformed.failures.is_empty(), "{:?}", transformed.failures);
    match &transformed.outcome {
        Outcome::Kept(text) => serde_json::from_str(text.get()).unwrap(),
        other => panic!("not kept: {other:?}"),
    }
}

pub(crate) fn failed(transformed: &Transformed) -> &ScriptError {
    assert!(matches!(transformed.outcome, Outcome::Unchanged), "{:?}", transformed.outcome);
    assert_eq!(transformed.failures.len(), 1, "{:?}", transformed.failures);
    &transformed.failures[0].error
}

/// Properties of an event after a script that adds some.
pub(crate) async fn properties(source: &str) -> Value {
    let source = format!(
        "async function processEvent(event, meta) {{ const p = event.properties;\n{source}\nreturn event }}"
    );
    let pool = pool(1);
    let host = Memory::default();
    let all = pool.transform(0, &[step(&source)], &[event(json!({}))], &host).await.unwrap();
    kept(&all[0])["properties"].clone()
}

pub(crate) async fn deliver(
    source: &str,
    how: DeliveryFunction,
    host: &dyn ScriptHost,
) -> Vec<Delivered> {
    let events = [event(json!({ "n": 1 })), event(json!({ "n": 2 }))];
    pool(1).deliver(0, &program(source), how, &events, host).await.unwrap()
}

/// A host that stores values in memory and records every call.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) calls: Mutex<Vec<HostCall>>,
    values: Mutex<BTreeMap<String, Value>>,
}

impl Memory {
    pub(crate) fn logged(&self) -> Vec<String> {
        let calls = self.calls.lock().unwrap();
        let text = |call: &HostCall| match call {
            HostCall::Log { level, message } => Some(format!("{level:?} {message}")),
            _ => None,
        };
        calls.iter().filter_map(text).collect()
    }
}

#[async_trait]
impl ScriptHost for Memory {
    async fn call(&self, _program: &Program, call: HostCall) -> Result<Value, String> {
        self.calls.lock().unwrap().push(call.clone());
        let mut values = self.values.lock().unwrap();
        Ok(match call {
            HostCall::StorageGet { key } | HostCall::CacheGet { key } => {
                values.get(&key).cloned().unwrap_or(Value::Null)
            }
            HostCall::StorageSet { key, value } | HostCall::CacheSet { key, value, .. } => {
                values.insert(key, value);
                Value::Null
            }
            HostCall::StorageDel { key } => {
                values.remove(&key);
                Value::Null
            }
            HostCall::CursorIncrement { key, by } => {
                let now = values.get(&key).and_then(Value::as_f64).unwrap_or(0.0) + by;
                values.insert(key, json!(now));
                json!(now)
            }
            HostCall::Fetch { url, method, body, .. } => {
                if url.contains("refused") {
                    return Err("the connection was refused".to_owned());
                }
                let wanted = url.rsplit('/').next().and_then(|last| last.parse::<u16>().ok());
                json!({ "status": wanted.unwrap_or(201), "headers": { "X-Seen": "yes" }, "body": format!("{{\"method\":\"{method}\",\"length\":{}}}", body.map_or(0, |body| body.len())) })
            }
            HostCall::Geoip { .. } => json!({
                "country": { "iso_code": "DE", "names": { "pt-BR": "Alemanha", "a_b": "as it is" } },
                "location": { "time_zone": "Europe/Berlin", "latitude": 52.5 },
                "subdivisions": [{ "iso_code": "BE" }],
            }),
            _ => Value::Null,
        })
    }
}
