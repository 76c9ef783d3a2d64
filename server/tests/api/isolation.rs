//! What belongs to others answers like what does not exist, byte for byte.

use http::Method;
use serde_json::json;
use weir_server::router::routes;
use weir_testkit::TestApp;

#[tokio::test(flavor = "multi_thread")]
async fn outsiders_cannot_tell_foreign_from_missing() {
    let app = TestApp::with_owner().await;
    let outsider = app.stranger("mallory").await.key(&["*"]).await;
    for route in routes().into_iter().filter(|route| route.path.contains('{')) {
        if !(route.path.contains("{organization_id}") || route.path.contains("{project_id}")) {
            continue;
        }
        let call = |organization: String, project: String| {
            let path = route
                .path
                .replace("{organization_id}", &organization)
                .replace("{project_id}", &project);
            outsider.call(route.method.clone(), &path).json(&json!({"name": ""})).send()
        };
        let foreign = call(app.organization().to_string(), app.project().to_string()).await;
        let missing = call(uuid::Uuid::from_u128(7).to_string(), "4711".to_owned()).await;
        let malformed = call("junk".to_owned(), "junk".to_owned()).await;
        assert_eq!(foreign.status, 404, "{} {}", route.method, route.path);
        assert_eq!(foreign.body, missing.body, "{}", route.path);
        assert_eq!(foreign.body, malformed.body, "{}", route.path);
        for (name, value) in &foreign.headers {
            if !["x-request-id", "date"].contains(&name.as_str()) {
                assert_eq!(missing.headers.get(name), Some(value), "{name}");
            }
        }
    }
}

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
    let outsider = app.stranger("mallory").await.key(&["*"]).await;
    for path in ["/api/organizations/", "/api/projects/"] {
        let list = outsider.get(path).await.json();
        assert_eq!(list, json!({"count": 0, "next": null, "previous": null, "results": []}));
    }
    let answer = outsider.get("/api/organizations/@current/").await;
    answer.assert_error(404, "invalid_request", "not_found", "Current organization not found.");
    let answer = outsider.post("/api/projects/", &json!({"name": "x"})).await;
    assert_eq!(answer.status, 404);
}
