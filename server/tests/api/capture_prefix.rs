//! The capture endpoints below a prefix (ING-64).

use http::Method;
use serde_json::json;
use weir_testkit::TestApp;

use crate::web::{page, session};

const SITE: &str = "https://shop.example";

async fn app() -> TestApp {
    TestApp::start(|config| config.capture_prefix = "/in/k7".parse().unwrap(), |_| {})
        .await
        .set_up()
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn client_libraries_work_below_the_prefix() {
    let app = app().await;
    let key = app.project_key();
    let event = json!({"api_key": key, "event": "a", "distinct_id": "b"});
    for path in ["/in/k7/e/", "/in/k7/e", "/in/k7/i/v0/e/?ip=0", "/in/k7/batch/", "/e/"] {
        let call = app.anonymous().call(Method::POST, path).header("origin", SITE);
        let answer = call.json(&event).send().await;
        assert_eq!((answer.status, answer.json()), (200, json!({"status": 1})), "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), Some(SITE), "{path}");
    }
    let flags = app.anonymous().post("/in/k7/flags/?v=2", &event).await;
    assert_eq!((flags.status, &flags.json()["flags"]), (200, &json!({})));
    let settings = app.anonymous().get(&format!("/in/k7/array/{key}/config")).await;
    assert_eq!((settings.status, &settings.json()["hasFeatureFlags"]), (200, &json!(false)));
    let call = app.anonymous().call(Method::OPTIONS, "/in/k7/e/").header("origin", SITE);
    let preflight = call.send().await;
    assert_eq!(preflight.status, 200);
    assert_eq!(preflight.header("access-control-allow-origin"), Some(SITE));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_browser_library_is_below_the_prefix() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("library.js");
    std::fs::write(&file, "library").unwrap();
    let settings = |config: &mut weir_server::config::Config| {
        config.capture_prefix = "/in/k7".parse().unwrap();
        config.browser_library = file.clone();
    };
    let app = TestApp::start(settings, |_| {}).await;
    for path in ["/in/k7/static/array.js?v=1", "/static/array.js"] {
        let answer = app.anonymous().get(path).await;
        assert_eq!((answer.status, answer.text()), (200, "library".to_owned()), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_snippets_have_the_prefix() {
    let app = app().await;
    let cookie = session(&app).await;
    let start = page(&app, &format!("/projects/{}/start", app.project()), &cookie).await;
    let text = start.text();
    assert_eq!(start.status, 200, "{text}");
    for path in ["/in/k7/static/array.js", "/in/k7/i/v0/e/"] {
        assert!(text.contains(path), "{path}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_else_is_below_the_prefix() {
    let app = app().await;
    let caller = app.owner().key(&["*"]).await;
    assert_eq!(caller.get("/api/organizations/").await.status, 200);
    for path in ["/in/k7/api/organizations/", "/in/k7/_health", "/in/k7/", "/in/k7/login"] {
        let call = caller.call(Method::GET, path).header("origin", SITE);
        let answer = call.send().await;
        assert_ne!(answer.status, 200, "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), None, "{path}");
    }
}
