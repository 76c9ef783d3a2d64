//! Access to objects of other organizations, in addition to the tests of every operation
//! (`generated/credentials.rs`).

use http::Method;
use serde_json::json;
use weir_testkit::TestApp;

#[tokio::test(flavor = "multi_thread")]
async fn a_project_is_not_found_below_another_organization() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let other = caller.post("/api/organizations/", &json!({"name": "Beta"})).await.json();
    let path =
        format!("/api/organizations/{}/projects/{}/", other["id"].as_str().unwrap(), app.project());
    for method in [Method::GET, Method::PATCH] {
        let answer = caller.call(method, &path).json(&json!({"name": "x"})).send().await;
        answer.assert_error(404, "invalid_request", "not_found", "Not found.");
    }
    let own = caller.get(&format!("/api/projects/{}/", app.project())).await.json();
    assert_eq!(own["name"], "Shop");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_others_is_listed() {
    let app = TestApp::with_owner().await;
    let outsider = app.outsider("mallory").await.key(&["*"]).await;
    for path in ["/api/organizations/", "/api/projects/"] {
        let list = outsider.get(path).await.json();
        assert_eq!(list, json!({"count": 0, "next": null, "previous": null, "results": []}));
    }
    let answer = outsider.get("/api/organizations/@current/").await;
    answer.assert_error(404, "invalid_request", "not_found", "Current organization not found.");
    let answer = outsider.post("/api/projects/", &json!({"name": "x"})).await;
    assert_eq!(answer.status, 404);
}
