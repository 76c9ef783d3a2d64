//! Answers of the capture endpoints (ING-1, ING-25).

use std::io::Write as _;

use base64::Engine as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::Method;
use serde_json::{Value, json};
use weir_model::Timestamp;
use weir_server::limits::{ByteLimits, Limits};
use weir_service::Clock;
use weir_testkit::{Answer, TestApp, until};

const PATHS: [&str; 7] =
    ["/capture", "/batch", "/e", "/i/v0/e", "/track", "/engage", "/i/v0/ai/batch"];
const FORM: &str = "application/x-www-form-urlencoded";

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn event(app: &TestApp) -> Value {
    json!({"api_key": app.project_key(), "event": "a", "distinct_id": "b"})
}

async fn post(app: &TestApp, path: &str, body: impl Into<bytes::Bytes>) -> Answer {
    app.anonymous().call(Method::POST, path).body(body).send().await
}

fn assert_refused(answer: &Answer, status: u16, kind: &str, code: &str) {
    let (found, found_kind, found_code, detail, attr) = answer.error();
    assert_eq!((found, found_kind.as_str(), found_code.as_str(), attr), (status, kind, code, None));
    assert!(!detail.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_path_takes_every_shape_with_and_without_slash() {
    let app = TestApp::with_owner().await;
    let one = event(&app);
    let shapes = [
        one.clone(),
        json!([{"token": app.project_key(), "event": "a", "distinct_id": "b"}]),
        json!({"token": app.project_key(), "batch": [{"event": "a", "distinct_id": "b"}]}),
    ];
    for path in PATHS {
        for slash in ["", "/"] {
            for shape in &shapes {
                let answer = post(&app, &format!("{path}{slash}"), shape.to_string()).await;
                assert_eq!(
                    (answer.status, answer.json()),
                    (200, json!({"status": 1})),
                    "{path}{slash}"
                );
                assert_eq!(answer.header("content-type"), Some("application/json"));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn get_takes_data_from_the_query() {
    let app = TestApp::with_owner().await;
    let packed = base64::engine::general_purpose::STANDARD.encode(event(&app).to_string());
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("data", &packed)
        .append_pair("compression", "base64")
        .finish();
    let nobody = app.anonymous();
    assert_eq!(nobody.get(&format!("/e/?{query}")).await.json(), json!({"status": 1}));
    assert_eq!(nobody.get(&format!("/e/?{query}&beacon=1")).await.status, 204);
    assert_refused(&nobody.get("/e/").await, 400, "validation_error", "invalid_payload");
}

/// The ways in which published libraries compress and encode events (ING-17).
#[tokio::test(flavor = "multi_thread")]
async fn a_body_travels_in_many_ways() {
    let app = TestApp::with_owner().await;
    let base64 = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let form = |data: String| {
        let fields = [("data", data)];
        form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
    };
    let body = |name: &str| {
        json!({"api_key": app.project_key(), "batch": [{"event": name, "distinct_id": "ñ"}]})
            .to_string()
            .into_bytes()
    };
    // A very old browser library.
    let lz64 = |name: &str| lz_str::compress_to_base64(std::str::from_utf8(&body(name)).unwrap());
    let lz64_form = |data: String| {
        let fields = [("data", data), ("compression", "lz64".to_owned())];
        form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
    };
    let ways: [(&str, &str, &str, &str, Vec<u8>); 12] = [
        ("plain", "/batch/", "application/json", "", body("plain")),
        ("no type", "/batch/", "", "", body("no type")),
        ("text", "/e/", "text/plain;charset=UTF-8", "", body("text")),
        ("gzip", "/batch/", "application/json", "gzip", gzip(&body("gzip"))),
        ("no hint", "/i/v0/e/", "text/plain", "", gzip(&body("no hint"))),
        (
            "query",
            "/e/?compression=gzip-js&ip=1&_=1780308303000&ver=1.200.0",
            "text/plain",
            "",
            gzip(&body("query")),
        ),
        ("go", "/batch/?compression=gzip", "application/json", "gzip", gzip(&body("go"))),
        ("form", "/e/?compression=base64", FORM, "", form(base64(&body("form"))).into_bytes()),
        ("bare form", "/e/", FORM, "", form(base64(&body("bare form"))).into_bytes()),
        (
            "lz64",
            "/e/?compression=lz64&_=1780308303000",
            "text/plain",
            "",
            lz64("lz64").into_bytes(),
        ),
        ("lz64 form", "/e/", FORM, "", lz64_form(lz64("lz64 form")).into_bytes()),
        (
            "lz64 form, hinted",
            "/e/?compression=lz64",
            FORM,
            "",
            form(lz64("lz64 form, hinted")).into_bytes(),
        ),
    ];
    let mut names = Vec::new();
    for (name, path, content_type, encoding, body) in ways {
        let call = app.anonymous().call(Method::POST, path).header("content-type", content_type);
        let answer = call.header("content-encoding", encoding).body(body).send().await;
        assert_eq!((answer.status, answer.json()), (200, json!({"status": 1})), "{name}");
        names.push(name);
    }
    app.app().ingest.applied().await;
    let reader = app.owner().key(&["query:read"]).await;
    let path = format!("/api/projects/{}/events/?distinct_id=%C3%B1", app.project());
    let list = reader.get(&path).await.json();
    let mut found: Vec<_> = list["results"].as_array().unwrap().iter().collect();
    found.sort_by_key(|event| event["event"].as_str().unwrap().to_owned());
    names.sort_unstable();
    let found: Vec<_> = found.into_iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(found, names);
}

#[tokio::test(flavor = "multi_thread")]
async fn clicked_elements_become_a_chain() {
    let app = TestApp::with_owner().await;
    let element = json!({"tag_name": "a", "$el_text": "Home", "attr__href": "/", "nth_child": 1});
    let event = json!({
        "api_key": app.project_key(), "event": "$autocapture", "distinct_id": "u",
        "properties": {"$elements": [element], "$event_type": "click"},
    });
    assert_eq!(post(&app, "/e/", event.to_string()).await.status, 200);
    app.app().ingest.applied().await;
    let reader = app.owner().key(&["query:read"]).await;
    let path = format!("/api/projects/{}/events/", app.project());
    let event = &reader.get(&path).await.json()["results"][0];
    let chain = r#"a:attr__href="/"href="/"nth-child="1"nth-of-type="0"text="Home""#;
    assert_eq!(event["elements_chain"], chain);
    assert_eq!(event["properties"]["$event_type"], "click");
    assert_eq!(event["properties"].get("$elements"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn beacons_get_204_when_all_is_well_only() {
    let app = TestApp::with_owner().await;
    let answer = post(&app, "/e/?beacon=1", event(&app).to_string()).await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    assert_eq!(answer.header("content-type"), None);
    assert_eq!(post(&app, "/e/?beacon=1", "{").await.status, 400);
    assert_eq!(post(&app, "/e/?beacon=0", event(&app).to_string()).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_at_fault() {
    let app = TestApp::with_owner().await;
    let token = app.project_key();
    let mut cut = gzip(event(&app).to_string().as_bytes());
    cut.truncate(cut.len() / 2);
    let bodies: [Vec<u8>; 10] = [
        Vec::new(),
        b"{".to_vec(),
        b"not json".to_vec(),
        b"\xff\xfe".to_vec(),
        b"7".to_vec(),
        cut,
        json!({"api_key": token, "batch": []}).to_string().into_bytes(),
        json!({"api_key": token, "batch": null}).to_string().into_bytes(),
        json!({"api_key": token, "batch": "x"}).to_string().into_bytes(),
        json!({"api_key": token, "batch": [{"event": "a", "distinct_id": "b"}, 7]})
            .to_string()
            .into_bytes(),
    ];
    for body in bodies {
        let shown = String::from_utf8_lossy(&body).into_owned();
        let answer = post(&app, "/batch/", body).await;
        assert_eq!(answer.status, 400, "{shown}");
        assert_refused(&answer, 400, "validation_error", "invalid_payload");
    }
    for (path, content_type, body) in [
        // text that is not a form, and a form without payload
        ("/e/", FORM, event(&app).to_string()),
        ("/e/", FORM, "ip=1&_=1780308303000".to_owned()),
        // a wrong content type or compression
        ("/e/?compression=gzip-js", "text/plain", event(&app).to_string()),
        ("/e/?compression=lz64", "text/plain", "AAAA!".to_owned()),
        // base64 of a text that is not JSON, and text that only looks like base64
        ("/e/", "text/plain", "bm90IGpzb24=".to_owned()),
        ("/e/", FORM, "data=%%%".to_owned()),
        // an empty payload
        ("/e/?data=", "text/plain", String::new()),
    ] {
        let call = app.anonymous().call(Method::POST, path).header("content-type", content_type);
        let answer = call.body(body.clone()).send().await;
        assert_eq!(answer.status, 400, "{path} {body}");
        assert_refused(&answer, 400, "validation_error", "invalid_payload");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_at_fault() {
    let app = TestApp::with_owner().await;
    let event = |key: Value| json!({"api_key": key, "event": "a", "distinct_id": "b"}).to_string();
    let auth = "authentication_error";
    let answer =
        post(&app, "/capture/", json!({"event": "a", "distinct_id": "b"}).to_string()).await;
    assert_refused(&answer, 401, auth, "missing_api_key");
    let long = "x".repeat(65);
    for key in ["phc_unknown", "", "phx_personal", &long, "ключ"] {
        let answer = post(&app, "/capture/", event(json!(key))).await;
        assert_refused(&answer, 401, auth, "invalid_api_key");
        assert_eq!(answer.json()["detail"], "No project has this API key.", "{key}");
    }
    let two = json!([
        {"token": app.project_key(), "event": "a", "distinct_id": "b"},
        {"token": "phc_other", "event": "a", "distinct_id": "b"},
    ]);
    assert_refused(&post(&app, "/e/", two.to_string()).await, 401, auth, "invalid_api_key");
    let padded = format!("  {}\n", app.project_key());
    assert_eq!(post(&app, "/capture/", event(json!(padded))).await.status, 200);
    // A broken body is reported before a wrong key.
    let answer = post(&app, "/batch/", json!({"api_key": "phc_no", "batch": []}).to_string()).await;
    assert_eq!(answer.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_events_do_not_fail_a_request() {
    let app = TestApp::with_owner().await;
    for event in [
        json!({"event": ""}),
        json!({"distinct_id": "a"}),
        json!({"event": "a", "distinct_id": ""}),
    ] {
        let mut event = event;
        event["api_key"] = json!(app.project_key());
        let answer = post(&app, "/capture/", event.to_string()).await;
        assert_eq!((answer.status, answer.json()), (200, json!({"status": 1})));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_methods() {
    let app = TestApp::empty().await;
    for method in [Method::PUT, Method::PATCH, Method::DELETE, Method::HEAD] {
        let answer = app.anonymous().call(method.clone(), "/batch/").send().await;
        assert_eq!(answer.status, 405);
        assert_eq!(answer.header("allow"), Some("GET, POST, OPTIONS"));
        if method != Method::HEAD {
            assert_refused(&answer, 405, "invalid_request", "method_not_allowed");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_paths() {
    let app = TestApp::with_owner().await;
    for path in ["/capture/x", "/batches/", "/i/v0/", "/E/", "/i/v2/analytics/events"] {
        assert_eq!(post(&app, path, event(&app).to_string()).await.status, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sizes_as_sent_and_decompressed() {
    const LIMIT: usize = 20_000_000;
    let app = TestApp::with_owner().await;
    let filled = |size: usize| {
        let empty = json!({"api_key": app.project_key(), "batch": [{"event": "a", "distinct_id": "b", "properties": {}}], "x": ""});
        let mut text = empty.to_string();
        let missing = size - text.len();
        let at = text.rfind("\"\"").unwrap() + 1;
        text.insert_str(at, &"y".repeat(missing));
        text
    };
    assert_eq!(post(&app, "/batch/", filled(LIMIT)).await.status, 200);
    for body in [filled(LIMIT + 1).into_bytes(), gzip(filled(LIMIT + 1).as_bytes())] {
        let answer = post(&app, "/batch/", body).await;
        assert_refused(&answer, 413, "validation_error", "payload_too_large");
    }
    assert_eq!(post(&app, "/batch/", gzip(filled(LIMIT).as_bytes())).await.status, 200);
    // A decompression bomb: thirty times over the limit when decompressed.
    let bomb = gzip(&vec![0; 1 << 28]);
    assert_eq!(post(&app, "/e/", bomb).await.status, 413);
    assert_eq!(post(&app, "/capture/", event(&app).to_string()).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn overload_is_503_and_leaves_the_api_alone() {
    let app = TestApp::start(|_| {}, |limits| limits.capture_requests = 0).await.set_up().await;
    let answer = post(&app, "/e/", event(&app).to_string()).await;
    assert_refused(&answer, 503, "server_error", "not_accepted");
    assert_eq!(answer.header("retry-after"), Some("1"));
    let id = answer.header("x-request-id").unwrap();
    assert_eq!(answer.json()["extra"]["request_id"], id);
    let caller = app.owner().key(&["*"]).await;
    assert_eq!(caller.get("/api/organizations/").await.status, 200);

    let little = |limits: &mut Limits| {
        limits.capture_bytes = ByteLimits { total: 100, reserve: 0, ..limits.capture_bytes };
    };
    let app = TestApp::start(|_| {}, little).await.set_up().await;
    assert_eq!(post(&app, "/e/", event(&app).to_string()).await.status, 503);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_body_becomes_is_in_a_budget() {
    const ROOM: usize = 256 << 10;
    let app = TestApp::start(|_| {}, |limits| limits.decoding_bytes = ROOM).await.set_up().await;
    let batch = |events: usize| {
        let events = vec![json!({"event": "a", "distinct_id": "b"}); events];
        json!({"api_key": app.project_key(), "batch": events}).to_string()
    };
    let refused = post(&app, "/batch/", batch(9_000)).await;
    assert_refused(&refused, 503, "server_error", "not_accepted");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(post(&app, "/batch/", batch(10)).await.status, 200);
    // Nothing of either is held any more.
    until(async || app.app().permits.decoding_bytes.available_permits() == ROOM).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_path_does_not_matter_to_cookies_or_bearer_keys() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    // A personal API key in the header does not authorize capture.
    let answer = caller.post("/capture/", &json!({"event": "a", "distinct_id": "b"})).await;
    assert_refused(&answer, 401, "authentication_error", "missing_api_key");
}

#[tokio::test(flavor = "multi_thread")]
async fn visitors_without_cookies_have_an_id_for_a_day() {
    let clock = Clock::fixed(Timestamp::parse("2026-06-01T12:00:00Z").unwrap());
    let app = TestApp::at(clock.clone()).await.set_up().await;
    let owner = app.owner().key(&["*"]).await;
    let send = async |name: &str, user_agent: &str| {
        let event = json!({"token": app.project_key(), "event": name, "properties": {
            "distinct_id": "$posthog_cookieless", "$cookieless_mode": true,
            "$host": "shop.example", "$raw_user_agent": user_agent,
        }});
        let call = app.anonymous().call(Method::POST, "/e/?ip=1");
        let answer = call.header("user-agent", user_agent).json(&event).send().await;
        assert_eq!((answer.status, answer.json()), (200, json!({"status": 1})), "{name}");
    };
    send("first", "Firefox").await;
    send("again", "Firefox").await;
    send("other", "Chrome").await;
    clock.advance(24 * 60 * 60);
    send("tomorrow", "Firefox").await;
    app.app().ingest.applied().await;
    let id = async |name: &str| {
        let path = format!("/api/projects/{}/events/?event={name}", app.project());
        let list = owner.get(&path).await.json();
        let event = &list["results"][0];
        for property in ["$ip", "$raw_user_agent"] {
            assert_eq!(event["properties"][property], Value::Null, "{name}");
        }
        event["distinct_id"].as_str().unwrap().to_owned()
    };
    let first = id("first").await;
    assert!(first.starts_with("cookieless_"), "{first}");
    assert_eq!(id("again").await, first);
    assert_ne!(id("other").await, first);
    assert_ne!(id("tomorrow").await, first);
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_are_kept_unless_the_request_or_the_project_says_no() {
    let app = TestApp::with_owner().await;
    let owner = app.owner().key(&["*"]).await;
    let project = format!("/api/projects/{}", app.project());
    let send = async |path: &str, name: &str| {
        let event = json!({"api_key": app.project_key(), "event": name, "distinct_id": "b"});
        assert_eq!(post(&app, path, event.to_string()).await.status, 200);
    };
    send("/e/", "with").await;
    send("/e/?ip=1", "one").await;
    send("/e/?ip=0", "without").await;
    let answer = owner.patch(&project, &json!({"anonymize_ips": true})).await;
    assert_eq!(answer.status, 200);
    send("/e/", "anonymous").await;
    app.app().ingest.applied().await;
    for (name, address) in [
        ("with", json!("127.0.0.1")),
        ("one", json!("127.0.0.1")),
        ("without", Value::Null),
        ("anonymous", Value::Null),
    ] {
        let events = owner.get(&format!("{project}/events/?event={name}")).await.json();
        assert_eq!(events["results"][0]["properties"]["$ip"], address, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_works_immediately_and_cached_keys_without_the_store() {
    let app = TestApp::with_owner().await;
    let owner = app.owner().key(&["*"]).await;
    let body = |key: &str| json!({"api_key": key, "event": "a", "distinct_id": "b"}).to_string();
    let made = owner.post("/api/projects/", &json!({"name": "New"})).await.json();
    let key = made["api_token"].as_str().unwrap();
    assert_eq!(post(&app, "/e/", body(key)).await.status, 200);
    assert_eq!(post(&app, "/e/", body("phc_unknown")).await.status, 401);

    app.store().close().await.unwrap();
    assert_eq!(post(&app, "/e/", body(key)).await.status, 200);
    // Never 401: the key may belong to a new project.
    let answer = post(&app, "/e/", body("phc_another")).await;
    assert_refused(&answer, 503, "server_error", "not_accepted");
    assert!(answer.header("retry-after").is_some());
    assert_eq!(post(&app, "/e/", body("phc_unknown")).await.status, 401, "that was decided before");
}
