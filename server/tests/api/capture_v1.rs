//! Capture protocol V1 over HTTP (ING-26).

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use http::Method;
use serde_json::{Value, json};
use weir_testkit::{Answer, Call, TestApp};

const PATH: &str = "/i/v1/analytics/events";
const FIRST: &str = "880f267e-6093-4048-93c9-55f9b0a7978d";
const SECOND: &str = "880f267e-6093-4048-93c9-55f9b0a7978e";

fn event(uuid: &str) -> Value {
    json!({
        "event": "order placed", "uuid": uuid, "distinct_id": "user-1",
        "timestamp": "2026-06-01T10:34:59Z", "properties": {"total": 5.0},
    })
}

fn batch(events: &Value) -> Value {
    json!({"created_at": "2026-06-01T10:35:00Z", "batch": events})
}

/// A request with the headers that libraries send.
fn call(app: &TestApp, path: &str) -> Call {
    app.anonymous()
        .call(Method::POST, path)
        .header("authorization", &format!("Bearer {}", app.project_key()))
        .header("content-type", "application/json")
        .header("user-agent", "posthog-python/7.91.1")
        .header("posthog-sdk-info", "posthog-python/7.91.1")
        .header("posthog-attempt", "1")
        .header("posthog-request-id", "cd497c5e-d34e-41e5-b50a-307bc0973d46")
        .header("posthog-request-timestamp", "2026-06-01T10:35:00.595094+00:00")
}

async fn send(app: &TestApp, body: &Value) -> Answer {
    call(app, PATH).body(body.to_string()).send().await
}

