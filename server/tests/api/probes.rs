//! Probes, the web surface without pages, and stopping.

use http::Method;
use serde_json::json;
use weir_testkit::TestApp;

#[tokio::test(flavor = "multi_thread")]
async fn probes_answer() {
    let app = TestApp::empty().await;
    let nobody = app.anonymous();
    let health = nobody.get("/_health").await;
    assert_eq!((health.status, health.body.as_ref()), (200, b"ok".as_slice()));
    assert_eq!(nobody.get("/_livez/").await.json(), json!({"http": true}));
    let ready = nobody.get("/_readyz").await;
    assert_eq!(ready.status, 200);
    let all = json!({"http": true, "store": true, "ingest": true, "disk": true, "log": true});
    assert_eq!(ready.json(), all);
    assert_eq!(nobody.call(Method::POST, "/_livez").send().await.status, 405);
    // The names that the hosted service uses.
    for path in ["/_liveness", "/_readiness", "/_readiness/"] {
        let answer = nobody.get(path).await;
        assert_eq!((answer.status, answer.body.as_ref()), (200, b"ok".as_slice()), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_learns_what_sort_of_instance_it_is() {
    let app = TestApp::empty().await;
    let asked = async |app: &TestApp| {
        let answer = app.anonymous().get("/_preflight/").await;
        assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-store")));
        answer.json()
    };
    let empty = asked(&app).await;
    assert_eq!((&empty["initiated"], &empty["can_create_org"]), (&json!(false), &json!(true)));
    let app = app.set_up().await;
    let ready = asked(&app).await;
    assert_eq!((&ready["initiated"], &ready["can_create_org"]), (&json!(true), &json!(false)));
    assert_eq!(
        (&ready["cloud"], &ready["email_service_available"]),
        (&json!(false), &json!(false))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_fails_before_the_service_stops() {
    let app = TestApp::with_owner().await;
    let nobody = app.anonymous();
    app.app().stopping.begin();
    // An open connection may still send a request; a new one is refused.
    if let Ok(answer) = tokio::spawn(async move { nobody.get("/_readyz").await }).await {
        assert_eq!(answer.status, 503);
    }
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_page_is_not_found() {
    let app = TestApp::empty().await;
    let answer = app.anonymous().get("/nothing").await;
    assert_eq!(answer.status, 404);
    assert_eq!(answer.header("cross-origin-opener-policy"), Some("same-origin"));
    assert!(answer.header("permissions-policy").is_some());
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
}
