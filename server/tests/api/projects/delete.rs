//! `DELETE` of a project, by both paths.

use serde_json::json;
use weir_model::organizations::Level;
use weir_store::organizations::deletions;
use weir_testkit::{Caller, TestApp};

async fn capture(app: &TestApp, key: &str) -> u16 {
    let event = json!({"token": key, "event": "a", "distinct_id": "b"});
    app.anonymous().post("/capture/", &event).await.status
}

async fn project(caller: &Caller, name: &str) -> (String, String) {
    let made = caller.post("/api/projects/", &json!({"name": name})).await.json();
    (made["id"].to_string(), made["api_token"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_deleted_immediately_with_its_key() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["project:write"]).await;
    let nested = format!("/api/organizations/{}/projects/", app.organization());
    for base in ["/api/projects/", &nested] {
        let (id, key) = project(&caller, "Blog").await;
        assert_eq!(capture(&app, &key).await, 200);
        let path = format!("{base}{id}/");
        let answer = caller.delete(&path).await;
        assert_eq!((answer.status, answer.body.len()), (204, 0), "{path}");
        assert_eq!(answer.header("content-type"), None);
        assert_eq!(capture(&app, &key).await, 401);
        for answer in [caller.get(&path).await, caller.delete(&path).await] {
            answer.assert_error(404, "invalid_request", "not_found", "Not found.");
        }
        assert_eq!(caller.get("/api/projects/").await.json()["count"], 1);
    }
    // The others still accept events, and one of them is the current project.
    assert_eq!(capture(&app, app.project_key()).await, 200);
    assert_eq!(caller.get("/api/projects/@current/").await.json()["id"], app.project().0);
    assert_eq!(caller.delete("/api/projects/%40current").await.status, 204);
    let none = caller.get("/api/projects/@current/").await;
    none.assert_error(404, "invalid_request", "not_found", "Project not found.");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_events_are_removed_in_the_background() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["project:write"]).await;
    let (id, key) = project(&caller, "Blog").await;
    assert_eq!(capture(&app, &key).await, 200);
    app.app().ingest.applied().await;
    caller.delete(&format!("/api/projects/{id}/")).await;
    let waiting = deletions(app.store()).await.unwrap();
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0].projects[0].to_string(), id);
    let services = &app.app().services;
    let later = services.clock.now().plus_seconds(3600);
    services.organizations.purge_deleted(later).await.unwrap();
    assert!(deletions(app.store()).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn its_exports_go_with_it() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let made = caller.post(&super::exports_of(&app), &super::export()).await;
    assert_eq!(made.status, 201, "{:?}", made.body);
    let all = format!("/api/organizations/{}/batch_exports/", app.organization());
    assert_eq!(caller.get(&all).await.json()["count"], 1);
    assert_eq!(caller.delete(&format!("/api/projects/{}/", app.project())).await.status, 204);
    assert_eq!(caller.get(&all).await.json()["count"], 0);
    let one = format!("{all}{}/", made.json()["id"].as_str().unwrap());
    assert_eq!(caller.get(&one).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may() {
    let app = TestApp::with_owner().await;
    let member = app.member("grace", Level::Member).await;
    let member = member.key(&["*"]).await;
    let reader = app.owner().key(&["project:read"]).await;
    let outsider = app.outsider("mallory").await.key(&["*"]).await;
    for path in [
        format!("/api/projects/{}/", app.project()),
        format!("/api/organizations/{}/projects/{}/", app.organization(), app.project()),
    ] {
        for (caller, detail) in [
            (&member, "Your organization access level is insufficient."),
            (&reader, "API key missing required scope 'project:write'"),
        ] {
            let answer = caller.delete(&path).await;
            answer.assert_error(403, "authentication_error", "permission_denied", detail);
        }
        assert_eq!(outsider.delete(&path).await.status, 404);
    }
    let admin = app.member("linus", Level::Administrator).await;
    let admin = admin.key(&["project:write"]).await;
    let path = format!("/api/projects/{}/", app.project());
    assert_eq!(admin.delete(&path).await.status, 204);
}
