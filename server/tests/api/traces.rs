//! Traces: what a collector of OpenTelemetry gets from the program, and that the program does
//! not depend on it.

use std::fs::File;
use std::path::Path;

use http::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::process::Command;
use weir_testkit::{Answer, Caller, until};
use weir_testservers::{StandIn, StubAnswer, StubRequest, free_address};

use crate::process::{Serving, events, set_up, weir, weir_showing, weir_through};

const PASSWORD: &str = "plum-otter-violin-93";

/// What a collector got, and whether it takes it.
struct Collected {
    requests: Vec<StubRequest>,
    is_open: bool,
}

impl Collected {
    /// All spans, in the order of arrival.
    fn spans(&self) -> Vec<Value> {
        let mut spans = Vec::new();
        for request in &self.requests {
            let body = request.json();
            let of_scope = body["resourceSpans"][0]["scopeSpans"][0]["spans"].clone();
            spans.extend(of_scope.as_array().unwrap().iter().cloned());
        }
        spans
    }

    fn of_trace(&self, id: &str) -> Vec<Value> {
        self.spans().into_iter().filter(|span| span["traceId"] == id).collect()
    }
}

async fn collector(is_open: bool) -> StandIn<Collected> {
    let kept = Collected { requests: Vec::new(), is_open };
    StandIn::start(kept, |kept, asked| {
        // A request without an answer closes the connection.
        kept.is_open.then(|| {
            kept.requests.push(asked.clone());
            StubAnswer::json(200, &json!({"partialSuccess": {}}))
        })
    })
    .await
}

fn exporting(mut command: Command, collector: &StandIn<Collected>) -> Command {
    command.args(["--traces-endpoint", &format!("{}/v1/traces", collector.url())]);
    command.env("WEIR_TRACES_HEADERS", "authorization=Bearer otel");
    command
}

async fn made(folder: &Path) -> Value {
    let made = set_up(folder, PASSWORD).await;
    assert!(made.ok, "{}", made.err);
    serde_json::from_str(&made.out).unwrap()
}

/// The id of a request as the id of a trace.
fn trace_of(answer: &Answer) -> String {
    answer.header("x-request-id").unwrap().replace('-', "")
}

