//! The settings that libraries ask for when they start (ING-8, ING-15).

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::Method;
use serde_json::{Value, json};
use weir_testkit::{Answer, TestApp};

const FORM: &str = "application/x-www-form-urlencoded";

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn base64_form(text: &str) -> Vec<u8> {
    let fields = [("data", STANDARD.encode(text))];
    form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish().into_bytes()
}

fn question(key: &str) -> String {
    json!({"token": key, "distinct_id": "user-1", "groups": {}}).to_string()
}

async fn post(app: &TestApp, path: &str, content_type: &str, body: Vec<u8>) -> Answer {
    let call = app.anonymous().call(Method::POST, path);
    call.header("content-type", content_type).body(body).send().await
}

/// The parts that libraries of every age need.
fn assert_settings(settings: &Value) {
    for (key, value) in [
        ("supportedCompression", json!(["gzip-js"])),
        ("autocapture_opt_out", json!(false)),
        ("hasFeatureFlags", json!(false)),
        ("analytics", json!({"endpoint": "/i/v0/e/"})),
        ("defaultIdentifiedOnly", json!(true)),
        ("elementsChainAsString", json!(true)),
    ] {
        assert_eq!(settings[key], value, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_as_json_and_as_a_script() {
    let app = TestApp::with_owner().await;
    let nobody = app.anonymous();
    let key = app.project_key();
    let json = nobody.get(&format!("/array/{key}/config?ip=0")).await;
    assert_eq!((json.status, json.header("content-type")), (200, Some("application/json")));
    assert_eq!(json.header("cache-control"), Some("public, max-age=60"));
    assert_settings(&json.json());

    let script = nobody.get(&format!("/array/{key}/config.js")).await;
    assert_eq!(script.status, 200);
    assert_eq!(script.header("content-type"), Some("application/javascript"));
    assert_eq!(script.header("cache-control"), Some("public, max-age=60"));
    let text = String::from_utf8(script.body.to_vec()).unwrap();
    let (before, after) = text.split_once("={config:").unwrap();
    assert!(before.ends_with(&format!("_POSTHOG_REMOTE_CONFIG[\"{key}\"]")), "{text}");
    let (settings, after) = after.split_once(",siteApps:[]}").unwrap();
    assert_eq!(serde_json::from_str::<Value>(settings).unwrap(), json.json());
    assert!(after.starts_with(";})(window);"), "{text}");

    let head = nobody.call(Method::HEAD, &format!("/array/{key}/config")).send().await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    let answer = nobody.call(Method::POST, &format!("/array/{key}/config")).send().await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD, OPTIONS")));
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_no_project() {
    let app = TestApp::with_owner().await;
    let long = "k".repeat(65);
    for key in ["phc_unknown", "phx_personal", "", "%00", &long] {
        for file in ["config", "config.js"] {
            let answer = app.anonymous().get(&format!("/array/{key}/{file}")).await;
            assert_eq!(answer.status, 404, "{key}");
            assert_eq!(answer.json()["code"], "not_found", "{key}");
        }
    }
    for path in ["/array/", "/array/x", "/array/x/other.js", "/array/x/y/config"] {
        assert_eq!(app.anonymous().get(path).await.status, 404, "{path}");
    }
    let known = format!("/array/{}/config", app.project_key());
    assert_eq!(app.anonymous().get(&known).await.status, 200);
    app.store().close().await.unwrap();
    let answer = app.anonymous().get("/array/phc_another/config").await;
    assert_eq!(answer.status, 503);
    assert!(answer.header("retry-after").is_some());
    assert_eq!(app.anonymous().get(&known).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_no_flags() {
    let app = TestApp::with_owner().await;
    let asked = question(app.project_key());
    let by_python = json!({"api_key": app.project_key(), "distinct_id": "u"}).to_string();
    for (path, content_type, body) in [
        ("/flags/?v=2", "application/json", asked.clone().into_bytes()),
        ("/flags?v=2", "text/plain", gzip(&asked)),
        ("/flags/?v=2&compression=base64", FORM, base64_form(&asked)),
        ("/flags/?v=2&ip=0&_=1780308303000", FORM, base64_form(&asked)),
        ("/flags/?v=4", "application/json", by_python.into_bytes()),
    ] {
        let answer = post(&app, path, content_type, body).await;
        assert_eq!(answer.status, 200, "{path}");
        let mut found = answer.json();
        let id = found["requestId"].take();
        assert_eq!(id, answer.header("x-request-id").unwrap(), "{path}");
        let expected = json!({"flags": {}, "errorsWhileComputingFlags": false, "requestId": null});
        assert_eq!(found, expected, "{path}");
    }
    // Libraries of 2025 ask for the settings here.
    let answer = post(&app, "/flags/?v=2&config=true", "text/plain", gzip(&asked)).await.json();
    assert_settings(&answer);
    assert_eq!(answer["flags"], json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn older_libraries_decide() {
    let app = TestApp::with_owner().await;
    let asked = question(app.project_key());
    for (path, content_type, body) in [
        ("/decide/?v=3", FORM, base64_form(&asked)),
        ("/decide/?v=3&compression=base64&ip=1&ver=1.200.0", FORM, base64_form(&asked)),
        ("/decide?v=2", "application/json", asked.clone().into_bytes()),
        ("/decide/", "application/json", asked.clone().into_bytes()),
    ] {
        let answer = post(&app, path, content_type, body).await;
        assert_eq!(answer.status, 200, "{path}");
        let found = answer.json();
        assert_settings(&found);
        assert_eq!(found["config"], json!({"enable_collect_everything": true}), "{path}");
        // posthog-python 2 reads both without checking that they exist.
        assert_eq!(found["featureFlags"], json!({}), "{path}");
        assert_eq!(found["featureFlagPayloads"], json!({}), "{path}");
        // Version 4 of the request.
        assert_eq!(found["flags"], json!({}), "{path}");
        assert_eq!(found["errorsWhileComputingFlags"], false, "{path}");
        assert_eq!(found["requestId"], answer.header("x-request-id").unwrap(), "{path}");
        assert_eq!(found["sessionRecording"], false, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_that_are_refused() {
    let app = TestApp::with_owner().await;
    for path in ["/flags/?v=2", "/decide/?v=3"] {
        for (body, status, kind, code) in [
            (String::new(), 400, "validation_error", "invalid_payload"),
            ("{".to_owned(), 400, "validation_error", "invalid_payload"),
            ("{}".to_owned(), 401, "authentication_error", "missing_api_key"),
            (question("phc_unknown"), 401, "authentication_error", "invalid_api_key"),
            (question("phx_personal"), 401, "authentication_error", "invalid_api_key"),
        ] {
            let answer = post(&app, path, "application/json", body.into_bytes()).await;
            let (found, found_kind, found_code, _, _) = answer.error();
            assert_eq!((found, found_kind.as_str(), found_code.as_str()), (status, kind, code));
        }
        let answer = app.anonymous().call(Method::PUT, path).send().await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, POST, OPTIONS")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn recordings_are_taken_shown_and_not_kept() {
    let app = TestApp::with_owner().await;
    let snapshot = json!({
        "event": "$snapshot",
        "properties": {"distinct_id": "u", "token": app.project_key(), "$snapshot_data": []},
    });
    let other = json!({"api_key": app.project_key(), "event": "not a recording",
                       "distinct_id": "u"});
    let large = json!({"api_key": app.project_key(), "event": "$snapshot",
                       "properties": {"$snapshot_data": "x".repeat(2 << 20)}});
    for (path, body, status) in [
        ("/s/", gzip(&json!([snapshot]).to_string()), 200),
        ("/s/?compression=gzip-js&ip=1", gzip(&snapshot.to_string()), 200),
        ("/s/?beacon=1", other.to_string().into_bytes(), 204),
        ("/s", large.to_string().into_bytes(), 200),
        ("/s/", b"{".to_vec(), 400),
        ("/s/", question("phc_unknown").into_bytes(), 401),
        ("/s/", vec![b' '; 20_971_521], 413),
    ] {
        assert_eq!(post(&app, path, "text/plain", body).await.status, status, "{path}");
    }
    app.app().ingest.applied().await;
    let reader = app.owner().key(&["query:read", "project:read"]).await;
    let project = format!("/api/projects/{}", app.project());
    assert_eq!(reader.get(&format!("{project}/events/")).await.json()["results"], json!([]));
    let found = reader.get(&format!("{project}/ingestion_warnings/")).await.json();
    let codes: Vec<_> =
        found["results"].as_array().unwrap().iter().map(|one| &one["code"]).collect();
    assert_eq!(codes, [&json!("not_an_event")]);
    assert_eq!(found["results"][0]["count"], 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn features_that_are_not_offered_are_empty_lists() {
    let app = TestApp::with_owner().await;
    let flags = json!({"flags": [], "group_type_mapping": {}, "cohorts": {}});
    let key = app.project_key();
    for (path, expected) in [
        (format!("/api/surveys/?token={key}"), json!({"surveys": []})),
        (
            format!("/api/early_access_features/?token={key}&stage=beta"),
            json!({"earlyAccessFeatures": []}),
        ),
        (format!("/api/web_experiments/?token={key}"), json!({"experiments": []})),
        (format!("/api/product_tours/?token={key}"), json!({"product_tours": []})),
        (format!("/flags/definitions?token={key}&send_cohorts"), flags.clone()),
        (format!("/api/feature_flag/local_evaluation/?token={key}&send_cohorts"), flags.clone()),
        (format!("/api/feature_flag/local_evaluation?token={key}"), flags.clone()),
        ("/api/projects/@current/feature_flags/local_evaluation".to_owned(), flags.clone()),
        ("/api/environments/1/feature_flags/local_evaluation".to_owned(), flags),
        (
            format!("/api/feature_flag/?token={key}"),
            json!({"count": 0, "next": null, "previous": null, "results": []}),
        ),
        (
            format!("/api/projects/@current/feature_flags/new%20page/remote_config?token={key}"),
            Value::Null,
        ),
        ("/api/projects/@current/feature_flags/new-page/remote_config/".to_owned(), Value::Null),
    ] {
        let shop = "https://shop.example";
        let nobody = app.anonymous();
        let call = nobody.call(Method::GET, &path).header("origin", shop);
        // A key of any kind; a library of 2022 sends one that has expired.
        let answer = call.header("authorization", "Bearer phx_ended").send().await;
        assert_eq!((answer.status, answer.json()), (200, expected), "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), Some(shop), "{path}");
        assert_eq!(answer.header("content-type"), Some("application/json"), "{path}");
        let other = nobody.call(Method::PUT, &path).header("origin", shop).send().await;
        assert_eq!((other.status, other.header("allow")), (405, Some("GET, HEAD, OPTIONS")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_event_is_answered_and_shown_as_not_kept() {
    let app = TestApp::with_owner().await;
    let key = app.project_key();
    // Makes the key known to the cache.
    post(&app, "/flags/?v=2", "application/json", question(key).into_bytes()).await;
    let paths = [
        format!("/api/push_subscriptions/?token={key}"),
        format!("/i/v1/logs?token={key}"),
        format!("/i/v1/metrics/?token={key}"),
        format!("/i/v1/traces?token={key}"),
        format!("/i/v0/ai/?token={key}"),
        format!("/i/v0/ai/otel/v1/logs?token={key}"),
        format!("/i/v0/ai/otel/v1/metrics?token={key}"),
        format!("/i/v0/ai/otel/v1/traces/?token={key}"),
        format!("/report/?token={key}&sample_rate=1"),
    ];
    for path in &paths {
        let answer = post(&app, path, "application/json", gzip("{}")).await;
        assert_eq!((answer.status, answer.json()["status"].as_u64()), (200, Some(1)), "{path}");
        let reported = answer.json()["partialSuccess"]["errorMessage"].take();
        assert!(reported.as_str().unwrap().starts_with("Not kept"), "{path}");
        let nobody = app.anonymous();
        let preflight = nobody.call(Method::OPTIONS, path).send().await;
        assert_eq!((preflight.status, preflight.json()), (200, json!({"status": 1})));
        assert_eq!(nobody.get(path).await.status, 405, "{path}");
    }
    // A mobile library unregisters its device.
    let body = json!({"api_key": key, "distinct_id": "u", "device_token": "t"});
    let call = app.anonymous().call(Method::DELETE, "/api/push_subscriptions/");
    assert_eq!(call.json(&body).send().await.status, 200);
    // An exporter of OpenTelemetry has its key in a header, and reads its own format.
    let call = app.anonymous().call(Method::POST, "/i/v0/ai/otel");
    let call = call.header("authorization", &format!("Bearer {key}"));
    let answer = call.header("content-type", "application/x-protobuf").body("x").send().await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("application/x-protobuf"))
    );
    assert_eq!(answer.body[..2], [0x0a, u8::try_from(answer.body.len() - 2).unwrap()]);
    assert_eq!(answer.body[2..4], [0x12, u8::try_from(answer.body.len() - 4).unwrap()]);

    let refusals = weir_store::traffic::refused(app.store(), app.project()).await.unwrap();
    let codes: Vec<_> = refusals.iter().map(|one| one.code.as_str()).collect();
    assert_eq!(codes, ["not_kept"; 11]);
    let counted = app.app().traffic.minutes(app.project());
    let rejected: u64 = counted.iter().map(|(_, counts)| counts.rejected).sum();
    assert_eq!(rejected, 11);
    // A body that is too large is refused, as on every path.
    let large = post(&app, &paths[0], "application/json", vec![b' '; 20_971_521]).await;
    assert_eq!(large.status, 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn unserved_paths_answer_in_json() {
    let app = TestApp::with_owner().await;
    // A message to support: a page must be able to read that it was not sent.
    let path = "/api/conversations/v1/widget/message";
    let call = app.anonymous().call(Method::POST, path).header("origin", "https://shop.example");
    let answer = call.json(&json!({"message": "Help"})).send().await;
    assert_eq!((answer.status, answer.json()["code"].as_str()), (404, Some("not_found")));
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://shop.example"));
}

#[tokio::test(flavor = "multi_thread")]
async fn visitors_have_no_conversations_with_support() {
    let app = TestApp::with_owner().await;
    for (method, path, expected) in [
        (Method::GET, "tickets?widget_session_id=a", json!({"count": 0, "results": []})),
        (
            Method::GET,
            "messages/7?limit=50",
            json!({"ticket_status": "resolved", "messages": [], "has_more": false,
                   "unread_count": 0}),
        ),
        (Method::POST, "messages/7/read", json!({"success": true, "unread_count": 0})),
        (Method::POST, "restore", json!({"status": "invalid", "code": "token_invalid"})),
        (Method::POST, "restore/request", json!({"ok": true})),
    ] {
        let path = format!("/api/conversations/v1/widget/{path}");
        let shop = "https://shop.example";
        let nobody = app.anonymous();
        // Pages of other origins must be allowed to send the header of the widget.
        let call = nobody.call(Method::OPTIONS, &path).header("origin", shop);
        let call = call.header("access-control-request-headers", "x-conversations-token");
        let preflight = call.send().await;
        assert_eq!(
            preflight.header("access-control-allow-headers"),
            Some("x-conversations-token"),
            "{path}"
        );
        let answer = nobody.call(method, &path).header("origin", shop).send().await;
        assert_eq!((answer.status, answer.json()), (200, expected), "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), Some(shop), "{path}");
    }
}