#[track_caller]
fn assert_refused(answer: &Answer, status: u16, tag: &str) {
    let body = answer.json();
    assert_eq!((answer.status, body["error"].as_str()), (status, Some(tag)), "{body}");
    assert!(body["error_description"].as_str().is_some_and(|text| text.ends_with('.')), "{body}");
    assert!(body["error_uri"].as_str().is_some_and(|address| !address.is_empty()), "{body}");
    assert_eq!(body.as_object().unwrap().len(), 3, "{body}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert!(answer.header("access-control-allow-origin").is_some());
}

async fn stored(app: &TestApp) -> Vec<Value> {
    app.app().ingest.applied().await;
    let reader = app.owner().key(&["query:read"]).await;
    let path = format!("/api/projects/{}/events/", app.project());
    reader.get(&path).await.json()["results"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_has_its_result() {
    let app = TestApp::with_owner().await;
    let mut nameless = event(SECOND);
    nameless["event"] = json!("");
    let mut odd = event("880f267e-6093-4048-93c9-55f9b0a7978f");
    odd["options"] = json!({"process_person_profile": "maybe"});
    let mut first = event(FIRST);
    first["session_id"] = json!("0197c2f4-1b00-7a11-9b22-0c33d44e55f6");
    first["window_id"] = json!("0197c2f4-1b00-7a11-9b22-0c33d44e55f7");
    first["options"] = json!({"product_tour_id": "tour", "cookieless_mode": false});
    let answer = send(&app, &batch(&json!([first, nameless, odd]))).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("retry-after"), None);
    assert_eq!(
        answer.json(),
        json!({"results": {
            FIRST: {"result": "ok"},
            SECOND: {"result": "drop", "details": "missing_event_name"},
            "880f267e-6093-4048-93c9-55f9b0a7978f":
                {"result": "warning", "details": "invalid_option"},
        }})
    );
    let events = stored(&app).await;
    assert_eq!(events.len(), 2);
    let first = events.iter().find(|event| event["uuid"] == FIRST).unwrap();
    for (name, value) in [
        ("total", json!(5.0)),
        ("$session_id", json!("0197c2f4-1b00-7a11-9b22-0c33d44e55f6")),
        ("$window_id", json!("0197c2f4-1b00-7a11-9b22-0c33d44e55f7")),
        ("$product_tour_id", json!("tour")),
        ("$cookieless_mode", json!(false)),
        ("$lib", json!("posthog-python")),
        ("$lib_version", json!("7.91.1")),
        ("$ip", json!("127.0.0.1")),
    ] {
        assert_eq!(first["properties"][name], value, "{name}");
    }
    // Events that are not stored are shown with their reason, as on every path.
    let reader = app.owner().key(&["project:read"]).await;
    let path = format!("/api/projects/{}/ingestion_warnings/", app.project());
    let found = reader.get(&path).await.json();
    let codes: Vec<_> =
        found["results"].as_array().unwrap().iter().map(|one| &one["code"]).collect();
    for code in ["missing_event_name", "invalid_option"] {
        assert!(codes.contains(&&json!(code)), "{code} in {codes:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_try_again_stores_nothing_new() {
    let app = TestApp::with_owner().await;
    for attempt in ["1", "2"] {
        let call = call(&app, &format!("{PATH}/")).header("posthog-attempt", attempt);
        let answer = call.body(batch(&json!([event(FIRST)])).to_string()).send().await;
        assert_eq!(answer.json(), json!({"results": {FIRST: {"result": "ok"}}}));
    }
    assert_eq!(stored(&app).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn imports_are_marked() {
    let app = TestApp::with_owner().await;
    let mut body = batch(&json!([event(FIRST)]));
    body["historical_migration"] = json!(true);
    assert_eq!(send(&app, &body).await.status, 200);
    assert_eq!(stored(&app).await[0]["historical"], true);
}

fn written(mut encoder: impl std::io::Write, text: &str) {
    encoder.write_all(text.as_bytes()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn encodings() {
    let app = TestApp::with_owner().await;
    let text = batch(&json!([event(FIRST)])).to_string();
    let mut gzip = Vec::new();
    written(GzEncoder::new(&mut gzip, Compression::fast()), &text);
    let mut deflate = Vec::new();
    written(ZlibEncoder::new(&mut deflate, Compression::fast()), &text);
    let mut br = Vec::new();
    written(brotli::CompressorWriter::new(&mut br, 4096, 5, 22), &text);
    for (encoding, body) in [
        ("identity", text.clone().into_bytes()),
        ("gzip", gzip.clone()),
        ("deflate", deflate),
        ("br", br),
    ] {
        let call = call(&app, PATH).header("content-encoding", encoding);
        assert_eq!(call.body(body).send().await.status, 200, "{encoding}");
        let call = self::call(&app, PATH).header("content-encoding", encoding);
        let status =
            if encoding == "identity" { "request_parsing_error" } else { "request_decoding_error" };
        assert_refused(&call.body("nonsense").send().await, 400, status);
    }
    for encoding in ["lz4", "gzip, br", "compress"] {
        let call = call(&app, PATH).header("content-encoding", encoding);
        assert_refused(&call.body(gzip.clone()).send().await, 415, "unsupported_encoding");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_refused() {
    let app = TestApp::with_owner().await;
    let good = batch(&json!([event(FIRST)])).to_string();
    for (header, value, status, tag) in [
        ("authorization", "Bearer phc_unknown", 401, "invalid_api_token"),
        ("authorization", "Bearer phx_personal", 401, "invalid_api_token"),
        ("authorization", "Basic YTpi", 401, "invalid_api_token"),
        ("content-type", "text/plain", 415, "unsupported_content_type"),
        ("posthog-attempt", "0", 400, "invalid_header_value"),
        ("posthog-request-id", "7", 400, "invalid_header_value"),
        ("posthog-request-timestamp", "noon", 400, "invalid_header_value"),
    ] {
        let call = call(&app, PATH).header(header, value).body(good.clone());
        assert_refused(&call.send().await, status, tag);
    }
    let bare = app.anonymous().call(Method::POST, PATH).body(good.clone());
    assert_refused(&bare.send().await, 401, "invalid_api_token");
    let with_key = app.anonymous().with_key(app.project_key());
    let lacking = with_key.call(Method::POST, PATH).body(good);
    assert_refused(&lacking.send().await, 400, "missing_required_headers");

    for (body, tag) in [
        (String::new(), "empty_body"),
        ("{".to_owned(), "request_parsing_error"),
        (batch(&json!([])).to_string(), "empty_batch"),
        (json!({"batch": [event(FIRST)]}).to_string(), "invalid_batch"),
        (batch(&json!([{"event": "a"}])).to_string(), "missing_event_uuid"),
        (batch(&json!([event("17")])).to_string(), "invalid_event_uuid"),
        (batch(&json!([event(FIRST), event(FIRST)])).to_string(), "duplicate_event_uuid"),
    ] {
        assert_refused(&call(&app, PATH).body(body).send().await, 400, tag);
    }
    // A broken body is reported before a wrong key.
    let wrong = call(&app, PATH).header("authorization", "Bearer phc_unknown").body("{");
    assert_refused(&wrong.send().await, 400, "request_parsing_error");
    assert_eq!(stored(&app).await, Vec::<Value>::new());

    for method in [Method::GET, Method::PUT] {
        let answer = app.anonymous().call(method, PATH).send().await;
        assert_refused(&answer, 405, "method_not_allowed");
        assert_eq!(answer.header("allow"), Some("POST, OPTIONS"));
    }
    let preflight = app.anonymous().call(Method::OPTIONS, PATH).send().await;
    assert_eq!((preflight.status, preflight.json()), (200, json!({"status": 1})));
}

#[tokio::test(flavor = "multi_thread")]
async fn overload_says_when_to_come_again() {
    let app = TestApp::start(|_| {}, |limits| limits.capture_requests = 0).await.set_up().await;
    let answer = send(&app, &batch(&json!([event(FIRST)]))).await;
    assert_refused(&answer, 503, "service_unavailable");
    assert_eq!(answer.header("retry-after"), Some("1"));
}