fn attribute(span: &Value, key: &str) -> Option<Value> {
    let attributes = span["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|attribute| attribute["key"] == key)?;
    found["value"].as_object().unwrap().values().next().cloned()
}

/// Waits for a request's trace, and returns the span of the request and the others.
async fn trace(collector: &StandIn<Collected>, id: &str) -> (Value, Vec<Value>) {
    until(async || {
        let (requests, others): (Vec<_>, Vec<_>) =
            collector.lock().of_trace(id).into_iter().partition(|span| span["kind"] == 2);
        requests.into_iter().next().map(|request| (request, others))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_gets_the_spans_of_requests_and_of_events() {
    let folder = tempfile::tempdir().unwrap();
    let made = made(folder.path()).await;
    let collector = collector(true).await;
    let serving = Serving::start_with(exporting(weir(folder.path()), &collector)).await;

    let event = json!({
        "api_key": made["project_api_key"], "event": "c4n4ry-name", "distinct_id": "c4n4ry-user",
    });
    let answer = serving.caller.post("/capture/?c4n4ry-query=1", &event).await;
    assert_eq!(answer.status, 200);
    let (request, others) = trace(&collector, &trace_of(&answer)).await;
    assert_eq!(request["name"], "POST /capture/");
    assert_eq!(request.get("parentSpanId"), None);
    assert_eq!(request["status"], json!({}));
    for (key, value) in [
        ("http.request.method", "POST"),
        ("http.route", "/capture/"),
        ("http.response.status_code", "200"),
        ("weir.surface", "capture"),
        ("weir.request.id", answer.header("x-request-id").unwrap()),
    ] {
        assert_eq!(attribute(&request, key), Some(value.into()), "{key}");
    }
    let append = others.iter().find(|span| span["name"] == "append to log").unwrap();
    assert_eq!(append["parentSpanId"], request["spanId"]);
    assert_eq!(attribute(append, "weir.events"), Some("1".into()));

    let method = Method::from_bytes(b"c4n4ry-method").unwrap();
    let answer = serving.caller.call(method, "/_livez").send().await;
    assert_eq!(answer.status, 405);
    let (request, _) = trace(&collector, &trace_of(&answer)).await;
    assert_eq!(attribute(&request, "http.request.method"), Some("_OTHER".into()));

    let user = serving.caller.with_key(made["personal_api_key"].as_str().unwrap());
    let answer = user.get("/api/users/@me/").await;
    let (request, others) = trace(&collector, &trace_of(&answer)).await;
    assert_eq!(request["name"], "GET /api/users/{user_id}/");
    let is_of_store = |span: &Value| attribute(span, "db.system.name") == Some("surrealdb".into());
    assert!(others.iter().any(is_of_store), "{others:?}");

    events(&serving.caller, &made, 1).await;
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
    // Also those that waited when the service stopped.
    let collected = collector.lock();
    let commits = |span: &Value| span["name"] == "commit events";
    assert!(collected.spans().iter().any(commits));
    for StubRequest { method, path, headers, body, .. } in &collected.requests {
        assert_eq!((method.as_str(), path.as_str()), ("POST", "/v1/traces"));
        for (name, value) in
            [("authorization", "Bearer otel"), ("content-type", "application/json")]
        {
            assert!(headers.contains(&(name.to_owned(), value.to_owned())), "{headers:?}");
        }
        let body = String::from_utf8_lossy(body);
        let keys = [&made["project_api_key"], &made["personal_api_key"]];
        let secrets = keys.map(|key| key.as_str().unwrap());
        for secret in ["c4n4ry", "ada@mail.example"].iter().chain(&secrets) {
            assert!(!body.contains(secret), "{secret} is in {body}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_takes_nothing_costs_its_spans_alone() {
    let folder = tempfile::tempdir().unwrap();
    let collector = collector(false).await;
    let metrics = free_address();
    let command = weir_showing(&[], folder.path(), &metrics.to_string());
    let serving = Serving::start_with(exporting(command, &collector)).await;
    let page = Caller::of(metrics);
    // Asks the service until a metric has counted.
    let counted = async |name: &str| {
        until(async || {
            assert_eq!(serving.caller.get("/_livez").await.status, 200);
            let page = page.get("/metrics").await.text();
            let line = page.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().parse::<u64>().unwrap() > 0
        })
        .await;
    };
    counted("weir_trace_spans_lost_total").await;
    collector.lock().is_open = true;
    counted("weir_trace_spans_exported_total").await;
    collector.lock().is_open = false;
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn trusted_proxies_name_the_trace_of_a_request() {
    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";
    let folder = tempfile::tempdir().unwrap();
    let collector = collector(true).await;
    for proxies in ["127.0.0.1", "192.0.2.1"] {
        let mut command = exporting(weir(folder.path()), &collector);
        command.args(["--trusted-proxies", proxies, "--traces-parent", "true"]);
        let serving = Serving::start_with(command).await;
        let call = serving.caller.call(Method::GET, "/_livez");
        let answer = call.header("traceparent", &format!("00-{TRACE}-{SPAN}-01")).send().await;
        if proxies == "127.0.0.1" {
            let (request, _) = trace(&collector, TRACE).await;
            assert_eq!(request["parentSpanId"], SPAN);
            assert_eq!(request["name"], "GET /_livez");
        } else {
            let (request, _) = trace(&collector, &trace_of(&answer)).await;
            assert_eq!(request.get("parentSpanId"), None);
        }
        serving.signal(Signal::TERM);
        assert_eq!(serving.ended().await, Some(0));
    }
    assert_eq!(collector.lock().of_trace(TRACE).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_and_its_filter_are_the_same_with_traces() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lines");
    let write = |settings: &str| std::fs::write(folder.path().join("weir.toml"), settings).unwrap();
    write("log = 'warn'\n");
    let collector = collector(true).await;
    // The tests may run in a terminal. The program must not have it.
    let command = weir_through(&["setsid".to_owned()], folder.path());
    let mut command = exporting(command, &collector);
    command.arg("serve").stderr(File::create(&file).unwrap());
    let serving = Serving::launch(command).await;
    let answer = serving.caller.get("/_preflight").await;
    assert_eq!(answer.status, 200);
    // The filter of the log does not hide spans of traces.
    trace(&collector, &trace_of(&answer)).await;
    write("log = 'warn,weir=info'\n");
    serving.signal(Signal::HUP);
    let lines = until(async || {
        assert_eq!(serving.caller.get("/_livez").await.status, 200);
        let lines = std::fs::read_to_string(&file).unwrap();
        if lines.contains("route=\"/_livez\"") { Ok(lines) } else { Err(lines) }
    })
    .await;
    assert!(!lines.contains("/_preflight") && !lines.contains("request{"), "{lines}");
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
}
