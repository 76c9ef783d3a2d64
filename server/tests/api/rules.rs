//! The rules that real libraries depend on (ING-1 to ING-12), one test each. The tests
//! of ING-11, on events that arrive after the `$identify` that merged their id, are with
//! those of persons.

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use http::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use weir_server::limits::{ByteLimits, Limits};
use weir_testkit::{Answer, Caller, TestApp};

use crate::process::{Serving, set_up};

/// The paths for events, without the slash at the end.
const EVENT_PATHS: [&str; 8] =
    ["/capture", "/batch", "/e", "/i/v0/e", "/track", "/engage", "/i/v0/ai/batch", "/s"];

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn event(key: &str, name: &str) -> Value {
    json!({"api_key": key, "event": name, "distinct_id": "user-1"})
}

async fn post(caller: &Caller, path: &str, body: impl Into<bytes::Bytes>) -> Answer {
    caller.call(Method::POST, path).body(body).send().await
}

/// Names of all stored events, in alphabetical order.
async fn stored(app: &TestApp) -> Vec<String> {
    app.app().ingest.applied().await;
    let reader = app.owner().key(&["query:read"]).await;
    let path = format!("/api/projects/{}/events/?limit=1000", app.project());
    let list = reader.get(&path).await.json();
    let events = list["results"].as_array().unwrap().iter();
    let mut names: Vec<_> =
        events.map(|event| event["event"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// Every path that libraries use, with a method and a valid body.
fn all_paths(key: &str) -> Vec<(Method, String, String)> {
    let text = event(key, "a").to_string();
    let mut paths: Vec<_> =
        EVENT_PATHS.iter().map(|path| (Method::POST, (*path).to_owned(), text.clone())).collect();
    for path in ["/flags", "/decide"] {
        paths.push((Method::POST, path.to_owned(), text.clone()));
    }
    for path in [
        "/i/v1/analytics/events",
        "/i/v1/logs",
        "/i/v1/metrics",
        "/i/v1/traces",
        "/i/v0/ai",
        "/i/v0/ai/otel",
        "/i/v0/ai/otel/v1/logs",
        "/i/v0/ai/otel/v1/metrics",
        "/i/v0/ai/otel/v1/traces",
        "/report",
    ] {
        paths.push((Method::POST, path.to_owned(), text.clone()));
    }
    for path in [
        format!("/array/{key}/config"),
        format!("/array/{key}/config.js"),
        "/static/array.js".into(),
    ] {
        paths.push((Method::GET, path, String::new()));
    }
    for path in [
        "/flags/definitions",
        "/api/feature_flag",
        "/api/feature_flag/local_evaluation",
        "/api/projects/@current/feature_flags/a/remote_config",
        "/api/surveys",
        "/api/early_access_features",
        "/api/web_experiments",
        "/api/product_tours",
    ] {
        paths.push((Method::GET, path.to_owned(), String::new()));
    }
    paths
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_01_a_capture_is_answered_with_200() {
    let app = TestApp::with_owner().await;
    let nobody = app.anonymous();
    let body = event(app.project_key(), "a").to_string();
    for path in EVENT_PATHS {
        let answer = post(&nobody, path, body.clone()).await;
        assert_eq!((answer.status, answer.json()), (200, json!({"status": 1})), "{path}");
        let answer = post(&nobody, &format!("{path}?beacon=1"), body.clone()).await;
        assert_eq!((answer.status, answer.body.len()), (204, 0), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_02_every_path_works_with_and_without_slash_and_none_redirects() {
    let app = TestApp::with_owner().await;
    let nobody = app.anonymous();
    for (method, path, body) in all_paths(app.project_key()) {
        let mut seen = Vec::new();
        for path in [path.clone(), format!("{path}/"), format!("{path}/?v=2")] {
            let answer = nobody.call(method.clone(), &path).body(body.clone()).send().await;
            assert!(!(300..400).contains(&answer.status), "{path}: {}", answer.status);
            assert_eq!(answer.header("location"), None, "{path}");
            seen.push(answer.status);
        }
        assert_eq!(seen, vec![seen[0]; 3], "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_03_gzip_is_known_by_its_first_bytes() {
    let app = TestApp::with_owner().await;
    let types = ["text/plain", "application/json", "application/x-www-form-urlencoded", ""];
    let mut sent = 0;
    for content_type in types {
        for query in ["", "?compression=base64", "?compression=lz64"] {
            let body = gzip(&event(app.project_key(), "packed").to_string());
            let call = app.anonymous().call(Method::POST, &format!("/i/v0/e/{query}"));
            let answer = call.header("content-type", content_type).body(body).send().await;
            assert_eq!(answer.status, 200, "{content_type} {query}");
            sent += 1;
        }
    }
    assert_eq!(stored(&app).await.len(), sent);
}

fn assert_not_accepted(answer: &Answer) {
    let (status, kind, code, _, _) = answer.error();
    assert_eq!((status, kind.as_str(), code.as_str()), (503, "server_error", "not_accepted"));
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=5).contains(&wait), "{wait}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_04_refusal_for_the_time_being_is_503_with_retry_after() {
    let no_permit =
        TestApp::start(|_| {}, |limits| limits.capture_requests = 0).await.set_up().await;
    let little = |limits: &mut Limits| {
        limits.capture_bytes = ByteLimits { total: 1, reserve: 0, ..limits.capture_bytes };
    };
    let no_bytes = TestApp::start(|_| {}, little).await.set_up().await;
    for app in [no_permit, no_bytes] {
        for path in EVENT_PATHS {
            let body = event(app.project_key(), "a").to_string();
            assert_not_accepted(&post(&app.anonymous(), path, body).await);
        }
        assert_eq!(stored(&app).await, Vec::<String>::new());
    }

    // A disk that is nearly full.
    let folder = tempfile::tempdir().unwrap();
    let key = prepared(folder.path()).await;
    let full = "disk_high = '9000000GiB'\ndisk_low = '9000000GiB'\n";
    std::fs::write(folder.path().join("weir.toml"), full).unwrap();
    let serving = Serving::start(folder.path()).await;
    assert_not_accepted(&post(&serving.caller, "/e/", event(&key, "a").to_string()).await);
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
}

/// Sets an instance up in a folder, and returns the project key.
async fn prepared(folder: &Path) -> String {
    let made = set_up(folder, "plum-otter-violin-93").await;
    assert!(made.ok, "{}", made.err);
    let made: Value = serde_json::from_str(&made.out).unwrap();
    made["project_api_key"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_05_a_restart_takes_less_than_5_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let key = prepared(folder.path()).await;
    let mut serving = Serving::start(folder.path()).await;
    for signal in [Signal::TERM, Signal::KILL] {
        for number in 0..100 {
            let body = event(&key, &format!("event {number}")).to_string();
            assert_eq!(post(&serving.caller, "/e/", body).await.status, 200);
        }
        serving.signal(signal);
        serving.ended().await;

        let began = Instant::now();
        serving = Serving::start(folder.path()).await;
        let answer = post(&serving.caller, "/e/", event(&key, "after").to_string()).await;
        assert_eq!(answer.status, 200);
        assert!(began.elapsed() < Duration::from_secs(5), "{signal:?}: {:?}", began.elapsed());
    }
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_06_an_event_is_its_uuid_whatever_the_time() {
    let app = TestApp::with_owner().await;
    let uuid = "5d0a0f4e-6f0c-4d3e-9a53-0c5f1b0a7e11";
    let body = |sent_at: &str| {
        json!({"api_key": app.project_key(), "sent_at": sent_at, "batch": [
            {"event": "with uuid", "distinct_id": "u", "uuid": uuid,
             "timestamp": "2026-06-01T10:00:00Z"},
            {"event": "without", "distinct_id": "u", "timestamp": "2026-06-01T10:00:00Z",
             "properties": {"a": 1, "b": 2}},
        ]})
    };
    // Every attempt of a request contains its own time.
    for sent_at in ["2026-06-01T10:00:01Z", "2026-06-01T10:00:04Z", "2026-06-01T10:00:09.5Z"] {
        let answer = app.anonymous().post("/batch/", &body(sent_at)).await;
        assert_eq!(answer.status, 200);
    }
    assert_eq!(stored(&app).await, ["with uuid", "without"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_07_every_answer_allows_the_page_to_read_it() {
    let app = TestApp::with_owner().await;
    let shop = "https://shop.example";
    let mut calls = all_paths(app.project_key());
    for (_, path, _) in all_paths("phc_unknown") {
        for method in [Method::OPTIONS, Method::DELETE, Method::GET, Method::POST] {
            calls.push((method, path.clone(), "broken".to_owned()));
        }
    }
    for (method, path, body) in calls {
        let call = app.anonymous().call(method.clone(), &path).header("origin", shop);
        let call = call.header("access-control-request-headers", "content-type, x-odd");
        let answer = call.body(body).send().await;
        let shown = format!("{method} {path}: {}", answer.status);
        assert_eq!(answer.header("access-control-allow-origin"), Some(shop), "{shown}");
        assert_eq!(answer.header("access-control-allow-credentials"), Some("true"), "{shown}");
        let mut vary = answer.headers.get_all("vary").iter();
        assert!(vary.any(|value| value == "Origin"), "{shown}");
        let allowed = answer.header("access-control-allow-headers");
        assert_eq!(allowed, Some("content-type, x-odd"), "{shown}");
        assert_eq!(answer.header("set-cookie"), None, "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_08_the_browser_library_gets_its_settings() {
    let app = TestApp::with_owner().await;
    let path = format!("/array/{}/config", app.project_key());
    let answer = app.anonymous().get(&path).await;
    assert_eq!(answer.status, 200);
    let settings = answer.json();
    assert_eq!(settings["supportedCompression"], json!(["gzip-js"]));
    assert_eq!(settings["autocapture_opt_out"], false);
    assert_eq!(settings["hasFeatureFlags"], false);
    // Each of these keys would make the library load a missing file.
    for key in ["surveys", "sessionRecording", "toolbarParams", "siteApps"] {
        assert_eq!(settings.get(key), None, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_09_a_bad_event_never_fails_its_neighbours() {
    let app = TestApp::with_owner().await;
    let batch = json!([
        {"event": "kept 1", "distinct_id": "u"},
        {"event": "", "distinct_id": "u"},
        {"event": 7, "distinct_id": "u"},
        {"distinct_id": "u"},
        {"event": "nobody"},
        {"event": "blank", "distinct_id": " "},
        {"event": "odd uuid", "distinct_id": "u", "uuid": "17"},
        {"event": "odd properties", "distinct_id": "u", "properties": [1]},
        {"event": "large", "distinct_id": "u", "properties": {"x": "y".repeat(1 << 20)}},
        {},
        {"event": "kept 2", "distinct_id": "u", "timestamp": "noon"},
    ]);
    let body = json!({"api_key": app.project_key(), "batch": batch});
    assert_eq!(app.anonymous().post("/batch/", &body).await.status, 200);
    assert_eq!(stored(&app).await, ["kept 1", "kept 2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_10_what_is_too_big_is_answered_with_413() {
    const LIMIT: usize = 20_000_000;
    let app = TestApp::with_owner().await;
    let body = " ".repeat(LIMIT + 1);
    let packed = gzip(&body);
    for path in ["/capture/", "/batch/", "/e/", "/i/v1/analytics/events"] {
        for body in [body.clone().into_bytes(), packed.clone()] {
            let call = app.anonymous().call(Method::POST, path).body(body);
            let call = call
                .header("authorization", &format!("Bearer {}", app.project_key()))
                .header("content-type", "application/json")
                .header("user-agent", "test/1")
                .header("posthog-sdk-info", "test/1")
                .header("posthog-attempt", "1")
                .header("posthog-request-id", "cd497c5e-d34e-41e5-b50a-307bc0973d46")
                .header("posthog-request-timestamp", "2026-06-01T10:00:00Z");
            let answer = call.send().await;
            assert_eq!(answer.status, 413, "{path}");
            assert!(String::from_utf8_lossy(&answer.body).contains("payload_too_large"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_12_no_answer_speaks_of_a_quota() {
    let app = TestApp::with_owner().await;
    for key in [app.project_key(), "phc_unknown"] {
        for (method, path, body) in all_paths(key) {
            // The browser library has the word in its code.
            if path.starts_with("/static/") {
                continue;
            }
            let answer = app.anonymous().call(method, &path).body(body).send().await;
            let text = String::from_utf8_lossy(&answer.body).to_lowercase();
            assert!(!text.contains("quota"), "{path}: {text}");
        }
    }
}
