//! Events that are answered with 200 and are not stored, or are stored with changes. The
//! sender cannot notice, so each one is counted by reason, kept as a sample and shown in
//! the metrics. A browser test covers the pages about them.

use serde_json::{Value, json};
use weir_testkit::{Caller, TestApp, until};

/// An event that is answered with 200.
struct Case {
    event: Value,
    code: &'static str,
    outcome: &'static str,
    metric: &'static str,
    /// The number of events with this reason after this case.
    count: u64,
}

const DROPPED: &str = "weir_capture_events_dropped_total{reason=";
const ALTERED: &str = "weir_ingest_events_altered_total{warning=";

fn cases() -> [Case; 4] {
    let dropped =
        |event, code, count| Case { event, code, outcome: "dropped", metric: DROPPED, count };
    [
        dropped(json!({"distinct_id": "nameless"}), "missing_event_name", 1),
        dropped(json!({"event": "of no one"}), "missing_distinct_id", 1),
        // A blank distinct id is missing too (ING-29), so the reason is the same.
        dropped(json!({"event": "of a blank", "distinct_id": "  "}), "missing_distinct_id", 2),
        Case {
            event: json!({"event": "long".repeat(60), "distinct_id": "u",
                          "properties": {"told": "altered"}}),
            code: "event_name_cut",
            outcome: "accepted",
            metric: ALTERED,
            count: 1,
        },
    ]
}

async fn with_metrics() -> TestApp {
    let listening = |config: &mut weir_server::config::Config| {
        config.metrics_listen = "127.0.0.1:0".parse().unwrap();
    };
    TestApp::start(listening, |_| {}).await.set_up().await
}

/// A counter; 0 before it was counted.
async fn counter(app: &TestApp, name: &str, code: &str) -> u64 {
    let start = format!("{name}\"{code}\"}} ");
    let page = app.metrics().await;
    let line = page.lines().find_map(|line| line.strip_prefix(start.as_str()));
    line.map_or(0, |value| value.parse().unwrap())
}

/// Changes by processing are counted every second.
async fn counted(app: &TestApp, case: &Case, expected: u64) {
    until(async || {
        let counted = counter(app, case.metric, case.code).await;
        if counted == expected { Ok(()) } else { Err((case.code, counted)) }
    })
    .await;
}

async fn read(app: &TestApp, caller: &Caller, list: &str) -> Vec<Value> {
    let path = format!("/api/projects/{}/{list}/", app.project());
    caller.get(&path).await.json()["results"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_events_are_shown_on_every_surface() {
    let app = with_metrics().await;
    let caller = app.owner().key(&["query:read", "project:read"]).await;
    assert_eq!(read(&app, &caller, "ingestion_warnings").await, Vec::<Value>::new());
    let mut stored = 0;
    for case in cases() {
        let before = counter(&app, case.metric, case.code).await;
        let mut body = case.event.clone();
        body["api_key"] = json!(app.project_key());
        let answer = app.anonymous().post("/i/v0/e/", &body).await;
        assert_eq!((answer.status, answer.json()), (200, json!({"status": 1})), "{}", case.event);

        app.app().ingest.applied().await;
        stored += usize::from(case.outcome == "accepted");
        assert_eq!(read(&app, &caller, "events").await.len(), stored, "{}", case.event);

        let warnings = read(&app, &caller, "ingestion_warnings").await;
        let entry = warnings.iter().find(|entry| entry["code"] == case.code).unwrap();
        assert_eq!(
            (&entry["outcome"], &entry["count"]),
            (&json!(case.outcome), &json!(case.count))
        );
        for words in ["detail", "fix"] {
            assert!(entry[words].as_str().unwrap().ends_with('.'), "{entry}");
        }
        assert_is_sampled(entry, &case);
        counted(&app, &case, before + 1).await;
    }
    app.stop().await;
}

/// The newest sample is the event, as it was sent.
fn assert_is_sampled(entry: &Value, case: &Case) {
    let sample = &entry["samples"][0];
    let payload: Value = serde_json::from_str(sample["payload"].as_str().unwrap()).unwrap();
    if case.outcome == "accepted" {
        assert_eq!(payload["told"], case.event["properties"]["told"], "{sample}");
        assert_eq!(sample["distinct_id"], case.event["distinct_id"], "{sample}");
        return;
    }
    for (name, value) in case.event.as_object().unwrap() {
        assert_eq!(payload[name], *value, "{sample}");
    }
}
