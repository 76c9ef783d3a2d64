//! Scopes and limits of keys, walked over the whole route table.

use http::Method;
use serde_json::json;
use weir_model::scopes::ScopeObject;
use weir_server::router::routes;
use weir_testkit::TestApp;

fn path_of(app: &TestApp, pattern: &str) -> String {
    pattern
        .replace("{organization_id}", &app.organization().to_string())
        .replace("{project_id}", &app.project().to_string())
        .replace("{user_id}", "@me")
        .replace("{person_id}", "00000000-0000-0000-0000-000000000000")
        .replace("{id}", "@current")
        .replace("/sessions/", "/sessions/?distinct_id=ada")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_refuses_nobody_and_other_scopes() {
    let app = TestApp::with_owner().await;
    let other = app.owner().key(&["survey:write"]).await;
    let nobody = app.anonymous();
    for route in routes() {
        let path = path_of(&app, route.path);
        let call = |caller: &weir_testkit::Caller| {
            caller.call(route.method.clone(), &path).json(&json!({})).send()
        };
        assert_eq!(call(&nobody).await.status, 401, "{} {path}", route.method);
        let Some(first) = route.scopes.first() else { continue };
        call(&other).await.assert_error(
            403,
            "authentication_error",
            "permission_denied",
            &format!("API key missing required scope '{first}'"),
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_scope_reads_and_a_write_scope_does_both() {
    let app = TestApp::with_owner().await;
    let scopes = |action: &str| {
        let objects = ScopeObject::OFFERED.iter().map(|object| object.text());
        objects.map(|object| format!("{object}:{action}")).collect::<Vec<_>>()
    };
    let key = async |action: &str| {
        let scopes = scopes(action);
        app.owner().key(&scopes.iter().map(String::as_str).collect::<Vec<_>>()).await
    };
    let (reader, writer) = (key("read").await, key("write").await);
    let all = app.owner().key(&["*"]).await;
    for route in routes() {
        if route.scopes.is_empty() {
            continue;
        }
        let path = path_of(&app, route.path);
        // What names an object that must be made first is in `generated`.
        if path.contains('{') {
            continue;
        }
        if route.method == Method::GET {
            // There is no person yet, nor anything else that has to be made first.
            let is_missing = route.path.contains("{person_id}") || path.contains('{');
            let expected = if is_missing { 404 } else { 200 };
            for caller in [&reader, &writer, &all] {
                assert_eq!(caller.get(&path).await.status, expected, "{path}");
            }
        } else {
            let call = |caller: &weir_testkit::Caller| {
                caller
                    .call(route.method.clone(), &path)
                    .header("content-type", "text/plain")
                    .body("x")
                    .send()
            };
            assert_eq!(call(&reader).await.status, 403, "{path}");
            // The scope suffices: the next check is that of the body, where one is read.
            if (route.describe)().body.is_some() {
                assert_eq!(call(&writer).await.status, 415, "{path}");
                assert_eq!(call(&all).await.status, 415, "{path}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_need_one_of_two_scopes() {
    let app = TestApp::with_owner().await;
    let path = format!("/api/projects/{}/events/", app.project());
    for scope in ["query:read", "event:read", "query:write", "*"] {
        assert_eq!(app.owner().key(&[scope]).await.get(&path).await.status, 200, "{scope}");
    }
    let answer = app.owner().key(&["project:write"]).await.get(&path).await;
    let detail = "API key missing required scope 'query:read'";
    answer.assert_error(403, "authentication_error", "permission_denied", detail);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_keys() {
    let app = TestApp::with_owner().await;
    let all = app.owner().key(&["*"]).await;
    let other = all.post("/api/organizations/", &json!({"name": "Beta"})).await.json();
    let other_path = format!("/api/organizations/{}/", other["id"].as_str().unwrap());

    let one = app.owner().limited_key(&["*"], &[app.organization()], &[]).await;
    let list = one.get("/api/organizations/").await.json();
    assert_eq!((&list["count"], &list["results"][0]["name"]), (&json!(1), &json!("Acme Tea")));
    assert_eq!(one.get("/api/projects/").await.json()["count"], 1);
    let missing = one.get(&format!("/api/organizations/{}/", uuid::Uuid::from_u128(7))).await;
    let hidden = one.get(&other_path).await;
    assert_eq!((hidden.status, &hidden.body), (404, &missing.body));
    assert_eq!(one.get(&format!("{other_path}projects/")).await.status, 404);

    let project = app.owner().limited_key(&["*"], &[], &[app.project()]).await;
    let detail = "API keys with scoped projects are only supported on project-based endpoints.";
    for path in ["/api/organizations/", "/api/projects/", &other_path] {
        let answer = project.get(path).await;
        answer.assert_error(403, "authentication_error", "permission_denied", detail);
    }
    assert_eq!(project.get(&format!("/api/projects/{}/", app.project())).await.status, 200);
    let foreign = format!("/api/projects/{}/", other["teams"][0]["id"]);
    assert_eq!(project.get(&foreign).await.status, 404);
    assert_eq!(project.get("/api/users/@me/").await.status, 200);
}
