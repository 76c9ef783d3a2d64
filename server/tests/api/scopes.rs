//! Scopes and limits of keys, in addition to the tests of every operation
//! (`generated/credentials.rs`).

use serde_json::json;
use weir_testkit::{Caller, TestApp};

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

/// A limited key shows only the part of its owner that is within its limits.
#[tokio::test(flavor = "multi_thread")]
async fn the_owner_of_a_limited_key_is_shown_within_its_limits() {
    let app = TestApp::with_owner().await;
    let all = app.owner().key(&["*"]).await;
    let organizations = "/api/organizations/";
    let projects = format!("/api/organizations/{}/projects/", app.organization());
    all.post(&projects, &json!({"name": "Second"})).await;
    // It becomes the owner's current organization.
    let other = all.post(organizations, &json!({"name": "Beta"})).await.json();
    let (other_id, other_team) = (other["id"].clone(), other["teams"][0]["id"].clone());
    let me = async |caller: &Caller| caller.get("/api/users/@me/").await.json();
    let whole = me(&all).await;
    assert_eq!(whole["organization"]["name"], "Beta");
    assert_eq!(whole["organizations"].as_array().unwrap().len(), 2);

    let project = app.owner().limited_key(&["*"], &[], &[app.project()]).await;
    let organization = app.owner().limited_key(&["*"], &[app.organization()], &[]).await;
    for (caller, teams) in [(&project, 1), (&organization, 2)] {
        let shown = me(caller).await;
        assert_eq!(shown["organization"]["name"], "Acme Tea");
        assert_eq!(shown["organization"]["teams"].as_array().unwrap().len(), teams);
        assert_eq!(shown["team"]["organization"], json!(app.organization()));
        assert_eq!(shown["organizations"].as_array().unwrap().len(), 1);
        assert!(!shown.to_string().contains("Beta"), "{shown}");
        // The key cannot choose another one either.
        for (field, value) in
            [("set_current_organization", &other_id), ("set_current_team", &other_team)]
        {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let answer = caller.patch("/api/users/@me/", &json!({field: value})).await;
            assert_eq!(answer.error().2, "does_not_exist", "{field}");
        }
    }
    assert_eq!(me(&project).await["team"]["id"], json!(app.project()));
    // A project of the same organization is outside the limits too.
    let second = all.get(&projects).await.json()["results"][1]["id"].to_string();
    let answer = project.patch("/api/users/@me/", &json!({"set_current_team": second})).await;
    assert_eq!(answer.error().2, "does_not_exist");
    assert_eq!(me(&all).await["organization"]["name"], "Beta");
}
