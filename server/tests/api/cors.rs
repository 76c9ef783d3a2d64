//! CORS headers are on every answer of the capture paths, and on no other (ING-7).

use http::Method;
use serde_json::json;
use weir_testkit::{Answer, TestApp};

fn assert_allowed(answer: &Answer, origin: &str) {
    assert_eq!(answer.header("access-control-allow-origin"), Some(origin), "{answer:?}");
    assert_eq!(answer.header("access-control-allow-credentials"), Some("true"));
    assert_eq!(answer.header("access-control-allow-methods"), Some("GET, POST, OPTIONS"));
    assert_eq!(answer.header("access-control-expose-headers"), Some("Retry-After"));
    assert_eq!(answer.header("vary"), Some("Origin"));
    assert_eq!(answer.header("cross-origin-resource-policy"), Some("cross-origin"));
}

#[tokio::test(flavor = "multi_thread")]
async fn preflight() {
    let app = TestApp::empty().await;
    for path in [
        "/e/",
        "/batch",
        "/capture/",
        "/i/v0/e/",
        "/track/",
        "/engage",
        "/s/",
        "/i/v1/analytics/events",
        "/flags/",
        "/decide/?v=3",
        "/array/phc_x/config",
        "/static/array.js",
    ] {
        let call = app.anonymous().call(Method::OPTIONS, path);
        let answer = call
            .header("origin", "https://shop.example")
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "content-type, x-odd")
            .send()
            .await;
        assert_eq!((answer.status, answer.json()), (200, json!({"status": 1})), "{path}");
        assert_allowed(&answer, "https://shop.example");
        assert_eq!(answer.header("access-control-allow-headers"), Some("content-type, x-odd"));
        assert_eq!(answer.header("access-control-max-age"), Some("86400"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_even_errors() {
    let app = TestApp::with_owner().await;
    let event = json!({"api_key": app.project_key(), "event": "a", "distinct_id": "b"});
    let long = format!("/e/?data={}", "x".repeat(9000));
    for (method, path, body, status) in [
        (Method::POST, "/e/", event.to_string(), 200),
        (Method::POST, "/e/?beacon=1", event.to_string(), 204),
        (Method::POST, "/e/", "nonsense".to_owned(), 400),
        (Method::POST, "/e/", json!({"api_key": "phc_no", "event": "a"}).to_string(), 401),
        (Method::PUT, "/e/", event.to_string(), 405),
        (Method::GET, &long, String::new(), 414),
        (Method::POST, "/e/", "x".repeat(20_971_521), 413),
    ] {
        let call = app.anonymous().call(method, path).header("origin", "https://shop.example");
        let answer = call.body(body).send().await;
        assert_eq!(answer.status, status);
        assert_allowed(&answer, "https://shop.example");
    }
    let answer = app.anonymous().post("/e/", &event).await;
    assert_allowed(&answer, "*");
    let call = app.anonymous().call(Method::POST, "/e/").header("origin", "null");
    assert_allowed(&call.json(&event).send().await, "null");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_elsewhere() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    for path in ["/api/organizations/", "/api/nothing/", "/_health", "/"] {
        for method in [Method::GET, Method::OPTIONS] {
            let call = caller.call(method, path).header("origin", "https://evil.example");
            let answer = call.send().await;
            let found =
                answer.headers.keys().find(|name| name.as_str().starts_with("access-control"));
            assert_eq!(found, None, "{path}");
        }
    }
}
